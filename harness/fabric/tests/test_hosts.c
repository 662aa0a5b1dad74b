// The fabric hosts: machines of a host file, reached by a launch agent. The machines are the hosts of a virtual place, entered as ssh would,
// and the command runs on the first of them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "harness/cli/tests/command.h"
#include "harness/fabric/fabric.h"
#include "harness/launch/keeper.h"
#include "harness/run/scratch.h"

enum { HOSTS = 3 };
static char folder[] = "/tmp/fsdpmark-hosts-XXXXXX", program[4096];
static struct fabric fabric;
static struct fabric_place *machines;
static char *reason;
static struct command_result result;

static int begin(void **state)
{
    (void)state;
    struct error error = {0};
    if (!command_folder(folder) || !command_program(program) || !fabric_read("virtual-200m", getenv("FSDPMARK_SUITE"), &fabric, &error))
        return -1;
    reason = fabric_unavailable(&fabric);
    if (reason == NULL && !fabric_open(&fabric, HOSTS, program, &machines, &error))
        return fprintf(stderr, "# %s\n", error.text), -1;
    return 0;
}

static int end(void **state)
{
    (void)state;
    fabric_close(machines);
    fabric_free(&fabric);
    free(reason);
    scratch_remove(folder);
    return 0;
}

// What mpirun is given as launch agent on the place itself; owned by the caller.
static char *place_agent(void)
{
    char **options = fabric_place_mpirun(machines, HOSTS), *agent = NULL;
    for (int i = 0; options[i] != NULL && options[i + 1] != NULL; i++)
        if (strcmp(options[i], "plm_rsh_agent") == 0)
            agent = strdup(options[i + 1]);
    environment_free(options);
    assert_non_null(agent);
    return agent;
}

// An agent that notes whom it was asked to reach. mpirun splits its command at blanks, so it is a script.
static void write_agent(char path[128])
{
    char text[1024], *agent = place_agent();
    snprintf(path, 128, "%s/agent", folder);
    snprintf(text, sizeof text, "#!/bin/sh\necho \"$1\" >>%s/reached\nexec %s \"$@\"\n", folder, agent);
    command_write(folder, "agent", text);
    assert_int_equal(chmod(path, 0700), 0);
    free(agent);
}

static void write_hosts(int slots)
{
    char text[512];
    int used = snprintf(text, sizeof text, "# machines\n\n");
    for (int h = 0; h < HOSTS; h++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s  slots=%d # host %d\n", fabric_place_address(machines, h), slots, h);
    command_write(folder, "machines", text);
}

// Bytes that have come in at eth0 of a host: the second column of /proc/net/dev is the first number behind the colon.
static double received(int host)
{
    char text[4096];
    struct error error = {0};
    int status = 1;
    const char *const dev[] = {"cat", "/proc/net/dev", NULL};
    char **argv = argv_append(argv_append(NULL, fabric_place_enter(machines, host)), dev);
    assert_true(launch_capture((const char *const *)argv, NULL, "/", 60, text, sizeof text, &status, &error));
    environment_free(argv);
    char *at = strstr(text, "eth0:");
    assert_non_null(at);
    return strtod(at + 5, NULL);
}

// fsdpmark on the first machine.
static int run_there(const char *options)
{
    const char *const *enter = fabric_place_enter(machines, 0);
    char line[9000], *at = line;
    at += sprintf(at, "cd %s && timeout 280", folder);
    for (int i = 0; enter[i] != NULL; i++)
        at += sprintf(at, " '%s'", enter[i]);
    sprintf(at, " '%s' %s 2>&1", program, options);
    FILE *pipe = popen(line, "r");
    result.out[fread(result.out, 1, COMMAND_OUTPUT - 1, pipe)] = 0;
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_over_machines(void **state)
{
    (void)state;
    if (reason != NULL) {
        print_message("# SKIP %s\n", reason);
        skip();
    }
    char agent[128], options[400], reached[COMMAND_OUTPUT], path[160];
    double before[HOSTS];
    write_agent(agent);
    write_hosts(2);
    for (int h = 0; h < HOSTS; h++)
        before[h] = received(h);
    snprintf(options, sizeof options, "check -k 'exact-mlp.full.param.n*' -p tiny -f hosts --hostfile machines --agent %s --json -", agent);
    int status = run_there(options);
    if (status != 0)
        fail_msg("exit status %d: %s", status, result.out);
    assert_non_null(strstr(result.out, "0 FAIL, 0 SKIP, 0 BROKEN"));
    assert_null(strstr(result.out, "\n0 PASS"));
    // Of 2 ranks on 3 machines rank 0 is on the first, where mpirun runs, and rank 1 on the second.
    snprintf(path, sizeof path, "%s/reached", folder);
    command_slurp(path, reached);
    assert_non_null(strstr(reached, fabric_place_address(machines, 1)));
    assert_null(strstr(reached, fabric_place_address(machines, 0)));
    assert_null(strstr(reached, fabric_place_address(machines, 2)));
    assert_true(received(1) - before[1] > 2000);
    assert_true(received(2) - before[2] < 2000);
    assert_non_null(strstr(result.out, "\"nodes\""));
    assert_non_null(strstr(result.out, fabric_place_address(machines, 2)));
}

static void more_ranks_than_slots(void **state)
{
    (void)state;
    if (reason != NULL)
        skip();
    write_hosts(1);
    int status = run_there("check -k 'exact-mlp.full.*.n4' -p smoke -f hosts --hostfile machines --no-gate --json -");
    assert_int_equal(status, 0);
    assert_non_null(strstr(result.out, "1 PASS, 0 FAIL, 2 SKIP, 0 BROKEN")); // the gate of one rank fits
    assert_non_null(strstr(result.out, "4 ranks on 3 machines are 2 on "));
    assert_non_null(strstr(result.out, "has slots=1"));
}

static void bad_host_files(void **state)
{
    (void)state;
    static const struct { const char *text, *expected; } bad[] = {
        {"", "machines:1: found no machine in 0 lines, expected 'NAME slots=N' in each\n"},
        {"# none\n\n", "machines:1: found no machine in 2 lines, expected 'NAME slots=N' in each\n"},
        {"localhost slots=1\n\nno-such-host.invalid slots=2\n", "machines:3: found host 'no-such-host.invalid', which cannot be looked up: "},
        {"localhost\n", "machines:1: found no slots of 'localhost', expected 'localhost slots=N'\n"},
        {"# one\nlocalhost slots=0\n", "machines:2: found 'slots=0', expected slots=N with N from 1 to 4096\n"},
        {"localhost slots=two\n", "machines:1: found 'slots=two', expected slots=N with N from 1 to 4096\n"},
        {"localhost cpus=2\n", "machines:1: found 'cpus=2', expected slots=N with N from 1 to 4096\n"},
        {"localhost slots=1 max_slots=2\n", "machines:1: found 'max_slots=2', expected nothing after slots=1\n"},
        {"localhost slots=1\nlocalhost slots=1\n", "machines:2: found 'localhost' again, expected each machine once\n"},
    };
    const char *words[] = {"check", "-p", "tiny", "-f", "hosts", "--hostfile", "machines", NULL};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        command_write(folder, "machines", bad[i].text);
        command_run(folder, words, 60, &result);
        char *at = strstr(result.err, bad[i].expected);
        if (result.status != 2 || at == NULL || strchr(result.err, '\n')[1] != 0)
            fail_msg("'%s': status %d, '%s'", bad[i].text, result.status, result.err);
    }
    words[6] = "nowhere";
    command_run(folder, words, 60, &result);
    assert_int_equal(result.status, 2);
    assert_non_null(strstr(result.err, "nowhere:1: cannot be read: No such file or directory\n"));
    words[4] = "shm";
    command_run(folder, words, 60, &result);
    assert_int_equal(result.status, 2);
    assert_non_null(strstr(result.err, "--hostfile: found with fabric shm, expected one of the kind hosts\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_over_machines),
        cmocka_unit_test(more_ranks_than_slots),
        cmocka_unit_test(bad_host_files),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
