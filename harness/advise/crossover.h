// Over bandwidth: where the best strategy changes, where FSDP begins to pay, where it is bound by computing.
//
// Bandwidth [bytes/s] is that of the outermost tier in use (between groups where there are two); everything else of the machine stays.
// Intervals: the same figure for machines drawn within the intervals of what was measured (machine_draw), 2.5 to 97.5 % of them.
#ifndef HARNESS_ADVISE_CROSSOVER_H
#define HARNESS_ADVISE_CROSSOVER_H

#include "harness/advise/machine.h"

enum { CANDIDATES = 8, CROSSINGS = 16, CROSSOVER_DRAWS = 200 };
static const double CROSSOVER_COMPUTE_BOUND = 0.05; // at most this share of the step is exposed communication

// A strategy and the work that a rank does under it in a step. Candidates are compared by seconds a token.
struct candidate { const char *name; struct schedule schedule; const struct workload_model *w; };
struct crossing { double bandwidth; int from, to; }; // `from` is best below, `to` above

double machine_bandwidth(const struct machine *m);
struct machine machine_with_bandwidth(const struct machine *m, double bandwidth);
int crossover_best(const struct machine *m, int count, const struct candidate *c);
// All changes of the best candidate between two bandwidths, in ascending order; at most CROSSINGS; returns how many.
int crossover_scan(const struct machine *m, int count, const struct candidate *c, double low, double high, struct crossing out[CROSSINGS]);
// The bandwidth above which a takes less time than b. 0: everywhere in the range; INFINITY: nowhere.
double crossover_between(const struct machine *m, const struct candidate *a, const struct candidate *b, double low, double high);
// The bandwidth above which at most `share` of the step is exposed. 0: everywhere; INFINITY: nowhere, latencies alone expose more.
double crossover_bound(const struct machine *m, const struct candidate *c, double share, double low, double high);

// b NULL: crossover_bound of a at CROSSOVER_COMPUTE_BOUND.
struct interval crossover_interval(const struct machine *m, const struct spread *spread, const struct candidate *a, const struct candidate *b, double low, double high);

#endif
