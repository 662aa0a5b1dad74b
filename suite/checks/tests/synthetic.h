// A subject made of the truth's own pieces: what the checks are tested on, with and without faults.
//
// A case is written in YAML, its data are made, and its program is run step by step in float64 through truth_gradient and truth_update,
// every observed value rounded to the case's parameter dtype: a right program by construction, with no code of the engine. A fault changes a
// gradient, an update or an answer on the way; later steps inherit it, as they would in a real run.
#ifndef SUITE_CHECKS_TESTS_SYNTHETIC_H
#define SUITE_CHECKS_TESTS_SYNTHETIC_H

#include <math.h>

#include "harness/judge/evidence.h"
#include "harness/judge/gradient.h"
#include "harness/judge/norm.h"
#include "harness/judge/program.h"
#include "suite/checks/tests/planned.h"

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

static void synthetic_case(struct synthetic *s, const char *yaml)
{
    struct error error = {{0}};
    planned_make(yaml, s->folder, &s->implementation, &s->plan);
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
        planned_hello(s->c, r, shards, sizeof shards);
        synthetic_say(s, r, "%s", shards);
        for (enum held of = HELD_PARAMETER; of < HELD_COUNT; of++) {
            planned_shards(s->c, r, of, shards, sizeof shards);
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
    planned_free(s->folder, &s->implementation, &s->plan);
    if (s->owned)
        free(s);
}

// Runs one check as judge_case does.
static __attribute__((unused)) struct finding synthetic_judge(struct synthetic *s, const char *name)
{
    const struct check *check = planned_check(name);
    struct finding f = {.figure = NAN, .bound = NAN};
    s->e.check = name;
    assert_true(check->applies(&s->e));
    check->judge(&s->e, &f);
    if (!f.emitted)
        finding_broken(&f, "the check applies but saw nothing");
    return f;
}

#endif
