// Fields of a case by their dotted paths, its tables, and its tensors. See fsdpmark.h.
//
// The paths are looked up in the document that case.json is, so that a new field of the protocol needs no new function.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/library/handle.h"
#include "harness/protocol/memory.h"

_Static_assert((int)FSDPMARK_MICRO == (int)VERB_MICRO && (int)FSDPMARK_FORWARD == (int)VERB_FORWARD &&
               (int)FSDPMARK_BACKWARD == (int)VERB_BACKWARD && (int)FSDPMARK_EVAL == (int)VERB_EVAL && (int)FSDPMARK_CLIP == (int)VERB_CLIP &&
               (int)FSDPMARK_STEP == (int)VERB_STEP && (int)FSDPMARK_ZERO_GRAD == (int)VERB_ZERO_GRAD &&
               (int)FSDPMARK_FREEZE == (int)VERB_FREEZE && (int)FSDPMARK_UNFREEZE == (int)VERB_UNFREEZE && (int)FSDPMARK_SAVE == (int)VERB_SAVE &&
               (int)FSDPMARK_LOAD == (int)VERB_LOAD && (int)FSDPMARK_OBSERVE == (int)VERB_OBSERVE && (int)FSDPMARK_OBSERVE + 1 == (int)VERB_STOP,
               "verbs have the numbers that were published");
_Static_assert((int)FSDPMARK_PARAM == (int)OBSERVE_PARAM && (int)FSDPMARK_GRAD == (int)OBSERVE_GRAD && (int)FSDPMARK_CLIPPED == (int)OBSERVE_CLIPPED &&
               (int)FSDPMARK_EXP_AVG == (int)OBSERVE_EXP_AVG && (int)FSDPMARK_EXP_AVG_SQ == (int)OBSERVE_EXP_AVG_SQ &&
               (int)FSDPMARK_MOMENTUM == (int)OBSERVE_MOMENTUM, "so have the bits of observations");
_Static_assert((int)FSDPMARK_F32 == (int)DTYPE_F32 && (int)FSDPMARK_F64 == (int)DTYPE_F64 && (int)FSDPMARK_BF16 == (int)DTYPE_BF16 &&
               (int)FSDPMARK_F16 == (int)DTYPE_F16 && (int)FSDPMARK_I32 == (int)DTYPE_I32 && (int)FSDPMARK_I64 == (int)DTYPE_I64,
               "so have the types");

// The element of a list or mapping whose name is the first `size` characters of path.
static struct node *child(const struct node *node, const char *path, size_t size)
{
    char *end;
    if (!node || node->kind == NODE_SCALAR)
        return NULL;
    if (node->kind == NODE_SEQUENCE) {
        long i = strtol(path, &end, 10);
        return size > 0 && end == path + size && i >= 0 && i < node->count ? node->items[i] : NULL;
    }
    for (int i = 0; i < node->count; i++)
        if (strlen(node->keys[i]) == size && strncmp(node->keys[i], path, size) == 0)
            return node->items[i];
    return NULL;
}

// The node at a path, or NULL; *last is the deepest one that is there.
static const struct node *find(const fsdpmark *f, const char *path, const struct node **last)
{
    const struct node *node = f->document.root;
    *last = node;
    for (const char *at = path; node; at += strcspn(at, ".") + 1) {
        size_t size = strcspn(at, ".");
        node = child(node, at, size);
        *last = node ? node : *last;
        if (!at[size])
            break;
    }
    return node;
}

static bool missing(fsdpmark *f, const char *path, const struct node *last)
{
    char list[400] = "no fields below";
    if (last->kind == NODE_SEQUENCE)
        snprintf(list, sizeof list, "a number below %d", last->count);
    const char **names = memory_zeros((size_t)last->count + 1, sizeof *names);
    for (int i = 0; last->kind == NODE_MAPPING && i < last->count; i++)
        names[i] = last->keys[i];
    if (last->kind == NODE_MAPPING && last->count > 0)
        name_list(names, list, sizeof list);
    handle_fail(f, "%s:%d: %.100s: found no such field, expected %s", f->where, last->line, path, list);
    free(names);
    return false;
}

static const struct node *scalar(fsdpmark *f, const char *function, const char *path)
{
    const struct node *last, *node;
    if (!handle_open(f, function))
        return NULL;
    node = find(f, path, &last);
    if (!node)
        return missing(f, path, last), NULL;
    return node;
}

static bool other_kind(fsdpmark *f, const char *path, const struct node *node, const char *expected)
{
    char found[100];
    return handle_fail(f, "%s:%d: %.100s: found %s, expected %s", f->where, node->line, path, node_describe(node, found, sizeof found), expected);
}

const char *fsdpmark_text(fsdpmark *f, const char *path)
{
    const struct node *node = scalar(f, __func__, path);
    if (node && (node->kind != NODE_SCALAR || node_is_null(node)))
        return other_kind(f, path, node, "a text"), NULL;
    return node ? node->text : NULL;
}

int64_t fsdpmark_integer(fsdpmark *f, const char *path)
{
    const struct node *node = scalar(f, __func__, path);
    int64_t value = 0;
    if (node && !node_integer(node, &value))
        other_kind(f, path, node, "a whole number");
    return value;
}

double fsdpmark_number(fsdpmark *f, const char *path)
{
    const struct node *node = scalar(f, __func__, path);
    double value = 0;
    if (node && !node_number(node, &value))
        other_kind(f, path, node, "a number");
    return value;
}

bool fsdpmark_flag(fsdpmark *f, const char *path)
{
    const struct node *node = scalar(f, __func__, path);
    bool value = false;
    if (node && !node_flag(node, &value))
        other_kind(f, path, node, "true or false");
    return value;
}

bool fsdpmark_is(fsdpmark *f, const char *path, const char *text)
{
    const char *found = fsdpmark_text(f, path);
    return found && strcmp(found, text) == 0;
}

int fsdpmark_length(fsdpmark *f, const char *path)
{
    const struct node *last, *node = handle_open(f, __func__) ? find(f, path, &last) : NULL;
    return !node || node_is_null(node) ? 0 : node->kind == NODE_SCALAR ? 1 : node->count;
}

const struct fsdpmark_parameter *fsdpmark_parameter_at(fsdpmark *f, int i)
{
    return handle_open(f, __func__) && i >= 0 && i < f->c.parameter_count ? &f->parameters[i] : NULL;
}

const struct fsdpmark_instruction *fsdpmark_instruction_at(fsdpmark *f, int i)
{
    return handle_open(f, __func__) && i >= 0 && i < f->program_length ? &f->program[i] : NULL;
}

static const struct fsdpmark_tensor *view(fsdpmark *f, const struct tensors *set, const char *name, int first_view, const char *file)
{
    const struct tensor *t = tensors_find(set, name);
    if (!t)
        return handle_fail(f, "%s/%s.safetensors: found no tensor '%.100s', expected one", f->folder, file, name), NULL;
    struct fsdpmark_tensor *v = &f->views[first_view + (t - set->items)];
    *v = (struct fsdpmark_tensor){.name = t->name, .dtype = (enum fsdpmark_dtype)t->dtype, .dims = t->dims, .count = t->count, .data = t->data};
    memcpy(v->shape, t->shape, sizeof t->shape);
    return v;
}

const struct fsdpmark_tensor *fsdpmark_init(fsdpmark *f, const char *parameter)
{
    return handle_open(f, __func__) ? view(f, &f->init, parameter, 2 * f->data.count, "init") : NULL;
}

const struct fsdpmark_tensor *fsdpmark_data(fsdpmark *f, const char *name)
{
    return handle_open(f, __func__) ? view(f, &f->data, name, f->data.count, "data") : NULL;
}

bool fsdpmark_rows(fsdpmark *f, int64_t *first, int64_t *end)
{
    *first = *end = 0;
    if (!handle_open(f, __func__))
        return false;
    case_rows(&f->c, case_place(&f->c, f->job.rank).data, case_data_ranks(&f->c), first, end);
    return true;
}

const struct fsdpmark_tensor *fsdpmark_batch(fsdpmark *f, const char *name, int step, int micro)
{
    const struct fsdpmark_tensor *whole = fsdpmark_data(f, name);
    int64_t first, end, row = 1;
    if (!whole || !fsdpmark_rows(f, &first, &end))
        return NULL;
    if (whole->dims < 3 || step < 0 || step >= whole->shape[0] || micro < 0 || micro >= whole->shape[1] || whole->shape[2] != f->c.global_rows)
        return handle_fail(f, "fsdpmark_batch: %.100s: found step %d and microbatch %d of a tensor of %d dimensions, expected them inside (steps, micros, G, ...)",
                           name, step, micro, whole->dims), NULL;
    struct fsdpmark_tensor *v = &f->views[whole - &f->views[f->data.count]];
    *v = (struct fsdpmark_tensor){.name = whole->name, .dtype = whole->dtype, .dims = whole->dims - 2};
    memcpy(v->shape, whole->shape + 2, (size_t)v->dims * sizeof *v->shape);
    for (int k = 1; k < v->dims; k++)
        row *= v->shape[k];
    v->shape[0] = end - first;
    v->count = v->shape[0] * row;
    int64_t from = ((step * whole->shape[1] + micro) * whole->shape[2] + first) * row;
    v->data = (const char *)whole->data + (size_t)from * dtype_size((enum dtype)whole->dtype);
    return v;
}

// The table of "The loss" in docs/protocol.md.
double fsdpmark_loss_factor(fsdpmark *f, int step, int micro)
{
    const struct fsdpmark_tensor *w = fsdpmark_batch(f, "weight", step, micro);
    double sum = 0, ranks = w ? case_data_ranks(&f->c) : 0;
    if (w && w->dtype != FSDPMARK_F32)
        return handle_fail(f, "%s/data.safetensors: weight: found type %s, expected f32", f->folder, dtype_name((enum dtype)w->dtype)), 0;
    if (!w || f->c.loss == LOSS_SUM)
        return w ? ranks : 0;
    const float *weights = w->data;
    int64_t count = w->count;
    if (f->c.loss == LOSS_MEAN_OF_TOKENS) { // of all ranks and all microbatches of the step
        w = fsdpmark_data(f, "weight");
        count = w->count / w->shape[0];
        weights = (const float *)w->data + step * count;
    }
    for (int64_t i = 0; i < count; i++)
        sum += weights[i];
    return sum == 0 ? 0 : f->c.loss == LOSS_MEAN_OF_TOKENS ? ranks / sum : 1 / sum;
}
