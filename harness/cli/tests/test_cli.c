// The command line: exact complaints and exit statuses for bad input, help for everything, and each report format.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>

#include "harness/cli/tests/command.h"
#include "harness/run/scratch.h"

static const double LIMIT_S = 60;
static char folder[] = "/tmp/fsdpmark.test.XXXXXX";
static struct command_result result;

static int set_up(void **state)
{
    (void)state;
    if (!command_folder(folder))
        return -1;
    command_write(folder, "cases.yaml", "name: t\ntitle: small\nlayer: witness\nmodel: {kind: witness, units: [{name: u, parameters: [{name: w, shape: [4]}]}]}\n"
                  "data: {recipe: values, values: [1, 2]}\nmatrix: {ranks: [2], strategy: [none]}\n");
    command_write(folder, "local.yaml", "title: one launcher\nname: local\ncommand: [\"/bin/true\"]\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

static const struct { const char *words[8], *error; } bad[] = {
    {{"chek"}, "fsdpmark: unknown command 'chek', nearest is check\n"},
    {{"qqqqqqqq"}, "fsdpmark: unknown command 'qqqqqqqq', see fsdpmark --help\n"},
    {{"--versio"}, "fsdpmark: unknown option '--versio', "},
    {{"help", "reprot"}, "fsdpmark: unknown command 'reprot', nearest is report\n"},
    {{"check", "--profil", "smoke"}, "fsdpmark check: unknown option '--profil', nearest is --profile\n"},
    {{"check", "-x"}, "fsdpmark check: unknown option '-x', see fsdpmark help check\n"},
    {{"check", "smoke"}, "fsdpmark check: found 'smoke', expected: fsdpmark check [options]\n"},
    {{"check", "--seed"}, "fsdpmark check: --seed: found nothing, expected S\n"},
    {{"check", "--seed", "many"}, "fsdpmark check: --seed: found 'many', expected a whole number of at least 0\n"},
    {{"check", "--seed", "-1"}, "fsdpmark check: --seed: found '-1', expected a whole number of at least 0\n"},
    {{"check", "--seed", "99999999999999999999"}, "fsdpmark check: --seed: found '99999999999999999999', expected at most 9223372036854775807\n"},
    {{"check", "--deadline", "1e300"}, "fsdpmark check: --deadline: found '1e300', expected at most 1e9\n"},
    {{"check", "--deadline", "0"}, "fsdpmark check: --deadline: found '0', expected a number above 0\n"},
    {{"check", "--deadline=nan"}, "fsdpmark check: --deadline: found 'nan', expected a number above 0\n"},
    {{"check", "--budget", "8x"}, "fsdpmark check: --budget: found '8x', expected a number above 0\n"},
    {{"check", "--tap=yes"}, "fsdpmark check: --tap: found 'yes', expected no argument\n"},
    {{"check", "--launcher", "slurm"}, "fsdpmark check: --launcher: found 'slurm', expected fork, local, mpirun or srun\n"},
    {{"check", "-i", "refrence"}, "found no implementation 'refrence' in "},
    {{"check", "-i", "./nothing.yaml"}, "fsdpmark check: ./nothing.yaml: No such file or directory, expected a readable file\n"},
    {{"check", "-i", "null", "-i", "null", "-p", "tiny"}, "fsdpmark check: implementation null: found twice, expected each once\n"},
    {{"check", "-i", "null", "-p", "smok"}, "smok"},
    {{"check", "-i", "null", "-k", "no-such-case"}, "no-such-case"},
    {{"check", "-i", "null", "-k", "no-such-case", "-k", "nor-this"}, "found no case that matches 'no-such-case,nor-this'"},
    {{"check", "-i", "null", "--case", "nothing.yaml"}, "nothing.yaml"},
    {{"check", "--suite", "/nonexistent"}, "fsdpmark check: /nonexistent: found no suite there, expected a folder that holds implementations/\n"},
    {{"check", "--random", "5", "-p", "smoke"}, "fsdpmark check: --random: found with --profile, expected it alone\n"},
    {{"check", "--resume", "7"}, "fsdpmark check: "},
    {{"check", "--resume", "7", "-p", "tiny"}, "fsdpmark check: --resume: found with --profile, expected it without: the run goes on with its own arguments\n"},
    {{"check", "--json", "-", "--tap", "-p", "tiny"}, "fsdpmark check: found 2 reports for standard output, expected at most one\n"},
    {{"check", "-i", "./local.yaml", "-p", "tiny", "--launcher", "mpirun"}, "--launcher: found 'mpirun', which the manifest of local does not name\n"},
    {{"check", "-i", "null", "--store", "/nonexistent/x.db", "-p", "tiny"}, "/nonexistent/x.db"},
    {{"check", "-p", "tiny", "--json", "/nonexistent/x"}, "fsdpmark check: /nonexistent/x: cannot be written: No such file or directory\n"},
    {{"check", "-p", "tiny", "--junit", "/nonexistent/x"}, "fsdpmark check: /nonexistent/x: cannot be written: No such file or directory\n"},
    {{"check", "-p", "tiny", "--csv", "."}, "fsdpmark check: .: cannot be written: Is a directory\n"},
    {{"check", "-i", "null", "--random", "20001"}, "fsdpmark check: --random 20001: the cases cannot be written (20000 cases at most)\n"},
    {{"check", "-i", "null", "-p", "tiny", "--waivers", "nothing.yaml"}, "fsdpmark check: nothing.yaml: No such file or directory, expected a readable file\n"},
    {{"check", "-i", "null", "-p", "tiny", "--waivers", "cases.yaml"}, "cases.yaml:1: found no list under waivers alone, expected {waivers: [...]}\n"},
    {{"check", "--waivers", "x.yaml", "--no-waivers"}, "fsdpmark check: --waivers: found with --no-waivers, expected one of them\n"},
    {{"check", "--resume", "7", "--no-waivers"}, "fsdpmark check: --resume: found with --no-waivers, expected it without: the run goes on with its own arguments\n"},
    {{"check", "-i", "null", "--all-implementations"}, "fsdpmark check: --all-implementations: found with --implementation, expected it alone\n"},
    {{"check", "--all-implementations", "-p", "smok"}, "smok"},
    {{"check", "--all-implementations", "-k", "no-such-case"}, "fsdpmark check: --all-implementations: found none that can run: found no case that matches 'no-such-case'"},
    {{"list", "chekcs"}, "fsdpmark list: found 'chekcs', nearest is checks\n"},
    {{"list", "checks", "faults"}, "fsdpmark list: found 'faults', expected: fsdpmark list [implementations|cases|checks|profiles|faults|fabrics|workloads] [options]\n"},
    {{"show", "one"}, "fsdpmark show: found run 'one', expected a number (fsdpmark show lists them)\n"},
    {{"show", "0"}, "fsdpmark show: found run '0', expected a number (fsdpmark show lists them)\n"},
    {{"show", "1", "--store", "/nonexistent/x.db"}, "/nonexistent/x.db"},
    {{"report", "1", "2"}, "fsdpmark report: found '2', expected: fsdpmark report [RUN] [options]\n"},
    {{"matrix", "x"}, "fsdpmark matrix: found 'x', expected: fsdpmark matrix [options]\n"},
    {{"matrix", "--run", "1,,2"}, "fsdpmark matrix: --run: found '1,,2', expected numbers of runs with commas between them\n"},
    {{"matrix", "--run", "0"}, "fsdpmark matrix: --run: found '0', expected numbers of runs with commas between them\n"},
    {{"matrix", "--store", "/nonexistent/x.db"}, "/nonexistent/x.db"},
    {{"doctor", "--jsn"}, "fsdpmark doctor: unknown option '--jsn', nearest is --json\n"},
    {{"selftest", "--in"}, "fsdpmark selftest: --in: found nothing, expected IMPL\n"},
};

static void bad_input(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        command_run(folder, bad[i].words, LIMIT_S, &result);
        if (result.status != 2 || strstr(result.err, bad[i].error) == NULL)
            fail_msg("%s %s: status %d, '%s', expected '%s'", bad[i].words[0], bad[i].words[1] ? bad[i].words[1] : "", result.status,
                     result.err, bad[i].error);
        // One line, and nothing on stdout.
        assert_ptr_equal(strchr(result.err, '\n'), result.err + strlen(result.err) - 1);
        assert_string_equal(result.out, "");
    }
}

// The program without its probes beside it.
static void missing_probes(void **state)
{
    (void)state;
    static const struct { const char *words[8], *error; } without[] = {
        {{"check", "-i", "null", "-p", "tiny", "--probes", "heap"}, "fsdpmark check: found no libfsdpmark-probe.so beside "},
        {{"check", "-i", "null", "-p", "traffic"}, "fsdpmark check: found no libfsdpmark-probe.so beside "}, // which asks for some
        {{"bench", "-i", "reference"}, "fsdpmark bench: found no libfsdpmark-probe.so beside "},
    };
    char program[4096], command[8400];
    const char *build = getenv("FSDPMARK_BUILD");
    char *before = build != NULL ? strdup(build) : NULL;
    assert_true(command_program(program));
    snprintf(command, sizeof command, "mkdir '%s/bare' && cp '%s' '%s/bare/fsdpmark'", folder, program, folder);
    assert_int_equal(system(command), 0);
    snprintf(program, sizeof program, "%s/bare", folder);
    setenv("FSDPMARK_BUILD", program, 1);
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        command_run(folder, without[i].words, LIMIT_S, &result);
        if (result.status != 2 || strncmp(result.err, without[i].error, strlen(without[i].error)) != 0 || strchr(result.err, '\n')[1] != 0)
            fail_msg("%s: status %d, '%s', expected '%s'", without[i].words[0], result.status, result.err, without[i].error);
        assert_string_equal(result.out, "");
    }
    before != NULL ? setenv("FSDPMARK_BUILD", before, 1) : unsetenv("FSDPMARK_BUILD");
    free(before);
}

// More than a table of names once had room for.
static void many_implementations(void **state)
{
    enum { MANY = 100 };
    (void)state;
    const char *words[2 * MANY + 2] = {"check"};
    for (int i = 0; i < MANY; i++) {
        words[1 + 2 * i] = "-i";
        words[2 + 2 * i] = "null";
    }
    command_run(folder, words, LIMIT_S, &result);
    assert_int_equal(result.status, 2);
    assert_string_equal(result.err, "fsdpmark check: implementation null: found twice, expected each once\n");
}

static void help(void **state)
{
    (void)state;
    static const char *const names[] = {"check", "list", "doctor", "selftest", "report", "show", "matrix"};
    char expected[64];
    const char *const top[] = {"--help", NULL}, *const none[] = {NULL}, *const version[] = {"--version", NULL};
    command_run(folder, top, LIMIT_S, &result);
    assert_int_equal(result.status, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_non_null(strstr(result.out, names[i]));
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const words[] = {names[i], "--help", NULL}, *const other[] = {"help", names[i], NULL};
        static struct command_result second;
        command_run(folder, words, LIMIT_S, &result);
        command_run(folder, other, LIMIT_S, &second);
        snprintf(expected, sizeof expected, "usage: fsdpmark %s ", names[i]);
        assert_int_equal(result.status, 0);
        assert_memory_equal(result.out, expected, strlen(expected));
        assert_string_equal(result.out, second.out);
    }
    command_run(folder, none, LIMIT_S, &result);
    assert_int_equal(result.status, 2);
    command_run(folder, version, LIMIT_S, &result);
    assert_int_equal(result.status, 0);
    assert_memory_equal(result.out, "fsdpmark ", 9);
}

static void lists(void **state)
{
    (void)state;
    static const char *const names[] = {"implementations", "cases", "checks", "profiles", "faults"};
    const char *const all[] = {"list", "--json", NULL};
    command_run(folder, all, LIMIT_S, &result);
    assert_int_equal(result.status, 0);
    json_t *root = json_loads(result.out, 0, NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *items = json_object_get(root, names[i]);
        const char *const one[] = {"list", names[i], NULL};
        assert_true(json_array_size(items) > 0);
        command_run(folder, one, LIMIT_S, &result);
        assert_int_equal(result.status, 0);
        assert_non_null(strstr(result.out, json_string_value(json_object_get(json_array_get(items, 0), "name"))));
    }
    json_decref(root);
}

static int lines_of(const char *const *words)
{
    int lines = 0;
    command_run(folder, words, LIMIT_S, &result);
    assert_int_equal(result.status, 0);
    for (const char *p = result.out; *p; p++)
        lines += *p == '\n';
    return lines;
}

// Of several patterns, by options or commas, any counts.
static void patterns(void **state)
{
    (void)state;
    int one = lines_of((const char *const[]){"expand", "-k", "exact-mlp.full.*.n2", NULL}), two = lines_of((const char *const[]){"expand", "-k", "exact-mlp.full.*.n3", NULL});
    assert_true(one > 0 && two > 0);
    assert_int_equal(lines_of((const char *const[]){"expand", "-k", "exact-mlp.full.*.n2", "-k", "exact-mlp.full.*.n3", NULL}), one + two);
    assert_int_equal(lines_of((const char *const[]){"expand", "-k", "exact-mlp.full.*.n2,exact-mlp.full.*.n3", NULL}), one + two);
}

static void doctor(void **state)
{
    (void)state;
    const char *const words[] = {"doctor", "--json", NULL};
    command_run(folder, words, 180, &result);
    assert_true(result.status == 0 || result.status == 1);
    json_t *root = json_loads(result.out, 0, NULL), *row;
    size_t i, required_and_missing = 0, implementations = 0, probes = 0;
    assert_true(json_array_size(root) >= 10);
    json_array_foreach(root, i, row) {
        bool has = json_is_true(json_object_get(row, "has"));
        assert_true(json_is_string(json_object_get(row, "found")));
        const char *name = json_string_value(json_object_get(row, "name"));
        probes += strncmp(name, "probe ", 6) == 0 && (has || strcmp(name, "probe papi") == 0);
        if (strcmp(name, "fabric tcp-loopback") == 0 && has)
            assert_non_null(strstr(json_string_value(json_object_get(row, "found")), "btl_tcp_if_include=lo; advise -f tcp-loopback measures whether others are better"));
        implementations += strcmp(name, "reference") == 0 || strcmp(name, "pytorch-fsdp2") == 0;
        // What is lacking has a reason and a remedy.
        assert_int_equal(!has, json_is_string(json_object_get(row, "remedy")) && json_is_string(json_object_get(row, "without")));
        required_and_missing += !has && json_is_true(json_object_get(row, "required"));
    }
    assert_int_equal(result.status, required_and_missing > 0);
    assert_int_equal(implementations, 2);
    assert_int_equal(probes, 7); // six need nothing that may be missing
    json_decref(root);
}

// The null implementation does not train: FAIL at the gate, exit status 1, the same run in every format.
static void check_and_reports(void **state)
{
    (void)state;
    const char *const words[] = {"check", "-i", "null", "--case", "cases.yaml", "--json", "-", "--junit", "j.xml", "--csv", "c.csv", NULL};
    command_run(folder, words, LIMIT_S, &result);
    json_t *root = json_loads(result.out, 0, NULL), *run = json_object_get(root, "run"), *environment = json_object_get(root, "environment");
    assert_non_null(root);
    assert_true(result.status == 1 || result.status == 3);
    assert_non_null(run);
    assert_non_null(strstr(result.err, "per judged case: "));
    assert_true(json_array_size(json_object_get(root, "results")) > 2);
    static const char *const facts[] = {"host", "kernel", "cpu", "cores", "memory_bytes", "compiler", "version", "commit", "seed", "libraries"};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        assert_non_null(json_object_get(environment, facts[i]));
    }
    json_decref(root);

    const char *const list[] = {"show", NULL}, *const show[] = {"show", "1", "--verbose", NULL}, *const tap[] = {"check", "-i", "null", "--case",
                               "cases.yaml", "--tap", NULL}, *const again[] = {"check", "--resume", "1", NULL};
    command_run(folder, list, LIMIT_S, &result);
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.out, "fsdpmark check -i null --case cases.yaml"));
    command_run(folder, show, LIMIT_S, &result);
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.out, "t.none.n2"));
    command_run(folder, tap, LIMIT_S, &result);
    assert_memory_equal(result.out, "TAP version", 11);
    // Nothing is left to do: the same cases, the same status, no new start.
    command_run(folder, again, LIMIT_S, &result);
    assert_true(result.status == 1 || result.status == 3);
    assert_non_null(strstr(result.out, "run 1: 0 cases in "));
}

static void write_file(const char *name, const char *text)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

#define NULL_FAILS "implementation: \"n*l\", check: [loss-per-step, mean-witness, parameters-moved], page: page.md"
static const struct { const char *waivers; int status; const char *says; } waived[] = {
    {"[]", 1, "\n0 PASS, 2 FAIL, 0 SKIP, 0 BROKEN "},
    {"[{" NULL_FAILS ", versions: any, cases: \"*\", reason: it trains nothing, expires: 9999-12-31}]", 0,
     "waived: 3 checks: it trains nothing (page.md), until 9999-12-31\n"},
    {"[{" NULL_FAILS ", versions: any, cases: \"*\", reason: it trains nothing, expires: 9999-12-31}]", 0, "\n0 PASS, 2 FAIL (waived), 0 SKIP, 0 BROKEN "},
    {"[{" NULL_FAILS ", versions: any, cases: gate.*, reason: it trains nothing, expires: 9999-12-31}]", 1, "\n0 PASS, 2 FAIL (1 waived), 0 SKIP, 0 BROKEN "},
    {"[{" NULL_FAILS ", versions: fsdpmark-null <0.1, cases: \"*\", reason: it trains nothing, expires: 9999-12-31}]", 1, "\n0 PASS, 2 FAIL, 0 SKIP, 0 BROKEN "},
    {"[{" NULL_FAILS ", versions: \"fsdpmark-null >=0.1,<99\", cases: \"*\", reason: it trains nothing, expires: 9999-12-31}]", 0, " 2 FAIL (waived)"},
    {"[{" NULL_FAILS ", versions: any, cases: \"*\", reason: it trains nothing, expires: 2020-02-29}]", 1, "w.yaml:1: expired on 2020-02-29: look again at page.md"},
    {"[{implementation: null, check: rank-count, page: page.md, versions: any, cases: t.*, reason: no, expires: 2020-02-29}]", 1, "w.yaml:1: expired on 2020-02-29"},
    {"[{" NULL_FAILS ", versions: any, cases: \"*\", reason: it trains nothing, expires: 9999-12-31},\n {implementation: \"null\", check: answer, "
     "page: page.md, versions: any, cases: t.*, reason: it crashes, expires: 9999-12-31}]", 1,
     "w.yaml:2: check answer of t.none.n2 is PASS, the waiver says that it FAILs: narrow or remove it\n"},
};

// Every rule on the null implementation, whose checks all FAIL; resuming keeps the waivers.
static void waivers(void **state)
{
    (void)state;
    write_file("page.md", "# Cause\n");
    write_file("null.yaml", "name: t\ntitle: small\nlayer: witness\nmodel: {kind: witness, units: [{name: u, parameters: [{name: w, shape: [4]}]}]}\n"
               "data: {recipe: values, values: [1, 2, 3, 4, 5, 6]}\nmatrix: {ranks: [2], strategy: [none]}\n");
    const char *const words[] = {"check", "-i", "null", "--case", "null.yaml", "--no-gate", "--waivers", "w.yaml", "--store", "w.db", NULL};
    for (size_t i = 0; i < sizeof waived / sizeof *waived; i++) {
        char text[2000], run[16];
        snprintf(text, sizeof text, "waivers: %s\n", waived[i].waivers);
        write_file("w.yaml", text);
        setenv("COLUMNS", "300", 1);
        command_run(folder, words, LIMIT_S, &result);
        if (result.status != waived[i].status || strstr(result.out, waived[i].says) == NULL)
            fail_msg("%s: status %d, '%s', '%s'", waived[i].waivers, result.status, result.out, result.err);
        snprintf(run, sizeof run, "%zu", i + 1);
        const char *const again[] = {"check", "--resume", run, "--store", "w.db", NULL}, *const show[] = {"show", run, "--store", "w.db", NULL};
        command_run(folder, again, LIMIT_S, &result);
        if (result.status != waived[i].status || strstr(result.out, waived[i].says) == NULL)
            fail_msg("resumed %s: status %d, '%s', '%s'", waived[i].waivers, result.status, result.out, result.err);
        command_run(folder, show, LIMIT_S, &result);
        assert_non_null(strstr(result.out, waived[i].says));
    }
    // Without them every FAIL counts; with the suite's, which say nothing of null, too.
    const char *const none[] = {"check", "-i", "null", "--case", "null.yaml", "--no-gate", "--no-waivers", NULL}, *const suite[] = {"check", "-i", "null", "--case",
                               "null.yaml", "--no-gate", NULL};
    command_run(folder, none, LIMIT_S, &result);
    assert_int_equal(result.status, 1);
    command_run(folder, suite, LIMIT_S, &result);
    assert_int_equal(result.status, 1);
    // What is no check's FAIL is waived under the name that its result has.
    write_file("w.yaml", "waivers: [{implementation: local, check: answer, page: page.md, versions: any, cases: \"*\", reason: it ends at once, expires: 9999-12-31}]\n");
    const char *const crash[] = {"check", "-i", "./local.yaml", "--case", "null.yaml", "--no-gate", "--waivers", "w.yaml", NULL};
    command_run(folder, crash, LIMIT_S, &result);
    if (result.status != 0 || strstr(result.out, "waived: answer: it ends at once (page.md)") == NULL)
        fail_msg("status %d, '%s' '%s'", result.status, result.out, result.err);
    unsetenv("COLUMNS");
}

// Those that run, their variants, a SKIP for what does not run here, nothing of what is no subject; and the same when resumed.
static void all_implementations(void **state)
{
    (void)state;
    static const struct { const char *name, *manifest; } suite[] = {
        {"away", "title: t\ncommand: [a]\ninstalled: [sh, -c, \"echo no such chip; exit 1\"]\nremedy: buy one\nnote: on paper\n"},
        {"here", "title: t\ncommand: [\"${build}/fsdpmark-null\"]\nnote: for a test\nvariants: {fast: {note: faster}}\n"},
        {"mpi", "title: t\ncommand: [a]\nlaunchers: [mpirun]\n"},
        {"tool", "title: t\ncommand: [a]\nsubject: false\n"}};
    char path[4200];
    for (size_t i = 0; i < sizeof suite / sizeof *suite; i++) {
        snprintf(path, sizeof path, "mkdir -p '%s/s/implementations/%s'", folder, suite[i].name);
        assert_int_equal(system(path), 0);
        snprintf(path, sizeof path, "s/implementations/%s/implementation.yaml", suite[i].name);
        write_file(path, suite[i].manifest);
    }
    write_file("null.yaml", "name: t\ntitle: small\nlayer: witness\nmodel: {kind: witness, units: [{name: u, parameters: [{name: w, shape: [4]}]}]}\n"
               "data: {recipe: values, values: [1, 2, 3, 4, 5, 6]}\nmatrix: {ranks: [2], strategy: [none]}\n");
    const char *const first[] = {"check", "--all-implementations", "--suite", "s", "--case", "null.yaml", "--launcher", "local", "--store", "a.db", "--json", "a.json",
                                 "--junit", "a.xml", NULL}, *const again[] = {"check", "--resume", "1", "--store", "a.db", "--json", "a.json", "--junit", "a.xml", NULL};
    for (int resumed = 0; resumed < 2; resumed++) {
        command_run(folder, resumed ? again : first, LIMIT_S, &result);
        if (result.status != 1)
            fail_msg("status %d, '%s'", result.status, result.err);
        assert_non_null(strstr(result.out, "\nseconds: away ") == NULL ? strstr(result.out, "\nseconds: here ") : NULL);
        assert_non_null(strstr(result.out, "implementation away cannot run here: no such chip; remedy: buy one"));
        assert_null(strstr(result.out, "tool"));
        snprintf(path, sizeof path, "%s/a.json", folder);
        json_t *root = json_load_file(path, 0, NULL), *row;
        size_t i, seen[4] = {0};
        json_array_foreach(json_object_get(root, "results"), i, row) {
            const char *name = json_string_value(json_object_get(row, "implementation")), *verdict = json_string_value(json_object_get(row, "verdict"));
            const char *message = json_string_value(json_object_get(row, "message")), *note = json_string_value(json_object_get(row, "note"));
            bool absent = strcmp(json_string_value(json_object_get(row, "case")), "(not installed)") == 0;
            seen[0] += strcmp(name, "away") == 0 && absent && strcmp(verdict, "SKIP") == 0 && strcmp(note, "on paper") == 0;
            seen[1] += strcmp(name, "here") == 0 && !absent && strcmp(note, "for a test") == 0;
            seen[2] += strcmp(name, "here:fast") == 0 && !absent && strcmp(note, "faster") == 0;
            seen[3] += strcmp(name, "mpi") == 0 && absent && strcmp(message, "--launcher: found 'local', which the manifest of mpi does not name") == 0;
        }
        assert_true(seen[0] == 1 && seen[1] > 1 && seen[2] == seen[1] && seen[3] == 1 && seen[0] + seen[1] + seen[2] + seen[3] == json_array_size(json_object_get(root, "results")));
        json_decref(root);
    }
    snprintf(path, sizeof path, "grep -q 'skipped message=\"implementation away cannot run here' '%s/a.xml'", folder);
    assert_int_equal(system(path), 0);
}

// The matrix of a run of the null implementation, whose every judged case FAILs, in each form.
static void matrix(void **state)
{
    (void)state;
    const char *const make[] = {"check", "-i", "null", "--case", "cases.yaml", "--no-gate", "--store", "m.db", NULL};
    command_run(folder, make, LIMIT_S, &result);
    static const struct { const char *words[12]; int status; const char *out, *err; } table[] = {
        {{"matrix", "--store", "m.db"}, 0, "fsdpmark check -i null --case ", ""},
        {{"matrix", "--store", "m.db", "--json"}, 0, "\"capability\": \"clip-l2\"", ""},
        {{"matrix", "--store", "m.db", "--run", "1", "-i", "null", "--html", "m.html", "--markdown", "m.md"}, 0, "", ""},
        {{"matrix", "--store", "m.db", "--run", "1", "-i", "null", "--markdown", "m.md"}, 0, "", ""},
        {{"matrix", "--store", "m.db", "--markdown", "cases.yaml"}, 2, "", "fsdpmark matrix: cases.yaml: found no lines <!-- fsdpmark matrix: begin ... and "},
        {{"matrix", "--store", "m.db", "--html", "/nonexistent/m.html"}, 2, "", "fsdpmark matrix: /nonexistent/m.html: cannot be written: No such file or directory\n"},
        {{"matrix", "--store", "m.db", "--run", "7"}, 2, "", "m.db: no run 7; it holds, newest first: 1\n"},
        {{"matrix", "--store", "m.db", "-i", "nul"}, 2, "", "fsdpmark matrix: implementation nul: found no verdict on it in the store\n"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        command_run(folder, table[i].words, LIMIT_S, &result);
        if (result.status != table[i].status || strstr(result.out, table[i].out) == NULL || strstr(result.err, table[i].err) == NULL)
            fail_msg("row %zu: status %d, '%s' '%s'", i, result.status, result.out, result.err);
        if (table[i].status != 0)
            assert_ptr_equal(strchr(result.err, '\n'), result.err + strlen(result.err) - 1);
    }
}

// What cannot be written is told, by the status too; a reader that closes the pipe early is no error.
static void lost_output(void **state)
{
    (void)state;
    char program[4096], line[9000];
    command_program(program);
    snprintf(line, sizeof line, "'%s' list checks >/dev/full 2>'%s/full'; test $? = 2 && grep -q 'standard output: cannot be written: No space' '%s/full'",
             program, folder, folder);
    assert_int_equal(system(line), 0);
    snprintf(line, sizeof line, "{ '%s' list checks; echo $? >'%s/status'; } | true; grep -qx 0 '%s/status'", program, folder, folder);
    assert_int_equal(system(line), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_input), cmocka_unit_test(missing_probes), cmocka_unit_test(many_implementations), cmocka_unit_test(help), cmocka_unit_test(lists), cmocka_unit_test(patterns), cmocka_unit_test(doctor),
        cmocka_unit_test(check_and_reports), cmocka_unit_test(waivers), cmocka_unit_test(all_implementations), cmocka_unit_test(matrix), cmocka_unit_test(lost_output),
    };
    alarm(500);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
