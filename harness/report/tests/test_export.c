// A run with results, series and timelines, exported in every format and parsed back: nothing is lost, and traces are what their formats ask for.
#include "harness/report/export.h"

#include <math.h>

#include "harness/protocol/tests/temporary.h"
#include "harness/store/tests/sample.h"
#define sample_case sample_json // the store's sample has that name too
#include "harness/protocol/tests/sample.h"
#undef sample_case

enum { SAMPLES = 5 };
static const char *path;
static struct store *store;
static struct stored_run run;
static struct stored_serieses series;

// Two ranks; forward 0 to 100 us, backward 100 to 250, step 250 to 300, of steps 0 and 1; the spans are of step 1.
static json_t *seen(void) {
    json_t *ranks = json_array();
    for (int r = 0; r < 2; r++) {
        json_t *phases = json_array();
        for (int s = 0; s < 2; s++) {
            static const struct { const char *name; int from, to; } parts[] = {{"forward", 0, 100}, {"backward", 100, 250}, {"step", 250, 300}, {"observe", 300, 400}};
            for (int i = 0; i < 4; i++)
                json_array_append_new(phases, json_pack("{s:s, s:i, s:[i, i], s:[i, i, i]}", "name", parts[i].name, "step", s, "us", 1000 * s + parts[i].from, 1000 * s + parts[i].to, "heap", 10, 20 + r, 30));
        }
        json_t *spans = json_loads("[[\"collective\", \"all-gather\", 1010, 1050, 4096], [\"collective\", \"reduce-scatter\", 1120, 1200, 2048], [\"collective\", \"barrier\", 1260, 1261, 0], "
                                   "[\"point\", \"send\", 1130, 1140, 64], [\"point\", \"receive\", 1141, 1150, 64], [\"send\", null, 1011, 1040, 4100], [\"receive\", null, 1012, 1041, 4100], [\"wait\", \"none\", 1210, 1240, 0]]", 0, NULL);
        json_array_append_new(ranks, json_pack("{s:i, s:s, s:o, s:i, s:o}", "rank", r, "probes", "heap,mpi,socket", "phases", phases, "step", 1, "spans", spans));
    }
    return json_pack("{s:o}", "ranks", ranks);
}

static char *spec(const char *id) {
    json_t *c = json_loads(sample_json, 0, NULL);
    json_object_set_new(c, "id", json_string(id));
    char *text = json_dumps(c, JSON_COMPACT);
    json_decref(c);
    return text;
}

static void add_case(int64_t id, const char *name, bool probed) {
    struct result r[2] = {sample_result("step-bitwise", VERDICT_PASS, 0, 0, "elements", ""), sample_result("gradient-ratio", VERDICT_FAIL, 9, 4, "ratio", "a \"quoted\", message\nof two lines")};
    struct case_record c = sample_case("reference", name, "exact", "full", 2, r, 2);
    char *text = spec(name);
    c.case_json = text;
    c.figures = json_pack("[{s:s, s:s, s:s, s:f, s:f, s:s}]", "check", "gradient-ratio", "label", "s0.grad", "tensor", "w", "figure", 9.0, "bound", 4.0, "unit", "ratio");
    c.probes = probed ? seen() : NULL;
    sample_record(store, id, &c);
    json_decref(c.figures);
    json_decref(c.probes);
    free(text);
}

static int set_up(void **state) {
    (void)state;
    struct error error = {0};
    int64_t made;
    path = sample_path("results.db");
    store = sample_open(path);
    int64_t id = sample_begin(store, "fsdpmark check -i reference");
    sample_plan(store, id, "reference", 2);
    add_case(id, "exact.a", true);
    add_case(id, "exact.b", false);
    json_t *point = json_pack("{s:i}", "bytes", 64), *facts = json_pack("{s:i, s:s}", "errors", 0, "note", "text");
    struct series s = {"net", "shm", "mpi", "all-gather", "seconds", point, facts};
    assert_true(store_add_series(store, id, &s, &made, &error));
    for (int l = 0; l < 2; l++) {
        double values[SAMPLES];
        for (int i = 0; i < SAMPLES; i++) values[i] = 0.1 * (i + 1) + l;
        assert_true(store_add_samples(store, made, l, SAMPLES - l, values, &error));
    }
    json_decref(point);
    json_decref(facts);
    return !store_load_run(store, 0, &run, &error) || !store_load_series(store, 0, NULL, &series, &error);
}

static int tear_down(void **state) {
    (void)state;
    stored_series_free(&series);
    stored_run_free(&run);
    store_close(store);
    sample_remove(path);
    return 0;
}

static char *written(bool (*write)(const struct export *, FILE *), const char *pattern) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    struct export e = {&run, &series, pattern};
    assert_true(write(&e, out));
    fclose(out);
    return text;
}

static json_t *parsed(bool (*write)(const struct export *, FILE *), const char *pattern) {
    char *text = written(write, pattern);
    json_error_t where;
    json_t *out = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    if (!out) fail_msg("%d: %s", where.line, where.text);
    free(text);
    return out;
}

static const char *text_of(json_t *object, const char *name) { return json_string_value(json_object_get(object, name)); }
static int64_t whole_of(json_t *object, const char *name) { return json_integer_value(json_object_get(object, name)); }

static void json_holds_everything(void **state) {
    (void)state;
    json_t *whole = parsed(export_json, NULL), *cases = json_object_get(whole, "cases"), *first = json_array_get(cases, 0), *s = json_array_get(json_object_get(whole, "series"), 0);
    assert_int_equal(json_array_size(cases), 2);
    assert_string_equal(text_of(first, "case"), "exact.a");
    assert_string_equal(text_of(first, "verdict"), "FAIL");
    assert_string_equal(text_of(json_object_get(first, "spec"), "id"), "exact.a");
    assert_int_equal(json_array_size(json_object_get(first, "results")), 2);
    assert_string_equal(text_of(json_array_get(json_object_get(first, "results"), 1), "message"), "a \"quoted\", message\nof two lines");
    assert_true(json_real_value(json_object_get(json_array_get(json_object_get(first, "figures"), 0), "figure")) == 9);
    assert_true(json_equal(json_object_get(first, "probes"), run.cases[0].probes));
    assert_true(json_real_value(json_object_get(json_object_get(first, "measured"), "peak bytes")) == 30);
    assert_true(json_is_null(json_object_get(json_object_get(json_array_get(cases, 1), "measured"), "peak bytes")));
    json_t *launches = json_object_get(s, "launches");
    assert_int_equal(json_array_size(launches), 2);
    assert_int_equal(json_array_size(json_array_get(launches, 1)), SAMPLES - 1);
    assert_true(json_real_value(json_array_get(json_array_get(launches, 1), 3)) == 0.1 * 4 + 1);
    assert_string_equal(text_of(json_object_get(s, "facts"), "note"), "text");
    json_decref(whole);
}

// Fields of one record of RFC 4180; the number of them.
static int fields_of(const char **at, char out[16][256]) {
    int count = 0;
    for (bool more = true; more; count++) {
        int used = 0;
        bool quoted = **at == '"';
        *at += quoted;
        for (; **at && (quoted || (**at != ',' && **at != '\r')); ++*at) {
            if (quoted && **at == '"' && *++*at != '"') break;
            out[count][used++] = **at;
        }
        out[count][used] = 0;
        more = **at == ',';
        *at += more ? 1 : 2;
    }
    return count;
}

// A run of series alone misses no case.
static void series_alone_miss_no_case(void **state) {
    (void)state;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    struct stored_run bare = run;
    bare.case_count = 0, bare.implementations = json_object(), bare.ended_normally = true, bare.exit_status = 1;
    assert_true(export_json(&(struct export){&bare, &series, NULL}, out));
    fclose(out);
    assert_non_null(strstr(text, "\"cases\": []"));
    json_t *j = json_loads(text, 0, NULL), *told = json_object_get(j, "run");
    assert_int_equal(json_integer_value(json_object_get(told, "exit_status")), 1); // as it ended
    assert_int_equal(json_integer_value(json_object_get(json_object_get(told, "verdicts"), "BROKEN")), 0);
    json_decref(j);
    json_decref(bare.implementations);
    free(text);
}

static void csv_has_a_row_a_value(void **state) {
    (void)state;
    char *text = written(export_csv, NULL), cells[16][256];
    const char *at = text;
    int samples = 0, results = 0, figures = 0, measured = 0, facts = 0;
    assert_int_equal(fields_of(&at, cells), 14);
    assert_string_equal(cells[13], "message");
    while (*at) {
        assert_int_equal(fields_of(&at, cells), 14);
        results += !strcmp(cells[0], "result"), figures += !strcmp(cells[0], "figure"), measured += !strcmp(cells[0], "measured"), facts += !strcmp(cells[0], "fact");
        if (!strcmp(cells[0], "result") && !strcmp(cells[12], "FAIL")) assert_string_equal(cells[13], "a \"quoted\", message\nof two lines");
        if (strcmp(cells[0], "sample")) continue;
        samples++;
        assert_string_equal(cells[5], "{\"bytes\":64}");
        assert_true(strtod(cells[9], NULL) == 0.1 * (atoi(cells[8]) + 1) + atoi(cells[7])); // to the last bit
    }
    assert_int_equal(samples, 2 * SAMPLES - 1);
    assert_true(results == 4 && figures == 2 && facts == 2);
    assert_int_equal(measured, 1 + 1 + 4 - 1); // seconds of both; peak, rest and sent bytes of the first
    free(text);
}

static void a_trace_is_of_complete_events(void **state) {
    (void)state;
    json_t *whole = parsed(export_trace, NULL), *events = json_object_get(whole, "traceEvents"), *e;
    size_t i;
    int phases = 0, calls = 0, waits = 0, names = 0, counters = 0;
    json_array_foreach(events, i, e) {
        const char *ph = text_of(e, "ph"), *cat = text_of(e, "cat");
        assert_true(json_is_integer(json_object_get(e, "pid")) && text_of(e, "name"));
        names += !strcmp(ph, "M") && !strcmp(text_of(e, "name"), "process_name");
        counters += !strcmp(ph, "C");
        if (strcmp(ph, "X")) continue;
        assert_true(whole_of(e, "ts") >= 0 && whole_of(e, "dur") >= 0 && json_is_integer(json_object_get(e, "tid")));
        phases += !strcmp(cat, "phase"), waits += !strcmp(cat, "wait"), calls += !strcmp(cat, "collective") || !strcmp(cat, "point to point");
        if (!strcmp(cat, "wait")) assert_true(!strcmp(text_of(e, "name"), "wait") && whole_of(e, "ts") == 1210 && whole_of(e, "dur") == 30);
        if (!strcmp(text_of(e, "name"), "reduce-scatter")) assert_true(whole_of(e, "ts") == 1120 && whole_of(e, "dur") == 80 && whole_of(json_object_get(e, "args"), "bytes") == 2048);
        if (!strcmp(text_of(e, "name"), "backward") && whole_of(json_object_get(e, "args"), "step") == 1) assert_true(whole_of(e, "ts") == 1100 && whole_of(e, "dur") == 150);
    }
    assert_true(phases == 2 * 8 && calls == 2 * 7 && waits == 2 && names == 2 && counters == 2 * 8);
    assert_int_equal(whole_of(json_object_get(whole, "otherData"), "run"), run.id);
    json_decref(whole);
}

static int64_t attribute(json_t *node, const char *name) {
    size_t i;
    json_t *a;
    json_array_foreach(json_object_get(node, "attr"), i, a)
        if (!strcmp(text_of(a, "name"), name)) return whole_of(a, "int64_val");
    return -1;
}

// Node types, collective types and members are those of et_def.proto.
static void chakra_names_are_its_schemas(void **state) {
    (void)state;
    json_t *whole = parsed(export_chakra, NULL), *traces = json_object_get(whole, "traces"), *nodes = json_object_get(json_array_get(traces, 1), "nodes"), *n, *d;
    static const struct { const char *name, *type; int parent, comm_type, bytes; } expected[] = {
        {"forward", "COMP_NODE", -1, -1, -1}, {"backward", "COMP_NODE", 0, -1, -1}, {"step", "COMP_NODE", 1, -1, -1}, {"all-gather", "COMM_COLL_NODE", 0, 2, 4096},
        {"reduce-scatter", "COMM_COLL_NODE", 1, 7, 2048}, {"barrier", "COMM_COLL_NODE", 2, 9, 0}, {"send", "COMM_SEND_NODE", 1, -1, 64}, {"receive", "COMM_RECV_NODE", 1, -1, 64},
        {"send", "COMM_SEND_NODE", 0, -1, 4100}, {"receive", "COMM_RECV_NODE", 0, -1, 4100}};
    size_t i, k;
    assert_int_equal(json_array_size(traces), 2);
    assert_int_equal(whole_of(json_array_get(traces, 1), "rank"), 1);
    assert_string_equal(text_of(json_object_get(json_array_get(traces, 1), "global_metadata"), "version"), "0.0.4");
    assert_int_equal(json_array_size(nodes), 10);
    json_array_foreach(nodes, i, n) {
        assert_int_equal(whole_of(n, "id"), i);
        assert_string_equal(text_of(n, "name"), expected[i].name);
        assert_string_equal(text_of(n, "type"), expected[i].type);
        assert_int_equal(json_array_size(json_object_get(n, "ctrl_deps")), expected[i].parent >= 0);
        json_array_foreach(json_object_get(n, "ctrl_deps"), k, d) assert_int_equal(json_integer_value(d), expected[i].parent);
        assert_int_equal(attribute(n, "comm_type"), expected[i].comm_type);
        assert_int_equal(attribute(n, "comm_size"), expected[i].bytes);
    }
    assert_true(whole_of(json_array_get(nodes, 3), "start_time_micros") == 1010 && whole_of(json_array_get(nodes, 3), "duration_micros") == 40);
    json_decref(whole);
}

static void a_pattern_chooses_the_cases(void **state) {
    (void)state;
    const struct { const char *pattern; int count; } table[] = {{NULL, 1}, {"exact.a", 1}, {"exact.*", 1}, {"xact", 1}, {"exact.b", 0}, {"none", 0}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct export e = {&run, &series, table[i].pattern};
        assert_int_equal(export_timelines(&e), table[i].count);
        json_t *whole = parsed(export_trace, table[i].pattern);
        assert_int_equal(json_array_size(json_object_get(whole, "traceEvents")) > 0, table[i].count);
        json_decref(whole);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_holds_everything), cmocka_unit_test(csv_has_a_row_a_value), cmocka_unit_test(series_alone_miss_no_case), cmocka_unit_test(a_trace_is_of_complete_events),
        cmocka_unit_test(chakra_names_are_its_schemas), cmocka_unit_test(a_pattern_chooses_the_cases),
    };
    return cmocka_run_group_tests_name("export of a run", tests, set_up, tear_down);
}
