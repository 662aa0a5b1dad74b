// The timed part: calls in a row behind a barrier, with nothing between them but the clock.
//
// Synchronisation: one barrier, then `lead` calls that are not timed, so that neither the order in which ranks leave the barrier nor what a shaped link
// has saved up is in the figures; then samples of `group` calls each, on a set of buffers of its own for every call. MPI_Wtime is read once between two samples:
// it ends the one and begins the other; what a reading takes is taken off. Short calls are timed in groups, so that this is little.
// Where a rank may run ahead of another (the root of a broadcast), what it sends during the lead would be on its way before the clock is read: there the barrier
// comes behind the lead, and a batch is one sample.
#include <math.h>

#include "harness/net/worker/worker.h"

static void calls_blocking(const struct batch *b, int set) { b->lane[0].blocking(&b->lane[0], set); }

static void calls_start(const struct batch *b, int set, MPI_Request *requests)
{
    for (int i = 0; i < b->lanes; i++)
        b->lane[i].start(&b->lane[i], set, &requests[i]);
}

static void calls_nonblocking(const struct batch *b, int set)
{
    MPI_Request requests[NET_CALLS];
    calls_start(b, set, requests);
    MPI_Waitall(b->lanes, requests, MPI_STATUSES_IGNORE);
}

static void one(const struct batch *b, int set) { b->how == NET_BLOCKING ? calls_blocking(b, set) : calls_nonblocking(b, set); }

static void time_blocking(const struct batch *b, double *stamps)
{
    const struct lane *l = &b->lane[0];
    void (*call)(const struct lane *, int) = l->blocking;
    int set = b->lead;
    stamps[0] = MPI_Wtime();
    for (int s = 0; s < b->samples; s++) {
        for (int g = 0; g < b->group; g++)
            call(l, set++);
        stamps[s + 1] = MPI_Wtime();
    }
}

static void time_nonblocking(const struct batch *b, double *stamps)
{
    int set = b->lead;
    stamps[0] = MPI_Wtime();
    for (int s = 0; s < b->samples; s++) {
        for (int g = 0; g < b->group; g++)
            calls_nonblocking(b, set++);
        stamps[s + 1] = MPI_Wtime();
    }
}

static void lead_in(const struct batch *b, MPI_Comm control)
{
    if (!b->runs_ahead)
        MPI_Barrier(control);
    for (int k = 0; k < b->lead; k++)
        one(b, k);
    if (b->runs_ahead)
        MPI_Barrier(control);
}

// Three turns a sample, each behind a barrier: the call, the product, both at once.
static void time_with_product(const struct batch *b, MPI_Comm control, double *times)
{
    int n = b->samples, set = 0;
    for (int s = 0; s < n; s++) {
        MPI_Request requests[NET_CALLS];
        MPI_Barrier(control);
        double begin = MPI_Wtime();
        one(b, set++);
        times[NET_CALL_ALONE * n + s] = MPI_Wtime() - begin;
        MPI_Barrier(control);
        begin = MPI_Wtime();
        product_run(b->slices);
        times[NET_PRODUCT_ALONE * n + s] = MPI_Wtime() - begin;
        MPI_Barrier(control);
        double ended = 0, product_begin;
        begin = MPI_Wtime();
        if (b->how == NET_BLOCKING)
            calls_blocking(b, set);
        else
            calls_start(b, set, requests);
        product_begin = MPI_Wtime();
        if (b->product == NET_PRODUCT_TESTED)
            product_run_tested(b->slices, b->lanes, requests, &ended);
        else
            product_run(b->slices);
        double product_end = MPI_Wtime();
        if (b->how == NET_NONBLOCKING)
            MPI_Waitall(b->lanes, requests, MPI_STATUSES_IGNORE);
        double end = MPI_Wtime();
        set++;
        times[NET_SECONDS * n + s] = end - begin;
        times[NET_PRODUCT_BESIDE * n + s] = product_end - product_begin;
        times[NET_CALL_BESIDE * n + s] = (b->how == NET_BLOCKING ? product_begin : ended != 0 ? ended : end) - begin;
    }
}

void batch_run(const struct batch *b, MPI_Comm control, double *times)
{
    double stamps[LANE_SETS + 1];
    for (int i = 0; i < BATCH_SERIES * b->samples; i++)
        times[i] = NAN;
    if (b->product != NET_IDLE) {
        time_with_product(b, control, times);
        return;
    }
    lead_in(b, control);
    if (b->how == NET_BLOCKING)
        time_blocking(b, stamps);
    else
        time_nonblocking(b, stamps);
    for (int s = 0; s < b->samples; s++)
        times[s] = fmax(0, stamps[s + 1] - stamps[s] - b->clock) / b->group;
}

// The loop that the tool is compared with: calls on one set of buffers, the first that is timed above (where buffers lie to each other in the caches is
// part of what a call costs), and nothing but the call. Synchronised as the batch is: where that times one call behind its barrier and its lead, so does each turn
// of the loop (as OSU's micro-benchmarks do); else calls in a row behind one that is not timed.
void batch_bare(const struct batch *b, MPI_Comm control, double *seconds)
{
    const struct lane *l = &b->lane[0];
    void (*call)(const struct lane *, int) = l->blocking;
    int set = b->lead;
    bool apart = b->samples * b->group == 1 && !b->runs_ahead;
    if (b->runs_ahead)
        call(l, set);
    MPI_Barrier(control);
    if (!b->runs_ahead)
        call(l, set);
    double begin = MPI_Wtime(), all;
    for (int i = 0; i < b->bare && !apart; i++)
        call(l, set);
    all = apart ? 0 : MPI_Wtime() - begin;
    for (int i = 0; i < b->bare && apart; i++) {
        MPI_Barrier(control);
        for (int k = 0; k < b->lead; k++)
            call(l, k);
        begin = MPI_Wtime();
        call(l, set);
        all += MPI_Wtime() - begin - b->clock;
    }
    *seconds = all / b->bare;
}
