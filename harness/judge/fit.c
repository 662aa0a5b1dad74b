// A subject's tensor against a reference: a = <x, ref> / <ref, ref> and what a does not explain.
//
// Why: a wrong divisor leaves residual 0 and a scalar that has a name (N, 1/N, sqrt N); a wrong shard leaves a near 1
// and a residual. The two kinds of fault read differently, so they are measured apart.
#include <math.h>
#include <stdio.h>

#include "harness/judge/judge.h"

// The reference's element as the subject would hold it.
static double as_stored(double value, enum dtype type)
{
    uint64_t cell = 0;
    dtype_set(type, &cell, 0, value);
    return dtype_get(type, &cell, 0);
}

bool judge_fit(const struct tensor *x, const struct tensor *ref, int64_t offset, int64_t length, struct fit *out)
{
    *out = (struct fit){.first = -1, .count = length};
    if (offset < 0 || length < 0 || offset + length > x->count || x->count != ref->count)
        return false;
    double cross = 0, square = 0, distance = 0, own = 0;
    for (int64_t i = offset; i < offset + length; i++) {
        double value = dtype_get(x->dtype, x->data, i), expected = dtype_get(ref->dtype, ref->data, i);
        double rounded = as_stored(expected, x->dtype);
        bool finite = judge_finite(value);
        out->nonfinite += !finite;
        if (!finite || value != rounded) {
            out->differing++;
            out->first = out->first < 0 ? i : out->first;
        }
        cross += value * expected;
        square += expected * expected;
        own += value * value;
        distance += (value - expected) * (value - expected);
        out->max_abs = fmax(out->max_abs, fabs(value - expected));
    }
    out->ref_norm = sqrt(square);
    out->distance = sqrt(distance);
    out->scalar = square > 0 ? cross / square : NAN;
    // |x - a ref|^2 = |x|^2 - a <x, ref>, clamped against its own rounding
    double rest = square > 0 ? fmax(own - out->scalar * cross, 0) : own;
    double fitted = fabs(out->scalar) * out->ref_norm;
    out->residual = fitted > 0 ? sqrt(rest) / fitted : own > 0 ? INFINITY : 0;
    if (out->nonfinite)
        out->max_abs = out->distance = out->scalar = out->residual = NAN;
    return true;
}

// Scales that a fault of a sharded run can leave, tried in this order: the likelier name of an ambiguous one first. N is the number of
// data ranks (D where there are tensor or pipeline ranks too).
const char *judge_scale_name(double scalar, const struct fsdp_case *c, char *buffer, size_t size)
{
    double n = case_data_ranks(c), t = fmax(c->sharding.tensor, 1), p = fmax(c->sharding.pipeline, 1), r = c->sharding.replicas, s = c->sharding.shards, m = (double)c->data.micros;
    const struct { const char *name; double value; } scales[] = {
        {"N", n}, {"1/N", 1 / n}, {"R", r}, {"1/R", 1 / r}, {"S", s}, {"1/S", 1 / s}, {"sqrt(N)", sqrt(n)},
        {"1/sqrt(N)", 1 / sqrt(n)}, {"sqrt(R)", sqrt(r)}, {"1/sqrt(R)", 1 / sqrt(r)}, {"sqrt(S)", sqrt(s)},
        {"1/sqrt(S)", 1 / sqrt(s)}, {"N^2", n * n}, {"1/N^2", 1 / (n * n)}, {"m", m}, {"1/m", 1 / m},
        {"N m", n * m}, {"1/(N m)", 1 / (n * m)}, {"T", t}, {"1/T", 1 / t}, {"N T", n * t}, {"1/(N T)", 1 / (n * t)}, {"P", p}, {"1/P", 1 / p}, {"2", 2}, {"1/2", 0.5}, {"-1", -1}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if (scales[i].value != 1 && fabs(scalar - scales[i].value) <= 1e-3 * fabs(scales[i].value)) {
            snprintf(buffer, size, "%s", scales[i].name);
            return buffer;
        }
    return NULL;
}
