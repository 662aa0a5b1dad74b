// fsdpmark selftest: the proof that the suite finds what it claims to find, and nothing else.
//
// Every fault runs on its cases through the same planning, launching and judging as `check`. It counts as detected only where a
// check that claims its class says FAIL (and, where the fault names one, that check). Then the same cases run without a fault, on
// the implementation as it is and on the build that carries the faults: there everything must PASS.
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/cli/cli.h"
#include "harness/launch/interrupt.h"
#include "harness/protocol/memory.h"
#include "harness/run/faults.h"
#include "harness/run/stamp.h"
#include "suite/checks/check.h"

struct outcome {
    bool detected, skipped;
    char check[64], where[160], figure[64], message[1024];
};
struct alarm { char *build, *case_id, *message; };

struct selftest {
    const struct cli *cli;
    const char *suite, *pattern, *in, *store, *json;
    double deadline_s;
    bool verbose, keep;
    struct fault_list faults;
    struct outcome *outcomes;   // by fault
    struct session session;
    const int *fault_of;        // by case of the plan that is running
    const char *build;          // name under which it is recorded
    unsigned probes;            // of the faults that are running
    int correct, unjudged, alarm_count;
    struct alarm *alarms;
};

// ---- seeing verdicts ----

static bool claims(const char *check, const char *class_name, const struct finding *f)
{
    for (int i = 0; check_list[i] != NULL; i++)
        if (strcmp(check_list[i]->name, check) == 0)
            return strstr(check_list[i]->catches, class_name) != NULL;
    // The harness's own check `answer` is no file of suite/checks: its FAIL names the classes that it fits.
    return strcmp(check, "answer") == 0 && strstr(f->classes, class_name) != NULL;
}

static void see_fault(const struct fault *f, struct outcome *o, const struct run_verdict *v)
{
    for (int i = 0; i < v->result_count; i++) {
        const struct finding *found = &v->results[i].finding;
        const char *check = v->results[i].check;
        if (found->verdict != VERDICT_FAIL)
            continue;
        bool counts = claims(check, f->class_name, found) && (f->expect == NULL || strcmp(f->expect, check) == 0);
        if (o->detected || (!counts && o->message[0] != 0))
            continue;
        o->detected = counts;
        snprintf(o->check, sizeof o->check, "%s", check);
        snprintf(o->where, sizeof o->where, "%s", v->planned->c.id);
        snprintf(o->message, sizeof o->message, "%s", found->message);
        snprintf(o->figure, sizeof o->figure, "-");
        if (judge_finite(found->figure) && found->unit[0] != 0)
            snprintf(o->figure, sizeof o->figure, "%.4g %s", found->figure, found->unit);
    }
    if (v->verdict != VERDICT_PASS && o->message[0] == 0 && v->result_count > 0)
        snprintf(o->message, sizeof o->message, "%s is %s: %.900s", v->planned->c.id, verdict_name(v->verdict), v->results[0].finding.message);
}

static void see_correct(struct selftest *t, const struct run_verdict *v)
{
    t->correct += v->verdict != VERDICT_SKIP;
    t->unjudged += v->verdict == VERDICT_SKIP;
    if (v->verdict == VERDICT_PASS || v->verdict == VERDICT_SKIP)
        return;
    const char *message = "";
    for (int i = v->result_count - 1; i >= 0; i--)
        if (v->results[i].finding.verdict == v->verdict)
            message = v->results[i].finding.message;
    t->alarms = memory_grow(t->alarms, (size_t)t->alarm_count, sizeof *t->alarms);
    t->alarms[t->alarm_count++] = (struct alarm){memory_text(t->build), memory_text(v->planned->c.id), memory_text(message)};
}

static bool see(void *context, const struct run_verdict *v, struct error *error)
{
    struct selftest *t = context;
    int fault = t->fault_of[v->index];
    (void)error;
    if (fault < 0)
        see_correct(t, v);
    else
        see_fault(&t->faults.items[fault], &t->outcomes[fault], v);
    return true;
}

// ---- running ----

// The build of an implementation that carries faults: fsdp-reference becomes fsdp-reference-faulty; adapters carry theirs.
static bool make_faulty(struct implementation *i)
{
    static const char name[] = "fsdp-reference";
    bool changed = false;
    for (int k = 0; k < i->command.count; k++) {
        size_t size = strlen(i->command.items[k]), own = sizeof name - 1;
        if (size < own || strcmp(i->command.items[k] + size - own, name) != 0)
            continue;
        char *faulty = memory_format("%s-faulty", i->command.items[k]);
        free(i->command.items[k]);
        i->command.items[k] = faulty;
        changed = true;
    }
    return changed;
}

static bool run_plan(struct selftest *t, const char *build, const struct implementation *i, struct plan *plan, int *fault_of, struct error *error)
{
    t->build = build;
    t->fault_of = fault_of;
    t->session.watcher = see;
    t->session.watcher_context = t;
    plan->probes = t->probes;
    return plan->count == 0 || session_run(&t->session, build, i, plan, NULL, isatty(2) ? stderr : NULL, error);
}

static bool selected(const struct selftest *t, const struct fault *f)
{
    size_t n = t->in != NULL ? strlen(t->in) : 0;
    bool by_pattern = t->pattern == NULL || fnmatch(t->pattern, f->name, 0) == 0 || strstr(f->name, t->pattern) != NULL ||
                      strcmp(t->pattern, f->class_name) == 0;
    return by_pattern && strncmp(f->in, t->in != NULL ? t->in : "", n) == 0;
}

// Of the faults of an implementation that are run together: those with the same probes.
static bool grouped(const struct selftest *t, int k, const char *in)
{
    const struct fault *f = &t->faults.items[k];
    return strcmp(f->in, in) == 0 && f->probes == t->probes && selected(t, f);
}

// All faults of an implementation with the same probes are one plan: each case's option `fault` names its own, so that one start of the workers
// serves many. Where the faults live in a build of their own, that build also runs the cases without a fault.
static bool run_faults(struct selftest *t, const char *in, struct error *error)
{
    struct plan plan = {0};
    struct implementation i;
    int *fault_of = NULL;
    if (!implementation_read(in, t->suite, &i, error))
        return false;
    bool ok = true, own_build = make_faulty(&i);
    for (int k = 0; ok && k < t->faults.count; k++)
        if (grouped(t, k, in))
            ok = faults_plan(&t->faults.items[k], k, t->suite, &i, &plan, &fault_of, error);
    for (int k = 0; ok && own_build && k < t->faults.count; k++)
        if (grouped(t, k, in))
            ok = faults_plan_correct(&t->faults.items[k], t->suite, &i, &plan, &fault_of, error);
    char *build = memory_format("%s-faulty", in);
    ok = ok && run_plan(t, build, &i, &plan, fault_of, error);
    free(build);
    plan_free(&plan);
    free(fault_of);
    implementation_free(&i);
    return ok;
}

static bool run_correct(struct selftest *t, const char *in, struct error *error)
{
    struct plan plan = {0};
    struct implementation i;
    int *fault_of = NULL;
    if (!implementation_read(in, t->suite, &i, error))
        return false;
    bool ok = true;
    for (int k = 0; ok && k < t->faults.count; k++)
        if (grouped(t, k, in))
            ok = faults_plan_correct(&t->faults.items[k], t->suite, &i, &plan, &fault_of, error);
    ok = ok && run_plan(t, in, &i, &plan, fault_of, error);
    plan_free(&plan);
    free(fault_of);
    implementation_free(&i);
    return ok;
}

// An implementation that cannot run here: its faults are skipped and said so; an error only where --in asked for it.
static bool usable(struct selftest *t, const char *in, struct error *error)
{
    struct implementation i;
    struct error reason = {0};
    if (!implementation_read(in, t->suite, &i, error))
        return false;
    bool ok = session_installed(&i, &reason);
    implementation_free(&i);
    if (!ok && t->in != NULL)
        error_set(error, "%s", reason.text);
    for (int k = 0; !ok && k < t->faults.count; k++)
        if (strcmp(t->faults.items[k].in, in) == 0) {
            t->outcomes[k].skipped = true;
            snprintf(t->outcomes[k].message, sizeof t->outcomes[k].message, "%s", reason.text);
        }
    return ok;
}

static bool run_all(struct selftest *t, struct error *error)
{
    for (int k = 0; k < t->faults.count && !interrupt_signal(); k++) {
        const char *in = t->faults.items[k].in;
        bool first = selected(t, &t->faults.items[k]);
        t->probes = t->faults.items[k].probes;
        for (int j = 0; j < k; j++)
            first &= !grouped(t, j, in);
        if (!first)
            continue;
        if (usable(t, in, error) ? !run_faults(t, in, error) || !run_correct(t, in, error) : error->text[0] != 0)
            return false;
    }
    return true;
}

// ---- reporting ----

static void print_table(const struct selftest *t, FILE *out)
{
    fprintf(out, "%-34s %-5s %-16s %-22s %s\n", "fault", "class", "in", "detected by", "figure");
    for (int k = 0; k < t->faults.count; k++) {
        const struct fault *f = &t->faults.items[k];
        const struct outcome *o = &t->outcomes[k];
        if (!selected(t, f))
            continue;
        fprintf(out, "%-34s %-5s %-16s %-22s %s\n", f->name, f->class_name, f->in, o->detected ? o->check : o->skipped ? "skipped" : "MISSED",
                o->detected ? o->figure : "");
        if (t->verbose || !o->detected)
            fprintf(out, "    %s%s%s\n", o->detected || (!o->skipped && o->where[0]) ? o->where : "", o->where[0] && !o->skipped ? ": " : "",
                    o->message[0] ? o->message : "every check said PASS");
    }
    for (int i = 0; i < t->alarm_count; i++)
        fprintf(out, "FALSE ALARM %s, case %s: %s\n", t->alarms[i].build, t->alarms[i].case_id, t->alarms[i].message);
}

static void tally(const struct selftest *t, int *detected, int *total, int *skipped)
{
    *detected = *total = *skipped = 0;
    for (int k = 0; k < t->faults.count; k++)
        if (selected(t, &t->faults.items[k])) {
            *skipped += t->outcomes[k].skipped;
            *total += !t->outcomes[k].skipped;
            *detected += t->outcomes[k].detected;
        }
}

static bool write_json(const struct selftest *t)
{
    json_t *faults = json_array(), *alarms = json_array();
    int detected, total, skipped;
    tally(t, &detected, &total, &skipped);
    for (int k = 0; k < t->faults.count; k++) {
        const struct fault *f = &t->faults.items[k];
        const struct outcome *o = &t->outcomes[k];
        if (selected(t, f))
            json_array_append_new(faults, json_pack("{ss ss ss ss sb sb ss* ss* ss* ss*}", "name", f->name, "class", f->class_name, "in", f->in,
                                                    "claim", f->claim, "detected", o->detected, "skipped", o->skipped, "check", o->check,
                                                    "case", o->where, "figure", o->figure, "message", o->message));
    }
    for (int i = 0; i < t->alarm_count; i++)
        json_array_append_new(alarms, json_pack("{ss ss ss}", "build", t->alarms[i].build, "case", t->alarms[i].case_id, "message",
                                                t->alarms[i].message));
    json_t *root = json_pack("{sI si si si si si so so}", "run", (json_int_t)t->session.run, "detected", detected, "total", total, "skipped",
                             skipped, "correct", t->correct, "false_alarms", t->alarm_count, "faults", faults, "alarms", alarms);
    FILE *file = strcmp(t->json, "-") == 0 ? stdout : fopen(t->json, "we");
    bool ok = file != NULL && json_dumpf(root, file, JSON_INDENT(2)) == 0 && fputc('\n', file) != EOF && fflush(file) == 0;
    if (file != NULL && file != stdout)
        fclose(file);
    json_decref(root);
    return ok;
}

static int conclude(struct selftest *t, FILE *out)
{
    int detected, total, skipped;
    tally(t, &detected, &total, &skipped);
    print_table(t, out);
    session_summary(&t->session, out);
    if (skipped > 0)
        fprintf(out, "skipped: %d faults (see above)\n", skipped);
    if (t->unjudged > 0)
        fprintf(out, "correct cases that were SKIP and prove nothing: %d\n", t->unjudged);
    bool written = t->json == NULL || write_json(t);
    if (!written)
        options_bad(t->cli->command, "%s: cannot be written", t->json);
    fprintf(out, "faults: %d of %d detected; correct: %d cases, %d false alarms\n", detected, total, t->correct, t->alarm_count);
    // A selftest that has tried nothing, or no correct program, has proved nothing.
    return !written ? 2 : total == 0 || t->correct == 0 ? 3 : detected < total || t->alarm_count > 0 ? 1 : 0;
}

static int run_selftest(struct selftest *t)
{
    struct error error = {0};
    struct run_settings settings = {.program = t->cli->program, .start_deadline_s = 6 * t->deadline_s, .case_deadline_s = t->deadline_s,
                                    .truth_deadline_s = 600, .budget = JUDGE_BUDGET, .keep = t->keep};
    json_t *environment = stamp_make(0);
    struct run_info info = {t->cli->command_line, "selftest", t->pattern, 0, environment};
    FILE *out = t->json != NULL && strcmp(t->json, "-") == 0 ? stderr : stdout;
    int status = 2;
    if (!session_open(&t->session, t->store, &settings, &info, 0, &error) || !run_all(t, &error))
        options_bad(t->cli->command, "%s", error.text);
    else if (interrupt_signal())
        fprintf(stderr, "fsdpmark selftest: interrupted\n");
    else
        status = conclude(t, out);
    json_decref(environment);
    struct error own = {0};
    if (!session_close(&t->session, interrupt_signal() || error.text[0] ? -1 : status, stderr, &own))
        options_bad(t->cli->command, "%s", own.text);
    return interrupt_signal() ? 128 + interrupt_signal() : status;
}

static int selftest(struct selftest *t)
{
    struct error error = {0};
    int chosen = 0;
    if (!faults_read(t->suite, &t->faults, &error)) {
        faults_free(&t->faults);
        return options_bad(t->cli->command, "%s", error.text);
    }
    for (int k = 0; k < t->faults.count; k++)
        chosen += selected(t, &t->faults.items[k]);
    t->outcomes = memory_zeros((size_t)t->faults.count, sizeof *t->outcomes);
    int status = chosen > 0 ? run_selftest(t)
                            : options_bad(t->cli->command, "no fault matches%s%s%s%s; fsdpmark list faults names them",
                                          t->pattern != NULL ? " -k " : "", t->pattern != NULL ? t->pattern : "",
                                          t->in != NULL ? " --in " : "", t->in != NULL ? t->in : "");
    for (int i = 0; i < t->alarm_count; i++) {
        free(t->alarms[i].build);
        free(t->alarms[i].case_id);
        free(t->alarms[i].message);
    }
    free(t->alarms);
    free(t->outcomes);
    faults_free(&t->faults);
    return status;
}

int cmd_selftest(const struct cli *cli, int argc, char **argv)
{
    struct selftest t = {.cli = cli, .deadline_s = 20};
    const char *suite = NULL, *store = NULL;
    int words;
    const struct option table[] = {
        {"pattern", 'k', OPTION_TEXT, &t.pattern, "PATTERN", "only faults whose name matches the glob or holds the text, or of that class"},
        {"in", 0, OPTION_TEXT, &t.in, "IMPL", "only faults in implementations whose name begins so"},
        {"json", 0, OPTION_TEXT, &t.json, "FILE", "also write JSON (- is stdout)"},
        {"store", 0, OPTION_TEXT, &store, "FILE", "results database"},
        {"deadline", 0, OPTION_SECONDS, &t.deadline_s, "S", "seconds without an event that make a hang (20)"},
        {"suite", 0, OPTION_TEXT, &suite, "FOLDER", "the suite"},
        {"keep", 0, OPTION_FLAG, &t.keep, NULL, "keep the job folders and say where"},
        {"verbose", 'v', OPTION_FLAG, &t.verbose, NULL, "where and how each fault was found"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, NULL, 0, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    if (!cli_can_write(cli, "json", t.json) || !cli_can_work(cli))
        return 2;
    char *store_path = cli_store(cli, store), *suite_path = store_path != NULL ? cli_suite(cli, suite) : NULL;
    t.store = store_path;
    t.suite = suite_path;
    int status = suite_path != NULL ? selftest(&t) : 2;
    free(store_path);
    free(suite_path);
    return status;
}
