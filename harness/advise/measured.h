// What a stored run of `fsdpmark net` says of a machine: its lines, tier by tier, and what computing costs beside a collective.
//
// What: alpha and beta of the all-gather, by least squares over its sizes. On a fabric of two tiers the inner line is that of the all-gathers within a group, the outer one that of
//       the all-reduces between groups: all groups are at work at once there, so that beta is a rank's while its whole group uses the line, as struct tier wants it.
// How:  no line carries more than its rate. Small messages ride what an emulated line saves up while it rests, so a fit may say more: then it is made again from the messages beyond
//       that burst, and where even that says more, the rate itself is taken. Each such step is told as a note.
#ifndef HARNESS_ADVISE_MEASURED_H
#define HARNESS_ADVISE_MEASURED_H

#include "harness/advise/machine.h"
#include "harness/net/rows.h"

// The fabric as it is stamped on a run (fabric_stamp); borrows from the stamp. No stamp: a name and zeros.
struct stamped_fabric { const char *name; const json_t *mca; int hosts, group; double rate_bits, between_rate_bits, burst_bytes; };
struct stamped_fabric stamped_fabric_of(const json_t *environment, const char *name);
// The value of an option of Open MPI, NULL where it is not set.
const char *stamped_option(const struct stamped_fabric *f, const char *name);

enum { MEASURED_NOTES = 16, MEASURED_NOTE = 512 };
struct measured {
    char fabric[64];
    int ranks;                 // of the run
    int near;                  // ranks of an inner group; 0: one tier
    struct tier tiers[TIERS];  // ranks are the caller's
    double alpha_spread[TIERS], beta_spread[TIERS];
    double contention;
    int note_count;
    char notes[MEASURED_NOTES][MEASURED_NOTE]; // what was taken and why, a sentence each
};
// unit_bytes: what the model gathers at once, see measured_unit. Errors: no all-gathers of two sizes; a fabric of two tiers whose tiers were not measured.
bool measured_take(const struct net_rows *rows, const struct stamped_fabric *f, double unit_bytes, struct measured *out, struct error *error);
// Bytes of the units that make up most of what the model gathers.
double measured_unit(const struct fsdp_case *c);

#endif
