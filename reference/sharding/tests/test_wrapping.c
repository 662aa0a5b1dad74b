// Each policy on one small table: which units there are, and that every storage is in exactly one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "reference/sharding/mesh.h"
#include "reference/sharding/wrapping.h"

enum { COUNT = 7 };

static struct case_parameter table[COUNT] = {
    {.name = "embed", .count = 10, .unit = "", .tied_to = -1},  {.name = "b0.w", .count = 6, .unit = "b0", .tied_to = -1},
    {.name = "b0.v", .count = 2, .unit = "b0", .tied_to = -1},  {.name = "b1.w", .count = 8, .unit = "b1", .tied_to = -1},
    {.name = "b2.w", .count = 8, .unit = "b2", .tied_to = -1},  {.name = "norm", .count = 3, .unit = "", .tied_to = -1},
    {.name = "head", .count = 10, .unit = "", .tied_to = 0},
};

struct expected { enum wrap_policy policy; int64_t min; const char *pattern; int units; const char *names; int unit_of[COUNT]; };

static const struct expected expectations[] = {
    {WRAP_BLOCK, 0, "", 4, ",b0,b1,b2", {0, 1, 1, 2, 3, 0, 0}},
    {WRAP_ROOT, 0, "", 1, "", {0, 0, 0, 0, 0, 0, 0}},
    {WRAP_SIZE, 9, "", 3, ",b0,b2", {0, 1, 1, 1, 2, 0, 0}},
    {WRAP_SIZE, 8, "", 4, ",b0,b1,b2", {0, 1, 1, 2, 3, 0, 0}},
    {WRAP_SIZE, 1000, "", 2, ",b0", {0, 1, 1, 1, 1, 0, 0}},
    {WRAP_PATTERN, 0, "b[02]", 3, ",b0,b2", {0, 1, 1, 0, 2, 0, 0}},
    {WRAP_PATTERN, 0, "none", 1, "", {0, 0, 0, 0, 0, 0, 0}},
};

static void check_policy(const struct expected *e)
{
    struct fsdp_case c = {.parameter_count = COUNT, .parameters = table,
                          .sharding = {.wrap = e->policy, .wrap_min_parameters = e->min, .wrap_pattern = (char *)e->pattern}};
    struct wrapping w;
    char names[64] = "";
    int seen[COUNT] = {0};
    assert_true(wrapping_create(&w, &c, NULL));
    assert_int_equal(w.unit_count, e->units);
    for (int u = 0; u < w.unit_count; u++) {
        strcat(strcat(names, u ? "," : ""), w.names[u]);
        for (int m = w.first[u]; m < w.first[u + 1]; m++) {
            seen[w.members[m]]++;
            assert_int_equal(w.unit_of[w.members[m]], u);
        }
    }
    assert_string_equal(names, e->names);
    assert_memory_equal(w.unit_of, e->unit_of, sizeof e->unit_of);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(seen[i], table[i].tied_to < 0);
    wrapping_free(&w);
}

static void test_policies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof expectations / sizeof *expectations; i++)
        check_policy(&expectations[i]);
}

static void test_no_root(void **state)
{
    (void)state;
    struct fsdp_case c = {.parameter_count = 2, .parameters = table + 1, .sharding = {.wrap = WRAP_BLOCK}};
    struct wrapping w;
    assert_true(wrapping_create(&w, &c, NULL));
    assert_int_equal(w.unit_count, 1);
    assert_string_equal(w.names[0], "b0");
    wrapping_free(&w);
}

static void test_mesh(void **state)
{
    (void)state;
    for (int n = 1; n <= 64; n++)
        for (int s = 1; s <= n; s++) {
            if (n % s)
                continue;
            for (int r = 0; r < n; r++) {
                struct mesh m = mesh_at(n / s, s, r);
                assert_in_range(m.shard, 0, s - 1);
                assert_in_range(m.replica, 0, n / s - 1);
                assert_int_equal(m.replica * s + m.shard, r);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_policies), cmocka_unit_test(test_no_root),
                                       cmocka_unit_test(test_mesh)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
