// fsdpmark fabric: what cannot be had is a SKIP, options that a fabric has not are told, and how it ended stands in its status.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "harness/cli/tests/command.h"
#include "harness/fabric/fabric.h"
#include "harness/run/scratch.h"

static const double LIMIT_S = 30;
static struct command_result result;
static char folder[] = "/tmp/fsdpmark.test.XXXXXX";

static int set_up(void **state)
{
    (void)state;
    return !command_folder(folder);
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

static void what_cannot_be_had_is_a_skip(void **state)
{
    (void)state;
    const char *const fabric[] = {"fabric", "hosts", NULL}, *const net[] = {"net", "-f", "hosts", NULL};
    for (int i = 0; i < 2; i++) {
        command_run(folder, i == 0 ? fabric : net, LIMIT_S, &result);
        assert_int_equal(result.status, 3);
        assert_string_equal(result.out, "SKIP: fabric hosts cannot be had here: no host file is named; remedy: --hostfile FILE\n");
        assert_string_equal(result.err, "");
    }
}

static void bad_input_is_named(void **state)
{
    (void)state;
    static const struct { const char *words[6], *said; } rows[] = {
        {{"fabric", "shm", "--hosts", "3"}, "fsdpmark fabric: --hosts: found with fabric shm, expected one of the kind virtual\n"},
        {{"fabric", "virtual-100m", "--hosts", "0"}, "fsdpmark fabric: --hosts: found 0, expected 1 to 64\n"},
        {{"fabric", "virtual-100m", "--hosts", "1000"}, "fsdpmark fabric: --hosts: found 1000, expected 1 to 64\n"},
        {{"fabric", "virtual-100m", "--hostfile", "x"}, "fsdpmark fabric: --hostfile: found with fabric virtual-100m, expected one of the kind hosts\n"},
        {{"fabric", "hosts", "--agent", " "}, "fsdpmark fabric: --agent: found ' ', expected a command\n"},
        {{"fabric", "--hosts", "3"}, "fsdpmark fabric: --hosts: found without FABRIC, expected one\n"},
        {{"fabric", ""}, "fsdpmark fabric: found no fabric '' in "},
        {{"fabric", "a", "b"}, "fsdpmark fabric: found 'b', expected: fsdpmark fabric [FABRIC] [options]\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        command_run(folder, rows[i].words, LIMIT_S, &result);
        if (result.status != 2 || strncmp(result.err, rows[i].said, strlen(rows[i].said)) != 0 || strchr(result.err, '\n') != result.err + strlen(result.err) - 1)
            fail_msg("expected \"%s\", found \"%s\", status %d", rows[i].said, result.err, result.status);
    }
}

// Holds a fabric up until it has told of its hosts, then sends the signal; the status.
static int ended_by(int number)
{
    char program[4096], text[4000] = "";
    int ends[2], status = 0;
    size_t used = 0;
    command_program(program);
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execl(program, program, "fabric", "virtual-100m", "--hosts", "2", (char *)NULL);
        _exit(99);
    }
    close(ends[1]);
    for (ssize_t n = 1; n > 0 && strstr(text, "mpirun, on host 0:") == NULL && used < sizeof text - 1; used += n > 0 ? (size_t)n : 0)
        n = read(ends[0], text + used, sizeof text - 1 - used);
    kill(pid, number);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(ends[0]);
    assert_non_null(strstr(text, "host 1: "));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void its_end_stands_in_the_status(void **state)
{
    (void)state;
    struct fabric f;
    struct error error = {0};
    assert_true(fabric_read("virtual-100m", getenv("FSDPMARK_SUITE"), &f, &error));
    char *reason = fabric_unavailable(&f);
    fabric_free(&f);
    if (reason != NULL) {
        print_message("SKIP: %s\n", reason);
        free(reason);
        skip();
    }
    assert_int_equal(ended_by(SIGINT), 0); // Ctrl-C is how it is meant to end
    assert_int_equal(ended_by(SIGTERM), 128 + SIGTERM);
    assert_int_equal(ended_by(SIGHUP), 128 + SIGHUP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_cannot_be_had_is_a_skip), cmocka_unit_test(bad_input_is_named), cmocka_unit_test(its_end_stands_in_the_status)};
    return cmocka_run_group_tests_name("fsdpmark fabric", tests, set_up, tear_down);
}
