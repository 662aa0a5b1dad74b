// What probes saw, to JSON and back, and the spans of a file of records.
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/probes/stored.h"
#include "harness/protocol/tests/temporary.h"

static struct probe_traffic gather = {PROBE_COLLECTIVE, PROBE_ALL_GATHER, PROBE_F32, 2, 0, 3, 1200, 600, 0.0005, false};
static struct probe_traffic sends[] = {{PROBE_SEND, PROBE_OP_NONE, PROBE_TYPE_OTHER, 0, 77, 2, 100, 0, 0, false},
                                       {PROBE_SEND, PROBE_OP_NONE, PROBE_TYPE_OTHER, 0, 78, 5, 900, 0, 0.001, false}};
static struct probe_counter counter = {.event = "PAPI_TOT_CYC", .value = 123456789012};
static struct probe_phase phases[2][2] = {
    {{.name = "forward", .step = 0, .begin_s = 100, .end_s = 100.25, .heap = {-5, 10, 4096}, .waits = 7, .wait_s = 0.125, .traffic_count = 1, .traffic = &gather},
     {.name = "step", .step = 1, .begin_s = 100.25, .end_s = 100.5, .device = {1, 2, 3}, .counter_count = 1, .counters = &counter}},
    {{.name = "forward", .step = 0, .begin_s = 99.5, .end_s = 100, .unseen = 2, .traffic_count = 2, .traffic = sends},
     {.name = "step", .step = 1, .begin_s = 100, .end_s = 101}}};
static const struct probe_case sample[2] = {{.rank = 0, .probes = 1u << PROBE_HEAP | 1u << PROBE_MPI, .phase_count = 2, .phases = phases[0]},
                                            {.rank = 1, .probes = 1u << PROBE_SOCKET, .lost = 4, .unseen = 2, .unseen_call = "io_uring_enter", .untracked = 3, .untracked_call = "cuMemCreate",
                                             .phase_count = 2, .phases = phases[1]}};

static void what_was_seen_comes_back(void **state)
{
    (void)state;
    struct probe_stored back;
    json_t *stored = probe_store(sample, 2, NULL);
    assert_true(probe_stored_read(stored, &back));
    assert_int_equal(back.ranks, 2);
    assert_int_equal(back.step, -1);
    const struct probe_case *a = &back.by_rank[0], *b = &back.by_rank[1];
    assert_int_equal(a->probes, sample[0].probes);
    assert_int_equal(b->rank, 1);
    assert_true(a->lost == 0 && a->unseen == 0 && a->unseen_call == NULL);
    assert_true(b->lost == 4 && b->unseen == 2 && b->phases[0].unseen == 2 && b->phases[1].unseen == 0 && a->phases[0].unseen == 0);
    assert_true(probe_traffic_whole(a) && probe_memory_whole(a) && !probe_traffic_whole(b) && !probe_memory_whole(b));
    assert_string_equal(b->unseen_call, "io_uring_enter");
    assert_true(a->untracked == 0 && a->untracked_call == NULL && b->untracked == 3);
    assert_string_equal(b->untracked_call, "cuMemCreate");
    assert_int_equal(a->phase_count, 2);
    assert_string_equal(a->phases[1].name, "step");
    assert_true(fabs(a->phases[0].begin_s - 0.5) < 1e-6 && fabs(a->phases[1].end_s - 1) < 1e-6 && b->phases[0].begin_s == 0);
    assert_true(a->phases[0].heap.begin == -5 && a->phases[0].heap.end == 10 && a->phases[0].heap.peak == 4096 && a->phases[1].device.peak == 3);
    assert_true(a->phases[0].map.peak == 0 && a->phases[1].heap.end == 0);
    assert_true(a->phases[0].waits == 7 && fabs(a->phases[0].wait_s - 0.125) < 1e-9 && a->phases[1].waits == 0 && a->phases[1].wait_s == 0);
    const struct probe_traffic *t = a->phases[0].traffic;
    assert_int_equal(a->phases[0].traffic_count, 1);
    assert_true(t->kind == PROBE_COLLECTIVE && t->op == PROBE_ALL_GATHER && t->type == PROBE_F32 && t->size == 2 && t->calls == 3);
    assert_true(t->bytes == 1200 && t->wire == 600 && fabs(t->seconds - 0.0005) < 1e-9);
    assert_string_equal(a->phases[1].counters[0].event, "PAPI_TOT_CYC");
    assert_int_equal(a->phases[1].counters[0].value, 123456789012);
    assert_int_equal(b->phases[0].traffic_count, 1); // both peers in one
    assert_true(b->phases[0].traffic[0].kind == PROBE_SEND && b->phases[0].traffic[0].calls == 7 && b->phases[0].traffic[0].bytes == 1000);
    probe_stored_free(&back);
    json_decref(stored);
}

static void what_is_not_of_this_form_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{}", "[]", "{\"ranks\": []}", "{\"ranks\": [{}]}", "{\"ranks\": [{\"rank\": 0, \"probes\": \"heap\"}]}",
        "{\"ranks\": [{\"rank\": 0, \"probes\": \"nose\", \"phases\": []}]}", "{\"ranks\": [{\"rank\": 0, \"probes\": \"heap\", \"phases\": [{}]}]}",
        "{\"ranks\": [{\"rank\": 0, \"probes\": \"heap\", \"phases\": [{\"name\": \"a\", \"step\": 0, \"us\": [1]}]}]}",
        "{\"ranks\": [{\"rank\": 0, \"probes\": \"heap\", \"phases\": [{\"name\": \"a\", \"step\": 0, \"us\": [1, 2], \"traffic\": [[\"x\"]]}]}]}",
        "{\"ranks\": [{\"rank\": 0, \"probes\": \"heap\", \"phases\": [], \"spans\": [[\"collective\", \"all-gather\", 1]]}]}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct probe_stored out;
        json_t *stored = json_loads(bad[i], 0, NULL);
        assert_non_null(stored);
        if (probe_stored_read(stored, &out))
            fail_msg("%s was read", bad[i]);
        assert_int_equal(out.ranks, 0);
        json_decref(stored);
    }
}

static void write_records(const char *path, const struct probe_record *records, int count)
{
    struct probe_header *h = calloc(1, PROBE_HEADER_BYTES);
    FILE *out = fopen(path, "w");
    memcpy(h->magic, PROBE_MAGIC, 8);
    h->next = (uint64_t)count;
    h->version = PROBE_VERSION;
    h->capacity = (uint64_t)count;
    h->room = (uint64_t)count;
    assert_int_equal(fwrite(h, PROBE_HEADER_BYTES, 1, out), 1);
    assert_int_equal(fwrite(records, sizeof *records, (size_t)count, out), (size_t)count);
    fclose(out);
    free(h);
}

// The step lasts from 100.0 to 101.0, so gaps below 2 ms are closed.
static void the_calls_of_a_step_are_sorted_and_joined(void **state)
{
    (void)state;
    char folder[] = "/tmp/fsdpmark-test-XXXXXX", path[64];
    assert_non_null(temporary_make(folder));
    snprintf(path, sizeof path, "%s/probes.rank0", folder);
#define AT(ms) ((uint64_t)(100e9 + (ms) * 1e6))
    const struct probe_record records[] = {
        {.time_ns = AT(-5), .kind = PROBE_SEND, .bytes = 1},                                                       // of the step before
        {.time_ns = AT(500), .kind = PROBE_COLLECTIVE, .op = PROBE_REDUCE_SCATTER, .bytes = 30, .duration_ns = 2000000}, // written before
        {.time_ns = AT(10), .kind = PROBE_COLLECTIVE, .op = PROBE_ALL_GATHER, .bytes = 10, .duration_ns = 4000000},
        {.time_ns = AT(15), .kind = PROBE_COLLECTIVE, .op = PROBE_ALL_GATHER, .bytes = 20, .duration_ns = 1000000}, // 1 ms after the end of the last
        {.time_ns = AT(15.5), .kind = PROBE_NOTHING, .bytes = 99},
        {.time_ns = AT(20), .kind = PROBE_COLLECTIVE, .op = PROBE_ALL_GATHER, .bytes = 40, .duration_ns = 1000000}, // 4 ms
        {.time_ns = AT(21), .kind = PROBE_HEAP_LIVE, .bytes = 7},
        {.time_ns = AT(30), .kind = PROBE_POINT, .op = PROBE_OP_SEND, .bytes = 50, .duration_ns = 9000000},             // nonblocking, and over
        {.time_ns = AT(31), .kind = PROBE_WAIT, .count = 3, .duration_ns = 8000000},
        {.time_ns = AT(1001), .kind = PROBE_SEND, .bytes = 2},                                                      // of the next
    };
    write_records(path, records, sizeof records / sizeof *records);
    struct probe_span *spans;
    int count = probe_spans(path, 100, 101, &spans);
    assert_int_equal(count, 5);
    assert_true(spans[2].kind == PROBE_POINT && spans[2].bytes == 50 && fabs(spans[2].end_s - 100.039) < 1e-7);
    assert_true(spans[3].kind == PROBE_WAIT && fabs(spans[3].begin_s - 100.031) < 1e-7 && fabs(spans[3].end_s - 100.039) < 1e-7);
    assert_true(spans[0].op == PROBE_ALL_GATHER && spans[0].bytes == 30 && fabs(spans[0].begin_s - 100.010) < 1e-7 && fabs(spans[0].end_s - 100.016) < 1e-7);
    assert_true(spans[1].op == PROBE_ALL_GATHER && spans[1].bytes == 40);
    assert_true(spans[4].op == PROBE_REDUCE_SCATTER && spans[4].bytes == 30 && fabs(spans[4].end_s - 100.502) < 1e-7);
    free(spans);
    const char *const paths[] = {path, "/nonexistent/probes.rank1"};
    struct probe_phase own = {.name = "step", .step = 1, .begin_s = 100, .end_s = 101};
    const struct probe_case cases[2] = {{.rank = 0, .phase_count = 1, .phases = &own}, {.rank = 1, .phase_count = 1, .phases = &own}};
    json_t *stored = probe_store(cases, 2, paths);
    struct probe_stored back;
    assert_true(probe_stored_read(stored, &back));
    assert_int_equal(back.step, 1);
    assert_true(back.span_count[0] == 5 && back.span_count[1] == 0 && fabs(back.spans[0][0].begin_s - 0.010) < 1e-9);
    probe_stored_free(&back);
    json_decref(stored);
    unlink(path);
    rmdir(folder);
}

static void the_step_of_a_timeline_is_the_last_one(void **state)
{
    (void)state;
    double begin_s, end_s;
    struct probe_phase all[] = {{.name = "case", .step = 5, .begin_s = 0, .end_s = 1},     {.name = "forward", .step = 0, .begin_s = 1, .end_s = 2},
                                {.name = "step", .step = 0, .begin_s = 2, .end_s = 3},     {.name = "zero_grad", .step = -1, .begin_s = 3, .end_s = 4},
                                {.name = "forward", .step = 1, .begin_s = 4, .end_s = 5},  {.name = "backward", .step = 1, .begin_s = 5, .end_s = 6},
                                {.name = "observe", .step = 1, .begin_s = 6, .end_s = 7},  {.name = "step", .step = 1, .begin_s = 7, .end_s = 8},
                                {.name = "observe", .step = 1, .begin_s = 8, .end_s = 9},  {.name = "forward", .step = 2, .begin_s = 9, .end_s = 10}};
    const struct probe_case p = {.phase_count = 10, .phases = all};
    assert_int_equal(probe_timeline_step(&p), 1);
    assert_true(probe_step_times(&p, 1, &begin_s, &end_s));
    assert_true(begin_s == 4 && end_s == 8);
    assert_false(probe_step_times(&p, 3, &begin_s, &end_s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_seen_comes_back),
        cmocka_unit_test(what_is_not_of_this_form_is_refused),
        cmocka_unit_test(the_calls_of_a_step_are_sorted_and_joined),
        cmocka_unit_test(the_step_of_a_timeline_is_the_last_one),
    };
    return cmocka_run_group_tests_name("stored", tests, NULL, NULL);
}
