// The machine as measured: the line by `fsdpmark net` (now, or a stored run), computing by steps of the reference without communication.
//
// How: `-f FABRIC` runs `fsdpmark net` as anybody would and reads what it stored: first, over TCP, a short run for each candidate of Open MPI's settings (harness/advise/settings.h), then
//      the lines with the one that was chosen; then the reference steps the model on the fabric (--turns). `--from RUN` reads a stored run of net and leaves computing to the options.
//      What moves while a rank computes is told by the transport.
#include <stdlib.h>
#include <string.h>

#include "harness/advise/turns.h"
#include "harness/advise/validate.h"
#include "harness/cli/advise.h"
#include "harness/launch/interrupt.h"
#include "harness/launch/launch.h"
#include "harness/protocol/memory.h"
#include "harness/run/scratch.h"

static const double MEASURE_S = 20, LINE_S = 60, CANDIDATE_S = 16, NET_DEADLINE_S = 300, CANDIDATE_DEADLINE_S = 60, STEPS_DEADLINE_S = 300, MOST_PARAMETERS = 5e7, COPY_RATE = 4e9;
static const double LARGE_S = 0.1, FEW_S = 0.05; // a message of the largest sizes, and one of the candidates' call, on the slowest line
static const int64_t LEAST_BYTES = 64 << 10, MOST_BYTES = 8 << 20;
enum { OUTPUT = 1 << 18, ROUNDS = 10 };

// What the answer refers to, to the end of the program.
static struct measured measured;
static struct settings settings;
static char source[400];

struct measuring {
    const struct cli *cli;
    const struct advise_options *o;
    const struct fsdp_case *c;
    struct advice_question *q;
    char *suite, *store, *scratch;
    struct fabric fabric;
};

// ---- a run of net as a line ----
// Open MPI 4.1: TCP agrees above btl_tcp_eager_limit, by default 64 KiB, and the system's buffers hold some MiB; shared memory moves by the processor alone.
static void set_moves(const struct stamped_fabric *f, struct machine *m)
{
    const char *btl = stamped_option(f, "btl"), *limit = stamped_option(f, "btl_tcp_eager_limit");
    bool shared = btl != NULL && strstr(btl, "tcp") == NULL;
    m->eager_bytes = limit != NULL ? strtod(limit, NULL) : shared ? 4096 : 65536;
    m->unattended_bytes = shared ? 0 : 4 << 20;
    m->exchange = EXCHANGE_DIRECT;
}

static bool set_tiers(struct advice_question *q, struct error *error)
{
    struct machine *m = &q->machine;
    if (measured.near > 0 && q->ranks > measured.near && q->ranks % measured.near != 0)
        return error_set(error, "--ranks: found %d, expected a multiple of the %d ranks of a group that were measured", q->ranks, measured.near);
    bool two = measured.near > 0 && q->ranks > measured.near;
    for (int t = 0; t < TIERS; t++) {
        m->tiers[t] = t == 0 || two ? measured.tiers[t] : (struct tier){0};
        q->spread.alpha[t] = t == 0 || two ? measured.alpha_spread[t] : 0;
        q->spread.beta[t] = t == 0 || two ? measured.beta_spread[t] : 0;
    }
    m->tiers[0].ranks = two ? measured.near : 0;
    m->tiers[1].ranks = two ? q->ranks / measured.near : 0;
    m->contention = measured.contention;
    q->measured = &measured;
    return true;
}

static bool take_rows(const struct measuring *m, const struct net_rows *rows, const json_t *environment, struct error *error)
{
    struct stamped_fabric f = stamped_fabric_of(environment, rows->fabric);
    if (!measured_take(rows, &f, measured_unit(m->c), &measured, error) || !set_tiers(m->q, error))
        return false;
    set_moves(&f, &m->q->machine);
    snprintf(source, sizeof source, "line measured by fsdpmark net on %s with %d ranks, run %lld", rows->fabric, measured.ranks, (long long)rows->stored.items[0].run);
    m->q->facts.source = source;
    return true;
}

// What the run was measured with, for `--from`, which tries no others.
static void stored_settings(const json_t *environment, const char *fabric)
{
    struct stamped_fabric f = stamped_fabric_of(environment, fabric);
    settings = (struct settings){.count = 1};
    snprintf(settings.items[0].name, sizeof settings.items[0].name, "as the run has it");
    snprintf(settings.why, sizeof settings.why, "whether others are better it does not say: advise -f %s measures that", fabric);
    for (size_t i = 0; i < json_array_size(f.mca) && i < FABRIC_WORDS; i++)
        settings.items[0].mca[i] = memory_text(json_string_value(json_array_get(f.mca, i)));
}

// run 0: the newest of net.
static bool from_run(const struct measuring *m, int64_t run, bool stored, struct error *error)
{
    struct store *store = NULL;
    struct net_rows rows;
    struct stored_run of = {0};
    bool opened = store_open(m->store, true, &store, error);
    // A run that does not exist is told apart from one of something else.
    bool known = opened && (run == 0 || store_load_run(store, run, &of, error));
    if (run != 0 && known)
        stored_run_free(&of);
    bool loaded = known && net_rows_load(store, run, &rows, error), ok = loaded && store_load_run(store, rows.stored.items[0].run, &of, error);
    if (ok) {
        if (stored)
            stored_settings(of.environment, rows.fabric);
        ok = take_rows(m, &rows, of.environment, error);
        stored_run_free(&of);
    }
    if (ok)
        m->q->settings = &settings;
    if (loaded)
        net_rows_free(&rows);
    if (opened)
        store_close(store);
    return ok;
}

// ---- measuring now ----
// "fsdpmark net" with these; *run is the number that it tells at its end.
static bool run_net(const struct measuring *m, const char *fabric, const char *measures, const char *sizes, double seconds, double deadline_s, int64_t *run, struct error *error)
{
    static char output[OUTPUT];
    char ranks[24], hosts[24], time[24], *at;
    int status = 0, n = 14;
    snprintf(ranks, sizeof ranks, "%lld", (long long)m->o->ranks);
    snprintf(hosts, sizeof hosts, "%lld", (long long)m->o->hosts);
    snprintf(time, sizeof time, "%g", seconds);
    const char *command[32] = {m->cli->program, "net", "-f", fabric, "-n", ranks, "-m", measures, "-t", time, "--store", m->store, "--suite", m->suite};
    if (sizes != NULL) {
        command[n++] = "--sizes";
        command[n++] = sizes;
    }
    if (m->o->hosts > 0) {
        command[n++] = "--hosts";
        command[n++] = hosts;
    }
    if (!launch_capture(command, NULL, ".", deadline_s, output, sizeof output, &status, error))
        return false;
    if (status != 0) { // the last line says why
        size_t length = strlen(output);
        while (length > 0 && output[length - 1] == '\n')
            output[--length] = 0;
        return error_set(error, "fsdpmark net ended with status %d: %.300s", status, (at = strrchr(output, '\n')) != NULL ? at + 1 : output);
    }
    *run = 0;
    for (at = output; (at = strstr(at, "\nRun ")) != NULL; at++)
        *run = strtoll(at + 5, NULL, 10);
    return *run > 0 || error_set(error, "fsdpmark net told no number of its run");
}

static int64_t power_below(double bytes)
{
    int64_t power = 1;
    while (2.0 * (double)power <= bytes)
        power *= 2;
    return power;
}

// Bytes/s of the slowest line, 0: unknown.
static double slowest(const struct fabric *f)
{
    double rate = f->rate_bits;
    if (f->slow_host >= 0)
        rate = fmin(rate, f->slow_rate_bits);
    if (f->group > 0)
        rate = fmin(rate, f->between_rate_bits);
    return rate / 8;
}

// Two sizes at least beyond what a line saves up, also on the fast tier, and one whose time is latency.
static void sizes_of(const struct fabric *f, char *text, size_t size)
{
    double rate = slowest(f), large = f->group > 0 ? 2 * LARGE_S * rate : LARGE_S * rate;
    long long most = rate > 0 ? power_below(fmax(large, (double)LEAST_BYTES)) : MOST_BYTES / 4;
    snprintf(text, size, "8K,%lld,%lld,%lld", most / 4, most, 2 * most);
}

static int64_t call_bytes(const struct measuring *m)
{
    double rate = slowest(&m->fabric), unit = measured_unit(m->c), most = rate > 0 ? fmax(FEW_S * rate, (double)LEAST_BYTES) : (double)MOST_BYTES;
    return power_below(fmin(fmax(unit, (double)LEAST_BYTES), most));
}

static char *candidate_file(const struct measuring *m, int i, struct error *error)
{
    char *folder = memory_format("%s/%d", m->scratch, i), *path = memory_format("%s/%s.yaml", folder, m->fabric.name);
    bool ok = scratch_folder(folder, error) && settings_write(&m->fabric, settings.items[i].mca, path, error);
    free(folder);
    if (ok)
        return path;
    free(path);
    return NULL;
}

static bool load_candidate(const struct measuring *m, int64_t run, struct setting *x, struct error *error)
{
    struct store *store = NULL;
    struct net_rows rows;
    bool opened = store_open(m->store, true, &store, error), loaded = opened && net_rows_load(store, run, &rows, error), ok = loaded && settings_take(x, &rows, error);
    if (loaded)
        net_rows_free(&rows);
    if (opened)
        store_close(store);
    return ok;
}

// One that fails is told as failed; an interrupt ends all.
static bool try_one(const struct measuring *m, int i, struct error *error)
{
    struct setting *x = &settings.items[i];
    struct error why = {""};
    char size[24];
    int64_t run;
    snprintf(size, sizeof size, "%lld", (long long)settings.bytes);
    char *path = candidate_file(m, i, error);
    if (path == NULL)
        return false;
    fprintf(stderr, "settings of Open MPI, %d of %d: %s\n", i + 1, settings.count, x->name);
    if (!run_net(m, path, "together", size, CANDIDATE_S, CANDIDATE_DEADLINE_S, &run, &why) || !load_candidate(m, run, x, &why))
        snprintf(x->failed, sizeof x->failed, "%.*s", (int)sizeof x->failed - 1, why.text);
    free(path);
    return !interrupt_signal() || error_set(error, "interrupted");
}

static bool choose_settings(const struct measuring *m, struct error *error)
{
    settings_make(&m->fabric, &settings);
    settings.ranks = (int)m->o->ranks;
    settings.bytes = settings.count > 1 ? call_bytes(m) : 0;
    for (int i = 0; settings.count > 1 && i < settings.count; i++)
        if (!try_one(m, i, error))
            return false;
    settings_choose(&settings);
    return true;
}

static bool measure_line(const struct measuring *m, struct error *error)
{
    char sizes[96];
    int64_t run;
    bool known = slowest(&m->fabric) > 0;
    char *path = candidate_file(m, settings.chosen, error);
    sizes_of(&m->fabric, sizes, sizeof sizes);
    fprintf(stderr, "line of %s\n", m->fabric.name);
    bool ok = path != NULL && run_net(m, path, "sweep,directions,compute,tiers", known ? sizes : NULL, known ? LINE_S : MEASURE_S, NET_DEADLINE_S, &run, error) && from_run(m, run, false, error);
    free(path);
    return ok;
}

static bool time_steps(const struct measuring *m, const struct fabric_place *place, struct error *error)
{
    static struct turns_samples samples[1];
    static struct turns_line line;
    struct fsdp_case plain = *m->c;
    struct workload_model w;
    int64_t rows = m->o->rows > 0 ? m->o->rows : 1;
    int ranks = (int)m->o->ranks;
    plain.id = (char *)"none";
    plain.family = (char *)"advise";
    plain.world_size = ranks;
    plain.global_rows = rows * ranks;
    plain.sharding.strategy = STRATEGY_NONE;
    plain.sharding.replicas = ranks;
    plain.sharding.shards = 1;
    char *worker = memory_format("%s/fsdp-reference", getenv("FSDPMARK_BUILD"));
    const struct turns_plan plan = {m->cli->program, worker, m->scratch, place, ranks, ROUNDS, 1, &plain, STEPS_DEADLINE_S};
    bool ok = turns_measure(&plan, samples, &line, error) && workload_create(&w, m->c, rows, error);
    if (ok) {
        struct validate_point p = {.ranks = ranks, .schedule = {STRATEGY_NONE, ranks, 1, true, 0, 0}, .w = &w, .free = statistics_median(ROUNDS, samples[0].free_s),
                                   .free_update = statistics_median(ROUNDS, samples[0].free_update_s)};
        ok = validate_computing(1, &p, COPY_RATE, &m->q->machine) || error_set(error, "no step took longer than its update");
        m->q->spread.flop_rate = spread_of(&p.free);
        m->q->spread.update_rate = spread_of(&p.free_update);
        workload_free(&w);
    }
    free(worker);
    return ok;
}

static bool measure_computing(const struct measuring *m, struct error *error)
{
    struct fabric_place *place = NULL;
    fprintf(stderr, "steps of the reference\n");
    bool ok = fabric_open(&m->fabric, m->fabric.kind == FABRIC_VIRTUAL ? (int)m->o->hosts : 0, m->cli->program, &place, error) && time_steps(m, place, error);
    if (place != NULL)
        fabric_close(place);
    return ok;
}

static bool measure_now(struct measuring *m, struct error *error)
{
    double parameters = 0;
    for (int i = 0; i < m->c->parameter_count; i++)
        parameters += m->c->parameters[i].tied_to < 0 ? (double)m->c->parameters[i].count : 0;
    if (m->o->flops == NULL && parameters > MOST_PARAMETERS)
        return error_set(error, "a model of %.3g parameters is too large to be stepped here (at most %.0g): give --flops, or a smaller model", parameters, MOST_PARAMETERS);
    if (!fabric_read(m->o->fabric, m->suite, &m->fabric, error))
        return false;
    char *reason = fabric_unavailable(&m->fabric);
    bool ok = reason == NULL || error_set(error, "fabric %s cannot be had here: %s", m->fabric.name, reason);
    free(reason);
    if (ok && m->o->hosts > 0 && m->fabric.kind != FABRIC_VIRTUAL)
        return error_set(error, "--hosts: found with %s, which is not emulated, expected it with a virtual fabric", m->fabric.name);
    return ok && (m->scratch = scratch_make(false, error)) != NULL && choose_settings(m, error) && measure_line(m, error) && (m->o->flops != NULL || measure_computing(m, error));
}

bool advise_measured(const struct cli *cli, const struct advise_options *o, const struct fsdp_case *c, struct advice_question *q, struct error *error)
{
    struct measuring m = {.cli = cli, .o = o, .c = c, .q = q, .suite = cli_suite(cli, o->suite), .store = cli_store(cli, o->store), .fabric = {.slow_host = -1}};
    bool ok = m.suite != NULL && m.store != NULL && (o->fabric != NULL ? measure_now(&m, error) : from_run(&m, strtoll(o->from, NULL, 10), true, error));
    if (m.scratch != NULL)
        scratch_end(m.scratch, false);
    fabric_free(&m.fabric);
    free(m.scratch);
    free(m.suite);
    free(m.store);
    return ok;
}
