// Saved by N ranks, loaded by N' under another layout: every element of parameters and states, each with a value of its own,
// is back at its place; counters and loss scale too. A checkpoint that is missing, of another model or incomplete is an error.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reference/backends/tests/under_mpirun.h"
#include "reference/checkpoint/checkpoint.h"
#include "reference/engine/observe.h"
#include "reference/engine/tests/small_case.h"

static struct comm_world world;
static struct error error;
static char folder[256];

#define EXPECT(condition)                                                                                                    \
    do {                                                                                                                     \
        if (!(condition)) {                                                                                                  \
            fprintf(stderr, "rank %d of %d: %s:%d: %s: %s\n", world.all.rank, world.all.size, __FILE__, __LINE__, #condition, \
                    error.text);                                                                                             \
            exit(1);                                                                                                         \
        }                                                                                                                    \
    } while (0)

static const enum observe_bit kinds[] = {OBSERVE_PARAM, OBSERVE_EXP_AVG, OBSERVE_EXP_AVG_SQ};
enum { KINDS = sizeof kinds / sizeof *kinds };

static double unique(int kind, int parameter, int64_t element) { return kind * 1e6 + parameter * 1e4 + (double)element + 0.5; }

static void open_engine(struct small *small, struct engine *e, enum shard_layout layout, int replicas)
{
    EXPECT(small_make(small, world.all.size, false, &error));
    struct fsdp_case *c = &small->c;
    c->sharding.strategy = replicas > 1 ? STRATEGY_HYBRID : STRATEGY_FULL;
    c->sharding.replicas = replicas;
    c->sharding.shards = world.all.size / replicas;
    c->sharding.layout = layout;
    c->optimizer = (struct optimizer_spec){.kind = OPTIMIZER_ADAMW, .lr = 1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1};
    EXPECT(engine_open(e, c, &world, &small->data, &small->init, &error));
}

static void close_engine(struct small *small, struct engine *e)
{
    engine_close(e);
    small_free(small);
}

static void save(enum shard_layout layout, int replicas)
{
    struct small small;
    struct engine e;
    open_engine(&small, &e, layout, replicas);
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < e.unit_count; i++) {
            const struct unit *u = &e.units[i];
            const struct layout *l = &u->layout;
            for (int p = l->first_piece[e.mesh.shard]; p < l->first_piece[e.mesh.shard + 1]; p++)
                for (int64_t x = 0; x < l->pieces[p].length; x++)
                    dtype_set(DTYPE_F64, observe_shard(&e, u, kinds[k]), l->pieces[p].at + x,
                              unique(k, u->members[l->pieces[p].tensor], l->pieces[p].offset + x));
        }
    for (int i = 0; i < e.c->parameter_count; i++)
        e.updates[i] = 5 + i;
    e.scale = (struct loss_scale){64, 3};
    EXPECT(checkpoint_save(&e, folder, &error));
    close_engine(&small, &e);
}

static void load(enum shard_layout layout, int replicas)
{
    struct small small;
    struct engine e;
    struct tensors full = {0};
    open_engine(&small, &e, layout, replicas);
    EXPECT(checkpoint_load(&e, folder, &error));
    EXPECT(observe_full(&e, OBSERVE_PARAM | OBSERVE_EXP_AVG | OBSERVE_EXP_AVG_SQ, &full, &error));
    EXPECT(full.count == (e.rank == 0 ? KINDS * e.c->parameter_count : 0));
    for (int k = 0; e.rank == 0 && k < KINDS; k++)
        for (int i = 0; i < e.c->parameter_count; i++) {
            const struct tensor *t = tensors_find2(&full, observe_name(kinds[k]), e.c->parameters[i].name);
            for (int64_t x = 0; x < t->count; x++)
                EXPECT(dtype_get(t->dtype, t->data, x) == unique(k, i, x));
        }
    for (int i = 0; i < e.c->parameter_count; i++)
        EXPECT(e.updates[i] == 5 + i);
    EXPECT(e.scale.value == 64 && e.scale.good_steps == 3);
    tensors_free(&full);
    close_engine(&small, &e);
}

// argument: "save LAYOUT REPLICAS FOLDER" or "load ..."
static int ranks_part(const char *argument)
{
    char verb[8];
    int layout, replicas;
    if (sscanf(argument, "%7s %d %d %255s", verb, &layout, &replicas, folder) != 4)
        return 2;
    EXPECT(comm_world_open(&world, &backend_mpi, 60, &error));
    (verb[0] == 's' ? save : load)((enum shard_layout)layout, replicas);
    comm_world_close(&world);
    return 0;
}

static int ranks(int n, const char *verb, enum shard_layout layout, int replicas)
{
    char argument[320];
    snprintf(argument, sizeof argument, "%s %d %d %s", verb, (int)layout, replicas, folder);
    return run_ranks(n, argument);
}

static void remove_folder(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static void test_other_ranks_and_layouts(void **state)
{
    (void)state;
    static const struct { int n, replicas; enum shard_layout layout; int loads; struct { int n, replicas; enum shard_layout layout; } to[3]; } table[] = {
        {4, 1, SHARD_PER_PARAMETER, 3, {{2, 1, SHARD_FLAT}, {5, 1, SHARD_PER_PARAMETER}, {1, 1, SHARD_FLAT}}},
        {3, 1, SHARD_FLAT, 2, {{4, 2, SHARD_PER_PARAMETER}, {2, 1, SHARD_FLAT}}},
        {4, 2, SHARD_FLAT, 1, {{3, 1, SHARD_FLAT}}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(ranks(table[i].n, "save", table[i].layout, table[i].replicas), 0);
        for (int k = 0; k < table[i].loads; k++)
            assert_int_equal(ranks(table[i].to[k].n, "load", table[i].to[k].layout, table[i].to[k].replicas), 0);
        remove_folder();
    }
}

static void rewrite_index(const char *from, const char *to)
{
    char command[600];
    snprintf(command, sizeof command, "sed -i 's/%s/%s/' '%s/index.json'", from, to, folder);
    assert_int_equal(system(command), 0);
}

static void expect_refused(struct engine *e, const char *message)
{
    error.text[0] = 0;
    assert_false(checkpoint_load(e, folder, &error));
    if (!strstr(error.text, message))
        fail_msg("found '%s', expected '%s'", error.text, message);
}

static void test_bad_checkpoints(void **state)
{
    (void)state;
    struct small small;
    struct engine e;
    EXPECT(comm_world_open(&world, &backend_serial, 60, &error));
    open_engine(&small, &e, SHARD_FLAT, 1);
    expect_refused(&e, "index.json");
    error.text[0] = 0;
    assert_true(checkpoint_save(&e, folder, &error));
    rewrite_index("param.layers.0.bias", "param\\/layers.9.bias");
    expect_refused(&e, "'param/layers.0.bias' of 7 elements: found 0, expected as many");
    assert_true(checkpoint_save(&e, folder, (error.text[0] = 0, &error)));
    rewrite_index("\"version\": 1", "\"version\": 2");
    expect_refused(&e, "found no version 1 index");
    assert_true(checkpoint_save(&e, folder, (error.text[0] = 0, &error)));
    rewrite_index("\"count\": 42", "\"count\": 41");
    expect_refused(&e, "expected a float dtype, a count and pieces [shard, offset, length] within it");
    remove_folder();
    close_engine(&small, &e);
    comm_world_close(&world);
    error.text[0] = 0;
}

int main(int argc, char **argv)
{
    if (under_mpirun() && argc == 2)
        return ranks_part(argv[1]);
    snprintf(folder, sizeof folder, "/tmp/fsdpmark-checkpoint-%d/inner", (int)getpid());
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bad_checkpoints), cmocka_unit_test(test_other_ranks_and_layouts)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    folder[strlen(folder) - strlen("/inner")] = 0;
    rmdir(folder);
    return failed;
}
