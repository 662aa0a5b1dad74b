// The formulas: units, padding, and the collectives of each phase. See traffic.h.
#include "harness/judge/traffic.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"

// Of an all-reduce that is split: up to this many elements all versions go to everyone in one exchange.
enum { FEW_ELEMENTS = 256 };

struct units { int count; int *of; bool root; }; // of: by parameter, tied ones -1; unit 0 is the root where there is one

struct walk {
    const struct fsdp_case *c;
    const struct traffic_choice *choice;
    struct units units;
    struct rank_place place;
    struct traffic_plan plan;
    int backwards;             // so far
};

static enum probe_type type_of(enum dtype t)
{
    return t == DTYPE_F32 ? PROBE_F32 : t == DTYPE_F64 ? PROBE_F64 : t == DTYPE_BF16 ? PROBE_BF16 : t == DTYPE_F16 ? PROBE_F16 : PROBE_TYPE_OTHER;
}

// ---- units ----

static int block_of(const struct fsdp_case *c, int p)
{
    for (int q = 0; q < p; q++)
        if (c->parameters[q].tied_to < 0 && strcmp(c->parameters[q].unit, c->parameters[p].unit) == 0)
            return q;
    return p;
}

static bool wrapped(const struct fsdp_case *c, int p)
{
    const char *unit = c->parameters[p].unit;
    enum wrap_policy policy = c->sharding.wrap;
    return *unit && policy != WRAP_ROOT && (policy != WRAP_PATTERN || fnmatch(c->sharding.wrap_pattern, unit, 0) == 0);
}

static int64_t block_count(const struct fsdp_case *c, int first)
{
    int64_t count = 0;
    for (int q = first; q < c->parameter_count; q++)
        if (c->parameters[q].tied_to < 0 && strcmp(c->parameters[q].unit, c->parameters[first].unit) == 0)
            count += c->parameters[q].count;
    return count;
}

// The rules of docs/protocol.md, "Wrapping".
static struct units units_of(const struct fsdp_case *c)
{
    struct units u = {.of = memory_zeros((size_t)c->parameter_count + 1, sizeof *u.of)};
    int64_t merged = 0;
    for (int p = 0; p < c->parameter_count; p++)
        u.root |= c->parameters[p].tied_to < 0 && !wrapped(c, p);
    int next = u.root;
    for (int p = 0; p < c->parameter_count; p++) {
        int first = block_of(c, p);
        u.of[p] = c->parameters[p].tied_to >= 0 ? -1 : !wrapped(c, p) ? 0 : first < p ? u.of[first] : next;
        if (u.of[p] != next || first < p)
            continue;
        merged += block_count(c, p);
        if (c->sharding.wrap != WRAP_SIZE || merged >= c->sharding.wrap_min_parameters) {
            next++;
            merged = 0;
        }
    }
    u.count = next + (merged > 0);
    return u;
}

static int64_t ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Elements of a unit in all shards together, or in one (shard >= 0).
static int64_t unit_elements(const struct walk *w, int unit, int shards, int shard)
{
    int64_t total = 0, part = 0;
    for (int p = 0; p < w->c->parameter_count; p++) {
        const struct case_parameter *q = &w->c->parameters[p];
        if (w->units.of[p] != unit)
            continue;
        int64_t rows = q->dims > 0 ? q->shape[0] : 1, row = rows > 0 ? q->count / rows : 0, chunk = ceiling(rows, shards);
        int64_t left = rows - chunk * shard < 0 ? 0 : rows - chunk * shard;
        bool pads = w->choice->padding == TRAFFIC_CHUNKS;
        total += pads ? chunk * shards * row : q->count;
        part += (pads || left > chunk ? chunk : left) * row;
    }
    if (w->choice->padding == TRAFFIC_FLAT)
        return shard < 0 ? ceiling(total, shards) * shards : ceiling(total, shards);
    return shard < 0 ? total : part;
}

// ---- rows ----

struct traffic_row *traffic_row_of(struct traffic_phase *phase, enum probe_op op, int size, enum probe_type type)
{
    struct traffic_row *row = phase->rows, *end = phase->rows + phase->count;
    while (row < end && (row->op != op || row->size != size || row->type != type))
        row++;
    if (row == phase->rows + TRAFFIC_ROWS)
        return NULL;
    if (row == end)
        phase->rows[phase->count++] = (struct traffic_row){.op = op, .size = size, .type = type};
    return row;
}

static void add(struct traffic_phase *phase, enum probe_op op, int size, enum probe_type type, int64_t calls, int64_t elements)
{
    if (size < 2)
        return;
    struct traffic_row *row = traffic_row_of(phase, op, size, type);
    row->calls += calls;
    row->bytes += elements * probe_type_bytes(type);
}

static void add_all_reduce(const struct walk *w, struct traffic_phase *phase, int size, int64_t elements)
{
    enum probe_type type = type_of(w->c->precision.reduce);
    if (!w->choice->split) {
        add(phase, PROBE_ALL_REDUCE, size, type, 1, elements);
    } else if (elements <= FEW_ELEMENTS) {
        add(phase, PROBE_ALL_GATHER, size, type, 1, elements * size);
    } else {
        add(phase, PROBE_REDUCE_SCATTER, size, type, 1, elements);
        add(phase, PROBE_ALL_GATHER, size, type, 1, elements);
    }
}

// later: in the backward after it, where some units are still there.
static void gather(struct walk *w, struct traffic_phase *phase, bool later)
{
    const struct sharding_spec *s = &w->c->sharding;
    int size = later && s->reshard_ranks > 0 ? s->reshard_ranks : s->shards;
    bool keeps = later && !(w->choice->kept_later && w->backwards == 0);
    for (int u = 0; u < w->units.count; u++) {
        bool kept = keeps && ((w->choice->root_kept && w->units.root && u == 0) || (w->choice->last_kept && u == w->units.count - 1));
        if (!kept)
            add(phase, PROBE_ALL_GATHER, size, type_of(w->c->precision.compute), 1, unit_elements(w, u, s->shards, -1));
    }
}

static void reduce(const struct walk *w, struct traffic_phase *phase, bool last)
{
    const struct sharding_spec *s = &w->c->sharding;
    bool whole = s->strategy == STRATEGY_OPTIMIZER && w->choice->reduces_all;
    if (s->strategy == STRATEGY_OPTIMIZER && w->choice->deferred && !last)
        return;
    for (int u = 0; u < w->units.count; u++) {
        if (whole)
            add_all_reduce(w, phase, s->shards, unit_elements(w, u, s->shards, -1));
        else
            add(phase, PROBE_REDUCE_SCATTER, s->shards, type_of(w->c->precision.reduce), 1, unit_elements(w, u, s->shards, -1));
        if (s->replicas > 1 && (last || !w->choice->deferred))
            add_all_reduce(w, phase, s->replicas, unit_elements(w, u, s->shards, w->place.shard));
    }
}

// ---- the program ----

static bool shards_parameters(const struct fsdp_case *c) { return c->sharding.strategy == STRATEGY_FULL || c->sharding.strategy == STRATEGY_HYBRID; }

static bool shards_state_only(const struct fsdp_case *c) { return c->sharding.strategy == STRATEGY_OPTIMIZER || c->sharding.strategy == STRATEGY_GRAD; }

// No later microbatch of the step synchronises.
static bool last_sync(const struct fsdp_case *c, int at)
{
    for (int i = at + 1; i < c->program_length && c->program[i].verb != VERB_STEP; i++)
        if (c->program[i].verb == VERB_MICRO && c->program[i].sync)
            return false;
    return true;
}

static struct traffic_phase *begin(struct walk *w, const char *name, int step)
{
    struct traffic_plan *p = &w->plan;
    p->phases = memory_grow(p->phases, (size_t)p->count, sizeof *p->phases);
    p->phases[p->count] = (struct traffic_phase){.name = name, .step = step};
    return &p->phases[p->count++];
}

// there: full parameters are at hand, of this step.
static void micro(struct walk *w, int at, bool *there)
{
    const struct instruction *in = &w->c->program[at];
    struct traffic_phase *phase = begin(w, "forward", in->step);
    bool sharded = shards_parameters(w->c), reshards = w->c->sharding.reshard_after_forward;
    if (!*there)
        gather(w, phase, false);
    phase = begin(w, "backward", in->step);
    phase->sync = in->sync;
    if (sharded && reshards)
        gather(w, phase, true);
    if (in->sync)
        reduce(w, phase, last_sync(w->c, at));
    w->backwards++;
    *there = !sharded || (!reshards && !in->sync && w->choice->kept_unsynced);
}

static void instruction(struct walk *w, int at, bool *there)
{
    const struct instruction *in = &w->c->program[at];
    struct traffic_phase *phase;
    if (in->verb == VERB_MICRO) {
        micro(w, at, there);
        return;
    }
    if (in->verb == VERB_OBSERVE || in->verb == VERB_SAVE || in->verb == VERB_LOAD || in->verb == VERB_STOP)
        return;
    phase = begin(w, verb_name(in->verb), in->verb == VERB_ZERO_GRAD ? -1 : in->step);
    if (in->verb == VERB_EVAL && !*there) {
        gather(w, phase, false);
        *there = !shards_parameters(w->c);
    }
    if (in->verb == VERB_STEP && shards_state_only(w->c) && !w->choice->gathers_first)
        gather(w, phase, false);
    if (in->verb == VERB_STEP)
        *there = !shards_parameters(w->c) && !(shards_state_only(w->c) && w->choice->gathers_first);
}

struct traffic_plan traffic_plan(const struct fsdp_case *c, const struct traffic_choice *choice, int rank)
{
    struct walk w = {.c = c, .choice = choice, .units = units_of(c), .place = case_place(c, rank), .plan = {0}};
    bool there = !shards_parameters(c) && !(shards_state_only(c) && choice->gathers_first);
    w.plan.units = w.units.count;
    for (int p = 0; p < c->parameter_count; p++)
        w.plan.elements += c->parameters[p].tied_to < 0 ? c->parameters[p].count : 0;
    for (int i = 0; i < c->program_length && c->program[i].verb != VERB_STOP; i++)
        instruction(&w, i, &there);
    free(w.units.of);
    return w.plan;
}

void traffic_plan_free(struct traffic_plan *p)
{
    free(p->phases);
    *p = (struct traffic_plan){0};
}

const char *traffic_unpredicted(const struct fsdp_case *c)
{
    const struct model_spec *m = &c->model;
    for (int i = 0; i < c->program_length; i++) {
        enum verb v = c->program[i].verb;
        if (v == VERB_FREEZE || v == VERB_FORWARD || v == VERB_BACKWARD || v == VERB_LOAD)
            return "no formula for a program that freezes, loads, or keeps a forward for later";
    }
    for (int k = 0; m->kind == MODEL_MLP && k < m->call_count; k++)
        if (m->call_count != m->size_count - 1 || m->calls[k] != k || m->unused > 0)
            return "no formula for layers that are used twice or not at all";
    if (c->sharding.tensor > 1 || c->sharding.pipeline > 1)
        return "no formula for tensor and pipeline ranks";
    if (c->precision.loss_scale == LOSS_SCALE_DYNAMIC)
        return "no formula for steps that may be skipped";
    return NULL;
}

// ---- choices ----

int traffic_choices(const struct fsdp_case *c, struct traffic_choice *out)
{
    const struct sharding_spec *s = &c->sharding;
    bool full = shards_parameters(c), cut = s->shards > 1, reduced = s->replicas > 1;
    bool padded[] = {!cut || s->layout != SHARD_FLAT, cut && s->layout != SHARD_FLAT, cut && s->layout != SHARD_PER_PARAMETER};
    int n = 0;
    for (int bits = 0; bits < 256; bits++) {
        struct traffic_choice x = {.root_kept = bits & 1, .last_kept = bits & 2, .kept_unsynced = bits & 4, .gathers_first = bits & 8,
                                   .reduces_all = bits & 16, .deferred = bits & 32, .split = bits & 64, .kept_later = bits & 128};
        bool kept = x.root_kept || x.last_kept, state = shards_state_only(c), optimizer = s->strategy == STRATEGY_OPTIMIZER;
        if ((kept && !(full && cut && s->reshard_after_forward)) || (x.kept_later && !kept) || (x.kept_unsynced && !(full && cut && !s->reshard_after_forward)) ||
            (x.gathers_first && !(state && cut)) || (x.reduces_all && !(optimizer && cut)) ||
            (x.deferred && !(optimizer && cut) && !(full && reduced)) || (x.split && !reduced && !(x.reduces_all && cut)))
            continue;
        for (int p = 0; p < 3 && n < TRAFFIC_CHOICES; p++)
            if (padded[p]) {
                x.padding = (enum traffic_padding)p;
                out[n++] = x;
            }
    }
    return n;
}

const char *traffic_choice_text(const struct traffic_choice *x, char *text, size_t size)
{
    const struct { bool is; const char *words; } parts[] = {
        {x->root_kept, "the root stays gathered from forward to backward"}, {x->last_kept, "the last unit stays gathered from forward to backward"},
        {x->kept_later, "but not in the first"},
        {x->kept_unsynced, "parameters stay gathered after a backward without synchronisation"},
        {x->gathers_first, "parameters are gathered in the first forward of a step"}, {x->reduces_all, "gradients are all-reduced"},
        {x->deferred, "gradients are reduced once a step"}, {x->split, "an all-reduce is an exchange of parts and a gather"},
        {x->padding == TRAFFIC_CHUNKS, "parameters are padded to equal chunks"}, {x->padding == TRAFFIC_FLAT, "units are padded to equal parts"}};
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].is && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? "; " : "", parts[i].words);
    return text;
}

// ---- what a library sends ----

const struct traffic_library *traffic_library(const char *backend)
{
    // docs/probes.md, "What gloo sends": measured, and ProcessGroupGloo::reduce_scatter_single_coalesced of PyTorch.
    static const struct traffic_library gloo = {"gloo", "gathers by a ring, reduce-scatters by an all-reduce: twice the minimum", 1, 2, 2, 288, 576};
    static const struct traffic_library best = {"minimal", "each collective at its minimum", 1, 1, 2, 0, 0};
    return backend != NULL && strcmp(backend, "gloo") == 0 ? &gloo : &best;
}

double traffic_sent(const struct fsdp_case *c, const struct traffic_choice *choice, const struct traffic_library *l)
{
    double sent = 0;
    for (int r = 0; r < c->world_size; r++) {
        struct traffic_plan plan = traffic_plan(c, choice, r);
        for (int i = 0; i < plan.count; i++)
            for (int k = 0; k < plan.phases[i].count; k++) {
                const struct traffic_row *row = &plan.phases[i].rows[k];
                double times = row->op == PROBE_ALL_GATHER ? l->gather : row->op == PROBE_REDUCE_SCATTER ? l->scatter : l->reduce;
                double header = row->op == PROBE_ALL_GATHER ? l->gather_call : l->reduce_call;
                sent += (times * (double)row->bytes / row->size + header * (double)row->calls) * (row->size - 1);
            }
        traffic_plan_free(&plan);
    }
    return sent / c->world_size;
}
