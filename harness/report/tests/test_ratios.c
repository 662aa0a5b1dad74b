// The reduction of figures to cells: what is worst, what the median is, which rows and series stay, what is counted.
#include "harness/report/ratios.h"
#include "harness/report/tests/rich.h"

struct figure_row { const char *implementation, *check, *tensor; double figure, bound; };

static void load(struct store *s, struct stored_run *run) {
    struct error error = {0};
    if (!store_load_run(s, 0, run, &error)) fail_msg("%s", error.text);
}

// A case for each figure.
static void with_figures(const struct figure_row *rows, int count, struct ratio_limits most, struct ratios *out, void (*look)(const struct ratios *)) {
    const char *path = sample_path("r.db");
    struct store *s = sample_open(path);
    struct stored_run run;
    struct view v;
    int64_t id = sample_begin(s, "x");
    for (int i = 0; i < count; i++) {
        json_t *figure = isfinite(rows[i].figure) ? json_real(rows[i].figure) : json_string("nan");
        json_t *figures = json_pack("[{s:s, s:s, s:s, s:o, s:f}]", "check", rows[i].check, "label", "s0", "tensor", rows[i].tensor, "figure", figure,
                                    "bound", rows[i].bound);
        struct result r = sample_result(rows[i].check, VERDICT_PASS, 0, 1, "", "");
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        struct case_record c = sample_case(rows[i].implementation, name, "f", "full", 1, &r, 1);
        c.figures = figures;
        sample_record(s, id, &c);
        json_decref(figures);
    }
    load(s, &run);
    view_make(&run, &v);
    ratios_by_tensor(&v, most, out);
    look(out);
    ratios_free(out);
    view_free(&v);
    stored_run_free(&run);
    store_close(s);
    sample_remove(path);
}

static void look_at_cells(const struct ratios *r) {
    assert_int_equal(r->series_count, 2);
    assert_string_equal(r->series[0], "update");
    assert_string_equal(r->series[1], "gradient");
    assert_int_equal(r->row_count, 2);
    assert_string_equal(r->rows[0], "b"); // infinite, so worst
    assert_string_equal(r->rows[1], "a");
    assert_int_equal(r->cell_count, 3);
    const struct ratio_cell *c = r->cells;
    assert_true(c[0].series == 0 && c[0].row == 0 && isinf(c[0].worst));
    assert_true(c[1].series == 0 && c[1].row == 1 && c[1].worst == 0.5 && c[1].median == 0.25); // of 0.125, 0.25, 0.5
    assert_true(c[2].series == 1 && c[2].row == 1 && c[2].worst == 0.03125 && c[2].median == 0.03125);
    assert_int_equal(r->unplaced, 1);
    assert_int_equal(r->beyond, 1);
    assert_true(r->low == 0.01 && r->high == 10);
}

static void a_cell_has_its_worst_and_its_median(void **state) {
    (void)state;
    static const struct figure_row rows[] = {
        {"i", "update", "param/a", 0.25, 1},     {"i", "update", "exp_avg/a", -1, 2}, // the size counts
        {"i", "update", "exp_avg_sq/a", 1, 8},   {"i", "gradient", "grad/a", 0.25, 8},
        {"i", "update", "b", NAN, 1},            {"i", "gradient", "b", 0, 8},         // nothing to draw
        {"i", "exact", "a", 3, 0},                                                    // no bound, no ratio
    };
    struct ratios r;
    with_figures(rows, sizeof rows / sizeof *rows, (struct ratio_limits){9, 9, 9}, &r, look_at_cells);
}

static void look_at_choice(const struct ratios *r) {
    assert_int_equal(r->panel_count, 1);
    assert_string_equal(r->panels[0], "i");
    assert_int_equal(r->panels_left, 1);
    assert_int_equal(r->series_count, 2);
    assert_int_equal(r->series_left, 1);
    assert_int_equal(r->row_count, 3);
    assert_string_equal(r->rows[0], "a");
    assert_string_equal(r->rows[1], "b");
    assert_string_equal(r->rows[2], "z"); // c is worse, but then gradient would have no row
    assert_int_equal(r->rows_left, 2);    // c, and d of the panel that stays; the checks that go take their rows along
    for (int i = 0; i < r->cell_count; i++)
        assert_true(r->cells[i].panel == 0 && r->cells[i].series < 2 && r->cells[i].row < 3);
    assert_int_equal(r->cell_count, 3);
}

static void each_check_keeps_a_row_and_what_goes_is_counted(void **state) {
    (void)state;
    static const struct figure_row rows[] = {
        {"i", "update", "a", 0.9, 1}, {"i", "update", "b", 0.8, 1},   {"i", "update", "c", 0.7, 1},  {"i", "update", "d", 0.6, 1},
        {"i", "gradient", "z", 0.1, 1}, {"i", "loss", "loss", 0.05, 1}, {"j", "update", "y", 0.95, 1},
    };
    struct ratios r;
    with_figures(rows, sizeof rows / sizeof *rows, (struct ratio_limits){1, 2, 3}, &r, look_at_choice);
}

static void ranks_are_of_calibrated_cases_in_order(void **state) {
    (void)state;
    static const struct { const char *layer, *strategy; int ranks; double figure; } rows[] = {
        {"calibrated", "full", 8, 0.5}, {"calibrated", "full", 2, 0.25}, {"calibrated", "full", 2, 0.75}, {"calibrated", "none", 10, 0.125},
        {"calibrated", "none", 6, 0}, {"witness", "none", 7, 0.9},
    };
    const char *path = sample_path("r.db");
    struct store *s = sample_open(path);
    struct stored_run run;
    struct view v;
    struct ratios r;
    int64_t id = sample_begin(s, "x");
    for (int i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        struct result result = sample_result("gradient", VERDICT_PASS, rows[i].figure, 1, "", "");
        struct case_record c = sample_case("i", name, "f", rows[i].strategy, rows[i].ranks, &result, 1);
        c.layer = rows[i].layer;
        sample_record(s, id, &c);
    }
    load(s, &run);
    view_make(&run, &v);
    ratios_by_ranks(&v, (struct ratio_limits){9, 9, 9}, &r);
    assert_int_equal(r.row_count, 3);
    assert_string_equal(r.rows[0], "2");
    assert_string_equal(r.rows[1], "8");
    assert_string_equal(r.rows[2], "10");
    assert_string_equal(r.series[0], "full");
    assert_true(r.cells[0].row == 0 && r.cells[0].worst == 0.75);
    assert_int_equal(r.unplaced, 1);
    ratios_free(&r);
    view_free(&v);
    stored_run_free(&run);
    store_close(s);
    sample_remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cell_has_its_worst_and_its_median),
        cmocka_unit_test(each_check_keeps_a_row_and_what_goes_is_counted),
        cmocka_unit_test(ranks_are_of_calibrated_cases_in_order),
    };
    return cmocka_run_group_tests_name("ratios of a report", tests, NULL, NULL);
}
