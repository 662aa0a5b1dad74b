// What the workers wrote, into the store: samples.jsonl of a start to series.
#ifndef HARNESS_NET_SAMPLES_H
#define HARNESS_NET_SAMPLES_H

#include "harness/net/run.h"

struct net_sampled {
    int64_t ids[NET_SERIES];   // 0: none yet
    int64_t errors, calls;
    char *first;               // what was wrong first, or NULL
    int group, slices;
};
struct net_samples { const struct net_settings *settings; const struct net_plan *plan; struct net_sampled *points; };

void net_samples_open(struct net_samples *s, const struct net_settings *settings, const struct net_plan *plan);
// Reads the lines of a start; a last line that was cut off is left out. Errors: a line that is none of the worker's; the store's.
bool net_samples_take(struct net_samples *s, const char *folder, int launch, struct error *error);
// Records the facts of every series: errors, calls, line rate and burst.
bool net_samples_finish(struct net_samples *s, struct error *error);
void net_samples_close(struct net_samples *s);
// Points that the lines written so far are about.
int net_samples_points(const char *folder, int count);

#endif
