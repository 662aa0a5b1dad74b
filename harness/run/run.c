// The order of a run: truths first, then the unsharded gates, then of what they let through the cases that save what others load,
// then the rest, by world size.
#include "harness/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/fabric/fabric.h"
#include "harness/launch/interrupt.h"
#include "harness/protocol/memory.h"
#include "harness/run/engine.h"

// The first of the manifest that can start ranks on the fabric.
static const char *first_launcher(const struct run_settings *s, const struct implementation *i)
{
    for (int k = 0; s->place != NULL && k < i->launchers.count; k++)
        if (fabric_refuses(fabric_place_fabric(s->place), i->launchers.items[k]) == NULL)
            return i->launchers.items[k];
    return i->launchers.count > 0 ? i->launchers.items[0] : "local";
}

static const char *choose_launcher(const struct run_settings *s, const struct implementation *i, struct error *error)
{
    const char *asked = s->launcher != NULL ? s->launcher : first_launcher(s, i);
    for (int k = 0; k < i->launchers.count; k++)
        if (strcmp(i->launchers.items[k], asked) == 0 && launcher_find(asked) != NULL)
            return asked;
    error_set(error, "implementation %s: found launcher '%s', expected one that its manifest names%s%s", i->name, asked,
              i->launchers.count > 0 ? ", first " : " (it names none)", i->launchers.count > 0 ? i->launchers.items[0] : "");
    return NULL;
}

// The plan may name a folder that several cases share; every name becomes a folder of this run.
static bool place_checkpoints(struct engine *e)
{
    for (int i = 0; i < e->plan->count; i++) {
        struct fsdp_case *c = &e->plan->cases[i].c;
        const char *name = c->checkpoint != NULL && c->checkpoint[0] != 0 ? c->checkpoint : c->id;
        char *path;
        if (name[0] == '/')
            continue;
        if (asprintf(&path, "%s/checkpoints/%s/%s", e->settings->scratch, e->implementation->name, name) < 0)
            return error_set(e->error, "out of memory");
        free(c->checkpoint);
        c->checkpoint = path;
    }
    for (int i = 0; i < e->plan->count; i++) {
        struct planned_case *p = &e->plan->cases[i];
        if (p->saver < 0)
            continue;
        free(p->c.checkpoint);
        p->c.checkpoint = memory_text(e->plan->cases[p->saver].c.checkpoint);
    }
    return true;
}

static bool is_open(const struct engine *e, int i)
{
    return !e->state[i].over;
}

// Probes are not stored: what compares cases of a run by them needs all of them.
static bool probed_again(const struct engine *e, int i)
{
    return e->plan->probes != 0 && e->plan->cases[i].skip == NULL;
}

static void take_known(struct case_state *state, const struct known_case *known)
{
    state->over = true;
    state->verdict = (enum verdict)known->verdict;
    memcpy(state->digest, known->digest, sizeof state->digest);
    memcpy(state->truth_digest, known->truth_digest, sizeof state->truth_digest);
}

// What was saved went with the session that judged it.
static void reopen_savers(struct engine *e)
{
    for (int i = 0; i < e->plan->count; i++) {
        int saver = e->plan->cases[i].saver;
        if (!is_open(e, i) || saver < 0 || is_open(e, saver) || e->state[saver].verdict != VERDICT_PASS)
            continue;
        e->state[saver].over = false;
        e->state[saver].again = true;
    }
}

static void decide_skips(struct engine *e, const struct known_case *known)
{
    for (int i = 0; i < e->plan->count && !e->stopped; i++) {
        if (known != NULL && known[i].verdict >= 0) {
            take_known(&e->state[i], &known[i]);
            e->state[i].again = probed_again(e, i);
            e->state[i].over = !e->state[i].again;
        } else if (e->plan->cases[i].skip != NULL) {
            struct finding f = {0};
            finding_skip(&f, "%s", e->plan->cases[i].skip);
            verdict_give(e, i, "answer", &f, 0, NULL);
        }
    }
    reopen_savers(e);
}

static bool make_truths(struct engine *e)
{
    const struct fsdp_case **cases = calloc((size_t)e->plan->count, sizeof *cases);
    struct error *errors = calloc((size_t)e->plan->count, sizeof *errors);
    int *index = calloc((size_t)e->plan->count, sizeof *index), count = 0;
    if (cases == NULL || errors == NULL || index == NULL)
        return error_set(e->error, "out of memory");
    for (int i = 0; i < e->plan->count; i++)
        if (is_open(e, i)) {
            cases[count] = &e->plan->cases[i].c;
            index[count++] = i;
        }
    truth_cache_fill(e->cache, cases, count, e->settings->truth_deadline_s, errors);
    for (int k = 0; k < count && !interrupt_signal() && !e->stopped; k++)
        if (errors[k].text[0] != 0) {
            struct finding f = {0};
            finding_broken(&f, "%s", errors[k].text);
            verdict_give(e, index[k], "truth", &f, 0, NULL);
        }
    free(cases);
    free(errors);
    free(index);
    return true;
}

static void close_gated(struct engine *e)
{
    for (int i = 0; i < e->plan->count && !e->stopped; i++) {
        int gate = e->plan->cases[i].gate;
        if (!is_open(e, i) || gate < 0 || !e->state[gate].over || e->state[gate].verdict == VERDICT_PASS)
            continue;
        struct finding f = {0};
        const char *id = e->plan->cases[gate].c.id;
        if (e->state[gate].verdict == VERDICT_FAIL)
            finding_skip(&f, "not judged: unsharded arithmetic differs at N=1 (case %s)", id);
        else
            finding_skip(&f, "not judged: the unsharded case %s at N=1 is %s", id, verdict_name(e->state[gate].verdict));
        verdict_give(e, i, "answer", &f, 0, NULL);
    }
}

// Cases whose checkpoint will never be there, or may be wrong.
static void close_unsaved(struct engine *e)
{
    for (int i = 0; i < e->plan->count && !e->stopped; i++) {
        int saver = e->plan->cases[i].saver;
        if (!is_open(e, i) || saver < 0 || !e->state[saver].over || e->state[saver].verdict == VERDICT_PASS)
            continue;
        struct finding f = {0};
        finding_skip(&f, "not judged: the case that saves did not pass%s (case %s is %s)", e->state[saver].again ? " when it was run again" : "",
                     e->plan->cases[saver].c.id, verdict_name(e->state[saver].verdict));
        verdict_give(e, i, "answer", &f, 0, NULL);
    }
}

enum phase { PHASE_GATES, PHASE_SAVERS, PHASE_REST };

static bool belongs(const struct engine *e, int i, enum phase phase)
{
    const struct planned_case *p = &e->plan->cases[i];
    return is_open(e, i) && (phase == PHASE_REST || (phase == PHASE_GATES ? p->is_gate : p->is_saver));
}

// All open cases of a phase, one group per world size in the order of first appearance.
static void serve_all(struct engine *e, enum phase phase)
{
    int *group = calloc((size_t)e->plan->count, sizeof *group);
    for (int i = 0; group != NULL && i < e->plan->count && !e->stopped && !interrupt_signal(); i++) {
        int count = 0;
        if (!belongs(e, i, phase))
            continue;
        for (int k = i; k < e->plan->count; k++)
            if (belongs(e, k, phase) && e->plan->cases[k].c.world_size == e->plan->cases[i].c.world_size)
                group[count++] = k;
        serve_group(e, group, count);
    }
    free(group);
}

bool run_cases(const struct run_settings *s, const struct implementation *implementation, struct plan *plan, const struct known_case *known,
               struct truth_cache *cache, run_sink sink, struct run_counts *counts, struct error *error)
{
    struct engine e = {.settings = s, .implementation = implementation, .plan = plan, .cache = cache, .sink = sink,
                       .counts = counts, .error = error, .launcher = choose_launcher(s, implementation, error),
                       .state = calloc((size_t)plan->count + 1, sizeof *e.state)};
    if (e.launcher == NULL || e.state == NULL || !probing_ready(&e) || !place_checkpoints(&e)) {
        free(e.state);
        return error_set(error, "out of memory");
    }
    decide_skips(&e, known);
    if (make_truths(&e)) {
        if (s->gated) {
            serve_all(&e, PHASE_GATES);
            close_gated(&e);
        }
        serve_all(&e, PHASE_SAVERS);
        close_unsaved(&e);
        serve_all(&e, PHASE_REST);
    }
    probing_free(&e);
    free(e.state);
    return error->text[0] == 0;
}
