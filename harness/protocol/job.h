// The job of one start of the workers: where it is, which rank this is, which cases it serves.
#ifndef FSDPMARK_JOB_H
#define FSDPMARK_JOB_H

#include "harness/protocol/case.h"

struct job {
    char *folder;
    int rank, world_size, local_rank;
    int case_count;
    char **cases;
};
// From the environment (FSDPMARK_JOB; rank and size by the names of torchrun, Open MPI or Slurm) and job.json.
bool job_from_environment(struct job *out, struct error *error);
bool job_write(const char *folder, int world_size, const char *const *cases, int count, struct error *error);
void job_free(struct job *j);

#endif
