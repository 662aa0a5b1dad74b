// Which backend a process has: what its environment asks for, else what is there.
//
//   FSDPMARK_DEVICE       auto (default): a GPU where this program can have one, else the CPU; cuda: a GPU or nothing; cpu
//   FSDPMARK_COLLECTIVES  of a GPU: nccl, mpi, or auto (default): nccl where each rank of this machine has a device of its own, else mpi
//
// Two files have these functions: choose.c where CUDA is not built in, cuda/choose_cuda.c where it is. The link of a program decides between them, so
// nothing else knows whether there is CUDA.
#ifndef REFERENCE_BACKENDS_CHOOSE_H
#define REFERENCE_BACKENDS_CHOOSE_H

#include <stdlib.h>
#include <string.h>

#include "reference/backends/backend.h"

enum chosen { CHOSEN, CHOSEN_NOT_HERE /* what is asked for cannot be had on this machine */, CHOSEN_BAD /* the environment has a word that is unknown */ };

// For that many ranks. Where a GPU was looked for and not found, rank 0 says why on stderr. error: one line, where it is not CHOSEN.
enum chosen choose_backend(int ranks, const struct backend **out, struct error *error);
// What devices this program can have, in one line; false: none, and why.
bool choose_devices(char *text, size_t size);

// Of the host's arrays: serial for one rank that MPI's launcher did not start, else MPI.
static inline const struct backend *choose_host(int ranks)
{
    bool under_mpi = getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE");
    return ranks == 1 && !under_mpi ? &backend_serial : &backend_mpi;
}

// *at: the index of the variable's word in the list, 0 (auto) where it is not set.
static inline bool choose_word(const char *variable, const char *const *words, int count, int *at, struct error *error)
{
    const char *word = getenv(variable);
    *at = 0;
    while (word && *word && *at < count && strcmp(word, words[*at]) != 0)
        ++*at;
    return *at < count || error_set(error, "%s: found '%s', expected auto, %s or %s", variable, word, words[1], words[2]);
}

enum choose_device { DEVICE_AUTO, DEVICE_CUDA, DEVICE_CPU, DEVICE_WORDS };
enum choose_collectives { COLLECTIVES_AUTO, COLLECTIVES_NCCL, COLLECTIVES_MPI, COLLECTIVES_WORDS };
static const char *const choose_device_words[] = {"auto", "cuda", "cpu"};
static const char *const choose_collectives_words[] = {"auto", "nccl", "mpi"};

static inline bool choose_asked(int *device, int *collectives, struct error *error)
{
    return choose_word("FSDPMARK_DEVICE", choose_device_words, DEVICE_WORDS, device, error) &&
           choose_word("FSDPMARK_COLLECTIVES", choose_collectives_words, COLLECTIVES_WORDS, collectives, error);
}

#endif
