// A transformer block: pre-norm attention and a pre-norm feed-forward layer, each added to the residual stream.
//
//   h = x + O attention(rope(Q n1), rope(K n1), V n1),  n1 = norm1(x)
//   y = h + D act,  act = gelu(U n2) or silu(G n2) * (U n2),  n2 = norm2(h)
//
// All that the backward needs is saved but the scores, which attention_backward recomputes from lse. Sums are formed in
// place (y += h), so no pass over the residual stream copies only.
// Source: Vaswani et al. 2017, arXiv:1706.03762; pre-norm: Xiong et al. 2020, arXiv:2002.04745; SwiGLU: Shazeer 2020,
// arXiv:2002.05202; grouped queries: Ainslie et al. 2023, arXiv:2305.13245.
#include <math.h>
#include <stdio.h>

#include "reference/models/transformer.h"

// ---- parameters ----

enum size { NONE, C, QUERIES, KEYS, F };
enum condition { ALWAYS, IF_BIAS, IF_NORM_BIAS, IF_GATE, IF_GATE_BIAS };

static const struct {
    const char *name;
    enum size rows, columns;
    enum condition when;
} role_table[ROLE_COUNT] = {
    [NORM1_WEIGHT] = {"norm1.weight", C, NONE, ALWAYS},
    [NORM1_BIAS] = {"norm1.bias", C, NONE, IF_NORM_BIAS},
    [QUERY_WEIGHT] = {"attention.query.weight", QUERIES, C, ALWAYS},
    [QUERY_BIAS] = {"attention.query.bias", QUERIES, NONE, IF_BIAS},
    [KEY_WEIGHT] = {"attention.key.weight", KEYS, C, ALWAYS},
    [KEY_BIAS] = {"attention.key.bias", KEYS, NONE, IF_BIAS},
    [VALUE_WEIGHT] = {"attention.value.weight", KEYS, C, ALWAYS},
    [VALUE_BIAS] = {"attention.value.bias", KEYS, NONE, IF_BIAS},
    [OUTPUT_WEIGHT] = {"attention.output.weight", C, QUERIES, ALWAYS},
    [OUTPUT_BIAS] = {"attention.output.bias", C, NONE, IF_BIAS},
    [NORM2_WEIGHT] = {"norm2.weight", C, NONE, ALWAYS},
    [NORM2_BIAS] = {"norm2.bias", C, NONE, IF_NORM_BIAS},
    [GATE_WEIGHT] = {"mlp.gate.weight", F, C, IF_GATE},
    [GATE_BIAS] = {"mlp.gate.bias", F, NONE, IF_GATE_BIAS},
    [UP_WEIGHT] = {"mlp.up.weight", F, C, ALWAYS},
    [UP_BIAS] = {"mlp.up.bias", F, NONE, IF_BIAS},
    [DOWN_WEIGHT] = {"mlp.down.weight", C, F, ALWAYS},
    [DOWN_BIAS] = {"mlp.down.bias", C, NONE, IF_BIAS},
};

static bool role_present(const struct model_spec *s, enum block_role role)
{
    switch (role_table[role].when) {
    case ALWAYS: return true;
    case IF_BIAS: return s->bias;
    case IF_NORM_BIAS: return s->bias && s->norm == NORM_LAYERNORM;
    case IF_GATE: return s->activation == ACTIVATION_SWIGLU;
    case IF_GATE_BIAS: return s->bias && s->activation == ACTIVATION_SWIGLU;
    }
    return false;
}

bool block_list(struct fsdp_case *c, int block, struct error *error)
{
    const struct model_spec *s = &c->model;
    const int64_t head = s->dim / s->heads;
    const int64_t size[] = {[C] = s->dim, [QUERIES] = s->heads * head, [KEYS] = s->kv_heads * head, [F] = s->ffn};
    char unit[32];
    snprintf(unit, sizeof unit, "blocks.%d", block);
    for (int role = 0; role < ROLE_COUNT; role++) {
        int dims = role_table[role].columns == NONE ? 1 : 2;
        if (role_present(s, role) &&
            table_add(c, unit, role_table[role].name, dims,
                      (int64_t[]){size[role_table[role].rows], size[role_table[role].columns]}, -1, dims == 2, error) < 0)
            return false;
    }
    return true;
}

// index[role] = the parameter's index in the table, -1 where the block has none: the layer lists those present in order.
static void find_roles(const struct model *m, const struct model_layer *layer, int index[ROLE_COUNT])
{
    for (int role = 0, next = 0; role < ROLE_COUNT; role++)
        index[role] = role_present(&m->spec->model, role) ? layer->parameters[next++] : -1;
}

// ---- memory ----

struct block_saved {
    void *mean1, *rstd1, *n1;       // (tokens), (tokens), (tokens, C)
    void *q, *k, *v, *mixed, *lse;  // (B, T, H, D), (B, T, G, D) twice, (B, T, H, D), (B, H, T)
    void *h, *mean2, *rstd2, *n2;   // (tokens, C), (tokens) twice, (tokens, C)
    void *gate, *up, *act;          // (tokens, F) each; gate with SwiGLU only
};

static size_t block_saved(const struct model *m, int64_t rows, const void *base, struct block_saved *s)
{
    const struct transformer_sizes z = transformer_sizes(m, rows);
    const size_t e = dtype_size(m->storage), a = dtype_size(m->kernels->accumulation);
    const bool gated = m->spec->model.activation == ACTIVATION_SWIGLU;
    struct carve c = {(char *)base, 0};
    s->mean1 = carve_take(&c, z.tokens, a);
    s->rstd1 = carve_take(&c, z.tokens, a);
    s->n1 = carve_take(&c, z.tokens * z.C, e);
    s->q = carve_take(&c, z.tokens * z.H * z.D, e);
    s->k = carve_take(&c, z.tokens * z.G * z.D, e);
    s->v = carve_take(&c, z.tokens * z.G * z.D, e);
    s->mixed = carve_take(&c, z.tokens * z.H * z.D, e);
    s->lse = carve_take(&c, z.tokens * z.H, a);
    s->h = carve_take(&c, z.tokens * z.C, e);
    s->mean2 = carve_take(&c, z.tokens, a);
    s->rstd2 = carve_take(&c, z.tokens, a);
    s->n2 = carve_take(&c, z.tokens * z.C, e);
    s->gate = gated ? carve_take(&c, z.tokens * z.F, e) : NULL;
    s->up = carve_take(&c, z.tokens * z.F, e);
    s->act = carve_take(&c, z.tokens * z.F, e);
    return c.used;
}

size_t block_saved_bytes(const struct model *m, int64_t rows)
{
    struct block_saved ignored;
    return block_saved(m, rows, NULL, &ignored);
}

struct block_scratch {
    void *dgate, *dup;              // (tokens, F)
    void *dn, *dh;                  // (tokens, C)
    void *dmixed, *dq, *dk, *dv;    // as mixed, q, k, v
};

static size_t block_scratch(const struct model *m, int64_t rows, void *base, struct block_scratch *s)
{
    const struct transformer_sizes z = transformer_sizes(m, rows);
    const size_t e = dtype_size(m->storage);
    struct carve c = {base, 0};
    s->dgate = m->spec->model.activation == ACTIVATION_SWIGLU ? carve_take(&c, z.tokens * z.F, e) : NULL;
    s->dup = carve_take(&c, z.tokens * z.F, e);
    s->dn = carve_take(&c, z.tokens * z.C, e);
    s->dh = carve_take(&c, z.tokens * z.C, e);
    s->dmixed = carve_take(&c, z.tokens * z.H * z.D, e);
    s->dq = carve_take(&c, z.tokens * z.H * z.D, e);
    s->dk = carve_take(&c, z.tokens * z.G * z.D, e);
    s->dv = carve_take(&c, z.tokens * z.G * z.D, e);
    return c.used;
}

size_t block_scratch_bytes(const struct model *m, int64_t rows)
{
    struct block_scratch ignored;
    return block_scratch(m, rows, NULL, &ignored);
}

double block_forward_flops(const struct model *m, int64_t rows)
{
    const struct transformer_sizes z = transformer_sizes(m, rows);
    const double n = (double)z.tokens, q = (double)(z.H * z.D), kv = (double)(z.G * z.D), c = (double)z.C;
    const double hidden = (m->spec->model.activation == ACTIVATION_SWIGLU ? 3 : 2) * c * (double)z.F;
    const double pairs = (double)z.B * (double)z.T * (double)(z.T + 1) / 2;
    return 2 * n * (2 * c * q + 2 * c * kv + hidden) + 4 * pairs * q;
}

// ---- the parts that the head shares ----

void norm_forward(const struct norm *n, const void *x, void *y, void *mean, void *rstd)
{
    const double eps = n->m->spec->model.norm_eps;
    if (n->m->spec->model.norm == NORM_LAYERNORM)
        n->m->kernels->layernorm_forward(n->rows, n->columns, eps, x, n->weight, n->bias, y, mean, rstd);
    else
        n->m->kernels->rmsnorm_forward(n->rows, n->columns, eps, x, n->weight, y, rstd);
}

void norm_backward(const struct norm *n, const void *x, const void *mean, const void *rstd, const void *dy, void *dx)
{
    if (n->m->spec->model.norm == NORM_LAYERNORM)
        n->m->kernels->layernorm_backward(n->rows, n->columns, x, n->weight, mean, rstd, dy, dx, n->dweight, n->dbias);
    else
        n->m->kernels->rmsnorm_backward(n->rows, n->columns, x, n->weight, rstd, dy, dx, n->dweight);
}

// ---- arithmetic ----

// What both passes need: sizes, where the parameters are, what is saved.
struct block {
    const struct model *m;
    const struct kernel_set *k;
    const struct model_arrays *arrays;
    struct transformer_sizes z;
    int index[ROLE_COUNT];
    struct block_saved s;
};

static struct block block_open(const struct model *m, const struct model_layer *layer, int64_t rows,
                               const struct model_arrays *arrays, const void *saved)
{
    struct block b = {.m = m, .k = m->kernels, .arrays = arrays, .z = transformer_sizes(m, rows)};
    find_roles(m, layer, b.index);
    block_saved(m, rows, saved, &b.s);
    return b;
}

static struct linear linear_of(const struct block *b, enum block_role weight, int64_t outputs, int64_t inputs)
{
    int w = b->index[weight], bias = b->index[weight + 1]; // a role's bias follows it
    return (struct linear){b->k, b->z.tokens, inputs, outputs, parameter_at(b->arrays, w), parameter_at(b->arrays, bias),
                           gradient_at(b->arrays, w), gradient_at(b->arrays, bias)};
}

static struct norm norm_of(const struct block *b, enum block_role weight)
{
    int w = b->index[weight], bias = b->index[weight + 1];
    return (struct norm){b->m, b->z.tokens, b->z.C, parameter_at(b->arrays, w), parameter_at(b->arrays, bias),
                         gradient_at(b->arrays, w), gradient_at(b->arrays, bias)};
}

struct block_linears { struct linear query, key, value, output, gate, up, down; };

static struct block_linears linears_of(const struct block *b)
{
    const int64_t q = b->z.H * b->z.D, kv = b->z.G * b->z.D, c = b->z.C, f = b->z.F;
    return (struct block_linears){
        .query = linear_of(b, QUERY_WEIGHT, q, c), .key = linear_of(b, KEY_WEIGHT, kv, c),
        .value = linear_of(b, VALUE_WEIGHT, kv, c), .output = linear_of(b, OUTPUT_WEIGHT, c, q),
        .gate = linear_of(b, GATE_WEIGHT, f, c), .up = linear_of(b, UP_WEIGHT, f, c),
        .down = linear_of(b, DOWN_WEIGHT, c, f)};
}

static void rotate(const struct block *b, bool backward, void *q, void *k)
{
    const struct transformer_sizes *z = &b->z;
    if (b->m->spec->model.position != POSITION_ROPE)
        return;
    const double theta = b->m->spec->model.rope_theta;
    (backward ? b->k->rope_backward : b->k->rope_forward)(z->B, z->T, z->H, z->D, theta, q);
    (backward ? b->k->rope_backward : b->k->rope_forward)(z->B, z->T, z->G, z->D, theta, k);
}

void block_forward(const struct model *m, const struct model_layer *layer, int64_t rows,
                   const struct model_arrays *arrays, const void *x, void *y, void *saved)
{
    const struct block b = block_open(m, layer, rows, arrays, saved);
    const struct block_linears l = linears_of(&b);
    const struct block_saved *s = &b.s;
    const struct transformer_sizes *z = &b.z;
    const struct norm norm1 = norm_of(&b, NORM1_WEIGHT), norm2 = norm_of(&b, NORM2_WEIGHT);

    norm_forward(&norm1, x, s->n1, s->mean1, s->rstd1);
    linear_forward(&l.query, s->n1, s->q);
    linear_forward(&l.key, s->n1, s->k);
    linear_forward(&l.value, s->n1, s->v);
    rotate(&b, false, s->q, s->k);
    b.k->attention_forward(z->B, z->T, z->H, z->G, z->D, 1 / sqrt((double)z->D), s->q, s->k, s->v, s->mixed, s->lse);
    linear_forward(&l.output, s->mixed, s->h);
    b.k->add(z->tokens * z->C, x, s->h);

    norm_forward(&norm2, s->h, s->n2, s->mean2, s->rstd2);
    linear_forward(&l.up, s->n2, s->up);
    if (s->gate != NULL) {
        linear_forward(&l.gate, s->n2, s->gate);
        b.k->swiglu_forward(z->tokens * z->F, s->gate, s->up, s->act);
    } else {
        b.k->gelu_forward(z->tokens * z->F, s->up, s->act);
    }
    linear_forward(&l.down, s->act, y);
    b.k->add(z->tokens * z->C, s->h, y);
}

// dh = dy + what comes back through the feed-forward layer.
static void feed_forward_backward(const struct block *b, const struct block_linears *l, const struct block_scratch *t,
                                  const void *dy)
{
    const struct block_saved *s = &b->s;
    const int64_t n = b->z.tokens * b->z.F;
    const struct norm norm2 = norm_of(b, NORM2_WEIGHT);
    linear_backward(&l->down, s->act, dy, t->dup, false);
    if (s->gate != NULL) {
        b->k->swiglu_backward(n, s->gate, s->up, t->dup, t->dgate, t->dup);
        linear_backward(&l->gate, s->n2, t->dgate, t->dn, false);
    } else {
        b->k->gelu_backward(n, s->up, t->dup, t->dup);
    }
    linear_backward(&l->up, s->n2, t->dup, t->dn, s->gate != NULL);
    norm_backward(&norm2, s->h, s->mean2, s->rstd2, t->dn, t->dh);
    b->k->add(b->z.tokens * b->z.C, dy, t->dh);
}

// dx = dh + what comes back through attention.
static void attention_backward(const struct block *b, const struct block_linears *l, const struct block_scratch *t,
                               const void *x, void *dx)
{
    const struct block_saved *s = &b->s;
    const struct transformer_sizes *z = &b->z;
    const struct norm norm1 = norm_of(b, NORM1_WEIGHT);
    linear_backward(&l->output, s->mixed, t->dh, t->dmixed, false);
    b->k->attention_backward(z->B, z->T, z->H, z->G, z->D, 1 / sqrt((double)z->D), s->q, s->k, s->v, s->mixed, s->lse,
                             t->dmixed, t->dq, t->dk, t->dv);
    rotate(b, true, t->dq, t->dk);
    linear_backward(&l->query, s->n1, t->dq, t->dn, false);
    linear_backward(&l->key, s->n1, t->dk, t->dn, true);
    linear_backward(&l->value, s->n1, t->dv, t->dn, true);
    norm_backward(&norm1, x, s->mean1, s->rstd1, t->dn, dx);
    b->k->add(z->tokens * z->C, t->dh, dx);
}

void block_backward(const struct model *m, const struct model_layer *layer, int64_t rows,
                    const struct model_arrays *arrays, const void *x, const void *saved, const void *dy, void *dx,
                    void *scratch)
{
    const struct block b = block_open(m, layer, rows, arrays, saved);
    const struct block_linears l = linears_of(&b);
    struct block_scratch t;
    block_scratch(m, rows, scratch, &t);
    feed_forward_backward(&b, &l, &t, dy);
    attention_backward(&b, &l, &t, x, dx);
}
