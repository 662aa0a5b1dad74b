// fsdpmark bench: training steps of several implementations side by side, their numbers judged in the same run. Options and reports; which
// rows: bench_plan.c; how they are measured: harness/bench.
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/advise/quantity.h"
#include "harness/bench/fit.h"
#include "harness/cli/bench.h"
#include "harness/launch/interrupt.h"
#include "harness/launch/launch.h"
#include "harness/protocol/memory.h"
#include "harness/report/series_report.h"
#include "harness/run/stamp.h"
#include "kernels/bench/measure.h"

static FILE *news(const struct bench_request *r) { return cli_news(r->json, r->csv); }

static bool write_to(const struct cli *cli, const char *path, const struct bench_table *t, bool (*write)(const struct bench_table *, FILE *))
{
    if (path == NULL)
        return true;
    FILE *file = cli_open(path);
    return cli_close(cli, path, file, file != NULL && write(t, file));
}

static bool draw(const struct cli *cli, const struct bench_request *r, const struct bench *b)
{
    struct stored_run run;
    struct stored_serieses series;
    struct error error = {0};
    char why[256];
    if (r->figures == NULL)
        return true;
    if (!store_load_run(b->session.store, b->session.run, &run, &error))
        return options_bad(cli->command, "%s", error.text), false;
    bool loaded = store_load_series(b->session.store, b->session.run, "bench", &series, &error);
    bool ok = loaded && bench_plots(&b->table, run.environment, run.implementations, run.started, r->figures, news(r), &error) &&
              series_bandwidth_figure(&run, &series, r->figures, why, &error);
    if (!ok)
        options_bad(cli->command, "%s", error.text);
    else if (why[0] != 0)
        fprintf(news(r), "figure bandwidth: not drawn: %s\n", why);
    if (loaded)
        stored_series_free(&series);
    stored_run_free(&run);
    return ok;
}

static json_t *environment_of(const struct bench_request *r, const struct bench_plan *p)
{
    json_t *environment = stamp_make((uint64_t)r->seed), *all = json_array();
    for (int i = 0; i < p->fabric_count; i++)
        if (p->fabrics[i].place != NULL)
            json_array_append_new(all, fabric_stamp(p->fabrics[i].place));
    if (json_array_size(all) == 1)
        json_object_set(environment, "fabric", json_array_get(all, 0));
    else if (json_array_size(all) > 1)
        json_object_set(environment, "fabrics", all);
    json_decref(all);
    return environment;
}

static bool open_session(const struct cli *cli, const struct bench_request *r, const struct bench_plan *p, struct bench *b, const char *store, struct error *error)
{
    struct run_settings settings = {.program = cli->program, .start_deadline_s = 3 * r->deadline_s, .case_deadline_s = r->deadline_s, .truth_deadline_s = 1800,
                                    .budget = JUDGE_BUDGET, .keep = r->keep};
    json_t *environment = environment_of(r, p);
    struct run_info info = {.command = cli->command_line, .seed = (uint64_t)r->seed, .environment = environment};
    bool ok = session_open(&b->session, store, &settings, &info, 0, error);
    json_decref(environment);
    for (int i = 0; ok && i < p->implementation_count; i++) {
        json_t *versions = session_versions(&p->implementations[i]);
        ok = store_set_plan(b->session.store, b->session.run, p->implementations[i].name, 0, versions, p->implementations[i].note, error);
        json_decref(versions);
    }
    return ok;
}

static int report(const struct cli *cli, const struct bench_request *r, struct bench *b)
{
    int status = bench_status(&b->table), caught = interrupt_signal();
    bench_print(&b->table, news(r));
    fprintf(news(r), "run %lld\n", (long long)b->session.run);
    bool ok = write_to(cli, r->json, &b->table, bench_json);
    ok &= write_to(cli, r->csv, &b->table, bench_csv);
    ok &= draw(cli, r, b);
    if (caught)
        fprintf(stderr, "fsdpmark bench: interrupted; what was measured is kept\n");
    return caught ? 128 + caught : !ok ? 2 : status;
}

static bool measure(const struct bench_request *r, struct bench *b, struct error *error)
{
    double limit = 0;
    b->table.cores = launch_cores();
    b->table.peak_flop_rate = measure_matrix_peak(DTYPE_F32);
    bench_find_energy(b);
    if (r->memory != NULL)
        quantity_read(r->memory, QUANTITY_BYTES, &limit);
    return (limit == 0 || bench_fit(b, limit, error)) && bench_rounds(b, error);
}

static int run(const struct cli *cli, const struct bench_request *r, const char *store)
{
    struct error error = {0}, own = {0};
    struct bench_plan plan = {0};
    struct bench b = {.limits = {r->rounds, r->seconds, r->narrow, !r->unprobed, (uint64_t)r->seed}, .news = stderr};
    int status = 2;
    if (!bench_plan(cli, r, &plan, &b, &error) || !probing_built(cli->program, r->unprobed ? 0 : bench_probes(), &error)) {
        options_bad(cli->command, "%s", error.text);
        status = interrupt_signal() ? 128 + interrupt_signal() : 2;
    } else {
        bool opened = open_session(cli, r, &plan, &b, store, &error);
        if (!opened) {
            options_bad(cli->command, "%s", error.text);
        } else if (!measure(r, &b, &error)) {
            options_bad(cli->command, "%s", error.text);
            report(cli, r, &b);
            status = 3;
        } else {
            status = report(cli, r, &b);
        }
        bench_items_free(&b); // templates live in the session's scratch folder
        if (!session_close(&b.session, !opened || interrupt_signal() ? -1 : status, stderr, &own))
            options_bad(cli->command, "%s", own.text);
    }
    bench_items_free(&b);
    bench_table_free(&b.table);
    bench_plan_free(&plan);
    return status;
}

static bool is_strategy(const char *word)
{
    static const char *const names[] = {"none", "optimizer", "grad", "full", "hybrid"};
    for (int i = 0; i < 5; i++)
        if (strcmp(word, names[i]) == 0)
            return true;
    return false;
}

// Complains itself.
static bool words_are_known(const struct cli *cli, const struct bench_request *r)
{
    double bytes;
    enum dtype type;
    bool best = r->batch != NULL && strcmp(r->batch, "best") == 0;
    for (int i = 0; i < r->strategies.count; i++)
        if (!is_strategy(r->strategies.items[i]))
            return options_bad(cli->command, "--strategy: found '%s', expected none, optimizer, grad, full or hybrid", r->strategies.items[i]), false;
    if (r->batch != NULL && !best && strcmp(r->batch, "equal") != 0)
        return options_bad(cli->command, "--batch: found '%s', expected equal or best", r->batch), false;
    if (best != (r->memory != NULL))
        return options_bad(cli->command, best ? "--batch best: found without --memory, expected the limit that it must fit into" : "--memory: found without --batch best, expected both"), false;
    if (r->memory != NULL && !quantity_read(r->memory, QUANTITY_BYTES, &bytes))
        return options_bad(cli->command, "--memory: found '%s', expected %s", r->memory, quantity_example(QUANTITY_BYTES)), false;
    if (!dtype_parse(r->precision, &type) || !dtype_is_float(type))
        return options_bad(cli->command, "--precision: found '%s', expected f32, bf16, f16 or f64", r->precision), false;
    if (r->ranks > INT_MAX)
        return options_bad(cli->command, "--ranks: found %lld, expected at most %d", (long long)r->ranks, INT_MAX), false;
    return cli_one_on_stdout(cli, r->json, r->csv) && cli_can_write(cli, "json", r->json) && cli_can_write(cli, "csv", r->csv) &&
           cli_can_fill(cli, "figures", r->figures) && cli_can_work(cli);
}

int cmd_bench(const struct cli *cli, int argc, char **argv)
{
    struct bench_request r = {.precision = "f32", .seconds = 120, .narrow = 0.05, .deadline_s = 120};
    int words;
    const struct option table[] = {
        {"implementation", 'i', OPTION_LIST, &r.implementations, "IMPL", "name, or path of a manifest; the first is what ratios are against; default reference"},
        {"workload", 'w', OPTION_LIST, &r.workloads, "WORKLOAD", "name, or path of a file; default all of at most two million parameters (docs/bench.md)"},
        {"fabric", 'f', OPTION_LIST, &r.fabrics, "FABRIC", "what the ranks talk over: name, or path of a file; default this machine, as each launcher has it"},
        {"hostfile", 0, OPTION_TEXT, &r.hostfile, "FILE", "machines of the fabric hosts, 'NAME slots=N' in each line (docs/fabrics.md)"},
        {"agent", 0, OPTION_TEXT, &r.agent, "COMMAND", "how mpirun reaches the machines of the fabric hosts; default ssh"},
        {"ranks", 'n', OPTION_COUNT, &r.ranks, "N", "ranks; default one for each host of a virtual fabric, else 2"},
        {"strategy", 's', OPTION_LIST, &r.strategies, "STRATEGY", "none, optimizer, grad, full or hybrid; default full, or the first that an implementation has"},
        {"precision", 0, OPTION_TEXT, &r.precision, "TYPE", "type of the computation, of those that the workload has: f32 or bf16 (f32)"},
        {"batch", 0, OPTION_TEXT, &r.batch, "WORD", "equal: the workload's global batch for all; best: for each the largest that fits --memory (equal)"},
        {"memory", 0, OPTION_TEXT, &r.memory, "SIZE", "of a rank, for --batch best"},
        {"time", 't', OPTION_SECONDS, &r.seconds, "S", "seconds for all rounds together (120)"},
        {"rounds", 0, OPTION_COUNT, &r.rounds, "N", "at most so many rounds; default as the time allows"},
        {"narrow", 0, OPTION_RATIO, &r.narrow, "X", "stop when each interval's half width is at most X of the median (0.05)"},
        {"no-probes", 0, OPTION_FLAG, &r.unprobed, NULL, "no starts for memory, bytes and exposed communication"},
        {"seed", 0, OPTION_COUNT, &r.seed, "S", "seed of data, parameters and the order of the rows; default as the workloads say"},
        {"figures", 0, OPTION_TEXT, &r.figures, "FOLDER", "draw the figures into it"},
        {"json", 0, OPTION_TEXT, &r.json, "FILE", "also write JSON, with every sample (- is stdout)"},
        {"csv", 0, OPTION_TEXT, &r.csv, "FILE", "also write CSV"},
        {"store", 0, OPTION_TEXT, &r.store, "FILE", "results database; default ~/.local/share/fsdpmark/results.db"},
        {"deadline", 0, OPTION_SECONDS, &r.deadline_s, "S", "seconds without an event that make a hang (120); a start gets three times that"},
        {"suite", 0, OPTION_TEXT, &r.suite, "FOLDER", "the suite; default $FSDPMARK_SUITE, or the one beside the program"},
        {"keep", 0, OPTION_FLAG, &r.keep, NULL, "keep the scratch folder and say where"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, NULL, 0, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    if (!words_are_known(cli, &r))
        return 2;
    if (r.implementations.count == 0)
        r.implementations.items[r.implementations.count++] = "reference";
    char *store = cli_store(cli, r.store), *suite = store != NULL ? cli_suite(cli, r.suite) : NULL;
    r.suite = suite;
    int status = suite != NULL ? run(cli, &r, store) : 2;
    free(store);
    free(suite);
    return status;
}
