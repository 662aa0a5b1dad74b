// Digests of parameters: two runs that end in the same bits have the same one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "harness/judge/judge.h"

static void hex_of(XXH128_hash_t hash, char hex[33])
{
    snprintf(hex, 33, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

static void feed(XXH3_state_t *state, const char *name, enum dtype type, const void *data, int64_t count)
{
    XXH3_128bits_update(state, name, strlen(name) + 1);
    XXH3_128bits_update(state, dtype_name(type), strlen(dtype_name(type)) + 1);
    XXH3_128bits_update(state, data, (size_t)count * dtype_size(type));
}

// storage: DTYPE_COUNT keeps each tensor's own dtype.
static bool digest(const struct fsdp_case *c, const struct tensors *set, const char *prefix, enum dtype storage, char hex[33])
{
    XXH3_state_t *state = XXH3_createState();
    XXH3_128bits_reset(state);
    int seen = 0;
    for (int p = 0; p < c->parameter_count; p++) {
        const struct tensor *t = c->parameters[p].tied_to < 0 ? tensors_find2(set, prefix, c->parameters[p].name) : NULL;
        if (!t)
            continue;
        enum dtype type = (int)storage == DTYPE_COUNT ? t->dtype : storage;
        void *rounded = malloc((size_t)t->count * dtype_size(type) + 1);
        for (int64_t i = 0; rounded && i < t->count; i++)
            dtype_set(type, rounded, i, dtype_get(t->dtype, t->data, i));
        if (rounded)
            feed(state, c->parameters[p].name, type, rounded, t->count);
        free(rounded);
        seen++;
    }
    hex_of(XXH3_128bits_digest(state), hex);
    XXH3_freeState(state);
    return seen > 0;
}

bool judge_digest(const struct fsdp_case *c, const struct tensors *set, const char *prefix, char hex[33])
{
    return digest(c, set, prefix, (enum dtype)DTYPE_COUNT, hex);
}

bool judge_truth_digest(const struct fsdp_case *c, const struct truth *t, char hex[33])
{
    for (int i = t->label_count - 1; i >= 0; i--)
        if (digest(c, &t->labels[i].tensors, "param", c->precision.parameter, hex))
            return true;
    return false;
}
