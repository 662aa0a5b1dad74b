// fsdpmark advise --validate: the cost model against measured steps on emulated clusters of several line rates and numbers of ranks.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/advise/quantity.h"
#include "harness/advise/turns.h"
#include "harness/advise/validate_output.h"
#include "harness/cli/advise.h"
#include "harness/fabric/place.h"
#include "harness/launch/interrupt.h"
#include "harness/protocol/memory.h"
#include "harness/run/scratch.h"
#include "harness/run/stamp.h"
#include "harness/store/series.h"

enum { STRATEGIES = 4, RANK_COUNTS = 2 };
static const int rank_counts[RANK_COUNTS] = {2, 4};
static const double RATE_LEAST = 0.1, RATE_MOST = 1e5; // as of a fabric's file
static const double DEADLINE_S = 300, COPY_RATE = 4e9, MORE_ROUNDS = 4;

struct validation {
    const struct cli *cli;
    const struct advise_options *o;
    struct fabric fabric;
    char *scratch, *worker;
    struct store *store;
    int64_t run;
    double rates[VALIDATE_RATES];
    int rate_count;
    struct fsdp_case base;
    struct workload_model w[RANK_COUNTS];
    struct validate_knowledge known[RANK_COUNTS];
    struct gather_times lines[RANK_COUNTS][2]; // at the lowest and the highest rate
    int count;
    struct validate_point points[VALIDATE_POINTS];
    int64_t series[VALIDATE_POINTS];       // of each point's steps
};

// Little computing for many bytes and an update that costs, so that the best strategy changes between 25 and 400 Mbit/s.
static const char default_case[] =
    "{name: advise-validate, title: A small transformer, layer: measured, model: {kind: transformer, layers: 4, dim: 64, heads: 4, ffn: 256, vocab: 256, context: 64}, rows_per_rank: 16, "
    "precision: bf16, optimizer: {kind: adamw}, layout: per_parameter, prefetch: {forward: 1, backward: 1}}";

static bool read_rates(const char *text, struct validation *v, struct error *error)
{
    const char *at = text;
    for (char *end; v->rate_count < VALIDATE_RATES; at = end + 1) {
        double mbit = strtod(at, &end);
        if (end == at || !(mbit >= RATE_LEAST && mbit <= RATE_MOST) || (*end != 0 && *end != ',') || (v->rate_count > 0 && 1e6 * mbit <= v->rates[v->rate_count - 1]))
            break;
        v->rates[v->rate_count++] = 1e6 * mbit;
        if (*end == 0)
            return v->rate_count > 1 || error_set(error, "--rates: found one rate, expected at least two");
    }
    return error_set(error, "--rates: found '%s', expected rates in Mbit/s from %g to %g, the lowest first, with commas between them, at most %d", text, RATE_LEAST, RATE_MOST, VALIDATE_RATES);
}

static struct schedule schedule_of(const struct fsdp_case *c)
{
    const struct sharding_spec *s = &c->sharding;
    return (struct schedule){s->strategy, s->replicas, s->shards, s->reshard_after_forward, s->prefetch_forward, s->prefetch_backward};
}

// The base case under a strategy; hybrid needs a mesh with both sides above 1. Borrows from the base. Returns how many.
static int strategies_of(const struct fsdp_case *base, int ranks, struct fsdp_case out[STRATEGIES])
{
    static const enum strategy all[STRATEGIES] = {STRATEGY_NONE, STRATEGY_GRAD, STRATEGY_FULL, STRATEGY_HYBRID};
    int count = 0;
    for (int i = 0; i < STRATEGIES; i++) {
        bool hybrid = all[i] == STRATEGY_HYBRID, none = all[i] == STRATEGY_NONE;
        if (hybrid && ranks < 4)
            continue;
        struct fsdp_case *c = &out[count++];
        *c = *base;
        c->id = (char *)strategy_name(all[i]); // borrowed, as all of the base's
        c->family = "advise-validate";
        c->global_rows = base->global_rows / base->world_size * ranks;
        c->world_size = ranks;
        c->sharding.strategy = all[i];
        c->sharding.replicas = none ? ranks : hybrid ? 2 : 1;
        c->sharding.shards = ranks / c->sharding.replicas;
    }
    return count;
}

static bool store_point(struct validation *v, const struct validate_point *p, const struct turns_samples *s, int64_t *steps, struct error *error)
{
    const struct { const char *quantity; const double *values; } kinds[] = {{"seconds", s->seconds}, {"seconds without communication", s->free_s}, {"seconds of the update", s->free_update_s}};
    bool ok = true;
    for (int k = 0; ok && k < 3; k++) {
        json_t *point = json_pack("{s:i, s:s, s:f, s:i, s:i}", "ranks", p->ranks, "strategy", p->name, "rate_bits", p->rate_bits, "replicas", p->schedule.replicas, "shards", p->schedule.shards);
        const struct series series = {"validate", v->fabric.name, "reference", "step", kinds[k].quantity, point, NULL};
        int64_t id;
        ok = store_add_series(v->store, v->run, &series, &id, error) && store_add_samples(v->store, id, 0, s->count, kinds[k].values, error);
        *steps = k == 0 ? id : *steps;
        json_decref(point);
    }
    return ok;
}

// The line is taken from the lowest and the highest rate alone.
static bool take_line(struct validation *v, int r, double rate, const struct turns_line *line, struct error *error)
{
    const struct turns_gather *small = &line->gathers[0], *large = &line->gathers[0];
    for (int i = 0; i < line->count; i++) {
        json_t *point = json_pack("{s:i, s:f, s:f}", "ranks", rank_counts[r], "bytes", line->gathers[i].bytes, "rate_bits", rate);
        const struct series series = {"validate", v->fabric.name, "reference", "all-gather", "seconds", point, NULL};
        int64_t id;
        bool ok = store_add_series(v->store, v->run, &series, &id, error) && store_add_samples(v->store, id, 0, line->gathers[i].count, line->gathers[i].seconds, error);
        json_decref(point);
        if (!ok)
            return false;
        small = line->gathers[i].bytes < small->bytes ? &line->gathers[i] : small;
        large = line->gathers[i].bytes > large->bytes ? &line->gathers[i] : large;
    }
    if (line->count < 2)
        return error_set(error, "%d ranks at %.4g Mbit/s: the line was not measured", rank_counts[r], rate / 1e6);
    if (rate == v->rates[0] || rate == v->rates[v->rate_count - 1])
        v->lines[r][rate != v->rates[0]] = (struct gather_times){rate, statistics_median(small->count, small->seconds).value, statistics_median(large->count, large->seconds).value,
                                                                 large->bytes, rank_counts[r]};
    return true;
}
// Short steps need more rounds for an interval that tells two strategies apart, and have the time.
static int rounds_at(const struct validation *v, double rate)
{
    double more = fmin(MORE_ROUNDS, rate / v->rates[0]);
    return (int)fmin(TURNS_ROUNDS, (double)v->o->rounds * more);
}

static bool measure_steps(struct validation *v, int r, double rate, const struct fabric_place *place, struct error *error)
{
    struct fsdp_case cases[STRATEGIES];
    static struct turns_samples samples[STRATEGIES];
    static struct turns_line line;
    int ranks = rank_counts[r], count = strategies_of(&v->base, ranks, cases);
    const struct turns_plan plan = {v->cli->program, v->worker, v->scratch, place, ranks, rounds_at(v, rate), count, cases, DEADLINE_S};
    if (!turns_measure(&plan, samples, &line, error) || !take_line(v, r, rate, &line, error))
        return false;
    for (int i = 0; i < count && v->count < VALIDATE_POINTS; i++) {
        struct validate_point *p = &v->points[v->count++];
        *p = (struct validate_point){.ranks = ranks, .rate_bits = rate, .name = strategy_name(cases[i].sharding.strategy), .schedule = schedule_of(&cases[i]), .w = &v->w[r]};
        p->round_count = samples[i].count;
        p->seconds = memory_copy(samples[i].seconds, (size_t)samples[i].count, sizeof *p->seconds);
        p->step = statistics_median(samples[i].count, samples[i].seconds);
        p->free = statistics_median(samples[i].count, samples[i].free_s);
        p->free_update = statistics_median(samples[i].count, samples[i].free_update_s);
        if (!store_point(v, p, &samples[i], &v->series[p - v->points], error))
            return false;
    }
    return true;
}

static bool measure_at(struct validation *v, int r, double rate, struct error *error)
{
    struct fabric_place *place;
    v->fabric.rate_bits = rate;
    if (!fabric_open(&v->fabric, rank_counts[r], v->cli->program, &place, error))
        return false;
    fprintf(stderr, "%d ranks at %.0f Mbit/s\n", rank_counts[r], rate / 1e6);
    bool ok = measure_steps(v, r, rate, place, error);
    fabric_close(place);
    return ok;
}

// How Open MPI over TCP moves (docs/advise.md): a message up to the fabric's eager limit goes as far as the system's buffers let it, whoever computes meanwhile.
static const double EAGER_BYTES = 1 << 20, BUFFER_BYTES = 4 << 20;

static struct machine machine_at(const struct validation *v, const struct validate_line *line, double rate)
{
    struct machine m = {.tiers = {validate_tier(line, rate)}, .exchange = EXCHANGE_DIRECT, .contention = 1, .both_ways = 1, .unattended_bytes = BUFFER_BYTES, .eager_bytes = EAGER_BYTES};
    m.tiers[0].burst_s = 8 * (double)topology_burst(&v->fabric, rate) / rate;
    return m;
}

// Points of a number of ranks, at one rate or (0) at all.
static int points_of(const struct validation *v, int ranks, double rate, struct validate_point out[VALIDATE_POINTS])
{
    int count = 0;
    for (int i = 0; i < v->count; i++)
        if (v->points[i].ranks == ranks && (rate == 0 || v->points[i].rate_bits == rate))
            out[count++] = v->points[i];
    return count;
}

// Computing is as it was beside each point, since other work on the machine may change it; for the changes over the rates, as it was on the whole.
static bool predict_all(struct validation *v, struct error *error)
{
    struct validate_point of[VALIDATE_POINTS];
    for (int r = 0; r < RANK_COUNTS; r++) {
        struct validate_knowledge *k = &v->known[r];
        k->ranks = rank_counts[r];
        k->line = validate_line_of(&v->lines[r][0], &v->lines[r][1]);
        k->machine = machine_at(v, &k->line, v->rates[v->rate_count / 2]);
        if (!validate_computing(points_of(v, k->ranks, 0, of), of, COPY_RATE, &k->machine))
            return error_set(error, "%d ranks: no step took longer than its update", k->ranks);
    }
    for (int i = 0; i < v->count; i++) {
        struct validate_point *p = &v->points[i];
        struct machine m = machine_at(v, &v->known[p->ranks != rank_counts[0]].line, p->rate_bits);
        if (!validate_computing(points_of(v, p->ranks, p->rate_bits, of), of, COPY_RATE, &m))
            return error_set(error, "%d ranks: no step took longer than its update", p->ranks);
        validate_predict(p, &m);
    }
    return true;
}

// Beside the steps, for `show` and `report`.
static bool store_predictions(const struct validation *v, struct error *error)
{
    bool ok = true;
    for (int i = 0; ok && i < v->count; i++) {
        json_t *facts = validate_facts(&v->points[i]);
        ok = store_set_series_facts(v->store, v->series[i], facts, error);
        json_decref(facts);
    }
    return ok;
}

static void print_known(const struct validation *v, int r)
{
    const struct validate_knowledge *k = &v->known[r];
    printf("%d ranks: %.3g flop/s, update %.3g B/s", k->ranks, k->machine.flop_rate, k->machine.update_rate);
    for (int i = 0; i < 2; i++) {
        double rate = v->rates[i == 0 ? 0 : v->rate_count - 1];
        struct tier t = validate_tier(&k->line, rate);
        printf("; at %.4g Mbit/s alpha %.3g ms, %.1f %% of the rate", rate / 1e6, 1e3 * t.alpha_s, 100 * 8 / t.beta_s_per_byte / rate);
    }
    putchar('\n');
}

static void print(const struct validation *v, const struct validate_verdict *d)
{
    validate_print(v->count, v->points, stdout);
    for (int r = 0; r < RANK_COUNTS; r++)
        print_known(v, r);
    validate_print_times(d, stdout);
    for (int i = 0; i < d->switch_count; i++)
        printf("%d ranks, %s below and %s above: measured %.1f Mbit/s, predicted %.1f Mbit/s, factor %.2f; bound %.1f: %s\n", d->switches[i].ranks, d->switches[i].below, d->switches[i].above,
               d->switches[i].measured_bits / 1e6, d->switches[i].predicted_bits / 1e6, d->switches[i].factor, VALIDATE_FACTOR, d->switches[i].ok ? "PASS" : "FAIL");
    if (d->switch_count == 0)
        puts("no change of the best strategy over these rates was shown: FAIL");
}

static void print_json(const struct validation *v, const struct validate_verdict *d)
{
    json_t *j = validate_json(v->count, v->points, d);
    json_dumpf(j, stdout, JSON_INDENT(2));
    fputc('\n', stdout);
    json_decref(j);
}

static bool draw(const struct validation *v, const struct validate_verdict *d, struct error *error)
{
    char fabric[200], date[32], why[PLOT_WHY] = "";
    time_t now = time(NULL);
    struct tm day;
    json_t *environment = stamp_make(v->base.seed);
    char *machine = plot_machine(environment), *versions = plot_versions(environment, NULL);
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &day));
    snprintf(fabric, sizeof fabric, "%s, a host a rank, %.4g to %.4g Mbit/s", v->fabric.name, v->rates[0] / 1e6, v->rates[v->rate_count - 1] / 1e6);
    const struct plot_about about = {.machine = machine, .versions = versions, .fabric = fabric, .date = date,
                                     .note = "Predicted: cost model (docs/advise.md), told no step time with communication"};
    bool ok = true;
    for (int r = 0; ok && why[0] == 0 && r < RANK_COUNTS; r++)
        ok = validate_figure(rank_counts[r], v->count, v->points, d, &about, v->o->figures, why, error);
    if (ok && why[0] != 0)
        fprintf(stderr, "fsdpmark advise: no figures: %s\n", why);
    json_decref(environment);
    free(machine);
    free(versions);
    return ok;
}

static bool prepare(struct validation *v, const char *suite, const char *store, struct error *error)
{
    v->worker = memory_format("%s/fsdp-reference", getenv("FSDPMARK_BUILD"));
    if (!read_rates(v->o->rates, v, error) || !advise_case_text(v->cli, v->o, default_case, &v->base, error) || !fabric_read("virtual-eager", suite, &v->fabric, error))
        return false;
    char *reason = fabric_unavailable(&v->fabric);
    bool ok = reason == NULL || error_set(error, "fabric virtual: %s", reason);
    free(reason);
    for (int r = 0; ok && r < RANK_COUNTS; r++)
        ok = workload_create(&v->w[r], &v->base, v->base.global_rows / v->base.world_size, error);
    if (!ok || (v->scratch = scratch_make(false, error)) == NULL || !store_open(store, false, &v->store, error))
        return false;
    json_t *environment = stamp_make(v->base.seed);
    const struct run_info info = {v->cli->command_line, NULL, NULL, v->base.seed, environment};
    ok = store_begin_run(v->store, &info, &v->run, error);
    json_decref(environment);
    return ok;
}

static void release(struct validation *v)
{
    if (v->store != NULL)
        store_close(v->store);
    if (v->scratch != NULL)
        scratch_end(v->scratch, false);
    for (int r = 0; r < RANK_COUNTS; r++)
        workload_free(&v->w[r]);
    for (int i = 0; i < v->count; i++)
        free(v->points[i].seconds);
    fabric_free(&v->fabric);
    case_free(&v->base);
    free(v->scratch);
    free(v->worker);
}

int advise_validate(const struct cli *cli, const struct advise_options *o)
{
    static struct validation v;
    struct validate_verdict verdict;
    struct error error = {""}, ignored = {""};
    v = (struct validation){.cli = cli, .o = o};
    char *suite = cli_suite(cli, o->suite), *store = cli_store(cli, o->store);
    bool ok = suite != NULL && store != NULL && prepare(&v, suite, store, &error);
    for (int r = 0; ok && r < RANK_COUNTS; r++)
        for (int i = 0; ok && i < v.rate_count; i++)
            ok = measure_at(&v, r, v.rates[i], &error);
    ok = ok && predict_all(&v, &error) && store_predictions(&v, &error);
    int status = v.run > 0 ? 3 : 2, caught = interrupt_signal();
    if (ok) {
        validate_judge(v.count, v.points, RANK_COUNTS, v.known, &verdict);
        o->as_json ? print_json(&v, &verdict) : print(&v, &verdict);
        status = verdict.ok ? 0 : 1;
        if (o->figures != NULL && !draw(&v, &verdict, &error))
            status = options_bad(cli->command, "%s", error.text);
    } else if (!caught && error.text[0] != 0) {
        options_bad(cli->command, "%s", error.text);
    }
    if (v.run > 0 && !caught) // what was cut short has no end
        store_end_run(v.store, v.run, status, &ignored);
    release(&v);
    free(suite);
    free(store);
    return caught ? 128 + caught : status;
}
