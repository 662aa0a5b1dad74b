// The names of probes, of what they count and of its types. See summary.h.
#include <stdio.h>
#include <string.h>

#include "harness/probes/summary.h"

static const char *const probe_names[PROBE_IDS] = {"heap", "socket", "mpi", "nccl", "cuda", "papi", "wait"};
static const char *const op_names[PROBE_OPS] = {"none", "all-gather", "reduce-scatter", "all-reduce", "broadcast", "reduce",
                                                "gather", "scatter", "all-to-all", "barrier", "send", "receive"};
static const struct { const char *name; int bytes; } types[PROBE_TYPES] = {
    {"other", 0}, {"f32", 4}, {"f64", 8}, {"bf16", 2}, {"f16", 2}, {"byte", 1}, {"i32", 4}, {"i64", 8}, {"u16", 2}};

const char *probe_name(enum probe_id id) { return (unsigned)id < PROBE_IDS ? probe_names[id] : "unknown"; }
const char *probe_op_name(enum probe_op op) { return (unsigned)op < PROBE_OPS ? op_names[op] : "unknown"; }
const char *probe_type_name(enum probe_type t) { return (unsigned)t < PROBE_TYPES ? types[t].name : "unknown"; }
int probe_type_bytes(enum probe_type t) { return (unsigned)t < PROBE_TYPES ? types[t].bytes : 0; }

static bool add(const char *word, size_t size, unsigned *set)
{
    for (int i = 0; i < PROBE_IDS; i++)
        if (strlen(probe_names[i]) == size && strncmp(probe_names[i], word, size) == 0) {
            *set |= 1u << i;
            return true;
        }
    return false;
}

bool probe_set(const char *words, unsigned *set, struct error *error)
{
    *set = 0;
    if (strcmp(words, "none") == 0)
        return true;
    for (const char *at = words;; at++) {
        size_t size = strcspn(at, ", ");
        if (!add(at, size, set))
            return error_set(error, "found probe '%.*s', expected none, or some of heap,socket,mpi,nccl,cuda,papi,wait", (int)size, at);
        at += size;
        if (*at == 0)
            return true;
    }
}

void probe_set_text(unsigned set, char text[64])
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < PROBE_IDS; i++)
        if (set >> i & 1)
            used += (size_t)snprintf(text + used, 64 - used, "%s%s", used > 0 ? "," : "", probe_names[i]);
}
