// Where a rank that a template forks has to be: on a host of a place, that is in its network namespace and with its name (template.h).
//
// The harness writes for each rank what to enter, rank<R>.namespaces of the job folder (docs/protocol.md); the template forks the rank there; the keeper
// looks itself, since a rank that has stayed outside would find no other and might talk over an interface without a line.
#ifndef HARNESS_NAMESPACES_H
#define HARNESS_NAMESPACES_H

#include <sys/types.h>

#include "harness/launch/launch.h"

// Whether the ranks of a plan have hosts to enter.
bool namespaces_needed(const struct launch_plan *plan);
bool namespaces_write(const struct launch_plan *plan, int rank, struct error *error);
// False, with the reason, where the process of a rank lives and is not where its file says.
bool namespaces_hold(const char *folder, int rank, pid_t pid, char *why, size_t size);

#endif
