// probe_read on files written by hand: phases, live bytes and peaks, traffic; and every kind of damage is one line.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/probes/summary.h"

enum { ROOM = 64 };
struct image {
    union { struct probe_header header; char page[PROBE_HEADER_BYTES]; };
    struct probe_record records[ROOM];
};
_Static_assert(sizeof(struct image) == PROBE_HEADER_BYTES + ROOM * PROBE_RECORD_BYTES, "as in the file");

static char path[] = "/tmp/fsdpmark-test-probes-XXXXXX";

static void start(struct image *m)
{
    memset(m, 0, sizeof *m);
    memcpy(m->header.magic, PROBE_MAGIC, sizeof m->header.magic);
    m->header.version = PROBE_VERSION;
    m->header.rank = 3;
    m->header.capacity = ROOM;
    atomic_store(&m->header.room, ROOM);
    atomic_store(&m->header.probes, 1u << PROBE_HEAP | 1u << PROBE_MPI);
    atomic_store(&m->header.lost, 0);
}

static struct probe_record *append(struct image *m, enum probe_kind kind)
{
    uint64_t i = atomic_fetch_add(&m->header.next, 1);
    m->records[i] = (struct probe_record){.time_ns = 1000 * (i + 1), .kind = kind};
    return &m->records[i];
}

static void mark(struct image *m, const char *phase, int step, int64_t small_live, int64_t small_peak)
{
    struct probe_record *r = append(m, PROBE_MARK);
    strcpy(r->mark.phase, phase);
    r->mark.step = step;
    r->mark.small_live = small_live;
    r->mark.small_peak = small_peak;
}

static void live(struct image *m, enum probe_kind kind, int64_t bytes) { append(m, kind)->bytes = bytes; }

static void traffic(struct image *m, enum probe_kind kind, enum probe_op op, enum probe_type type, int64_t bytes, int size)
{
    struct probe_record *r = append(m, kind);
    r->op = (uint8_t)op, r->type = (uint8_t)type;
    r->bytes = bytes, r->wire = (uint64_t)bytes / 2, r->size = (uint16_t)size, r->duration_ns = 500;
}

static void put(const struct image *m, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(m, 1, bytes, f), bytes);
    fclose(f);
}

static struct probe_case fine(const struct image *m, int place)
{
    struct probe_case c;
    struct error error = {""};
    put(m, sizeof *m);
    if (!probe_read(path, place, &c, &error))
        fail_msg("%s", error.text);
    return c;
}

static void refused(const struct image *m, size_t bytes, int place, const char *says)
{
    struct probe_case c;
    struct error error = {""};
    put(m, bytes);
    assert_false(probe_read(path, place, &c, &error));
    assert_null(c.phases);
    if (strstr(error.text, says) == NULL || strstr(error.text, path) == NULL)
        fail_msg("found \"%s\", expected the file and \"%s\"", error.text, says);
}

// Two cases; the second is read in parts.
static void two_cases(struct image *m)
{
    start(m);
    live(m, PROBE_HEAP_LIVE, 1 << 20); // before any mark: of no case
    mark(m, "case", 0, 100, 100);
    mark(m, "end", -1, 100, 100);
    mark(m, "case", 1, 1000, 1200);
    live(m, PROBE_HEAP_LIVE, 5000);
    live(m, PROBE_MAP_LIVE, 4096);
    mark(m, "forward", 0, 1500, 1700);
    live(m, PROBE_HEAP_LIVE, 3000);
    live(m, PROBE_HEAP_LIVE, -7000);
    live(m, PROBE_HEAP_LIVE, 2000);
    live(m, PROBE_DEVICE_LIVE, -8);
    traffic(m, PROBE_COLLECTIVE, PROBE_ALL_GATHER, PROBE_F32, 400, 4);
    traffic(m, PROBE_COLLECTIVE, PROBE_ALL_GATHER, PROBE_F32, 600, 4);
    traffic(m, PROBE_COLLECTIVE, PROBE_ALL_GATHER, PROBE_BF16, 10, 4);
    traffic(m, PROBE_SEND, PROBE_OP_NONE, PROBE_TYPE_OTHER, 70, 0);
    mark(m, "forward", 1, 1400, 2500);
    traffic(m, PROBE_COLLECTIVE, PROBE_ALL_GATHER, PROBE_F32, 1000, 4);
    traffic(m, PROBE_POINT, PROBE_OP_SEND, PROBE_F32, 12, 4);
    struct probe_record *counter = append(m, PROBE_COUNTER);
    strcpy(counter->counter.event, "perf::CYCLES");
    counter->counter.value = 77;
    mark(m, "observe", -1, 1400, 1400);
    traffic(m, PROBE_COLLECTIVE, PROBE_ALL_GATHER, PROBE_F32, 1 << 20, 4);
    append(m, PROBE_NOTHING); // unfinished
    strcpy(append(m, PROBE_UNSEEN)->counter.event, "io_uring_enter");
    strcpy(append(m, PROBE_UNSEEN)->counter.event, "splice");
    mark(m, "case", 2, 9000, 9000);
    live(m, PROBE_HEAP_LIVE, 1 << 20);
}

static void test_phases(void **state)
{
    (void)state;
    struct image m;
    two_cases(&m);
    atomic_store(&m.header.lost, 5);
    struct probe_case c = fine(&m, 1);
    assert_int_equal(c.rank, 3);
    assert_int_equal(c.probes, 1u << PROBE_HEAP | 1u << PROBE_MPI);
    assert_int_equal(c.lost, 5);
    assert_int_equal(c.unseen, 2);
    assert_string_equal(c.unseen_call, "io_uring_enter");
    assert_int_equal(c.phase_count, 4);
    const struct probe_phase *p = c.phases;
    assert_string_equal(p[0].name, "case");
    assert_string_equal(p[1].name, "forward");
    assert_int_equal(p[1].step, 0);
    assert_int_equal(p[2].step, 1);
    assert_string_equal(p[3].name, "observe");
    assert_true(p[0].begin_s < p[0].end_s && p[0].end_s == p[1].begin_s);
    // Records alone: 0 | +5000 | 8000, 1000, 3000 |. Small blocks: 1000, at most 1700 | 1500, at most 2500 | 1400.
    assert_int_equal(p[0].heap.begin, 0);
    assert_int_equal(p[0].heap.end, 5000 + 500);
    assert_int_equal(p[0].heap.peak, 5000 + 700);
    assert_int_equal(p[1].heap.begin, 5500);
    assert_int_equal(p[1].heap.peak, 8000 + 1500);
    assert_int_equal(p[1].heap.end, 3000 + 400);
    assert_int_equal(p[0].map.end, 4096);
    assert_int_equal(p[2].map.peak, 4096);
    assert_int_equal(p[1].device.begin, 0);
    assert_int_equal(p[1].device.end, -8);
    assert_int_equal(p[1].device.peak, 0);
    assert_int_equal(p[3].heap.end, 3000 + 8000); // to the mark of the next case
    assert_int_equal(p[2].counter_count, 1);
    assert_string_equal(p[2].counters[0].event, "perf::CYCLES");
    assert_true(p[2].unseen == 0 && p[3].unseen == 2);
    assert_int_equal(p[2].counters[0].value, 77);
    probe_case_free(&c);
    assert_null(c.phases);
}

static void test_traffic(void **state)
{
    (void)state;
    struct image m;
    two_cases(&m);
    struct probe_case c = fine(&m, 1);
    const struct probe_phase *p = &c.phases[1];
    assert_int_equal(p->traffic_count, 3); // two types, and a socket
    assert_int_equal(p->traffic[0].calls, 2);
    assert_int_equal(p->traffic[0].bytes, 1000);
    assert_int_equal(p->traffic[0].wire, 500);
    assert_true(p->traffic[0].seconds > 0.9e-6 && p->traffic[0].seconds < 1.1e-6);
    struct probe_traffic t = probe_collective(&c, PROBE_ALL_GATHER, "forward", 1);
    assert_int_equal(t.bytes, 1000);
    assert_int_equal(t.type, PROBE_F32);
    assert_int_equal(t.size, 4);
    t = probe_collective(&c, PROBE_ALL_GATHER, NULL, 0); // without what was observed
    assert_int_equal(t.bytes, 2010);
    assert_int_equal(t.calls, 4);
    assert_int_equal(t.type, PROBE_TYPE_OTHER);
    assert_int_equal(probe_collective(&c, PROBE_OP_SEND, NULL, 0).bytes, 12);
    assert_int_equal(probe_collective(&c, PROBE_ALL_REDUCE, NULL, 0).calls, 0);
    assert_int_equal(probe_wire(&c, PROBE_SEND, NULL, 0).bytes, 70);
    assert_int_equal(probe_wire(&c, PROBE_COLLECTIVE, NULL, 0).wire, 1005);
    assert_int_equal(probe_wire(&c, PROBE_COLLECTIVE, "observe", -1).bytes, 1 << 20);
    probe_case_free(&c);
}

// A norm of 4 bytes is apart from gradients of the same type, as is a gather of 8 bytes of each rank.
static void test_numbers(void **state)
{
    (void)state;
    struct image m;
    start(&m);
    mark(&m, "case", 0, 0, 0);
    traffic(&m, PROBE_COLLECTIVE, PROBE_ALL_REDUCE, PROBE_F32, 4000, 4);
    traffic(&m, PROBE_COLLECTIVE, PROBE_ALL_REDUCE, PROBE_F32, 4, 4);
    traffic(&m, PROBE_COLLECTIVE, PROBE_ALL_REDUCE, PROBE_F32, 12, 4);
    traffic(&m, PROBE_COLLECTIVE, PROBE_ALL_GATHER, PROBE_F64, 32, 4);
    traffic(&m, PROBE_POINT, PROBE_OP_SEND, PROBE_F32, 4, 4);
    struct probe_case c = fine(&m, 0);
    const struct probe_traffic *t = c.phases[0].traffic;
    assert_int_equal(c.phases[0].traffic_count, 4);
    assert_true(!t[0].number && t[0].calls == 2 && t[0].bytes == 4012);
    assert_true(t[1].number && t[1].calls == 1 && t[1].bytes == 4);
    assert_true(t[2].number && t[2].op == PROBE_ALL_GATHER);
    assert_true(!t[3].number && t[3].kind == PROBE_POINT);
    probe_case_free(&c);
}

// Calls that memory may come by are apart from those that move bytes.
static void test_missed(void **state)
{
    (void)state;
    struct image m;
    two_cases(&m);
    struct probe_record *r = append(&m, PROBE_UNSEEN);
    strcpy(r->counter.event, "cuMemCreate");
    r->op = PROBE_MISSED_MEMORY;
    struct probe_case c = fine(&m, 2);
    assert_int_equal(c.unseen, 0);
    assert_int_equal(c.untracked, 1);
    assert_string_equal(c.untracked_call, "cuMemCreate");
    probe_case_free(&c);
}

// The rank may have died, or still run: the last phase lasts to what is there.
static void test_known_phases(void **state)
{
    (void)state;
    static const char *const training[] = {"zero_grad", "forward", "backward", "clip", "step", "eval", "freeze", "unfreeze"}, *const others[] = {"case", "save", "load", "observe", "stop", "end"};
    struct probe_phase phases[] = {{.name = "case"}, {.name = "forward"}, {.name = "fwd"}};
    struct probe_case c = {.rank = 3, .phase_count = 2, .phases = phases};
    struct error error = {""};
    for (size_t i = 0; i < sizeof training / sizeof *training; i++)
        assert_true(probe_trains(training[i]) && probe_of_step(training[i]) == (i >= 1 && i <= 4));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(probe_trains(others[i]) || probe_of_step(others[i]));
    assert_true(probe_phases_known(&c, &error));
    c.phase_count = 3;
    assert_false(probe_phases_known(&c, &error));
    assert_string_equal(error.text, "rank 3 marks phase 'fwd', expected case, zero_grad, forward, backward, clip, step, eval, freeze, unfreeze, save, load, observe, stop or end "
                                    "(docs/probes.md, Phases)");
}

static void test_unfinished(void **state)
{
    (void)state;
    struct image m;
    two_cases(&m);
    atomic_store(&m.header.small_live, 9100);
    atomic_store(&m.header.small_peak, 9300);
    struct probe_case c = fine(&m, 2);
    assert_int_equal(c.phase_count, 1);
    assert_int_equal(c.phases[0].heap.end, (1 << 20) + 100);
    assert_int_equal(c.phases[0].heap.peak, (1 << 20) + 300);
    probe_case_free(&c);
    atomic_store(&m.header.next, ROOM + 1000); // full: claimed beyond the end, and those were never written
    c = fine(&m, 2);
    assert_int_equal(c.phase_count, 1);
    probe_case_free(&c);
}

static void test_damage(void **state)
{
    (void)state;
    struct image m, bad;
    two_cases(&m);
    refused(&m, 0, 1, "no header");
    refused(&m, 100, 1, "no header");
    refused(&m, PROBE_HEADER_BYTES, 1, "found room for 0 records, expected 64");
    refused(&m, sizeof m - 1, 1, "found room for 63 records, expected 64");
    refused(&m, sizeof m, 7, "no mark of case 7");
#define DAMAGED(change, says) do { bad = m; change; refused(&bad, sizeof bad, 1, says); } while (0)
    DAMAGED(bad.header.magic[0] = 0, "not a file of the probes");
    DAMAGED(bad.header.version = 9, "version 9, expected 3");
    DAMAGED(bad.header.capacity = UINT64_MAX, "truncated");
    DAMAGED(atomic_store(&bad.header.room, ROOM + 1), "found 65 records with room");
    DAMAGED(bad.records[4].kind = 99, "record 4 is damaged: found kind 99");
    DAMAGED(bad.records[11].op = 200, "record 11 is damaged: found op 200");
    DAMAGED(bad.records[11].type = 200, "record 11 is damaged: found type 200");
    DAMAGED(memset(bad.records[6].mark.phase, 'x', PROBE_PHASE_BYTES), "record 6 is damaged: found a name without an end");
    DAMAGED(atomic_store(&bad.header.next, 0), "no mark of case 1 in 0 records");
#undef DAMAGED
    unlink(path);
    struct probe_case c;
    struct error error = {""};
    assert_false(probe_read(path, 0, &c, &error));
    assert_non_null(strstr(error.text, "No such file"));
}

// Any bytes: read or refused, never a crash or an overflow; a refusal is one line.
static void test_any_bytes(void **state)
{
    (void)state;
    struct image m, bad;
    two_cases(&m);
    uint64_t seed = 1, read = 0, refusals = 0;
    for (int round = 0; round < 3000; round++) {
        bad = m;
        size_t bytes = sizeof bad;
        for (int k = 0; k < 1 + round % 4; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            size_t at = (size_t)(seed >> 33) % sizeof bad;
            if (at < PROBE_HEADER_BYTES && at >= sizeof bad.header)
                at = PROBE_HEADER_BYTES + at % (30 * PROBE_RECORD_BYTES);
            ((unsigned char *)&bad)[at] = (unsigned char)(seed >> 20);
        }
        if (round % 10 == 0)
            bytes = (size_t)(seed >> 33) % sizeof bad;
        struct probe_case c;
        struct error error = {""};
        put(&bad, bytes);
        if (probe_read(path, 1, &c, &error)) {
            read++;
            probe_case_free(&c);
        } else {
            refusals++;
            assert_true(error.text[0] != 0 && strchr(error.text, '\n') == NULL);
        }
    }
    assert_true(read > 300 && refusals > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phases), cmocka_unit_test(test_traffic), cmocka_unit_test(test_numbers), cmocka_unit_test(test_missed), cmocka_unit_test(test_known_phases), cmocka_unit_test(test_unfinished),
        cmocka_unit_test(test_damage), cmocka_unit_test(test_any_bytes),
    };
    int file = mkstemp(path);
    if (file < 0)
        return 1;
    close(file);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
