// The predictions of known faults, tried in the order of their likelihood. See hint.h.
#include "harness/judge/hint.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judge/gradient.h"
#include "harness/judge/holdings.h"

struct trial {
    const struct evidence *e;
    const struct program_label *l;
    const struct tensors *x, *ref, *parameters;
    const char *prefix;
    const bool *differs;
    double limit; // relative distance up to which a prediction explains x
    double best;
    struct hint *out;
};

// |x - factor y| / |x| over the tensors that differ; INFINITY where y lacks one of them.
static double relative_distance(const struct trial *t, const struct tensors *y, double factor)
{
    double distance = 0, own = 0;
    for (int p = 0; p < t->e->c->parameter_count; p++) {
        const char *name = t->e->c->parameters[p].name;
        const struct tensor *a = t->differs[p] ? tensors_find2(t->x, t->prefix, name) : NULL;
        if (!a)
            continue;
        const struct tensor *b = tensors_find2(y, "grad", name);
        if (!b || b->count != a->count)
            return INFINITY;
        for (int64_t i = 0; i < a->count; i++) {
            double value = dtype_get(a->dtype, a->data, i), d = value - factor * dtype_get(b->dtype, b->data, i);
            distance += d * d;
            own += value * value;
        }
    }
    return own > 0 ? sqrt(distance / own) : INFINITY;
}

static void add_classes(struct hint *h, const char *classes)
{
    char copy[64], *save = NULL;
    snprintf(copy, sizeof copy, "%s", classes);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        size_t used = strlen(h->classes);
        if (!strstr(h->classes, word) && used + strlen(word) + 2 < sizeof h->classes)
            snprintf(h->classes + used, sizeof h->classes - used, "%s%s", used ? " " : "", word);
    }
}

static void offer(struct trial *t, const struct tensors *prediction, double factor, const char *classes, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
static void offer(struct trial *t, const struct tensors *prediction, double factor, const char *classes, const char *format, ...)
{
    double distance = relative_distance(t, prediction, factor);
    if (!judge_compare(distance, t->limit))
        return;
    if (t->best > t->limit || distance < t->best / 8) { // first that fits, or one that fits far better
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(t->out->text, sizeof t->out->text, format, arguments);
        va_end(arguments);
        t->out->classes[0] = 0;
    }
    if (distance <= t->best * 8)
        add_classes(t->out, classes);
    t->best = fmin(t->best, distance);
}

// N, 1/N, R, S, ... times the reference.
static void try_scales(struct trial *t)
{
    const struct fsdp_case *c = t->e->c;
    double cross = 0, square = 0;
    char buffer[32];
    for (int p = 0; p < c->parameter_count; p++) {
        const struct tensor *a = t->differs[p] ? tensors_find2(t->x, t->prefix, c->parameters[p].name) : NULL;
        const struct tensor *b = a ? tensors_find2(t->ref, "grad", c->parameters[p].name) : NULL;
        for (int64_t i = 0; b && i < b->count; i++) {
            double expected = dtype_get(b->dtype, b->data, i);
            cross += expected * dtype_get(a->dtype, a->data, i);
            square += expected * expected;
        }
    }
    double scalar = square > 0 ? cross / square : NAN;
    const char *name = judge_finite(scalar) ? judge_scale_name(scalar, c, buffer, sizeof buffer) : NULL;
    if (!name)
        return;
    bool hybrid = c->sharding.strategy == STRATEGY_HYBRID, one_axis = strpbrk(name, "RS") != NULL;
    bool clipped = strcmp(t->prefix, "clipped") == 0;
    const char *classes = clipped ? "Z07 Z08" : hybrid ? (one_axis ? "Z02" : "Z01 Z02") : strchr(name, 'm') ? "Z05 Z01" : "Z01";
    offer(t, t->ref, scalar, classes, "it is %s times the right gradient: a wrong %s", name, clipped ? "norm in clipping" : "divisor");
}

// Sums of microbatch gradients with wrong coefficients.
static void try_micros(struct trial *t)
{
    const struct fsdp_case *c = t->e->c;
    int m = (int)c->data.micros;
    struct tensors *g = calloc((size_t)m, sizeof *g);
    bool ok = m > 1;
    for (int i = 0; ok && i < m; i++)
        ok = gradient_of(t->e, t->l, t->parameters, (struct share){-1, i}, &g[i], NULL, NULL);
    if (ok) {
        const char *lost = c->sharding.offload == OFFLOAD_CPU ? "Z06 Z04" : "Z04";
        offer(t, &g[m - 1], 1, lost, "it is the gradient of the last microbatch only: earlier ones were lost");
        offer(t, &g[0], 1, "Z04", "it is the gradient of the first microbatch only: later ones were lost");
        const struct { const char *name; double c; } factors[] = {{"N", case_data_ranks(c)}, {"1/N", 1.0 / case_data_ranks(c)}, {"2", 2}, {"1/2", 0.5}};
        for (size_t k = 0; k < sizeof factors / sizeof *factors; k++) {
            struct tensors sum = {0};
            for (int i = 0; i < m; i++)
                gradient_add(&sum, &g[i], pow(factors[k].c, m - 1 - i));
            if (factors[k].c != 1)
                offer(t, &sum, 1, "Z05", "microbatch i of m = %d counts c^(m-1-i) times with c = %s: accumulation re-applied", m, factors[k].name);
            tensors_free(&sum);
        }
        struct tensors repeated = {0};
        for (int i = 0; i < m; i++)
            gradient_add(&repeated, &g[i], m - i);
        offer(t, &repeated, 1, "Z05", "microbatch i of m = %d counts m-i times: accumulation re-applied", m);
        tensors_free(&repeated);
    }
    for (int i = 0; i < m; i++)
        tensors_free(&g[i]);
    free(g);
}

// The gradient that results where each rank's shard holds what `of_rank` holds there, by data rank below `ranks`.
static void compose(const struct trial *t, const struct tensors *of_rank, int ranks, double factor, struct tensors *out)
{
    gradient_add(out, &of_rank[0], factor);
    for (int w = 0; w < t->e->world_size && holdings_complete(t->e, HELD_GRADIENT); w++)
        for (int p = 0, r = case_place(t->e->c, w).data; r > 0 && r < ranks && p < t->e->c->parameter_count; p++) {
            const struct held_part *part = &holdings_rank(t->e, HELD_GRADIENT, w)->parts[p];
            struct tensor *to = tensors_find2(out, "grad", t->e->c->parameters[p].name);
            const struct tensor *from = tensors_find2(&of_rank[r], "grad", t->e->c->parameters[p].name);
            for (int k = 0; to && from && k < part->count; k++)
                for (int64_t i = part->ranges[k].offset; i < part->ranges[k].offset + part->ranges[k].length; i++)
                    ((double *)to->data)[i] = factor * ((const double *)from->data)[i];
        }
}

// Reductions that left ranks out: each shard its own rank's gradient, a replica's only, all but one rank's.
static void try_ranks(struct trial *t)
{
    const struct fsdp_case *c = t->e->c;
    int n = case_data_ranks(c), shards = c->sharding.shards;
    struct tensors *g = calloc((size_t)n, sizeof *g), own = {0}, replica = {0}, *shard_sum = calloc((size_t)n, sizeof *shard_sum);
    bool ok = n > 1;
    const char *missing = c->sharding.strategy == STRATEGY_HYBRID ? "Z03 Z02" : "Z03";
    for (int r = 0; ok && r < n; r++)
        ok = gradient_of(t->e, t->l, t->parameters, (struct share){r, -1}, &g[r], NULL, NULL);
    if (ok) {
        compose(t, g, shards, n, &own);
        offer(t, &own, 1, missing, "each shard holds its own rank's gradient: the reduction is missing");
        offer(t, &own, 1.0 / n, missing, "each shard holds its own rank's gradient over N: the reduction is missing");
        offer(t, &g[0], n, missing, "it is the gradient of rank 0's data only: the reduction is missing");
        offer(t, &g[0], 1, missing, "it is rank 0's share only: the reduction is missing");
        for (int r = 0; r < shards; r++)
            gradient_add(&replica, &g[r], 1);
        if (c->sharding.replicas > 1 && shards > 1) {
            offer(t, &replica, c->sharding.replicas, "Z03 Z02", "it is the mean over replica 0 only: the reduction over replicas is missing");
            offer(t, &replica, 1, "Z03 Z02", "it is replica 0's share only: the reduction over replicas is missing");
            for (int s = 0; s < shards; s++)
                for (int r = s; r < n; r += shards)
                    gradient_add(&shard_sum[s], &g[r], 1);
            struct tensors across = {0};
            compose(t, shard_sum, shards, shards, &across);
            offer(t, &across, 1, "Z03 Z02", "each shard holds the mean over its replicas only: the reduction over shards is missing");
            tensors_free(&across);
        }
        for (int r = 0; r < n && n > 2; r++) {
            struct tensors rest = {0};
            gradient_add(&rest, t->ref, 1);
            gradient_add(&rest, &g[r], -1);
            offer(t, &rest, 1, missing, "the share of rank %d is missing from the sum", r);
            tensors_free(&rest);
        }
    }
    for (int r = 0; r < n; r++) {
        tensors_free(&g[r]);
        tensors_free(&shard_sum[r]);
    }
    tensors_free(&own);
    tensors_free(&replica);
    free(g);
    free(shard_sum);
}

// The gradient at parameters of an earlier step, and the reference plus what an earlier gradient left behind.
static void try_history(struct trial *t)
{
    const struct fsdp_case *c = t->e->c;
    for (int at = t->l->parameters_at - 1; at >= 0; at--) {
        const struct instruction *n = &c->program[at];
        const struct observed *o = n->verb == VERB_OBSERVE ? evidence_find(t->e, n->label) : NULL;
        struct tensors old;
        if (!o)
            continue;
        if (n->what & OBSERVE_PARAM && gradient_of(t->e, t->l, &o->full, SHARE_ALL, &old, NULL, NULL)) {
            offer(t, &old, 1, c->sharding.activation_checkpointing ? "Z15 Z30" : "Z15", "it is the gradient at the parameters of label %s: stale parameters", n->label);
            tensors_free(&old);
        }
        if (n->what & OBSERVE_GRAD) {
            struct tensors dirty = {0};
            gradient_add(&dirty, t->ref, 1);
            gradient_add(&dirty, &o->full, 1);
            offer(t, &dirty, 1, "Z18", "it is the right gradient plus that of label %s: a buffer was not cleared", n->label);
            tensors_free(&dirty);
        }
    }
}

static void try_model(struct trial *t)
{
    const struct fsdp_case *c = t->e->c;
    struct tensors g = {0};
    if (gradient_normalised_by_rank(t->e, t->l, t->parameters, &g, NULL))
        offer(t, &g, 1, "Z09", "each rank was normalised by its own tokens, not by those of all ranks");
    tensors_free(&g);
    if (gradient_untied(t->e, t->l, t->parameters, &g, NULL)) {
        offer(t, &g, 1, "Z10", "it is the gradient of the embedding's use only: the output layer's is missing");
        struct tensor *embed = tensors_find(&g, "grad/embed.weight"), *head = tensors_find(&g, "grad/head.weight");
        if (embed && head && embed->count == head->count)
            memcpy(embed->data, head->data, (size_t)head->count * sizeof(double));
        offer(t, &g, 1, "Z10", "it is the gradient of the output layer's use only: the embedding's is missing");
    }
    tensors_free(&g);
    if (gradient_by_call(t->e, t->l, t->parameters, &g, NULL))
        for (int call = 0; call < c->model.call_count; call++) {
            struct tensors rest = {0};
            char from[64], to[64];
            gradient_add(&rest, t->ref, 1);
            for (int bias = 0; bias < 2; bias++) {
                snprintf(from, sizeof from, "grad/layers.%d.%s", call, bias ? "bias" : "weight");
                snprintf(to, sizeof to, "grad/layers.%d.%s", c->model.calls[call], bias ? "bias" : "weight");
                struct tensor *a = tensors_find(&g, from), *b = tensors_find(&rest, to);
                for (int64_t i = 0; a && b && i < b->count; i++)
                    ((double *)b->data)[i] -= ((const double *)a->data)[i];
            }
            offer(t, &rest, 1, "Z12", "the gradient of call %d (of layers.%d) is missing", call, c->model.calls[call]);
            tensors_free(&rest);
        }
    tensors_free(&g);
}

// All values fit into a narrower type although the case asks for a wider one.
static void try_precision(struct trial *t)
{
    const struct fsdp_case *c = t->e->c;
    int64_t near = 0, wide = 0, count = 0;
    if (c->precision.reduce != DTYPE_F32 || (c->precision.compute != DTYPE_F32 && case_data_ranks(c) == 1))
        return;
    for (int p = 0; p < c->parameter_count; p++) {
        const struct tensor *a = t->differs[p] ? tensors_find2(t->x, t->prefix, c->parameters[p].name) : NULL;
        const struct tensor *b = a ? tensors_find2(t->ref, "grad", c->parameters[p].name) : NULL;
        for (int64_t i = 0; b && i < b->count && b->count == a->count; i++) {
            double x = dtype_get(a->dtype, a->data, i), r = dtype_get(b->dtype, b->data, i);
            if (bf16_to_f32(bf16_from_f64(x)) != x)
                return;
            near += fabs(x - r) <= 4 * 0x1p-8 * fabs(r) && x != 0;
            wide += bf16_to_f32(bf16_from_f64(r)) != r;
            count += x != 0;
        }
    }
    // small integers fit into any type: only references that do not can tell
    if (count > 0 && 10 * near >= 9 * count && 4 * wide >= count && t->best > t->limit) {
        snprintf(t->out->text, sizeof t->out->text, "every value fits into bf16 and is near the right one: a reduction or a product ran in bf16");
        snprintf(t->out->classes, sizeof t->out->classes, "Z19");
        t->best = 0;
    }
}

void hint_gradient(const struct evidence *e, const struct program_label *l, const struct tensors *x, const char *prefix,
                   const struct tensors *ref, const struct tensors *parameters, const bool *differs, double tolerance, struct hint *out)
{
    *out = (struct hint){{0}, {0}};
    struct trial t = {.e = e, .l = l, .x = x, .ref = ref, .parameters = parameters, .prefix = prefix, .differs = differs,
                      .best = INFINITY, .out = out};
    double unexplained = relative_distance(&t, ref, 1);
    t.limit = fmax(tolerance, judge_finite(unexplained) ? unexplained / 32 : 0);
    if (!(unexplained > tolerance))
        t.limit = unexplained / 32;
    try_scales(&t);
    if (l->gradient_step >= 0 && parameters) {
        try_micros(&t);
        try_ranks(&t);
        try_model(&t);
        try_history(&t);
    }
    try_precision(&t);
}

void hint_update(const struct evidence *e, const struct tensor *x, const struct tensor *ref, const struct tensor *before, struct hint *out)
{
    *out = (struct hint){{0}, {0}};
    double cross = 0, square = 0, moved = 0, off = 0;
    for (int64_t i = 0; i < x->count && x->count == ref->count && x->count == before->count; i++) {
        double start = dtype_get(before->dtype, before->data, i);
        double dx = dtype_get(x->dtype, x->data, i) - start, dr = dtype_get(ref->dtype, ref->data, i) - start;
        cross += dx * dr;
        square += dr * dr;
        moved += dx * dx;
        off += (dx - dr) * (dx - dr);
    }
    char name[32];
    double a = square > 0 ? cross / square : NAN, rest = square > 0 ? sqrt(fmax(moved - a * cross, 0) / square) : NAN;
    if (square > 0 && moved == 0) {
        // a whole step lost in a wide type cannot be rounding
        bool tiny = sqrt(square / (double)x->count) < 0x1p-7;
        snprintf(out->text, sizeof out->text, "it did not move at all, though its gradient is right");
        snprintf(out->classes, sizeof out->classes, "%s", tiny && e->c->precision.compute == DTYPE_BF16 ? "Z20 Z22" : "Z22");
    } else if (judge_finite(a) && rest < 1e-3 && fabs(a - 1) > 1e-3) {
        const char *known = judge_scale_name(a, e->c, name, sizeof name);
        snprintf(out->text, sizeof out->text, "its step is %.6g%s%s%s times the right one, though its gradient is right", a, known ? " (" : "", known ? known : "", known ? ")" : "");
        snprintf(out->classes, sizeof out->classes, "Z23");
    } else if (off > 0)
        snprintf(out->text, sizeof out->text, "its step differs by %.3g of its length, though its gradient is right", square > 0 ? sqrt(off / square) : INFINITY);
}
