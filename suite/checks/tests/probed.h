// A subject that exists in the records of probes alone: what the checks of traffic and memory are tested on.
//
// A case file is planned, and each of its cases is a run of one subject, in the order of the plan: the last one is judged, the others are what
// this run has seen before it. The program of a case is walked: each phase of each rank gets what the subject moves in it and what is live there.
//   moves  "PHASE: OP TYPE CALLSxBYTES, ...; PHASE: ...", for each phase of that name: "all-gather f32 2x232" is two calls of 232 bytes together,
//          "all-gather/4" over 4 ranks instead of all, "send 1x100" and "point 1x100" bytes of sockets and of messages. A backward that
//          does not synchronise is "unsynced"; where neither it nor "backward" is named the worker does not mark its backward. Observations gather.
//   sent   bytes of sockets in a step, for each parameter and times f(N); and 500 whatever the size.
//   live   bytes, for each parameter, and 1,000,000 whatever the size.
// Numbers are worked out by hand, not by harness/judge/traffic.c or memory_model.c: these are judged too.
#ifndef SUITE_CHECKS_TESTS_PROBED_H
#define SUITE_CHECKS_TESTS_PROBED_H

#include <math.h>

#include "harness/judge/memory_seen.h"
#include "suite/checks/tests/planned.h"

enum { PROBED_CASES = 24, PROBED_RANKS = 8, PROBED_ENTRIES = 8 };

// Bytes of a parameter: whole + shared / S at rest, and how much more there is at the peak of a phase.
struct live { double whole, shared, forward, backward, step; double leak /* bytes a step */; double last_rank /* more at rest on it */; double grouped /* more at rest on two ranks and more */; };

struct probed;
struct subject {
    unsigned probes;             // bits that were loaded
    const char *moves;
    const char *last_rank_moves; // where the last rank moves something else
    double sent, sent_at_two;    // the other is that at N = 2, where it differs
    struct live live;
    double claim_rest, claim_working; // the `memory` event: bytes of a parameter, and 1,000,000 of working memory; both 0: none
    const char *says;            // one more event of every rank
    void (*fault)(struct probed *s);
};

struct probed_member {
    const struct fsdp_case *c;
    struct probe_case probes[PROBED_RANKS];
    struct memory_claim claims[PROBED_RANKS];
    struct answer answers[PROBED_RANKS];
};

struct probed {
    char folder[64];
    struct plan plan;
    struct implementation implementation;
    const struct subject *subject;
    int count;
    struct probed_member members[PROBED_CASES];
    struct probed_member *own; // the one that is judged
    struct probed_case others[PROBED_CASES];
    struct holdings holdings;
    struct evidence e;
};

// The first phase of that name of a rank.
static __attribute__((unused)) struct probe_phase *probed_find(struct probed_member *m, int rank, const char *name)
{
    struct probe_phase *p = m->probes[rank].phases;
    while (p->name != NULL && strcmp(p->name, name) != 0)
        p++;
    assert_non_null(p->name);
    return p;
}

// ---- moves ----

static int probed_named(const char *word, size_t length, const char *(*name)(int), int count)
{
    for (int i = 0; i < count; i++)
        if (strlen(name(i)) == length && strncmp(name(i), word, length) == 0)
            return i;
    return -1;
}
static const char *probed_op(int i) { return probe_op_name((enum probe_op)i); }
static const char *probed_type(int i) { return probe_type_name((enum probe_type)i); }

static struct probe_traffic probed_entry(const char *text, int ranks)
{
    char op[32], type[16] = "other";
    long long calls = 0, bytes = 0;
    struct probe_traffic t = {.kind = PROBE_COLLECTIVE, .size = ranks};
    if (sscanf(text, " %31s %15[a-z0-9] %lldx%lld", op, type, &calls, &bytes) != 4 && sscanf(text, " %31s %lldx%lld", op, &calls, &bytes) != 3)
        fail_msg("no entry of moves: %s", text);
    t.calls = calls;
    t.bytes = bytes;
    if (strcmp(op, "send") == 0 || strcmp(op, "point") == 0) {
        t.kind = *op == 's' ? PROBE_SEND : PROBE_POINT;
        t.op = *op == 's' ? PROBE_OP_NONE : PROBE_OP_SEND;
        return t;
    }
    size_t length = strcspn(op, "/");
    int kind = probed_named(op, length, probed_op, PROBE_OPS), dtype = probed_named(type, strlen(type), probed_type, PROBE_TYPES);
    if (kind < 0 || dtype < 0)
        fail_msg("no collective or type: %s", text);
    t.size = op[length] == '/' ? atoi(op + length + 1) : ranks;
    t.op = (enum probe_op)kind;
    t.type = (enum probe_type)dtype;
    t.number = t.bytes > 0 && t.bytes <= 8 * t.calls * (t.op == PROBE_ALL_GATHER || t.op == PROBE_REDUCE_SCATTER ? t.size : 1);
    t.wire = t.bytes * (t.size - 1) / t.size * (t.op == PROBE_ALL_REDUCE ? 2 : 1);
    return t;
}

// The entries of a phase; true where moves names it.
static bool probed_moves(const char *moves, const char *phase, int ranks, struct probe_phase *p)
{
    char copy[1024], *section, *rest = copy, *entry;
    snprintf(copy, sizeof copy, "%s", moves != NULL ? moves : "");
    while ((section = strsep(&rest, ";")) != NULL) {
        size_t blank = strspn(section, " "), length = strcspn(section + blank, ":");
        if (strlen(phase) != length || strncmp(section + blank, phase, length) != 0)
            continue;
        for (char *entries = section + blank + length + 1; (entry = strsep(&entries, ",")) != NULL && p != NULL;)
            if (entry[strspn(entry, " ")] != 0)
                p->traffic[p->traffic_count++] = probed_entry(entry, ranks);
        return true;
    }
    return false;
}

// ---- the walk ----

static struct probe_phase *probed_phase(struct probe_case *rank, const char *name, int step)
{
    struct probe_phase *p = &rank->phases[rank->phase_count++];
    *p = (struct probe_phase){.name = name, .step = step, .traffic = calloc(PROBED_ENTRIES, sizeof *p->traffic)};
    return p;
}

static void probed_live(const struct probed *s, const struct fsdp_case *c, int rank, struct probe_phase *p)
{
    const struct live *l = &s->subject->live;
    double parameters = memory_parameters(c), extra = strcmp(p->name, "forward") == 0 ? l->forward : strcmp(p->name, "backward") == 0 ? l->backward : l->step;
    double rest = 1e6 + parameters * (l->whole + l->shared / c->sharding.shards) + l->leak * p->step + (rank == c->world_size - 1 ? parameters * l->last_rank : 0) +
                  (c->world_size > 1 ? parameters * l->grouped : 0);
    double unsettled = p->step < 2 ? 9 * parameters : 0; // optimizers make their states
    p->heap = (struct probe_live){(int64_t)rest, (int64_t)rest, (int64_t)(rest + parameters * extra + unsettled)};
}

static void probed_add(const struct probed *s, const struct fsdp_case *c, int rank, struct probe_case *out, const char *name, int step, const char *section)
{
    const struct subject *u = s->subject;
    struct probe_phase *p = probed_phase(out, name, step);
    double factor = c->world_size == 2 && u->sent_at_two > 0 ? u->sent_at_two : u->sent;
    probed_moves(rank == c->world_size - 1 && u->last_rank_moves ? u->last_rank_moves : u->moves, section, c->world_size, p);
    probed_live(s, c, rank, p);
    if (factor > 0 && strcmp(section, "forward") == 0)
        p->traffic[p->traffic_count++] = (struct probe_traffic){.kind = PROBE_SEND, .calls = 1, .bytes = 500 + (int64_t)(factor * memory_parameters(c) * (c->world_size - 1) / c->world_size)};
}

static void probed_walk(const struct probed *s, const struct fsdp_case *c, int rank, struct probe_case *out)
{
    const char *moves = s->subject->moves;
    bool marks = moves == NULL || probed_moves(moves, "backward", 2, NULL) || probed_moves(moves, "unsynced", 2, NULL);
    *out = (struct probe_case){.rank = rank, .probes = s->subject->probes, .phases = calloc((size_t)(2 * c->program_length + 2), sizeof *out->phases)};
    probed_add(s, c, rank, out, "case", 0, "case");
    for (int i = 0; i < c->program_length; i++) {
        const struct instruction *in = &c->program[i];
        if (in->verb == VERB_OBSERVE) {
            struct probe_phase *p = probed_phase(out, "observe", in->step);
            if (!probed_moves(moves, "observe", c->world_size, p)) // it counts for nothing
                p->traffic[p->traffic_count++] = probed_entry(s->subject->probes & (1 << PROBE_MPI | 1 << PROBE_NCCL) ? "all-gather f32 9x99999" : "send 9x99999", c->world_size);
        } else if (in->verb == VERB_MICRO) {
            probed_add(s, c, rank, out, "forward", in->step, "forward");
            if (marks)
                probed_add(s, c, rank, out, "backward", in->step, in->sync ? "backward" : "unsynced");
        } else if (in->verb != VERB_STOP) {
            probed_add(s, c, rank, out, verb_name(in->verb), in->verb == VERB_ZERO_GRAD ? -1 : in->step, verb_name(in->verb));
        }
    }
}

// ---- what the ranks say ----

static void probed_answer(const struct probed *s, const struct fsdp_case *c, int rank, struct answer *out)
{
    static char text[1 << 15];
    const struct subject *u = s->subject;
    double parameters = memory_parameters(c);
    struct error error = {{0}};
    planned_hello(c, rank, text, sizeof text);
    for (enum held of = HELD_PARAMETER; of < HELD_COUNT; of++)
        planned_shards(c, rank, of, text + strlen(text), sizeof text - strlen(text));
    if (u->claim_rest > 0)
        snprintf(text + strlen(text), sizeof text - strlen(text), "{\"event\": \"memory\", \"phase\": \"allocated\", \"bytes\": {\"PARAM\": %.0f, \"COMM\": %.0f}}\n",
                 u->claim_rest * parameters, 1e6 + u->claim_working * parameters);
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s{\"event\": \"done\"}\n", u->says ? u->says : "", u->says ? "\n" : "");
    if (!answer_parse(text, strlen(text), "probed", c->id, rank, c->world_size, out, &error))
        fail_msg("%s", error.text);
}

// The caller releases it with probed_free.
static struct probed *probed_run(const char *yaml, const struct subject *subject)
{
    struct probed *s = calloc(1, sizeof *s);
    struct error error = {{0}};
    s->subject = subject;
    planned_make(yaml, s->folder, &s->implementation, &s->plan);
    for (int i = 0; i < s->plan.count; i++) {
        if (s->plan.cases[i].is_gate)
            continue;
        assert_true(s->count < PROBED_CASES);
        struct probed_member *m = &s->members[s->count++];
        m->c = &s->plan.cases[i].c;
        for (int r = 0; r < m->c->world_size; r++) {
            probed_walk(s, m->c, r, &m->probes[r]);
            probed_answer(s, m->c, r, &m->answers[r]);
            m->claims[r] = memory_claim_of(&m->answers[r]);
        }
    }
    for (int i = 0; i < s->count - 1; i++)
        s->others[i] = (struct probed_case){s->members[i].c, s->members[i].probes, s->members[i].claims};
    s->own = &s->members[s->count - 1];
    if (!holdings_load(s->own->c, s->own->answers, &s->holdings, &error))
        fail_msg("%s", error.text);
    s->e = (struct evidence){.c = s->own->c, .world_size = s->own->c->world_size, .answers = s->own->answers, .implementation = "synthetic", .budget = JUDGE_BUDGET,
                             .holdings = &s->holdings, .probes = s->own->probes, .probed_count = s->count - 1, .probed = s->others};
    if (subject->fault != NULL)
        subject->fault(s);
    return s;
}

static void probed_free(struct probed *s)
{
    for (int i = 0; i < s->count; i++)
        for (int r = 0; r < s->members[i].c->world_size; r++) {
            struct probe_case *p = &s->members[i].probes[r];
            for (int k = 0; p->phases[k].name != NULL; k++)
                free(p->phases[k].traffic);
            free(p->phases);
            answer_free(&s->members[i].answers[r]);
        }
    holdings_free(&s->holdings);
    planned_free(s->folder, &s->implementation, &s->plan);
    free(s);
}

// Runs one check as judge_case does; what does not apply judges nothing.
static struct finding probed_judge(struct probed *s, const struct check *check, bool *applies)
{
    struct finding f = {.figure = NAN, .bound = NAN};
    s->e.check = check->name;
    *applies = check->applies(&s->e);
    if (*applies)
        check->judge(&s->e, &f);
    if (*applies && !f.emitted)
        finding_broken(&f, "the check applies but saw nothing");
    return f;
}

#endif
