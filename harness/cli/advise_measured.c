// The machine as measured: the line by `fsdpmark net` (now, or a stored run), computing by steps of the reference without communication.
//
// How: `-f FABRIC` runs `fsdpmark net` for a short while, as anybody would, and reads what it stored; then the reference steps the model on the fabric (--turns).
//      `--from RUN` reads a stored run of net and leaves computing to the options. What moves while a rank computes is told by the fabric's transport.
#include <stdlib.h>
#include <string.h>

#include "harness/advise/turns.h"
#include "harness/advise/validate.h"
#include "harness/cli/advise.h"
#include "harness/launch/launch.h"
#include "harness/net/consistency.h"
#include "harness/protocol/memory.h"
#include "harness/run/scratch.h"

static const double MEASURE_S = 20, NET_DEADLINE_S = 300, STEPS_DEADLINE_S = 300, MOST_PARAMETERS = 5e7, COPY_RATE = 4e9;
enum { OUTPUT = 1 << 16, ROUNDS = 10 };

// Open MPI 4.1: TCP agrees above btl_tcp_eager_limit, by default 64 KiB, and the system's buffers hold some MiB; shared memory moves by the processor alone.
static void set_moves(const struct fabric *f, struct machine *m)
{
    static const char name[] = "btl_tcp_eager_limit=";
    bool shared = f->kind == FABRIC_SHM;
    m->eager_bytes = shared ? 4096 : 65536;
    m->unattended_bytes = shared ? 0 : 4 << 20;
    for (int i = 0; f->mca[i] != NULL; i++)
        if (strncmp(f->mca[i], name, sizeof name - 1) == 0)
            m->eager_bytes = strtod(f->mca[i] + sizeof name - 1, NULL);
    m->exchange = EXCHANGE_DIRECT;
}

// alpha and beta of the all-gather, whose sum is what one of the measured ranks waited; what computing beside a collective costs, where it was measured.
static bool take_line(const struct net_rows *rows, struct advice_question *q, int *ranks, struct error *error)
{
    struct net_fit fits[NET_FITS];
    int count = net_fits(rows, fits), found = -1;
    for (int i = 0; i < count; i++)
        found = fits[i].op == NET_ALL_GATHER ? i : found;
    if (found < 0)
        return error_set(error, "the run of net has no all-gathers of two sizes: measure `sweep`");
    const struct alpha_beta *line = &fits[found].fit;
    q->machine.tiers[0] = (struct tier){fmax(0, line->alpha_s.value), line->beta_s_per_byte.value, 0, 0};
    q->machine.tiers[1] = (struct tier){0};
    q->spread.alpha[0] = spread_of(&line->alpha_s);
    q->spread.beta[0] = spread_of(&line->beta_s_per_byte);
    q->machine.contention = 1;
    for (int i = 0; i < rows->count; i++) {
        const struct net_row *r = &rows->items[i];
        *ranks = r->ranks;
        if (r->product_slowdown.count > 0)
            q->machine.contention = fmax(q->machine.contention, r->product_slowdown.value);
    }
    return true;
}

static bool from_run(const struct cli *cli, const struct advise_options *o, int64_t run, struct advice_question *q, struct error *error)
{
    char *suite = cli_suite(cli, o->suite), *path = cli_store(cli, o->store);
    struct store *store = NULL;
    struct net_rows rows;
    struct fabric fabric = {0};
    int ranks = 0;
    bool opened = suite != NULL && path != NULL && store_open(path, true, &store, error), loaded = opened && net_rows_load(store, run, &rows, error);
    bool ok = loaded && take_line(&rows, q, &ranks, error) && fabric_read(rows.fabric, suite, &fabric, error);
    if (ok) {
        set_moves(&fabric, &q->machine);
        q->facts.source = memory_format("line measured by fsdpmark net on %s with %d ranks", rows.fabric, ranks); // lives as long as the program
        q->hybrid_shards = 0;
    }
    fabric_free(&fabric);
    if (loaded)
        net_rows_free(&rows);
    if (opened)
        store_close(store);
    free(suite);
    free(path);
    return ok;
}

static bool run_net(const struct cli *cli, const struct advise_options *o, struct error *error)
{
    char ranks[16], seconds[16], *path = cli_store(cli, o->store);
    static char output[OUTPUT];
    int status = 0;
    snprintf(ranks, sizeof ranks, "%lld", (long long)o->ranks);
    snprintf(seconds, sizeof seconds, "%g", MEASURE_S);
    const char *const command[] = {cli->program, "net", "-f", o->fabric, "-n", ranks, "-m", "sweep,compute", "-t", seconds, "--store", path, o->suite != NULL ? "--suite" : NULL, o->suite, NULL};
    bool ok = path != NULL && launch_capture(command, NULL, ".", NET_DEADLINE_S, output, sizeof output, &status, error);
    free(path);
    if (ok && status != 0)
        return error_set(error, "fsdpmark net ended with status %d: %.*s", status, (int)strcspn(output, "\n"), output);
    return ok;
}

static bool time_steps(const struct cli *cli, const struct advise_options *o, const struct fsdp_case *c, const struct fabric_place *place, struct advice_question *q, struct error *error)
{
    static struct turns_samples samples[1];
    static struct turns_line line;
    struct fsdp_case plain = *c;
    struct workload_model w;
    int64_t rows = o->rows > 0 ? o->rows : 1;
    plain.id = (char *)"none";
    plain.family = (char *)"advise";
    plain.world_size = (int)o->ranks;
    plain.global_rows = rows * o->ranks;
    plain.sharding.strategy = STRATEGY_NONE;
    plain.sharding.replicas = (int)o->ranks;
    plain.sharding.shards = 1;
    char *worker = memory_format("%s/fsdp-reference", getenv("FSDPMARK_BUILD")), *scratch = scratch_make(false, error);
    const struct turns_plan plan = {cli->program, worker, scratch, place, (int)o->ranks, ROUNDS, 1, &plain, STEPS_DEADLINE_S};
    bool ok = scratch != NULL && turns_measure(&plan, samples, &line, error) && workload_create(&w, c, rows, error);
    if (ok) {
        struct validate_point p = {.ranks = (int)o->ranks, .schedule = {STRATEGY_NONE, (int)o->ranks, 1, true, 0, 0}, .w = &w,
                                   .free = statistics_median(ROUNDS, samples[0].free_s), .free_update = statistics_median(ROUNDS, samples[0].free_update_s)};
        ok = validate_computing(1, &p, COPY_RATE, &q->machine) || error_set(error, "no step took longer than its update");
        q->spread.flop_rate = spread_of(&p.free);
        q->spread.update_rate = spread_of(&p.free_update);
        workload_free(&w);
    }
    if (scratch != NULL)
        scratch_end(scratch, false);
    free(scratch);
    free(worker);
    return ok;
}

static bool measure_computing(const struct cli *cli, const struct advise_options *o, const struct fsdp_case *c, struct advice_question *q, struct error *error)
{
    char *suite = cli_suite(cli, o->suite);
    struct fabric fabric = {0};
    struct fabric_place *place = NULL;
    bool ok = suite != NULL && fabric_read(o->fabric, suite, &fabric, error) && fabric_open(&fabric, fabric.kind == FABRIC_VIRTUAL ? (int)o->ranks : 0, cli->program, &place, error);
    ok = ok && time_steps(cli, o, c, place, q, error);
    if (place != NULL)
        fabric_close(place);
    fabric_free(&fabric);
    free(suite);
    return ok;
}

bool advise_measured(const struct cli *cli, const struct advise_options *o, const struct fsdp_case *c, struct advice_question *q, struct error *error)
{
    double parameters = 0;
    for (int i = 0; i < c->parameter_count; i++)
        parameters += c->parameters[i].tied_to < 0 ? (double)c->parameters[i].count : 0;
    if (o->fabric == NULL)
        return from_run(cli, o, strtoll(o->from, NULL, 10), q, error);
    if (o->flops == NULL && parameters > MOST_PARAMETERS)
        return error_set(error, "a model of %.3g parameters is too large to be stepped here (at most %.0g): give --flops, or a smaller model", parameters, MOST_PARAMETERS);
    return run_net(cli, o, error) && from_run(cli, o, 0, q, error) && (o->flops != NULL || measure_computing(cli, o, c, q, error));
}
