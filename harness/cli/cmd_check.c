// fsdpmark check: plans, runs, stores and reports cases of one or more implementations. Its options; the rest: check.h.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/cli/check.h"
#include "harness/launch/interrupt.h"
#include "harness/launch/launch.h"
#include "harness/protocol/memory.h"

// A path that still means the same from another working directory, for --resume. What does not exist is left to complain of.
static char *absolute(const char *path)
{
    char *real = path != NULL ? realpath(path, NULL) : NULL;
    return real != NULL ? real : memory_text(path);
}

// A name of the suite stays one, whatever folders lie around; a path may have :VARIANT at its end.
static char *absolute_unless_name(const char *word)
{
    const char *colon = access(word, F_OK) == 0 ? NULL : strrchr(word, ':');
    size_t size = colon != NULL ? (size_t)(colon - word) : strlen(word);
    char *name = memory_format("%.*s", (int)size, word);
    bool is_path = strchr(name, '/') != NULL || (size > 5 && strcmp(name + size - 5, ".yaml") == 0);
    char *whole = is_path ? absolute(name) : memory_text(name), *out = memory_format("%s%s", whole, colon != NULL ? colon : "");
    free(name);
    free(whole);
    return out;
}

// Takes the arguments of a stored run over; *run stays loaded where the result is true.
static bool take_up(const struct cli *cli, struct check_request *r, const char *store, struct stored_run *run)
{
    struct store *s;
    char word[32];
    snprintf(word, sizeof word, "%lld", (long long)r->resume);
    if (!cli_load_run(cli, store, word, &s, run))
        return false;
    store_close(s);
    if (!check_arguments_read(r, json_object_get(run->environment, "arguments"))) {
        options_bad(cli->command, "run %s: found no arguments of a check in it, expected a run of fsdpmark check", word);
        stored_run_free(run);
        return false;
    }
    return true;
}

// The suite's waivers, whose pages lie beside the suite, or a file of one's own, whose pages lie beside it.
static bool read_waivers(const struct check_request *r, struct waiver_list *out, struct error *error)
{
    char *path = r->waivers != NULL ? memory_text(r->waivers) : memory_format("%s/waivers.yaml", r->suite);
    char *folder = r->waivers != NULL ? absolute(path) : memory_text(r->suite), *slash = strrchr(folder, '/');
    bool wanted = !r->no_waivers && (r->waivers != NULL || access(path, F_OK) == 0);
    if (slash != NULL)
        *slash = 0;
    *out = (struct waiver_list){0};
    bool ok = !wanted || waivers_read(path, slash != NULL ? folder : ".", out, error);
    free(path);
    free(folder);
    return ok;
}

static bool read_fabric(struct check_request *r, struct fabric *fabric, struct error *error)
{
    if (r->fabric_name == NULL && r->launcher != NULL && strcmp(r->launcher, "srun") == 0)
        r->fabric_name = "slurm";
    if (r->fabric_name == NULL)
        return true;
    if (!fabric_read(r->fabric_name, r->suite, fabric, error))
        return false;
    r->fabric = fabric;
    return fabric_hosts(fabric, r->hostfile, r->agent, error);
}

// Said here, before anything starts.
static bool probes_are_built(const struct cli *cli, const struct check_subjects *subjects, struct error *error)
{
    unsigned probes = 0;
    for (int i = 0; i < subjects->count; i++)
        probes |= subjects->items[i].absent == NULL ? subjects->items[i].plan.probes : 0;
    return probes == 0 || probing_built(cli->program, probes, error);
}

static int check(const struct cli *cli, struct check_request *r, const char *store)
{
    struct fabric fabric = {.slow_host = -1};
    struct error error = {0};
    struct stored_run old = {0};
    struct check_subjects subjects = {0};
    struct waiver_list waivers = {0};
    int status = 2;
    if (r->resume != 0 && !take_up(cli, r, store, &old))
        return 2;
    if (read_fabric(r, &fabric, &error) && read_waivers(r, &waivers, &error) && check_plan(r, &subjects, &error) && probes_are_built(cli, &subjects, &error) && (r->resume == 0 || check_plan_known(&old, &subjects, &error))) {
        status = check_run(cli, r, &subjects, &waivers, store);
    } else {
        options_bad(cli->command, "%s", error.text);
        status = interrupt_signal() ? 128 + interrupt_signal() : 2;
    }
    check_plan_free(&subjects);
    waivers_free(&waivers);
    fabric_free(&fabric);
    if (r->resume != 0)
        stored_run_free(&old);
    return status;
}

// Two documents on one stream are none.
static bool stdout_is_free(const struct command *command, const struct check_request *r)
{
    const char *paths[] = {r->json, r->junit, r->csv, r->tap ? "-" : NULL};
    int count = 0;
    for (int i = 0; i < 4; i++)
        count += paths[i] != NULL && strcmp(paths[i], "-") == 0;
    return count <= 1 || (options_bad(command, "found %d reports for standard output, expected at most one", count), false);
}

static bool reports_can_be_written(const struct cli *cli, const struct check_request *r)
{
    return cli_can_write(cli, "json", r->json) && cli_can_write(cli, "junit", r->junit) && cli_can_write(cli, "csv", r->csv);
}

// A resumed run has its arguments already; others would be ignored.
static bool resumes_alone(const struct command *command, const struct check_request *r)
{
    const struct { const char *name; bool given; } others[] = {
        {"implementation", r->implementations.count > 0}, {"all-implementations", r->all}, {"waivers", r->waivers != NULL},
        {"no-waivers", r->no_waivers}, {"profile", r->profile != NULL}, {"pattern", r->pattern != NULL},
        {"case", r->case_file != NULL}, {"random", r->random != 0}, {"seed", r->seed != 0}, {"launcher", r->launcher != NULL}, {"no-gate", r->ungated}, {"probes", r->probes != NULL},
        {"counters", r->counters != NULL}, {"fabric", r->fabric_name != NULL}, {"hostfile", r->hostfile != NULL}, {"agent", r->agent != NULL},
    };
    for (size_t i = 0; r->resume != 0 && i < sizeof others / sizeof *others; i++)
        if (others[i].given)
            return options_bad(command, "--resume: found with --%s, expected it without: the run goes on with its own arguments", others[i].name), false;
    return true;
}

// What excludes each other, and the defaults. Complains itself.
static bool is_sound(const struct cli *cli, struct check_request *r)
{
    const struct command *command = cli->command;
    if (r->launcher != NULL && launcher_find(r->launcher) == NULL)
        return options_bad(command, "--launcher: found '%s', expected %s", r->launcher, launcher_names()), false;
    if (!stdout_is_free(command, r) || !resumes_alone(command, r) || !reports_can_be_written(cli, r) || !cli_can_work(cli))
        return false;
    if (r->all && r->implementations.count > 0)
        return options_bad(command, "--all-implementations: found with --implementation, expected it alone"), false;
    if (r->counters != NULL && r->probes != NULL && strcmp(r->probes, "none") == 0)
        return options_bad(command, "--counters: found with --probes none, expected it without: a probe counts"), false;
    if (r->waivers != NULL && r->no_waivers)
        return options_bad(command, "--waivers: found with --no-waivers, expected one of them"), false;
    if (r->implementations.count == 0 && !r->all)
        r->implementations.items[r->implementations.count++] = "reference";
    if (r->random > 0 && (r->profile != NULL || r->case_file != NULL))
        return options_bad(command, "--random: found with %s, expected it alone", r->profile != NULL ? "--profile" : "--case"), false;
    if (r->profile == NULL && r->case_file == NULL && r->pattern == NULL && r->random == 0)
        r->profile = "smoke";
    return true;
}

// Takes paths for what they mean from here.
static int check_from_here(const struct cli *cli, struct check_request *r)
{
    enum { NAMES = sizeof r->implementations.items / sizeof *r->implementations.items };
    char *names[NAMES] = {0}, *case_file = absolute(r->case_file), *waivers = absolute(r->waivers), *hostfile = absolute(r->hostfile);
    char *fabric = r->fabric_name != NULL ? absolute_unless_name(r->fabric_name) : NULL;
    for (int i = 0; i < r->implementations.count; i++)
        r->implementations.items[i] = names[i] = absolute_unless_name(r->implementations.items[i]);
    r->case_file = case_file;
    r->waivers = waivers;
    r->hostfile = hostfile;
    r->fabric_name = fabric;
    char *store = cli_store(cli, r->store), *suite = store != NULL ? cli_suite(cli, r->suite) : NULL;
    r->suite = suite;
    int status = suite != NULL ? check(cli, r, store) : 2;
    for (int i = 0; i < NAMES; i++)
        free(names[i]);
    free(case_file);
    free(waivers);
    free(hostfile);
    free(fabric);
    free(store);
    free(suite);
    return status;
}

int cmd_check(const struct cli *cli, int argc, char **argv)
{
    struct check_request r = {.deadline_s = 60, .budget = JUDGE_BUDGET};
    struct option_list patterns = {0};
    int words;
    const struct option table[] = {
        {"implementation", 'i', OPTION_LIST, &r.implementations, "IMPL", "name, or path of a manifest; default reference"},
        {"all-implementations", 0, OPTION_FLAG, &r.all, NULL, "every implementation of the suite with its variants; what cannot run here is a SKIP"},
        {"profile", 'p', OPTION_TEXT, &r.profile, "PROFILE", "named selection of cases; default smoke, with -k all"},
        {"pattern", 'k', OPTION_LIST, &patterns, "PATTERN", "only cases whose id matches the glob or holds the text; of several (commas between) any"},
        {"case", 0, OPTION_TEXT, &r.case_file, "FILE", "cases of a file outside the suite"},
        {"random", 0, OPTION_INTEGER, &r.random, "N", "N random correct configurations, drawn from the seed"},
        {"seed", 0, OPTION_INTEGER, &r.seed, "S", "seed of data and parameters; default as the cases say"},
        {"json", 0, OPTION_TEXT, &r.json, "FILE", "also write JSON (- is stdout)"},
        {"junit", 0, OPTION_TEXT, &r.junit, "FILE", "also write JUnit XML"},
        {"csv", 0, OPTION_TEXT, &r.csv, "FILE", "also write CSV"},
        {"tap", 0, OPTION_FLAG, &r.tap, NULL, "TAP on stdout, the table on stderr"},
        {"store", 0, OPTION_TEXT, &r.store, "FILE", "results database; default ~/.local/share/fsdpmark/results.db"},
        {"resume", 0, OPTION_INTEGER, &r.resume, "RUN", "go on with an interrupted run and its arguments"},
        {"launcher", 0, OPTION_TEXT, &r.launcher, "NAME", "fork, local, mpirun or srun; default the implementation's first"},
        {"fabric", 'f', OPTION_TEXT, &r.fabric_name, "FABRIC", "what the ranks talk over: name, or path of a file; default this machine, as the launcher has it (docs/fabrics.md)"},
        {"hostfile", 0, OPTION_TEXT, &r.hostfile, "FILE", "machines of the fabric hosts, 'NAME slots=N' in each line (docs/fabrics.md)"},
        {"agent", 0, OPTION_TEXT, &r.agent, "COMMAND", "how mpirun reaches the machines of the fabric hosts; default ssh"},
        {"deadline", 0, OPTION_SECONDS, &r.deadline_s, "S", "seconds without an event that make a hang (60); a start gets three times that"},
        {"budget", 0, OPTION_RATIO, &r.budget, "X", "ratio to the measured noise allowed in the calibrated layer"},
        {"probes", 0, OPTION_TEXT, &r.probes, "LIST", "none, or some of heap,socket,mpi,nccl,cuda,papi,wait; default as the profile says (docs/probes.md)"},
        {"counters", 0, OPTION_TEXT, &r.counters, "EVENTS", "PAPI events to count in each phase, or default (docs/probes.md)"},
        {"waivers", 0, OPTION_TEXT, &r.waivers, "FILE", "known failures; default those of the suite (docs/waivers.md)"},
        {"no-waivers", 0, OPTION_FLAG, &r.no_waivers, NULL, "every FAIL counts"},
        {"suite", 0, OPTION_TEXT, &r.suite, "FOLDER", "the suite; default $FSDPMARK_SUITE, or the one beside the program"},
        {"no-gate", 0, OPTION_FLAG, &r.ungated, NULL, "judge sharded cases even where the unsharded case does not PASS"},
        {"keep", 0, OPTION_FLAG, &r.keep, NULL, "keep the job folders and say where"},
        {"verbose", 'v', OPTION_FLAG, &r.verbose, NULL, "every result in the table"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, NULL, 0, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    char *pattern = options_joined(&patterns);
    r.pattern = pattern;
    int status = is_sound(cli, &r) ? check_from_here(cli, &r) : 2;
    free(pattern);
    return status;
}
