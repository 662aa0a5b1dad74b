// The content key of a case: a hash of one line of text for each thing that data or truth depend on.
//
// Left out: id and family, sharding, options, checkpoint, sync and local flags of the program: they may not change the
// truth. Numbers are printed in hexadecimal, so that no digit is lost. The hash is XXH3's 128 bits (xxHash, Collet).
// The recipe `given` hashes the id as well, because its files are known by nothing else.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "reference/truth/truth.h"

static void write_model(FILE *f, const struct model_spec *m)
{
    fprintf(f, "model %s\n", model_kind_name(m->kind));
    for (int u = 0; u < m->unit_count && m->kind == MODEL_WITNESS; u++) {
        fprintf(f, "unit %s\n", m->units[u].name);
        for (int i = 0; i < m->units[u].parameter_count; i++) {
            const struct witness_parameter *p = &m->units[u].parameters[i];
            fprintf(f, "parameter %s", p->name);
            for (int d = 0; d < p->dims; d++)
                fprintf(f, " %lld", (long long)p->shape[d]);
            fputc('\n', f);
        }
    }
    if (m->kind == MODEL_MLP) {
        for (int i = 0; i < m->size_count; i++)
            fprintf(f, "size %lld\n", (long long)m->sizes[i]);
        for (int i = 0; i < m->call_count; i++)
            fprintf(f, "call %d\n", m->calls[i]);
        fprintf(f, "unused %d bias %d\n", m->unused, m->bias);
    }
    if (m->kind == MODEL_TRANSFORMER)
        fprintf(f, "layers %lld dim %lld heads %lld %lld ffn %lld vocab %lld context %lld switches %d %d %d %d %d %a %a\n",
                (long long)m->layers, (long long)m->dim, (long long)m->heads, (long long)m->kv_heads, (long long)m->ffn,
                (long long)m->vocab, (long long)m->context, m->norm, m->position, m->activation, m->tied, m->bias,
                m->norm_eps, m->rope_theta);
}

static void write_data(FILE *f, const struct fsdp_case *c)
{
    const struct data_spec *d = &c->data;
    fprintf(f, "data %s density %a std %a steps %lld micros %lld init %a uneven %d\n", d->recipe, d->density, d->std,
            (long long)d->steps, (long long)d->micros, d->init, d->uneven_tokens);
    for (int64_t i = 0; i < d->value_count; i++)
        fprintf(f, "value %a\n", d->values[i]);
    for (int64_t i = 0; i < d->pattern_count; i++)
        fprintf(f, "pattern %a\n", d->pattern[i]);
    if (strcmp(d->recipe, "given") == 0)
        fprintf(f, "id %s\n", c->id);
}

static void write_training(FILE *f, const struct fsdp_case *c)
{
    const struct precision_spec *p = &c->precision;
    const struct optimizer_spec *o = &c->optimizer;
    fprintf(f, "layer %s ranks %d rows %lld seed %llu divergent %d loss %s clip %s %a\n", layer_name(c->layer), case_data_ranks(c),
            (long long)c->global_rows, (unsigned long long)c->seed, c->divergent_init, loss_name(c->loss),
            clip_name(c->clip), c->clip == CLIP_OFF ? 0 : c->clip_limit);
    fprintf(f, "precision %s %s %s %s scale %d %a %a %a %d\n", dtype_name(p->parameter), dtype_name(p->compute),
            dtype_name(p->reduce), dtype_name(p->optimizer_state), p->loss_scale, p->scale_initial, p->scale_growth,
            p->scale_backoff, p->scale_interval);
    // Fields of the other kind are not part of case.json, so they differ between a planned case and the same one read back.
    bool adamw = o->kind == OPTIMIZER_ADAMW;
    fprintf(f, "optimizer %s %a %a %a %a %a %a %d\n", optimizer_name(o->kind), o->lr, adamw ? 0 : o->momentum, adamw ? o->beta1 : 0,
            adamw ? o->beta2 : 0, adamw ? o->eps : 0, o->weight_decay, o->no_decay);
}

static void write_program(FILE *f, const struct fsdp_case *c)
{
    for (int i = 0; i < c->program_length; i++) {
        const struct instruction *at = &c->program[i];
        fprintf(f, "%s %d %d %d %s %s %u\n", verb_name(at->verb), at->step, at->micro, at->slot,
                at->pattern ? at->pattern : "-", at->label ? at->label : "-", at->what);
    }
}

void truth_key(const struct fsdp_case *c, char hex[33])
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (f == NULL)
        abort();
    fprintf(f, "truth %d\n", TRUTH_VERSION);
    write_model(f, &c->model);
    write_data(f, c);
    write_training(f, c);
    write_program(f, c);
    fclose(f);
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(text, bytes));
    for (int i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", canonical.digest[i]);
    free(text);
}
