// Loads observed labels and validates them against the parameter table. See evidence.h.
//
// Why so strict: a tensor that is missing, or that has another shape, would silently leave a check with less to see.
#include "harness/judge/evidence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judge/holdings.h"
#include "harness/judge/program.h"

const struct observed *evidence_find(const struct evidence *e, const char *label)
{
    for (int i = 0; label && i < e->observed_count; i++)
        if (strcmp(e->observed[i].label, label) == 0)
            return &e->observed[i];
    return NULL;
}

static void shape_text(int dims, const int64_t *shape, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "(");
    for (int i = 0; i < dims && used + 24 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? ", " : "", (long long)shape[i]);
    snprintf(text + used, size - used, ")");
}

static bool is_zero(const struct tensor *t)
{
    for (int64_t i = 0; i < t->count; i++)
        if (dtype_get(t->dtype, t->data, i) != 0)
            return false;
    return true;
}

// Flat index of the first element that is not finite, or -1.
static int64_t first_nonfinite(const struct tensor *t)
{
    for (int64_t i = 0; i < t->count; i++)
        if (!judge_finite(dtype_get(t->dtype, t->data, i)))
            return i;
    return -1;
}

// A step that the truth skips overflowed on purpose: its gradients may be infinite.
static bool may_overflow(const struct evidence *e, const char *label)
{
    struct program_label l;
    for (int i = 0; i < e->c->program_length; i++)
        if (e->c->program[i].verb == VERB_OBSERVE && strcmp(e->c->program[i].label, label) == 0) {
            l = program_label_at(e->c, i);
            return l.gradient_step >= 0 && l.gradient_step < e->truth->step_count && e->truth->steps[l.gradient_step].skipped;
        }
    return false;
}

static bool validate_tensor(const struct evidence *e, const char *label, const char *prefix, int p, const struct tensor *t, struct finding *f)
{
    const struct case_parameter *parameter = &e->c->parameters[p];
    char found[128], expected[128];
    shape_text(t->dims, t->shape, found, sizeof found);
    shape_text(parameter->dims, parameter->shape, expected, sizeof expected);
    if (t->dims != parameter->dims || memcmp(t->shape, parameter->shape, (size_t)t->dims * sizeof *t->shape) != 0) {
        finding_fail(f, "", "label %s: %s/%s has shape %s, expected %s", label, prefix, parameter->name, found, expected);
        return false;
    }
    if (!dtype_is_float(t->dtype)) {
        finding_fail(f, "", "label %s: %s/%s has dtype %s, expected f32, bf16, f16 or f64", label, prefix, parameter->name, dtype_name(t->dtype));
        return false;
    }
    int64_t bad = first_nonfinite(t);
    if (bad >= 0 && !(strcmp(prefix, "param") != 0 && may_overflow(e, label))) {
        finding_fail(f, "Z21", "label %s: %s/%s is not finite at element %lld (%g)", label, prefix, parameter->name, (long long)bad,
                     dtype_get(t->dtype, t->data, bad));
        return false;
    }
    return true;
}

bool evidence_validate(const struct evidence *e, const struct observed *o, unsigned what, struct finding *f)
{
    bool ok = true;
    const struct tensors *truth = truth_find(e->truth, o->label);
    for (unsigned bit = 1; bit <= OBSERVE_MOMENTUM; bit <<= 1)
        for (int p = 0; p < e->c->parameter_count && what & bit; p++) {
            const char *prefix = observe_name((enum observe_bit)bit), *name = e->c->parameters[p].name;
            const struct tensor *t = e->c->parameters[p].tied_to < 0 ? tensors_find2(&o->full, prefix, name) : NULL;
            const struct tensor *expected = truth ? tensors_find2(truth, prefix, name) : NULL;
            if (t)
                ok &= validate_tensor(e, o->label, prefix, p, t, f);
            else if (e->c->parameters[p].tied_to < 0 && (bit == OBSERVE_PARAM || (expected && !is_zero(expected)))) {
                finding_fail(f, bit & (OBSERVE_GRAD | OBSERVE_CLIPPED) ? "Z14 Z13" : "", "label %s: %s/%s is missing%s", o->label, prefix,
                             name, bit == OBSERVE_PARAM ? "" : ", the truth has one that is not 0");
                ok = false;
            }
        }
    return ok;
}

// A rank's own part: one-dimensional, as long as its shards event says.
static bool validate_local(const struct evidence *e, const struct observed *o, int rank, unsigned what, struct finding *f)
{
    for (unsigned bit = 1; bit <= OBSERVE_MOMENTUM; bit <<= 1)
        for (int p = 0; p < e->c->parameter_count && what & bit; p++) {
            const char *prefix = observe_name((enum observe_bit)bit), *name = e->c->parameters[p].name;
            const struct tensor *t = tensors_find2(&o->local[rank], prefix, name);
            const struct held_rank *held = holdings_rank(e, held_of(bit), rank);
            if (!held || !held->reported || e->c->parameters[p].tied_to >= 0)
                continue;
            bool whole = tensors_find2(&o->full, prefix, name) != NULL;
            int64_t expected = held->parts[p].total, found = t ? t->count : 0;
            if ((t || whole) && found != expected) {
                finding_fail(f, "", "label %s, rank %d: its part of %s/%s has %lld elements, its shards event says %lld", o->label, rank,
                             prefix, name, (long long)found, (long long)expected);
                return false;
            }
            if (t && first_nonfinite(t) >= 0 && !(bit != OBSERVE_PARAM && may_overflow(e, o->label))) {
                finding_fail(f, "Z21", "label %s, rank %d: its part of %s/%s is not finite at element %lld", o->label, rank, prefix, name,
                             (long long)first_nonfinite(t));
                return false;
            }
        }
    return true;
}

static bool load_label(const struct judge_context *j, const struct evidence *e, const struct instruction *n, struct observed *o, struct finding *f)
{
    char path[4096];
    struct error error = {{0}};
    o->label = strdup(n->label);
    snprintf(path, sizeof path, "%s/out/%s.safetensors", j->case_folder, n->label);
    if (!tensors_read(path, &o->full, &error)) {
        finding_fail(f, "", "label %s of rank 0 cannot be read: %s", n->label, error.text);
        return false;
    }
    bool ok = evidence_validate(e, o, n->what, f);
    if (n->local)
        o->local = calloc((size_t)e->world_size, sizeof *o->local);
    for (int r = 0; ok && n->local && r < e->world_size; r++) {
        snprintf(path, sizeof path, "%s/out/%s.rank%d.safetensors", j->case_folder, n->label, r);
        if (!tensors_read(path, &o->local[r], &error)) {
            finding_fail(f, "", "label %s of rank %d cannot be read: %s", n->label, r, error.text);
            return false;
        }
        ok = validate_local(e, o, r, n->what, f);
    }
    return ok;
}

// Did all ranks come to their end? Fills a finding where not.
static bool all_done(const struct judge_context *j, struct finding *f)
{
    int n = j->c->world_size, unsupported = 0, done = 0;
    const char *reason = "";
    for (int r = 0; r < n; r++) {
        const struct answer *a = &j->answers[r];
        const struct event *last = a->count > 0 ? &a->events[a->count - 1] : NULL;
        const char *text = NULL;
        if (a->ended && a->end == EVENT_ERROR) {
            text = json_string_value(json_object_get(last->fields, "message"));
            finding_fail(f, "", "rank %d reported an error: %s", r, text ? text : "");
        } else if (!a->ended)
            finding_fail(f, "Z29", "rank %d stopped answering after %d events", r, a->count);
        else if (a->end == EVENT_UNSUPPORTED) {
            text = json_string_value(json_object_get(last->fields, "reason"));
            reason = text ? text : "";
            unsupported++;
        } else
            done++;
    }
    if (unsupported == n)
        finding_skip(f, "unsupported: %s", reason);
    else if (unsupported > 0)
        finding_fail(f, "Z29", "%d of %d ranks answered unsupported, the others did not: %s", unsupported, n, reason);
    return done == n;
}

static bool load_labels(const struct judge_context *j, struct loaded_evidence *l, struct finding *f)
{
    bool ok = true;
    l->observed = calloc((size_t)j->c->program_length + 1, sizeof *l->observed);
    l->evidence.observed = l->observed;
    for (int i = 0; i < j->c->program_length; i++)
        if (j->c->program[i].verb == VERB_OBSERVE)
            ok &= load_label(j, &l->evidence, &j->c->program[i], &l->observed[l->evidence.observed_count++], f);
    return ok;
}

static void load_saved(struct evidence *e)
{
    char path[4096];
    int load = program_next(e->c, VERB_LOAD, 0);
    for (int i = load; e->saved && i >= 0 && i < e->c->program_length; i++) {
        if (e->c->program[i].verb != VERB_OBSERVE || !(e->c->program[i].what & OBSERVE_PARAM))
            continue;
        snprintf(path, sizeof path, "%s/%s.safetensors", e->saved->folder, e->c->program[i].label);
        tensors_read(path, &e->saved_state, &e->saved_error);
        return;
    }
}

static void digest_last(struct loaded_evidence *l)
{
    struct evidence *e = &l->evidence;
    for (int i = e->observed_count - 1; i >= 0 && !e->digest; i--)
        e->digest = judge_digest(e->c, &e->observed[i].full, "param", l->digest) ? l->digest : NULL;
    e->truth_digest = judge_truth_digest(e->c, e->truth, l->truth_digest) ? l->truth_digest : NULL;
}

bool evidence_load(const struct judge_context *j, struct loaded_evidence *l, struct finding *f)
{
    struct error error = {{0}};
    *l = (struct loaded_evidence){.evidence = {.c = j->c, .truth = j->truth, .world_size = j->c->world_size, .answers = j->answers,
                                               .implementation = j->implementation, .figures = j->figures,
                                               .family_count = j->family_count, .family = j->family,
                                               .budget = j->budget > 0 ? j->budget : JUDGE_BUDGET, .saved = j->saved, .probes = j->probes, .probe_error = j->probe_error, .probes_asked = j->probes_asked,
                                               .probed_count = j->probed_count, .probed = j->probed}};
    if (!all_done(j, f))
        return false;
    l->holdings = calloc(1, sizeof *l->holdings);
    bool ok = holdings_load(j->c, j->answers, l->holdings, &error);
    l->evidence.holdings = l->holdings;
    if (!ok)
        finding_fail(f, "", "%s", error.text);
    ok &= load_labels(j, l, f);
    load_saved(&l->evidence);
    digest_last(l);
    return ok;
}

void evidence_free(struct loaded_evidence *l)
{
    for (int i = 0; i < l->evidence.observed_count; i++) {
        struct observed *o = &l->observed[i];
        for (int r = 0; o->local && r < l->evidence.world_size; r++)
            tensors_free(&o->local[r]);
        free(o->local);
        tensors_free(&o->full);
        free(o->label);
    }
    free(l->observed);
    tensors_free(&l->evidence.saved_state);
    if (l->holdings)
        holdings_free(l->holdings);
    free(l->holdings);
    *l = (struct loaded_evidence){0};
}
