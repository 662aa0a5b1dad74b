// fsdpmark check: plans, runs, stores and reports cases of one or more implementations.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/cases/random.h"
#include "harness/cli/cli.h"
#include "harness/launch/interrupt.h"
#include "harness/launch/launch.h"
#include "harness/protocol/memory.h"
#include "harness/run/stamp.h"
#include "harness/store/verdicts.h"

struct request {
    struct option_list implementations;
    const char *profile, *pattern, *case_file, *suite, *launcher;
    int64_t seed, random;
    double deadline_s, budget;
    // not part of what a resumed run takes over
    const char *json, *junit, *csv, *store;
    bool tap, keep, verbose, ungated;
    int64_t resume;
};

struct subject { struct implementation implementation; struct plan plan; struct known_case *known; };

// ---- what --resume needs to plan the same again ----

static void set_text(json_t *object, const char *name, const char *text)
{
    if (text != NULL)
        json_object_set_new(object, name, json_string(text));
}

// A path that still means the same from another working directory, for --resume. What does not exist is left to complain of.
static char *absolute(const char *path)
{
    char *real = realpath(path, NULL);
    return real != NULL ? real : memory_text(path);
}

// A name of the suite stays one, whatever folders lie around.
static char *absolute_unless_name(const char *word)
{
    size_t size = strlen(word);
    bool is_path = strchr(word, '/') != NULL || (size > 5 && strcmp(word + size - 5, ".yaml") == 0);
    return is_path ? absolute(word) : memory_text(word);
}

static json_t *arguments_write(const struct request *r)
{
    json_t *out = json_object(), *list = json_array();
    for (int i = 0; i < r->implementations.count; i++)
        json_array_append_new(list, json_string(r->implementations.items[i]));
    json_object_set_new(out, "implementations", list);
    set_text(out, "profile", r->profile);
    set_text(out, "pattern", r->pattern);
    set_text(out, "case_file", r->case_file);
    set_text(out, "suite", r->suite);
    set_text(out, "launcher", r->launcher);
    json_object_set_new(out, "seed", json_integer(r->seed));
    json_object_set_new(out, "random", json_integer(r->random));
    json_object_set_new(out, "deadline_s", json_real(r->deadline_s));
    json_object_set_new(out, "budget", json_real(r->budget));
    json_object_set_new(out, "no_gate", json_boolean(r->ungated));
    return out;
}

// Texts are borrowed from the object.
static bool arguments_read(struct request *r, json_t *a)
{
    json_t *list = json_object_get(a, "implementations"), *item;
    size_t i;
    r->implementations.count = 0;
    json_array_foreach(list, i, item)
        if (i < sizeof r->implementations.items / sizeof *r->implementations.items)
            r->implementations.items[r->implementations.count++] = json_string_value(item);
    r->profile = json_string_value(json_object_get(a, "profile"));
    r->pattern = json_string_value(json_object_get(a, "pattern"));
    r->case_file = json_string_value(json_object_get(a, "case_file"));
    r->suite = json_string_value(json_object_get(a, "suite"));
    r->launcher = json_string_value(json_object_get(a, "launcher"));
    r->seed = json_integer_value(json_object_get(a, "seed"));
    r->random = json_integer_value(json_object_get(a, "random"));
    r->deadline_s = json_number_value(json_object_get(a, "deadline_s"));
    r->budget = json_number_value(json_object_get(a, "budget"));
    r->ungated = json_is_true(json_object_get(a, "no_gate"));
    return r->implementations.count > 0;
}

// ---- planning ----

static bool names_launcher(const struct implementation *i, const char *asked, struct error *error)
{
    for (int k = 0; asked != NULL && k < i->launchers.count; k++)
        if (strcmp(i->launchers.items[k], asked) == 0)
            return true;
    return asked == NULL || error_set(error, "--launcher: found '%s', which the manifest of %s does not name", asked, i->name);
}

static bool plan_subject(const struct request *r, const char *name, struct subject *out, struct error *error)
{
    struct selection selection = {.suite = r->suite, .profile = r->profile, .pattern = r->pattern, .case_file = r->case_file,
                                  .seed = (uint64_t)r->seed, .scale = 1};
    if (!implementation_read(name, r->suite, &out->implementation, error))
        return false;
    return names_launcher(&out->implementation, r->launcher, error) && session_installed(&out->implementation, error) && plan_make(&selection, &out->implementation, &out->plan, error);
}

static bool plan_subjects(const struct request *r, struct subject *subjects, struct error *error)
{
    for (int i = 0; i < r->implementations.count; i++) {
        if (!plan_subject(r, r->implementations.items[i], &subjects[i], error))
            return false;
        for (int k = 0; k < i; k++)
            if (strcmp(subjects[k].implementation.name, subjects[i].implementation.name) == 0)
                return error_set(error, "implementation %s: found twice, expected each once", subjects[i].implementation.name);
    }
    return true;
}

static void mark_known(const struct stored_run *run, struct subject *s)
{
    s->known = memory_zeros((size_t)s->plan.count, sizeof *s->known);
    for (int i = 0; i < s->plan.count; i++) {
        s->known[i].verdict = -1;
        for (int k = 0; k < run->case_count; k++) {
            const struct stored_case *c = &run->cases[k];
            if (strcmp(c->case_id, s->plan.cases[i].c.id) != 0 || strcmp(c->implementation, s->implementation.name) != 0)
                continue;
            enum verdict *verdicts = memory_zeros((size_t)c->result_count + 1, sizeof *verdicts);
            for (int v = 0; v < c->result_count; v++)
                verdicts[v] = c->results[v].verdict;
            s->known[i].verdict = (int)run_verdict_of(verdicts, c->result_count);
            snprintf(s->known[i].digest, sizeof s->known[i].digest, "%s", c->digest);
            snprintf(s->known[i].truth_digest, sizeof s->known[i].truth_digest, "%s", c->truth_digest);
            free(verdicts);
        }
    }
}

// ---- the run ----

static bool write_reports(const struct cli *cli, const struct request *r, const struct stored_run *run)
{
    bool ok = true;
    if (r->json != NULL)
        ok &= cli_write(cli, r->json, report_json, run);
    if (r->junit != NULL)
        ok &= cli_write(cli, r->junit, report_junit, run);
    if (r->csv != NULL)
        ok &= cli_write(cli, r->csv, report_csv, run);
    if (r->tap)
        ok &= cli_write(cli, "-", report_tap, run);
    return ok;
}

// With --tap, or a report on stdout, the table and all news go to stderr.
static FILE *news(const struct request *r)
{
    const char *paths[] = {r->json, r->junit, r->csv};
    for (int i = 0; i < 3; i++)
        if (paths[i] != NULL && strcmp(paths[i], "-") == 0)
            return stderr;
    return r->tap ? stderr : stdout;
}

// The run as reports shall show it: ended, with its status, where it was not cut short.
static bool load_ended(struct session *s, bool cut_short, struct stored_run *run, struct error *error)
{
    if (!store_load_run(s->store, s->run, run, error))
        return false;
    if (cut_short)
        return true;
    int status = report_exit_status(run);
    stored_run_free(run);
    return store_end_run(s->store, s->run, status, error) && store_load_run(s->store, s->run, run, error);
}

static int finish(const struct cli *cli, const struct request *r, struct session *s, const char *store, struct error *error)
{
    FILE *out = news(r);
    struct stored_run run;
    int status = 3, caught = interrupt_signal();
    bool failed = error->text[0] != 0;
    if (failed)
        options_bad(cli->command, "%s", error->text);
    struct error own = {0};
    if (load_ended(s, caught || failed, &run, &own)) {
        status = failed ? 3 : report_exit_status(&run);
        cli_print_table(&run, r->verbose, out);
        if (!write_reports(cli, r, &run))
            status = 2;
        stored_run_free(&run);
    } else {
        options_bad(cli->command, "%s", own.text);
    }
    session_summary(s, out);
    if (caught || failed)
        fprintf(stderr, "fsdpmark check: %s; what was judged is kept, the rest goes on with: fsdpmark check --resume %lld --store %s\n",
                caught ? "interrupted" : "ended early", (long long)s->run, store);
    if (!session_close(s, caught || failed ? -1 : status, stderr, &own))
        options_bad(cli->command, "%s", own.text);
    return caught ? 128 + caught : status;
}

static int run_subjects(const struct cli *cli, const struct request *r, struct subject *subjects, const char *store)
{
    struct error error = {0};
    struct session session;
    struct run_settings settings = {
        .program = cli->program, .launcher = r->launcher, .start_deadline_s = 3 * r->deadline_s, .case_deadline_s = r->deadline_s,
        .truth_deadline_s = 600, .budget = r->budget, .keep = r->keep, .gated = !r->ungated,
    };
    json_t *environment = stamp_make((uint64_t)r->seed);
    json_object_set_new(environment, "arguments", arguments_write(r));
    struct run_info info = {cli->command_line, r->profile, r->pattern, (uint64_t)r->seed, environment};
    bool ok = session_open(&session, store, &settings, &info, r->resume, &error);
    json_decref(environment);
    if (!ok) {
        options_bad(cli->command, "%s", error.text);
        session_close(&session, -1, stderr, &error);
        return 2;
    }
    FILE *progress = isatty(2) || news(r) == stderr ? stderr : stdout;
    for (int i = 0; ok && i < r->implementations.count && !interrupt_signal(); i++)
        ok = session_run(&session, subjects[i].implementation.name, &subjects[i].implementation, &subjects[i].plan, subjects[i].known,
                         progress, &error);
    return finish(cli, r, &session, store, &error);
}

// Takes the arguments of a stored run over; *run stays loaded where the result is true.
static bool take_up(const struct cli *cli, struct request *r, const char *store, struct stored_run *run)
{
    struct store *s;
    char word[32];
    snprintf(word, sizeof word, "%lld", (long long)r->resume);
    if (!cli_load_run(cli, store, word, &s, run))
        return false;
    store_close(s);
    json_t *arguments = json_object_get(run->environment, "arguments");
    if (!arguments_read(r, arguments)) {
        options_bad(cli->command, "run %s: found no arguments of a check in it, expected a run of fsdpmark check", word);
        stored_run_free(run);
        return false;
    }
    return true;
}

// --random: the drawn cases become a case file, which the plan reads like anybody's. It has no name, so that nothing is left of it
// however the program ends. Returns what keeps it, which the caller closes; -1 on failure.
static int draw_random(struct request *r, char path[64], struct error *error)
{
    int fd = r->random <= 20000 ? memfd_create("fsdpmark-random", MFD_CLOEXEC) : -1, copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    FILE *file = copy >= 0 ? fdopen(copy, "w") : NULL;
    if (file != NULL)
        random_cases_write(file, (int)r->random, r->seed != 0 ? (uint64_t)r->seed : 1, 8);
    bool ok = file != NULL && !ferror(file);
    if (file != NULL)
        ok &= fclose(file) == 0;
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    r->case_file = path;
    if (ok)
        return fd;
    error_set(error, "--random %lld: the cases cannot be written (20000 cases at most)", (long long)r->random);
    if (fd >= 0)
        close(fd);
    return -1;
}

static int check(const struct cli *cli, struct request *r, const char *store)
{
    char drawn[64] = "";
    struct error error = {0};
    struct stored_run old = {0};
    if (r->resume != 0 && !take_up(cli, r, store, &old))
        return 2;
    struct subject *subjects = memory_zeros((size_t)r->implementations.count, sizeof *subjects);
    int status = 2, random = r->random != 0 ? draw_random(r, drawn, &error) : -1;
    bool planned = (r->random == 0 || random >= 0) && plan_subjects(r, subjects, &error);
    if (random >= 0)
        close(random);
    if (drawn[0] != 0)
        r->case_file = NULL;
    if (!planned) {
        options_bad(cli->command, "%s", error.text);
        status = interrupt_signal() ? 128 + interrupt_signal() : 2;
    } else {
        for (int i = 0; r->resume != 0 && i < r->implementations.count; i++)
            mark_known(&old, &subjects[i]);
        status = run_subjects(cli, r, subjects, store);
    }
    for (int i = 0; i < r->implementations.count; i++) {
        plan_free(&subjects[i].plan);
        implementation_free(&subjects[i].implementation);
        free(subjects[i].known);
    }
    free(subjects);
    if (r->resume != 0)
        stored_run_free(&old);
    return status;
}

// Two documents on one stream are none.
static bool stdout_is_free(const struct command *command, const struct request *r)
{
    const char *paths[] = {r->json, r->junit, r->csv, r->tap ? "-" : NULL};
    int count = 0;
    for (int i = 0; i < 4; i++)
        count += paths[i] != NULL && strcmp(paths[i], "-") == 0;
    return count <= 1 || (options_bad(command, "found %d reports for standard output, expected at most one", count), false);
}

// True where a report can be written there at the end of the run. Leaves no file behind; a pipe is not opened, since its reader
// would take the first close for the end.
static bool is_writable(const char *path)
{
    struct stat info;
    bool exists = stat(path, &info) == 0;
    if (exists && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return access(path, W_OK) == 0;
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | (exists ? 0 : O_CREAT), 0666);
    if (fd < 0)
        return false;
    close(fd);
    if (!exists)
        unlink(path);
    return true;
}

static bool reports_can_be_written(const struct command *command, const struct request *r)
{
    const char *paths[] = {r->json, r->junit, r->csv};
    for (int i = 0; i < 3; i++)
        if (paths[i] != NULL && strcmp(paths[i], "-") != 0 && !is_writable(paths[i]))
            return options_bad(command, "%s: cannot be written: %s", paths[i], strerror(errno)), false;
    return true;
}

// A resumed run has its arguments already; others would be ignored.
static bool resumes_alone(const struct command *command, const struct request *r)
{
    const struct { const char *name; bool given; } others[] = {
        {"implementation", r->implementations.count > 0}, {"profile", r->profile != NULL}, {"pattern", r->pattern != NULL},
        {"case", r->case_file != NULL}, {"random", r->random != 0}, {"seed", r->seed != 0}, {"launcher", r->launcher != NULL}, {"no-gate", r->ungated},
    };
    for (size_t i = 0; r->resume != 0 && i < sizeof others / sizeof *others; i++)
        if (others[i].given)
            return options_bad(command, "--resume: found with --%s, expected it without: the run goes on with its own arguments", others[i].name), false;
    return true;
}

int cmd_check(const struct cli *cli, int argc, char **argv)
{
    struct request r = {.deadline_s = 60, .budget = JUDGE_BUDGET};
    int words;
    const struct option table[] = {
        {"implementation", 'i', OPTION_LIST, &r.implementations, "IMPL", "name, or path of a manifest; default reference"},
        {"profile", 'p', OPTION_TEXT, &r.profile, "PROFILE", "named selection of cases; default smoke, with -k all"},
        {"pattern", 'k', OPTION_TEXT, &r.pattern, "PATTERN", "only cases whose id matches the glob or holds the text"},
        {"case", 0, OPTION_TEXT, &r.case_file, "FILE", "cases of a file outside the suite"},
        {"random", 0, OPTION_INTEGER, &r.random, "N", "N random correct configurations, drawn from the seed"},
        {"seed", 0, OPTION_INTEGER, &r.seed, "S", "seed of data and parameters; default as the cases say"},
        {"json", 0, OPTION_TEXT, &r.json, "FILE", "also write JSON (- is stdout)"},
        {"junit", 0, OPTION_TEXT, &r.junit, "FILE", "also write JUnit XML"},
        {"csv", 0, OPTION_TEXT, &r.csv, "FILE", "also write CSV"},
        {"tap", 0, OPTION_FLAG, &r.tap, NULL, "TAP on stdout, the table on stderr"},
        {"store", 0, OPTION_TEXT, &r.store, "FILE", "results database; default ~/.local/share/fsdpmark/results.db"},
        {"resume", 0, OPTION_INTEGER, &r.resume, "RUN", "go on with an interrupted run and its arguments"},
        {"launcher", 0, OPTION_TEXT, &r.launcher, "NAME", "local or mpirun; default the implementation's first"},
        {"deadline", 0, OPTION_SECONDS, &r.deadline_s, "S", "seconds without an event that make a hang (60); a start gets three times that"},
        {"budget", 0, OPTION_RATIO, &r.budget, "X", "ratio to the measured noise allowed in the calibrated layer"},
        {"suite", 0, OPTION_TEXT, &r.suite, "FOLDER", "the suite; default $FSDPMARK_SUITE, or the one beside the program"},
        {"no-gate", 0, OPTION_FLAG, &r.ungated, NULL, "judge sharded cases even where the unsharded case does not PASS"},
        {"keep", 0, OPTION_FLAG, &r.keep, NULL, "keep the job folders and say where"},
        {"verbose", 'v', OPTION_FLAG, &r.verbose, NULL, "every result in the table"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, NULL, 0, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    if (r.launcher != NULL && launcher_find(r.launcher) == NULL)
        return options_bad(cli->command, "--launcher: found '%s', expected local or mpirun", r.launcher);
    if (!stdout_is_free(cli->command, &r) || !resumes_alone(cli->command, &r) || !reports_can_be_written(cli->command, &r))
        return 2;
    if (r.implementations.count == 0)
        r.implementations.items[r.implementations.count++] = "reference";
    if (r.random > 0 && (r.profile != NULL || r.case_file != NULL))
        return options_bad(cli->command, "--random: found with %s, expected it alone", r.profile != NULL ? "--profile" : "--case");
    if (r.profile == NULL && r.case_file == NULL && r.pattern == NULL && r.random == 0)
        r.profile = "smoke";
    char *names[32] = {0}, *case_file = NULL;
    for (int i = 0; i < r.implementations.count; i++)
        r.implementations.items[i] = names[i] = absolute_unless_name(r.implementations.items[i]);
    if (r.case_file != NULL)
        r.case_file = case_file = absolute(r.case_file);
    char *store = cli_store(cli, r.store), *suite = store != NULL ? cli_suite(cli, r.suite) : NULL;
    r.suite = suite;
    int status = suite != NULL ? check(cli, &r, store) : 2;
    for (int i = 0; i < 32; i++)
        free(names[i]);
    free(case_file);
    free(store);
    free(suite);
    return status;
}
