// Claim: bytes of a parameter at rest follow a + b/N over the ranks (N of the sharding group; all ranks where nothing is sharded): a what every rank holds whole,
//     b what is divided, both the strategy's.
// Source: ZeRO, section 5: memory falls as 1/N where all is sharded, so that a = 0.
// How: the slopes of memory-rest at three meshes or more that this run has judged, fitted over 1/N; a and b each within 3 % of a + b of the theory, by the whole interval (harness/judge/memory_hold.h).
//     Points that lie on no such line leave an interval that tells nothing; where one mesh's own slope is beyond its bound by its own interval, that shows it.
// Catches: Z27
// Blind to: as memory-rest
#include <math.h>

#include "harness/judge/memory_hold.h"
#include "suite/checks/check.h"

enum { MESHES = 16 };

// What divides: the ranks of a sharding group; with strategy none all ranks, over which nothing may change.
static int dividing(const struct fsdp_case *c) { return c->sharding.strategy == STRATEGY_NONE ? c->world_size : c->sharding.shards; }

static int different(const int *ranks, int count)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        bool fresh = true;
        for (int k = 0; k < i; k++)
            fresh &= ranks[i] != ranks[k];
        n += fresh;
    }
    return n;
}

static bool applies(const struct evidence *e)
{
    const struct fsdp_case *meshes[MESHES];
    int ranks[MESHES], count = memory_has_line(e) ? memory_meshes(e, meshes, MESHES) : 0;
    for (int i = 0; i < count; i++)
        ranks[i] = dividing(meshes[i]);
    return different(ranks, count) >= 3;
}

// The mesh whose own slope is shown to lie furthest beyond what the strategy has there; -1: none.
static int beyond(const struct memory_model *m, const int *ranks, const struct memory_line *lines, int count)
{
    int worst = -1;
    double most = 0;
    for (int i = 0; i < count; i++) {
        struct memory_bound bound = memory_rest_bound(m, ranks[i]);
        double off = memory_slope_off(&lines[i].fit, bound);
        if (memory_slope_told(&lines[i].fit, bound) == MEMORY_BEYOND && (worst < 0 || (off != most && judge_worse(off, most) == off)))
            worst = i, most = off;
    }
    return worst;
}

static void judge(const struct evidence *e, struct finding *f)
{
    const struct fsdp_case *meshes[MESHES];
    int ranks[MESHES], count = memory_meshes(e, meshes, MESHES);
    double bytes[MESHES];
    struct memory_line lines[MESHES];
    struct slope fit;
    if (!memory_usable(e, f))
        return;
    for (int i = 0; i < count; i++) {
        struct error error = {""};
        if (!memory_line(e, meshes[i], MEMORY_REST, &lines[i], &error)) {
            finding_broken(f, "N = %d: %s", meshes[i]->world_size, error.text);
            return;
        }
        ranks[i] = dividing(meshes[i]);
        bytes[i] = lines[i].fit.slope;
    }
    if (!slope_over_ranks(count, ranks, bytes, &fit)) {
        finding_broken(f, "%d points have no line over 1/N", count);
        return;
    }
    struct memory_model model = memory_model_of(e->c, memory_whole_parameters(e));
    struct memory_share theory = memory_model_at(&model, MEMORY_REST);
    double all = theory.whole + theory.shared, a = fabs(fit.intercept - theory.whole) / all, b = fabs(fit.slope - theory.shared) / all;
    enum memory_told told_a = memory_told(a, fit.intercept_half / all, MEMORY_TOLERANCE, MEMORY_RESOLUTION);
    enum memory_told told_b = memory_told(b, fit.slope_half / all, MEMORY_TOLERANCE, MEMORY_RESOLUTION);
    judge_figure(e, "scaling", "a", fit.intercept, theory.whole, "bytes");
    judge_figure(e, "scaling", "b", fit.slope, theory.shared, "bytes");
    bool untold = told_a != MEMORY_BEYOND && told_b != MEMORY_BEYOND && (told_a == MEMORY_UNTOLD || told_b == MEMORY_UNTOLD);
    int shown = untold ? beyond(&model, ranks, lines, count) : -1;
    if (shown >= 0) {
        const struct slope *own = &lines[shown].fit;
        struct memory_bound bound = memory_rest_bound(&model, ranks[shown]);
        finding_compare(f, memory_slope_off(own, bound), MEMORY_TOLERANCE, "relative", "Z27",
                        "bytes of a parameter at rest over %d meshes lie on no a + b/N (a = %.3g +- %.2g, b = %.4g +- %.2g; %s; the strategy has a = %g, b = %g): at N = %d "
                        "they are %.4g +- %.2g, the strategy has %.4g", count, fit.intercept, fit.intercept_half, fit.slope, fit.slope_half, memory_probes(e),
                        theory.whole, theory.shared, ranks[shown], own->slope, own->slope_half, bound.most);
    } else if (untold)
        finding_broken(f, "cannot tell: over %d meshes a = %.3g +- %.2g, b = %.4g +- %.2g of a + b/N (%s); the strategy has a = %g, b = %g. The points scatter: run it "
                       "again with less else on the machine", count, fit.intercept, fit.intercept_half, fit.slope, fit.slope_half, memory_probes(e), theory.whole,
                       theory.shared);
    else
        finding_compare(f, judge_worse(a, b), MEMORY_TOLERANCE, "relative", "Z27",
                        "bytes of a parameter at rest over %d meshes: a = %.3g +- %.2g, b = %.4g +- %.2g of a + b/N (%s); the strategy has a = %g, b = %g", count,
                        fit.intercept, fit.intercept_half, fit.slope, fit.slope_half, memory_probes(e), theory.whole, theory.shared);
}

const struct check check_memory_scaling = {
    .name = "memory-scaling", .number = 44, .claim = "d live(rest) / dP = a + b/N, a and b the strategy's, within 3 %", .source = "ZeRO, section 5",
    .catches = "Z27", .blind = "what does not grow with P", .applies = applies, .judge = judge};
