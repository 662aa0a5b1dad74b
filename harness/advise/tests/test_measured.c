// Lines, tiers and slowdowns from stored runs of net that were made by hand, so that every figure is known; the choice among settings of Open MPI.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/advise/measured.h"
#include "harness/advise/settings.h"
#include "harness/net/plan.h"
#include "harness/protocol/tests/temporary.h"

enum { SAMPLES = 15, HOSTS = 4 };
static const double RATE = 12.5e6, BURST = 131072; // 100 Mbit/s
static struct stored_serieses stored;
static double line_rate, line_burst;

// Samples lie within 1 % of `seconds`. Group: ranks of the inner tier.
static void add(struct net_point p, const char *quantity, double seconds, int within)
{
    stored.items = realloc(stored.items, (size_t)(stored.count + 1) * sizeof *stored.items);
    double *values = malloc(SAMPLES * sizeof *values);
    assert_true(stored.items != NULL && values != NULL);
    for (int i = 0; i < SAMPLES; i++)
        values[i] = seconds * (1 + 0.01 * (i % 5 - 2) / 2);
    struct stored_series *x = &stored.items[stored.count++];
    *x = (struct stored_series){.id = stored.count, .run = 1, .tool = "net", .fabric = "made", .subject = "mpi", .name = "x", .quantity = quantity, .count = SAMPLES, .values = values};
    x->point = net_point_write(&p);
    json_object_update_new(x->point, json_pack("{s:i, s:i, s:i}", "ranks", HOSTS, "hosts", HOSTS, "within", within));
    x->facts = json_pack("{s:i, s:i, s:f}", "errors", 0, "calls_per_sample", 1, "line_rate", line_rate);
    if (line_burst > 0)
        json_object_set_new(x->facts, "burst", json_real(line_burst));
}

static struct net_point point(enum net_measure m, enum net_op op, enum net_group g, double bytes, enum net_how how)
{
    return (struct net_point){.measure = net_measure_names[m], .label = "", .call_count = 1, .calls = {{op, g, DTYPE_F32, (int64_t)bytes / 4, 0}}, .how = how};
}

static void take(struct net_rows *rows)
{
    struct error error = {""};
    struct stored_serieses made = stored;
    stored = (struct stored_serieses){0};
    if (!net_rows_make(&made, rows, &error))
        fail_msg("%s", error.text);
}

static void done(struct net_rows *rows)
{
    for (int i = 0; i < rows->stored.count; i++) {
        json_decref(rows->stored.items[i].point);
        json_decref(rows->stored.items[i].facts);
        free((void *)rows->stored.items[i].values);
    }
    free(rows->stored.items);
    free(rows->items);
}

static struct measured measure(const struct stamped_fabric *f, double unit, bool fine, const char *complaint)
{
    struct net_rows rows;
    struct measured m;
    struct error error = {""};
    take(&rows);
    assert_int_equal(measured_take(&rows, f, unit, &m, &error), fine);
    assert_non_null(strstr(error.text, complaint));
    done(&rows);
    return m;
}

static bool says(const struct measured *m, const char *text)
{
    for (int i = 0; i < m->note_count; i++)
        if (strstr(m->notes[i], text) != NULL)
            return true;
    return false;
}

static const struct stamped_fabric one_tier = {.name = "made", .hosts = HOSTS, .rate_bits = 8 * 12.5e6, .burst_bytes = 131072}, unknown = {.name = "made"};

// Of a gather of B bytes 3/4 B are on a rank's line.
static void gathers(double alpha, double rate)
{
    for (double bytes = 8192; bytes <= 4 << 20; bytes *= 4)
        add(point(NET_SWEEP, NET_ALL_GATHER, NET_WORLD, bytes, NET_BLOCKING), "seconds", alpha + 0.75 * bytes / rate, 0);
}

static void a_line_below_its_rate_is_taken_as_it_is(void **state)
{
    (void)state;
    line_rate = RATE;
    gathers(1e-3, 0.95 * RATE);
    struct measured m = measure(&one_tier, 1e6, true, "");
    assert_float_equal(1 / m.tiers[0].beta_s_per_byte / (0.95 * RATE), 1, 1e-3);
    assert_float_equal(m.tiers[0].alpha_s, 1e-3, 1e-5);
    assert_false(says(&m, "rate"));
    assert_int_equal(m.near, 0);
}

// Three times as fast as the line up to the burst, then the line itself: the sizes together say too much.
static void small_messages_that_ride_the_burst_are_left_out(void **state)
{
    (void)state;
    line_rate = RATE;
    for (double bytes = 8192; bytes <= 4 << 20; bytes *= 2) {
        double on_line = 0.75 * bytes;
        add(point(NET_SWEEP, NET_ALL_GATHER, NET_WORLD, bytes, NET_BLOCKING), "seconds", on_line > BURST ? 1e-3 + on_line / (0.96 * RATE) : 1e-3 + on_line / (3 * RATE), 0);
    }
    struct measured m = measure(&one_tier, 1e6, true, "");
    assert_float_equal(1 / m.tiers[0].beta_s_per_byte / (0.96 * RATE), 1, 1e-3);
    assert_true(says(&m, "small messages ride the burst"));
}

// Nothing that was measured is slower than the line: its rate bounds it all the same.
static void no_line_is_faster_than_its_rate(void **state)
{
    (void)state;
    line_rate = RATE;
    gathers(1e-3, 1.5 * RATE);
    struct measured m = measure(&one_tier, 1e6, true, "");
    assert_true(1 / m.tiers[0].beta_s_per_byte == RATE);
    assert_true(m.tiers[0].alpha_s >= 0 && m.beta_spread[0] == 0);
    assert_true(says(&m, "more than the line rate of 100 Mbit/s to a rank, which is taken in its place"));
    line_rate = 0;
    gathers(1e-3, 1.5 * RATE);
    m = measure(&unknown, 1e6, true, ""); // a rate that nobody knows bounds nothing
    assert_float_equal(1 / m.tiers[0].beta_s_per_byte / (1.5 * RATE), 1, 1e-3);
}

// 200 Mbit/s inside groups of two, 50 Mbit/s between, which the two ranks of a group share.
static const struct stamped_fabric two_tiers = {.name = "made", .hosts = HOSTS, .group = 2, .rate_bits = 200e6, .between_rate_bits = 50e6, .burst_bytes = 0};

static void tiers(double inner, double between, bool several)
{
    for (double bytes = 65536; bytes <= (several ? 4 << 20 : 65536); bytes *= 4) {
        add(point(NET_TIERS, NET_ALL_GATHER, NET_WITHIN, bytes, NET_NONBLOCKING), "seconds", 1e-4 + bytes / 2 / inner, 2);
        add(point(NET_TIERS, NET_ALL_REDUCE, NET_BETWEEN, bytes / 2, NET_NONBLOCKING), "seconds", 4e-4 + bytes / 2 / between, 2);
    }
}

// A run tells the line that each of its calls passes, whole: two ranks share the one between groups.
static void the_line_of_the_calls_bounds_them(void **state)
{
    (void)state;
    line_rate = RATE;
    line_burst = BURST;
    gathers(1e-3, 1.5 * RATE);
    struct measured m = measure(&unknown, 1e6, true, "");
    assert_true(1 / m.tiers[0].beta_s_per_byte == RATE);
    tiers(24e6, 10e6, true);
    m = measure(&two_tiers, 1e6, true, "");
    assert_true(1 / m.tiers[0].beta_s_per_byte == RATE && 1 / m.tiers[1].beta_s_per_byte == RATE / 2);
    line_burst = 0;
}

static void product(double bytes, enum net_how how, double slower)
{
    struct net_point p = point(NET_COMPUTE, NET_ALL_GATHER, NET_WORLD, bytes, how);
    for (int i = 0; i < 2; i++) {
        p.calls[0].op = i == 0 ? NET_ALL_GATHER : NET_REDUCE_SCATTER;
        p.product = NET_PRODUCT;
        add(p, "seconds", 2e-3, 0);
        add(p, "call alone seconds", 1e-3, 0);
        add(p, "product alone seconds", 1e-3, 0);
        add(p, "product beside seconds", slower * 1e-3, 0);
        add(p, "call beside seconds", 1e-3, 0);
    }
}

// Of the size that the model gathers, not of the one where it is worst.
static void the_slowdown_is_of_the_models_size(void **state)
{
    (void)state;
    line_rate = RATE;
    for (int unit = 0; unit < 2; unit++) {
        gathers(1e-3, 0.9 * RATE);
        product(65536, NET_NONBLOCKING, 2.33);
        product(1 << 20, NET_NONBLOCKING, 1.08);
        product(1 << 20, NET_BLOCKING, 3);
        struct measured m = measure(&one_tier, unit == 0 ? 1.5e6 : 7e4, true, "");
        assert_float_equal(m.contention, unit == 0 ? 1.08 : 2.33, 0.02);
        assert_true(says(&m, "the median of 2 kinds of nonblocking calls"));
    }
    gathers(1e-3, 0.9 * RATE);
    struct measured m = measure(&one_tier, 1e6, true, "");
    assert_true(m.contention == 1 && says(&m, "not measured"));
}

static void both_tiers_are_taken(void **state)
{
    (void)state;
    line_rate = 25e6;
    gathers(1e-3, 4e6);
    tiers(24e6, 3e6, true);
    struct measured m = measure(&two_tiers, 1e6, true, "");
    assert_int_equal(m.near, 2);
    assert_float_equal(1 / m.tiers[0].beta_s_per_byte / 24e6, 1, 1e-3);
    assert_float_equal(1 / m.tiers[1].beta_s_per_byte / 3e6, 1, 1e-3);
    assert_float_equal(m.tiers[0].alpha_s, 1e-4, 1e-6);
    assert_float_equal(m.tiers[1].alpha_s, 2e-4, 2e-6); // an all-reduce is two halves
    tiers(50e6, 6.25e6, true); // twice what either can
    m = measure(&two_tiers, 1e6, true, "");
    assert_true(1 / m.tiers[0].beta_s_per_byte == 25e6 && 1 / m.tiers[1].beta_s_per_byte == 3.125e6);
    tiers(24e6, 3e6, false);
    m = measure(&two_tiers, 1e6, true, "");
    assert_true(m.tiers[1].alpha_s == 0 && 1 / m.tiers[1].beta_s_per_byte <= 3.125e6 && says(&m, "measured at one size"));
}

static void what_is_missing_is_told(void **state)
{
    (void)state;
    line_rate = 25e6;
    gathers(1e-3, 4e6);
    measure(&two_tiers, 1e6, false, "tiers of 0 ranks (--within), expected those of made: 2");
    line_rate = RATE;
    product(65536, NET_NONBLOCKING, 2);
    measure(&one_tier, 1e6, false, "no all-gathers of two sizes: measure `sweep`");
}

// ---- settings of Open MPI ----
static void read_fabric(const char *name, struct fabric *f)
{
    struct error error = {""};
    if (!fabric_read(name, "suite", f, &error))
        fail_msg("%s", error.text);
}

static bool has(const struct setting *s, const char *pair)
{
    for (char *const *m = s->mca; *m != NULL; m++)
        if (strcmp(*m, pair) == 0)
            return true;
    return false;
}

static void candidates(void **state)
{
    (void)state;
    struct fabric f;
    struct settings s;
    read_fabric("virtual-100m", &f);
    settings_make(&f, &s);
    assert_int_equal(s.count, 3); // what net.md says is what the file says
    assert_true(has(&s.items[1], "btl_tcp_links=2") && has(&s.items[1], "btl_tcp_flags=1"));
    assert_true(has(&s.items[2], "btl=self,vader,tcp") && !has(&s.items[2], "btl_tcp_flags=1") && !has(&s.items[2], "coll_tuned_use_dynamic_rules=1"));
    settings_free(&s);
    fabric_free(&f);
    read_fabric("virtual-eager", &f);
    settings_make(&f, &s);
    assert_int_equal(s.count, 4);
    assert_true(has(&s.items[1], "btl_tcp_links=1") && has(&s.items[3], "btl_tcp_links=2") && has(&s.items[3], "btl_tcp_sndbuf=65536"));
    settings_free(&s);
    fabric_free(&f);
    read_fabric("tcp-loopback", &f);
    settings_make(&f, &s);
    assert_int_equal(s.count, 3); // its own is Open MPI's own choice
    assert_true(has(&s.items[2], "btl_tcp_if_include=lo"));
    settings_free(&s);
    fabric_free(&f);
    read_fabric("shm", &f);
    settings_make(&f, &s);
    assert_int_equal(s.count, 1);
    assert_non_null(strstr(s.why, "does not tell Open MPI to use TCP"));
    settings_free(&s);
    fabric_free(&f);
}

static void a_candidate_is_the_same_fabric(void **state)
{
    (void)state;
    static const char *const names[] = {"virtual-two-tier", "virtual-slow-host", "tcp-loopback", "hosts"};
    char folder[] = "/tmp/fsdpmark-test-XXXXXX", path[100];
    struct error error = {""};
    assert_non_null(temporary_make(folder));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct fabric f, g;
        char *const mca[] = {"btl=self,tcp", "btl_tcp_links=2", NULL};
        read_fabric(names[i], &f);
        snprintf(path, sizeof path, "%s/%s.yaml", folder, names[i]);
        assert_true(settings_write(&f, mca, path, &error));
        read_fabric(path, &g);
        assert_string_equal(g.name, f.name);
        assert_true(g.kind == f.kind && g.hosts == f.hosts && g.rate_bits == f.rate_bits && g.slow_host == f.slow_host && g.slow_rate_bits == f.slow_rate_bits && g.group == f.group &&
                    g.between_rate_bits == f.between_rate_bits && g.burst_bytes == f.burst_bytes && g.limit_bytes == f.limit_bytes);
        assert_string_equal(g.mca[1], "btl_tcp_links=2");
        assert_null(g.mca[2]);
        assert_true((g.environment[0] == NULL) == (f.environment[0] == NULL));
        fabric_free(&f);
        fabric_free(&g);
    }
}

static struct interval interval(double low, double high, double coverage) { return (struct interval){(low + high) / 2, low, high, coverage, 20}; }

// Only what is shown to be faster takes the place of the fabric's own.
static void the_choice(void **state)
{
    (void)state;
    struct settings s = {.count = 3, .ranks = 2, .bytes = 65536};
    snprintf(s.items[0].name, SETTING_TEXT, "own");
    s.items[0].mca[0] = strdup("btl=self,tcp");
    s.items[1].mca[0] = strdup("btl_tcp_links=2");
    s.items[2].mca[0] = strdup("a=b c");
    s.items[0].seconds = interval(0.95, 1.05, 0.98);
    s.items[1].seconds = interval(0.90, 1.00, 0.98);
    for (int i = 0; i < 3; i++)
        s.items[i].starts = 4;
    settings_choose(&s);
    assert_int_equal(s.chosen, 0); // the intervals meet; the third was not measured
    s.items[1].seconds = interval(0.7, 0.8, 0.98);
    s.items[2].seconds = interval(0.4, 0.5, 0.8); // too few samples to show anything
    s.items[1].starts = 3; // three starts each: all of one beyond all of the other is no rare chance
    settings_choose(&s);
    assert_int_equal(s.chosen, 0);
    s.items[1].starts = 4;
    settings_choose(&s);
    assert_int_equal(s.chosen, 1);
    assert_float_equal(s.items[1].over_first.value, 0.75, 1e-9);
    assert_true(s.items[1].over_first.high < 1);
    json_t *j = settings_json(&s);
    assert_string_equal(json_string_value(json_object_get(j, "mpirun")), "mpirun --mca btl_tcp_links 2");
    assert_true(json_is_true(json_object_get(json_array_get(json_object_get(j, "candidates"), 1), "chosen")));
    json_decref(j);
    char *text = NULL, *quoted = settings_mpirun(s.items[2].mca);
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    settings_print(&s, "made", out);
    fclose(out);
    assert_non_null(strstr(text, "0.75 times"));
    assert_non_null(strstr(text, "faster"));
    assert_non_null(strstr(text, "too few values"));
    assert_string_equal(quoted, "mpirun --mca a 'b c'");
    free(text);
    free(quoted);
    settings_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_line_below_its_rate_is_taken_as_it_is), cmocka_unit_test(small_messages_that_ride_the_burst_are_left_out),
                                       cmocka_unit_test(no_line_is_faster_than_its_rate), cmocka_unit_test(the_line_of_the_calls_bounds_them), cmocka_unit_test(the_slowdown_is_of_the_models_size), cmocka_unit_test(both_tiers_are_taken),
                                       cmocka_unit_test(what_is_missing_is_told), cmocka_unit_test(candidates), cmocka_unit_test(a_candidate_is_the_same_fabric), cmocka_unit_test(the_choice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
