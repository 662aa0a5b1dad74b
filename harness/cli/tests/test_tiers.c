// Emulated clusters that are not alike everywhere, for real: net names the slow host and the two tiers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/cli/tests/command.h"
#include "harness/fabric/fabric.h"
#include "harness/run/scratch.h"

static const double LIMIT_S = 250;
static struct command_result result;
static char folder[] = "/tmp/fsdpmark-tiers-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return !command_folder(folder);
}
static int remove_folder(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

static void skip_without(const char *name)
{
    struct fabric f;
    struct error error = {0};
    assert_true(fabric_read(name, getenv("FSDPMARK_SUITE"), &f, &error));
    char *reason = fabric_unavailable(&f);
    fabric_free(&f);
    if (reason == NULL)
        return;
    print_message("SKIP: %s\n", reason);
    free(reason);
    skip();
}

static void net_names(const char *fabric, const char *expected)
{
    const char *const words[] = {"net", "-f", fabric, "-n", "4", "-m", "links", "--sizes", "64K", "-t", "20", "--starts", "1", NULL};
    skip_without(fabric);
    command_run(folder, words, LIMIT_S, &result);
    if (result.status != 0 || strstr(result.out, expected) == NULL)
        fail_msg("status %d; '%s' stands not in: %s%s", result.status, expected, result.out, result.err);
}

static void a_slow_host_is_named(void **state)
{
    (void)state;
    net_names("virtual-slow-host", "rank 0 (host 0) is slow");
}

static void two_tiers_are_named(void **state)
{
    (void)state;
    net_names("virtual-two-tier", "the ways between ranks 1 to 2, 3 to 0 take up to");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_slow_host_is_named), cmocka_unit_test(two_tiers_are_named)};
    return cmocka_run_group_tests_name("hosts and tiers that differ", tests, make_folder, remove_folder);
}
