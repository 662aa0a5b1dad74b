// What a kind of model brings: the functions behind model.h, and the helpers that they share.
//
// A kind is one file that fills one struct model_ops: a list of its parameters, its layers and calls, and
// the sizes and the arithmetic of a call. Private to this folder.
#ifndef REFERENCE_MODELS_OPS_H
#define REFERENCE_MODELS_OPS_H

#include "reference/models/model.h"

struct model_ops {
    bool (*list)(struct fsdp_case *c, struct error *error);      // table_add, in table order
    bool (*build)(struct model *m, struct error *error);         // layer_add and call_add
    size_t (*out_bytes)(const struct model *m, int call, int64_t rows);
    size_t (*saved_bytes)(const struct model *m, int call, int64_t rows);
    size_t (*scratch_bytes)(const struct model *m, int call, int64_t rows);
    double (*forward_flops)(const struct model *m, int call, int64_t rows);
    void (*forward)(const struct model *m, int call, const struct model_batch *batch, const struct model_arrays *arrays,
                    const void *in, void *out, void *saved, void *scratch, double *loss);
    void (*backward)(const struct model *m, int call, const struct model_batch *batch, const struct model_arrays *arrays,
                     const void *in, const void *saved, const void *dout, void *din, void *scratch);
    const void *(*prediction)(const struct model *m, int64_t rows, const void *saved);
};
extern const struct model_ops model_witness, model_mlp, model_transformer;

// Appends "unit.name" (or "name" where unit is "") to c->parameters. Returns its index, or -1 with an error.
int table_add(struct fsdp_case *c, const char *unit, const char *name, int dims, const int64_t *shape, int tied_to,
              bool decay, struct error *error);

// Appends a layer of all parameters of the unit, or of none where unit is NULL. Returns it; NULL: out of memory, or
// more parameters than a layer holds.
struct model_layer *layer_add(struct model *m, const char *unit, int kind, struct error *error);
// Appends a parameter (the storage it shares, if tied) to a layer.
bool layer_add_parameter(const struct model *m, struct model_layer *layer, int parameter, struct error *error);
bool call_add(struct model *m, int layer, struct error *error);

// Cuts arrays from one block of memory; with base NULL it only counts, so that sizes and pointers come from one list.
struct carve { char *base; size_t used; };
void *carve_take(struct carve *c, int64_t count, size_t element_bytes);

static inline const struct model_layer *model_layer_of(const struct model *m, int call)
{
    return &m->layers[m->calls[call]];
}

#endif
