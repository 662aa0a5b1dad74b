// Throughput against bandwidth from made-up steps: lines, what is predicted, where the fastest strategy changes, what is left out.
#include "harness/report/series_report.h"

#include <math.h>
#include <sys/stat.h>

#include "harness/report/plots.h"
#include "harness/store/tests/sample.h"

enum { SAMPLES = 12, LAUNCHES = 6, MOST = 16 };
static double values[MOST][SAMPLES];
static struct stored_series items[MOST];
static struct stored_serieses series;
static int rounds = LAUNCHES;
static struct stored_run run = {.id = 1, .started = "2026-11-30T12:00:00Z"};
static struct { int count; const double *values; } launches[MOST][LAUNCHES]; // of validate one, of bench one a round

// `none` halves with twice the rate; `full` has a third of its slope and twice its computing.
static double seconds_of(const char *strategy, double mbit) { return !strcmp(strategy, "none") ? 0.01 + 3 / mbit : 0.02 + 1 / mbit; }

static void add(const char *tool, const char *strategy, double mbit, double noise, const char *verdict, double predicted_s) {
    int at = series.count++;
    struct stored_series *s = &items[at];
    for (int i = 0; i < SAMPLES; i++) values[at][i] = seconds_of(strategy, mbit) * (1 + noise * ((5 * i) % SAMPLES - 5.5) / SAMPLES);
    int starts = strcmp(tool, "bench") ? 1 : rounds;
    for (int l = 0; l < starts; l++) launches[at][l].count = SAMPLES / starts, launches[at][l].values = values[at] + l * (SAMPLES / starts);
    *s = (struct stored_series){.tool = tool, .fabric = mbit < 75 ? "virtual-50m" : "virtual-100m", .subject = "reference", .name = "small", .quantity = "seconds", .launch_count = starts,
                                .launches = (void *)launches[at], .count = SAMPLES, .values = values[at],
                                .point = json_pack("{s:i, s:s}", "ranks", 4, "strategy", strategy), .facts = json_pack("{s:f, s:i, s:s}", "rate_bits", 1e6 * mbit, "tokens_per_step", 100, "verdict", verdict)};
    if (predicted_s > 0) json_object_set_new(s->facts, "predicted_s", json_real(predicted_s));
}

static void clear(void) {
    for (int i = 0; i < series.count; i++) {
        json_decref(items[i].point);
        json_decref(items[i].facts);
    }
    series = (struct stored_serieses){0, items, NULL};
}

static char *drawn(const char *folder, const char *extension, const char *expected_why) {
    char why[PLOT_WHY], path[300], *text = NULL;
    size_t bytes = 0;
    struct error error = {0};
    bool gnuplot = !system("gnuplot --version >/dev/null 2>&1");
    assert_true(series_bandwidth_figure(&run, &series, folder, why, &error));
    assert_string_equal(why, gnuplot || *expected_why ? expected_why : "gnuplot is not installed");
    snprintf(path, sizeof path, "%s/bandwidth.%s", folder, extension);
    FILE *in = fopen(path, "r");
    if (in && getdelim(&text, &bytes, 0, in) < 0) fail();
    if (in) fclose(in);
    return text;
}

static void a_change_that_is_shown_has_its_band(void **state) {
    clear();
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 2; i++) {
            const char *strategy = i ? "full" : "none";
            add("bench", strategy, 50 * (1 << k), 0.02, "PASS", (i ? 1.05 : 1.1) * seconds_of(strategy, 50 * (1 << k)));
        }
    // 0.01 + 3 / x = 0.02 + 1 / x at 200 Mbit/s, the highest: no change. One more rate shows it.
    char *data = drawn(*state, "dat", "");
    assert_null(strstr(data, "measured"));
    free(data);
    add("bench", "none", 400, 0.02, "PASS", 0.02);
    add("bench", "full", 400, 0.02, "PASS", 0.03);
    data = drawn(*state, "dat", "");
    assert_non_null(strstr(data, "\"none\"\n50000000\t5714.28571\t")); // 4 ranks of 100 tokens in 70 ms
    assert_non_null(strstr(data, "\"full, predicted\"\n50000000\t9523.80952\t"));
    assert_non_null(strstr(data, "full = none, predicted"));
    free(data);
}

// By the line through the logarithms of the quotients at both neighbours: 10 to 1000 Mbit/s, quotients 0.31 / 0.12 and 0.013 / 0.021.
static void a_change_lies_between_its_neighbours(void **state) {
    char expected[64];
    clear();
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++) add("bench", i ? "full" : "none", k ? 1000 : 10, 0.02, "PASS", 0);
    double q0 = seconds_of("none", 10) / seconds_of("full", 10), q1 = seconds_of("none", 1000) / seconds_of("full", 1000);
    snprintf(expected, sizeof expected, "full = none, measured: %.4g Mbit/s (", 10 * pow(100, log(q0) / log(q0 / q1)));
    char *data = drawn(*state, "dat", "");
    if (!strstr(data, expected)) fail_msg("'%s' stands not in %s", expected, data);
    free(data);
    data = drawn(*state, "gp", "");
    for (char *c = data; (c = strstr(c, "\\n")); c += 2) c[0] = ' ', memmove(c + 1, c + 2, strlen(c + 2) + 1); // the caption as one line
    assert_non_null(strstr(data, "Fabric: virtual-50m, virtual-100m"));
    free(data);
}

static void what_intervals_do_not_show_is_said(void **state) {
    clear();
    add("validate", "none", 150, 0.02, "PASS", 0), add("validate", "full", 150, 0.9, "PASS", 0);
    add("validate", "none", 300, 0.02, "PASS", 0), add("validate", "full", 300, 0.9, "PASS", 0);
    char *data = drawn(*state, "dat", "");
    assert_non_null(strstr(data, "full = none, measured, within the intervals: "));
    free(data);
}

// Steps of one round of bench take no turns with those of another row: neither a word nor an interval.
static void few_rounds_show_no_change(void **state) {
    for (rounds = 1; rounds <= 3; rounds += 2) {
        clear();
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < 2; i++) add("bench", i ? "full" : "none", k ? 1000 : 10, 0.02, "PASS", 0);
        char *data = drawn(*state, "dat", "");
        assert_non_null(strstr(data, "full = none, measured, too few rounds to tell: "));
        free(data);
        data = drawn(*state, "gp", "");
        for (char *c = data; (c = strstr(c, "\\n")); c += 2) c[0] = ' ', memmove(c + 1, c + 2, strlen(c + 2) + 1);
        assert_non_null(strstr(data, rounds == 1 ? "spread of the steps of one round" : "Bars: of 3 rounds, fewer than the 6"));
        assert_null(strstr(data, "interval of at least 95"));
        free(data);
    }
    rounds = LAUNCHES;
}

static void what_does_not_count_is_not_drawn(void **state) {
    clear();
    add("bench", "full", 50, 0.02, "PASS", 0), add("bench", "full", 100, 0.02, "WRONG", 0);
    assert_null(drawn(*state, "none", "no data: nothing was measured at two line rates"));
    add("bench", "full", 200, 0.02, "PASS", 0);
    char *data = drawn(*state, "dat", "");
    assert_null(strstr(data, "\n100000000\t"));
    assert_non_null(strstr(data, "\n200000000\t"));
    free(data);
    clear();
}

static int set_up(void **state) {
    static char folder[] = "/tmp/fsdpmark-bandwidth.XXXXXX";
    *state = mkdtemp(folder);
    return *state == NULL;
}

static int tear_down(void **state) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_change_that_is_shown_has_its_band), cmocka_unit_test(a_change_lies_between_its_neighbours),
                                       cmocka_unit_test(what_intervals_do_not_show_is_said), cmocka_unit_test(few_rounds_show_no_change), cmocka_unit_test(what_does_not_count_is_not_drawn)};
    return cmocka_run_group_tests_name("throughput against bandwidth", tests, set_up, tear_down);
}
