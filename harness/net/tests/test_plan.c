// Sizes, measures, points: what is asked for becomes what the worker is told, and nothing else.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/net/plan.h"
#include "harness/protocol/tests/temporary.h"

static void sizes_as_people_write_them(void **state)
{
    (void)state;
    static const struct { const char *text; int count; int64_t first, second, last; } good[] = {
        {"64K", 1, 65536, 0, 65536}, {"8..64", 4, 8, 16, 64}, {"1K..1M*4", 6, 1024, 4096, 1 << 20}, {"3,1,2,3", 3, 1, 2, 3},
        {"1m,8..16", 3, 8, 16, 1 << 20}, {"4G", 1, INT64_C(1) << 32, 0, INT64_C(1) << 32}, {"10..25", 2, 10, 20, 20},
    };
    static const char *const bad[] = {"", "0", "-8", "+8", "8..", "8..4", "8..64*1", "8;9", "1,", ",1", "1K2", "8G", "1T", "1..4G*2,5..4G*2,7..4G*2,9..4G*2,11..4G*2", "99999999999999999999"};
    struct sizes s;
    struct error error;
    char text[32];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        error.text[0] = 0;
        if (!sizes_parse(good[i].text, &s, &error))
            fail_msg("%s: %s", good[i].text, error.text);
        assert_int_equal(s.count, good[i].count);
        assert_int_equal(s.bytes[0], good[i].first);
        assert_true(s.count < 2 || s.bytes[1] == good[i].second);
        assert_int_equal(s.bytes[s.count - 1], good[i].last);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        error.text[0] = 0;
        if (sizes_parse(bad[i], &s, &error))
            fail_msg("'%s' was taken", bad[i]);
        assert_non_null(strstr(error.text, "expected sizes of 1 byte to 4G"));
    }
    assert_string_equal(sizes_text(8, text), "8");
    assert_string_equal(sizes_text(4096, text), "4K");
    assert_string_equal(sizes_text(3 << 19, text), "1.5M");
    assert_string_equal(sizes_text(1000, text), "1000");
    assert_string_equal(sizes_text(131064, text), "131064");
}

static void default_sizes_suit_the_line(void **state)
{
    (void)state;
    struct sizes fast = net_default_sizes(0), slow = net_default_sizes(12.5e6), few = net_default_few(&fast, 0), slow_few = net_default_few(&slow, 12.5e6);
    assert_int_equal(fast.bytes[0], 8);
    assert_int_equal(fast.bytes[fast.count - 1], 16 << 20);
    assert_int_equal(slow.bytes[slow.count - 1], 16 << 20); // 1.34 s at 100 Mbit/s
    struct sizes slower = net_default_sizes(6.25e6);
    assert_int_equal(slower.bytes[slower.count - 1], 8 << 20);
    assert_int_equal(few.count, 3);
    assert_int_equal(slow_few.count, 1);
    assert_int_equal(slow_few.bytes[0], 64 << 10); // 1 MiB would take more than a twentieth of a second
    struct sizes small = {1, {16}}, least = net_default_few(&small, 0);
    assert_int_equal(least.bytes[0], 16);
}

static void shards_are_dealt_as_chunks(void **state)
{
    (void)state;
    static const struct { int64_t count; int n; enum net_shape shape; int counts[4]; } rows[] = {
        {8, 4, NET_EVEN, {2, 2, 2, 2}}, {9, 2, NET_UNEVEN, {6, 3}}, {7, 4, NET_UNEVEN, {2, 2, 2, 1}}, {3, 4, NET_EMPTY, {1, 1, 1, 0}}, {5, 2, NET_EMPTY, {5, 0}},
        {10, 4, NET_EMPTY, {3, 3, 3, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int counts[4], starts[4], sum = 0;
        net_shards(rows[i].count, rows[i].n, rows[i].shape, counts, starts);
        for (int r = 0; r < rows[i].n; r++) {
            assert_int_equal(counts[r], rows[i].counts[r]);
            assert_int_equal(starts[r], sum);
            sum += counts[r];
        }
        assert_int_equal(net_dealt(rows[i].count, rows[i].n, rows[i].shape), sum);
    }
}

static void factors_are_those_of_nccl_tests(void **state)
{
    (void)state;
    struct net_call c = {.op = NET_ALL_GATHER};
    assert_true(net_bus_factor(&c, 4, NET_EVEN) == 0.75);
    assert_true(net_bus_factor(&c, 2, NET_EMPTY) == 1); // the rank without a shard takes all
    c.op = NET_REDUCE_SCATTER;
    assert_true(net_bus_factor(&c, 2, NET_EVEN) == 0.5);
    c.op = NET_ALL_REDUCE;
    assert_true(net_bus_factor(&c, 4, NET_EVEN) == 1.5);
    c.op = NET_BROADCAST;
    assert_true(net_bus_factor(&c, 4, NET_EVEN) == 1);
}

static void measures_by_name(void **state)
{
    (void)state;
    unsigned bits;
    struct error error = {0};
    assert_true(net_measures_parse("sweep,tiers", &bits, &error));
    assert_int_equal(bits, 1u << NET_SWEEP | 1u << NET_TIERS);
    assert_true(net_measures_parse("all", &bits, &error));
    assert_int_equal(bits, (1u << NET_MEASURES) - 1);
    assert_false(net_measures_parse("sweep,swep", &bits, &error));
    assert_non_null(strstr(error.text, "found 'swep', expected all, sweep, "));
    assert_false(net_measures_parse("", &bits, &error));
}

static struct net_request request(int ranks, int within, unsigned measures)
{
    struct net_request r = {.ranks = ranks, .within = within, .measures = measures, .sizes = sizes_doubling(8, 4096), .few = sizes_doubling(4096, 4096)};
    return r;
}

// Every point of every number of ranks can be divided, is there once, and survives the way to the worker.
static void every_measure_makes_points(void **state)
{
    (void)state;
    static struct net_units units = {.gather = DTYPE_BF16, .reduce = DTYPE_BF16, .count = 2, .units = {{"root", 1001, 1}, {"h.0", 65536, 12}}};
    struct error error = {0};
    for (int ranks = 2; ranks <= 9; ranks++)
        for (int m = 0; m < NET_MEASURES; m++) {
            struct net_request r = request(ranks, ranks % 2 == 0 && ranks > 2 ? 2 : 0, 1u << m);
            struct net_plan plan;
            r.units = &units;
            bool made = net_plan_make(&r, &plan, &error);
            assert_true(made == !((m == NET_TIERS && r.within == 0) || (m == NET_LINKS && ranks < 3)));
            for (int i = 0; made && i < plan.count; i++) {
                struct net_point back;
                const struct net_point *p = &plan.points[i];
                json_t *text = net_point_write(p), *again;
                assert_true(net_point_read(text, &back, &error));
                again = net_point_write(&back);
                assert_true(json_equal(text, again));
                assert_string_equal(p->measure, net_measure_names[m]);
                for (int c = 0; c < p->call_count; c++) {
                    int n = p->calls[c].group == NET_WITHIN ? r.within : p->calls[c].group == NET_BETWEEN ? ranks / r.within : ranks;
                    bool parts = p->calls[c].op == NET_ALL_GATHER || p->calls[c].op == NET_REDUCE_SCATTER || p->calls[c].op == NET_REDUCE_SCATTER_BLOCK;
                    assert_true(p->calls[c].count > 0);
                    assert_true(!parts || net_dealt(p->calls[c].count, n, p->shape) == p->calls[c].count);
                    assert_false(net_op_reduces(p->calls[c].op) && p->calls[c].type == DTYPE_BF16); // MPI has no sum of it
                }
                for (int k = 0; k < i; k++) {
                    json_t *other = net_point_write(&plan.points[k]);
                    assert_false(json_equal(text, other));
                    json_decref(other);
                }
                json_decref(text);
                json_decref(again);
            }
            net_plan_free(&plan);
        }
}

static void a_sweep_has_each_collective_at_each_size(void **state)
{
    (void)state;
    struct net_request r = request(2, 0, 1u << NET_SWEEP);
    struct net_plan plan;
    struct error error = {0};
    assert_true(net_plan_make(&r, &plan, &error));
    assert_int_equal(plan.count, 4 * 10);
    assert_int_equal(plan.points[0].calls[0].count, 2); // 8 bytes
    net_plan_free(&plan);
    r.measures = 1u << NET_TIERS;
    assert_false(net_plan_make(&r, &plan, &error));
    assert_string_equal(error.text, "--measure: found nothing to measure, expected for tiers: --within, more than 1 and less than the ranks");
}

static void jobs_come_back(void **state)
{
    (void)state;
    char folder[] = "/tmp/fsdpmark.test.XXXXXX", path[64];
    struct error error = {0};
    struct net_request r = request(4, 2, 1u << NET_TOGETHER);
    struct net_plan plan;
    struct net_job back;
    json_t *root;
    assert_non_null(temporary_make(folder));
    snprintf(path, sizeof path, "%s/net.json", folder);
    assert_true(net_plan_make(&r, &plan, &error));
    struct net_job job = {.seed = 9, .launch = 2, .seconds = 1.5, .narrow = 0.02, .within = 2, .drain = true, .corrupt_rank = -1, .corrupt_iteration = 4,
                          .point_count = plan.count, .points = plan.points};
    assert_true(net_job_write(&job, path, &error));
    assert_true(net_job_read(path, &back, &root, &error));
    assert_true(back.seed == 9 && back.launch == 2 && back.seconds == 1.5 && back.narrow == 0.02 && back.within == 2 && back.drain);
    assert_true(back.corrupt_rank == -1 && back.corrupt_iteration == 4 && back.point_count == plan.count);
    assert_int_equal(back.points[2].call_count, 2);
    free(back.points);
    json_decref(root);
    FILE *file = fopen(path, "w");
    fputs("{\"points\": [{\"measure\": \"sweep\"}]}", file);
    fclose(file);
    assert_false(net_job_read(path, &back, &root, &error));
    assert_non_null(strstr(error.text, "point 0: found none of fsdpmark net"));
    unlink(path);
    rmdir(folder);
    net_plan_free(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_as_people_write_them),
        cmocka_unit_test(default_sizes_suit_the_line),
        cmocka_unit_test(shards_are_dealt_as_chunks),
        cmocka_unit_test(factors_are_those_of_nccl_tests),
        cmocka_unit_test(measures_by_name),
        cmocka_unit_test(every_measure_makes_points),
        cmocka_unit_test(a_sweep_has_each_collective_at_each_size),
        cmocka_unit_test(jobs_come_back),
    };
    return cmocka_run_group_tests_name("net plan", tests, NULL, NULL);
}
