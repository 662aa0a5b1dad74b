// The reference's software-defined events, read as any PAPI tool reads them: found by enumeration, started, read. Their values are the
// engine's own counts, which its traffic event tells too, and what they must be by hand.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "reference/backends/tests/under_mpirun.h"
#include "reference/engine/publish.h"
#include "reference/engine/tests/small_case.h"

#ifdef FSDPMARK_SDE
#include <papi.h>

static struct error error;
#define EXPECT(condition)                                                                                      \
    do                                                                                                         \
        if (!(condition)) {                                                                                    \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition, error.text);           \
            exit(1);                                                                                           \
        }                                                                                                      \
    while (0)

enum { GATHERED, REDUCED, COLLECTIVES, LIVE, STEPS, EVENTS };
static const char *const names[EVENTS] = {"sde:::fsdpmark::bytes_gathered", "sde:::fsdpmark::bytes_reduced", "sde:::fsdpmark::collectives",
                                          "sde:::fsdpmark::unsharded_bytes_live", "sde:::fsdpmark::steps"};

// All parameters of the small mlp in float64: layers 6x7, 7x6, 6x3 and their biases.
enum { ALL_BYTES = (6 * 7 + 7 + 7 * 6 + 6 + 6 * 3 + 3) * 8 };

// Finds the events as a tool does, and starts them.
static int start(void)
{
    char name[PAPI_MAX_STR_LEN];
    int set = PAPI_NULL, found = 0, code = PAPI_NATIVE_MASK;
    EXPECT(publish_open() && PAPI_library_init(PAPI_VER_CURRENT) == PAPI_VER_CURRENT);
    int component = PAPI_get_component_index("sde");
    for (int r = PAPI_enum_cmp_event(&code, PAPI_ENUM_FIRST, component); r == PAPI_OK; r = PAPI_enum_cmp_event(&code, PAPI_ENUM_EVENTS, component)) {
        PAPI_event_info_t info;
        EXPECT(PAPI_event_code_to_name(code, name) == PAPI_OK && PAPI_get_event_info(code, &info) == PAPI_OK);
        for (int i = 0; i < EVENTS; i++)
            found += strcmp(names[i], name) == 0;
        EXPECT(strncmp(name, "sde:::fsdpmark::", 16) == 0 && strchr(info.long_descr, '[') != NULL); // with its unit
    }
    EXPECT(found == EVENTS && PAPI_create_eventset(&set) == PAPI_OK);
    for (int i = 0; i < EVENTS; i++)
        EXPECT(PAPI_add_named_event(set, names[i]) == PAPI_OK);
    EXPECT(PAPI_start(set) == PAPI_OK);
    return set;
}

static void expect_counts(const long long *value, const struct engine *e, const long long *before)
{
    const struct comm_count *c = e->comm.counts;
    long long calls = 0;
    for (int k = 0; k < COMM_KINDS; k++)
        calls += c[k].calls;
    EXPECT(value[GATHERED] - before[GATHERED] == c[COMM_ALL_GATHER].bytes + c[COMM_NEAR_GATHER].bytes);
    EXPECT(value[REDUCED] - before[REDUCED] == c[COMM_REDUCE_SCATTER].bytes + c[COMM_ALL_REDUCE].bytes);
    EXPECT(value[COLLECTIVES] - before[COLLECTIVES] == calls);
}

// Two steps; live bytes are looked at between a forward and its backward, and after the steps. live_forward -1: not all
// parameters are. With more ranks the counts must move.
static void train(struct comm_world *world, int set, enum strategy strategy, bool reshard, long long live_forward, long long live_rest)
{
    struct small small;
    struct engine e;
    long long before[EVENTS], value[EVENTS];
    double loss, scale;
    bool skipped;
    EXPECT(small_make(&small, world->all.size, false, &error) && PAPI_read(set, before) == PAPI_OK);
    small.c.sharding.strategy = strategy;
    small.c.sharding.reshard_after_forward = reshard;
    small.c.sharding.replicas = strategy == STRATEGY_NONE ? world->all.size : 1;
    small.c.sharding.shards = world->all.size / small.c.sharding.replicas;
    EXPECT(engine_open(&e, &small.c, world, &small.data, &small.init, &error));
    publish_engine(&e);
    for (int step = 0; step < 2; step++) {
        engine_zero_grad(&e);
        EXPECT(engine_forward(&e, step, 0, 0, &loss, &error));
        EXPECT(PAPI_read(set, value) == PAPI_OK && (live_forward < 0 ? value[LIVE] < ALL_BYTES : value[LIVE] == live_forward));
        EXPECT(engine_backward(&e, 0, true, &error) && engine_step(&e, &skipped, &scale, &error));
    }
    EXPECT(PAPI_read(set, value) == PAPI_OK && value[LIVE] == live_rest && value[STEPS] == before[STEPS] + 2);
    expect_counts(value, &e, before);
    EXPECT(world->all.size == 1 || (value[REDUCED] > before[REDUCED] && value[COLLECTIVES] > before[COLLECTIVES]));
    EXPECT(world->all.size == 1 || strategy == STRATEGY_NONE || value[GATHERED] > before[GATHERED]);
    publish_engine(NULL);
    engine_close(&e);
    long long after[EVENTS];
    EXPECT(PAPI_read(set, after) == PAPI_OK && after[LIVE] == 0); // what has closed stays counted
    for (int i = 0; i < EVENTS; i++)
        EXPECT(i == LIVE || after[i] == value[i]);
    small_free(&small);
}

static int ranks_read(void)
{
    struct comm_world world;
    int set = start();
    EXPECT(comm_world_open(&world, under_mpirun() ? &backend_mpi : &backend_serial, 60, &error));
    train(&world, set, STRATEGY_NONE, true, ALL_BYTES, ALL_BYTES);
    long long rest = world.all.size > 1 ? 0 : ALL_BYTES; // one rank shards nothing
    train(&world, set, STRATEGY_FULL, false, ALL_BYTES, rest);
    train(&world, set, STRATEGY_FULL, true, world.all.size > 1 ? -1 : ALL_BYTES, rest); // only the unit in use
    comm_world_close(&world);
    return 0;
}
#else
static int ranks_read(void) { return publish_open(); } // a build without libsde says that it publishes nothing
#endif

static void values_are_the_engines(void **state)
{
    (void)state;
    assert_int_equal(ranks_read(), 0);
    for (int ranks = 2; ranks <= 3; ranks++)
        assert_int_equal(run_ranks(ranks, "read"), 0);
}

int main(void)
{
    if (under_mpirun())
        return ranks_read();
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_are_the_engines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
