// What the probes saw, laid beside a plan, and where the two part. See traffic.h.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judge/traffic.h"
#include "harness/protocol/memory.h"

static bool is_backward(const struct traffic_phase *p) { return strcmp(p->name, "backward") == 0; }

static bool is_phase(const struct traffic_phase *p, const struct probe_phase *seen)
{
    return strcmp(p->name, seen->name) == 0 && (p->step < 0 || p->step == seen->step);
}

// ---- aligning ----

// False where the phase has no room for another kind.
static bool take(struct traffic_seen *out, struct traffic_phase *phase, const struct probe_traffic *t)
{
    out->sent += t->kind == PROBE_SEND ? (double)t->bytes : 0;
    if (t->kind == PROBE_POINT && t->op == PROBE_OP_SEND) {
        out->points += t->calls;
        out->point_bytes += t->bytes;
    }
    if (t->kind != PROBE_COLLECTIVE || t->calls == 0)
        return true;
    out->collectives += t->calls;
    out->barriers += t->op == PROBE_BARRIER ? t->calls : 0;
    if (t->op == PROBE_BARRIER || t->size < 2)
        return true;
    if (t->number) {
        out->scalars += t->calls;
        return true;
    }
    enum probe_op op = t->op == PROBE_ALL_TO_ALL ? PROBE_REDUCE_SCATTER : t->op;
    struct traffic_row *row = traffic_row_of(phase, op, t->size, t->type);
    if (row == NULL)
        return false;
    row->calls += t->calls, row->bytes += t->bytes, row->wire += t->wire;
    return true;
}

static bool take_phase(struct traffic_seen *out, int at, const struct probe_phase *p)
{
    int64_t before = out->scalars;
    bool fine = true;
    for (int i = 0; i < p->traffic_count; i++)
        fine &= take(out, &out->phases[at], &p->traffic[i]);
    if (out->scalars - before > out->most_scalars)
        out->most_scalars = out->scalars - before;
    return fine;
}

// Adds what the plan expects of phase `at` to the one before, which the worker has not told apart.
static void merge(struct traffic_plan *plan, int at)
{
    struct traffic_phase *to = &plan->phases[at - 1], *from = &plan->phases[at];
    for (int i = 0; i < from->count; i++) {
        struct traffic_row *add = &from->rows[i], *row = traffic_row_of(to, add->op, add->size, add->type);
        row->calls += add->calls, row->bytes += add->bytes;
    }
    to->sync |= from->sync;
    memmove(from, from + 1, (size_t)(plan->count - at - 1) * sizeof *from);
    plan->count--;
}

bool traffic_see(struct traffic_plan *plan, const struct probe_case *probes, struct traffic_seen *out, struct error *error)
{
    int at = 0; // phases of the plan that were met
    *out = (struct traffic_seen){.phases = memory_zeros((size_t)plan->count + 1, sizeof *out->phases)};
    for (int i = 0; i < probes->phase_count; i++) {
        const struct probe_phase *p = &probes->phases[i];
        if (!probe_trains(p->name))
            continue;
        while (at > 0 && at < plan->count && is_backward(&plan->phases[at]) && strcmp(p->name, "backward") != 0)
            merge(plan, at);
        if (at < plan->count && is_phase(&plan->phases[at], p)) {
            out->phases[at].name = plan->phases[at].name;
            out->phases[at].step = p->step;
            at++;
        } else if (at == 0 || !is_phase(&plan->phases[at - 1], p)) {
            return error_set(error, "rank %d marks phase %s of step %d, the program has %s of step %d there", probes->rank, p->name, p->step,
                             at < plan->count ? plan->phases[at].name : "nothing", at < plan->count ? plan->phases[at].step : -1);
        }
        if (!take_phase(out, at - 1, p))
            return error_set(error, "rank %d: phase %s of step %d has more than %d kinds of collectives, which are too many to compare", probes->rank, p->name, p->step, TRAFFIC_ROWS);
    }
    while (at > 0 && at < plan->count && is_backward(&plan->phases[at]))
        merge(plan, at);
    out->count = at;
    return at == plan->count || error_set(error, "rank %d marks %d of the %d phases of its program: no phase %s of step %d", probes->rank, at,
                                          plan->count, plan->phases[at].name, plan->phases[at].step);
}

void traffic_seen_free(struct traffic_seen *s)
{
    free(s->phases);
    *s = (struct traffic_seen){0};
}

// ---- comparing ----

bool traffic_same_type(enum probe_type expected, enum probe_type seen)
{
    return expected == seen || seen == PROBE_TYPE_OTHER || (seen == PROBE_U16 && probe_type_bytes(expected) == 2);
}

// The row that is the answer to an expected one: of its dtype, else of any.
static struct traffic_row *answer_to(struct traffic_phase *seen, const struct traffic_row *expected)
{
    for (int any = 0; any < 2; any++)
        for (int i = 0; i < seen->count; i++) {
            struct traffic_row *row = &seen->rows[i];
            if (row->calls > 0 && row->op == expected->op && row->size == expected->size && (any || traffic_same_type(expected->type, row->type)))
                return row;
        }
    return NULL;
}

static bool same_calls(const struct traffic_row *expected, const struct traffic_row *seen, int64_t buckets)
{
    bool free_count = buckets > 0 && seen->calls >= 1 && seen->calls <= buckets;
    return expected->calls == seen->calls || (free_count && expected->calls > 0);
}

static void note(struct traffic_gap *gaps, int *count, int phase, struct traffic_row expected, struct traffic_row seen)
{
    if (*count < TRAFFIC_GAPS)
        gaps[*count] = (struct traffic_gap){phase, expected, seen};
    ++*count;
}

// What is there though nothing asks for it comes before what is missing or off, for it tells why.
int traffic_compare(const struct traffic_plan *plan, const struct traffic_seen *seen, int64_t buckets, struct traffic_gap *gaps)
{
    int count = 0;
    for (int i = 0; i < plan->count; i++) {
        struct traffic_phase rest = seen->phases[i];
        struct traffic_row got[TRAFFIC_ROWS];
        for (int k = 0; k < plan->phases[i].count; k++) {
            const struct traffic_row *expected = &plan->phases[i].rows[k];
            struct traffic_row *answer = answer_to(&rest, expected);
            got[k] = answer != NULL ? *answer : (struct traffic_row){expected->op, expected->size, expected->type, 0, 0, 0};
            if (answer != NULL)
                answer->calls = 0;
        }
        for (int k = 0; k < rest.count; k++)
            if (rest.rows[k].calls > 0)
                note(gaps, &count, i, (struct traffic_row){rest.rows[k].op, rest.rows[k].size, rest.rows[k].type, 0, 0, 0}, rest.rows[k]);
        for (int k = 0; k < plan->phases[i].count; k++) {
            const struct traffic_row *expected = &plan->phases[i].rows[k];
            if (!same_calls(expected, &got[k], buckets) || expected->bytes != got[k].bytes || !traffic_same_type(expected->type, got[k].type))
                note(gaps, &count, i, *expected, got[k]);
        }
    }
    return count;
}

// ---- words ----

// An all-reduce that is made of an exchange and a gather shows as a gather of what was reduced.
static bool gathers_reduced(const struct traffic_phase *phase, const struct traffic_gap *g)
{
    for (int i = 0; i < phase->count; i++)
        if (phase->rows[i].op == PROBE_REDUCE_SCATTER && phase->rows[i].size == g->seen.size && phase->rows[i].bytes == g->seen.bytes - g->expected.bytes)
            return g->seen.op == PROBE_ALL_GATHER && is_backward(phase);
    return false;
}

static const char *excess_words(const struct fsdp_case *c, const struct traffic_phase *phase, const struct traffic_gap *g, const char **classes)
{
    const struct sharding_spec *s = &c->sharding;
    bool gather = g->seen.op == PROBE_ALL_GATHER, full = s->strategy == STRATEGY_FULL || s->strategy == STRATEGY_HYBRID;
    bool more = g->seen.bytes > g->expected.bytes || g->seen.calls > g->expected.calls, none = g->expected.calls == 0;
    *classes = "Z28";
    if (!more && g->seen.calls == g->expected.calls && g->seen.bytes == g->expected.bytes)
        return "in another type";
    if (!more)
        return g->seen.calls == 0 ? "it is missing" : "less than the strategy needs";
    if (gather && is_backward(phase) && s->activation_checkpointing && full)
        return *classes = "Z30 Z28", "units are gathered again for the recomputation";
    if (g->seen.bytes == 2 * g->expected.bytes && g->seen.calls == g->expected.calls)
        return "in a type of twice the width";
    if (gathers_reduced(phase, g))
        return full ? "gradients are all-reduced where a reduce-scatter does, or units gathered more than once" : "gradients are all-reduced where a reduce-scatter does";
    if (gather && is_backward(phase) && full)
        return s->reshard_after_forward ? "units are gathered more than once for the backward" : "units are gathered again though they stay gathered";
    if (gather && none)
        return full ? "a gather that the formula has not" : "a gather though parameters are there already";
    if (gather)
        return "units are gathered more than once";
    if (g->seen.op == PROBE_ALL_REDUCE && none && s->shards > 1 && g->seen.size == s->shards)
        return "an all-reduce where a reduce-scatter does";
    if (is_backward(phase) && !phase->sync && none)
        return "a reduction in a microbatch that does not synchronise";
    if (g->seen.op == PROBE_BROADCAST)
        return "a broadcast in a step of training";
    return none ? "the formula has none" : "gradients are reduced more than once";
}

void traffic_gap_text(const struct fsdp_case *c, const struct traffic_plan *plan, const struct traffic_gap *g, char *text, size_t size, const char **classes)
{
    const struct traffic_phase *phase = &plan->phases[g->phase];
    const char *type = probe_type_name(g->expected.calls > 0 ? g->expected.type : g->seen.type), *words = excess_words(c, phase, g, classes);
    char step[32] = "";
    if (phase->step >= 0)
        snprintf(step, sizeof step, " of step %d", phase->step);
    snprintf(text, size, "%s%s, %s of %s over %d ranks: %lld calls of %lld bytes%s%s%s, expected %lld of %lld: %s", phase->name, step, probe_op_name(g->seen.op),
             type, g->seen.size, (long long)g->seen.calls, (long long)g->seen.bytes, g->seen.type != g->expected.type ? " in " : "",
             g->seen.type != g->expected.type ? probe_type_name(g->seen.type) : "", "", (long long)g->expected.calls, (long long)g->expected.bytes, words);
}

// ---- witnesses ----

// Training alone counts: observations may go another way. Where nothing moved in it, collectives elsewhere show that the probe would have seen them.
enum traffic_witness traffic_witness(const struct evidence *e)
{
    int64_t collectives = 0, points = 0, elsewhere = 0, sent = 0;
    for (int r = 0; e->probes != NULL && r < e->world_size; r++)
        for (int i = 0; i < e->probes[r].phase_count; i++)
            for (int k = 0; k < e->probes[r].phases[i].traffic_count; k++) {
                const struct probe_traffic *t = &e->probes[r].phases[i].traffic[k];
                bool training = probe_trains(e->probes[r].phases[i].name);
                *(training ? &collectives : &elsewhere) += t->kind == PROBE_COLLECTIVE ? t->calls : 0;
                points += training && t->kind == PROBE_POINT ? t->calls : 0;
                sent += training && t->kind == PROBE_SEND ? t->bytes : 0;
            }
    return collectives > 0 ? TRAFFIC_COLLECTIVES : points > 0 ? TRAFFIC_POINTS : sent > 0 ? TRAFFIC_SOCKETS : elsewhere > 0 ? TRAFFIC_COLLECTIVES : TRAFFIC_UNSEEN;
}

// Every phase of the program was marked, by this rank.
static bool follows(const struct fsdp_case *c, const struct probe_case *probes, int rank, struct error *error)
{
    const struct traffic_choice plain = {0};
    struct traffic_plan plan = traffic_plan(c, &plain, rank);
    struct traffic_seen seen;
    bool fine = traffic_see(&plan, probes, &seen, error);
    traffic_seen_free(&seen);
    traffic_plan_free(&plan);
    return fine;
}

bool traffic_complete(const struct fsdp_case *c, const struct probe_case *probes)
{
    struct error ignored = {""};
    bool complete = true;
    for (int r = 0; r < c->world_size; r++)
        complete &= probe_traffic_whole(&probes[r]) && (traffic_unpredicted(c) != NULL || follows(c, &probes[r], r, &ignored));
    return complete;
}

bool traffic_usable(const struct evidence *e, struct finding *f)
{
    if (e->probes == NULL)
        finding_broken(f, "%s", e->probe_error != NULL ? e->probe_error : "no records");
    for (int r = 0; e->probes != NULL && r < e->world_size; r++) {
        const struct probe_case *p = &e->probes[r];
        unsigned loaded = p->probes & TRAFFIC_PROBES;
        struct error error = {""};
        if (p->lost > 0)
            finding_broken(f, "the probes of rank %d lost %lld records", r, (long long)p->lost);
        else if (loaded == 0 || loaded != (e->probes[0].probes & TRAFFIC_PROBES))
            finding_broken(f, "rank %d: no probe of traffic was loaded, or not those of rank 0", r);
        else if (traffic_unpredicted(e->c) == NULL && !follows(e->c, p, r, &error))
            finding_broken(f, "%s", error.text);
        else if (probe_uncounted(p))
            finding_skip(f, "rank %d may move bytes by %s, which no probe counts", r, p->unseen_call);
    }
    return !f->emitted;
}

unsigned traffic_loaded(const struct evidence *e)
{
    bool gate = strncmp(e->c->id, "gate.", 5) == 0;
    if (e->probes != NULL)
        return e->probes[0].probes;
    return e->probe_error == NULL || gate ? 0 : e->probes_asked != 0 ? e->probes_asked : TRAFFIC_PROBES;
}

enum traffic_witness traffic_judged(const struct evidence *e, struct finding *f)
{
    enum traffic_witness witness = traffic_witness(e);
    if (!traffic_usable(e, f))
        return TRAFFIC_UNSEEN;
    if (e->world_size == 1) // what nothing may move over: whoever is there has seen that
        return e->probes[0].probes & (1u << PROBE_MPI | 1u << PROBE_NCCL) ? TRAFFIC_COLLECTIVES : TRAFFIC_SOCKETS;
    if (witness == TRAFFIC_POINTS)
        finding_skip(f, "its collectives are made of point-to-point calls: their kinds and payloads are unseen");
    else if (witness == TRAFFIC_UNSEEN && e->probes[0].unseen > 0)
        finding_skip(f, "no probe saw a byte move between the ranks; rank 0 may move bytes by %s, which no probe counts", e->probes[0].unseen_call);
    else if (witness == TRAFFIC_UNSEEN && !(e->probes[0].probes & 1u << PROBE_SOCKET))
        finding_skip(f, "no collective is seen by MPI or NCCL, and the socket probe is not loaded");
    else if (witness == TRAFFIC_UNSEEN)
        finding_broken(f, "no probe saw a byte move between %d ranks", e->world_size);
    return f->emitted ? TRAFFIC_UNSEEN : witness;
}

const char *traffic_configured(const struct evidence *e, const char *key)
{
    const struct event *hello = answer_find(&e->answers[0], EVENT_HELLO, 0);
    return hello != NULL ? json_string_value(json_object_get(json_object_get(hello->fields, "configured"), key)) : NULL;
}

double traffic_socket_bytes(const struct probe_case *probes, int ranks)
{
    double sent = 0;
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < probes[r].phase_count; i++)
            for (int k = 0; probe_trains(probes[r].phases[i].name) && k < probes[r].phases[i].traffic_count; k++)
                sent += probes[r].phases[i].traffic[k].kind == PROBE_SEND ? (double)probes[r].phases[i].traffic[k].bytes : 0;
    return sent / ranks;
}
