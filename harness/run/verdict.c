// From the ranks' answers to a verdict, and the verdict to the sink.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/run/counting.h"
#include "harness/run/exposing.h"
#include "harness/run/engine.h"
#include "harness/run/memo.h"
#include "harness/run/space.h"
#include "harness/store/verdicts.h"

enum verdict run_verdict_of(const enum verdict *verdicts, int count)
{
    bool any_pass = false;
    enum verdict worst = VERDICT_PASS;
    for (int i = 0; i < count; i++) {
        worst = verdict_worse(worst, verdicts[i]);
        any_pass |= verdicts[i] == VERDICT_PASS;
    }
    return count == 0 ? VERDICT_BROKEN : worst == VERDICT_SKIP && any_pass ? VERDICT_PASS : worst;
}

static void hand_over(struct engine *e, struct run_verdict *v)
{
    enum verdict verdicts[ENGINE_RESULTS];
    for (int i = 0; i < v->result_count; i++)
        verdicts[i] = v->results[i].finding.verdict;
    v->verdict = run_verdict_of(verdicts, v->result_count);
    v->digest = e->state[v->index].digest;
    v->truth_digest = e->state[v->index].truth_digest;
    e->state[v->index].over = true;
    e->state[v->index].verdict = v->verdict;
    if (e->state[v->index].again)
        return;
    e->counts->cases++;
    if (!e->sink(e->settings->context, v, e->error))
        e->stopped = true;
}

static void give(struct engine *e, int index, const char *check, const struct finding *finding, int start, const char *log_tail, const char *note)
{
    struct result result = {check, *finding};
    struct run_verdict v = {.planned = &e->plan->cases[index], .index = index, .result_count = 1, .results = &result,
                            .seconds = NAN, .start = start, .log_tail = log_tail, .note = note};
    space_excuse(e->settings->scratch, &result, 1);
    // A difference or a failure without any sharding is not a sharding fault, whatever the check's classes are.
    if (e->settings->gated && v.planned->is_gate && result.finding.verdict == VERDICT_FAIL) {
        size_t used = strlen(result.finding.message);
        snprintf(result.finding.message + used, sizeof result.finding.message - used,
                 " [unsharded, N = 1: the adapter or its framework, not a sharding fault]");
    }
    hand_over(e, &v);
}

void verdict_give(struct engine *e, int index, const char *check, const struct finding *finding, int start, const char *log_tail)
{
    give(e, index, check, finding, start, log_tail, NULL);
}

// What a rank remarks in its hello; owned by the caller.
static char *hello_note(const struct answer *a)
{
    bool there = a->count > 0 && a->events[0].kind == EVENT_HELLO;
    return there ? memory_text(json_string_value(json_object_get(a->events[0].fields, "note"))) : NULL;
}

void verdict_give_answer(struct service *s, int position, const struct finding *finding)
{
    int index = s->index[position];
    const struct fsdp_case *c = &s->engine->plan->cases[index].c;
    char *tail = blame_log_tail(s), *folder = job_case_folder(s, position), *path = memory_format("%s/out/rank0.jsonl", folder);
    struct answer answer = {0};
    struct error error = {0};
    char *note = answer_read(path, c->id, 0, s->world_size, &answer, &error) ? hello_note(&answer) : NULL;
    give(s->engine, index, "answer", finding, s->engine->counts->starts, tail, note);
    answer_free(&answer);
    free(note);
    free(path);
    free(folder);
    free(tail);
}

// The job folder is gone when a message is read: files are named from the case's folder on.
static void drop_folder(char *text, const char *folder)
{
    size_t size = strlen(folder);
    for (char *at = text; (at = strstr(at, folder)) != NULL;)
        if (at[size] == '/')
            memmove(at, at + size + 1, strlen(at + size + 1) + 1);
        else
            at++;
}

static void mark_gate(struct result *results, int count)
{
    for (int i = 0; i < count; i++) {
        struct finding *f = &results[i].finding;
        if (f->verdict != VERDICT_FAIL)
            continue;
        static const char note[] = " [unsharded, N = 1: the adapter's or the framework's arithmetic, not a sharding fault]";
        size_t used = strlen(f->message), room = sizeof f->message - sizeof note;
        strcpy(f->message + (used < room ? used : room), note);
        f->classes[0] = 0;
    }
}

// What failed by itself is no measure for others: a correct case must not FAIL for differing from it.
static int family_of(const struct engine *e, const struct fsdp_case *c, struct family_member *members)
{
    int count = 0;
    for (int i = 0; i < e->plan->count; i++) {
        const struct fsdp_case *o = &e->plan->cases[i].c;
        if (o != c && e->state[i].verdict == VERDICT_PASS && e->state[i].digest[0] != 0 && strcmp(o->family, c->family) == 0)
            members[count++] = (struct family_member){o->id, o->world_size, o->sharding.strategy, e->state[i].digest,
                                                      e->state[i].truth_digest[0] != 0 ? e->state[i].truth_digest : NULL};
    }
    return count;
}

// True where the ranks' last lines decide the case without evidence.
static bool decided_by_ends(const struct answer *answers, int ranks, struct finding *f)
{
    int unsupported = 0, one = -1;
    const char *reason = NULL;
    for (int r = 0; r < ranks; r++)
        if (answers[r].end == EVENT_UNSUPPORTED) {
            unsupported++;
            one = r;
            const char *said = json_string_value(json_object_get(answers[r].events[answers[r].count - 1].fields, "reason"));
            reason = reason == NULL && said != NULL ? said : reason;
        }
    if (unsupported == ranks) {
        finding_skip(f, "unsupported: %s", reason != NULL ? reason : "(no reason given)");
    } else if (unsupported > 0) {
        snprintf(f->ranks, sizeof f->ranks, "%d", one);
        finding_fail(f, "Z29", "unsupported on %d of %d ranks, rank %d among them: %s; expected all ranks to agree", unsupported, ranks,
                     one, reason != NULL ? reason : "(no reason given)");
    }
    return unsupported > 0;
}

static int read_answers(const struct service *s, const char *folder, const struct fsdp_case *c, struct answer *answers, struct finding *f)
{
    for (int r = 0; r < s->world_size; r++) {
        char path[4200];
        struct error error = {0};
        snprintf(path, sizeof path, "%s/out/rank%d.jsonl", folder, r);
        if (answer_read(path, c->id, r, s->world_size, &answers[r], &error))
            continue;
        snprintf(f->ranks, sizeof f->ranks, "%d", r);
        finding_fail(f, "", "%s", error.text);
        return r;
    }
    return s->world_size;
}

static int collect_results(struct service *s, int position, struct answer *answers, struct result *results, json_t *figures, char **note)
{
    struct engine *e = s->engine;
    int index = s->index[position];
    const struct fsdp_case *c = &e->plan->cases[index].c;
    struct error error = {0};
    struct finding own = {0};
    char *folder = job_case_folder(s, position);
    int read = read_answers(s, folder, c, answers, &own), count = 1;
    const char *check = "answer";
    const struct truth *truth = NULL;
    bool decided = read < s->world_size || decided_by_ends(answers, s->world_size, &own);
    if (!decided && (truth = truth_cache_load(e->cache, c, &error)) == NULL) {
        check = "truth";
        finding_broken(&own, "%s", error.text);
        decided = true;
    }
    if (decided) {
        results[0] = (struct result){check, own};
    } else {
        struct family_member *members = calloc((size_t)e->plan->count, sizeof *members);
        int saver = e->plan->cases[index].saver;
        struct saved_run saved = {0};
        char *kept = saver >= 0 ? job_kept_answers(&e->plan->cases[saver].c) : NULL;
        if (saver >= 0)
            saved = (struct saved_run){&e->plan->cases[saver].c, kept, e->state[saver].truth_digest};
        struct judge_context j = {.case_folder = folder, .c = c, .truth = truth, .answers = answers, .implementation = e->implementation->name,
                                  .family_count = family_of(e, c, members), .family = members, .budget = e->settings->budget,
                                  .figures = figures, .saved = saver >= 0 ? &saved : NULL};
        struct error unread = {""};
        struct probed_case *others = probing_others(e, index, &j.probed_count);
        j.probed = others;
        probing_read(s, position, &unread);
        probing_claims(e, index, answers);
        j.probes = e->state[index].probes;
        j.probe_error = unread.text[0] ? unread.text : NULL;
        j.probes_asked = e->plan->probes;
        if (e->plan->counters != NULL)
            counting_figures(e->plan->counters, j.probes, s->world_size, j.probe_error, figures);
        if (e->plan->probes & (1u << PROBE_WAITS | 1u << PROBE_MPI))
            exposing_figures(j.probes, s->world_size, j.probe_error, answers, figures);
        double began_s = launch_now();
        count = memo_judge(e->settings->memo, &j, s->world_size, results, ENGINE_RESULTS - 1, e->state[index].digest);
        e->counts->checks_s += launch_now() - began_s;
        e->counts->own_s -= launch_now() - began_s;
        free(members);
        free(others);
        free(kept);
        if (!judge_truth_digest(c, truth, e->state[index].truth_digest))
            e->state[index].truth_digest[0] = 0;
    }
    *note = read > 0 ? hello_note(&answers[0]) : NULL;
    for (int r = 0; r < read; r++)
        answer_free(&answers[r]);
    free(folder);
    return count;
}

void verdict_judge(struct service *s, int position, const struct finding *extra)
{
    struct engine *e = s->engine;
    int index = s->index[position];
    double began_s = launch_now();
    struct result *results = calloc(ENGINE_RESULTS, sizeof *results);
    struct answer *answers = calloc((size_t)s->world_size, sizeof *answers);
    json_t *figures = json_array();
    char *note;
    int count = collect_results(s, position, answers, results, figures, &note);
    if (extra != NULL)
        results[count++] = (struct result){"answer", *extra};
    for (int i = 0; i < count; i++)
        drop_folder(results[i].finding.message, s->folder);
    space_excuse(e->settings->scratch, results, count);
    if (e->settings->gated && e->plan->cases[index].is_gate)
        mark_gate(results, count);
    struct run_verdict v = {.planned = &e->plan->cases[index], .index = index, .result_count = count, .results = results,
                            .seconds = s->ended_s - s->first_s, .judge_seconds = launch_now() - began_s, .start = e->counts->starts};
    bool well = true;
    for (int i = 0; i < count; i++)
        well = well && results[i].finding.verdict != VERDICT_FAIL && results[i].finding.verdict != VERDICT_BROKEN;
    char *tail = well ? NULL : blame_log_tail(s);
    v.log_tail = tail;
    v.figures = figures;
    v.probes = probing_stored(s, position);
    v.seen = e->state[index].probes;
    v.note = note;
    hand_over(e, &v);
    e->counts->own_s += launch_now() - began_s;
    e->counts->judged++;
    json_decref(figures);
    json_decref(v.probes);
    free(note);
    free(tail);
    free(answers);
    free(results);
}
