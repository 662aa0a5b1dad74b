// A subject made of the truth's own pieces: what the checks are tested on, with and without faults.
//
// A case is written in YAML, its data are made, and its program is run step by step in float64 through truth_gradient and truth_update,
// every observed value rounded to the case's parameter dtype: a right program by construction, with no code of the engine. A fault changes a
// gradient, an update or an answer on the way; later steps inherit it, as they would in a real run.
#ifndef SUITE_CHECKS_TESTS_SYNTHETIC_H
#define SUITE_CHECKS_TESTS_SYNTHETIC_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/cases/suite.h"
#include "harness/judge/evidence.h"
#include "harness/judge/gradient.h"
#include "harness/judge/holdings.h"
#include "harness/judge/norm.h"
#include "harness/judge/program.h"
#include "harness/protocol/tests/temporary.h"
#include "suite/checks/check.h"

enum { SYNTHETIC_LABELS = 64, SYNTHETIC_RANKS = 8 };

struct synthetic;
struct fault {
    // after the gradient of a step is known, before it is rounded: "grad/<name>" F64
    void (*gradient)(struct synthetic *s, const struct program_label *at, struct tensors *gradient);
    // after a step: "param/<name>", ... F64; before: the same tensors before it
    void (*update)(struct synthetic *s, int step, struct tensors *state, const struct tensors *before);
    // after clipping: norm that is logged by a rank, and the factor used
    void (*clip)(struct synthetic *s, double *factor, double *norms);
    // when all is done: observed tensors, answers, holdings, truth
    void (*finish)(struct synthetic *s);
    // of the text of a rank's answer: the reported loss is multiplied by it (0: 1)
    double loss_factor;
};

struct synthetic {
    bool owned;        // by synthetic_run
    char folder[64];
    struct plan plan;
    struct implementation implementation;
    struct fsdp_case *c;
    struct truth truth;
    struct answer answers[SYNTHETIC_RANKS];
    struct observed observed[SYNTHETIC_LABELS];
    struct holdings holdings;
    struct evidence e;
    char digest[33], truth_digest[33];
    const struct fault *fault;
    struct tensors state, gradient, clipped; // F64 values that fit the parameter dtype
    struct tensors saved;
    char text[SYNTHETIC_RANKS][1 << 16];
    int steps_taken, saved_steps;
    double losses[64];
};

static const char synthetic_manifest[] = "title: synthetic\ncommand: [\"/bin/true\"]\nranks: [1, 8]\ntensor: [1, 8]\npipeline: [1, 8]\ncompute: [f32, bf16, f16]\nreduce: [f32, bf16]\n";

static void synthetic_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void synthetic_case(struct synthetic *s, const char *yaml)
{
    char path[128];
    struct error error = {{0}};
    snprintf(s->folder, sizeof s->folder, "/tmp/fsdpmark-synthetic-XXXXXX");
    assert_non_null(temporary_make(s->folder));
    snprintf(path, sizeof path, "%s/implementation.yaml", s->folder);
    synthetic_write(path, synthetic_manifest);
    if (!implementation_read(path, "suite", &s->implementation, &error))
        fail_msg("%s", error.text);
    snprintf(path, sizeof path, "%s/case.yaml", s->folder);
    synthetic_write(path, yaml);
    struct selection selection = {.suite = "suite", .case_file = path, .scale = 1};
    if (!plan_make(&selection, &s->implementation, &s->plan, &error))
        fail_msg("%s", error.text);
    for (int i = 0; i < s->plan.count; i++)
        if (!s->plan.cases[i].is_gate)
            s->c = &s->plan.cases[i].c;
    assert_non_null(s->c);
    if (!truth_make(s->c, s->folder, &error) || !truth_load(s->c, s->folder, &s->truth, &error))
        fail_msg("%s", error.text);
}

static void synthetic_round(const struct synthetic *s, struct tensors *set, const char *prefix)
{
    for (int i = 0; i < set->count; i++)
        for (int64_t k = 0; strncmp(set->items[i].name, prefix, strlen(prefix)) == 0 && k < set->items[i].count; k++) {
            uint64_t cell = 0;
            dtype_set(s->c->precision.parameter, &cell, 0, ((double *)set->items[i].data)[k]);
            ((double *)set->items[i].data)[k] = dtype_get(s->c->precision.parameter, &cell, 0);
        }
}

static void synthetic_copy(struct tensors *to, const struct tensors *from)
{
    tensors_free(to);
    *to = (struct tensors){0};
    gradient_add(to, from, 1);
}

// ---- who holds what ----

static struct range synthetic_flat(const struct fsdp_case *c, int p, int shard)
{
    int64_t before = 0, whole = 0;
    for (int q = 0; q < c->parameter_count; q++) {
        bool counts = c->parameters[q].tied_to < 0 && strcmp(c->parameters[q].unit, c->parameters[p].unit) == 0;
        whole += counts ? c->parameters[q].count : 0;
        before += counts && q < p ? c->parameters[q].count : 0;
    }
    int64_t cut = (whole + c->sharding.shards - 1) / c->sharding.shards, first = cut * shard - before, end = first + cut;
    first = first < 0 ? 0 : first > c->parameters[p].count ? c->parameters[p].count : first;
    end = end < first ? first : end > c->parameters[p].count ? c->parameters[p].count : end;
    return (struct range){first, end - first};
}

// The stage of a parameter: units in the order of the table, evenly cut; the root with the first.
static int synthetic_stage(const struct fsdp_case *c, int p)
{
    int units = 0, mine = 0;
    for (int q = 0; q < c->parameter_count; q++) {
        if (!*c->parameters[q].unit || (q > 0 && strcmp(c->parameters[q].unit, c->parameters[q - 1].unit) == 0))
            continue;
        units++;
        mine = q <= p ? units - 1 : mine;
    }
    return *c->parameters[p].unit ? mine * c->sharding.pipeline / units : 0;
}

// With tensor or pipeline ranks: matrices of blocks are cut by columns between tensor coordinates, then sharded by chunks of rows.
static size_t synthetic_ranges(const struct fsdp_case *c, int p, int rank, bool sharded, char *text, size_t size)
{
    const struct case_parameter *parameter = &c->parameters[p];
    struct rank_place at = case_place(c, rank);
    int64_t rows = parameter->shape[0], row = parameter->count / rows, first = 0, end = row;
    struct range chunk = sharded ? holdings_chunk_rows(rows, at.shard, c->sharding.shards) : (struct range){0, rows};
    size_t used = 0;
    if (parameter->dims > 1 && *parameter->unit) {
        first = row * at.tensor / c->sharding.tensor;
        end = row * (at.tensor + 1) / c->sharding.tensor;
    }
    text[0] = 0;
    for (int64_t r = chunk.offset; r < chunk.offset + chunk.length && synthetic_stage(c, p) == at.stage; r++)
        used += (size_t)snprintf(text + used, size - used, "%s[%lld, %lld]", used ? ", " : "", (long long)(r * row + first), (long long)(end - first));
    return used;
}

static void synthetic_shards(struct synthetic *s, int rank, enum held of, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "{\"event\": \"shards\", \"of\": \"%s\", \"parts\": {", held_name(of));
    bool first = true, flat = s->c->sharding.layout == SHARD_FLAT;
    int shard = case_place(s->c, rank).shard;
    int64_t held = 0, largest = 0;
    bool parallel = s->c->sharding.tensor > 1 || s->c->sharding.pipeline > 1;
    char ranges[4096];
    for (int p = 0; p < s->c->parameter_count; p++) {
        if (s->c->parameters[p].tied_to >= 0)
            continue;
        struct range r = !holdings_must_shard(s->c, of) ? (struct range){0, s->c->parameters[p].count}
                         : flat                         ? synthetic_flat(s->c, p, shard)
                                                        : holdings_chunk(&s->c->parameters[p], shard, s->c->sharding.shards);
        if (parallel) {
            synthetic_ranges(s->c, p, rank, holdings_must_shard(s->c, of), ranges, sizeof ranges);
            used += (size_t)snprintf(text + used, size - used, "%s\"%s\": [%s]", first ? "" : ", ", s->c->parameters[p].name, ranges);
            first = false;
            continue;
        }
        used += (size_t)snprintf(text + used, size - used, "%s\"%s\": [[%lld, %lld]]", first ? "" : ", ", s->c->parameters[p].name,
                                 (long long)r.offset, (long long)r.length);
        held += r.length;
        largest += flat && holdings_must_shard(s->c, of) ? synthetic_flat(s->c, p, 0).length : 0;
        first = false;
    }
    snprintf(text + used, size - used, "}, \"padding\": %lld, \"padding_max\": 0}\n", (long long)(flat && holdings_must_shard(s->c, of) && largest > held ? largest - held : 0));
}

// ---- the run ----

// A number as JSON, the strings of answer_number for what is not finite.
static const char *synthetic_number(double x)
{
    static char texts[4][40];
    static int next;
    char *text = texts[next++ % 4];
    if (judge_finite(x))
        snprintf(text, sizeof texts[0], "%.17g", x);
    else
        snprintf(text, sizeof texts[0], "\"%s\"", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
    return text;
}

static void synthetic_say(struct synthetic *s, int rank, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void synthetic_say(struct synthetic *s, int rank, const char *format, ...)
{
    size_t used = strlen(s->text[rank]);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s->text[rank] + used, sizeof s->text[rank] - used, format, arguments);
    va_end(arguments);
}

static void synthetic_backward(struct synthetic *s, int at)
{
    struct program_label l = {.at = at, .label = "", .gradient_step = s->c->program[at].step, .parameters_at = -1};
    struct error error = {{0}};
    double loss;
    for (int i = at; s->c->program[at].verb == VERB_BACKWARD && i >= 0; i--)
        if (s->c->program[i].verb == VERB_FORWARD && s->c->program[i].slot == s->c->program[at].slot)
            l.gradient_step = s->c->program[i].step;
    tensors_free(&s->gradient);
    l.parameters_at = program_state_before(s->c, at, OBSERVE_PARAM);
    if (!gradient_of(&s->e, &l, &s->state, SHARE_ALL, &s->gradient, &loss, &error))
        fail_msg("%s", error.text);
    s->losses[l.gradient_step] = loss;
    if (s->fault && s->fault->gradient)
        s->fault->gradient(s, &l, &s->gradient);
    synthetic_round(s, &s->gradient, "grad/");
}

static void synthetic_clip(struct synthetic *s)
{
    struct norm n = norm_of(&s->e, &s->gradient, "grad", -1);
    double factor = fmin(1, s->c->clip_limit / (n.value + 1e-6)), norms[SYNTHETIC_RANKS];
    for (int r = 0; r < s->c->world_size; r++)
        norms[r] = n.value;
    if (s->fault && s->fault->clip)
        s->fault->clip(s, &factor, norms);
    tensors_free(&s->clipped);
    s->clipped = (struct tensors){0};
    for (int i = 0; i < s->gradient.count; i++) {
        char name[300];
        const struct tensor *g = &s->gradient.items[i];
        snprintf(name, sizeof name, "clipped/%s", g->name + 5);
        struct tensor *t = tensors_add(&s->clipped, name, DTYPE_F64, g->dims, g->shape, NULL, false);
        for (int64_t k = 0; k < g->count; k++)
            ((double *)t->data)[k] = factor * ((const double *)g->data)[k];
    }
    synthetic_round(s, &s->clipped, "clipped/");
    for (int r = 0; r < s->c->world_size; r++)
        synthetic_say(s, r, "{\"event\": \"clip\", \"step\": 0, \"norm\": %s}\n", synthetic_number(norms[r]));
}

static void synthetic_step(struct synthetic *s, int at)
{
    struct error error = {{0}};
    struct tensors before = {0};
    bool *frozen = calloc((size_t)s->c->parameter_count + 1, sizeof *frozen), clips = s->clipped.count > 0;
    bool skipped = s->c->precision.loss_scale == LOSS_SCALE_DYNAMIC && s->truth.steps[s->c->program[at].step].skipped;
    program_frozen(s->c, at, frozen);
    synthetic_copy(&before, &s->state);
    s->steps_taken += !skipped;
    if (!skipped && !truth_update(s->c, &s->state, clips ? &s->clipped : &s->gradient, clips ? "clipped" : "grad", s->steps_taken, frozen, &error))
        fail_msg("%s", error.text);
    if (s->fault && s->fault->update)
        s->fault->update(s, s->c->program[at].step, &s->state, &before);
    synthetic_round(s, &s->state, "");
    for (int r = 0; r < s->c->world_size; r++)
        synthetic_say(s, r, "{\"event\": \"step\", \"step\": %d, \"skipped\": %s, \"loss_scale\": 1, \"seconds\": 0}\n", s->c->program[at].step, skipped ? "true" : "false");
    tensors_free(&before);
    free(frozen);
}

static void synthetic_keep(const struct synthetic *s, struct tensors *out, const struct tensors *from, const char *prefix)
{
    for (int i = 0; i < from->count; i++) {
        const struct tensor *t = &from->items[i];
        if (strncmp(t->name, prefix, strlen(prefix)) != 0 || t->name[strlen(prefix)] != '/')
            continue;
        struct tensor *copy = tensors_add(out, t->name, s->c->precision.parameter, t->dims, t->shape, NULL, false);
        for (int64_t k = 0; k < t->count; k++)
            dtype_set(copy->dtype, copy->data, k, ((const double *)t->data)[k]);
    }
}

static void synthetic_local(struct synthetic *s, struct observed *o)
{
    o->local = calloc((size_t)s->c->world_size, sizeof *o->local);
    for (int r = 0; r < s->c->world_size; r++)
        for (int i = 0; i < o->full.count; i++) {
            const struct tensor *t = &o->full.items[i];
            const char *slash = strchr(t->name, '/');
            bool gradient = strncmp(t->name, "grad/", 5) == 0 || strncmp(t->name, "clipped/", 8) == 0;
            enum held of = strncmp(t->name, "param/", 6) == 0 ? HELD_PARAMETER : gradient ? HELD_GRADIENT : HELD_OPTIMIZER;
            const struct held_part *part = &s->holdings.by[of][r].parts[case_find_parameter(s->c, slash + 1)];
            if (part->total == 0)
                continue;
            struct tensor *own = tensors_add(&o->local[r], t->name, t->dtype, 1, &part->total, NULL, false);
            size_t size = dtype_size(t->dtype), at = 0;
            for (int k = 0; k < part->count; at += (size_t)part->ranges[k++].length * size)
                memcpy((char *)own->data + at, (const char *)t->data + (size_t)part->ranges[k].offset * size, (size_t)part->ranges[k].length * size);
        }
}

static void synthetic_observe(struct synthetic *s, const struct instruction *n)
{
    struct observed *o = &s->observed[s->e.observed_count++];
    o->label = strdup(n->label);
    for (unsigned bit = 1; bit <= OBSERVE_MOMENTUM; bit <<= 1)
        if (n->what & bit)
            synthetic_keep(s, &o->full, bit == OBSERVE_GRAD ? &s->gradient : bit == OBSERVE_CLIPPED ? &s->clipped : &s->state, observe_name((enum observe_bit)bit));
    if (n->local)
        synthetic_local(s, o);
}

static void synthetic_start(struct synthetic *s)
{
    struct error error = {{0}};
    static const char *const prefixes[] = {"param", "exp_avg", "exp_avg_sq", "momentum"};
    for (int i = 0; i < s->truth.init.count; i++)
        for (int k = 0; k < 4; k++) {
            const struct tensor *t = &s->truth.init.items[i];
            char name[300];
            snprintf(name, sizeof name, "%s/%s", prefixes[k], t->name);
            struct tensor *copy = tensors_add(&s->state, name, DTYPE_F64, t->dims, t->shape, NULL, false);
            for (int64_t e = 0; k == 0 && e < t->count; e++)
                ((double *)copy->data)[e] = dtype_get(t->dtype, t->data, e);
        }
    synthetic_round(s, &s->state, "param/");
    char shards[1 << 14];
    for (int r = 0; r < s->c->world_size; r++) {
        const struct sharding_spec *h = &s->c->sharding;
        const struct precision_spec *p = &s->c->precision;
        synthetic_say(s, r, "{\"event\": \"hello\", \"case\": \"%s\", \"rank\": %d, \"world_size\": %d, \"implementation\": \"synthetic\", \"version\": \"1\", \"configured\": "
                      "{\"strategy\": \"%s\", \"mesh\": \"%dx%d\", \"tensor\": \"%d\", \"pipeline\": \"%d\", \"compute\": \"%s\", \"reduce\": \"%s\"}}\n", s->c->id, r, s->c->world_size,
                      strategy_name(h->strategy), h->replicas, h->shards, h->tensor, h->pipeline, dtype_name(p->compute), dtype_name(p->reduce));
        for (enum held of = HELD_PARAMETER; of < HELD_COUNT; of++) {
            synthetic_shards(s, r, of, shards, sizeof shards);
            synthetic_say(s, r, "%s", shards);
        }
        if (!answer_parse(s->text[r], strlen(s->text[r]), "synthetic", s->c->id, r, s->c->world_size, &s->answers[r], &error))
            fail_msg("%s", error.text);
    }
    if (!holdings_load(s->c, s->answers, &s->holdings, &error))
        fail_msg("%s", error.text);
}

static void synthetic_losses(struct synthetic *s)
{
    double factor = s->fault && s->fault->loss_factor != 0 ? s->fault->loss_factor : 1;
    for (int at = 0; at < s->c->program_length; at++) {
        const struct instruction *n = &s->c->program[at];
        double share = s->losses[n->step] / (double)(case_data_ranks(s->c) * s->c->data.micros) * factor;
        for (int r = 0; (n->verb == VERB_MICRO || n->verb == VERB_FORWARD) && r < s->c->world_size; r++)
            synthetic_say(s, r, "{\"event\": \"micro\", \"step\": %d, \"micro\": %d, \"loss\": %s, \"tokens\": 1, \"seconds\": 0}\n", n->step, n->micro,
                          synthetic_number(case_place(s->c, r).stage == s->c->sharding.pipeline - 1 ? share : 0));
        for (int r = 0; n->verb == VERB_EVAL && r < s->c->world_size; r++) // where the step that follows is trained
            synthetic_say(s, r, "{\"event\": \"eval\", \"step\": %d, \"micro\": %d, \"loss\": %s}\n", n->step, n->micro, synthetic_number(share));
    }
}

static void synthetic_answers(struct synthetic *s)
{
    struct error error = {{0}};
    synthetic_losses(s);
    for (int r = 0; r < s->c->world_size; r++) {
        answer_free(&s->answers[r]);
        synthetic_say(s, r, "{\"event\": \"done\"}\n");
        if (!answer_parse(s->text[r], strlen(s->text[r]), "synthetic", s->c->id, r, s->c->world_size, &s->answers[r], &error))
            fail_msg("%s", error.text);
    }
}

// The whole run; the caller releases it with synthetic_free.
static struct synthetic *synthetic_run(const char *yaml, const struct fault *fault)
{
    struct synthetic *s = calloc(1, sizeof *s);
    s->owned = true;
    s->fault = fault;
    synthetic_case(s, yaml);
    s->e = (struct evidence){.c = s->c, .truth = &s->truth, .world_size = s->c->world_size, .answers = s->answers, .observed = s->observed,
                             .implementation = "synthetic", .budget = JUDGE_BUDGET, .holdings = &s->holdings};
    synthetic_start(s);
    for (int at = 0; at < s->c->program_length; at++) {
        const struct instruction *n = &s->c->program[at];
        if (n->verb == VERB_MICRO || n->verb == VERB_BACKWARD)
            synthetic_backward(s, at);
        else if (n->verb == VERB_CLIP)
            synthetic_clip(s);
        else if (n->verb == VERB_STEP)
            synthetic_step(s, at);
        else if (n->verb == VERB_SAVE)
            synthetic_copy(&s->saved, &s->state), s->saved_steps = s->steps_taken;
        else if (n->verb == VERB_LOAD)
            synthetic_copy(&s->state, &s->saved), s->steps_taken = s->saved_steps;
        else if (n->verb == VERB_OBSERVE)
            synthetic_observe(s, n);
    }
    synthetic_answers(s);
    s->e.truth_digest = judge_truth_digest(s->c, &s->truth, s->truth_digest) ? s->truth_digest : NULL;
    if (fault && fault->finish)
        fault->finish(s);
    for (int i = s->e.observed_count - 1; i >= 0 && !s->e.digest; i--)
        s->e.digest = judge_digest(s->c, &s->observed[i].full, "param", s->digest) ? s->digest : NULL;
    return s;
}

static void synthetic_free(struct synthetic *s)
{
    char command[128];
    for (int i = 0; i < SYNTHETIC_LABELS; i++) { // a fault may have hidden labels from the evidence
        for (int r = 0; s->observed[i].local && r < s->c->world_size; r++)
            tensors_free(&s->observed[i].local[r]);
        free(s->observed[i].local);
        tensors_free(&s->observed[i].full);
        free(s->observed[i].label);
    }
    for (int r = 0; r < s->c->world_size; r++)
        answer_free(&s->answers[r]);
    holdings_free(&s->holdings);
    truth_free(&s->truth);
    tensors_free(&s->state);
    tensors_free(&s->gradient);
    tensors_free(&s->clipped);
    tensors_free(&s->saved);
    tensors_free(&s->e.saved_state);
    snprintf(command, sizeof command, "rm -rf %s", s->folder);
    assert_int_equal(system(command), 0);
    plan_free(&s->plan);
    implementation_free(&s->implementation);
    if (s->owned)
        free(s);
}

static __attribute__((unused)) const struct check *synthetic_check(const char *name)
{
    for (int i = 0; check_list[i]; i++)
        if (strcmp(check_list[i]->name, name) == 0)
            return check_list[i];
    fail_msg("no check '%s'", name);
    return NULL;
}

// Runs one check as judge_case does.
static __attribute__((unused)) struct finding synthetic_judge(struct synthetic *s, const char *name)
{
    const struct check *check = synthetic_check(name);
    struct finding f = {.figure = NAN, .bound = NAN};
    s->e.check = name;
    assert_true(check->applies(&s->e));
    check->judge(&s->e, &f);
    if (!f.emitted)
        finding_broken(&f, "the check applies but saw nothing");
    return f;
}

#endif
