// From stored phases to bytes per parameter. See probed.h.
#include "harness/report/probed.h"

#include "harness/judge/memory_model.h"
#include "harness/judge/traffic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"

const char *const probed_part_names[PARTS] = {
    [PART_GATHER] = "all-gather", [PART_SCATTER] = "reduce-scatter", [PART_ALL_REDUCE] = "all-reduce", [PART_ALL_TO_ALL] = "all-to-all",
    [PART_OTHER] = "other collectives, point to point", [PART_SOCKET_FORWARD] = "sockets, in forward", [PART_SOCKET_BACKWARD] = "sockets, in backward",
    [PART_SOCKET_OTHER] = "sockets, in the update and elsewhere",
};

// ---- one case ----
static enum probed_part part_of(const struct probe_traffic *t) {
    if (t->kind != PROBE_COLLECTIVE) return PART_OTHER;
    switch (t->op) {
    case PROBE_ALL_GATHER: return PART_GATHER;
    case PROBE_REDUCE_SCATTER: return PART_SCATTER;
    case PROBE_ALL_REDUCE: return PART_ALL_REDUCE;
    case PROBE_ALL_TO_ALL: return PART_ALL_TO_ALL;
    default: return PART_OTHER;
    }
}

static enum probed_part socket_part(const char *phase) {
    return !strcmp(phase, "forward") ? PART_SOCKET_FORWARD : !strcmp(phase, "backward") ? PART_SOCKET_BACKWARD : PART_SOCKET_OTHER;
}

static int updates(const struct fsdp_case *c) {
    int count = 0;
    for (int i = 0; i < c->program_length; i++) count += c->program[i].verb == VERB_STEP;
    return count;
}

static int64_t sent_by_call(const struct probe_traffic *t) {
    if (t->kind == PROBE_COLLECTIVE) return t->wire;
    return t->kind == PROBE_POINT && t->op == PROBE_OP_SEND ? t->bytes : 0;
}

// Bytes of a step, mean of the ranks. Collectives where any were seen: sockets carry the same bytes once more, or not at all.
static void traffic_of(const struct probed_source *s, double sent[PARTS]) {
    double calls[PARTS] = {0}, sockets[PARTS] = {0}, scale = 1.0 / (s->seen.ranks * fmax(1, updates(&s->spec)));
    bool any = false;
    for (int r = 0; r < s->seen.ranks; r++)
        for (int i = 0; i < s->seen.by_rank[r].phase_count; i++) {
            const struct probe_phase *p = &s->seen.by_rank[r].phases[i];
            for (int k = 0; probe_trains(p->name) && k < p->traffic_count; k++) {
                const struct probe_traffic *t = &p->traffic[k];
                any |= t->kind == PROBE_COLLECTIVE || t->kind == PROBE_POINT;
                calls[part_of(t)] += scale * (double)sent_by_call(t);
                if (t->kind == PROBE_SEND) sockets[socket_part(p->name)] += scale * (double)t->bytes;
            }
        }
    memcpy(sent, any ? calls : sockets, sizeof calls);
}

static bool loaded(const struct probed_source *s, unsigned probes) {
    for (int r = 0; r < s->seen.ranks; r++)
        if (!(s->seen.by_rank[r].probes & probes)) return false;
    return true;
}

static bool is_whole(const struct probed_source *s) {
    bool whole = true;
    for (int r = 0; r < s->seen.ranks; r++) whole &= probe_traffic_whole(&s->seen.by_rank[r]);
    return whole;
}

void probed_rest_theory(const struct probed *p, const struct probed_point *q, double *a, double *b) {
    const struct fsdp_case *c = &q->largest->spec;
    struct memory_model model = memory_model_of(c, false);
    struct memory_share share = memory_model_at(&model, MEMORY_REST);
    *a = share.whole, *b = share.shared * c->sharding.replicas; // 1 / S = R / N
    for (int i = 0; i < p->fit_count; i++) {
        const struct probed_fit *f = &p->fits[i];
        if (f->implementation == q->implementation && f->label == q->label) *a = f->theory_a, *b = f->theory_b * c->sharding.replicas;
    }
}

// ---- configurations ----
// What tells configurations apart that are drawn as lines of their own.
static char *label_of(const struct fsdp_case *c) {
    const struct sharding_spec *s = &c->sharding;
    char *text = memory_text(strategy_name(s->strategy));
    const struct { bool told; const char *words; } parts[] = {
        {s->layout == SHARD_FLAT, "flat"}, {!s->reshard_after_forward && (s->strategy == STRATEGY_FULL || s->strategy == STRATEGY_HYBRID), "kept after forward"},
        {s->reshard_ranks > 0, "kept in part after forward"}, {s->offload == OFFLOAD_CPU, "offload"}, {s->activation_checkpointing, "activation checkpointing"},
        {s->wrap == WRAP_ROOT, "one unit"}, {c->precision.compute != DTYPE_F32, dtype_name(c->precision.compute)},
        {c->precision.reduce != c->precision.compute, "other reduce type"}, {c->optimizer.kind == OPTIMIZER_SGD, "SGD"}, {c->model.kind == MODEL_WITNESS, "witness"}};
    bool unsynced = false;
    for (int i = 0; i < c->program_length; i++) unsynced |= (c->program[i].verb == VERB_MICRO || c->program[i].verb == VERB_BACKWARD) && !c->program[i].sync;
    char more[64] = "";
    if (s->strategy == STRATEGY_HYBRID) snprintf(more, sizeof more, ", %d replicas", s->replicas);
    if (c->data.micros > 1) snprintf(more + strlen(more), sizeof more - strlen(more), ", %d microbatches%s", (int)c->data.micros, unsynced ? ", no_sync" : "");
    for (size_t i = 0; i < sizeof parts / sizeof *parts + 1; i++) {
        bool last = i == sizeof parts / sizeof *parts;
        if (!last && !parts[i].told) continue;
        char *longer = memory_format("%s%s%s", text, last ? "" : ", ", last ? more : parts[i].words);
        free(text);
        text = longer;
    }
    return text;
}

static struct probed_point *point_of(struct probed *p, const struct probed_source *s) {
    char *label = label_of(&s->spec);
    struct probed_point key = {.implementation = names_add(&p->implementations, s->c->implementation), .label = names_add(&p->labels, label),
                               .ranks = s->spec.world_size};
    free(label);
    for (int i = 0; i < p->point_count; i++)
        if (p->points[i].implementation == key.implementation && p->points[i].label == key.label && p->points[i].ranks == key.ranks) return &p->points[i];
    p->points = memory_grow(p->points, (size_t)p->point_count, sizeof *p->points);
    p->points[p->point_count] = key;
    return &p->points[p->point_count++];
}

// Least squares of y against x; one x: y / x of their means.
struct line { double n, x, y, xx, xy; };
static void line_add(struct line *l, double x, double y) { l->n++, l->x += x, l->y += y, l->xx += x * x, l->xy += x * y; }
static double line_slope(const struct line *l, bool several) {
    if (!several) return l->x > 0 ? l->y / l->x : NAN;
    return (l->n * l->xy - l->x * l->y) / (l->n * l->xx - l->x * l->x);
}

static bool belongs(struct probed *p, const struct probed_source *s, const struct probed_point *q) {
    char *label = label_of(&s->spec);
    bool same = s->spec.world_size == q->ranks && names_find(&p->labels, label) == q->label && names_find(&p->implementations, s->c->implementation) == q->implementation;
    free(label);
    return same;
}

// The newest of the figures that a check recorded on a case; "rest" of memory-rest. False where there is none.
static bool figure_of(const struct stored_case *c, const char *check, const char *tensor, double *figure, double *bound) {
    size_t at;
    json_t *f;
    bool found = false;
    json_array_foreach(c->figures, at, f) {
        const char *named = json_string_value(json_object_get(f, "check")), *of = json_string_value(json_object_get(f, "tensor"));
        if (!named || !of || strcmp(named, check) || strcmp(of, tensor) || !json_is_number(json_object_get(f, "figure"))) continue;
        double x = json_number_value(json_object_get(f, "figure"));
        *figure = found ? fmax(*figure, x) : x;
        *bound = json_is_number(json_object_get(f, "bound")) ? json_number_value(json_object_get(f, "bound")) : NAN;
        found = true;
    }
    return found;
}

static void add_memory(struct probed *p, struct probed_point *q, const struct stored_case *c) {
    struct probed_fit f = {.implementation = q->implementation, .label = q->label};
    double ignored;
    figure_of(c, "memory-rest", "bytes of a parameter", &q->rest, &q->rest_theory);
    figure_of(c, "memory-peak", "bytes of a parameter", &q->peak, &ignored);
    if (!figure_of(c, "memory-scaling", "a", &f.a, &f.theory_a) || !figure_of(c, "memory-scaling", "b", &f.b, &f.theory_b)) return;
    int at = 0;
    while (at < p->fit_count && (p->fits[at].implementation != f.implementation || p->fits[at].label != f.label)) at++;
    if (at == p->fit_count) p->fits = memory_grow(p->fits, (size_t)p->fit_count++, sizeof *p->fits);
    p->fits[at] = f;
}

// The legal choice that is nearest to what was seen: the strategy leaves open what stays gathered and how parts are padded.
static double sent_theory(const struct fsdp_case *c, const char *library, double seen) {
    struct traffic_choice *choices = memory_zeros(TRAFFIC_CHOICES, sizeof *choices);
    int count = !traffic_unpredicted(c) && updates(c) ? traffic_choices(c, choices) : 0;
    double nearest = NAN;
    for (int i = 0; i < count; i++) {
        double bytes = traffic_sent(c, &choices[i], traffic_library(library)) / updates(c);
        if (isnan(nearest) || fabs(bytes - seen) < fabs(nearest - seen)) nearest = bytes;
    }
    free(choices);
    return nearest;
}

static void fill_point(struct probed *p, struct probed_point *q) {
    struct line theory[2] = {{0}}, sent[PARTS] = {{0}};
    const struct probed_source *smallest = NULL;
    q->has_traffic = true;
    q->rest = q->peak = q->rest_theory = NAN;
    for (int i = 0; i < p->source_count; i++) {
        const struct probed_source *s = &p->sources[i];
        if (!belongs(p, s, q)) continue;
        double bytes[PARTS], sum = 0, x = (double)s->parameters;
        traffic_of(s, bytes);
        add_memory(p, q, s->c);
        for (int k = 0; k < PARTS; k++) {
            line_add(&sent[k], x, bytes[k]);
            sum += bytes[k];
        }
        line_add(&theory[0], x, sent_theory(&s->spec, NULL, sum));
        line_add(&theory[1], x, sent_theory(&s->spec, "gloo", sum));
        if (!q->largest || s->parameters > q->largest->parameters) q->largest = s;
        if (!smallest || s->parameters < smallest->parameters) smallest = s;
        q->sizes++;
        q->has_traffic &= loaded(s, 1u << PROBE_SOCKET | 1u << PROBE_MPI | 1u << PROBE_NCCL) && updates(&s->spec) > 0;
        q->uncounted |= !is_whole(s);
    }
    q->uncounted &= q->has_traffic;
    q->has_traffic &= !q->uncounted;
    bool several = smallest->parameters < q->largest->parameters;
    if (!several) q->sizes = 1;
    for (int k = 0; k < PARTS; k++) q->sent[k] = line_slope(&sent[k], several);
    q->sent_theory = line_slope(&theory[0], several);
    q->sent_gloo = line_slope(&theory[1], several);
}

static int compare_points(const void *a, const void *b) {
    const struct probed_point *x = a, *y = b;
    int by[] = {x->implementation - y->implementation, x->label - y->label, x->ranks - y->ranks};
    return by[0] ? by[0] : by[1] ? by[1] : by[2];
}

static bool read_source(const struct stored_case *c, struct probed_source *s) {
    *s = (struct probed_source){.c = c};
    if (!c->case_json || !case_read_stored(c->case_json, &s->spec)) return false;
    if (!probe_stored_read(c->probes, &s->seen)) {
        case_free(&s->spec);
        return false;
    }
    for (int i = 0; i < s->spec.parameter_count; i++) s->parameters += s->spec.parameters[i].tied_to < 0 ? s->spec.parameters[i].count : 0;
    return true;
}

void probed_make(const struct view *v, struct probed *out) {
    *out = (struct probed){.sources = memory_zeros((size_t)v->case_count + 1, sizeof *out->sources)};
    for (int i = 0; i < v->case_count; i++) {
        const struct stored_case *c = v->cases[i].c;
        if (!c->probes) continue;
        if (read_source(c, &out->sources[out->source_count])) out->source_count++;
        else out->unread++;
    }
    for (int i = 0; i < out->source_count; i++) point_of(out, &out->sources[i]);
    for (int i = 0; i < out->point_count; i++) fill_point(out, &out->points[i]);
    if (out->point_count) qsort(out->points, (size_t)out->point_count, sizeof *out->points, compare_points);
}

void probed_free(struct probed *p) {
    for (int i = 0; i < p->source_count; i++) {
        case_free(&p->sources[i].spec);
        probe_stored_free(&p->sources[i].seen);
    }
    free(p->sources);
    free(p->points);
    free(p->fits);
    names_free(&p->implementations);
    names_free(&p->labels);
    *p = (struct probed){0};
}

bool probed_has_timeline(const struct probed_source *s) { return s->seen.step >= 0 && is_whole(s); }

static int preference(const struct probed_source *s, int axis) {
    int spans = 0;
    for (int r = 0; r < s->seen.ranks; r++) spans += s->seen.span_count[r];
    const int by[] = {spans > 0, s->spec.sharding.strategy == STRATEGY_FULL, s->spec.world_size <= 4 ? s->spec.world_size : -s->spec.world_size};
    return by[axis];
}

static bool is_better(const struct probed_source *a, const struct probed_source *b) {
    for (int axis = 0; axis < 3; axis++)
        if (preference(a, axis) != preference(b, axis)) return preference(a, axis) > preference(b, axis);
    return a->parameters > b->parameters;
}

const struct probed_source *probed_timeline(const struct probed *p, int implementation) {
    const struct probed_source *best = NULL;
    for (int i = 0; i < p->source_count; i++) {
        const struct probed_source *s = &p->sources[i];
        if (!probed_has_timeline(s) || strcmp(s->c->implementation, p->implementations.items[implementation])) continue;
        if (!best || is_better(s, best)) best = s;
    }
    return best;
}

char *probed_probes(const struct probed *p) {
    char names[64];
    unsigned all = 0;
    for (int i = 0; i < p->source_count; i++)
        for (int r = 0; r < p->sources[i].seen.ranks; r++) all |= p->sources[i].seen.by_rank[r].probes;
    probe_set_text(all, names);
    return memory_text(names);
}
