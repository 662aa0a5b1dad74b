// Arenas and plans. See arena.h.
#include "reference/engine/arena.h"

const char *arena_tag_name(enum arena_tag tag)
{
    static const char *const names[ARENA_TAGS] = {"PARAM", "GRAD", "OPTIM", "UNSHARDED", "ACT", "COMM"};
    return names[tag];
}

size_t arena_rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

void arena_plan_add(struct arena_plan *p, enum arena_tag tag, int64_t count, size_t size)
{
    p->bytes[tag] += arena_rounded((size_t)count * size);
}

size_t arena_plan_total(const struct arena_plan *p)
{
    size_t total = 0;
    for (int t = 0; t < ARENA_TAGS; t++)
        total += p->bytes[t];
    return total;
}

bool arena_open(struct arena *a, const struct device *device, const struct arena_plan *plan, struct error *error)
{
    *a = (struct arena){.device = device, .plan = *plan, .size = arena_plan_total(plan)};
    a->base = device->allocate(a->size);
    return a->base || error_set(error, "no memory for %zu bytes", a->size);
}

void *arena_take(struct arena *a, enum arena_tag tag, int64_t count, size_t size, struct error *error)
{
    size_t bytes = arena_rounded((size_t)count * size);
    if (a->taken.bytes[tag] + bytes > a->plan.bytes[tag]) {
        error_set(error, "memory %s: %zu bytes taken, %zu were predicted", arena_tag_name(tag), a->taken.bytes[tag] + bytes,
                  a->plan.bytes[tag]);
        return NULL;
    }
    void *memory = a->base + a->used;
    a->used += bytes;
    a->taken.bytes[tag] += bytes;
    return memory;
}

bool arena_check(const struct arena *a, struct error *error)
{
    for (int t = 0; t < ARENA_TAGS; t++)
        if (a->taken.bytes[t] != a->plan.bytes[t])
            return error_set(error, "memory %s: %zu bytes taken, %zu were predicted", arena_tag_name((enum arena_tag)t),
                             a->taken.bytes[t], a->plan.bytes[t]);
    return true;
}

void arena_close(struct arena *a)
{
    if (a->base)
        a->device->release(a->base);
    a->base = NULL;
}
