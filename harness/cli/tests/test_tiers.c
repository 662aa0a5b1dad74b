// Emulated clusters that are not alike everywhere, for real: net names the slow host and the two tiers, bench finds that hybrid sharding wins between slow groups.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "harness/cli/tests/command.h"
#include "harness/fabric/fabric.h"
#include "harness/run/scratch.h"

static const double LIMIT_S = 250;
static struct command_result result;
static char folder[] = "/tmp/fsdpmark-tiers-XXXXXX";
// A hundred thousand parameters: a step between groups of 50 Mbit/s takes a tenth of a second, in which computing has no part.
static const char workload[] = "name: tiers\ntitle: t\nlayer: calibrated\nmodel: {kind: mlp, sizes: [64, 512, 128, 64]}\nglobal_rows: 8\nsteps: 6\n"
                               "optimizer: {kind: sgd, lr: 0.01}\nprogram:\n  - init\n  - steps 0 4\n  - observe s4 param\n  - train 5\n"
                               "matrix:\n  ranks: [4]\n  strategy: [none, full, hybrid]\n";

static int make_folder(void **state)
{
    (void)state;
    bool fine = command_folder(folder);
    if (fine)
        command_write(folder, "tiers.yaml", workload);
    return !fine;
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

struct range { double low, high; };
static struct range step_of(json_t *rows, const char *strategy)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
        if (strncmp(json_string_value(json_object_get(row, "strategy")), strategy, strlen(strategy)) == 0) {
            json_t *step = json_object_get(row, "step_s");
            return (struct range){json_number_value(json_object_get(step, "low")), json_number_value(json_object_get(step, "high"))};
        }
    fail_msg("no row of %s", strategy);
    return (struct range){0, 0};
}

static void hybrid_wins_between_slow_groups(void **state)
{
    (void)state;
    static const char *const words[] = {"bench", "-w", "tiers.yaml", "-s", "none", "-s", "full", "-s", "hybrid", "-n", "4", "-f", "virtual-two-tier", "--no-probes", "--rounds", "4",
                                        "--time", "200", "--json", "bench.json", NULL};
    char path[4200];
    skip_without("virtual-two-tier");
    command_run(folder, words, LIMIT_S, &result);
    if (result.status != 0)
        fail_msg("status %d: %s%s", result.status, result.out, result.err);
    snprintf(path, sizeof path, "%s/bench.json", folder);
    json_t *all = json_load_file(path, 0, NULL), *rows = json_object_get(all, "rows");
    struct range none = step_of(rows, "none"), full = step_of(rows, "full"), hybrid = step_of(rows, "hybrid");
    print_message("none from %.0f ms, full from %.0f ms, hybrid to %.0f ms\n", 1e3 * none.low, 1e3 * full.low, 1e3 * hybrid.high);
    assert_true(hybrid.high > 0 && hybrid.high < none.low && hybrid.high < full.low);
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_slow_host_is_named), cmocka_unit_test(two_tiers_are_named), cmocka_unit_test(hybrid_wins_between_slow_groups)};
    return cmocka_run_group_tests_name("hosts and tiers that differ", tests, make_folder, remove_folder);
}
