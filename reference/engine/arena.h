// The engine's memory: one arena in the device's memory and one in the host's, every byte tagged.
//
// What: PARAM (parameters at rest), GRAD (gradients at rest), OPTIM (optimizer state), UNSHARDED (gathered parameters
//       and not yet reduced gradients), ACT (activations), COMM (staging of collectives).
// How:  both arenas are allocated once, as large as a plan that predict.c computes from the case says; taking more than
//       the plan's bytes of a tag is an error, and so is less once setup is done. Nothing is allocated inside steps.
// Why:  memory is what FSDP is for: a prediction that is asserted in every run is a claim one can rely on.
#ifndef REFERENCE_ENGINE_ARENA_H
#define REFERENCE_ENGINE_ARENA_H

#include "kernels/device.h"

enum arena_tag { ARENA_PARAM, ARENA_GRAD, ARENA_OPTIM, ARENA_UNSHARDED, ARENA_ACT, ARENA_COMM, ARENA_TAGS };

struct arena_plan { size_t bytes[ARENA_TAGS]; };

struct arena {
    const struct device *device;
    char *base;
    size_t size, used;
    struct arena_plan plan, taken;
};

// "PARAM" ...
const char *arena_tag_name(enum arena_tag tag);
// What an allocation of that many bytes occupies: rounded up to 64 bytes.
size_t arena_rounded(size_t bytes);
// Adds an allocation of count elements of size bytes to a plan.
void arena_plan_add(struct arena_plan *p, enum arena_tag tag, int64_t count, size_t size);
size_t arena_plan_total(const struct arena_plan *p);

bool arena_open(struct arena *a, const struct device *device, const struct arena_plan *plan, struct error *error);
// 64-byte aligned, zeroed at first; NULL with the error set if the plan does not hold it.
void *arena_take(struct arena *a, enum arena_tag tag, int64_t count, size_t size, struct error *error);
// Taken equals planned, tag by tag. Errors: the tag and both figures.
bool arena_check(const struct arena *a, struct error *error);
void arena_close(struct arena *a);

#endif
