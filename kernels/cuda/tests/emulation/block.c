// EMULATION, no GPU: a launch, block by block; a block's threads, warp by warp. See block.h.
#include "kernels/cuda/tests/emulation/block.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/tests/emulation/fiber.h"
#include "kernels/cuda/tests/emulation/queue.h"

enum { WARP = 32, THREADS_MAX = 1024 };
enum state { UNSTARTED, RUNNING, AT_BARRIER, IN_WARP, ENDED };
static const char *const operation_names[] = {"__syncwarp", "__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync", "__ballot_sync",
                                              "__any_sync", "__all_sync"};

struct thread {
    enum state state;
    uint3 index;
    struct fiber *fiber;
    const char *file; // where it waits
    int line;
    // of a warp operation
    enum emulation_warp operation;
    unsigned mask;
    uint64_t value, result;
    int parameter, width;
};

uint3 emulation_thread_index, emulation_block_index;
dim3 emulation_block_size, emulation_grid_size;
uint64_t emulation_block_serial;

static struct {
    struct emulation_launch *launch; // NULL: nothing runs
    struct thread threads[THREADS_MAX];
    int count, ended, current;
    int warp, lanes;  // the warp that is being started, and how many of its lanes are
    bool down, failed;
} b;

bool block_running(void) { return b.launch != NULL && fiber_current() != NULL; }

// ---- errors ----

static void text_of_threads(char *text, size_t size, enum state state, const char *file, int line, int begin, int end)
{
    size_t used = 0;
    text[0] = 0;
    for (int t = begin; t < end && used + 16 < size; t++) {
        int first = t;
        while (t < end && b.threads[t].state == state && (file == NULL || (b.threads[t].line == line && strcmp(b.threads[t].file, file) == 0)))
            t++;
        if (t == first)
            continue;
        const char *comma = used > 0 ? ", " : "";
        used += (size_t)(t - first == 1 ? snprintf(text + used, size - used, "%s%d", comma, first) : snprintf(text + used, size - used, "%s%d-%d", comma, first, t - 1));
    }
}

static void keep(cudaError_t code, const char *what)
{
    emulation_fail(code, "kernel %s (launched at %s:%d), block (%u,%u,%u): %s", b.launch->kernel, b.launch->file, b.launch->line, emulation_block_index.x,
                   emulation_block_index.y, emulation_block_index.z, what);
    b.failed = true;
}

void block_fail(cudaError_t code, const char *format, ...)
{
    if (!block_running())
        return;
    char what[640], text[768];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    uint3 i = b.threads[b.current].index;
    snprintf(text, sizeof text, "thread (%u,%u,%u): %s", i.x, i.y, i.z, what);
    keep(code, text);
    fiber_wait();
}

// All threads have ended or wait, and none can go on: says which group lacks whom.
static void keep_divergence(void)
{
    int t = 0;
    while (b.threads[t].state != IN_WARP && t + 1 < b.count)
        t++;
    if (b.threads[t].state != IN_WARP)
        for (t = 0; b.threads[t].state != AT_BARRIER;)
            t++;
    const struct thread *w = &b.threads[t];
    char here[160], elsewhere[160], ended[160], text[768], mask[32] = "";
    bool warp = w->state == IN_WARP;
    int begin = warp ? t / WARP * WARP : 0, end = warp ? begin + WARP : b.count;
    const struct thread *other = NULL;
    for (int i = begin; i < end && other == NULL; i++)
        if (b.threads[i].state != ENDED && (b.threads[i].state != w->state || b.threads[i].line != w->line || b.threads[i].mask != w->mask))
            other = &b.threads[i];
    text_of_threads(here, sizeof here, w->state, w->file, w->line, begin, end);
    text_of_threads(ended, sizeof ended, ENDED, NULL, 0, begin, end);
    if (warp)
        snprintf(mask, sizeof mask, " of mask 0x%08x", w->mask);
    int n = snprintf(text, sizeof text, "divergent %s%s at %s:%d: threads %s wait", warp ? operation_names[w->operation] : "__syncthreads", mask, w->file, w->line, here);
    if (ended[0])
        n += snprintf(text + n, sizeof text - (size_t)n, "; threads %s have ended", ended);
    if (other != NULL) {
        text_of_threads(elsewhere, sizeof elsewhere, other->state, other->file, other->line, begin, end);
        snprintf(text + n, sizeof text - (size_t)n, "; threads %s wait at %s:%d in %s", elsewhere, other->file, other->line,
                 other->state == IN_WARP ? operation_names[other->operation] : "__syncthreads");
    }
    keep(cudaErrorLaunchFailure, text);
}

// ---- what a thread waits for ----

static void become(int thread)
{
    b.current = thread;
    emulation_thread_index = b.threads[thread].index;
}

// The next lane of the same warp, in the order of the block, that may go on; -1: none.
static int next_lane(void)
{
    int begin = b.current / WARP * WARP, step = b.down ? -1 : 1;
    for (int t = b.current + step; t >= begin && t < begin + WARP; t += step)
        if (b.threads[t].state == RUNNING)
            return t;
    return -1;
}

static struct thread *wait_at(enum state state, const char *file, int line)
{
    struct thread *t = &b.threads[b.current];
    t->state = state;
    t->file = file;
    t->line = line;
    t->fiber = fiber_current();
    int next = next_lane();
    if (next < 0) {
        fiber_wait();
    } else {
        become(next);
        fiber_pass(b.threads[next].fiber);
    }
    return t;
}

void emulation_barrier(const char *file, int line)
{
    b.threads[b.current].mask = 0;
    wait_at(AT_BARRIER, file, line);
}

uint64_t emulation_warp(enum emulation_warp operation, unsigned mask, uint64_t value, int parameter, int width, const char *file, int line)
{
    struct thread *t = &b.threads[b.current];
    if (!(mask >> b.current % WARP & 1))
        block_fail(cudaErrorLaunchFailure, "%s at %s:%d: mask 0x%08x lacks the calling lane %d", operation_names[operation], file, line, mask, b.current % WARP);
    if (width < 1 || width > WARP || (width & (width - 1)) != 0)
        block_fail(cudaErrorLaunchFailure, "%s at %s:%d: width %d, expected 1, 2, 4, 8, 16 or 32", operation_names[operation], file, line, width);
    t->operation = operation;
    t->mask = mask;
    t->value = value;
    t->parameter = parameter;
    t->width = width;
    return wait_at(IN_WARP, file, line)->result;
}

// The lane that a shuffle reads. Source: CUDA C++ Programming Guide, "Warp Shuffle Functions".
static int source_lane(const struct thread *t, int lane)
{
    int segment = lane & ~(t->width - 1), from = lane;
    switch (t->operation) {
    case EMULATION_INDEX: return segment + (t->parameter & (t->width - 1));
    case EMULATION_UP: from = lane - t->parameter; break;
    case EMULATION_DOWN: from = lane + t->parameter; break;
    case EMULATION_XOR: from = lane ^ t->parameter; break;
    default: return lane;
    }
    bool outside = t->operation == EMULATION_UP ? from < segment : from >= segment + t->width;
    return outside ? lane : from;
}

static void exchange(struct thread *warp, unsigned mask)
{
    unsigned votes = 0;
    for (int lane = 0; lane < WARP; lane++)
        votes |= (unsigned)(mask >> lane & 1 && warp[lane].value != 0) << lane;
    for (int lane = 0; lane < WARP; lane++) {
        struct thread *t = &warp[lane];
        if (!(mask >> lane & 1))
            continue;
        int from = source_lane(t, lane);
        if (!(mask >> from & 1)) {
            char text[256];
            snprintf(text, sizeof text, "%s at %s:%d: lane %d reads lane %d, which mask 0x%08x lacks", operation_names[t->operation], t->file, t->line, lane, from, mask);
            keep(cudaErrorLaunchFailure, text);
            return;
        }
        t->result = t->operation == EMULATION_BALLOT ? votes : t->operation == EMULATION_ANY ? votes != 0 : t->operation == EMULATION_ALL ? votes == mask
                                                                                                          : warp[from].value;
        t->state = RUNNING;
    }
}

// Lets those lanes go on that all wait for each other; false: there are none.
static bool release_lanes(struct thread *warp)
{
    bool some = false;
    for (int lane = 0; lane < WARP && !b.failed; lane++) {
        const struct thread *first = &warp[lane];
        bool all = first->state == IN_WARP;
        for (int i = 0; i < WARP && all; i++) {
            const struct thread *t = &warp[i];
            all = !(first->mask >> i & 1) ||
                  (t->state == IN_WARP && t->mask == first->mask && t->operation == first->operation && t->line == first->line);
        }
        if (all) {
            exchange(warp, first->mask);
            some = true;
        }
    }
    return some;
}

// ---- running ----

// A fiber's body: threads that end without waiting follow each other on one stack, without a switch.
static void run_threads(void)
{
    while (b.lanes < WARP) {
        int lane = b.lanes++;
        become(b.warp * WARP + (b.down ? WARP - 1 - lane : lane));
        b.threads[b.current].state = RUNNING;
        b.launch->run(b.launch);
        b.threads[b.current].state = ENDED;
        b.ended++;
    }
}

static void go_on_with_lanes(int warp)
{
    for (int i = 0; i < WARP && !b.failed; i++) {
        int t = warp * WARP + (b.down ? WARP - 1 - i : i);
        if (b.threads[t].state == RUNNING) {
            become(t);
            fiber_run(b.threads[t].fiber);
        }
    }
}

// Until all of its lanes have ended or wait for others.
static void run_warp(int warp)
{
    go_on_with_lanes(warp);
    while (!b.failed && release_lanes(&b.threads[warp * WARP]))
        go_on_with_lanes(warp);
}

static void start_warp(int warp)
{
    b.warp = warp;
    b.lanes = 0;
    while (b.lanes < WARP && !b.failed) {
        struct fiber *f = fiber_take(run_threads);
        if (f == NULL) {
            keep(cudaErrorMemoryAllocation, "no memory for the stacks of its threads");
            return;
        }
        fiber_run(f);
    }
    run_warp(warp);
}

static bool release_barrier(void)
{
    for (int t = 0; t < b.count; t++)
        if (b.threads[t].state != AT_BARRIER || b.threads[t].line != b.threads[0].line)
            return false;
    for (int t = 0; t < b.count; t++)
        b.threads[t].state = RUNNING;
    return true;
}

static void run_block(void)
{
    int warps = b.count / WARP;
    char text[256];
    b.ended = 0;
    b.down = queue_random(2) == 1;
    emulation_block_serial++;
    shared_begin(b.launch->shared_bytes);
    for (int t = 0; t < b.count; t++)
        b.threads[t].state = UNSTARTED;
    for (int w = 0; w < warps && !b.failed; w++)
        start_warp(b.down ? warps - 1 - w : w);
    while (!b.failed && b.ended < b.count) {
        if (!release_barrier())
            keep_divergence();
        for (int w = 0; w < warps && !b.failed; w++)
            run_warp(b.down ? warps - 1 - w : w);
    }
    if (!shared_end(text, sizeof text) && !b.failed)
        keep(cudaErrorIllegalAddress, text);
}

static void number_threads(dim3 size)
{
    for (int t = 0; t < b.count; t++)
        b.threads[t].index = (uint3){(unsigned)t % size.x, (unsigned)t / size.x % size.y, (unsigned)t / size.x / size.y};
}

static enum emulation_step run_launch(void *context)
{
    struct emulation_launch *launch = context;
    fault_watch();
    b.launch = launch;
    b.failed = false;
    b.count = (int)(launch->block.x * launch->block.y * launch->block.z);
    emulation_block_size = launch->block;
    emulation_grid_size = launch->grid;
    number_threads(launch->block);
    uint64_t blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z, offset = queue_random((uint32_t)blocks);
    bool down = queue_random(2) == 1;
    for (uint64_t i = 0; i < blocks && !b.failed; i++) { // from a random one upwards or downwards, around
        uint64_t at = (offset + (down ? blocks - 1 - i : i)) % blocks;
        emulation_block_index = (uint3){(unsigned)(at % launch->grid.x), (unsigned)(at / launch->grid.x % launch->grid.y),
                                        (unsigned)(at / launch->grid.x / launch->grid.y)};
        run_block();
    }
    if (b.failed)
        fiber_reset();
    b.launch = NULL;
    return b.failed ? EMULATION_FAILED : EMULATION_DONE;
}

// ---- launching ----

void emulation_launch(struct emulation_launch *launch, cudaStream_t stream)
{
    dim3 g = launch->grid, s = launch->block;
    uint64_t threads = (uint64_t)s.x * s.y * s.z, blocks = (uint64_t)g.x * g.y * g.z;
    bool possible = threads > 0 && threads <= THREADS_MAX && threads % WARP == 0 && s.z <= 64 && blocks > 0 && blocks <= INT32_MAX && g.y < 65536 && g.z < 65536 &&
                    launch->shared_bytes <= device_shared_limit(launch->function);
    if (!possible) {
        emulation_result(cudaErrorInvalidConfiguration);
        free(launch);
        return;
    }
    queue_give(stream, launch->kernel, run_launch, launch);
}
