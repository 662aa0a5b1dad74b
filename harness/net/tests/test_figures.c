// The figure of a measured interconnect: which rows it draws, and with what ends of the interval.
#include "harness/net/output.h"

#include <math.h>

#include "harness/net/plan.h"
#include "harness/protocol/tests/temporary.h"
#include "harness/store/tests/sample.h"

static struct net_row row(enum net_measure m, enum net_op op, int64_t bytes, double seconds)
{
    struct net_row r = {.point = {.measure = net_measure_names[m], .label = "", .call_count = 1, .calls = {{op, NET_WORLD, DTYPE_F32, bytes / 4, 0}}}, .ranks = 4, .hosts = 4,
                        .bytes = bytes, .bus_bytes = 0.75 * (double)bytes, .line_rate = 12.5e6, .seconds = {seconds, 0.9 * seconds, 1.25 * seconds, 0.96, 30}};
    r.busbw = r.bus_bytes / seconds;
    return r;
}

static void sizes_of_the_sweep_are_drawn(void **state)
{
    (void)state;
    struct net_row items[] = {row(NET_SWEEP, NET_REDUCE_SCATTER, 1 << 20, 0.1), row(NET_SWEEP, NET_ALL_GATHER, 1 << 20, 0.1), row(NET_SWEEP, NET_ALL_GATHER, 4096, 1e-3),
                              row(NET_FORMS, NET_ALL_REDUCE, 4096, 1e-3), row(NET_TOGETHER, NET_ALL_GATHER, 4096, 1e-3), row(NET_SWEEP, NET_BROADCAST, 64, 1)};
    items[5].seconds.count = 0; // was not measured
    struct net_rows rows = {.count = 6, .items = items, .fabric = "virtual-100m"};
    json_t *environment = json_pack("{s:s, s:{s:s}}", "cpu", "Xeon", "fabric", "title", "Hosts of 100 Mbit/s");
    struct stored_run run = {.started = "2026-11-30T00:00:00Z", .environment = environment};
    char folder[] = "/tmp/fsdpmark-figures-XXXXXX", path[64], text[4096] = "", why[256], command[80];
    struct error error = {0};
    assert_non_null(temporary_make(folder));
    if (!net_figures(&rows, &run, folder, why, &error))
        fail_msg("%s", error.text);
    assert_true(why[0] == 0 || strcmp(why, "gnuplot is not installed") == 0);
    snprintf(path, sizeof path, "%s/busbw.dat", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    // by name, then by size; bytes, busbw, the slow end, the fast end
    assert_string_equal(text, "\"all-gather\"\n4096\t3072000\t2457600\t3413333.33\n1048576\t7864320\t6291456\t8738133.33\n\n\n\"reduce-scatter\"\n1048576\t7864320\t6291456\t8738133.33\n");
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
    json_decref(environment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_of_the_sweep_are_drawn)};
    return cmocka_run_group_tests_name("figures of an interconnect", tests, NULL, NULL);
}
