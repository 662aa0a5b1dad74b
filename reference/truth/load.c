// Reading a truth back, with every shape checked against its case. See truth.h.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "reference/truth/record.h"

// Every tensor of the set is "<kind>/<parameter>" of float64 in the parameter's shape.
static bool label_sound(const struct fsdp_case *c, const char *path, const struct tensors *set, struct error *error)
{
    for (int i = 0; i < set->count; i++) {
        const struct tensor *t = &set->items[i];
        const char *slash = strchr(t->name, '/');
        int p = slash == NULL ? -1 : case_find_parameter(c, slash + 1);
        if (p < 0 || t->dtype != DTYPE_F64 || t->dims != c->parameters[p].dims ||
            memcmp(t->shape, c->parameters[p].shape, (size_t)t->dims * sizeof *t->shape) != 0)
            return error_set(error, "%s: %s: found an unknown name, another type or shape, expected float64 of the parameter table", path,
                             t->name);
    }
    return true;
}

static bool read_labels(const struct fsdp_case *c, const char *folder, struct truth *t, struct error *error)
{
    char path[4096];
    for (int i = 0; i < t->label_count; i++) {
        snprintf(path, sizeof path, "%s/truth/%s.safetensors", folder, t->labels[i].label);
        if (!tensors_read(path, &t->labels[i].tensors, error) || !label_sound(c, path, &t->labels[i].tensors, error))
            return false;
    }
    return true;
}

static bool labels_complete(const struct fsdp_case *c, const struct truth *t, const char *folder, struct error *error)
{
    for (int i = 0; i < c->program_length && c->program[i].verb != VERB_STOP; i++)
        if (c->program[i].verb == VERB_OBSERVE && truth_find(t, c->program[i].label) == NULL)
            return error_set(error, "%s/truth.json: label %s is missing", folder, c->program[i].label);
    return true;
}

static bool read_set(const char *folder, const char *name, bool optional, struct tensors *out, struct error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
    FILE *f = optional ? fopen(path, "rb") : NULL;
    if (f != NULL)
        fclose(f);
    return (optional && f == NULL) || tensors_read(path, out, error);
}

bool truth_load(const struct fsdp_case *c, const char *folder, struct truth *out, struct error *error)
{
    *out = (struct truth){.folder = memory_text(folder)};
    bool ok = (strlen(folder) <= 3500 || error_set(error, "%.100s...: the path is too long", folder)) &&
              record_read(c, folder, out, error) && labels_complete(c, out, folder, error) && read_labels(c, folder, out, error) &&
              read_set(folder, "init", false, &out->init, error) && read_set(folder, "data", false, &out->data, error) &&
              read_set(folder, "noise", true, &out->noise, error);
    if (!ok)
        truth_free(out);
    return ok;
}

void truth_free(struct truth *t)
{
    for (int i = 0; i < t->label_count; i++) {
        free(t->labels[i].label);
        tensors_free(&t->labels[i].tensors);
    }
    for (int k = 0; k < t->step_count; k++)
        free(t->steps[k].micro_losses);
    free(t->labels);
    free(t->steps);
    free(t->eval_losses);
    free(t->inexact);
    free(t->folder);
    tensors_free(&t->noise);
    tensors_free(&t->init);
    tensors_free(&t->data);
    *t = (struct truth){0};
}

const struct tensors *truth_find(const struct truth *t, const char *label)
{
    for (int i = 0; i < t->label_count; i++)
        if (strcmp(t->labels[i].label, label) == 0)
            return &t->labels[i].tensors;
    return NULL;
}
