// The figures of measured series from made-up numbers: what stands in their pictures and data, what is left out, what is said.
#include "harness/report/plots.h"

#include <math.h>
#include <sys/stat.h>

#include "harness/report/plot_draw.h"
#include "harness/report/tests/markup.h"

static bool has_gnuplot(void) { return !system("gnuplot --version >/dev/null 2>&1"); }

static struct interval about(double value, double share) { return (struct interval){value, value * (1 - share), value * (1 + share), 0.96, 30}; }

static const struct plot_about sample_about = {.name = "figure-1", .title = "A title; <b>", .machine = "a $(machine) `x`", .fabric = "virtual-100m", .versions = "fsdpmark 1", .date = "2026-11-30T12:00:00Z"};

static char *slurp_plot(const char *folder, const char *extension) {
    char *path, *text = NULL;
    size_t bytes = 0;
    assert_true(asprintf(&path, "%s/figure-1.%s", folder, extension) > 0);
    FILE *in = fopen(path, "r");
    free(path);
    if (!in || getdelim(&text, &bytes, 0, in) < 0) fail_msg("figure-1.%s is not there", extension);
    fclose(in);
    return text;
}

// The pictures are there, begin as their formats do, and the SVG holds these texts, each this often at least.
struct expected { const char *text; int count; };
static void look(const char *folder, const char *why, const struct expected *texts, int count) {
    if (!has_gnuplot()) {
        assert_string_equal(why, "gnuplot is not installed");
        return;
    }
    assert_string_equal(why, "");
    char *svg = slurp_plot(folder, "svg"), *png = slurp_plot(folder, "png"), *pdf = slurp_plot(folder, "pdf");
    struct markup m;
    markup_parse(&m, svg);
    for (int i = 0; i < count; i++)
        if (markup_count(&m, "text", texts[i].text) < texts[i].count) fail_msg("'%s' stands not %d times in the figure", texts[i].text, texts[i].count);
    for (int i = 0; i < m.name_count; i++) assert_string_not_equal(m.names[i], "b");
    assert_true(markup_count(&m, "text", "A title; <b>") == 1);
    markup_free(&m);
    assert_memory_equal(png, "\x89PNG", 4);
    assert_memory_equal(pdf, "%PDF-", 5);
    free(svg);
    free(png);
    free(pdf);
}

// The caption as one line.
static char *note_of(const char *folder) {
    char *script = slurp_plot(folder, "gp"), *from = strstr(script, "note = \""), *note = malloc(strlen(from) + 1), *to = note;
    for (; *from && *from != '\n'; from++) {
        bool break_here = from[0] == '\\' && from[1] == 'n';
        *to++ = break_here ? ' ' : *from;
        from += break_here;
    }
    *to = 0;
    free(script);
    return note;
}

static void busbw_has_its_line_rate_and_series(void **state) {
    char *folder = *state, why[PLOT_WHY];
    struct error error = {0};
    struct plot_point gather[] = {{64, about(1e5, 0.1)}, {4096, about(4e6, 0.1)}, {1 << 20, about(12e6, 0.01)}}, odd[] = {{64, about(NAN, 0)}, {0, about(1, 0)}, {4096, {2e6, NAN, NAN, 0, 1}}};
    struct plot_series series[] = {{"all-gather", false, 3, gather}, {"`rm -rf`\"\t\\ x", false, 3, odd}, {"empty", false, 0, NULL}};
    struct plot_busbw p = {sample_about, 12.5e6, 3, series};
    assert_true(plot_busbw(&p, folder, why, &error));
    const struct expected texts[] = {{"all-gather", 1}, {"64 B", 1}, {"1 MiB", 1}, {"12 MB/s", 1}, {"line rate, 12.5 MB/s", 1}, {"busbw", 1}};
    look(folder, why, texts, 6);
    char *note = note_of(folder), *data = slurp_plot(folder, "dat");
    static const char *const parts[] = {"2 points without a figure that can be drawn are left out", "Bars: interval of at least 95 % for the median", "Machine: a ?(machine) ?x?",
                                        "Fabric: virtual-100m", "Versions: fsdpmark 1", "Date: 2026-11-30."};
    for (int i = 0; i < 6; i++)
        if (!strstr(note, parts[i])) fail_msg("'%s' stands not in: %s", parts[i], note);
    assert_non_null(strstr(data, "4096\t2000000\t2000000\t2000000\n")); // no bar where there is no interval
    assert_non_null(strstr(data, "1048576\t12000000\t11880000\t12120000\n"));
    free(note);
    free(data);
    series[0].count = 0, series[1].count = 1;
    assert_true(plot_busbw(&p, folder, why, &error));
    assert_string_equal(why, "no data: no series has a point that can be drawn");
}

static void predicted_lines_share_the_colour(void **state) {
    char *folder = *state, why[PLOT_WHY];
    struct error error = {0};
    struct plot_point measured[] = {{1e8, about(1000, 0.1)}, {2e8, about(1500, 0.1)}}, guess[] = {{5e7, {400, NAN, NAN, 0, 0}}, {4e8, {2000, NAN, NAN, 0, 0}}};
    struct plot_series series[] = {{"none", false, 2, measured}, {"full", false, 2, guess}, {"full", true, 2, guess}, {"none", true, 2, guess}, {"hybrid", true, 2, guess}};
    struct plot_crossover crossovers[] = {{1.2e8, 1e8, 1.5e8, "full = none, measured", false}, {NAN, 0, 0, "never", false}, {1.4e8, NAN, NAN, "full = none, predicted", true}};
    struct plot_bandwidth p = {sample_about, NULL, 5, series, 3, crossovers};
    assert_true(plot_bandwidth(&p, folder, why, &error));
    const struct expected texts[] = {{"none", 1}, {"none, predicted", 1}, {"hybrid, predicted", 1}, {"1: full = none, measured: 120 Mbit/s (100 Mbit/s to 150 Mbit/s)", 1},
                                     {"2: full = none, predicted: 140 Mbit/s", 1}, {"100 Mbit/s", 1}, {"tokens / s", 1}};
    look(folder, why, texts, 7);
    char *script = slurp_plot(folder, "gp"), *note = note_of(folder);
    static const char *const styles[] = {"styles[1] = 1\ndashed[1] = 0", "styles[2] = 2\ndashed[2] = 0", "styles[3] = 2\ndashed[3] = 1", "styles[4] = 1\ndashed[4] = 1", "styles[5] = 3\ndashed[5] = 1"};
    for (int i = 0; i < 5; i++) assert_non_null(strstr(script, styles[i]));
    assert_non_null(strstr(note, "1 crossovers outside any bandwidth are left out"));
    free(script);
    free(note);
    p.crossover_count = 0, p.count = 1;
    assert_true(plot_bandwidth(&p, folder, why, &error));
    look(folder, why, texts, 1);
}

static void labels_of_the_trade_do_not_hide_each_other(void **state) {
    char *folder = *state, why[PLOT_WHY];
    struct error error = {0};
    const char *series[] = {"reference", "pytorch"};
    struct plot_trade_point points[] = {{"full", 0, 1e8, about(500, 0.05)}, {"grad", 0, 1.05e8, about(500, 0.05)}, {"none", 1, 4e8, about(900, 0.05)}, {"nowhere", 1, NAN, about(1, 0)}, {"of none", 2, 1, about(1, 0)}};
    struct plot_trade p = {sample_about, 2, series, 5, points};
    assert_true(plot_trade(&p, folder, why, &error));
    const struct expected texts[] = {{"reference", 1}, {"pytorch", 1}, {"full", 1}, {"grad", 1}, {"none", 1}, {"128 MiB", 1}};
    look(folder, why, texts, 6);
    char *data = slurp_plot(folder, "dat"), *note = note_of(folder);
    assert_non_null(strstr(data, "\t1\t\"full\"")); // to the left: grad's mark stands at its right
    assert_non_null(strstr(data, "\t0\t\"grad\""));
    assert_non_null(strstr(note, "2 configurations without memory or throughput are left out"));
    free(data);
    free(note);
}

static void implementations_stand_in_rows(void **state) {
    char *folder = *state, why[PLOT_WHY];
    struct error error = {0};
    const char *rows[] = {"gpt, full", "gpt, none"}, *series[] = {"reference", "pytorch-fsdp2"};
    struct interval cells[] = {about(10, 0.1), about(12, 0.1), {.count = 0}, about(500, 0.1)};
    struct plot_implementations p = {sample_about, "step, ms", true, 2, 2, rows, series, cells};
    assert_true(plot_implementations(&p, folder, why, &error));
    const struct expected texts[] = {{"gpt, full", 1}, {"gpt, none", 1}, {"reference", 1}, {"pytorch-fsdp2", 1}, {"step, ms (less is better)", 1}};
    look(folder, why, texts, 5);
    char *script = slurp_plot(folder, "gp"), *note = note_of(folder);
    assert_non_null(strstr(script, "set logscale x")); // 50 times apart
    assert_non_null(strstr(note, "1 cells have no figure"));
    free(script);
    free(note);
}

static void a_against_b_says_its_words(void **state) {
    char *folder = *state, why[PLOT_WHY];
    struct error error = {0};
    struct plot_ab_row rows[] = {{"full, seconds", "slower", about(1.2, 0.05)}, {"none, seconds", "no difference shown", about(1, 0.05)}, {"full, bytes", "less", {0.5, 0.5, 0.5, 1, 9}}, {"gone", "slower", {NAN, NAN, NAN, 0, 0}}};
    struct plot_ab p = {sample_about, "run 1", "run 2", 0.1, 4, rows};
    assert_true(plot_ab(&p, folder, why, &error));
    const struct expected texts[] = {{"1.200 slower", 1}, {"1.000 no difference shown", 1}, {"0.500 less", 1}, {"threshold", 1}, {"ratio: run 2 / run 1", 1}};
    look(folder, why, texts, 5);
    char *note = note_of(folder);
    assert_non_null(strstr(note, "1 rows have no ratio"));
    free(note);
}

static void the_map_names_its_areas(void **state) {
    enum { X = 24, Y = 12 };
    char *folder = *state, why[PLOT_WHY];
    struct error error = {0};
    const char *names[] = {"none", "full", "hybrid"};
    double bits[X], parameters[Y], curve_x[] = {2e8, 3e8}, curve_y[] = {1e6, 1e9};
    int best[X * Y];
    unsigned char close[X * Y] = {[7] = 1};
    for (int i = 0; i < X; i++) bits[i] = 1e7 * pow(1.5, i);
    for (int j = 0; j < Y; j++) parameters[j] = 1e6 * pow(2, j);
    for (int k = 0; k < X * Y; k++) best[k] = k == 0 ? -1 : k % X < 8 ? 0 : 1; // hybrid nowhere
    struct plot_map_mark marks[] = {{1e8, 1e7, "none"}, {-1, 1, "nowhere"}};
    struct plot_map_curve curves[] = {{"compute-bound right of it", 2, curve_x, curve_y}};
    struct plot_map p = {sample_about, 3, names, X, Y, bits, parameters, best, close, 2, marks, 1, curves};
    assert_true(plot_map(&p, folder, why, &error));
    const struct expected texts[] = {{"none", 2}, {"full", 2}, {"none", 3}, {"full", 2}, {"compute-bound right of it", 1}, {"measured; the name is what was fastest", 1}, {"100 Mbit/s", 1}, {"1M", 1}};
    look(folder, why, texts, 8); // in its area, in the key, at the mark
    char *svg = has_gnuplot() ? slurp_plot(folder, "svg") : strdup(""), *note = note_of(folder);
    assert_null(strstr(svg, "hybrid<"));
    assert_null(strstr(note, "Bars"));
    assert_non_null(strstr(note, "1 measured points are left out"));
    free(svg);
    free(note);
    p.mark_count = p.curve_count = 0, p.close = NULL;
    assert_true(plot_map(&p, folder, why, &error));
    look(folder, why, texts, 2);
    bits[3] = bits[2];
    assert_true(plot_map(&p, folder, why, &error));
    assert_string_equal(why, "no data: the grid of bandwidths and model sizes is empty or does not ascend");
}

static void what_cannot_be_written_is_an_error(void **state) {
    (void)state;
    char why[PLOT_WHY];
    struct error error = {0};
    struct plot_point point = {1, about(1, 0.1)};
    struct plot_series series = {"x", false, 1, &point};
    struct plot_busbw p = {sample_about, 0, 1, &series};
    assert_false(plot_busbw(&p, "/dev/null/x", why, &error));
    assert_non_null(strstr(error.text, "/dev/null"));
    p.about.name = "../x";
    error = (struct error){0};
    assert_false(plot_busbw(&p, *state, why, &error));
    assert_string_equal(error.text, "figure '../x': expected a name of letters, digits and -");
}

static void values_are_told_in_their_unit(void **state) {
    (void)state;
    char text[32];
    assert_string_equal(plot_value(1e8, PLOT_BITS_PER_SECOND, text), "100 Mbit/s");
    assert_string_equal(plot_value(65536, PLOT_BYTES, text), "64 KiB");
    assert_string_equal(plot_value(0, PLOT_BYTES, text), "0 B");
    assert_string_equal(plot_value(12.5e6, PLOT_BYTES_PER_SECOND, text), "12.5 MB/s");
    assert_string_equal(plot_value(1000, PLOT_COUNT, text), "1k");
    assert_string_equal(plot_value(1.05, PLOT_RATIO, text), "1.05");
}

static void captions_come_from_the_run(void **state) {
    (void)state;
    json_t *environment = json_pack("{s:s, s:i, s:s, s:s, s:{s:s}}", "cpu", "Xeon", "cores", 4, "host", "h1", "version", "0.6", "libraries", "mpirun", "mpirun (Open MPI) 4.1.4");
    json_t *implementations = json_pack("{s:{s:{s:s}}, s:{s:{s:s, s:n}}}", "a", "versions", "torch", "2.9", "b", "versions", "torch", "2.9", "numpy");
    char *machine = plot_machine(environment), *versions = plot_versions(environment, implementations), *bare = plot_machine(NULL);
    assert_string_equal(machine, "Xeon, 4 cores, host h1");
    assert_string_equal(versions, "fsdpmark 0.6, mpirun (Open MPI) 4.1.4, torch 2.9, numpy ?");
    assert_string_equal(bare, "an unknown processor, 0 cores");
    char *none = plot_fabric(environment), *one, *two;
    json_object_set_new(environment, "fabrics", json_pack("[{s:s, s:s}, {s:s, s:s}]", "name", "shm", "title", "One machine", "name", "ucx", "title", "UCX"));
    two = plot_fabric(environment);
    json_object_set_new(environment, "fabric", json_pack("{s:s, s:s}", "name", "shm", "title", "One machine"));
    one = plot_fabric(environment);
    assert_string_equal(none, "");
    assert_string_equal(one, "shm (One machine)");
    assert_string_equal(two, "shm (One machine), ucx (UCX)");
    free(none);
    free(one);
    free(two);
    free(machine);
    free(versions);
    free(bare);
    json_decref(environment);
    json_decref(implementations);
}

static int make_folder(void **state) {
    *state = strdup("/tmp/fsdpmark-plots.XXXXXX");
    return mkdtemp(*state) == NULL;
}

static int drop_folder(void **state) {
    char *command;
    if (asprintf(&command, "rm -rf %s", (char *)*state) < 0 || system(command)) return -1;
    free(command);
    free(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busbw_has_its_line_rate_and_series), cmocka_unit_test(predicted_lines_share_the_colour), cmocka_unit_test(labels_of_the_trade_do_not_hide_each_other),
        cmocka_unit_test(implementations_stand_in_rows), cmocka_unit_test(a_against_b_says_its_words), cmocka_unit_test(the_map_names_its_areas),
        cmocka_unit_test(what_cannot_be_written_is_an_error), cmocka_unit_test(values_are_told_in_their_unit), cmocka_unit_test(captions_come_from_the_run),
    };
    return cmocka_run_group_tests_name("figures of measured series", tests, make_folder, drop_folder);
}
