// The cuda probe against a stand-in (standin_cuda.c), which is no CUDA: what is given and freed, failures, handles, and what it cannot see.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/probes/tests/preloaded.h"

typedef void *any;
struct pitched { void *at; size_t pitch, width, height; };
struct extent { size_t width, height, depth; };

// As a framework's library would be bound: to whoever comes first in the search, the probe.
#define FIND(name) (*(any *)&name = dlsym(RTLD_DEFAULT, #name), name != NULL)
static int (*cudaMalloc)(any *, size_t), (*cudaMallocAsync)(any *, size_t, any), (*cudaMallocFromPoolAsync)(any *, size_t, any, any);
static int (*cudaMallocManaged)(any *, size_t, unsigned), (*cudaMallocPitch)(any *, size_t *, size_t, size_t);
static int (*cudaMalloc3D)(struct pitched *, struct extent), (*cudaFree)(any), (*cudaFreeAsync)(any, any);
static int (*cuMemAlloc_v2)(uint64_t *, size_t), (*cuMemFree_v2)(uint64_t), (*cuMemCreate)(uint64_t *, size_t, const void *, unsigned long long);
static int (*cuMemRelease)(uint64_t), (*cuMemAllocAsync)(uint64_t *, size_t, any), (*cuMemFreeAsync)(uint64_t, any);
static int (*cuMemAllocManaged)(uint64_t *, size_t, unsigned), (*cuMemAllocFromPoolAsync)(uint64_t *, size_t, any, any);
static int (*cuMemAllocPitch_v2)(uint64_t *, size_t *, size_t, size_t, unsigned), (*cuGetProcAddress_v2)(const char *, any *, int, uint64_t, any);

static void (*again)(void); // of the stand-in itself: handles that were given come a second time

// local: as Python opens what its modules need, found by no other.
static bool load(bool local)
{
    char build[4096], path[4200];
    preloaded_build(build);
    snprintf(path, sizeof path, "%s/tests/libstandin-cuda.so", build);
    any library = dlopen(path, RTLD_NOW | (local ? RTLD_LOCAL : RTLD_GLOBAL));
    return library != NULL && (*(any *)&again = dlsym(library, "standin_again"), again != NULL) && FIND(cudaMalloc) && FIND(cudaMallocAsync) &&
           FIND(cudaMallocFromPoolAsync) && FIND(cudaMallocManaged) && FIND(cudaMallocPitch) && FIND(cudaMalloc3D) && FIND(cudaFree) &&
           FIND(cudaFreeAsync) && FIND(cuMemAlloc_v2) && FIND(cuMemFree_v2) && FIND(cuMemCreate) && FIND(cuMemRelease) &&
           FIND(cuMemAllocAsync) && FIND(cuMemFreeAsync) && FIND(cuMemAllocManaged) && FIND(cuMemAllocFromPoolAsync) &&
           FIND(cuMemAllocPitch_v2) && FIND(cuGetProcAddress_v2);
}

// The step of a mark is the thousands of live bytes.
static int act(bool local)
{
    any a[6];
    uint64_t d[7];
    size_t pitch;
    struct pitched cube;
    if (!load(local))
        return 1;
    cudaMalloc(&a[0], 100000); // before the first mark
    actor_mark("case", 0);
    cudaMalloc(&a[1], 10000);
    cudaMallocAsync(&a[2], 20000, NULL);
    cudaMallocFromPoolAsync(&a[3], 30000, NULL, NULL);
    cudaMallocManaged(&a[4], 40000, 1);
    actor_mark("forward", 100);
    if (cudaMalloc(&a[5], (size_t)1 << 50) == 0) // fails: nothing was given
        return 2;
    cudaFree(NULL);
    cudaFree(a[1]);
    cudaFreeAsync(a[3], NULL);
    actor_mark("forward", 60);
    cudaMallocPitch(&a[1], &pitch, 300, 125); // 512 * 125 = 64000
    cudaMalloc3D(&cube, (struct extent){100, 25, 5}); // 512 * 25 * 5 = 64000
    actor_mark("forward", 188);
    cudaFree(a[1]);
    cudaFree(cube.at);
    cudaFree(a[2]);
    cudaFree(a[4]);
    actor_mark("forward", 0);
    cuMemAlloc_v2(&d[0], 1000);
    cuMemAllocAsync(&d[1], 2000, NULL);
    cuMemAllocManaged(&d[2], 4000, 1);
    cuMemAllocFromPoolAsync(&d[3], 8000, NULL, NULL);
    cuMemCreate(&d[4], 16000, NULL, 0); // handles 1 and 2
    cuMemCreate(&d[5], 32000, NULL, 0);
    cuMemAllocPitch_v2(&d[6], &pitch, 512, 125, 4); // 64000
    actor_mark("forward", 127);
    if (cuMemRelease(0) == 0)
        return 3;
    cuMemRelease(d[4]);
    actor_mark("forward", 111);
    for (int i = 0; i < 4; i++)
        (i % 2 ? cuMemFreeAsync(d[i], NULL) : cuMemFree_v2(d[i]));
    cuMemRelease(d[5]);
    cuMemFree_v2(d[6]);
    actor_mark("forward", 0);
    cuMemCreate(&d[4], 48000, NULL, 0); // handle 3
    again();
    for (int i = 0; i < 3; i++)
        cuMemCreate(&d[i], 5000, NULL, 0); // 1 and 2 are free, 3 is known as held
    actor_mark("forward", 15);
    for (int i = 0; i < 3; i++)
        cuMemRelease(d[i]);
    cudaFree(a[0]);
    actor_mark("forward", -100);
    any function;
    cuGetProcAddress_v2("cuMemNothing", &function, 12000, 0, NULL);
    cuGetProcAddress_v2("cuMemCreate", &function, 12000, 0, NULL); // what is called so is not counted
    actor_mark("end", -1);
    return 0;
}
static int act_global(void) { return act(false); }
static int act_local(void) { return act(true); }

static void check(const char *actor)
{
    char output[256];
    struct probe_case c = preloaded_watch(actor, "cuda", preloaded_job(), NULL, output);
    assert_int_equal(c.probes, 1u << PROBE_CUDA);
    assert_int_equal(c.phase_count, 11);
    for (int i = 1; i < c.phase_count - 1; i++)
        if (c.phases[i].device.begin != c.phases[i].step * 1000)
            fail_msg("phase %d: found %lld bytes, expected %d", i, (long long)c.phases[i].device.begin, c.phases[i].step * 1000);
    assert_int_equal(c.phases[2].device.peak, 188000);
    assert_int_equal(c.phases[3].device.peak, 188000);
    assert_int_equal(c.phases[4].device.peak, 127000);
    assert_int_equal(c.untracked, 1);
    assert_string_equal(c.untracked_call, "cuMemCreate");
    probe_case_free(&c);
}

static void test_global(void **state) { (void)state, check("global"); }
static void test_local(void **state) { (void)state, check("local"); }

int main(int argc, char **argv)
{
    static const struct actor actors[] = {{"global", act_global}, {"local", act_local}, {NULL, NULL}};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_global), cmocka_unit_test(test_local)};
    int status;
    if (preloaded_act(argc, argv, actors, &status))
        return status;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
