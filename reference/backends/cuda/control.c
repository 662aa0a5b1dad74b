// See control.h.
#include "reference/backends/cuda/control.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

static const struct backend *other = &backend_serial;
static double deadline;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// As Open MPI, MPICH and Slurm tell it; 0 for one rank alone.
static int local_rank(int rank)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]) != NULL)
            return atoi(getenv(names[i]));
    return rank;
}

bool control_open(struct backend_group *world, double deadline_s, cuda_watch *watch, struct error *error)
{
    deadline = deadline_s;
    return other->open(world, deadline_s, error) && cuda_open(local_rank(world->rank), deadline_s, watch, error);
}

void control_close(struct backend_group *world)
{
    cuda_close();
    other->close(world);
}

void control_choose(const struct backend *host) { other = host; }

const struct backend *control(void) { return other; }

int control_index(const struct backend_group *g) { return g->index; }

bool control_wait(struct backend_request *request, const char *what, struct error *error)
{
    double limit = seconds() + deadline;
    for (bool done = false; !done; sched_yield()) {
        if (!other->test(request, &done, error))
            return false;
        if (!done && seconds() > limit)
            return error_set(error, "%s did not end within %g s", what, deadline);
    }
    return true;
}
