// The heap probe against allocations that are known: live bytes and peaks are exact, in threads, of mappings, and under Open MPI's hooks.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <mpi.h>
#include <pthread.h>
#include <sys/mman.h>

#include "harness/probes/preload/regions.h"
#include "harness/probes/tests/preloaded.h"

enum { THREADS = 4, BLOCKS = 40 };
static pthread_barrier_t barrier;
static void *blocks[THREADS][BLOCKS];

// None of them holds more on its way than at its end, so that the largest sum is the one of all.
static void *one_of_each(int kind, size_t bytes)
{
    void *p = NULL;
    switch (kind % 9) {
    case 0: return malloc(bytes);
    case 1: return calloc(bytes / 8, 8);
    case 2: return realloc(malloc(bytes / 2), bytes);
    case 3: return realloc(malloc(16), bytes);
    case 4: return aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    case 5: return posix_memalign(&p, 4096, bytes) == 0 ? p : NULL;
    case 6: return memalign(128, bytes);
    case 7: return reallocarray(malloc(8), bytes / 8, 8);
    default: return valloc(bytes);
    }
}

static void *work(void *argument)
{
    int t = (int)(intptr_t)argument;
    void *volatile first = malloc(100); // the thread's own allocations come with its first
    free(first);
    pthread_barrier_wait(&barrier); // 1: case
    pthread_barrier_wait(&barrier); // 2: forward
    for (int i = 0; i < BLOCKS; i++)
        blocks[t][i] = one_of_each(i, (size_t)(8 << i % 12));
    pthread_barrier_wait(&barrier); // 3: all are there
    pthread_barrier_wait(&barrier); // 4
    for (int i = 0; i < BLOCKS; i += 2)
        free(blocks[(t + 1) % THREADS][i]); // another thread's
    pthread_barrier_wait(&barrier); // 5
    pthread_barrier_wait(&barrier); // 6: backward
    for (int i = 1; i < BLOCKS; i += 2)
        blocks[t][i] = realloc(blocks[t][i], i % 4 == 1 ? 64 : 40000);
    pthread_barrier_wait(&barrier); // 7
    pthread_barrier_wait(&barrier); // 8: step
    for (int i = 1; i < BLOCKS; i += 2)
        free(blocks[t][i]);
    pthread_barrier_wait(&barrier); // 9
    pthread_barrier_wait(&barrier); // 10: the end
    return NULL;
}

static long long sum(int from, int by)
{
    long long bytes = 0;
    for (int t = 0; t < THREADS; t++)
        for (int i = from; i < BLOCKS; i += by)
            bytes += (long long)malloc_usable_size(blocks[t][i]);
    return bytes;
}

// Barriers come in pairs, so that between the two of a pair the threads are still.
static void still(void) { pthread_barrier_wait(&barrier); }
static int act_threads(void)
{
    pthread_t threads[THREADS];
    long long all, odd, changed;
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, work, (void *)(intptr_t)t);
    still(); // 1
    actor_mark("case", 0);
    actor_mark("forward", 0);
    still(); // 2
    still(); // 3
    all = sum(0, 1);
    still(); // 4
    still(); // 5
    odd = sum(1, 2);
    actor_mark("backward", 0);
    still(); // 6
    still(); // 7
    changed = sum(1, 2);
    actor_mark("step", 0);
    still(); // 8
    still(); // 9
    actor_mark("end", -1);
    still(); // 10
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    printf("%lld %lld %lld\n", all, odd, changed);
    return 0;
}

static struct probe_case watched(const char *actor, char output[256])
{
    struct probe_case c = preloaded_watch(actor, "heap", preloaded_job(), NULL, output);
    assert_int_equal(c.probes, 1u << PROBE_HEAP);
    assert_int_equal(c.lost, 0);
    return c;
}

static void test_threads(void **state)
{
    (void)state;
    char output[256];
    long long all, odd, changed;
    struct probe_case c = watched("threads", output);
    assert_int_equal(sscanf(output, "%lld %lld %lld", &all, &odd, &changed), 3);
    assert_true(all > 300000 && odd > 100000 && changed > 1000000);
    assert_int_equal(c.phase_count, 5);
    const struct probe_live *forward = &c.phases[1].heap, *backward = &c.phases[2].heap, *step = &c.phases[3].heap;
    assert_int_equal(forward->begin, 0);
    assert_int_equal(forward->peak, all);
    assert_int_equal(forward->end, odd);
    assert_int_equal(backward->begin, odd);
    assert_true(backward->peak >= changed && backward->peak <= odd + changed);
    assert_int_equal(backward->end, changed);
    assert_int_equal(step->peak, changed);
    assert_int_equal(step->end, 0);
    assert_int_equal(c.phases[4].map.peak, 0); // malloc's own mappings are its blocks
    probe_case_free(&c);
}

// More pieces than the table has room for: every second page of a mapping goes, from its begin on, so that what is left of it lies behind.
enum { PIECES = 1 << 15, PAGE_BYTES = 4096 };
static int act_pieces(void)
{
    char *p = mmap(NULL, (size_t)(2 * PIECES + 2) * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    actor_mark("case", 0);
    for (size_t i = 0; i < PIECES; i++)
        if (munmap(p + (2 * i + 1) * PAGE_BYTES, PAGE_BYTES) != 0)
            return 1;
    actor_mark("end", -1);
    return 0;
}

static void test_pieces(void **state)
{
    (void)state;
    char output[256];
    struct probe_case c = watched("pieces", output);
    assert_int_equal(c.untracked, 1); // from there on what is left is not known
    assert_string_equal(c.untracked_call, "munmap (too many mappings)");
    assert_true(c.phases[0].map.end < -(int64_t)PAGE_BYTES * (PIECES - 100) && c.phases[0].map.end >= -(int64_t)PAGE_BYTES * PIECES);
    probe_case_free(&c);
}

// The table by itself, in the probes' library: what a range holds after each cut. The status is the line that fails.
#define EXPECT(condition) do { if (!(condition)) return __LINE__ - FIRST_LINE; } while (0)
enum { FIRST_LINE = __LINE__ };
static int act_regions(void)
{
    static struct probe_regions r;
    bool (*add)(struct probe_regions *, uint64_t, uint64_t), (*cut)(struct probe_regions *, uint64_t, uint64_t, uint64_t *);
    uint64_t gone;
    *(void **)&add = dlsym(RTLD_DEFAULT, "probe_regions_add");
    *(void **)&cut = dlsym(RTLD_DEFAULT, "probe_regions_cut");
    EXPECT(add(&r, 1000, 100) && add(&r, 2000, 100));
    EXPECT(cut(&r, 1050, 1000, &gone) && gone == 50 + 50);
    EXPECT(cut(&r, 1010, 10, &gone) && gone == 10 && r.count == 3); // two pieces of the first
    for (uint64_t i = 3; r.count < PROBE_REGIONS; i++)
        EXPECT(add(&r, 1000 * i, 100));
    EXPECT(!add(&r, 500, 100));
    EXPECT(!cut(&r, 3010, 10, &gone) && gone == 10); // the piece behind has no room, and has not gone
    EXPECT(cut(&r, 3000, 100, &gone) && gone == 10);
    return 0;
}

static void test_regions(void **state)
{
    (void)state;
    char output[256];
    assert_int_equal(preloaded_run("regions", "heap", preloaded_job(), NULL, output, sizeof output), 0);
}

// A megabyte is M. The number of each phase is what lives at its end.
enum { M = 1 << 20 };
static int act_maps(void)
{
    int protection = PROT_READ | PROT_WRITE, private = MAP_PRIVATE | MAP_ANONYMOUS;
    char *before = mmap(NULL, M, protection, private, -1, 0);
    actor_mark("case", 0);
    char *p = mmap(NULL, 8 * M, protection, private, -1, 0);
    actor_mark("forward", 8);
    munmap(p + 2 * M, 3 * M); // 2 + 3
    actor_mark("forward", 5);
    void *reserved = mmap(NULL, 64 * M, PROT_NONE, private, -1, 0);
    int file = fileno(tmpfile());
    if (ftruncate(file, 4 * M) != 0)
        return 1;
    void *of_file = mmap(NULL, 4 * M, protection, MAP_SHARED, file, 0);
    munmap(of_file, 4 * M);
    munmap(reserved, 64 * M);
    actor_mark("forward", 5);
    char *moved = mremap(p, 2 * M, 7 * M, MREMAP_MAYMOVE); // 7 + 3
    if (moved == MAP_FAILED)
        return 2;
    actor_mark("forward", 10);
    mmap(moved + M, 2 * M, protection, MAP_SHARED | MAP_FIXED, file, 0); // a file in its place
    actor_mark("forward", 8);
    mmap(moved + M, 2 * M, protection, private | MAP_FIXED, -1, 0);
    mmap(moved, M, protection, private | MAP_FIXED, -1, 0); // the same again
    actor_mark("forward", 10);
    munmap(moved, 7 * M);
    munmap(p + 5 * M, 3 * M);
    actor_mark("forward", 0);
    munmap(before, M);
    actor_mark("forward", -1);
    if (munmap(p + 1, M) == 0) // refused: nothing has gone
        return 3;
    char *odd = mmap(NULL, 5000, protection, private, -1, 0); // whole pages
    actor_mark("odd", 0);
    munmap(odd, 5000);
    actor_mark("end", -1);
    return 0;
}

// Open MPI may take munmap and mremap of the C library for itself; the probe stands before both.
static int act_hooked(void)
{
    int status = MPI_Init(NULL, NULL) == MPI_SUCCESS ? act_maps() : 3;
    MPI_Finalize();
    return status;
}

static void check_maps(const char *actor)
{
    char output[256];
    struct probe_case c = watched(actor, output);
    assert_int_equal(c.phases[0].map.peak, 8 * M);
    for (int i = 1; i < c.phase_count && strcmp(c.phases[i].name, "forward") == 0; i++)
        if (c.phases[i].map.begin != (int64_t)c.phases[i].step * M)
            fail_msg("phase %d: found %lld live bytes, expected %d M", i, (long long)c.phases[i].map.begin, c.phases[i].step);
    assert_int_equal(c.phase_count, 11);
    assert_int_equal(c.phases[9].map.begin, -M + 8192);
    probe_case_free(&c);
}

static void test_maps(void **state) { (void)state, check_maps("maps"); }

static void test_maps_hooked(void **state)
{
    (void)state;
    setenv("OMPI_MCA_mpi_leave_pinned", "1", 1); // what makes it do so
    check_maps("hooked");
}

int main(int argc, char **argv)
{
    static const struct actor actors[] = {{"threads", act_threads}, {"maps", act_maps}, {"hooked", act_hooked}, {"pieces", act_pieces},
                                          {"regions", act_regions}, {NULL, NULL}};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads), cmocka_unit_test(test_maps), cmocka_unit_test(test_maps_hooked),
                                       cmocka_unit_test(test_pieces), cmocka_unit_test(test_regions)};
    int status;
    if (preloaded_act(argc, argv, actors, &status))
        return status;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
