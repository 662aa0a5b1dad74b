// Measured series: what goes in comes out, launch by launch; what is wrong is refused.
#include "harness/store/tests/sample.h"

#include "harness/store/series.h"

static int64_t add(struct store *s, int64_t run, const char *tool, const char *name, int bytes) {
    struct error error = {0};
    int64_t id = 0;
    json_t *point = json_pack("{s:i, s:i}", "ranks", 2, "bytes", bytes), *facts = json_pack("{s:i}", "errors", 0);
    struct series x = {.tool = tool, .fabric = "shm", .subject = "mpi", .name = name, .quantity = "seconds", .point = point, .facts = facts};
    if (!store_add_series(s, run, &x, &id, &error)) fail_msg("%s", error.text);
    json_decref(point);
    json_decref(facts);
    return id;
}

static void put(struct store *s, int64_t id, int launch, int count, const double *values) {
    struct error error = {0};
    if (!store_add_samples(s, id, launch, count, values, &error)) fail_msg("%s", error.text);
}

static void samples_come_back_by_launch(void **state) {
    (void)state;
    const char *path = sample_path("r.db");
    const double values[] = {0.1, 1e-9, 1.0 / 3, 7, 5, 3, 2};
    struct error error = {0};
    struct store *s = sample_open(path);
    int64_t run = sample_begin(s, "fsdpmark net");
    int64_t a = add(s, run, "net", "all-gather", 8), none = add(s, run, "net", "all-gather", 16), b = add(s, run, "net", "reduce-scatter", 8);
    put(s, b, 4, 2, values + 5); // launches interleave, and are neither dense nor in order
    put(s, a, 1, 2, values + 2);
    put(s, a, 0, 2, values);
    put(s, a, 1, 1, values + 4); // more of the same launch
    put(s, none, 0, 0, NULL);
    json_t *facts = json_pack("{s:i, s:s}", "errors", 3, "note", "late");
    assert_true(store_set_series_facts(s, b, facts, &error));

    struct stored_serieses all;
    if (!store_load_series(s, 0, NULL, &all, &error)) fail_msg("%s", error.text);
    assert_int_equal(all.count, 3);
    const struct stored_series *x = &all.items[0];
    assert_true(x->id == a && x->run == run);
    assert_string_equal(x->tool, "net");
    assert_string_equal(x->fabric, "shm");
    assert_string_equal(x->subject, "mpi");
    assert_string_equal(x->name, "all-gather");
    assert_string_equal(x->quantity, "seconds");
    assert_int_equal(json_integer_value(json_object_get(x->point, "bytes")), 8);
    assert_int_equal(json_integer_value(json_object_get(x->facts, "errors")), 0);
    assert_int_equal(x->count, 5);
    assert_memory_equal(x->values, values, 5 * sizeof *values);
    assert_int_equal(x->launch_count, 2);
    assert_int_equal(x->launches[0].count, 2);
    assert_int_equal(x->launches[1].count, 3);
    assert_ptr_equal(x->launches[1].values, x->values + 2);
    assert_true(all.items[1].count == 0 && all.items[1].launch_count == 0);
    assert_true(all.items[2].launch_count == 1 && all.items[2].launches[0].values[1] == 2);
    assert_true(json_equal(all.items[2].facts, facts));
    json_decref(facts);
    stored_series_free(&all);
    assert_int_equal(all.count, 0);
    store_close(s);
    sample_remove(path);
}

static void the_newest_run_of_a_tool_is_found(void **state) {
    (void)state;
    const char *path = sample_path("r.db");
    struct error error = {0};
    struct stored_serieses all;
    struct stored_run cases;
    struct store *s = sample_open(path);
    assert_false(store_load_series(s, 0, "net", &all, &error));
    assert_non_null(strstr(error.text, ": holds no measured series of net"));
    int64_t net = sample_begin(s, "net"), bench = sample_begin(s, "bench"), check = sample_begin(s, "check");
    sample_plan(s, check, "reference", 1);
    int64_t last = sample_begin(s, "net, later");
    sample_plan(s, last, "reference", 0); // as bench tells its versions
    add(s, net, "net", "all-gather", 8);
    add(s, bench, "bench", "gpt", 0);
    add(s, last, "net", "broadcast", 8);
    add(s, last, "validate", "gpt", 8);
    const struct { int64_t run; const char *tool; int64_t found; int count; } rows[] = {
        {0, "net", last, 1}, {0, "bench", bench, 1}, {0, NULL, last, 2}, {net, NULL, net, 1}, {last, "validate", last, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(store_load_series(s, rows[i].run, rows[i].tool, &all, &error));
        assert_int_equal(all.count, rows[i].count);
        assert_int_equal(all.items[0].run, rows[i].found);
        stored_series_free(&all);
    }
    error = (struct error){0};
    assert_false(store_load_series(s, check, NULL, &all, &error));
    assert_non_null(strstr(error.text, ": run 3 holds no measured series"));
    // Reports of verdicts are about the newest run of cases.
    assert_true(store_load_run(s, 0, &cases, &error));
    assert_int_equal(cases.id, check);
    assert_true(stored_run_judges(&cases));
    stored_run_free(&cases);
    assert_true(store_load_newest(s, NULL, 0, &cases, &error));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(cases.implementations, "reference"), "planned")), 1);
    stored_run_free(&cases);
    assert_true(store_load_run(s, last, &cases, &error));
    assert_false(stored_run_judges(&cases));
    stored_run_free(&cases);
    store_close(s);
    sample_remove(path);
}

static void what_is_wrong_is_refused(void **state) {
    (void)state;
    const char *path = sample_path("r.db");
    const double bad[] = {1, NAN}, infinite[] = {INFINITY}, good[] = {1};
    int64_t id;
    struct error error = {0};
    struct stored_serieses all;
    struct store *s = sample_open(path);
    int64_t run = sample_begin(s, "net"), a = add(s, run, "net", "all-gather", 8);
    // The same point in another order of its keys.
    json_t *point = json_pack("{s:i, s:i}", "bytes", 8, "ranks", 2);
    struct series again = {.tool = "net", .fabric = "shm", .subject = "mpi", .name = "all-gather", .quantity = "seconds", .point = point};
    assert_false(store_add_series(s, run, &again, &id, &error));
    assert_non_null(strstr(error.text, "UNIQUE constraint failed"));
    again.point = NULL, error = (struct error){0};
    assert_false(store_add_series(s, run, &again, &id, &error));
    assert_non_null(strstr(error.text, "its point is no JSON object"));
    again.point = point, error = (struct error){0};
    assert_false(store_add_series(s, 99, &again, &id, &error));
    assert_non_null(strstr(error.text, "FOREIGN KEY"));
    json_decref(point);
    error = (struct error){0};
    assert_false(store_add_samples(s, a, 0, 2, bad, &error));
    assert_non_null(strstr(error.text, "sample 1 of launch 0 of series 1 is nan, expected a finite number"));
    error = (struct error){0};
    assert_false(store_add_samples(s, a, 0, 1, infinite, &error));
    error = (struct error){0};
    assert_false(store_add_samples(s, 77, 0, 1, good, &error));
    assert_non_null(strstr(error.text, "FOREIGN KEY"));
    error = (struct error){0};
    assert_false(store_set_series_facts(s, 77, NULL, &error));
    assert_non_null(strstr(error.text, "no series 77"));
    assert_true(store_load_series(s, run, NULL, &all, &error));
    assert_int_equal(all.items[0].count, 0); // nothing of what was refused is there
    stored_series_free(&all);
    store_close(s);
    sample_remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_come_back_by_launch),
        cmocka_unit_test(the_newest_run_of_a_tool_is_found),
        cmocka_unit_test(what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests_name("series", tests, NULL, NULL);
}
