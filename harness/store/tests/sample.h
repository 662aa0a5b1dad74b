// Runs made for tests: whole, recorded through the store's own interface, the same every time.
#ifndef HARNESS_STORE_TESTS_SAMPLE_H
#define HARNESS_STORE_TESTS_SAMPLE_H

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/protocol/tests/temporary.h"
#include "harness/store/store.h"

// A path in a fresh folder.
static inline const char *sample_path(const char *name) {
    static char path[256];
    char folder[] = "/tmp/fsdpmark-test-XXXXXX";
    assert_non_null(temporary_make(folder));
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline void sample_remove(const char *path) {
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%.*s'", (int)(strrchr(path, '/') - path), path);
    assert_int_equal(system(command), 0);
}

static inline struct store *sample_open(const char *path) {
    struct store *s = NULL;
    struct error error = {0};
    if (!store_open(path, false, &s, &error)) fail_msg("%s", error.text);
    return s;
}

static inline int64_t sample_begin(struct store *s, const char *command) {
    struct error error = {0};
    int64_t run = 0;
    json_t *environment = json_pack("{s:s, s:i, s:{s:s}}", "host", "node-7", "cores", 2, "libraries", "sqlite", "3.40.1");
    struct run_info info = {.command = command, .profile = "core", .pattern = "exact*", .seed = 42, .environment = environment};
    if (!store_begin_run(s, &info, &run, &error)) fail_msg("%s", error.text);
    json_decref(environment);
    return run;
}

static inline struct result sample_result(const char *check, enum verdict v, double figure, double bound, const char *unit,
                                          const char *message) {
    struct result r = {.check = check, .finding = {.verdict = v, .emitted = true, .figure = figure, .bound = bound}};
    snprintf(r.finding.unit, sizeof r.finding.unit, "%s", unit);
    snprintf(r.finding.message, sizeof r.finding.message, "%s", message);
    if (v == VERDICT_FAIL) {
        strcpy(r.finding.classes, "Z01 Z03");
        strcpy(r.finding.ranks, "0-1");
    }
    return r;
}

static inline struct case_record sample_case(const char *implementation, const char *id, const char *family, const char *strategy,
                                             int ranks, const struct result *results, int count) {
    return (struct case_record){
        .implementation = implementation, .case_id = id, .family = family, .layer = "exact", .model = "mlp",
        .strategy = strategy, .layout = "flat", .compute = "f32", .world_size = ranks, .seed = 42, .case_json = "{}",
        .origin = "suite/cases/exact.yaml:12", .seconds = 0.25, .judge_seconds = 0.0625, .start = 1,
        .result_count = count, .results = results,
    };
}

static inline void sample_record(struct store *s, int64_t run, const struct case_record *record) {
    struct error error = {0};
    if (!store_record_case(s, run, record, &error)) fail_msg("%s", error.text);
}

static inline void sample_plan(struct store *s, int64_t run, const char *implementation, int planned) {
    struct error error = {0};
    json_t *versions = json_pack("{s:s}", implementation, "1.0");
    if (!store_set_plan(s, run, implementation, planned, versions, NULL, &error)) fail_msg("%s", error.text);
    json_decref(versions);
}

#endif
