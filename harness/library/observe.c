// Tensors of the answer: put one by one, written whole, then told. See fsdpmark.h.
#include <stdlib.h>
#include <string.h>

#include "harness/library/handle.h"
#include "harness/protocol/memory.h"

void handle_drop(fsdpmark *f)
{
    tensors_free(&f->full);
    tensors_free(&f->local);
}

static bool put(fsdpmark *f, const char *function, struct tensors *set, unsigned what, const char *parameter, enum fsdpmark_dtype dtype,
                const int64_t *count, const void *data)
{
    const struct fsdpmark_parameter *p = handle_parameter(f, function, parameter);
    if (!p)
        return false;
    if (!what || (what & (what - 1)) || what > FSDPMARK_MOMENTUM || !dtype_is_float((enum dtype)dtype))
        return handle_fail(f, "%s: %.100s: found what %#x and type %d, expected one bit of enum fsdpmark_what and a floating-point type", function,
                           parameter, what, (int)dtype);
    if (count && (*count < 0 || *count > p->count))
        return handle_fail(f, "%s: %.100s: found %lld elements, expected at most %lld", function, parameter, (long long)*count, (long long)p->count);
    if (count && *count == 0)
        return true; // holding nothing is leaving it out
    int64_t elements = count ? *count : p->count;
    void *copy = malloc((size_t)elements * dtype_size((enum dtype)dtype) + 1); // may be large: no reason to abort
    if (!copy)
        return handle_fail(f, "%s: %.100s: found no memory for %lld elements", function, parameter, (long long)elements);
    memcpy(copy, data, (size_t)elements * dtype_size((enum dtype)dtype));
    char *name = memory_format("%s/%s", observe_name((enum observe_bit)what), parameter);
    struct tensor *t = tensors_add(set, name, (enum dtype)dtype, count ? 1 : p->dims, count ? count : p->shape, copy, false);
    free(name);
    if (!t) {
        free(copy);
        return handle_fail(f, "%s: %s of %.100s: found it a second time, expected it once", function, observe_name((enum observe_bit)what), parameter);
    }
    t->owned = true;
    return true;
}

bool fsdpmark_put(fsdpmark *f, unsigned what, const char *parameter, enum fsdpmark_dtype dtype, const void *data)
{
    return handle_open(f, __func__) && (f->job.rank != 0 || put(f, __func__, &f->full, what, parameter, dtype, NULL, data));
}

bool fsdpmark_put_local(fsdpmark *f, unsigned what, const char *parameter, enum fsdpmark_dtype dtype, int64_t count, const void *data)
{
    return handle_open(f, __func__) && put(f, __func__, &f->local, what, parameter, dtype, &count, data);
}

static bool write_set(fsdpmark *f, const char *label, const struct tensors *set, bool own)
{
    struct error error = {""};
    char *file = own ? memory_format("%s.rank%d.safetensors", label, f->job.rank) : memory_format("%s.safetensors", label);
    char *path = memory_format("%s/%s", f->writer.out_folder, file);
    bool fine = tensors_write(path, set, &error) || handle_fail(f, "%s", error.text);
    fine = fine && handle_event(f, "observed", json_pack("{s:s,s:s}", "label", label, "file", file), false);
    free(path);
    free(file);
    return fine;
}

// Nothing may be put that the instruction does not ask for: it would be a claim about another moment.
static bool asked(fsdpmark *f, const struct fsdpmark_instruction *in, const struct tensors *set)
{
    for (int i = 0; i < set->count; i++) {
        size_t size = strcspn(set->items[i].name, "/");
        bool fine = false;
        for (unsigned bit = FSDPMARK_PARAM; bit <= FSDPMARK_MOMENTUM; bit *= 2)
            fine = fine || ((in->what & bit) && strlen(observe_name((enum observe_bit)bit)) == size &&
                            strncmp(observe_name((enum observe_bit)bit), set->items[i].name, size) == 0);
        if (!fine)
            return handle_fail(f, "fsdpmark_observed: %.60s: found %.100s, expected what the instruction asks for", in->label, set->items[i].name);
    }
    return true;
}

bool fsdpmark_observed(fsdpmark *f, const struct fsdpmark_instruction *in)
{
    bool fine = handle_open(f, __func__);
    if (fine && (!in || in->verb != FSDPMARK_OBSERVE))
        fine = handle_fail(f, "fsdpmark_observed: found another instruction, expected one to observe");
    fine = fine && asked(f, in, &f->full) && asked(f, in, &f->local);
    fine = fine && (!in->local || write_set(f, in->label, &f->local, true));
    fine = fine && (f->job.rank != 0 || write_set(f, in->label, &f->full, false));
    handle_drop(f);
    return fine;
}
