// What follows from the fields of a draft: defaults by layer and kind, rows, mesh, parameters.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cases/draft.h"
#include "harness/protocol/memory.h"
#include "reference/models/model.h"

static void finish_model(struct model_spec *m)
{
    if (m->kind == MODEL_MLP && m->size_count > 1 && m->call_count == 0) {
        free(m->calls);
        m->call_count = m->size_count - 1;
        m->calls = memory_zeros((size_t)m->call_count, sizeof *m->calls);
        for (int i = 0; i < m->call_count; i++)
            m->calls[i] = i;
    }
    m->kv_heads = m->kv_heads ? m->kv_heads : m->heads;
    m->ffn = m->ffn ? m->ffn : 4 * m->dim;
}

static void finish_data(struct data_spec *d, enum case_layer layer)
{
    static const char *const by_layer[] = {[LAYER_EXACT] = "exact", [LAYER_WITNESS] = "values", [LAYER_CALIBRATED] = "gaussian", [LAYER_MEASURED] = "gaussian"};
    if (!d->recipe)
        d->recipe = memory_text(by_layer[layer]);
    if (d->pattern_count == 0) {
        free(d->pattern);
        d->pattern = memory_copy(&(double){1}, 1, sizeof *d->pattern);
        d->pattern_count = 1;
    }
}

static void finish_optimizer(struct optimizer_spec *o)
{
    bool sgd = o->kind == OPTIMIZER_SGD;
    if (isnan(o->lr))
        o->lr = sgd ? 0.5 : 0.001;
    if (isnan(o->weight_decay))
        o->weight_decay = sgd ? 0 : 0.01;
}

// The factorization R x S of n nearest a square, R <= S.
static void square_mesh(int n, int *replicas, int *shards)
{
    *replicas = 1;
    for (int r = 1; r * r <= n; r++)
        if (n % r == 0)
            *replicas = r;
    *shards = n / *replicas;
}

static void finish_mesh(struct sharding_spec *s, int n)
{
    if (s->strategy == STRATEGY_HYBRID && s->replicas == 0)
        square_mesh(n, &s->replicas, &s->shards);
    if (s->strategy == STRATEGY_HYBRID)
        return;
    s->replicas = s->strategy == STRATEGY_NONE ? n : 1;
    s->shards = s->strategy == STRATEGY_NONE ? 1 : n;
}

bool draft_finish(struct draft *d, struct document *doc, const struct node *at, struct error *error)
{
    struct fsdp_case *c = &d->c;
    struct error problem = {""};
    if (!d->name || !*d->name || d->name[strspn(d->name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")])
        return node_error(doc, node_get(at, "name") ? node_get(at, "name") : at, error, "found name '%.60s', expected letters, digits, '_', '-'",
                          d->name ? d->name : "");
    if (!d->title)
        return node_error(doc, at, error, "case '%.60s': found no title, expected one line", d->name);
    if ((int)c->layer < 0)
        return node_error(doc, at, error, "case '%.60s': found no layer, expected exact, witness, calibrated or measured", d->name);
    if ((int)c->model.kind < 0)
        return node_error(doc, at, error, "case '%.60s': found no model, expected one with its kind", d->name);
    if (d->mesh_all)
        return node_error(doc, node_get(at, "mesh"), error, "found mesh all outside a matrix, expected auto or [R, S]");
    finish_model(&c->model);
    finish_data(&c->data, c->layer);
    finish_optimizer(&c->optimizer);
    finish_mesh(&c->sharding, case_data_ranks(c));
    if ((int)c->loss < 0)
        c->loss = c->layer == LAYER_EXACT ? LOSS_SUM : LOSS_MEAN_OF_TOKENS;
    if (c->clip == CLIP_OFF && c->clip_limit > 0)
        c->clip = CLIP_L2;
    if (d->rows_per_rank)
        c->global_rows = d->rows_per_rank * case_data_ranks(c);
    if (!draft_program(d, doc, at, error))
        return false;
    if (!model_parameter_table(c, &problem))
        return node_error(doc, node_get(at, "model") ? node_get(at, "model") : at, error, "case '%.60s': model: %s", d->name, problem.text);
    return true;
}
