// fsdpmark-net: the MPI program that `fsdpmark net` starts on a fabric. It measures the points of JOB/net.json and writes JOB/samples.jsonl.
//
// Usage: fsdpmark-net, with FSDPMARK_JOB naming the folder. Exit status: 0, 2 unusable job.
#include <stdio.h>
#include <stdlib.h>

#include "harness/net/worker/worker.h"
#include "harness/protocol/memory.h"

#ifdef __SANITIZE_ADDRESS__
// As in reference/worker/main.c: components that MPI_Finalize unloads leave memory and threads behind.
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return 1; }
int dlclose(void *module);
int dlclose(void *module)
{
    (void)module;
    return 0;
}
#endif

// Consecutive ranks within, those of one place between.
static bool make_groups(const struct net_job *job, MPI_Comm *groups, struct error *error)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    groups[NET_WITHIN] = groups[NET_BETWEEN] = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &groups[NET_WORLD]);
    MPI_Comm_dup(MPI_COMM_WORLD, &groups[NET_TWIN]);
    if (job->within == 0)
        return true;
    if (job->within < 0 || size % job->within != 0)
        return error_set(error, "found groups of %d in %d ranks, expected a divisor", job->within, size);
    MPI_Comm_split(MPI_COMM_WORLD, rank / job->within, rank, &groups[NET_WITHIN]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % job->within, rank, &groups[NET_BETWEEN]);
    return true;
}

static bool work(const char *folder, struct error *error)
{
    struct net_job job;
    json_t *root;
    MPI_Comm groups[NET_GROUPS], control;
    char *path = memory_format("%s/net.json", folder);
    bool ok = net_job_read(path, &job, &root, error);
    free(path);
    if (!ok)
        return false;
    MPI_Comm_dup(MPI_COMM_WORLD, &control);
    ok = make_groups(&job, groups, error) && schedule_run(&job, folder, groups, control, error);
    for (int i = 0; i < NET_GROUPS; i++)
        if (groups[i] != MPI_COMM_NULL)
            MPI_Comm_free(&groups[i]);
    MPI_Comm_free(&control);
    free(job.points);
    json_decref(root);
    return ok;
}

int main(int argc, char **argv)
{
    const char *folder = getenv("FSDPMARK_JOB");
    struct error error = {0};
    if (folder == NULL || argc > 1) {
        fprintf(stderr, "fsdpmark-net: found %s, expected FSDPMARK_JOB in the environment; for the use of fsdpmark net\n", folder == NULL ? "none" : "arguments");
        return 2;
    }
    MPI_Init(&argc, &argv);
    if (!work(folder, &error)) {
        fprintf(stderr, "fsdpmark-net: %s\n", error.text);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Finalize();
    return 0;
}
