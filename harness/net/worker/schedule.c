// Which point is measured when: rounds over the points in shuffled order, until each is done or the time is up.
//
// A visit opens the point's buffers, runs one batch that is not counted (warm-up; checked all the same), then as many as a slice of the time has room for, a
// few at rank 0's word: between batches there is little but filling and checking all buffers. At the end times and errors are put together: slowest rank, sum of errors.
// Rank 0 appends a line a visit to samples.jsonl: what was measured is there, however the program ends.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/net/worker/worker.h"
#include "harness/protocol/memory.h"
#include "harness/statistics/statistics.h"

enum { ROUNDS = 4, LEAST_SAMPLES = 30, TEXT = 240, MOST_CALLS = 64, LEAST_LOOP = 8, MOST_BATCHES = 16, TRIES = 3 };
// Bytes of all sets of a batch: short calls stay in the first cache, as they would with one set. Up to the second limit a call is short beside what ranks leave a
// barrier apart, so that one that is not timed goes before it; above, its buffers would push those of the timed one out of the second cache. Far above it no cache
// holds them, and the call before brings back what the library keeps for itself.
static const double FIRST_CACHE = 20 << 10, LEAD = 160 << 10, FAR = 4 << 20;
static const size_t LARGEST = (size_t)1 << 30;
static const double CLOCK_SHARE = 1.0 / 400;    // of a sample that reading the clock may take
static const double SLOW_S = 5e-3;              // what is tried only once
static const double SHARE = 0.25;               // of a visit that one batch may take

struct progress {        // of a point
    bool planned, done;
    struct batch batch;
    int64_t iteration;
    int count;
    double *seconds;     // rank 0: of this launch
};
struct collected { int count, capacity; double *values; }; // of a visit, by series
struct schedule {
    const struct net_job *job;
    const MPI_Comm *groups;
    MPI_Comm control;
    int rank, size;
    double begin, clock, own_clock; // of one reading: the slowest rank's, this one's
    FILE *out;
    struct progress *points;
};

static double clock_cost(void)
{
    enum { READS = 1000 };
    double begin = MPI_Wtime(), end = begin;
    for (int i = 0; i < READS; i++)
        end = MPI_Wtime();
    return (end - begin) / READS;
}

static double slowest(const struct schedule *s, double seconds)
{
    double out;
    MPI_Allreduce(&seconds, &out, 1, MPI_DOUBLE, MPI_MAX, s->control);
    return out;
}

static bool agree(const struct schedule *s, bool mine)
{
    int word = mine;
    MPI_Bcast(&word, 1, MPI_INT, 0, s->control);
    return word;
}

static bool everybody(const struct schedule *s, bool mine)
{
    int word = mine, all;
    MPI_Allreduce(&word, &all, 1, MPI_INT, MPI_LAND, s->control);
    return all;
}

static int sets_of(const struct batch *b) { return b->product != NET_IDLE ? 2 * b->samples : b->lead + b->samples * b->group; }

static bool allocate(const struct schedule *s, struct batch *b, int offset)
{
    bool ok = true;
    for (int i = 0; i < b->lanes; i++)
        ok &= lane_allocate(&b->lane[i], sets_of(b), offset);
    return everybody(s, ok);
}

static void release(struct batch *b)
{
    for (int i = 0; i < b->lanes; i++)
        lane_release(&b->lane[i]);
}

// ---- errors ----
struct errors { int64_t count; char first[TEXT]; };

static void describe(const struct net_point *p, const struct schedule *s, int which, int64_t iteration, const struct lane_damage *d, char text[TEXT])
{
    const struct mismatch *m = d->values.count > 0 ? &d->values : &d->input;
    const char *op = net_op_names[p->calls[which].op];
    if (m->count > 0)
        snprintf(text, TEXT, "rank %d, iteration %lld: %s%s: element %lld is %.9g, expected %.9g", s->rank, (long long)iteration, op,
                 m == &d->input ? ": its input was changed" : "", (long long)m->index, m->found, m->expected);
    else
        snprintf(text, TEXT, "rank %d, iteration %lld: %s: %lld bytes beside its buffers were written", s->rank, (long long)iteration, op, (long long)d->guards);
}

static void check(const struct schedule *s, const struct net_point *p, struct batch *b, int64_t first, struct errors *out)
{
    const struct net_job *job = s->job;
    for (int i = 0; i < b->lanes; i++)
        for (int k = 0; k < b->lane[i].sets; k++) {
            struct lane_damage d = {0};
            if (job->corrupt_rank == s->rank && job->corrupt_iteration == first + k)
                lane_corrupt(&b->lane[i], k);
            lane_check(&b->lane[i], job->seed, i, k, first + k, &d);
            int64_t wrong = d.values.count + d.input.count + d.guards;
            if (wrong > 0 && out->count == 0)
                describe(p, s, i, first + k, &d, out->first);
            out->count += wrong;
        }
    int64_t wrong = b->product != NET_IDLE ? product_errors() : 0;
    if (wrong > 0 && out->count == 0)
        snprintf(out->first, TEXT, "rank %d, iteration %lld: the matrix product beside it has %lld wrong elements", s->rank, (long long)first, (long long)wrong);
    out->count += wrong;
}

// Sum over ranks, and the text of the first rank that has one; on rank 0.
static void gather_errors(const struct schedule *s, struct errors *e)
{
    int64_t sum = 0;
    MPI_Allreduce(&e->count, &sum, 1, MPI_INT64_T, MPI_SUM, s->control);
    if (sum > 0) {
        int mine = e->count > 0 ? s->rank : s->size, first;
        MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, s->control);
        MPI_Bcast(e->first, TEXT, MPI_CHAR, first, s->control);
    }
    e->count = sum;
}

// ---- one batch ----
static double *room(struct collected *c, int count)
{
    if (c->count + count > c->capacity) {
        c->capacity = 2 * (c->count + count);
        c->values = realloc(c->values, (size_t)c->capacity * sizeof *c->values);
        if (c->values == NULL)
            abort();
    }
    c->count += count;
    return c->values + c->count - count;
}

static void collect(struct collected *into, const struct batch *b, const double *times)
{
    for (int i = 0; i < BATCH_SERIES && !isnan(times[i * b->samples]); i++)
        memcpy(room(&into[i], b->samples), times + i * b->samples, (size_t)b->samples * sizeof *times);
}

// Runs and checks; puts this rank's times into `into` (NET_SERIES of them), or nowhere.
static void run(const struct schedule *s, const struct net_point *p, struct progress *at, struct collected *into, struct errors *errors)
{
    struct batch *b = &at->batch;
    double times[BATCH_SERIES * LANE_SETS], bare, whole = 0;
    for (int i = 0; i < b->lanes; i++)
        lane_fill(&b->lane[i], s->job->seed, i, at->iteration);
    batch_run(b, s->control, times);
    check(s, p, b, at->iteration, errors);
    at->iteration += sets_of(b);
    if (p->bare)
        batch_bare(b, s->control, &bare);
    if (into == NULL)
        return;
    collect(into, b, times);
    for (int i = 0; i < b->samples; i++)
        whole += times[i] / b->samples;
    if (p->bare) {
        *room(&into[NET_BARE], 1) = bare;
        *room(&into[NET_BATCH], 1) = whole;
    }
}

// The slowest rank's time of each sample, on rank 0.
static void reduce(const struct schedule *s, struct collected *c)
{
    for (int i = 0; i < NET_SERIES; i++)
        if (c[i].count > 0)
            MPI_Reduce(s->rank == 0 ? MPI_IN_PLACE : c[i].values, c[i].values, c[i].count, MPI_DOUBLE, MPI_MAX, 0, s->control);
}

// ---- how a point is measured ----
// Slices of the product that take about as long as the call.
static int slices_for(const struct schedule *s, double call_s)
{
    enum { TRIED = 4 };
    product_run(TRIED);
    double begin = MPI_Wtime();
    product_run(TRIED);
    double each = slowest(s, (MPI_Wtime() - begin) / TRIED), want = round(call_s / each);
    product_errors();
    return want < 1 ? 1 : want > 1e6 ? 1000000 : (int)want;
}

// Seconds of a call in a row of so many: the least of a few tries, since others use the machine too. Negative: no memory.
static double try_calls(const struct schedule *s, const struct net_point *p, struct progress *at, int calls, struct errors *errors)
{
    double times[BATCH_SERIES * LANE_SETS], least = INFINITY;
    struct batch *b = &at->batch;
    enum net_product product = b->product;
    b->lead = calls > 1;
    b->samples = 1;
    b->group = calls;
    b->product = NET_IDLE;
    bool ok = allocate(s, b, p->offset);
    for (int t = 0; ok && t < TRIES && (t == 0 || least < SLOW_S); t++) {
        for (int i = 0; i < b->lanes; i++)
            lane_fill(&b->lane[i], s->job->seed, i, at->iteration);
        batch_run(b, s->control, times);
        least = fmin(least, slowest(s, times[0]));
        check(s, p, b, at->iteration, errors);
        at->iteration += sets_of(b);
    }
    release(b);
    b->product = product;
    return ok ? least : -1;
}

// Buffers of a call on the rank that has most: shards may be uneven, decisions not.
static double bytes_of(const struct schedule *s, const struct batch *b)
{
    size_t bytes = 0;
    for (int i = 0; i < b->lanes; i++)
        bytes += lane_bytes(&b->lane[i]);
    return slowest(s, (double)bytes);
}

static bool plan(const struct schedule *s, const struct net_point *p, struct progress *at, double slice_s, struct errors *errors)
{
    struct batch *b = &at->batch;
    double bytes = bytes_of(s, b), call_s = bytes > (double)LARGEST ? -1 : try_calls(s, p, at, 1, errors);
    int most = (int)fmin(MOST_CALLS, fmax(1, floor(FIRST_CACHE / bytes)));
    for (int calls = 8; call_s >= 0 && calls <= most && call_s * calls < SLOW_S; calls *= 8)
        call_s = try_calls(s, p, at, calls, errors);
    if (call_s < 0)
        return false;
    b->group = (int)fmin(most, fmax(1, ceil(s->clock / CLOCK_SHARE / call_s)));
    b->samples = (int)fmax(1, fmin(most / b->group, SHARE * slice_s / call_s / b->group));
    b->lead = bytes < LEAD || (bytes >= FAR && call_s < SLOW_S) || s->job->drain;
    if (s->job->drain && b->samples * b->group == 1)
        b->samples = 2;
    b->bare = call_s < SLOW_S && b->samples * b->group < LEAST_LOOP ? LEAST_LOOP : b->samples * b->group;
    if (b->runs_ahead) {
        b->group *= b->samples;
        b->samples = 1;
        b->lead = s->job->drain;
    }
    if (b->product != NET_IDLE) {
        b->group = b->samples = 1;
        b->lead = 0;
        b->slices = slices_for(s, call_s);
    }
    at->planned = true;
    return true;
}

// ---- a visit ----
static void put_series(FILE *out, const char *name, const struct collected *c)
{
    if (c->count == 0)
        return;
    fprintf(out, ", \"%s\": [", name);
    for (int i = 0; i < c->count; i++)
        fprintf(out, "%s%.9g", i > 0 ? ", " : "", c->values[i]);
    fputc(']', out);
}

static void put_line(const struct schedule *s, int index, int64_t calls, const struct progress *at, const struct collected *c, const struct errors *e)
{
    json_t *first = json_string(e->count > 0 ? e->first : "");
    char *text = json_dumps(first, JSON_ENCODE_ANY);
    fprintf(s->out, "{\"point\": %d, \"calls\": %lld, \"group\": %d, \"slices\": %d, \"errors\": %lld, \"first\": %s", index,
            (long long)calls, at->batch.group, at->batch.slices, (long long)e->count, text);
    for (int i = 0; i < NET_SERIES; i++)
        put_series(s->out, net_series_names[i], &c[i]);
    fputs("}\n", s->out);
    fflush(s->out);
    free(text);
    json_decref(first);
}

static bool is_narrow(const struct schedule *s, const struct progress *at)
{
    struct interval i = statistics_median(at->count, at->seconds);
    return s->job->narrow > 0 && at->count >= LEAST_SAMPLES && statistics_narrow(&i, s->job->narrow);
}

static double elapsed(const struct schedule *s) { return MPI_Wtime() - s->begin; }

static bool open_lanes(const struct schedule *s, const struct net_point *p, struct progress *at, struct lane *lanes, struct error *error)
{
    at->batch.lanes = p->call_count;
    at->batch.lane = lanes;
    at->batch.how = p->how;
    at->batch.product = p->product;
    at->batch.clock = s->own_clock;
    at->batch.runs_ahead = p->call_count == 1 && net_op_runs_ahead(p->calls[0].op);
    for (int i = 0; i < p->call_count; i++)
        if (!lane_open(&lanes[i], p, i, s->groups, error))
            return false;
    return true;
}

// How many batches to run before the clock is asked again, 0: the slice is over. Few at a time: what was quick a moment ago may be slow now.
static int batches(const struct schedule *s, double batch_s, double until, bool first)
{
    double left = until - MPI_Wtime();
    int count = left > 0 || first ? (int)fmin(MOST_BATCHES, fmax(1, floor(left / batch_s))) : 0;
    MPI_Bcast(&count, 1, MPI_INT, 0, s->control);
    return count;
}

// The first batch is not counted: warm-up, and the measure of the others. Where one call takes as long as the slice, planning it was the warm-up.
static void measure(const struct schedule *s, int index, double until, struct collected *collected, struct errors *errors)
{
    const struct net_point *p = &s->job->points[index];
    struct progress *at = &s->points[index];
    double begin = MPI_Wtime();
    if (agree(s, begin < until))
        run(s, p, at, NULL, errors);
    double batch_s = MPI_Wtime() - begin;
    for (int n = batches(s, batch_s, until, true); n > 0; n = batches(s, batch_s, until, false)) {
        begin = MPI_Wtime();
        for (int i = 0; i < n; i++)
            run(s, p, at, collected, errors);
        batch_s = (MPI_Wtime() - begin) / n;
    }
    reduce(s, collected);
    gather_errors(s, errors);
}

static void keep(struct progress *at, const struct collected *seconds)
{
    at->seconds = realloc(at->seconds, (size_t)(at->count + seconds->count) * sizeof *at->seconds);
    if (at->seconds == NULL)
        abort();
    memcpy(at->seconds + at->count, seconds->values, (size_t)seconds->count * sizeof *at->seconds);
    at->count += seconds->count;
}

static bool visit(const struct schedule *s, int index, double slice_s, struct error *error)
{
    const struct net_point *p = &s->job->points[index];
    struct progress *at = &s->points[index];
    struct lane lanes[NET_CALLS] = {0};
    struct collected collected[NET_SERIES] = {{0}};
    struct errors errors = {0};
    double until = MPI_Wtime() + slice_s;
    int64_t first = at->iteration;
    bool ok = open_lanes(s, p, at, lanes, error);
    ok = ok && (((at->planned || plan(s, p, at, slice_s, &errors)) && allocate(s, &at->batch, p->offset)) || error_set(error, "no memory for point %d", index));
    if (ok)
        measure(s, index, until, collected, &errors);
    for (int i = 0; i < p->call_count; i++)
        lane_close(&lanes[i]);
    if (ok && s->rank == 0) {
        put_line(s, index, at->iteration - first, at, collected, &errors);
        keep(at, &collected[NET_SECONDS]);
    }
    for (int i = 0; i < NET_SERIES; i++)
        free(collected[i].values);
    at->done = ok && agree(s, s->rank == 0 && is_narrow(s, at));
    return ok;
}

static bool rounds(struct schedule *s, int *order, struct error *error)
{
    int n = s->job->point_count, open = n;
    bool ok = true, more = true;
    for (int round = 0; ok && more && open > 0; round++) {
        double left = s->job->seconds - elapsed(s), slice = left / (open * (round < ROUNDS ? ROUNDS - round : 1));
        MPI_Bcast(&slice, 1, MPI_DOUBLE, 0, s->control);
        statistics_shuffle(n, order, s->job->seed + (uint64_t)(1000 * s->job->launch + round));
        for (int i = 0; ok && more && i < n; i++) {
            if (s->points[order[i]].done)
                continue;
            ok = visit(s, order[i], slice, error);
            open -= s->points[order[i]].done;
            more = agree(s, elapsed(s) < s->job->seconds);
        }
    }
    return ok;
}

bool schedule_run(const struct net_job *job, const char *folder, const MPI_Comm *groups, MPI_Comm control, struct error *error)
{
    struct schedule s = {.job = job, .groups = groups, .control = control, .begin = MPI_Wtime()};
    MPI_Comm_rank(control, &s.rank);
    MPI_Comm_size(control, &s.size);
    s.own_clock = clock_cost();
    s.clock = slowest(&s, s.own_clock);
    char *path = memory_format("%s/samples.jsonl", folder);
    s.out = s.rank == 0 ? fopen(path, "we") : NULL;
    s.points = memory_zeros((size_t)job->point_count, sizeof *s.points);
    int *order = memory_zeros((size_t)job->point_count, sizeof *order);
    bool ok = agree(&s, s.out != NULL) || error_set(error, "%s: cannot be written", path);
    product_open();
    ok = ok && rounds(&s, order, error);
    for (int i = 0; i < job->point_count; i++)
        free(s.points[i].seconds);
    if (s.out != NULL && fclose(s.out) != 0)
        ok = error_set(error, "%s: not written whole", path);
    free(order);
    free(s.points);
    free(path);
    return ok;
}
