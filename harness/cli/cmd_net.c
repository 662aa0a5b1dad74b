// fsdpmark net: what an interconnect does with the collectives of sharded training, every buffer checked.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/cli/cli.h"
#include "harness/launch/interrupt.h"
#include "harness/launch/launch.h"
#include "harness/net/lines.h"
#include "harness/net/output.h"
#include "harness/net/run.h"
#include "harness/protocol/memory.h"
#include "harness/run/scratch.h"
#include "harness/run/stamp.h"

static const double SECONDS = 60, LINE_SECONDS = 240; // emulated lines are slow, and their large messages are what matters
enum { FEW = 4, OWN = -1, RANKS_MOST = 4096 }; // sizes that are given and no more than that are those of all measures

struct request {
    const char *fabric, *hostfile, *agent, *sizes, *measures, *case_file, *pattern, *json, *csv, *figures, *store, *suite, *corrupt;
    int64_t ranks, hosts, starts, within, seed; // ranks, within: OWN where they are not given; hosts: CLI_HOSTS_OWN
    double seconds, narrow;
    bool keep, bare;
};

static int default_ranks(const struct fabric_place *place)
{
    int hosts = fabric_place_hosts(place), cores = launch_cores();
    return hosts > 1 ? hosts : cores < 2 ? 2 : cores > 8 ? 8 : cores;
}

// Ranks of the inner tier: of a group of hosts where the fabric has two tiers, of a host where several ranks share one, else pairs.
static int default_within(const struct fabric_place *place, int ranks)
{
    int hosts = fabric_place_hosts(place), group = fabric_place_fabric(place)->group;
    int within = group > 0 ? group * ranks / hosts : hosts > 1 && ranks > hosts ? ranks / hosts : 2;
    return within > 1 && within < ranks && ranks % within == 0 ? within : 0;
}

static bool read_corrupt(const char *text, struct net_settings *s, struct error *error)
{
    long long iteration;
    char rest;
    s->corrupt_rank = -1;
    if (text == NULL)
        return true;
    bool ok = sscanf(text, "%d:%lld%c", &s->corrupt_rank, &iteration, &rest) == 2 && s->corrupt_rank >= 0 && s->corrupt_rank < s->ranks && iteration >= 0;
    s->corrupt_iteration = ok ? iteration : 0;
    return ok || error_set(error, "--corrupt: found '%s', expected RANK:ITERATION with a rank below %d", text, s->ranks);
}

static bool choose_ranks(const struct request *r, struct net_settings *s, struct error *error)
{
    if (r->ranks != OWN && (r->ranks < 2 || r->ranks > RANKS_MOST))
        return error_set(error, "--ranks: found %lld, expected 2 to %d", (long long)r->ranks, RANKS_MOST);
    s->ranks = r->ranks != OWN ? (int)r->ranks : default_ranks(s->place);
    if (r->within != OWN && (r->within < 1 || r->within > s->ranks || s->ranks % r->within != 0))
        return error_set(error, "--within: found %lld, expected a divisor of the %d ranks", (long long)r->within, s->ranks);
    s->within = r->within != OWN ? (int)r->within : default_within(s->place, s->ranks);
    s->line_rate = net_line_of(s->place, s->ranks, s->within, NULL).rate;
    s->seconds = r->seconds > 0 ? r->seconds : s->line_rate > 0 ? LINE_SECONDS : SECONDS;
    return read_corrupt(r->corrupt, s, error);
}

static bool make_plan(const struct request *r, const struct net_settings *s, const struct net_units *units, struct net_plan *plan, struct error *error)
{
    struct net_request q = {.ranks = s->ranks, .within = s->within, .units = units, .sizes = net_default_sizes(s->line_rate)};
    if (r->sizes != NULL && !sizes_parse(r->sizes, &q.sizes, error))
        return false;
    q.few = r->sizes != NULL && q.sizes.count <= FEW ? q.sizes : net_default_few(&q.sizes, s->line_rate);
    if (!net_measures_parse(r->measures != NULL ? r->measures : r->bare ? "sweep" : "all", &q.measures, error) || !net_plan_make(&q, plan, error))
        return false;
    for (int i = 0; i < plan->count; i++)
        plan->points[i].bare = r->bare && plan->points[i].how == NET_BLOCKING && plan->points[i].product == NET_IDLE;
    return true;
}

static void introduce(const struct net_settings *s, const struct net_plan *plan, FILE *out)
{
    const struct fabric *f = fabric_place_fabric(s->place);
    fprintf(out, "%s: %s; %d ranks on %d host%s", f->name, f->title, s->ranks, fabric_place_hosts(s->place), fabric_place_hosts(s->place) > 1 ? "s" : "");
    if (s->line_rate > 0)
        fprintf(out, ", slowest line %.4g Mbit/s", 8e-6 * s->line_rate);
    fprintf(out, "; %d points, %d start%s of %.3g s together\n", plan->count, s->starts, s->starts > 1 ? "s" : "", s->seconds);
    fputs("Times: the slowest rank's, of calls in a row behind a barrier; medians with intervals of at least 95 % (docs/metrics.md)\n", out);
    if (fabric_place_hosts(s->place) == 1 && s->ranks > launch_cores())
        fprintf(out, "More ranks than cores (%d): they wait for each other's turn, and times say so\n", launch_cores());
    fflush(out);
}

static bool write_to(const struct cli *cli, const char *path, const struct net_rows *rows, const struct net_findings *findings, bool csv)
{
    FILE *file = cli_open(path);
    return cli_close(cli, path, file, file != NULL && (csv ? net_csv(rows, file) : net_json(rows, findings, file)));
}

static bool draw(const struct cli *cli, const struct request *r, const struct net_settings *s, const struct net_rows *rows)
{
    struct stored_run run;
    struct error error = {0};
    char why[256] = "";
    if (r->figures == NULL)
        return true;
    if (!store_load_run(s->store, s->run, &run, &error))
        return options_bad(cli->command, "%s", error.text), false;
    bool ok = net_figures(rows, &run, r->figures, why, &error) || (options_bad(cli->command, "%s", error.text), false);
    if (why[0] != 0)
        fprintf(stderr, "fsdpmark net: no figure: %s\n", why);
    stored_run_free(&run);
    return ok;
}

// ran: false where the reason why nothing was measured is told anyway. Exit status: 1 data errors, 3 nothing was measured, 2 a report cannot be written.
static int report(const struct cli *cli, const struct request *r, const struct net_settings *s, int planned, bool ran, FILE *out)
{
    struct net_rows rows;
    struct net_findings findings;
    struct error error = {0};
    if (!net_rows_load(s->store, s->run, &rows, &error)) {
        if (ran)
            options_bad(cli->command, "%s", error.text);
        return 3;
    }
    net_consistency(&rows, &findings);
    net_table(&rows, &findings, out);
    if (rows.count < planned)
        fprintf(out, "\n%d of %d points were not measured: %s\n", planned - rows.count, planned, interrupt_signal() ? "the run was interrupted" : "the time was up");
    bool ok = (r->json == NULL || write_to(cli, r->json, &rows, &findings, false)) && (r->csv == NULL || write_to(cli, r->csv, &rows, &findings, true)) &&
              draw(cli, r, s, &rows);
    int status = rows.errors > 0 ? 1 : ok ? 0 : 2;
    net_rows_free(&rows);
    return status;
}

static FILE *news(const struct request *r) { return cli_news(r->json, r->csv); }

static bool begin_run(const struct cli *cli, const struct request *r, struct net_settings *s, const char *path, struct error *error)
{
    json_t *environment = stamp_make((uint64_t)r->seed);
    json_object_set_new(environment, "fabric", fabric_stamp(s->place));
    struct run_info info = {.command = cli->command_line, .seed = (uint64_t)r->seed, .environment = environment};
    bool ok = store_open(path, false, &s->store, error) && store_begin_run(s->store, &info, &s->run, error);
    json_decref(environment);
    return ok;
}

static int measure(const struct cli *cli, const struct request *r, struct net_settings *s, const struct net_plan *plan, const char *path)
{
    struct error error = {0}, own = {0};
    char *scratch = scratch_make(r->keep, &error);
    FILE *out = news(r);
    s->scratch = scratch;
    s->progress = stderr;
    if (scratch == NULL || !begin_run(cli, r, s, path, &error)) {
        if (scratch != NULL)
            scratch_end(scratch, r->keep);
        free(scratch);
        store_close(s->store);
        return options_bad(cli->command, "%s", error.text);
    }
    introduce(s, plan, out);
    bool ok = net_run(s, plan, &error);
    int status = report(cli, r, s, plan->count, ok, out), caught = interrupt_signal();
    if (!ok) {
        options_bad(cli->command, "%s", error.text);
        status = status == 1 ? 1 : 3;
    }
    fprintf(out, "\nRun %lld in %s\n", (long long)s->run, path);
    if (!caught && !store_end_run(s->store, s->run, status, &own))
        status = options_bad(cli->command, "%s", own.text);
    store_close(s->store);
    if (r->keep)
        fprintf(out, "Jobs kept in %s\n", scratch);
    scratch_end(scratch, r->keep);
    free(scratch);
    return caught ? 128 + caught : status;
}

static int on_place(const struct cli *cli, const struct request *r, const struct fabric_place *place, const char *store)
{
    struct error error = {0};
    struct net_units units = {0};
    struct net_plan plan = {0};
    char *worker = memory_format("%s/fsdpmark-net", getenv("FSDPMARK_BUILD"));
    const char *launcher = fabric_refuses(fabric_place_fabric(place), "mpirun") == NULL ? "mpirun" : "srun";
    struct net_settings s = {.program = cli->program, .worker = worker, .launcher = launcher, .place = place,
                             .starts = (int)r->starts, .narrow = r->narrow, .seed = (uint64_t)r->seed};
    bool wanted = r->case_file != NULL || r->pattern != NULL;
    bool ok = choose_ranks(r, &s, &error) && (!wanted || net_units_read(r->case_file, r->pattern, r->suite, &units, &error)) &&
              make_plan(r, &s, wanted ? &units : NULL, &plan, &error);
    int status = ok ? measure(cli, r, &s, &plan, store) : options_bad(cli->command, "%s", error.text);
    net_plan_free(&plan);
    net_units_free(&units);
    free(worker);
    return status;
}

static int net(const struct cli *cli, const struct request *r, const char *store)
{
    struct error error = {0};
    struct fabric fabric;
    struct fabric_place *place;
    const struct cli_fabric_request asked = {r->fabric, r->suite, r->hostfile, r->agent, r->hosts};
    if (!cli_fabric(cli, &asked, &fabric))
        return 2;
    char *reason = fabric_unavailable(&fabric);
    if (reason == NULL && fabric.kind == FABRIC_NCCL)
        reason = memory_text("its collectives are NCCL's, and fsdpmark-net speaks MPI; remedy: fsdpmark bench measures what runs on NCCL");
    int status = 2;
    if (interrupt_signal() != 0)
        free(reason);
    else if (reason != NULL)
        status = cli_skip(&fabric, reason, news(r));
    else if (!fabric_open(&fabric, r->hosts > 0 ? (int)r->hosts : 0, cli->program, &place, &error))
        options_bad(cli->command, "%s", error.text);
    else {
        status = on_place(cli, r, place, store);
        fabric_close(place);
    }
    fabric_free(&fabric);
    return interrupt_signal() != 0 ? 128 + interrupt_signal() : status;
}

int cmd_net(const struct cli *cli, int argc, char **argv)
{
    struct request r = {.fabric = "shm", .hosts = CLI_HOSTS_OWN, .ranks = OWN, .within = OWN, .starts = 4, .seed = 1, .narrow = 0.02};
    int words;
    const struct option table[] = {
        {"fabric", 'f', OPTION_TEXT, &r.fabric, "FABRIC", "what to measure: name, or path of a file (shm)"},
        {"hosts", 0, OPTION_INTEGER, &r.hosts, "N", "hosts of a virtual fabric; default as it says"},
        {"hostfile", 0, OPTION_TEXT, &r.hostfile, "FILE", "machines of the fabric hosts, 'NAME slots=N' in each line (docs/fabrics.md)"},
        {"agent", 0, OPTION_TEXT, &r.agent, "COMMAND", "how mpirun reaches the machines of the fabric hosts; default ssh"},
        {"ranks", 'n', OPTION_INTEGER, &r.ranks, "N", "ranks; default one a host, on one machine one a core, 2 to 8"},
        {"sizes", 0, OPTION_TEXT, &r.sizes, "SIZES", "bytes of the whole buffer, as 8..16M, 1K..1M*4 or 64K,1M; default from 8 as far as the line allows"},
        {"measure", 'm', OPTION_TEXT, &r.measures, "LIST", "all, or some of sweep,directions,links,mixed,forms,shards,alignment,together,tiers,compute,units (all)"},
        {"case", 0, OPTION_TEXT, &r.case_file, "FILE", "also the units of this model: a case.json, or a file of cases"},
        {"pattern", 'k', OPTION_TEXT, &r.pattern, "PATTERN", "which case: the first of the file, or of the suite, whose id matches the glob or holds the text"},
        {"within", 0, OPTION_INTEGER, &r.within, "N", "ranks of hybrid's inner tier; default as the fabric has it, else 2"},
        {"time", 't', OPTION_SECONDS, &r.seconds, "S", "seconds for all starts together (60; where the line rate is known 240)"},
        {"starts", 0, OPTION_INTEGER, &r.starts, "N", "starts of the workers (4)"},
        {"narrow", 0, OPTION_RATIO, &r.narrow, "X", "half width of the interval, relative to the median, at which a point is done (0.02)"},
        {"seed", 0, OPTION_INTEGER, &r.seed, "S", "of values and order (1)"},
        {"bare", 0, OPTION_FLAG, &r.bare, NULL, "a bare loop around each call takes turns with the measurement: what the tool itself costs"},
        {"corrupt", 0, OPTION_TEXT, &r.corrupt, "R:I", "damage rank R's output of iteration I of every point, to see that it is found"},
        {"json", 0, OPTION_TEXT, &r.json, "FILE", "also write JSON (- is stdout)"},
        {"csv", 0, OPTION_TEXT, &r.csv, "FILE", "also write CSV (- is stdout)"},
        {"figures", 0, OPTION_TEXT, &r.figures, "FOLDER", "draw bus bandwidth against size: busbw.svg, .png, .pdf"},
        {"store", 0, OPTION_TEXT, &r.store, "FILE", "results database; default ~/.local/share/fsdpmark/results.db"},
        {"suite", 0, OPTION_TEXT, &r.suite, "FOLDER", "the suite; default $FSDPMARK_SUITE, or the one beside the program"},
        {"keep", 0, OPTION_FLAG, &r.keep, NULL, "keep the job folders and say where"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, NULL, 0, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    if (r.starts < 1 || r.starts > 1000)
        return options_bad(cli->command, "--starts: found %lld, expected 1 to 1000", (long long)r.starts);
    if (r.pattern != NULL && r.pattern[0] == 0)
        return options_bad(cli->command, "--pattern: found '', expected a glob or a part of a case's id");
    if (!cli_one_on_stdout(cli, r.json, r.csv) || !cli_can_write(cli, "json", r.json) || !cli_can_write(cli, "csv", r.csv) || !cli_can_fill(cli, "figures", r.figures) ||
        !cli_can_work(cli))
        return 2;
    char *store = cli_store(cli, r.store), *suite = store != NULL ? cli_suite(cli, r.suite) : NULL;
    r.suite = suite;
    int status = suite != NULL ? net(cli, &r, store) : 2;
    free(store);
    free(suite);
    return status;
}
