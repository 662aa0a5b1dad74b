// Claim: over sockets a step moves b bytes for each parameter and rank, b that of the strategy with the library's own algorithms; over N it
//     follows f(N) = (N-1)/N.
// Source: ZeRO, section 7; docs/metrics.md, Traffic; docs/probes.md, What gloo sends.
// How: cases of this run that differ in nothing but the sizes of the model, at least three, at the same N. Bytes sent against the bytes of the
//     formula, by least squares: what is the same at every size (headers, exchanges of numbers) is the intercept, and slope 1 is the formula. Tried
//     are all plans that the case allows, with the library's algorithms and with the least; the nearest is named. Where the interval is wider than the
//     bound the sizes show nothing: BROKEN. Other N of the same family are fitted alike, and all must follow the same plan.
// Catches: Z28 (excess communication), Z30 (gathered again for a recomputation)
// Blind to: excess that does not grow with the model; which collective it is, beyond a count of gathers and reductions
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judge/alike.h"
#include "harness/judge/slope.h"
#include "harness/judge/traffic.h"
#include "harness/protocol/memory.h"
#include "suite/checks/check.h"

static const double bound = 0.02;
enum { POINTS = 16, LEAST = 3 };

// incomplete: a case whose records are not whole, or NULL; uncounted: one that may have moved bytes that no probe counts
struct points { int count; const struct fsdp_case *cases[POINTS], *incomplete, *uncounted; double sent[POINTS], elements[POINTS]; };

// Nothing but sizes, and ranks, differs.
static bool same_but_sizes(const struct fsdp_case *a, const struct fsdp_case *b)
{
    bool same = alike_setting(a, b) && a->parameter_count == b->parameter_count && a->model.layers == b->model.layers &&
                (a->sharding.replicas > 1) == (b->sharding.replicas > 1);
    for (int i = 0; same && i < a->parameter_count; i++)
        same = strcmp(a->parameters[i].name, b->parameters[i].name) == 0;
    return same;
}

// Its records are all there, and tell of such bytes.
static bool uncounted(const struct fsdp_case *c, const struct probe_case *probes)
{
    bool unseen = false;
    for (int r = 0; r < c->world_size; r++) {
        if (probes[r].lost > 0)
            return false;
        unseen |= probe_uncounted(&probes[r]);
    }
    return unseen;
}

static void add(struct points *p, const struct fsdp_case *c, const struct probe_case *probes)
{
    if (p->count == POINTS)
        return;
    double elements = 0;
    for (int i = 0; i < c->parameter_count; i++)
        elements += c->parameters[i].tied_to < 0 ? (double)c->parameters[i].count : 0;
    for (int i = 0; i < p->count; i++)
        if (p->elements[i] == elements)
            return;
    if (!traffic_complete(c, probes))
        *(uncounted(c, probes) ? &p->uncounted : &p->incomplete) = c;
    p->cases[p->count] = c;
    p->elements[p->count] = elements;
    p->sent[p->count++] = traffic_socket_bytes(probes, c->world_size);
}

// This case's own size and all others of the same mesh, or those of another.
static struct points collect(const struct evidence *e, const struct fsdp_case *mesh)
{
    struct points p = {0};
    if (alike_mesh(e->c, mesh))
        add(&p, e->c, e->probes);
    for (int i = 0; i < e->probed_count; i++)
        if (alike_mesh(e->probed[i].c, mesh) && same_but_sizes(e->c, e->probed[i].c))
            add(&p, e->probed[i].c, e->probed[i].probes);
    return p;
}

static bool applies(const struct evidence *e)
{
    return e->probes != NULL && e->world_size > 1 && traffic_unpredicted(e->c) == NULL && traffic_witness(e) == TRAFFIC_SOCKETS &&
           collect(e, e->c).count >= LEAST;
}

// ---- the fit ----

struct fitted {
    struct slope line;           // of bytes sent against those of the plan
    double theory;               // bytes for each parameter, rank and step, by the plan
    struct traffic_choice choice;
    const struct traffic_library *library;
};

// Where a slope of 1 lies outside any line, false.
static bool fit_plan(const struct points *p, struct fitted *f)
{
    double planned[POINTS];
    struct slope theory;
    for (int i = 0; i < p->count; i++)
        planned[i] = traffic_sent(p->cases[i], &f->choice, f->library);
    if (!slope_fit(p->count, planned, p->sent, &f->line) || !slope_fit(p->count, p->elements, planned, &theory))
        return false;
    f->theory = theory.slope / (double)p->cases[0]->data.steps;
    return true;
}

static bool nearest(const struct points *p, const char *backend, struct fitted *out)
{
    struct traffic_choice *choices = memory_zeros(TRAFFIC_CHOICES, sizeof *choices);
    const struct traffic_library *libraries[] = {traffic_library(backend), traffic_library(NULL)};
    int count = traffic_choices(p->cases[0], choices);
    bool any = false;
    for (int l = 0; l < 2; l++)
        for (int i = 0; i < count; i++) {
            struct fitted f = {.choice = choices[i], .library = libraries[l]};
            if (choices[i].split || !fit_plan(p, &f) || (any && fabs(f.line.slope - 1) >= fabs(out->line.slope - 1)))
                continue;
            *out = f;
            any = true;
        }
    free(choices);
    return any;
}

// What the bytes beyond the plan amount to.
static void name_excess(const struct evidence *e, const struct fitted *f, char *text, size_t size, const char **classes)
{
    const struct sharding_spec *s = &e->c->sharding;
    double share = s->shards > 1 ? (s->shards - 1.0) / s->shards : (s->replicas - 1.0) / s->replicas;
    double more = (f->line.slope - 1) * f->theory;
    double gathers = more / (dtype_size(e->c->precision.compute) * share), reductions = more / (f->library->scatter * dtype_size(e->c->precision.reduce) * share);
    bool again = s->activation_checkpointing && gathers > 0.5;
    *classes = again ? "Z30 Z28" : "Z28";
    snprintf(text, size, "; a step moves %.2f gathers (or %.2f reductions) of all parameters %s%s", fabs(gathers), fabs(reductions), more > 0 ? "more than it needs" : "less than it needs",
             again ? ": units are gathered again for the recomputation" : "");
}

static void judge_line(const struct evidence *e, struct finding *f, const struct points *p, const struct fitted *fit)
{
    char words[400], excess[200] = "";
    const char *classes = "Z28";
    double off = fabs(fit->line.slope - 1), measured = fit->line.slope * fit->theory, half = fit->line.slope_half * fit->theory;
    traffic_choice_text(&fit->choice, words, sizeof words);
    if (fit->line.slope_half > bound) {
        finding_broken(f, "%.3f +- %.3f bytes for each parameter, rank and step from %d sizes: the interval is wider than %g %%", measured, half, p->count, 100 * bound);
        return;
    }
    if (off > bound)
        name_excess(e, fit, excess, sizeof excess, &classes);
    finding_compare(f, off, bound, "relative", classes, "%.3f +- %.3f bytes for each parameter, rank and step from %d sizes, the formula says %.3f (%s: %s%s%s)%s", measured, half,
                    p->count, fit->theory, fit->library->name, fit->library->words, *words ? "; " : "", words, excess);
}

// The same plan at other numbers of ranks: slope over f(N) must be the same.
static void judge_ranks(const struct evidence *e, struct finding *f, const struct fitted *own)
{
    for (int i = 0; i < e->probed_count; i++) {
        const struct fsdp_case *other = e->probed[i].c;
        bool seen = alike_mesh(other, e->c) || !same_but_sizes(e->c, other);
        for (int k = 0; k < i; k++)
            seen |= alike_mesh(e->probed[k].c, other) && same_but_sizes(e->c, e->probed[k].c);
        struct points p = seen ? (struct points){0} : collect(e, other);
        struct fitted fit = {.choice = own->choice, .library = own->library};
        if (p.count < LEAST || p.incomplete != NULL || p.uncounted != NULL || other->world_size == 1 || !fit_plan(&p, &fit) || fit.line.slope_half > bound)
            continue;
        finding_compare(f, fabs(fit.line.slope / own->line.slope - 1), 2 * bound, "relative", "Z28",
                        "%.3f bytes for each parameter, rank and step at N = %d and %.3f at N = %d, f(N) = (N-1)/N makes it %.3f", fit.line.slope * fit.theory, other->world_size,
                        own->line.slope * own->theory, e->world_size, fit.theory * own->line.slope);
    }
}

static void judge(const struct evidence *e, struct finding *f)
{
    struct points p = collect(e, e->c);
    struct fitted fit;
    if (!traffic_usable(e, f))
        return;
    if (p.incomplete != NULL) {
        finding_broken(f, "the records of one of its %d sizes are not whole: %s", p.count, p.incomplete->id);
        return;
    }
    if (p.uncounted != NULL) {
        finding_skip(f, "one of its %d sizes may have moved bytes that no probe counts: %s", p.count, p.uncounted->id);
        return;
    }
    if (!nearest(&p, traffic_configured(e, "backend"), &fit)) {
        finding_broken(f, "%d sizes make no line", p.count);
        return;
    }
    judge_line(e, f, &p, &fit);
    judge_ranks(e, f, &fit);
}

const struct check check_traffic_slope = {
    .name = "traffic-slope", .number = 36, .claim = "bytes sent for each parameter and rank = the strategy's by the library's algorithms, proportional to f(N)",
    .source = "ZeRO section 7; docs/metrics.md", .catches = "Z28 Z30", .blind = "excess that does not grow with the model",
    .applies = applies, .judge = judge};
