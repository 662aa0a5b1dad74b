// See memory_hold.h.
#include "harness/judge/memory_hold.h"

#include <math.h>

enum memory_told memory_told(double off, double half, double tolerance, double resolution)
{
    if (!judge_compare(off - half, tolerance) && judge_finite(half))
        return MEMORY_BEYOND;
    return judge_compare(off, tolerance) && judge_compare(off + half, resolution) ? MEMORY_WITHIN : MEMORY_UNTOLD;
}

struct memory_bound memory_rest_bound(const struct memory_model *m, int shards)
{
    double most = memory_share_bytes(memory_model_at(m, MEMORY_REST), shards);
    return (struct memory_bound){most - m->copy.whole - memory_share_bytes(m->idle, shards), most};
}

double memory_slope_off(const struct slope *s, struct memory_bound b) { return judge_worse(s->slope - b.most, b.least - s->slope) / b.most; }

enum memory_told memory_slope_told(const struct slope *s, struct memory_bound b)
{
    return memory_told(memory_slope_off(s, b), s->slope_half / b.most, MEMORY_TOLERANCE, MEMORY_RESOLUTION);
}

// What is shown comes before what cannot be told, and that before what holds.
static int gravity(enum memory_told t) { return t == MEMORY_BEYOND ? 2 : t == MEMORY_UNTOLD; }

static bool graver(const struct slope *a, const struct slope *b, struct memory_bound bound)
{
    int x = gravity(memory_slope_told(a, bound)), y = gravity(memory_slope_told(b, bound));
    double p = memory_slope_off(a, bound), q = memory_slope_off(b, bound);
    return x != y ? x > y : p != q && judge_worse(p, q) == p;
}

void memory_hold(const struct evidence *e, struct finding *f, enum memory_phase phase, struct memory_bound bound, const struct memory_model *m)
{
    struct error error = {""};
    struct slope worst = {0}, s;
    char excess[MEMORY_WORDS];
    int rank = 0;
    for (int r = 0; r < e->world_size; r++) {
        if (!memory_rank_line(e, e->c, r, phase, &s, &error)) {
            finding_broken(f, "%s", error.text);
            return;
        }
        if (r == 0 || graver(&s, &worst, bound))
            worst = s, rank = r;
    }
    double theory = bound.least > 0 ? fmin(fmax(worst.slope, bound.least), bound.most) : bound.most;
    judge_figure(e, memory_phase_name(phase), "bytes of a parameter", worst.slope, theory, "bytes");
    if (memory_slope_told(&worst, bound) == MEMORY_UNTOLD)
        finding_broken(f, "cannot tell: %s: rank %d holds %.4g +- %.2g bytes of a parameter over %d sizes (%s), the strategy has %.4g. The points scatter: run it again "
                       "with less else on the machine", memory_phase_name(phase), rank, worst.slope, worst.slope_half, worst.count, memory_probes(e), theory);
    else
        finding_compare(f, memory_slope_off(&worst, bound), MEMORY_TOLERANCE, "relative", memory_classes(e->c),
                        "%s: rank %d holds %.4g +- %.2g bytes of a parameter over %d sizes (%s), the strategy has %.4g%s", memory_phase_name(phase), rank, worst.slope,
                        worst.slope_half, worst.count, memory_probes(e), theory, memory_model_excess(e->c, m, worst.slope - theory, excess));
}
