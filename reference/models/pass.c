// One whole forward and backward in memory. See pass.h.
#include "reference/models/pass.h"

#include <stdlib.h>
#include <string.h>

void *model_allocate(size_t bytes)
{
    size_t rounded = (bytes / MODEL_ALIGNMENT + 1) * MODEL_ALIGNMENT;
    void *memory = aligned_alloc(MODEL_ALIGNMENT, rounded);
    return memory == NULL ? NULL : memset(memory, 0, rounded);
}

static bool allocate_calls(struct model_pass *p)
{
    size_t widest = 0;
    bool enough = true;
    for (int call = 0; call < p->m->call_count; call++) {
        size_t bytes = model_out_bytes(p->m, call, p->rows);
        widest = bytes > widest ? bytes : widest;
        p->outs[call] = call == p->m->call_count - 1 ? NULL : model_allocate(bytes);
        p->saved[call] = model_allocate(model_saved_bytes(p->m, call, p->rows));
        enough = enough && p->saved[call] != NULL && (p->outs[call] != NULL || call == p->m->call_count - 1);
    }
    p->flow[0] = model_allocate(widest);
    p->flow[1] = model_allocate(widest);
    p->scratch = model_allocate(model_scratch_bytes(p->m, p->rows));
    return enough && p->flow[0] != NULL && p->flow[1] != NULL && p->scratch != NULL;
}

bool model_pass_open(struct model_pass *p, const struct model *m, int64_t rows, struct error *error)
{
    *p = (struct model_pass){.m = m, .rows = rows};
    p->outs = calloc((size_t)m->call_count, sizeof *p->outs);
    p->saved = calloc((size_t)m->call_count, sizeof *p->saved);
    if (p->outs == NULL || p->saved == NULL || !allocate_calls(p))
        return error_set(error, "out of memory for a forward and backward of %lld rows", (long long)rows);
    return true;
}

void model_pass_close(struct model_pass *p)
{
    for (int call = 0; p->m != NULL && call < p->m->call_count; call++) {
        free(p->outs != NULL ? p->outs[call] : NULL);
        free(p->saved != NULL ? p->saved[call] : NULL);
    }
    free(p->outs);
    free(p->saved);
    free(p->flow[0]);
    free(p->flow[1]);
    free(p->scratch);
    *p = (struct model_pass){0};
}

static const void *input_of(const struct model_pass *p, int call)
{
    return call == 0 ? NULL : p->outs[call - 1];
}

void model_pass_forward(struct model_pass *p, const struct model_batch *batch, const struct model_arrays *arrays, double *loss)
{
    p->rows = batch->rows;
    *loss = 0;
    for (int call = 0; call < p->m->call_count; call++)
        model_forward(p->m, call, batch, arrays, input_of(p, call), p->outs[call], p->saved[call], p->scratch, loss);
}

void model_pass_backward(struct model_pass *p, const struct model_batch *batch, const struct model_arrays *arrays)
{
    const int last = p->m->call_count - 1;
    for (int call = last; call >= 0; call--)
        model_backward(p->m, call, batch, arrays, input_of(p, call), p->saved[call],
                       call == last ? NULL : p->flow[(call + 1) % 2], call == 0 ? NULL : p->flow[call % 2], p->scratch);
}

const void *model_pass_prediction(const struct model_pass *p)
{
    return model_prediction(p->m, p->rows, p->saved[p->m->call_count - 1]);
}
