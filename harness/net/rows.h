// What a stored run of `fsdpmark net` measured, a row a point: times with intervals, bandwidths, errors. All tables and exports are made of rows.
#ifndef HARNESS_NET_ROWS_H
#define HARNESS_NET_ROWS_H

#include "harness/net/point.h"
#include "harness/statistics/statistics.h"
#include "harness/store/series.h"

struct net_row {
    struct net_point point;
    int ranks, hosts, within;
    int64_t bytes;               // of all its calls
    double bus_bytes;            // bytes times the factor of busbw, of all its calls
    double line_rate;            // byte/s, of the slowest line that it passes; 0: it passes none, or it is not known
    double burst;                // bytes that this line lets through at once; 0: not known
    struct interval seconds;     // count 0: not measured; holds the medians of all starts too
    double algbw, busbw;         // byte/s: bytes / seconds, bus_bytes / seconds, at the median
    // beside a product: what of the shorter side was hidden, (alone + alone - both) / the shorter, and how much slower each side ran; count 0: no product
    struct interval overlap, call_slowdown, product_slowdown, call_alone, product_alone;
    struct interval over_bare;   // batch over bare loop; count 0: none
    int64_t errors;
    const char *first_error;     // or NULL
    int launches, calls_per_sample;
    const struct stored_series *series; // of the seconds
};
// Sorted by measure, call, form and size.
struct net_rows { int count; struct net_row *items; struct stored_serieses stored; const char *fabric; int64_t errors; };

// run 0: the newest. Errors: the store's; a series that is none of fsdpmark net.
bool net_rows_load(struct store *s, int64_t run, struct net_rows *out, struct error *error);
// The same from series that were loaded before; *stored is taken over.
bool net_rows_make(struct stored_serieses *stored, struct net_rows *out, struct error *error);
void net_rows_free(struct net_rows *r);
// Ranks of a call's group.
int net_row_ranks(const struct net_row *r, const struct net_call *c);

#endif
