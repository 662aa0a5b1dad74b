// Sums of |terms| and their lowest bits, followed through a program. See certificate.h.
#include "reference/truth/certificate.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "reference/truth/certificate_terms.h"

enum { MOST_SUMS = 1 << 22 };

// By the bits of a double (1 sign, 11 exponent, 52 fraction): the search asks this of every term.
double certificate_low_bit(double x)
{
    uint64_t bits, low;
    double value;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t exponent = bits >> 52 & 0x7ff, fraction = bits & 0xfffffffffffffu;
    if (x == 0)
        return INFINITY;
    if (exponent == 0x7ff)
        return 0;
    const int zeros = __builtin_ctzll(fraction | (uint64_t)1 << 52);
    if (exponent + (uint64_t)zeros <= 52)
        return ldexp(1, (int)(exponent == 0 ? 1 : exponent) - 1075 + zeros); // it is subnormal
    low = (exponent + (uint64_t)zeros - 52) << 52;
    memcpy(&value, &low, sizeof value);
    return value;
}

// ---- one reduction ----

struct range { int bits; double scale, smallest, largest; }; // scale = 2^bits

static struct range range_of(enum dtype type)
{
    switch (type) {
    case DTYPE_F64: return (struct range){53, 0x1p53, DBL_TRUE_MIN, DBL_MAX};
    case DTYPE_BF16: return (struct range){8, 0x1p8, 0x1p-133, 0x1.fep127};
    case DTYPE_F16: return (struct range){11, 0x1p11, 0x1p-24, 65504};
    default: return (struct range){24, 0x1p24, FLT_TRUE_MIN, FLT_MAX};
    }
}

bool certificate_note(struct certificate *k, enum dtype type, double sum, double low, bool update, const char *what,
                      const char *name)
{
    const struct range r = range_of(type);
    if (sum == 0)
        return true;
    if (!(sum <= low * k->ratio))
        k->ratio = sum / low;
    if (sum <= low * r.scale && sum <= r.largest && low >= r.smallest)
        return true;
    bool *exact = update ? &k->exact_updates : &k->exact_gradients;
    if (k->exact_gradients && k->exact_updates)
        snprintf(k->why, sizeof k->why, "%s of %.100s at N = %d: terms sum up to %g with a lowest bit of %g: %.1f bits, but %s holds %d",
                 what, name, k->ranks, sum, low, log2(sum / low), dtype_name(type), r.bits);
    *exact = false;
    return false;
}

// ---- sums of terms ----

bool certificate_open(struct certificate *k, const struct fsdp_case *c, int ranks, struct error *error)
{
    const size_t n = (size_t)c->parameter_count;
    int64_t elements = 0;
    *k = (struct certificate){.c = c, .ranks = ranks, .exact_gradients = true, .exact_updates = true, .smallest_share = 1, .ratio = 1};
    for (int p = 0; p < c->parameter_count; p++)
        elements += c->parameters[p].count;
    if (c->model.kind == MODEL_TRANSFORMER)
        return error_set(error, "no certificate for a transformer: its exp and square roots are never exact");
    if (elements > MOST_SUMS / ranks)
        return error_set(error, "no certificate for %lld parameters on %d ranks: too many to certify", (long long)elements, ranks);
    k->sums = memory_zeros(n * (size_t)ranks, sizeof *k->sums);
    k->micro = memory_zeros(n, sizeof *k->micro);
    for (int p = 0; p < c->parameter_count; p++) {
        const size_t count = (size_t)c->parameters[p].count;
        k->micro[p] = memory_zeros(count, sizeof(double));
        for (int r = 0; r < ranks; r++) {
            struct certificate_sums *s = &k->sums[(size_t)r * n + (size_t)p];
            s->total = memory_zeros(count * 4, sizeof(double));
            s->low = s->total + count;
            s->low_mean = s->low + count;
            s->value = s->low_mean + count;
        }
    }
    certificate_zero(k);
    return true;
}

void certificate_close(struct certificate *k)
{
    for (int i = 0; k->sums != NULL && i < k->ranks * k->c->parameter_count; i++)
        free(k->sums[i].total);
    for (int p = 0; k->micro != NULL && p < k->c->parameter_count; p++)
        free(k->micro[p]);
    free(k->sums);
    free(k->micro);
    *k = (struct certificate){0};
}

void certificate_zero(struct certificate *k)
{
    for (int i = 0; i < k->ranks * k->c->parameter_count; i++)
        for (int64_t e = 0; e < k->c->parameters[i % k->c->parameter_count].count; e++) {
            k->sums[i].total[e] = k->sums[i].value[e] = 0;
            k->sums[i].low[e] = k->sums[i].low_mean[e] = INFINITY;
        }
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

void certificate_term(const struct certificate_terms *t, int parameter, int64_t element, double factor, double other)
{
    struct certificate_sums *s = &t->sums[parameter];
    const double term = factor * other;
    if (term == 0 || !t->wanted[parameter])
        return;
    s->total[element] += fabs(term);
    s->low[element] = smaller(s->low[element], certificate_low_bit(factor) * certificate_low_bit(other));
    s->low_mean[element] = smaller(s->low_mean[element], certificate_low_bit(term / t->k->ranks));
    s->value[element] += term;
    t->k->micro[parameter][element] += term;
}

// ---- anti-vacuity ----

static bool all_zero(const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] != 0)
            return false;
    return true;
}

static void note_vacuous(struct certificate *k, const char *who, int which, const char *name)
{
    if (!k->vacuous)
        snprintf(k->vacuous_why, sizeof k->vacuous_why, "%s %d of %d ranks contributes nothing to the gradient of %.100s", who,
                 which, k->ranks, name);
    k->vacuous = true;
}

static bool wanted(const struct serial *s, int p)
{
    return s->used[p] && !s->frozen[p];
}

// ---- following a program ----

bool certificate_micro(struct certificate *k, struct serial *s, int step, int micro, struct error *error)
{
    const int n = k->c->parameter_count;
    bool *want = memory_zeros((size_t)n, sizeof *want), ok = true;
    for (int p = 0; p < n; p++) {
        want[p] = wanted(s, p);
        memset(k->micro[p], 0, (size_t)k->c->parameters[p].count * sizeof(double));
    }
    for (int rank = 0; ok && rank < k->ranks; rank++) {
        struct certificate_terms t = {k, s, want, &k->sums[rank * n], step, micro, rank};
        ok = certificate_add_terms(&t, error);
    }
    for (int p = 0; ok && p < n; p++)
        if (want[p] && all_zero(k->micro[p], k->c->parameters[p].count))
            note_vacuous(k, "microbatch", micro, k->c->parameters[p].name);
    free(want);
    return ok;
}

// The sum over ranks of one element, and its mean against g.
static double element_gradient(struct certificate *k, int p, int64_t e)
{
    const struct fsdp_case *c = k->c;
    const char *name = c->parameters[p].name;
    const double scale = c->precision.loss_scale == LOSS_SCALE_NONE ? 1 : c->precision.scale_initial;
    double total = 0, low = INFINITY, low_mean = INFINITY, value = 0;
    for (int r = 0; r < k->ranks; r++) {
        const struct certificate_sums *s = &k->sums[r * c->parameter_count + p];
        certificate_note(k, c->precision.compute, s->total[e] * scale, s->low[e] * scale, false, "a rank's gradient", name);
        total += s->total[e];
        low = smaller(low, s->low[e]);
        low_mean = smaller(low_mean, s->low_mean[e]);
        value += s->value[e];
    }
    certificate_note(k, c->precision.reduce, total * scale, low * scale, false, "the sum over ranks", name);
    certificate_note(k, c->precision.reduce, total / k->ranks * scale, low_mean * scale, false, "the mean over ranks", name);
    certificate_note(k, c->precision.parameter, total / k->ranks, low_mean, false, "the gradient", name);
    return value / k->ranks;
}

void certificate_gradients(struct certificate *k, const struct serial *s, double *const *g)
{
    const int n = k->c->parameter_count;
    for (int p = 0; p < n; p++) {
        const int64_t count = k->c->parameters[p].count;
        int64_t nonzero = 0;
        if (!wanted(s, p))
            continue;
        for (int64_t e = 0; e < count; e++) {
            double mean = element_gradient(k, p, e);
            nonzero += mean != 0;
            if (g != NULL && k->exact_gradients && mean != g[p][e]) {
                snprintf(k->why, sizeof k->why, "%.100s[%lld]: the certificate's gradient is %g, the truth's %g",
                         k->c->parameters[p].name, (long long)e, mean, g[p][e]);
                k->exact_gradients = false;
            }
        }
        k->smallest_share = fmin(k->smallest_share, (double)nonzero / (double)count);
        for (int r = 0; r < k->ranks; r++)
            if (all_zero(k->sums[r * n + p].value, count))
                note_vacuous(k, "rank", r, k->c->parameters[p].name);
    }
}

// p - lr g, term by term; what comes out must be a number of the compute dtype as well.
static void update_parameter(struct certificate *k, const struct serial *s, int p)
{
    const struct fsdp_case *c = k->c;
    const char *name = c->parameters[p].name;
    for (int64_t e = 0; e < c->parameters[p].count; e++) {
        double w = s->now.p[p][e], step = c->optimizer.lr * s->g[p][e], after = w - step;
        certificate_note(k, c->precision.parameter, fabs(w) + fabs(step),
                         fmin(certificate_low_bit(w), certificate_low_bit(step)), true, "the update", name);
        certificate_note(k, c->precision.compute, fabs(after), certificate_low_bit(after), true, "the updated value", name);
    }
}

const char *certificate_inexact_optimizer(const struct fsdp_case *c)
{
    const struct optimizer_spec *o = &c->optimizer;
    if (o->kind != OPTIMIZER_SGD || o->momentum != 0 || o->weight_decay != 0)
        return "not plain SGD";
    return frexp(o->lr, &(int){0}) != 0.5 ? "with a rate that is no power of two" : NULL;
}

void certificate_update(struct certificate *k, const struct serial *s)
{
    const char *reason = s->clip_factor != 1 ? "of clipped gradients" : certificate_inexact_optimizer(k->c);
    if (reason != NULL && k->exact_gradients && k->exact_updates)
        snprintf(k->why, sizeof k->why, "the update is %s: it rounds", reason);
    k->exact_updates = k->exact_updates && reason == NULL;
    for (int p = 0; reason == NULL && p < k->c->parameter_count; p++)
        if (s->has_gradient[p])
            update_parameter(k, s, p);
}

bool certificate_follow(struct certificate *k, struct serial *s, const struct instruction *i, struct error *error)
{
    switch (i->verb) {
    case VERB_MICRO:
    case VERB_BACKWARD: return certificate_micro(k, s, i->step, i->micro, error);
    case VERB_CLIP: certificate_gradients(k, s, s->g); break;
    case VERB_STEP:
        if (k->c->clip == CLIP_OFF)
            certificate_gradients(k, s, s->g);
        certificate_update(k, s);
        break;
    case VERB_OBSERVE:
        if (i->what & OBSERVE_GRAD)
            certificate_gradients(k, s, s->g);
        break;
    case VERB_ZERO_GRAD: certificate_zero(k); break;
    default: break;
    }
    return true;
}
