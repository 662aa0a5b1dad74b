// Measured noise with its two floors. See noise.h.
#include "harness/judge/noise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double zero_share = 0x1p-20;

static bool measured(const struct evidence *e, const char *label, int p, struct noise *out)
{
    char name[400];
    snprintf(name, sizeof name, "%s/grad/%s", label, e->c->parameters[p].name);
    const struct tensor *t = tensors_find(&e->truth->noise, name);
    if (!t || t->count < 3 || t->dtype != DTYPE_F64)
        return false;
    const double *v = t->data;
    *out = (struct noise){v[0], v[1], v[2], false};
    return judge_finite(v[0]) && judge_finite(v[1]) && judge_finite(v[2]);
}

bool noise_of(const struct evidence *e, const char *label, int p, enum dtype stored, struct noise *out)
{
    if (!measured(e, label, p, out))
        return false;
    double u = dtype_unit_roundoff(stored), count = (double)e->c->parameters[p].count, largest_rms = 0, neighbour = 0;
    for (int q = 0; q < e->c->parameter_count; q++) {
        struct noise other;
        if (q == p || strcmp(e->c->parameters[q].unit, e->c->parameters[p].unit) != 0 || !measured(e, label, q, &other))
            continue;
        double root = sqrt((double)e->c->parameters[q].count);
        largest_rms = fmax(largest_rms, other.norm / root);
        neighbour = fmax(neighbour, other.l2 / root);
    }
    out->structural_zero = out->norm / sqrt(count) < zero_share * largest_rms;
    if (out->structural_zero) {
        out->l2 = fmax(out->l2, neighbour * sqrt(count));
        out->element = fmax(out->element, neighbour);
    }
    out->l2 = fmax(out->l2, u * out->norm);
    out->element = fmax(out->element, u * out->norm / sqrt(count));
    return true;
}

bool noise_relative(const struct evidence *e, const char *label, double *out)
{
    double distance = 0, norm = 0;
    for (int p = 0; p < e->c->parameter_count; p++) {
        struct noise n;
        if (measured(e, label, p, &n)) {
            distance += n.l2 * n.l2;
            norm += n.norm * n.norm;
        }
    }
    *out = norm > 0 ? sqrt(distance / norm) : NAN;
    return norm > 0;
}
