// What a check run measured of a case beside its verdicts: time, memory, traffic.
#ifndef HARNESS_REPORT_MEASURED_H
#define HARNESS_REPORT_MEASURED_H

#include "harness/store/store.h"

enum measured_quantity { MEASURED_SECONDS, MEASURED_PEAK, MEASURED_REST, MEASURED_SENT, MEASURED_QUANTITIES };
extern const char *const measured_names[MEASURED_QUANTITIES]; // "seconds", "peak bytes", ...
// seconds: of the case in its workers. Peak bytes: the most live bytes (heap, mappings and device together) of a phase of training, of the
// fullest rank; rest bytes: those at the end of the last optimizer step. Sent bytes: of all ranks in training, by collectives and
// point to point where a probe saw some, else by sockets. NAN: not measured.
void measured_of(const struct stored_case *c, double out[MEASURED_QUANTITIES]);

#endif
