// The results store: what goes in comes out, whatever happens to the program that writes.
#include "harness/store/tests/sample.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "harness/store/connection.h"
#include "harness/store/verdicts.h"

static void everything_recorded_comes_back(void **state) {
    (void)state;
    const char *path = sample_path("r.db");
    struct store *s = sample_open(path);
    struct error error = {0};
    int64_t run = sample_begin(s, "fsdpmark check -i reference");
    sample_plan(s, run, "reference", 9);
    struct result results[] = {
        sample_result("step-bitwise", VERDICT_PASS, 0, 0, "elements", "all equal"),
        sample_result("norm", VERDICT_FAIL, NAN, 2, "ulp", "the figure is NaN"),
        sample_result("loss", VERDICT_FAIL, INFINITY, 1e-3, "ratio", "bytes \xff\xfe, \"quotes\", 'ticks', \n\x1b"),
        sample_result("traffic", VERDICT_SKIP, NAN, NAN, "", ""),
    };
    struct case_record c = sample_case("reference", "exact-mlp.full.n2", "exact-mlp", "full", 2, results, 4);
    c.seed = UINT64_MAX;
    c.judge_seconds = NAN;
    c.log_tail = "rank0: oops";
    c.figures = json_pack("[{s:s, s:f}]", "tensor", "w", "figure", 0.5);
    sample_record(s, run, &c);
    json_decref(c.figures);
    assert_true(store_end_run(s, run, 1, &error));

    struct stored_run r;
    if (!store_load_run(s, 0, &r, &error)) fail_msg("%s", error.text);
    assert_int_equal(r.id, run);
    assert_string_equal(r.command, "fsdpmark check -i reference");
    assert_string_equal(r.profile, "core");
    assert_string_equal(r.pattern, "exact*");
    assert_int_equal(r.seed, 42);
    assert_int_equal(r.exit_status, 1);
    assert_true(r.ended_normally);
    assert_int_equal(strlen(r.started), strlen("2026-01-01T00:00:00Z"));
    assert_string_equal(json_string_value(json_object_get(r.environment, "host")), "node-7");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(r.implementations, "reference"), "planned")), 9);
    assert_int_equal(r.case_count, 1);
    const struct stored_case *k = &r.cases[0];
    assert_string_equal(k->implementation, "reference");
    assert_string_equal(k->case_id, "exact-mlp.full.n2");
    assert_string_equal(k->family, "exact-mlp");
    assert_string_equal(k->layer, "exact");
    assert_string_equal(k->model, "mlp");
    assert_string_equal(k->strategy, "full");
    assert_string_equal(k->layout, "flat");
    assert_string_equal(k->compute, "f32");
    assert_string_equal(k->origin, "suite/cases/exact.yaml:12");
    assert_string_equal(k->log_tail, "rank0: oops");
    assert_string_equal(k->case_json, "{}");
    assert_int_equal(k->world_size, 2);
    assert_int_equal(k->start, 1);
    assert_true(k->seed == UINT64_MAX);
    assert_true(k->seconds == 0.25 && isnan(k->judge_seconds));
    assert_int_equal(k->verdict, VERDICT_FAIL);
    assert_true(json_real_value(json_object_get(json_array_get(k->figures, 0), "figure")) == 0.5);
    assert_int_equal(k->result_count, 4);
    for (int i = 0; i < 4; i++) {
        const struct finding *f = &results[i].finding;
        assert_string_equal(k->results[i].check, results[i].check);
        assert_int_equal(k->results[i].verdict, f->verdict);
        assert_string_equal(k->results[i].unit, f->unit);
        assert_string_equal(k->results[i].message, f->message);
        assert_string_equal(k->results[i].classes, f->classes);
        assert_string_equal(k->results[i].ranks, f->ranks);
        assert_true(isnan(f->figure) ? isnan(k->results[i].figure) : k->results[i].figure == f->figure);
        assert_true(isnan(f->bound) ? isnan(k->results[i].bound) : k->results[i].bound == f->bound);
    }
    stored_run_free(&r);
    store_close(s);
    sample_remove(path);
}

// The verdict of a case, by which of the four verdicts it has (bit v of the row's number), in C and in the view.
static void the_worst_verdict_is_the_cases(void **state) {
    (void)state;
    const char *path = sample_path("r.db");
    struct store *s = sample_open(path);
    struct error error = {0};
    int64_t run = sample_begin(s, "x");
    for (int set = 0; set < 16; set++) {
        struct result results[4];
        char id[16];
        int count = 0;
        for (int v = 3; v >= 0; v--)
            if (set >> v & 1) results[count++] = sample_result("c", (enum verdict)v, 0, 0, "", "");
        snprintf(id, sizeof id, "set%d", set);
        struct case_record c = sample_case("i", id, "f", "full", 1, results, count);
        sample_record(s, run, &c);
    }
    struct stored_run r;
    assert_true(store_load_run(s, run, &r, &error));
    sqlite3_stmt *view;
    assert_int_equal(sqlite3_prepare_v2(s->db, "SELECT verdict FROM case_verdict ORDER BY cast(substr(case_id, 4) AS INTEGER)",
                                        -1, &view, NULL), SQLITE_OK);
    for (int set = 0; set < 16; set++) {
        enum verdict expected = !set || set >> VERDICT_BROKEN & 1 ? VERDICT_BROKEN : set >> VERDICT_FAIL & 1 ? VERDICT_FAIL
                                : set >> VERDICT_SKIP & 1 ? VERDICT_SKIP : VERDICT_PASS;
        assert_int_equal(r.cases[set].verdict, expected);
        assert_int_equal(sqlite3_step(view), SQLITE_ROW);
        assert_string_equal((const char *)sqlite3_column_text(view, 0), verdict_name(expected));
    }
    sqlite3_finalize(view);
    stored_run_free(&r);
    store_close(s);
    sample_remove(path);
}

static void record_numbered(struct store *s, int64_t run, int number) {
    char id[32];
    struct result results[] = {sample_result("a", VERDICT_PASS, 0, 0, "", "one"), sample_result("b", VERDICT_PASS, 0, 0, "", "two")};
    snprintf(id, sizeof id, "case%d", number);
    struct case_record c = sample_case("reference", id, "f", "full", 2, results, 2);
    sample_record(s, run, &c);
}

// Kills a writer that has recorded `cases` cases and is recording on.
static void kill_writer_after(const char *path, int cases, bool inside_transaction) {
    int pipe_ends[2], status;
    assert_int_equal(pipe(pipe_ends), 0);
    pid_t writer = fork();
    if (!writer) {
        struct store *s = sample_open(path);
        int64_t run = sample_begin(s, "fsdpmark check");
        for (int i = 0;; i++) {
            if (inside_transaction && i == cases) {
                store_run(s, SQL_BEGIN, NULL, "");
                store_run(s, SQL_RECORD_CASE, NULL, "ittttttttiittrritt", run, "reference", "half", "", "", "", "", "", "", (int64_t)1,
                          (int64_t)1, "", "", 0.0, 0.0, (int64_t)1, "", "");
            } else {
                record_numbered(s, run, i);
            }
            if (write(pipe_ends[1], "x", 1) != 1) _exit(1);
            if (inside_transaction && i == cases) pause();
        }
    }
    for (int i = 0; i < cases + inside_transaction; i++) {
        char byte;
        assert_int_equal(read(pipe_ends[0], &byte, 1), 1);
    }
    kill(writer, SIGKILL);
    waitpid(writer, &status, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static void a_killed_writers_store_opens_and_resumes(void **state) {
    (void)state;
    for (int inside = 0; inside < 2; inside++) {
        const char *path = sample_path("r.db");
        struct error error = {0};
        kill_writer_after(path, 7, inside);
        struct store *s;
        struct stored_run r;
        if (!store_open(path, true, &s, &error)) fail_msg("%s", error.text);
        if (!store_load_run(s, 0, &r, &error)) fail_msg("%s", error.text);
        assert_false(r.ended_normally);
        assert_true(inside ? r.case_count == 7 : r.case_count >= 7);
        for (int i = 0; i < r.case_count; i++) assert_int_equal(r.cases[i].result_count, 2);
        int whole = r.case_count;
        int64_t run = r.id;
        stored_run_free(&r);
        store_close(s);

        s = sample_open(path);
        assert_false(store_has_case(s, run, "reference", "half"));
        for (int i = 0; i < whole + 3; i++) {
            char id[32];
            snprintf(id, sizeof id, "case%d", i);
            assert_int_equal(store_has_case(s, run, "reference", id), i < whole);
            if (i >= whole) record_numbered(s, run, i);
        }
        assert_true(store_end_run(s, run, 0, &error));
        assert_true(store_load_run(s, run, &r, &error));
        assert_int_equal(r.case_count, whole + 3);
        assert_true(r.ended_normally);
        stored_run_free(&r);
        store_close(s);
        sample_remove(path);
    }
}

static void a_case_is_recorded_once_and_whole(void **state) {
    (void)state;
    const char *path = sample_path("r.db");
    struct store *s = sample_open(path);
    struct error error = {0};
    int64_t run = sample_begin(s, "x");
    record_numbered(s, run, 1);
    struct case_record again = sample_case("reference", "case1", "f", "full", 2, NULL, 0);
    assert_false(store_record_case(s, run, &again, &error));
    assert_non_null(strstr(error.text, "run 1 has case case1 of reference already"));

    struct result results[] = {sample_result("a", VERDICT_PASS, 0, 0, "", ""), sample_result(NULL, VERDICT_PASS, 0, 0, "", "")};
    struct case_record bad = sample_case("reference", "bad", "f", "full", 2, results, 2);
    error = (struct error){0};
    assert_false(store_record_case(s, run, &bad, &error));
    assert_non_null(strstr(error.text, "NOT NULL constraint failed: result.check_name"));
    assert_false(store_has_case(s, run, "reference", "bad"));
    error = (struct error){0};
    assert_false(store_record_case(s, 99, &bad, &error)); // no such run
    assert_non_null(strstr(error.text, "FOREIGN KEY"));
    record_numbered(s, run, 2);
    assert_true(store_has_case(s, run, "reference", "case2"));
    store_close(s);
    sample_remove(path);
}

static void execute(const char *path, const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void refuses(const char *path, bool read_only, const char *message) {
    struct store *s = NULL;
    struct error error = {0};
    assert_false(store_open(path, read_only, &s, &error));
    assert_null(s);
    assert_memory_equal(error.text, path, strlen(path));
    if (strcmp(error.text + strlen(path), message)) fail_msg("got \"%s\", expected \"PATH%s\"", error.text, message);
}

static void other_files_are_refused_by_name(void **state) {
    (void)state;
    const char *path = sample_path("r.db");
    refuses(path, true, ": no such file, expected a results store (`fsdpmark check` writes one)");
    fclose(fopen(path, "w"));
    refuses(path, true, ": an empty file, expected a results store (`fsdpmark check` writes one)");
    store_close(sample_open(path));
    execute(path, "PRAGMA user_version = 1");
    refuses(path, false, ": results store of schema version 1, this program reads versions 2 to 5; use the fsdpmark that wrote it, or another file");
    execute(path, "PRAGMA user_version = 7");
    for (int read_only = 0; read_only < 2; read_only++)
        refuses(path, read_only, ": results store of schema version 7, this program reads versions 2 to 5; "
                                 "use the fsdpmark that wrote it, or another file");
    execute(path, "PRAGMA application_id = 77");
    refuses(path, false, ": not a results store: a SQLite database of another program (application id 77, expected 1179862096)");
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 4000; i++) fputs("text ", f);
    fclose(f);
    refuses(path, false, ": not a results store: the file is no SQLite database");
    refuses(path, true, ": not a results store: the file is no SQLite database");
    refuses("/nonexistent/r.db", false, ": cannot open the results store: unable to open database file");
    sample_remove(path);
}

static char *read_file(const char *path) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_true(getdelim(&text, &bytes, 0, in) > 0);
    fclose(in);
    return text;
}

// A store as that version wrote it, with one run of one case.
static void make_old(const char *path, int version) {
    char schema_path[64];
    snprintf(schema_path, sizeof schema_path, "harness/store/tests/schema-%d.sql", version);
    char *schema = read_file(schema_path);
    unlink(path);
    execute(path, schema);
    execute(path, "INSERT INTO run (command, seed, started, environment) VALUES ('old', 1, '2026-01-01T00:00:00Z', '{}');"
                  "INSERT INTO plan (run, implementation, planned, versions) VALUES (1, 'i', 1, '{}');"
                  "INSERT INTO judged_case (run, implementation, case_id, world_size, seed, start) VALUES (1, 'i', 'c', 2, 1, 1);"
                  "INSERT INTO result (judged_case, position, check_name, verdict) VALUES (1, 0, 'check', 'FAIL')");
    free(schema);
}

static char *schema_of(const char *path) {
    char *text = NULL;
    size_t bytes;
    sqlite3 *db;
    sqlite3_stmt *q;
    FILE *out = open_memstream(&text, &bytes);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT m.type, m.name, t.name, t.type, t.\"notnull\" FROM sqlite_master m "
                                            "LEFT JOIN pragma_table_info(m.name) t ORDER BY 1, 2, 3", -1, &q, NULL), SQLITE_OK);
    while (sqlite3_step(q) == SQLITE_ROW) {
        for (int i = 0; i < 5; i++) fprintf(out, "%s ", (const char *)sqlite3_column_text(q, i));
        fputc('\n', out);
    }
    sqlite3_finalize(q);
    sqlite3_close(db);
    fclose(out);
    return text;
}

// Opened to be read or to be written, an old store has the tables of a new one, and what was in it.
static void old_stores_are_brought_up_to_date(void **state) {
    (void)state;
    char fresh[256];
    snprintf(fresh, sizeof fresh, "%s", sample_path("fresh.db"));
    store_close(sample_open(fresh));
    char *expected = schema_of(fresh);
    for (int i = 0; i < 6; i++) {
        bool read_only = i % 2;
        char path[256];
        struct store *s;
        struct error error = {0};
        struct stored_run r;
        snprintf(path, sizeof path, "%s", sample_path("old.db"));
        make_old(path, 2 + i / 2);
        for (int again = 0; again < 2; again++) {
            if (!store_open(path, read_only, &s, &error)) fail_msg("%s", error.text);
            if (!store_load_run(s, 1, &r, &error)) fail_msg("%s", error.text);
            assert_int_equal(r.case_count, 1);
            assert_int_equal(r.cases[0].verdict, VERDICT_FAIL);
            assert_false(r.cases[0].waived);
            assert_string_equal(r.cases[0].note, "");
            assert_null(r.cases[0].probes);
            stored_run_free(&r);
            store_close(s);
        }
        char *found = schema_of(path);
        assert_string_equal(found, expected);
        free(found);
        sample_remove(path);
    }
    free(expected);
    sample_remove(fresh);
}

static void an_old_store_that_cannot_be_written_is_refused(void **state) {
    (void)state;
    const char *path = sample_path("old.db");
    char folder[256];
    make_old(path, 2);
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    assert_int_equal(chmod(path, 0444) | chmod(folder, 0555), 0);
    pid_t reader = fork();
    if (!reader) {
        struct store *s;
        struct error error = {0};
        if (!getuid() && setuid(65534)) _exit(3);
        bool ok = store_open(path, true, &s, &error);
        bool said = strstr(error.text, "old.db: results store of schema version 2, which must be brought to version 5, and cannot be written here");
        if (!said) fprintf(stderr, "%s\n", error.text);
        _exit(!ok && said ? 0 : 4);
    }
    int status;
    waitpid(reader, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    sample_remove(path);
}

// What the probes saw comes back whole, and the view of phases reads it.
static void what_probes_saw_comes_back(void **state) {
    (void)state;
    const char *path = sample_path("r.db");
    struct store *s = sample_open(path);
    struct error error = {0};
    int64_t run = sample_begin(s, "x");
    struct result r = sample_result("a", VERDICT_PASS, 0, 0, "", "");
    struct case_record c = sample_case("i", "c", "f", "full", 1, &r, 1), bare = sample_case("i", "d", "f", "full", 1, &r, 1);
    c.probes = json_loads("{\"ranks\": [{\"rank\": 0, \"probes\": \"heap\", \"phases\": [{\"name\": \"forward\", \"step\": 2, \"us\": [10, 30], "
                          "\"heap\": [1, 5, 9]}]}]}", 0, NULL);
    assert_non_null(c.probes);
    sample_record(s, run, &c);
    sample_record(s, run, &bare);
    struct stored_run back;
    if (!store_load_run(s, run, &back, &error)) fail_msg("%s", error.text);
    assert_true(json_equal(back.cases[0].probes, c.probes));
    assert_null(back.cases[1].probes);
    stored_run_free(&back);
    store_close(s);
    sqlite3 *db;
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT rank, phase, step, begin_s, end_s, heap_end, heap_peak FROM probe_phase", -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(q, 1), "forward");
    assert_true(sqlite3_column_int(q, 0) == 0 && sqlite3_column_int(q, 2) == 2 && sqlite3_column_int(q, 5) == 5 && sqlite3_column_int(q, 6) == 9);
    assert_true(fabs(sqlite3_column_double(q, 3) - 1e-5) < 1e-9 && fabs(sqlite3_column_double(q, 4) - 3e-5) < 1e-9);
    assert_int_equal(sqlite3_step(q), SQLITE_DONE);
    sqlite3_finalize(q);
    sqlite3_close(db);
    json_decref(c.probes);
    sample_remove(path);
}

static void waivers_are_recorded_once_and_come_back(void **state) {
    (void)state;
    const char *path = sample_path("r.db");
    struct store *s = sample_open(path);
    struct error error = {0};
    int64_t run = sample_begin(s, "x"), other = sample_begin(s, "y"), ids[4], waivers[3];
    struct waiver_record w = {"i", "a, b", "c*", "torch >=2", "why", "page.md#x", "9999-12-31", "w.yaml:3"}, old = w;
    old.expires = "2020-02-29";
    if (!store_add_waiver(s, run, &w, &ids[0], &error) || !store_add_waiver(s, run, &w, &ids[1], &error) ||
        !store_add_waiver(s, run, &old, &ids[2], &error) || !store_add_waiver(s, other, &w, &ids[3], &error))
        fail_msg("%s", error.text);
    assert_true(ids[0] == ids[1] && ids[0] != ids[2] && ids[0] != ids[3]);
    struct result results[] = {sample_result("a", VERDICT_FAIL, 1, 0, "", ""), sample_result("b", VERDICT_FAIL, 1, 0, "", ""), sample_result("b", VERDICT_PASS, 0, 0, "", "")};
    const int64_t by_case[][3] = {{ids[0], ids[0], 0}, {ids[0], ids[2], 0}, {ids[0], 0, ids[0]}};
    for (int i = 0; i < 3; i++) {
        char id[8];
        snprintf(id, sizeof id, "c%d", i);
        memcpy(waivers, by_case[i], sizeof waivers);
        struct case_record c = sample_case("i", id, "f", "full", 1, results, 3);
        c.waivers = waivers;
        c.note = i ? NULL : "noted";
        sample_record(s, run, &c);
    }
    struct stored_run r;
    if (!store_load_run(s, run, &r, &error)) fail_msg("%s", error.text);
    assert_int_equal(r.waiver_count, 2);
    assert_true(r.cases[0].waived && !r.cases[1].waived && !r.cases[2].waived);
    assert_true(r.cases[1].results[0].waived && !r.cases[1].results[1].waived && r.cases[1].results[1].waiver->expired);
    assert_true(!r.cases[2].results[2].waived && r.cases[2].results[2].waiver == &r.waivers[0] && !r.cases[2].results[1].waiver);
    assert_string_equal(r.cases[0].note, "noted");
    const struct stored_waiver *back = &r.waivers[0];
    const char *const pairs[][2] = {{back->implementation, w.implementation}, {back->checks, w.checks}, {back->cases, w.cases}, {back->versions, w.versions},
                                    {back->reason, w.reason}, {back->page, w.page}, {back->expires, w.expires}, {back->origin, w.origin}};
    for (int i = 0; i < 8; i++) assert_string_equal(pairs[i][0], pairs[i][1]);
    stored_run_free(&r);
    json_t *runs;
    assert_true(store_list_runs(s, &runs, &error)); // the view says the same
    assert_int_equal(json_integer_value(json_object_get(json_array_get(runs, 0), "waived")), 1);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(runs, 0), "fail")), 4); // and the expired waiver, as in a report
    json_decref(runs);
    store_close(s);
    sample_remove(path);
}

static void a_missing_run_is_named_with_those_there(void **state) {
    (void)state;
    const char *path = sample_path("r.db");
    struct store *s = sample_open(path);
    struct stored_run r;
    struct error error = {0};
    assert_false(store_load_run(s, 0, &r, &error));
    assert_non_null(strstr(error.text, "r.db: holds no runs (`fsdpmark check` records one)"));
    sample_begin(s, "one");
    int64_t run = sample_begin(s, "two");
    record_numbered(s, run, 1);
    error = (struct error){0};
    assert_false(store_load_run(s, 8, &r, &error));
    assert_non_null(strstr(error.text, "no run 8; it holds, newest first: 2, 1"));
    for (int i = 0; i < 20; i++) sample_begin(s, "more");
    error = (struct error){0};
    assert_false(store_load_run(s, 88, &r, &error));
    assert_non_null(strstr(error.text, "newest first: 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, ..."));
    json_t *runs;
    assert_true(store_list_runs(s, &runs, &error));
    assert_int_equal(json_array_size(runs), 22);
    json_t *second = json_array_get(runs, 1);
    assert_string_equal(json_string_value(json_object_get(second, "command")), "two");
    assert_int_equal(json_integer_value(json_object_get(second, "pass")), 1);
    assert_int_equal(json_integer_value(json_object_get(second, "cases")), 1);
    assert_true(json_is_null(json_object_get(second, "ended")));
    assert_int_equal(json_integer_value(json_object_get(json_array_get(runs, 2), "cases")), 0);
    json_decref(runs);
    store_close(s);
    sample_remove(path);
}

static void writers_take_turns(void **state) {
    (void)state;
    enum { WRITERS = 4, CASES = 25 };
    const char *path = sample_path("r.db");
    for (int w = 0; w < WRITERS; w++)
        if (!fork()) {
            struct store *s = sample_open(path);
            int64_t run = sample_begin(s, "writer");
            for (int i = 0; i < CASES; i++) record_numbered(s, run, i);
            store_close(s);
            _exit(0);
        }
    for (int w = 0, status; w < WRITERS; w++) {
        assert_true(wait(&status) > 0);
        assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
    }
    struct store *s = sample_open(path);
    for (int64_t run = 1; run <= WRITERS; run++) {
        struct stored_run r;
        struct error error = {0};
        assert_true(store_load_run(s, run, &r, &error));
        assert_int_equal(r.case_count, CASES);
        stored_run_free(&r);
    }
    store_close(s);
    sample_remove(path);
}

// As a user who may not write there (root may write anywhere, so a child steps down).
static void a_store_in_a_read_only_folder_is_read(void **state) {
    (void)state;
    const char *path = sample_path("100%?#.db");
    struct store *s = sample_open(path);
    record_numbered(s, sample_begin(s, "x"), 1);
    store_close(s);
    char folder[256];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    assert_int_equal(chmod(path, 0444) | chmod(folder, 0555), 0);
    pid_t reader = fork();
    if (!reader) {
        struct stored_run r;
        struct error error = {0};
        if (!getuid() && setuid(65534)) _exit(3);
        bool ok = store_open(path, true, &s, &error) && store_load_run(s, 0, &r, &error) && r.case_count == 1;
        if (!ok) fprintf(stderr, "%s\n", error.text);
        _exit(ok ? 0 : 4);
    }
    int status;
    waitpid(reader, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    sample_remove(path);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void twenty_thousand_results_take_seconds(void **state) {
    (void)state;
    const char *path = sample_path("r.db");
    struct store *s = sample_open(path);
    double began = seconds();
    int64_t run = sample_begin(s, "x");
    for (int i = 0; i < 10000; i++) record_numbered(s, run, i);
    struct stored_run r;
    struct error error = {0};
    assert_true(store_load_run(s, run, &r, &error));
    assert_int_equal(r.case_count, 10000);
    stored_run_free(&r);
    double took = seconds() - began;
    print_message("10000 cases of 2 results written and read in %.2f s\n", took);
    assert_true(took < 60); // far above what it takes, sanitizers on a busy machine included
    store_close(s);
    sample_remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_recorded_comes_back),
        cmocka_unit_test(the_worst_verdict_is_the_cases),
        cmocka_unit_test(a_killed_writers_store_opens_and_resumes),
        cmocka_unit_test(a_case_is_recorded_once_and_whole),
        cmocka_unit_test(other_files_are_refused_by_name),
        cmocka_unit_test(old_stores_are_brought_up_to_date),
        cmocka_unit_test(an_old_store_that_cannot_be_written_is_refused),
        cmocka_unit_test(what_probes_saw_comes_back),
        cmocka_unit_test(waivers_are_recorded_once_and_come_back),
        cmocka_unit_test(a_missing_run_is_named_with_those_there),
        cmocka_unit_test(writers_take_turns),
        cmocka_unit_test(a_store_in_a_read_only_folder_is_read),
        cmocka_unit_test(twenty_thousand_results_take_seconds),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
