// What both backends of CUDA stand on: the device, and a backend of the host's arrays over the same ranks.
//
// How:  one rank without mpirun has the serial backend beside it, all others MPI's: for single numbers, initial values, observations, and for the
//       ncclUniqueId. A group of a CUDA backend has the index of the group that the other one has of the same ranks.
#ifndef REFERENCE_BACKENDS_CUDA_CONTROL_H
#define REFERENCE_BACKENDS_CUDA_CONTROL_H

#include "kernels/cuda/cuda.h"
#include "reference/backends/backend.h"

enum { CUDA_GROUPS = 64, CUDA_REQUESTS = 64 };

// The backend that stands beside it, from now on.
void control_choose(const struct backend *host);
// Opens that backend and the device of this rank: that of its place among the ranks of its machine. watch: as cuda_open.
bool control_open(struct backend_group *world, double deadline_s, cuda_watch *watch, struct error *error);
void control_close(struct backend_group *world);
const struct backend *control(void);
// The place of a group in tables of its CUDA backend: below CUDA_GROUPS.
int control_index(const struct backend_group *g);

// Whether cuda + nccl is built in (cuda_nccl.c), or a named refusal stands in its place (no_nccl.c).
extern const bool cuda_has_nccl;

// Waits for a request of control(), at most for the deadline.
bool control_wait(struct backend_request *request, const char *what, struct error *error);

#endif
