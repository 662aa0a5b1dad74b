// Machines that nobody measured: documented defaults; and machines with doubt: draws within the intervals of what was measured.
#ifndef HARNESS_ADVISE_MACHINE_H
#define HARNESS_ADVISE_MACHINE_H

#include <stdint.h>

#include "harness/advise/model.h"
#include "harness/statistics/statistics.h"

// A host of eight accelerators, the source of each number in docs/advise.md. peak: of a rank, for MFU. memory: of a rank.
enum { MACHINE_DEFAULT_HOST = 8 };
struct machine_facts { double peak_flop_rate, memory_bytes; const char *source; };
struct machine machine_default(int ranks, int ranks_per_host, struct machine_facts *facts);

// How far each figure may be off: standard deviation of its logarithm; 0: taken as exact.
struct spread { double alpha[TIERS], beta[TIERS], flop_rate, copy_rate, update_rate; };
double spread_of(const struct interval *i);  // from an interval of 95 %; 0 where it has none
struct machine machine_draw(const struct machine *m, const struct spread *s, uint64_t *state);

const char *exchange_name(enum exchange e);  // "direct", ...
const char *const *exchange_names(void);     // NULL at the end

#endif
