// fsdpmark advise: which sharding strategy suits this model on this interconnect, and which bandwidth it needs.
#include <stdlib.h>
#include <string.h>

#include "harness/advise/figures.h"
#include "harness/cli/advise.h"
#include "harness/launch/interrupt.h"

static int print(const struct cli *cli, const struct advise_options *o, const struct advice *a, double elements)
{
    if (!o->as_json) {
        printf("%.4g parameters on %d ranks\n", elements, a->q->ranks);
        advise_table(a, stdout);
        fputc('\n', stdout);
        advise_words(a, stdout);
        fputc('\n', stdout);
        advise_settings(a, stdout);
        advise_assumptions(a, stdout);
        return 0;
    }
    json_t *j = advise_json(a);
    bool written = j != NULL && json_dumpf(j, stdout, JSON_INDENT(2)) == 0;
    json_decref(j);
    fputc('\n', stdout);
    return written ? 0 : options_bad(cli->command, "standard output: cannot be written");
}

static int draw(const struct cli *cli, const struct advise_options *o, const struct advice *a)
{
    char why[PLOT_WHY];
    struct error error = {""};
    if (o->figures == NULL)
        return 0;
    if (!advise_figures(a, o->figures, why, &error))
        return options_bad(cli->command, "%s", error.text);
    if (why[0] != 0)
        fprintf(stderr, "fsdpmark advise: no figures: %s\n", why);
    return 0;
}

static int advise(const struct cli *cli, const struct advise_options *o, const struct fsdp_case *c)
{
    struct advice_question q = {.c = c, .ranks = (int)o->ranks, .rows = o->rows};
    struct advice a;
    struct error error = {""};
    double elements = 0;
    for (int i = 0; i < c->parameter_count; i++)
        elements += c->parameters[i].tied_to < 0 ? (double)c->parameters[i].count : 0;
    if (!advise_machine(cli, o, &q, &error))
        return interrupt_signal() ? 128 + interrupt_signal() : error.text[0] == 0 ? 2 : options_bad(cli->command, "%s", error.text); // no text: it has been said
    int status = advise_make(&q, &a, &error) ? print(cli, o, &a, elements) : options_bad(cli->command, "%s", error.text);
    if (status == 0)
        status = draw(cli, o, &a);
    advise_free(&a);
    return status;
}

int cmd_advise(const struct cli *cli, int argc, char **argv)
{
    // -1: not given (advise_options.c).
    struct advise_options o = {.ranks = -1, .hosts = -1, .layers = -1, .dim = -1, .heads = -1, .kv_heads = -1, .ffn = -1, .vocab = -1, .context = -1, .rows = -1, .micros = -1, .prefetch = -1, .rounds = -1};
    int words;
    const struct option table[] = {
        {"ranks", 'n', OPTION_INTEGER, &o.ranks, "N", "ranks (8)"},
        {"hosts", 0, OPTION_INTEGER, &o.hosts, "N", "hosts that the ranks are spread over; default eight ranks a host"},
        {"case", 0, OPTION_TEXT, &o.case_file, "FILE", "the model, precision, wrap policy and optimizer of a case"},
        {"workload", 'w', OPTION_TEXT, &o.workload, "WORKLOAD", "the model and batch of a workload of bench: name, or path of a file"},
        {"pattern", 'k', OPTION_TEXT, &o.pattern, "PATTERN", "which case of the file: the first whose id matches the glob or holds the text"},
        {"model", 0, OPTION_TEXT, &o.model, "KIND", "llama (as Llama 2 7B where no size is given) or gpt (as GPT-2 XL)"},
        {"layers", 0, OPTION_INTEGER, &o.layers, "N", "blocks"},
        {"dim", 0, OPTION_INTEGER, &o.dim, "N", "width"},
        {"heads", 0, OPTION_INTEGER, &o.heads, "N", "heads of queries"},
        {"kv-heads", 0, OPTION_INTEGER, &o.kv_heads, "N", "heads of keys and values"},
        {"ffn", 0, OPTION_INTEGER, &o.ffn, "N", "hidden width"},
        {"vocab", 0, OPTION_INTEGER, &o.vocab, "N", "words"},
        {"context", 0, OPTION_INTEGER, &o.context, "N", "tokens of a row"},
        {"rows", 0, OPTION_INTEGER, &o.rows, "N", "rows of a rank in a microbatch; default as many as fit, for each strategy"},
        {"micros", 0, OPTION_INTEGER, &o.micros, "N", "microbatches of a step (1)"},
        {"precision", 0, OPTION_TEXT, &o.precision, "WORD", "f32, bf16, ... as in a case (bf16)"},
        {"layout", 0, OPTION_TEXT, &o.layout, "WORD", "flat (equal parts) or per_parameter (chunks of rows) (flat)"},
        {"prefetch", 0, OPTION_INTEGER, &o.prefetch, "N", "units gathered ahead (1)"},
        {"checkpointing", 0, OPTION_FLAG, &o.checkpointing, NULL, "activations are recomputed"},
        {"no-reshard", 0, OPTION_FLAG, &o.no_reshard, NULL, "parameters stay gathered from forward to backward"},
        {"memory", 0, OPTION_TEXT, &o.memory, "SIZE", "of a rank, that a strategy must fit into"},
        {"fabric", 'f', OPTION_TEXT, &o.fabric, "FABRIC", "measures now: over TCP which settings of Open MPI are better, the line by fsdpmark net, computing by steps of the reference"},
        {"from", 0, OPTION_TEXT, &o.from, "RUN", "the line as a stored run of fsdpmark net has it; 0: the newest"},
        {"alpha", 0, OPTION_TEXT, &o.alpha, "TIME", "latency of one step of a collective (between hosts)"},
        {"bandwidth", 0, OPTION_TEXT, &o.bandwidth, "RATE", "of a rank's line (between hosts)"},
        {"inner-alpha", 0, OPTION_TEXT, &o.inner_alpha, "TIME", "latency inside a host"},
        {"inner-bandwidth", 0, OPTION_TEXT, &o.inner_bandwidth, "RATE", "of a rank's line inside a host"},
        {"exchange", 0, OPTION_TEXT, &o.exchange, "KIND", "how collectives move: direct, ring or tree (tree)"},
        {"both-ways", 0, OPTION_RATIO, &o.both_ways, "X", "a line that collectives share carries so many times what it carries for one (1)"},
        {"contention", 0, OPTION_RATIO, &o.contention, "X", "computing takes so many times as long beside communication (1.05)"},
        {"flops", 0, OPTION_TEXT, &o.flops, "RATE", "flop/s that a rank reaches in matrix products"},
        {"peak", 0, OPTION_TEXT, &o.peak, "RATE", "peak flop/s of a rank, for MFU"},
        {"copy-rate", 0, OPTION_TEXT, &o.copy_rate, "RATE", "bytes/s of copies and sums in a rank's memory"},
        {"update-rate", 0, OPTION_TEXT, &o.update_rate, "RATE", "bytes/s that the optimizer goes through"},
        {"figures", 0, OPTION_TEXT, &o.figures, "FOLDER", "the crossover map and the throughput over bandwidth (of --validate: measured and predicted), as SVG, PNG and PDF"},
        {"validate", 0, OPTION_FLAG, &o.validate, NULL, "measures steps on emulated clusters of 2 and 4 hosts and judges the model by them; exit status 1 where a bound is missed"},
        {"rates", 0, OPTION_TEXT, &o.rates, "LIST", "of the line, in Mbit/s, for --validate (25,50,100,200)"},
        {"rounds", 0, OPTION_INTEGER, &o.rounds, "N", "steps of each strategy at the lowest rate, more at higher ones, for --validate (6)"},
        {"store", 0, OPTION_TEXT, &o.store, "FILE", "the database of results"},
        {"json", 0, OPTION_FLAG, &o.as_json, NULL, "JSON on stdout in place of the table"},
        {"suite", 0, OPTION_TEXT, &o.suite, "FOLDER", "the suite"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, NULL, 0, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    struct error error = {""};
    if (!advise_check_options(&o, &error))
        return options_bad(cli->command, "%s", error.text);
    bool measures = o.validate || o.fabric != NULL;
    if (!cli_can_fill(cli, "figures", o.figures) || (measures && !cli_can_work(cli)))
        return 2;
    if (o.validate)
        return advise_validate(cli, &o);
    struct fsdp_case c;
    if (!advise_case(cli, &o, &c, &error))
        return options_bad(cli->command, "%s", error.text);
    if (o.workload != NULL && o.rows == 0)
        o.rows = c.global_rows > o.ranks ? c.global_rows / o.ranks : 1;
    int status = advise(cli, &o, &c);
    case_free(&c);
    return status;
}
