// The environment that is stamped on a run: facts from a fixed list, nothing else of the machine or its user.
#ifndef HARNESS_STAMP_H
#define HARNESS_STAMP_H

#include <jansson.h>
#include <stdint.h>

// {"host", "kernel", "cpu", "cores", "memory_bytes", "compiler", "version", "commit", "seed", "libraries": {name: version}}, in a job of
// Slurm also "slurm": {"job_id", "cluster", "partition", "nodes", "nodelist", "topology" (of the first node)}. A
// fact that cannot be found is null. New reference.
json_t *stamp_make(uint64_t seed);
// The first line of `command --version`-like output, or NULL; owned by the caller.
char *stamp_first_line(const char *const *command);
// Model name of the CPU, or NULL; owned by the caller.
char *stamp_cpu(void);
// Configuration line of OpenBLAS (version, threading, core), or NULL where it is not loaded.
const char *stamp_openblas(void);

#endif
