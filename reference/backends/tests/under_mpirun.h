// For tests with several ranks: the program starts itself again under mpirun.
//
// In main: if (under_mpirun()) return the ranks' part; else let each test call run_ranks(n, argument).
#ifndef REFERENCE_TESTS_UNDER_MPIRUN_H
#define REFERENCE_TESTS_UNDER_MPIRUN_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static inline bool under_mpirun(void) { return getenv("OMPI_COMM_WORLD_SIZE") != NULL; }

// Exit status of this program on that many ranks, given one argument; 124 after two minutes. Leaks of the MPI library are not ours.
static inline int run_ranks(int ranks, const char *argument)
{
    char self[4096] = "", count[16];
    int status = -1;
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return -1;
    snprintf(count, sizeof count, "%d", ranks);
    pid_t child = fork();
    if (child == 0) {
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
        execlp("timeout", "timeout", "120", "mpirun", "--oversubscribe", "--mca", "btl_base_warn_component_unused", "0", "-n", count, self,
               argument, (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
