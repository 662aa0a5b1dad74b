// Every strategy, layout and schedule on 1 to 5 ranks: the same parameters as a plain serial run.
//
// On small integers in float64 all sums of the first step are exact, so that there is one right answer, to the bit; later steps
// agree within rounding. Beside it: the predicted memory is what was
// taken, padding stays 0, the number of collectives is the theory's, and prefetched collectives
// are in flight while the model computes.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reference/backends/tests/under_mpirun.h"
#include "reference/engine/observe.h"
#include "reference/engine/tests/small_case.h"

static struct comm_world world;
static struct error error;

#define EXPECT(condition)                                                                                             \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "rank %d of %d: %s:%d: %s [%s] %s\n", world.all.rank, world.all.size, __FILE__, __LINE__, \
                    #condition, what, error.text);                                                                    \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

static char what[256]; // the configuration being tested

// How microbatches are synchronised.
enum sync { SYNC_LAST, SYNC_ALL, SYNC_SLOTS };

struct setting { enum strategy strategy; enum shard_layout layout; enum wrap_policy wrap; bool reshard, checkpointing, offload;
                 int prefetch; enum sync sync; bool reuse; int reshard_ranks; };

static void describe(const struct setting *s, int replicas)
{
    snprintf(what, sizeof what, "%s x%d %s %s reshard %d checkpointing %d offload %d prefetch %d sync %d reuse %d reshard ranks %d",
             strategy_name(s->strategy), replicas, layout_name(s->layout), wrap_name(s->wrap), s->reshard, s->checkpointing, s->offload,
             s->prefetch, s->sync, s->reuse, s->reshard_ranks);
}

static struct instruction slots_program[] = {{.verb = VERB_FORWARD, .slot = 0}, {.verb = VERB_FORWARD, .slot = 1},
                                             {.verb = VERB_MICRO, .sync = false}};
static struct instruction last_program[] = {{.verb = VERB_MICRO, .sync = false}};

static void apply(const struct setting *s, struct fsdp_case *c, int replicas)
{
    c->sharding.strategy = s->strategy;
    c->sharding.replicas = replicas;
    c->sharding.shards = c->world_size / replicas;
    c->sharding.layout = s->layout;
    c->sharding.wrap = s->wrap;
    c->sharding.wrap_min_parameters = 50;
    c->sharding.wrap_pattern = (char *)"layers.[02]";
    c->sharding.reshard_after_forward = s->reshard;
    c->sharding.reshard_ranks = s->reshard_ranks;
    c->sharding.activation_checkpointing = s->checkpointing;
    c->sharding.offload = s->offload ? OFFLOAD_CPU : OFFLOAD_NONE;
    c->sharding.prefetch_forward = c->sharding.prefetch_backward = s->prefetch;
    c->program = s->sync == SYNC_SLOTS ? slots_program : last_program;
    c->program_length = s->sync == SYNC_SLOTS ? 3 : s->sync == SYNC_LAST;
}

// Three microbatches: as verbs of their own, or two forwards, their two backwards, and one more.
static void accumulate(struct engine *e, enum sync sync, int step)
{
    double loss;
    if (sync == SYNC_SLOTS) {
        EXPECT(engine_forward(e, step, 0, 0, &loss, &error) && engine_forward(e, step, 1, 1, &loss, &error));
        EXPECT(engine_backward(e, 1, true, &error) && engine_backward(e, 0, true, &error));
        EXPECT(engine_micro(e, step, 2, true, &loss, &error));
        return;
    }
    for (int micro = 0; micro < SMALL_MICROS; micro++)
        EXPECT(engine_micro(e, step, micro, sync == SYNC_ALL || micro == SMALL_MICROS - 1, &loss, &error));
}

// exact: bitwise; else within rounding of float64, where integers have grown beyond its 53 bits.
static void expect_parameters(struct engine *e, const struct serial_run *truth, bool exact)
{
    struct tensors full = {0};
    EXPECT(observe_full(e, OBSERVE_PARAM, &full, &error));
    for (int i = 0; e->rank == 0 && i < e->c->parameter_count; i++) {
        const struct tensor *t = tensors_find2(&full, "param", e->c->parameters[i].name);
        EXPECT(t && t->count == e->c->parameters[i].count);
        for (int64_t k = 0; k < t->count; k++)
            EXPECT(fabs(dtype_get(t->dtype, t->data, k) - truth->p[i][k]) <= (exact ? 0 : 1e-10 * fmax(1, fabs(truth->p[i][k]))));
    }
    tensors_free(&full);
}

static void expect_memory_and_padding(const struct engine *e)
{
    EXPECT(arena_check(&e->device, &error) && arena_check(&e->host, &error));
    EXPECT(e->device.used == arena_plan_total(&e->device.plan) && e->device.used > 0);
    EXPECT(observe_padding(e, OBSERVE_PARAM) == 0 && observe_padding(e, OBSERVE_GRAD) == 0);
    for (int i = 0; i < e->unit_count; i++)
        EXPECT(e->units[i].resident || e->units[i].state == UNIT_RESHARDED);
    EXPECT(e->comm.in_flight == 0);
}

static void train(const struct setting *s, int replicas)
{
    struct small small;
    struct serial_run truth;
    struct engine e;
    bool skipped;
    double scale, loss;
    describe(s, replicas);
    EXPECT(small_make(&small, world.all.size, s->reuse, &error));
    apply(s, &small.c, replicas);
    EXPECT(serial_start(&truth, &small, &error));
    EXPECT(engine_open(&e, &small.c, &world, &small.data, &small.init, &error));
    for (int step = 0; step < SMALL_STEPS; step++) {
        const char *frozen = step == 1 ? "layers.0." : NULL;
        engine_zero_grad(&e);
        engine_freeze(&e, "layers.0.*", frozen != NULL);
        accumulate(&e, s->sync, step);
        EXPECT(engine_step(&e, &skipped, &scale, &error) && !skipped);
        EXPECT(engine_eval(&e, step, 0, &loss, &error));
        EXPECT(serial_step(&truth, &small, step, frozen, &error));
        expect_parameters(&e, &truth, step == 0);
    }
    expect_memory_and_padding(&e);
    EXPECT(s->prefetch == 0 || world.all.size == 1 || e.units[0].resident || e.comm.counts[COMM_ALL_GATHER].overlapped > 0 ||
           s->wrap == WRAP_ROOT || e.mesh.shards == 1);
    EXPECT(s->prefetch > 0 || e.comm.counts[COMM_ALL_GATHER].overlapped == 0);
    EXPECT(s->prefetch == 0 || e.mesh.shards == 1 || e.comm.counts[COMM_REDUCE_SCATTER].overlapped > 0 || s->wrap == WRAP_ROOT);
    engine_close(&e);
    serial_end(&truth, &small);
    small_free(&small);
}

static const struct setting settings[] = {
    {0, SHARD_FLAT, WRAP_BLOCK, true, false, false, 0, SYNC_LAST, false, 0},
    {0, SHARD_PER_PARAMETER, WRAP_BLOCK, true, false, false, 0, SYNC_LAST, false, 0},
    {0, SHARD_FLAT, WRAP_BLOCK, true, false, false, 1, SYNC_ALL, false, 0},
    {0, SHARD_PER_PARAMETER, WRAP_BLOCK, true, true, false, 2, SYNC_ALL, false, 0},
    {0, SHARD_FLAT, WRAP_ROOT, true, false, false, 1, SYNC_SLOTS, false, 0},
    {0, SHARD_PER_PARAMETER, WRAP_SIZE, false, false, false, 1, SYNC_SLOTS, false, 0},
    {0, SHARD_FLAT, WRAP_PATTERN, false, true, false, 0, SYNC_ALL, false, 0},
    {0, SHARD_FLAT, WRAP_BLOCK, true, true, false, 2, SYNC_LAST, true, 0},
    {0, SHARD_PER_PARAMETER, WRAP_BLOCK, false, false, false, 1, SYNC_SLOTS, true, 0},
    {0, SHARD_PER_PARAMETER, WRAP_BLOCK, true, false, true, 1, SYNC_LAST, false, 0},
    {0, SHARD_FLAT, WRAP_BLOCK, true, false, true, 0, SYNC_ALL, true, 0},
    {0, SHARD_FLAT, WRAP_BLOCK, true, false, false, 0, SYNC_ALL, false, 2},
    {0, SHARD_PER_PARAMETER, WRAP_BLOCK, true, true, true, 2, SYNC_LAST, true, 2},
    {0, SHARD_PER_PARAMETER, WRAP_PATTERN, true, false, false, 1, SYNC_SLOTS, false, 2},
};

// Groups to reshard to are of a true divisor of the shards, in the strategies that reshard.
static bool groups_fit(const struct setting *s, int shards)
{
    bool reshards = s->strategy == STRATEGY_FULL || s->strategy == STRATEGY_HYBRID;
    return s->reshard_ranks == 0 || (reshards && shards > s->reshard_ranks && shards % s->reshard_ranks == 0);
}

static void train_everything(void)
{
    int n = world.all.size;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (int strategy = STRATEGY_NONE; strategy <= STRATEGY_HYBRID; strategy++)
            for (int replicas = 1; replicas <= n; replicas++) {
                struct setting s = settings[i];
                s.strategy = (enum strategy)strategy;
                bool mesh = strategy == STRATEGY_HYBRID ? n % replicas == 0 : replicas == (strategy == STRATEGY_NONE ? n : 1);
                if (mesh && groups_fit(&s, n / replicas))
                    train(&s, replicas);
            }
}

// Gathers and reductions of U units in m microbatches, without and with resharding after the forward; the backward's
// gathers are among two ranks where the forward resharded to groups of two.
static void count_collectives(void)
{
    const struct { bool reshard; int sync_count; int64_t gathers, reductions, near; } table[] = {
        {true, SMALL_MICROS, SMALL_MICROS * (2 * 3 - 1), SMALL_MICROS * 3, 0},
        {false, SMALL_MICROS, SMALL_MICROS * 3, SMALL_MICROS * 3, 0},
        {true, 1, SMALL_MICROS * (2 * 3 - 1), 3, 0},
        {true, SMALL_MICROS, SMALL_MICROS * 3, SMALL_MICROS * 3, SMALL_MICROS * (3 - 1)},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table && world.all.size > 1; i++) {
        struct setting s = {STRATEGY_FULL, SHARD_FLAT, WRAP_BLOCK, table[i].reshard, false, false, 1,
                            table[i].sync_count == 1 ? SYNC_LAST : SYNC_ALL, false, table[i].near ? 2 : 0};
        if (!groups_fit(&s, world.all.size))
            continue;
        struct small small;
        struct engine e;
        snprintf(what, sizeof what, "collectives, row %zu", i);
        EXPECT(small_make(&small, world.all.size, false, &error));
        apply(&s, &small.c, 1);
        EXPECT(engine_open(&e, &small.c, &world, &small.data, &small.init, &error));
        accumulate(&e, s.sync, 0);
        EXPECT(e.comm.counts[COMM_ALL_GATHER].calls == table[i].gathers);
        EXPECT(e.comm.counts[COMM_NEAR_GATHER].calls == table[i].near);
        EXPECT(e.comm.counts[COMM_REDUCE_SCATTER].calls == table[i].reductions);
        EXPECT(e.comm.counts[COMM_ALL_REDUCE].calls == 0);
        engine_close(&e);
        small_free(&small);
    }
}

// What a forward leaves with groups of two is half of a unit on each rank, and is forgotten once parameters have changed.
static void near_parts(void)
{
    struct setting s = {STRATEGY_FULL, SHARD_PER_PARAMETER, WRAP_BLOCK, true, false, false, 0, SYNC_SLOTS, false, 2};
    struct small small;
    struct engine e;
    double loss;
    if (!groups_fit(&s, world.all.size))
        return;
    describe(&s, 1);
    EXPECT(small_make(&small, world.all.size, false, &error));
    apply(&s, &small.c, 1);
    EXPECT(engine_open(&e, &small.c, &world, &small.data, &small.init, &error));
    EXPECT(e.comm.near->size == 2 && e.comm.near->rank == world.all.rank % 2);
    EXPECT(engine_forward(&e, 0, 0, 0, &loss, &error));
    for (int i = 0; i < e.unit_count; i++) {
        const struct unit *u = &e.units[i];
        EXPECT(u->state == UNIT_NEAR && u->full == NULL && u->near_counts[0] + u->near_counts[1] == u->layout.full_count);
    }
    EXPECT(gather_residents(&e, &error));
    for (int i = 0; i < e.unit_count; i++)
        EXPECT(e.units[i].state == UNIT_RESHARDED);
    EXPECT(engine_backward(&e, 0, true, &error) && e.comm.counts[COMM_NEAR_GATHER].calls == 0);
    engine_close(&e);
    small_free(&small);
}

// The norm over shards is the serial norm, whatever the mesh; clipping scales by limit / (norm + 1e-6).
static void clip_globally(int replicas)
{
    struct setting s = {STRATEGY_HYBRID, SHARD_FLAT, WRAP_BLOCK, true, false, false, 0, SYNC_ALL, false, 0};
    struct small small;
    struct serial_run truth;
    struct engine e;
    struct tensors before = {0}, after = {0};
    double norm;
    describe(&s, replicas);
    EXPECT(small_make(&small, world.all.size, false, &error));
    apply(&s, &small.c, replicas);
    small.c.clip = CLIP_L2;
    small.c.clip_limit = 3;
    EXPECT(serial_start(&truth, &small, &error) && serial_step(&truth, &small, 0, NULL, &error));
    EXPECT(engine_open(&e, &small.c, &world, &small.data, &small.init, &error));
    accumulate(&e, s.sync, 0);
    EXPECT(observe_local(&e, OBSERVE_GRAD, &before, &error) && engine_clip(&e, &norm, &error));
    EXPECT(norm == sqrt(truth.norm) && norm > 3);
    EXPECT(observe_local(&e, OBSERVE_GRAD, &after, &error) && before.count == after.count);
    for (int i = 0; i < before.count; i++)
        for (int64_t k = 0; k < before.items[i].count; k++)
            EXPECT(((double *)after.items[i].data)[k] == ((double *)before.items[i].data)[k] * (3 / (norm + 1e-6)));
    tensors_free(&before);
    tensors_free(&after);
    engine_close(&e);
    serial_end(&truth, &small);
    small_free(&small);
}

// An infinity on the last rank only: all skip, the state stays, the scale is halved; two good steps double it.
static void skip_together(void)
{
    struct setting s = {STRATEGY_FULL, SHARD_PER_PARAMETER, WRAP_BLOCK, true, false, false, 1, SYNC_ALL, false, 0};
    struct small small;
    struct serial_run truth;
    struct engine e;
    bool skipped;
    double scale, loss;
    describe(&s, 1);
    EXPECT(small_make(&small, world.all.size, false, &error));
    apply(&s, &small.c, 1);
    small.c.precision.loss_scale = LOSS_SCALE_DYNAMIC;
    small.c.precision.scale_initial = 8;
    EXPECT(serial_start(&truth, &small, &error));
    float *target = tensors_find(&small.data, "target")->data, kept = target[(SMALL_ROWS - 1) * 3];
    target[(SMALL_ROWS - 1) * 3] = INFINITY;
    EXPECT(engine_open(&e, &small.c, &world, &small.data, &small.init, &error));
    EXPECT(engine_micro(&e, 0, 0, true, &loss, &error) && engine_step(&e, &skipped, &scale, &error));
    EXPECT(skipped && scale == 8 && e.scale.value == 4);
    expect_parameters(&e, &truth, true);
    target[(SMALL_ROWS - 1) * 3] = kept;
    for (int step = 0; step < 2; step++) {
        engine_zero_grad(&e);
        accumulate(&e, s.sync, step);
        EXPECT(engine_step(&e, &skipped, &scale, &error) && !skipped && scale == 4);
        EXPECT(serial_step(&truth, &small, step, NULL, &error));
        expect_parameters(&e, &truth, step == 0);
    }
    EXPECT(e.scale.value == 8);
    engine_close(&e);
    serial_end(&truth, &small);
    small_free(&small);
}

static int ranks_train(void)
{
    EXPECT(comm_world_open(&world, under_mpirun() ? &backend_mpi : &backend_serial, 60, &error));
    train_everything();
    count_collectives();
    near_parts();
    for (int replicas = 1; replicas <= world.all.size; replicas++)
        if (world.all.size % replicas == 0)
            clip_globally(replicas);
    skip_together();
    comm_world_close(&world);
    return 0;
}

static void test_serial(void **state)
{
    (void)state;
    assert_int_equal(ranks_train(), 0);
}

static void test_ranks(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 5; ranks++)
        assert_int_equal(run_ranks(ranks, "train"), 0);
}

int main(void)
{
    if (under_mpirun())
        return ranks_train();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_serial), cmocka_unit_test(test_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
