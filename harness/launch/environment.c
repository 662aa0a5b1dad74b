// The environment of a worker: an allowlist, so that a run does not depend on what a shell happens to export.
//
// Why these: what a program needs to start (PATH, HOME, ...), to find its libraries and devices, to be sanitized in tests,
// and what keeps its traffic on the loopback interface. BLAS and OpenMP get one thread per rank unless the manifest
// says otherwise: ranks share the cores, and results must not depend on a thread count.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/launch/keeper.h"

extern char **environ;

// A trailing star stands for any rest of the name.
static const char *const allowed[] = {
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "LD_PRELOAD",
    "OPAL_PREFIX", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "CUDA_*", "NVIDIA_*", "NCCL_*", "ROCR_*", "HIP_*",
    "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "LLVM_PROFILE_FILE", "SLURM_*",
};
static const char *const fixed[] = {
    "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "MKL_NUM_THREADS=1",
    "GLOO_SOCKET_IFNAME=lo", "NCCL_SOCKET_IFNAME=lo", NULL,
};

static bool is_allowed(const char *pair)
{
    size_t length = strcspn(pair, "=");
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        size_t stem = strlen(allowed[i]);
        bool star = allowed[i][stem - 1] == '*';
        stem -= star;
        if (strncmp(pair, allowed[i], stem) == 0 && (star ? length >= stem : length == stem))
            return true;
    }
    return false;
}

// Puts a pair in, in place of an earlier one of the same name.
static void put(char **list, int *count, const char *pair)
{
    size_t length = strcspn(pair, "=") + 1;
    char *copy = strdup(pair);
    if (copy == NULL)
        return;
    for (int i = 0; i < *count; i++)
        if (strncmp(list[i], pair, length) == 0) {
            free(list[i]);
            list[i] = copy;
            return;
        }
    list[(*count)++] = copy;
    list[*count] = NULL;
}

static size_t length_of(const char *const *list)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL)
        n++;
    return n;
}

char **environment_make(const char *const *const *lists, int list_count)
{
    size_t capacity = length_of((const char *const *)environ) + length_of(fixed) + 3;
    for (int l = 0; l < list_count; l++)
        capacity += length_of(lists[l]);
    char **out = calloc(capacity, sizeof *out);
    int count = 0;
    if (out == NULL)
        return NULL;
    for (char **pair = environ; *pair != NULL; pair++)
        if (is_allowed(*pair))
            put(out, &count, *pair);
    for (int i = 0; fixed[i] != NULL; i++)
        put(out, &count, fixed[i]);
    if (geteuid() == 0) {
        // Open MPI refuses to start as root unless told twice.
        put(out, &count, "OMPI_ALLOW_RUN_AS_ROOT=1");
        put(out, &count, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    }
    for (int l = 0; l < list_count; l++)
        for (size_t i = 0; i < length_of(lists[l]); i++)
            put(out, &count, lists[l][i]);
    return out;
}

void environment_free(char **envp)
{
    for (char **p = envp; p != NULL && *p != NULL; p++)
        free(*p);
    free(envp);
}

char **argv_append(char **argv, const char *const *more)
{
    size_t have = length_of((const char *const *)argv), extra = length_of(more);
    char **out = realloc(argv, (have + extra + 1) * sizeof *out);
    for (size_t i = 0; out != NULL && i < extra; i++)
        out[have + i] = strdup(more[i]);
    if (out != NULL)
        out[have + extra] = NULL;
    return out;
}
