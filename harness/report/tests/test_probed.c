// Figures of probes from made-up stores: the numbers that they are made of, the files that come out, and what is said where nothing was seen.
#include "harness/report/report.h"

#include <sys/stat.h>

#include "harness/report/figures.h"
#include "harness/report/measured.h"
#define sample_case sample_json // the store's sample has that name too
#include "harness/protocol/tests/sample.h"
#undef sample_case
#include "harness/report/tests/markup.h"
#include "harness/store/tests/sample.h"

// A step of AdamW in float32. Memory: what the checks would have recorded, a + b / N bytes per parameter at rest and 2 more at the peak. Traffic: by
// collectives, or by sockets with 500 bytes beside, P f(N) gathered and P f(N) reduced values of 4 bytes.
struct made { const char *implementation, *strategy; int ranks; int64_t parameters; double a, b; bool sockets; };

static char *case_text(const struct made *m, const char *id) {
    json_t *c = json_loads(sample_json, 0, NULL), *sharding = json_object_get(c, "sharding");
    json_object_set_new(c, "id", json_string(id));
    json_object_set_new(c, "world_size", json_integer(m->ranks));
    json_object_set_new(c, "parameters", json_pack("[{s:s, s:[I], s:s, s:n, s:b}]", "name", "w", "shape", (json_int_t)m->parameters, "unit", "", "tied_to", "decay", 1));
    json_object_set_new(sharding, "strategy", json_string(m->strategy));
    json_object_set_new(sharding, "layout", json_string("per_parameter"));
    json_object_set_new(sharding, "mesh", strcmp(m->strategy, "none") ? json_pack("[ii]", 1, m->ranks) : json_pack("[ii]", m->ranks, 1));
    json_object_set_new(c, "optimizer", json_loads("{\"kind\": \"adamw\", \"lr\": 0.1, \"beta1\": 0.9, \"beta2\": 0.9, \"eps\": 1e-8, \"weight_decay\": 0, \"no_decay\": false}", 0, NULL));
    json_object_set_new(c, "precision", json_loads("{\"parameter\": \"f32\", \"compute\": \"f32\", \"reduce\": \"f32\", \"optimizer_state\": \"f32\", \"loss_scale\": {\"mode\": \"none\", "
                                                   "\"initial\": 1, \"growth\": 2, \"backoff\": 0.5, \"interval\": 2000}}", 0, NULL));
    json_object_set_new(c, "program", json_loads("[{\"verb\": \"micro\", \"step\": 0, \"micro\": 0, \"sync\": true}, {\"verb\": \"step\", \"step\": 0}]", 0, NULL));
    char *text = json_dumps(c, JSON_COMPACT);
    json_decref(c);
    return text;
}

static json_t *seen(const struct made *m) {
    struct probe_case ranks[8];
    struct probe_phase phases[8][4];
    struct probe_traffic traffic[2] = {{0}};
    double f = (m->ranks - 1.0) / m->ranks;
    int64_t payload = 4 * m->parameters, rest = (int64_t)((m->a + m->b / m->ranks) * (double)m->parameters), wire = (int64_t)(f * (double)payload);
    traffic[0] = (struct probe_traffic){.kind = m->sockets ? PROBE_SEND : PROBE_COLLECTIVE, .op = m->sockets ? PROBE_OP_NONE : PROBE_ALL_GATHER, .size = m->ranks,
                                        .calls = 2, .bytes = m->sockets ? wire + 500 : payload, .wire = m->sockets ? 0 : wire};
    traffic[1] = traffic[0];
    if (!m->sockets) traffic[1].op = PROBE_REDUCE_SCATTER;
    for (int r = 0; r < m->ranks; r++) {
        const struct probe_live live = {rest, rest, rest + 2 * m->parameters};
        phases[r][0] = (struct probe_phase){.name = "case", .step = 0, .begin_s = 10, .end_s = 11, .heap = {0, rest, 9 * rest}};
        phases[r][1] = (struct probe_phase){.name = "forward", .step = 0, .begin_s = 11, .end_s = 11.004, .heap = live, .traffic_count = m->ranks > 1, .traffic = &traffic[0]};
        phases[r][2] = (struct probe_phase){.name = "backward", .step = 0, .begin_s = 11.004, .end_s = 11.012, .heap = live, .traffic_count = m->ranks > 1, .traffic = &traffic[1]};
        phases[r][3] = (struct probe_phase){.name = "step", .step = 0, .begin_s = 11.012, .end_s = 11.015, .heap = live};
        ranks[r] = (struct probe_case){.rank = r, .probes = 1u << PROBE_HEAP | 1u << (m->sockets ? PROBE_SOCKET : PROBE_MPI), .phase_count = 4, .phases = phases[r]};
    }
    json_t *stored = probe_store(ranks, m->ranks, NULL);
    for (int r = 0; r < m->ranks; r++) { // spans as a file of records would give them
        json_t *o = json_array_get(json_object_get(stored, "ranks"), (size_t)r), *spans = json_array();
        const char *kind = m->sockets ? "send" : "collective";
        for (int k = 0; k < 3; k++)
            json_array_append_new(spans, json_pack("[s, s, i, i, i]", kind, m->sockets ? "none" : k < 2 ? "all-gather" : "reduce-scatter", 1000500 + 4000 * k + 200 * r,
                                                   1001500 + 4000 * k + 300 * r, 100));
        if (m->sockets) json_array_append_new(spans, json_pack("[s, s, i, i, i]", "receive", "none", 1002000, 1003000, 100));
        json_object_set_new(o, "step", json_integer(0));
        json_object_set_new(o, "spans", spans);
    }
    return stored;
}

static json_t *figures(const struct made *m) {
    double rest = m->a + m->b / m->ranks, extra = m->sockets ? 0.5 : 0; // what does not shard
    return json_pack("[{s:s, s:s, s:s, s:f, s:f}, {s:s, s:s, s:s, s:f, s:f}, {s:s, s:s, s:s, s:f, s:f}, {s:s, s:s, s:s, s:f, s:f}, {s:s, s:s, s:s, s:f, s:f}]",
                     "check", "memory-rest", "label", "rest", "tensor", "bytes of a parameter", "figure", rest, "bound", rest - extra,
                     "check", "memory-peak", "label", "forward", "tensor", "bytes of a parameter", "figure", rest + 1, "bound", rest + 1,
                     "check", "memory-peak", "label", "backward", "tensor", "bytes of a parameter", "figure", rest + 2, "bound", rest + 2,
                     "check", "memory-scaling", "label", "scaling", "tensor", "a", "figure", m->a, "bound", m->a - extra,
                     "check", "memory-scaling", "label", "scaling", "tensor", "b", "figure", m->b, "bound", m->b);
}

static void record(struct store *s, int64_t run, const struct made *m) {
    char id[64];
    snprintf(id, sizeof id, "memory.%s.p%d.n%d", m->strategy, (int)m->parameters, m->ranks);
    char *text = case_text(m, id);
    struct result r = sample_result("memory", VERDICT_PASS, 0, 1, "relative", "");
    struct case_record c = sample_case(m->implementation, id, "memory", m->strategy, m->ranks, &r, 1);
    c.case_json = text;
    c.probes = seen(m);
    c.figures = figures(m);
    sample_record(s, run, &c);
    json_decref(c.probes);
    json_decref(c.figures);
    free(text);
}

static void record_all(struct store *s) {
    static const struct { const char *strategy; double a, b; } strategies[] = {{"none", 16, 0}, {"optimizer", 8, 8}, {"grad", 4, 12}, {"full", 0, 16}};
    int64_t run = sample_begin(s, "x");
    for (int i = 0; i < 4; i++)
        for (int n = 1; n <= 8; n = n < 4 ? n + 1 : 2 * n)
            for (int size = 1; size <= 2; size++) {
                struct made m = {"reference", strategies[i].strategy, n, 100000 * size, strategies[i].a, strategies[i].b, false};
                record(s, run, &m);
                m.implementation = "pytorch-fsdp2";
                m.a += 0.5; // what does not shard
                m.sockets = true;
                if (n > 1 && n < 8) record(s, run, &m);
            }
    sample_plan(s, run, "reference", 48);
    sample_plan(s, run, "pytorch-fsdp2", 24);
}

struct fixture { const char *path; struct store *store; struct stored_run run; struct view view; struct probed probed; };

static struct fixture make(void (*fill)(struct store *)) {
    struct fixture f = {.path = sample_path("r.db")};
    struct error error = {0};
    f.store = sample_open(f.path);
    fill(f.store);
    if (!store_load_run(f.store, 0, &f.run, &error)) fail_msg("%s", error.text);
    view_make(&f.run, &f.view);
    probed_make(&f.view, &f.probed);
    return f;
}

static void end(struct fixture *f) {
    probed_free(&f->probed);
    view_free(&f->view);
    stored_run_free(&f->run);
    store_close(f->store);
    sample_remove(f->path);
}

static const struct probed_point *point(const struct probed *p, const char *implementation, const char *label, int ranks) {
    for (int i = 0; i < p->point_count; i++)
        if (p->points[i].implementation == names_find(&p->implementations, implementation) && p->points[i].label == names_find(&p->labels, label) &&
            p->points[i].ranks == ranks)
            return &p->points[i];
    fail_msg("no point %s %s %d", implementation, label, ranks);
    return NULL;
}

// Slopes: the 500 bytes beside the messages are gone.
static void slopes_cancel_what_does_not_grow(void **state) {
    (void)state;
    struct fixture f = make(record_all);
    assert_int_equal(f.probed.source_count, 4 * 5 * 2 + 4 * 3 * 2);
    assert_int_equal(f.probed.unread, 0);
    const struct probed_point *q = point(&f.probed, "reference", "full", 4);
    assert_int_equal(q->sizes, 2);
    assert_true(q->has_traffic);
    assert_true(fabs(q->rest - 4) < 1e-3 && fabs(q->peak - 6) < 1e-3 && q->rest_theory == 4);
    assert_true(fabs(q->sent[PART_GATHER] - 3) < 1e-3 && fabs(q->sent[PART_SCATTER] - 3) < 1e-3 && q->sent[PART_SOCKET_FORWARD] == 0);
    q = point(&f.probed, "pytorch-fsdp2", "grad", 2);
    assert_true(fabs(q->rest - 10.5) < 1e-3 && q->rest_theory == 10);
    assert_true(fabs(q->sent[PART_SOCKET_FORWARD] - 2) < 1e-3 && fabs(q->sent[PART_SOCKET_BACKWARD] - 2) < 1e-3 && q->sent[PART_GATHER] == 0);
    assert_int_equal(f.probed.fit_count, 8);
    for (int i = 0; i < f.probed.fit_count; i++) {
        const struct probed_fit *fit = &f.probed.fits[i];
        double extra = strcmp(f.probed.implementations.items[fit->implementation], "reference") ? 0.5 : 0;
        assert_true(fabs(fit->a - extra - fit->theory_a) < 1e-3 && fabs(fit->b - fit->theory_b) < 2e-3);
    }
    end(&f);
}

static const char *spoilt; // a field of rank 1, or NULL

static void one_size_is_a_ratio(struct store *s) {
    int64_t run = sample_begin(s, "x");
    struct made m = {"reference", "full", 2, 1000, 0, 16, true};
    char *text = case_text(&m, "c");
    struct result r = sample_result("a", VERDICT_PASS, 0, 1, "relative", "");
    struct case_record c = sample_case("reference", "c", "f", "full", 2, &r, 1);
    c.case_json = text;
    c.probes = seen(&m);
    if (spoilt) {
        json_t *rank = json_array_get(json_object_get(c.probes, "ranks"), 1);
        json_object_set_new(strcmp(spoilt, "unseen") ? rank : json_array_get(json_object_get(rank, "phases"), 1), spoilt, json_integer(3));
    }
    sample_record(s, run, &c);
    json_decref(c.probes);
    free(text);
}

static void without_its_checks_there_is_no_memory(void **state) {
    (void)state;
    struct fixture f = make(one_size_is_a_ratio);
    const struct probed_point *q = point(&f.probed, "reference", "full", 2);
    assert_true(q->sizes == 1 && isnan(q->rest) && f.probed.fit_count == 0 && fabs(q->sent[PART_SOCKET_FORWARD] - 2.5) < 1e-9);
    struct error error = {0};
    char folder[300], *page = NULL, path[400];
    snprintf(folder, sizeof folder, "%.*s/report", (int)(strrchr(f.path, '/') - f.path), f.path);
    if (!report_write(&f.run, folder, &error)) fail_msg("%s", error.text);
    snprintf(path, sizeof path, "%s/index.html", folder);
    FILE *in = fopen(path, "r");
    size_t bytes = 0;
    assert_true(getdelim(&page, &bytes, 0, in) > 0);
    fclose(in);
    assert_non_null(strstr(page, "no data: no check of this run judged memory at rest"));
    assert_non_null(strstr(page, "Traffic of a step by collective"));
    free(page);
    end(&f);
}

// What a probe is known to have missed makes no figure.
static void incomplete_records_have_no_numbers(void **state) {
    (void)state;
    static const struct { const char *field; bool traffic, memory; } rows[] = {{NULL, true, true}, {"lost", false, false}, {"unseen", false, true}, {"untracked", true, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        spoilt = rows[i].field;
        struct fixture f = make(one_size_is_a_ratio);
        const struct probed_point *q = point(&f.probed, "reference", "full", 2);
        double measured[MEASURED_QUANTITIES];
        measured_of(&f.run.cases[0], measured);
        assert_true(q->has_traffic == rows[i].traffic && q->uncounted == !rows[i].traffic && !probed_timeline(&f.probed, q->implementation) == !rows[i].traffic);
        assert_true(isnan(measured[MEASURED_SENT]) == !rows[i].traffic && isnan(measured[MEASURED_PEAK]) == !rows[i].memory && isnan(measured[MEASURED_REST]) == !rows[i].memory);
        end(&f);
    }
    spoilt = NULL;
}

static void without_probes(struct store *s) {
    int64_t run = sample_begin(s, "x");
    struct result r = sample_result("a", VERDICT_PASS, 0, 0, "ulp", "");
    struct case_record c = sample_case("reference", "c", "f", "full", 2, &r, 1);
    sample_record(s, run, &c);
}

static char *slurp(const char *folder, const char *name) {
    char path[400], *text = NULL;
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *in = fopen(path, "r");
    if (in && getdelim(&text, &bytes, 0, in) < 0) fail_msg("%s is empty", path);
    if (in) fclose(in);
    return text;
}

// The second report lies over the first, which had probes: nothing of them stays.
static void a_run_without_probes_has_none_of_their_figures(void **state) {
    (void)state;
    struct error error = {0};
    char folder[300], *before = getenv("FSDPMARK_KEEP_FIGURES");
    struct fixture f = make(record_all);
    snprintf(folder, sizeof folder, "%s", before ? before : "");
    if (!before) snprintf(folder, sizeof folder, "%.*s/report", (int)(strrchr(f.path, '/') - f.path), f.path);
    if (!report_write(&f.run, folder, &error)) fail_msg("%s", error.text);
    char *page = slurp(folder, "index.html"), *csv = slurp(folder, "probes.csv"), *json = slurp(folder, "probes.json"), *picture = slurp(folder, "figures/memory.svg");
    struct markup m;
    markup_parse(&m, page); // well-formed
    markup_free(&m);
    assert_non_null(strstr(page, "Memory against ranks"));
    assert_non_null(strstr(page, "Measured on an unknown processor, 2 cores; fsdpmark ?, reference 1.0, pytorch-fsdp2 1.0; "));
    assert_non_null(strstr(page, "probes: heap,socket,mpi."));
    assert_non_null(strstr(csv, "\"memory\",\"reference\",\"full\",4,2,\"live after the last update\",\"bytes per parameter\",4"));
    json_t *whole = json_loads(json, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(whole, "fits")), 8);
    assert_int_equal(json_array_size(json_object_get(whole, "timelines")), 2);
    json_decref(whole);
    if (!system("gnuplot --version >/dev/null 2>&1")) {
        assert_non_null(picture);
        assert_non_null(strstr(picture, "optimizer: theory 8 + 8 / N"));
    }
    free(page), free(csv), free(json), free(picture);
    if (before) {
        end(&f);
        return;
    }
    struct fixture g = {.store = f.store};
    without_probes(f.store);
    if (!store_load_run(g.store, 0, &g.run, &error) || !report_write(&g.run, folder, &error)) fail_msg("%s", error.text);
    page = slurp(folder, "index.html");
    assert_null(strstr(page, "Memory against ranks"));
    static const char *const gone[] = {"probes.csv", "probes.json", "figures/memory.svg", "figures/traffic.png", "figures/timeline.svg"};
    for (int i = 0; i < 5; i++) {
        char *text = slurp(folder, gone[i]);
        if (text) fail_msg("%s is still there", gone[i]);
    }
    free(page);
    stored_run_free(&g.run);
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slopes_cancel_what_does_not_grow),
        cmocka_unit_test(without_its_checks_there_is_no_memory),
        cmocka_unit_test(incomplete_records_have_no_numbers),
        cmocka_unit_test(a_run_without_probes_has_none_of_their_figures),
    };
    return cmocka_run_group_tests_name("figures of probes", tests, NULL, NULL);
}
