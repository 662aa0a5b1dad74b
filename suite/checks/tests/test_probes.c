// Every check of what probes saw passes a right subject, fails a wrong one with the right words and class, and passes nothing that was not seen.
//
// One table: check, case, subject, expected verdict, a part of the message, the class that must be named first. The last tests take every row that passes
// and spoil its records (none, some lost, cut off), and make sure that the table both passes and fails each check.
//
// The small model has sizes 4, 6, 4: unit 0 of 6 x 4 + 6 = 30 elements, unit 1 of 4 x 6 + 4 = 28; together 58, in float32 232 bytes. A number of each
// of two ranks are 16 bytes.
#include "harness/judge/traffic.h"
#include "suite/checks/tests/probed.h"

#define SMALL(strategy, ranks) "name: t\ntitle: t\nlayer: calibrated\nmodel: {kind: mlp, sizes: [4, 6, 4]}\ndata: {recipe: gaussian, std: 0.1}\nsteps: 1\noptimizer: {kind: sgd, lr: 0.25}\nstrategy: " strategy "\nranks: " ranks "\n"
#define FULL SMALL("full", "2")
#define GRAD SMALL("grad", "2")
#define MICROS "micros: 2\nsync: last\n"
#define HYBRID SMALL("hybrid", "4") "mesh: [2, 2]\n"
#define WIDE(strategy) "name: t\ntitle: t\nlayer: calibrated\nmodel: {kind: mlp, sizes: [96, 72, 48]}\ndata: {recipe: gaussian, std: 0.1}\nsteps: 1\noptimizer: {kind: sgd, lr: 0.25}\nstrategy: " strategy "\nranks: 2\n"
#define SIZES(strategy, ranks) "name: t\ntitle: t\nlayer: calibrated\ndata: {recipe: gaussian, std: 0.1}\nsteps: 2\noptimizer: {kind: sgd, lr: 0.25}\nstrategy: " strategy \
    "\nmodel: {kind: mlp}\nmatrix: {model.sizes: [[48, 96, 48], [48, 144, 48], [48, 240, 48]], ranks: " ranks "}\n"
#define TWO_SIZES "name: t\ntitle: t\nlayer: calibrated\ndata: {recipe: gaussian, std: 0.1}\nstrategy: full\nmodel: {kind: mlp}\nmatrix: {model.sizes: [[48, 96, 48], [48, 144, 48]], ranks: [2]}\n"
#define LAYERS(strategy, ranks) "name: memory\ntitle: t\nlayer: measured\noptimizer: {kind: adamw}\nrows_per_rank: 1\nsteps: 14\nobserve_local: false\nstrategy: " strategy \
    "\nmodel: {kind: mlp, bias: false}\nmatrix: {ranks: " ranks ", model.sizes: [[200, 200, 200, 200], [200, 200, 200, 200, 200], [200, 200, 200, 200, 200, 200], [200, 200, 200, 200, 200, 200, 200]]}\n"
#define FIFTY "name: memory\ntitle: t\nlayer: measured\noptimizer: {kind: adamw}\nrows_per_rank: 1\nsteps: 50\nobserve_local: false\nstrategy: full\nranks: 2\nmodel: {kind: mlp, bias: false, sizes: [200, 200, 200, 200]}\n"

enum { MPI = 1 << PROBE_MPI, NCCL = 1 << PROBE_NCCL, SOCKET = 1 << PROBE_SOCKET, HEAP = 1 << PROBE_HEAP };

// Right over two ranks: two gathers of all, or one where a unit stays; a reduction of all.
#define FORWARD "forward: all-gather f32 2x232, all-gather f64 1x16; "
#define BACKWARD "backward: all-gather f32 2x232, reduce-scatter f32 2x232"
#define REDUCE "backward: reduce-scatter f32 2x232; "
#define GATHER "step: all-gather f32 2x232"

// ---- faults of records and answers ----

static void gloo(struct probed *s)
{
    for (int r = 0; r < s->e.world_size; r++)
        json_object_set_new(json_object_get(s->own->answers[r].events[0].fields, "configured"), "backend", json_string("gloo"));
}
static void tells_units(struct probed *s) { json_object_set_new(json_object_get(s->own->answers[0].events[0].fields, "configured"), "units", json_string("true")); }
static void less_wire(struct probed *s) { probed_find(s->own, 1, "forward")->traffic[0].wire -= 40; }
static void unseen(struct probed *s)
{
    s->own->probes[0].unseen = probed_find(s->own, 0, "forward")->unseen = 3;
    s->own->probes[0].unseen_call = "MPI_Put";
}
static void unseen_before(struct probed *s) { s->members[1].probes[0].unseen = probed_find(&s->members[1], 0, "forward")->unseen = 3; }
static void unseen_at_start(struct probed *s) // as by a store that ranks meet at
{
    s->own->probes[0].unseen = probed_find(s->own, 0, "case")->unseen = 3;
    s->own->probes[0].unseen_call = "io_uring_enter";
}
static void untracked(struct probed *s)
{
    s->own->probes[1].untracked = 1;
    s->own->probes[1].untracked_call = "cuMemCreate";
}
static void says_nothing(struct probed *s)
{
    struct answer *a = &s->own->answers[1];
    for (int i = 0; i < a->count; i++)
        if (a->events[i].kind == EVENT_TRAFFIC)
            a->events[i].kind = EVENT_ERROR;
}
static void scatters(struct probed *s)
{
    for (int r = 0; r < 2; r++)
        probed_find(&s->members[1], r, "forward")->traffic[0].bytes *= 2;
}
static void many_kinds(struct probed *s) // of as many groups
{
    struct probe_phase *p = probed_find(s->own, 1, "step");
    p->traffic = realloc(p->traffic, (TRAFFIC_ROWS + 1) * sizeof *p->traffic);
    for (p->traffic_count = 0; p->traffic_count <= TRAFFIC_ROWS; p->traffic_count++)
        p->traffic[p->traffic_count] = (struct probe_traffic){.kind = PROBE_COLLECTIVE, .op = PROBE_ALL_GATHER, .type = PROBE_F32, .size = 2 + p->traffic_count, .calls = 1, .bytes = 400};
}
static void renames(struct probed *s) { probed_find(s->own, 1, "step")->name = "clip"; }
static void swells(struct probed *s)
{
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < s->members[1].probes[r].phase_count; i++) {
            struct probe_live *l = &s->members[1].probes[r].phases[i].heap;
            *l = (struct probe_live){l->begin * 2, l->end * 2, l->peak * 2};
        }
}
static void forgets(struct probed *s) { json_object_set_new(answer_find(&s->own->answers[1], EVENT_MEMORY, 0)->fields, "phase", json_string("other")); }
static void stops_early(struct probed *s) { s->own->probes[1].phase_count -= 20; }
static void loses(struct probed *s) { s->own->probes[1].lost = 7; }

#define SAYS(gathers, scatters, reductions, scattered, reduced) "{\"event\": \"traffic\", \"all_gather\": {\"count\": " #gathers ", \"bytes\": 0}, \"reduce_scatter\": {\"count\": " #scatters \
    ", \"bytes\": " #scattered "}, \"all_reduce\": {\"count\": " #reductions ", \"bytes\": " #reduced "}, \"broadcast\": {\"count\": 0, \"bytes\": 0}}"

static const struct row {
    const char *check, *yaml;
    struct subject subject;
    enum verdict verdict;
    const char *message, *classes;
} rows[] = {
    // the plain ones
    {"traffic-counts", FULL, {.probes = MPI, .moves = FORWARD BACKWARD}, VERDICT_PASS, "2 units, as the formula says", ""},
    {"traffic-counts", FULL, {.probes = NCCL, .moves = FORWARD "backward: all-gather f32 1x120, all-to-all f32 2x232"}, VERDICT_PASS, "the last unit stays gathered", ""},
    {"traffic-counts", FULL, {.probes = MPI, .moves = "forward: all-gather f32 4x464, reduce-scatter f32 2x232"}, VERDICT_PASS, "", ""}, // no mark of the backward
    {"traffic-counts", GRAD, {.probes = MPI, .moves = REDUCE GATHER}, VERDICT_PASS, "", ""},
    {"traffic-counts", SMALL("none", "2"), {.probes = MPI, .moves = "backward: all-reduce f32 1x232"}, VERDICT_PASS, "", ""}, // one bucket
    {"traffic-counts", SMALL("none", "2"), {.probes = MPI, .moves = "backward: all-reduce f32 2x232, all-reduce f32 1x4", .fault = tells_units}, VERDICT_PASS, "", ""}, // and a loss
    {"traffic-counts", SMALL("none", "2"), {.probes = MPI, .moves = "backward: all-reduce f32 1x232", .fault = tells_units}, VERDICT_FAIL, "1 calls of 232 bytes, expected 2 of 232", "Z28"},
    {"traffic-counts", SMALL("none", "2"), {.probes = MPI, .moves = "backward: all-reduce f32 5x232"}, VERDICT_FAIL, "5 calls of 232 bytes, expected 2 of 232: gradients are reduced more than once", "Z28"},
    {"traffic-counts", HYBRID, {.probes = MPI, .moves = "forward: all-gather/2 f32 2x232; backward: all-gather/2 f32 2x232, reduce-scatter/2 f32 2x232, all-reduce/2 f32 2x116"}, VERDICT_PASS, "", ""},
    {"traffic-counts", HYBRID, {.probes = MPI, .moves = "forward: all-gather/2 f32 2x232; backward: all-gather/2 f32 2x232, all-reduce f32 2x232"}, VERDICT_FAIL, "all-reduce of f32 over 4 ranks: 2 calls of 232 bytes, expected 0 of 0", "Z28"},
    {"traffic-counts", SMALL("full", "1"), {.probes = MPI, .moves = "forward: ; backward: "}, VERDICT_PASS, "", ""},
    {"traffic-counts", SMALL("full", "1"), {.probes = MPI, .moves = "forward: all-gather f32 2x232; backward: "}, VERDICT_FAIL, "2 collectives of one rank, expected none", "Z28"},
    // too many, too few, others
    {"traffic-counts", FULL, {.probes = MPI, .moves = "forward: all-gather f32 3x352; " BACKWARD}, VERDICT_FAIL,
     "forward of step 0, all-gather of f32 over 2 ranks: 3 calls of 352 bytes, expected 2 of 232: units are gathered more than once", "Z28"},
    {"traffic-counts", FULL, {.probes = MPI, .moves = FORWARD "backward: all-gather f32 4x464, reduce-scatter f32 2x232"}, VERDICT_FAIL, "gradients are all-reduced where a reduce-scatter does, or units gathered more than once", "Z28"},
    {"traffic-counts", FULL "activation_checkpointing: true\n", {.probes = MPI, .moves = FORWARD "backward: all-gather f32 4x464, reduce-scatter f32 2x232"}, VERDICT_FAIL, "gathered again for the recomputation", "Z30"},
    {"traffic-counts", FULL "reshard_after_forward: false\n", {.probes = MPI, .moves = FORWARD "backward: all-gather f32 1x120, reduce-scatter f32 2x232"}, VERDICT_FAIL, "units are gathered again though they stay gathered", "Z28"},
    {"traffic-counts", GRAD MICROS, {.probes = MPI, .moves = "forward: all-gather f32 2x232; " REDUCE "step: "}, VERDICT_FAIL, "a gather though parameters are there already", "Z28"}, // of every microbatch
    {"traffic-counts", GRAD MICROS, {.probes = MPI, .moves = "unsynced: reduce-scatter f32 2x232; " REDUCE GATHER}, VERDICT_FAIL, "a reduction in a microbatch that does not synchronise", "Z28"},
    {"traffic-counts", FULL, {.probes = MPI, .moves = FORWARD "backward: all-gather f32 5x584, reduce-scatter f32 2x232"}, VERDICT_FAIL, "units are gathered more than once for the backward", "Z28"},
    {"traffic-counts", FULL, {.probes = MPI, .moves = FORWARD BACKWARD "; step: all-gather f32 2x232"}, VERDICT_FAIL, "a gather that the formula has not", "Z28"},
    {"traffic-counts", GRAD, {.probes = MPI, .moves = "backward: all-reduce f32 2x232; " GATHER}, VERDICT_FAIL,
     "backward of step 0, all-reduce of f32 over 2 ranks: 2 calls of 232 bytes, expected 0 of 0: an all-reduce where a reduce-scatter does", "Z28"},
    {"traffic-counts", GRAD, {.probes = MPI, .moves = REDUCE "step: "}, VERDICT_FAIL, "step of step 0, all-gather of f32 over 2 ranks: 0 calls of 0 bytes, expected 2 of 232: it is missing", "Z28"},
    {"traffic-counts", GRAD, {.probes = MPI, .moves = REDUCE "step: all-gather f32 2x232, broadcast f32 2x232"}, VERDICT_FAIL, "a broadcast in a step of training", "Z28"},
    {"traffic-counts", GRAD, {.probes = MPI, .moves = "backward: reduce-scatter i32 2x232; " GATHER}, VERDICT_FAIL, "2 calls of 232 bytes in i32, expected 2 of 232: in another type", "Z28"},
    {"traffic-counts", GRAD "precision: bf16\n", {.probes = MPI, .moves = REDUCE "step: all-gather u16 2x116"}, VERDICT_PASS, "", ""}, // MPI has no bf16
    {"traffic-counts", GRAD "precision: bf16\n", {.probes = MPI, .moves = REDUCE GATHER}, VERDICT_FAIL, "all-gather of bf16 over 2 ranks: 2 calls of 232 bytes in f32, expected 2 of 116: in a type of twice the width", "Z28"},
    {"traffic-counts", GRAD, {.probes = MPI, .moves = REDUCE GATHER, .last_rank_moves = REDUCE "step: all-gather f32 3x348"}, VERDICT_FAIL, "rank 1, step of step 0", "Z28"},
    {"traffic-counts", GRAD, {.probes = MPI, .moves = REDUCE GATHER ", barrier other 1x0"}, VERDICT_FAIL, "2 barriers in training, expected none", "Z28"},
    {"traffic-counts", GRAD, {.probes = MPI, .moves = REDUCE GATHER ", point 2x100"}, VERDICT_FAIL, "4 messages from rank to rank beside the collectives, expected none", "Z28"},
    {"traffic-counts", GRAD, {.probes = MPI, .moves = REDUCE GATHER ", all-reduce f64 5x40"}, VERDICT_FAIL, "5 exchanges of a number in one phase, expected at most 4", "Z28"},
    {"traffic-counts", FULL, {.probes = MPI | SOCKET, .moves = "forward: ; backward: "}, VERDICT_FAIL, "0 calls of 0 bytes, expected 2 of 232: it is missing", "Z28"}, // observations are seen
    // not seen
    {"traffic-counts", GRAD, {.probes = MPI, .moves = REDUCE GATHER, .fault = renames}, VERDICT_BROKEN, "rank 1 marks phase clip of step 0, the program has step of step 0 there", ""},
    {"traffic-counts", GRAD, {.probes = MPI, .moves = REDUCE GATHER, .fault = many_kinds}, VERDICT_BROKEN, "rank 1: phase step of step 0 has more than 24 kinds of collectives", ""},
    {"traffic-bytes", GRAD, {.probes = MPI, .moves = REDUCE GATHER, .fault = many_kinds}, VERDICT_BROKEN, "rank 1: phase step of step 0 has more than 24 kinds of collectives", ""},
    {"traffic-counts", FULL, {.probes = MPI | SOCKET, .moves = "forward: point 4x464; backward: point 1x1"}, VERDICT_SKIP, "made of point-to-point calls: their kinds and payloads are unseen", ""},
    {"traffic-counts", FULL, {.probes = MPI | SOCKET, .moves = "forward: ; backward: ; observe: "}, VERDICT_BROKEN, "no probe saw a byte move between 2 ranks", ""},
    {"traffic-counts", FULL, {.probes = MPI | SOCKET, .moves = "forward: ; backward: ; observe: ", .fault = unseen}, VERDICT_SKIP, "rank 0 may move bytes by MPI_Put, which no probe counts", ""},
    // bytes of collectives
    {"traffic-bytes", FULL, {.probes = MPI, .moves = FORWARD BACKWARD}, VERDICT_PASS, "bytes on the wire", ""},
    {"traffic-bytes", FULL, {.probes = MPI, .moves = FORWARD BACKWARD, .fault = less_wire}, VERDICT_FAIL, "656 bytes on the wire from all ranks, the formula says 696", "Z28"},
    {"traffic-bytes", FULL, {.probes = MPI, .moves = "forward: all-gather f32 2x240; " BACKWARD}, VERDICT_FAIL, "2 calls of 240 bytes, expected 2 of 232: units are gathered more than once", "Z28"},
    {"traffic-bytes", FULL, {.probes = MPI, .moves = "forward: all-gather f32 2x224; " BACKWARD}, VERDICT_FAIL, "less than the strategy needs", "Z28"},
    {"traffic-bytes", FULL "activation_checkpointing: true\n", {.probes = MPI, .moves = FORWARD "backward: all-gather f32 4x464, reduce-scatter f32 2x232"}, VERDICT_FAIL, "gathered again for the recomputation", "Z30"},
    {"traffic-bytes", GRAD "precision: bf16\n", {.probes = MPI, .moves = REDUCE GATHER}, VERDICT_FAIL, "in a type of twice the width", "Z28"},
    {"traffic-bytes", GRAD, {.probes = MPI, .moves = "backward: all-reduce f32 2x232; " GATHER}, VERDICT_FAIL, "an all-reduce where a reduce-scatter does", "Z28"},
    {"traffic-bytes", SMALL("full", "1"), {.probes = MPI, .moves = "forward: ; backward: "}, VERDICT_PASS, "", ""},
    // bytes of sockets: 96 x 72 + 72 + 72 x 48 + 48 = 10488 elements; gathers twice and a reduction, times 1/2: 62928; gloo reduces twice: 83904, and headers
    {"traffic-bytes", WIDE("full"), {.probes = SOCKET, .moves = "forward: send 9x62928; backward: "}, VERDICT_PASS, "", ""},
    {"traffic-bytes", WIDE("full"), {.probes = SOCKET, .moves = "forward: send 9x62928; backward: send 9x20976"}, VERDICT_FAIL, "83904 bytes sent by a rank, at most 62928 by the formula (minimal:", "Z28"},
    {"traffic-bytes", WIDE("full"), {.probes = SOCKET, .moves = "forward: send 9x62928; backward: send 9x20976", .fault = gloo}, VERDICT_PASS, "", ""},
    {"traffic-bytes", WIDE("full"), {.probes = SOCKET, .moves = "forward: send 9x62928; backward: send 9x41952", .fault = gloo}, VERDICT_FAIL, "104880 bytes sent by a rank, at most 86208 by the formula (gloo:", "Z28"},
    {"traffic-bytes", WIDE("full") "activation_checkpointing: true\n", {.probes = SOCKET, .moves = "forward: send 9x62928; backward: send 9x20976"}, VERDICT_FAIL, "", "Z28 Z30"},
    {"traffic-bytes", WIDE("grad"), {.probes = SOCKET, .moves = "forward: send 9x20976; backward: "}, VERDICT_FAIL, "20976 bytes sent by a rank, the strategy needs 41952", "Z28"}, // nothing reduced
    {"traffic-bytes", SMALL("full", "1"), {.probes = SOCKET, .moves = "forward: ; backward: "}, VERDICT_PASS, "0 bytes sent by a rank", ""},
    {"traffic-bytes", SMALL("full", "1"), {.probes = SOCKET, .moves = "forward: send 1x20000; backward: "}, VERDICT_FAIL, "20000 bytes sent by a rank, at most 0", "Z28"},
    {"traffic-bytes", FULL, {.probes = MPI, .moves = FORWARD BACKWARD, .fault = unseen}, VERDICT_SKIP, "rank 0 may move bytes by MPI_Put", ""},
    {"traffic-bytes", FULL, {.probes = MPI, .moves = FORWARD BACKWARD, .fault = unseen_at_start}, VERDICT_PASS, "", ""},
    {"traffic-bytes", FULL, {.probes = MPI | SOCKET, .moves = "forward: ; backward: ; observe: ", .fault = unseen_at_start}, VERDICT_SKIP, "rank 0 may move bytes by io_uring_enter", ""},
    {"traffic-bytes", FULL, {.probes = MPI | SOCKET, .moves = "forward: point 4x464; backward: point 1x1"}, VERDICT_SKIP, "their kinds and payloads are unseen", ""},
    {"traffic-bytes", FULL, {.probes = MPI, .moves = "forward: ; backward: ; observe: "}, VERDICT_SKIP, "the socket probe is not loaded", ""},
    {"traffic-bytes", FULL, {.probes = MPI | SOCKET, .moves = "forward: ; backward: ; observe: "}, VERDICT_BROKEN, "no probe saw a byte move between 2 ranks", ""},
    {"traffic-bytes", FULL, {.probes = MPI | SOCKET, .moves = "forward: ; backward: ; observe: ", .fault = unseen}, VERDICT_SKIP, "rank 0 may move bytes by MPI_Put, which no probe counts", ""},
    // slopes: full moves 2 w + g = 12 bytes f(N), by gloo 2 w + 2 g = 16
    {"traffic-slope", SIZES("full", "[2]"), {.probes = SOCKET, .sent = 12}, VERDICT_PASS, "6.000 +- 0.000 bytes for each parameter, rank and step from 3 sizes, the formula says 6.000", ""},
    {"traffic-slope", SIZES("full", "[2]"), {.probes = SOCKET, .sent = 16, .fault = gloo}, VERDICT_PASS, "(gloo: ", ""},
    {"traffic-slope", SIZES("full", "[2]"), {.probes = SOCKET, .sent = 12.5}, VERDICT_FAIL, "6.250", "Z28"},
    {"traffic-slope", SIZES("full", "[2]"), {.probes = SOCKET, .sent = 16}, VERDICT_FAIL, "a step moves 1.00 gathers (or 1.00 reductions) of all parameters more than it needs", "Z28"},
    {"traffic-slope", SIZES("full", "[2]") "activation_checkpointing: true\n", {.probes = SOCKET, .sent = 16}, VERDICT_FAIL, "units are gathered again for the recomputation", "Z30"},
    {"traffic-slope", SIZES("none", "[2]"), {.probes = SOCKET, .sent = 4}, VERDICT_FAIL, "less than it needs", "Z28"},
    {"traffic-slope", SIZES("full", "[2]"), {.probes = SOCKET, .sent = 12, .fault = scatters}, VERDICT_BROKEN, "the interval is wider than 2 %", ""},
    {"traffic-slope", SIZES("full", "[2]"), {.probes = SOCKET, .sent = 12, .fault = unseen_before}, VERDICT_SKIP, "one of its 3 sizes may have moved bytes that no probe counts", ""},
    {"traffic-slope", SIZES("grad", "[2, 4]"), {.probes = SOCKET, .sent = 8}, VERDICT_PASS, "6.000", ""}, // of 4 ranks: 8 x 3/4
    {"traffic-slope", SIZES("grad", "[2, 4]"), {.probes = SOCKET, .sent = 8, .sent_at_two = 12}, VERDICT_FAIL, "at N = 2 and 6.000 at N = 4, f(N) = (N-1)/N makes it 4.000", "Z28"},
    // claims
    {"traffic-claims", GRAD, {.probes = MPI, .moves = REDUCE GATHER, .says = SAYS(2, 2, 0, 232, 0)}, VERDICT_PASS, "", ""},
    {"traffic-claims", GRAD, {.probes = MPI, .moves = REDUCE "step: all-gather f32 2x232, reduce-scatter f64 1x16, all-gather f64 1x16", .says = SAYS(2, 2, 1, 232, 16)}, VERDICT_PASS, "", ""}, // an all-reduce of two
    {"traffic-claims", GRAD, {.probes = MPI, .moves = REDUCE "step: all-gather f32 3x348", .says = SAYS(2, 2, 0, 232, 0)}, VERDICT_FAIL, "rank 0: the probe saw 3 calls of all-gathers, the worker's claims make it 2 to 2", "Z28"},
    {"traffic-claims", GRAD, {.probes = MPI, .moves = "backward: reduce-scatter f32 2x232, reduce-scatter f32 1x232; " GATHER, .says = SAYS(2, 2, 0, 232, 0)}, VERDICT_FAIL, "3 calls of reduce-scatters", "Z28"},
    {"traffic-claims", GRAD, {.probes = MPI, .moves = REDUCE GATHER, .says = SAYS(2, 2, 0, 116, 0)}, VERDICT_FAIL, "232 bytes of reduce-scatters, the worker's claims make it 116 to 116", "Z28"},
    {"traffic-claims", GRAD, {.probes = MPI, .moves = REDUCE GATHER ", all-reduce f32 1x4", .says = SAYS(2, 2, 0, 232, 0)}, VERDICT_FAIL, "1 calls of all-reduces, the worker's claims make it 0 to 0", "Z28"},
    {"traffic-claims", GRAD, {.probes = MPI, .moves = REDUCE GATHER ", broadcast f32 1x4", .says = SAYS(2, 2, 0, 232, 0)}, VERDICT_FAIL, "1 calls of broadcasts", "Z28"},
    {"traffic-claims", GRAD, {.probes = MPI, .moves = REDUCE "step: ", .says = SAYS(2, 2, 0, 232, 0)}, VERDICT_FAIL, "0 calls of all-gathers", "Z28"}, // claimed, not done
    {"traffic-claims", GRAD, {.probes = MPI, .moves = REDUCE GATHER, .last_rank_moves = REDUCE "step: all-gather f32 3x348", .says = SAYS(2, 2, 0, 232, 0)}, VERDICT_FAIL, "rank 1: the probe saw 3 calls", "Z28"},
    {"traffic-claims", GRAD, {.probes = MPI, .moves = REDUCE GATHER, .says = SAYS(2, 2, 0, 232, 0), .fault = says_nothing}, VERDICT_BROKEN, "rank 1 has no traffic event, rank 0 has one", ""},
    // memory of four sizes; AdamW in float32: w = g = 4, k = 8
    {"memory-rest", LAYERS("none", "[2]"), {.probes = HEAP, .live = {.whole = 16}}, VERDICT_PASS, "holds 16 +- ", ""},
    {"memory-rest", LAYERS("optimizer", "[2]"), {.probes = HEAP, .live = {.whole = 8, .shared = 8}}, VERDICT_PASS, "holds 12 +- ", ""},
    {"memory-rest", LAYERS("grad", "[4]"), {.probes = HEAP, .live = {.whole = 4, .shared = 12}}, VERDICT_PASS, "holds 7 +- ", ""},
    {"memory-rest", LAYERS("full", "[4]"), {.probes = HEAP, .live = {.shared = 16}}, VERDICT_PASS, "over 4 sizes (heap), the strategy has 4", ""},
    {"memory-rest", LAYERS("full", "[4]"), {.probes = HEAP, .live = {.whole = 8, .shared = 8}}, VERDICT_FAIL, "holds 10 +- ", "Z27"},
    {"memory-rest", LAYERS("full", "[4]"), {.probes = HEAP, .live = {.whole = 8, .shared = 8}}, VERDICT_FAIL, "(as much as optimizer states that are not sharded)", "Z27"},
    {"memory-rest", LAYERS("full", "[4]"), {.probes = HEAP, .live = {.whole = 16}}, VERDICT_FAIL, "(as much as everything unsharded)", "Z27"},
    {"memory-rest", LAYERS("full", "[4]"), {.probes = HEAP, .live = {.shared = 16.6}}, VERDICT_FAIL, "holds 4.15", "Z27"},
    {"memory-rest", LAYERS("full", "[4]"), {.probes = HEAP, .live = {.shared = 8}}, VERDICT_FAIL, "holds 2 +- ", "Z27"}, // what it should hold is not there
    {"memory-rest", LAYERS("full", "[4]"), {.probes = HEAP, .live = {.shared = 16, .last_rank = 3}}, VERDICT_FAIL, "rank 3 holds 7 +- ", "Z27"},
    {"memory-rest", LAYERS("full", "[2]"), {.probes = HEAP, .live = {.shared = 16}, .fault = swells}, VERDICT_BROKEN, "cannot tell: rest: ", ""},
    {"memory-rest", LAYERS("full", "[2]"), {.probes = HEAP, .live = {.shared = 16}, .fault = untracked}, VERDICT_SKIP, "rank 1 may hold memory by cuMemCreate, which no probe counts", ""},
    {"memory-scaling", LAYERS("full", "[2, 3, 4]"), {.probes = HEAP, .live = {.shared = 16}}, VERDICT_PASS, "over 3 meshes: a = ", ""},
    {"memory-scaling", LAYERS("none", "[2, 3, 4]"), {.probes = HEAP, .live = {.whole = 16}}, VERDICT_PASS, "the strategy has a = 16, b = 0", ""},
    {"memory-scaling", LAYERS("full", "[2, 3, 4]"), {.probes = HEAP, .live = {.whole = 8, .shared = 8}}, VERDICT_FAIL, "a = 8 +- ", "Z27"},
    {"memory-scaling", LAYERS("full", "[2, 3, 4]"), {.probes = HEAP, .live = {.whole = 16}}, VERDICT_FAIL, "the strategy has a = 0, b = 16", "Z27"},
    {"memory-scaling", LAYERS("full", "[2, 3, 4]"), {.probes = HEAP, .live = {.whole = 0.6, .shared = 16}}, VERDICT_FAIL, "a = 0.6 +- ", "Z27"},
    {"memory-scaling", LAYERS("none", "[1, 2, 3]"), {.probes = HEAP, .live = {.whole = 16, .grouped = 4}}, VERDICT_FAIL, "lie on no a + b/N", "Z27"}, // buckets
    {"memory-scaling", LAYERS("none", "[1, 2, 3]"), {.probes = HEAP, .live = {.whole = 16, .grouped = 4}}, VERDICT_FAIL, "they are 20 +- 0, the strategy has 16", "Z27"},
    {"memory-scaling", LAYERS("none", "[1, 2, 3]"), {.probes = HEAP, .live = {.whole = 16, .grouped = 0.4}}, VERDICT_BROKEN, "cannot tell: over 3 meshes", ""}, // within 3 % each
    {"memory-scaling", LAYERS("full", "[2, 3, 4]"), {.probes = HEAP, .live = {.shared = 16}, .fault = loses}, VERDICT_BROKEN, "rank 1: 7 records were lost", ""},
    {"memory-peak", LAYERS("full", "[2]"), {.probes = HEAP, .live = {.shared = 16}}, VERDICT_PASS, "", ""},
    {"memory-peak", LAYERS("full", "[2]") "reshard_after_forward: false\n", {.probes = HEAP, .live = {.shared = 16, .forward = 4, .backward = 4}}, VERDICT_PASS, "", ""},
    {"memory-peak", LAYERS("full", "[2]"), {.probes = HEAP, .live = {.shared = 16, .forward = 4}}, VERDICT_FAIL, "forward: rank 0 holds 12 +- ", "Z27"},
    {"memory-peak", LAYERS("full", "[2]"), {.probes = HEAP, .live = {.shared = 16, .forward = 4}}, VERDICT_FAIL, "gathered parameters that are kept", "Z27"},
    {"memory-peak", LAYERS("full", "[2]"), {.probes = HEAP, .live = {.shared = 16, .backward = 4}}, VERDICT_FAIL, "backward: rank 0 holds 12 +- ", "Z27"},
    {"memory-peak", LAYERS("full", "[2]"), {.probes = HEAP, .live = {.shared = 16, .step = 4}}, VERDICT_FAIL, "step: rank 0 holds 12 +- ", "Z27"},
    {"memory-peak", LAYERS("full", "[2]") "activation_checkpointing: true\n", {.probes = HEAP, .live = {.shared = 16, .backward = 4}}, VERDICT_FAIL, "gathered parameters that are kept", "Z27 Z30"},
    {"memory-peak", LAYERS("full", "[2]"), {.probes = HEAP, .live = {.shared = 16}, .fault = loses}, VERDICT_BROKEN, "rank 1: 7 records were lost", ""},
    {"memory-peak", LAYERS("full", "[2]"), {.probes = HEAP, .live = {.shared = 16}, .fault = swells}, VERDICT_BROKEN, "cannot tell: ", ""},
    {"memory-leak", FIFTY, {.probes = HEAP, .live = {.shared = 16}}, VERDICT_PASS, "change by 0 +- 0 a step", ""}, // told from 120000 / 2 x 4 / 100 = 2400 on
    {"memory-leak", FIFTY, {.probes = HEAP, .live = {.shared = 16, .leak = 2300}}, VERDICT_PASS, "change by 2300 +- ", ""},
    {"memory-leak", FIFTY, {.probes = HEAP, .live = {.shared = 16, .leak = 2500}}, VERDICT_FAIL, "rank 0: live bytes change by 2500 +- ", "Z27"},
    {"memory-leak", FIFTY, {.probes = HEAP, .live = {.shared = 16}, .fault = stops_early}, VERDICT_BROKEN, "rank 1: its records end before the last optimizer step", ""},
    {"memory-claims", LAYERS("full", "[2]"), {.probes = HEAP, .live = {.whole = 2, .shared = 16}, .claim_rest = 8, .claim_working = 2}, VERDICT_PASS, "", ""},
    {"memory-claims", LAYERS("full", "[2]"), {.probes = HEAP, .live = {.whole = 2, .shared = 16}, .claim_rest = 8, .claim_working = 1}, VERDICT_FAIL, "rank 0: live bytes grow by 1.1111 ", "Z27"},
    {"memory-claims", LAYERS("full", "[2]"), {.probes = HEAP, .live = {.whole = 2, .shared = 16}, .claim_rest = 8, .claim_working = 3}, VERDICT_FAIL, "says that it has allocated 3640000 bytes, 3400000 are live", "Z27"},
    {"memory-claims", FIFTY, {.probes = HEAP, .live = {.whole = -10}, .claim_rest = 8, .claim_working = 2}, VERDICT_FAIL, "bytes, -200000 are live", "Z27"}, // less than before the case
    {"memory-claims", LAYERS("full", "[2]"), {.probes = HEAP, .live = {.whole = 2, .shared = 16}, .claim_rest = 8, .claim_working = 2, .fault = forgets}, VERDICT_BROKEN, "rank 1: no `memory` event of phase allocated", ""},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void row_holds(void **state)
{
    const struct row *row = *state;
    struct probed *s = probed_run(row->yaml, &row->subject);
    bool applies;
    struct finding f = probed_judge(s, planned_check(row->check), &applies);
    if (!applies)
        fail_msg("%s does not apply", row->check);
    if (f.verdict != row->verdict || !strstr(f.message, row->message) || strncmp(f.classes, row->classes, strlen(row->classes)) != 0 || (!*row->classes && *f.classes))
        fail_msg("%s: %s [%s] %s; expected %s [%s] ...%s...", row->check, verdict_name(f.verdict), f.classes, f.message, verdict_name(row->verdict), row->classes, row->message);
    probed_free(s);
}

// ---- what was not seen is not passed ----

static void no_records(struct probed *s)
{
    s->e.probes = NULL;
    s->e.probe_error = "probes.rank0: No such file or directory";
}
static void no_probe(struct probed *s)
{
    for (int r = 0; r < s->e.world_size; r++)
        s->own->probes[r].probes = 0;
}
static void lost(struct probed *s) { s->own->probes[s->e.world_size - 1].lost = 1; }
static void cut_off(struct probed *s) // the last step is not there
{
    struct probe_case *p = &s->own->probes[s->e.world_size - 1];
    while (strcmp(p->phases[--p->phase_count].name, "step") != 0)
        continue;
}
static void lost_by_all(struct probed *s)
{
    for (int i = 0; i < s->count; i++)
        s->members[i].probes[0].lost = 1;
}

static void cut_off_before(struct probed *s)
{
    for (int i = 0; i < s->count - 1; i++) // half of the program
        s->members[i].probes[1].phase_count /= 2;
}
static void lost_before(struct probed *s)
{
    for (int i = 0; i < s->count - 1; i++)
        s->members[i].probes[1].lost = 1;
}

static void unseen_is_not_passed(void **state)
{
    (void)state;
    static const struct { const char *name; void (*spoil)(struct probed *s); } spoils[] = {
        {"no records", no_records}, {"no probe", no_probe}, {"records lost", lost}, {"records cut off", cut_off}, {"records lost everywhere", lost_by_all}, {"records of other sizes lost", lost_before}, {"records of other sizes cut off", cut_off_before}};
    for (int k = 0; k < ROWS; k++)
        for (size_t i = 0; rows[k].verdict == VERDICT_PASS && i < sizeof spoils / sizeof *spoils; i++) {
            struct probed *s = probed_run(rows[k].yaml, &rows[k].subject);
            bool applies;
            spoils[i].spoil(s);
            struct finding f = probed_judge(s, planned_check(rows[k].check), &applies);
            if (applies && f.verdict == VERDICT_PASS && (s->count > 1 || (spoils[i].spoil != lost_before && spoils[i].spoil != cut_off_before)))
                fail_msg("%s (row %d): %s, and it is PASS: %s", rows[k].check, k, spoils[i].name, f.message);
            probed_free(s);
        }
}

static void too_few_points_are_not_judged(void **state)
{
    (void)state;
    static const struct { const char *check, *yaml; struct subject subject; } few[] = {
        {"traffic-slope", TWO_SIZES, {.probes = SOCKET, .sent = 12}}, {"memory-rest", FIFTY, {.probes = HEAP, .live = {.shared = 16}}},
        {"memory-peak", FIFTY, {.probes = HEAP, .live = {.shared = 16}}}, {"memory-scaling", LAYERS("full", "[2, 4]"), {.probes = HEAP, .live = {.shared = 16}}}};
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        struct probed *s = probed_run(few[i].yaml, &few[i].subject);
        assert_false(planned_check(few[i].check)->applies(&s->e));
        probed_free(s);
    }
}

static void every_check_of_probes_can_fail(void **state)
{
    (void)state;
    for (int i = 0; check_list[i]; i++) {
        bool met[3] = {false}; // PASS, FAIL, neither
        for (int k = 0; k < ROWS; k++)
            met[rows[k].verdict > VERDICT_FAIL ? 2 : rows[k].verdict] |= strcmp(rows[k].check, check_list[i]->name) == 0;
        if (planned_by_probes(check_list[i]->name) && !(met[0] && met[1] && met[2]))
            fail_msg("check %s: the table has no row that %s it", check_list[i]->name, !met[0] ? "passes" : !met[1] ? "fails" : "cannot judge");
    }
}

int main(void)
{
    struct CMUnitTest tests[ROWS + 3];
    static char names[ROWS][128];
    for (int k = 0; k < ROWS; k++) {
        snprintf(names[k], sizeof names[k], "%s %s (%d)", rows[k].check, verdict_name(rows[k].verdict), k);
        tests[k] = (struct CMUnitTest){names[k], row_holds, NULL, NULL, (void *)(uintptr_t)&rows[k]};
    }
    tests[ROWS] = (struct CMUnitTest)cmocka_unit_test(unseen_is_not_passed);
    tests[ROWS + 1] = (struct CMUnitTest)cmocka_unit_test(too_few_points_are_not_judged);
    tests[ROWS + 2] = (struct CMUnitTest)cmocka_unit_test(every_check_of_probes_can_fail);
    return cmocka_run_group_tests_name("probes", tests, NULL, NULL);
}
