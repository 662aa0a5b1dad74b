// The CUDA device of this process: streams, order, waiting, errors. See cuda.h. Host code only.
//
// How: lanes are non-blocking streams, those that move data with the highest priority. A wait polls an event: at first without a pause, then
//      with short ones. After a wait that was given up, later ones look once and fail, so that one hang costs one deadline.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/memory.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

static const char *const lane_names[CUDA_LANES] = {"compute", "gather", "reduce"};
static const double BUSY_S = 200e-6;   // of polling without a pause
static const long PAUSE_NS = 20000;
static const unsigned GRID_FILL = 32;  // blocks for each multiprocessor: those of 256 threads fill it four times

struct launched { const char *kernel, *where; int line; dim3 grid, block; size_t shared_bytes; };

static struct cuda_state {
    bool open, failed, stuck;
    struct error failure;
    double deadline_s;
    cuda_watch *watch;
    unsigned processors;
    cudaStream_t streams[CUDA_LANES];
    cudaEvent_t orders[CUDA_LANES], waits[CUDA_LANES];
    struct launched last[CUDA_LANES];
    char text[384];
} now;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- failures: the first one stays ----

void cuda_fail(const char *format, ...)
{
    char text[sizeof now.failure.text];
    va_list list;
    if (now.failed)
        return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    now.failure.text[0] = 0;
    error_set(&now.failure, "%s", text);
    now.failed = true;
}

bool cuda_failed(struct error *error)
{
    bool failed = now.failed;
    if (failed)
        error_set(error, "%s", now.failure.text);
    now.failed = false;
    return failed;
}

bool cuda_check(cudaError_t code, const char *call, const char *file, int line)
{
    if (code == cudaSuccess)
        return true;
    (void)cudaGetLastError(); // a launch after it is not to be blamed
    cuda_fail("%s at %s:%d: %s: %s", call, file, line, cudaGetErrorName(code), cudaGetErrorString(code));
    return false;
}

static void describe(const struct launched *l, char *text, size_t size)
{
    if (l->kernel == NULL)
        snprintf(text, size, "nothing");
    else
        snprintf(text, size, "%s (%u,%u,%u) blocks of (%u,%u,%u) threads, %zu bytes, in %s, line %d", l->kernel, l->grid.x, l->grid.y, l->grid.z, l->block.x, l->block.y, l->block.z,
                 l->shared_bytes, l->where, l->line);
}

void launch_check(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes, enum cuda_lane lane, const char *where, int line)
{
    char text[480];
    cudaError_t code = cudaGetLastError();
    now.last[lane] = launched{kernel, where, line, grid, block, shared_bytes};
    if (code == cudaSuccess)
        return;
    describe(&now.last[lane], text, sizeof text);
    cuda_fail("launch of %s, stream %s: %s: %s", text, lane_names[lane], cudaGetErrorName(code), cudaGetErrorString(code));
}

// A failure that the device reports behind the host: what was launched last narrows it down.
static bool fail_late(cudaError_t code, const char *what)
{
    char text[CUDA_LANES][480];
    for (int i = 0; i < CUDA_LANES; i++)
        describe(&now.last[i], text[i], sizeof text[i]);
    cuda_fail("while waiting for %s: %s: %s; last launched: %s: %s, %s: %s, %s: %s", what, cudaGetErrorName(code), cudaGetErrorString(code), lane_names[0], text[0],
              lane_names[1], text[1], lane_names[2], text[2]);
    return false;
}

unsigned launch_grid(int64_t n, int64_t each)
{
    int64_t blocks = n > 0 ? (n + each - 1) / each : 1, most = (int64_t)GRID_FILL * (now.processors ? now.processors : 1);
    return (unsigned)(blocks < most ? blocks : most);
}

// ---- opening ----

bool cuda_is_emulated(void)
{
#ifdef FSDPMARK_EMULATION
    return true;
#else
    return false;
#endif
}

bool cuda_available(struct error *why)
{
    int driver = 0, runtime = 0, count = 0;
    cudaError_t code = cudaDriverGetVersion(&driver);
    if (code == cudaSuccess && driver == 0)
        return error_set(why, "CUDA: no driver is installed");
    code = code == cudaSuccess ? cudaRuntimeGetVersion(&runtime) : code;
    if (code == cudaSuccess)
        code = cudaGetDeviceCount(&count);
    (void)cudaGetLastError();
    if (code != cudaSuccess)
        return error_set(why, "CUDA: %s: %s (driver %d.%d, runtime %d.%d)", cudaGetErrorName(code), cudaGetErrorString(code), driver / 1000, driver % 1000 / 10,
                         runtime / 1000, runtime % 1000 / 10);
    return count > 0 ? true : error_set(why, "CUDA: the driver has no device");
}

static bool make_lanes(void)
{
    int least = 0, greatest = 0;
    bool ok = CUDA_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    for (int i = 0; i < CUDA_LANES && ok; i++)
        ok = CUDA_OK(cudaStreamCreateWithPriority(&now.streams[i], cudaStreamNonBlocking, i == CUDA_COMPUTE ? least : greatest)) &&
             CUDA_OK(cudaEventCreateWithFlags(&now.orders[i], cudaEventDisableTiming)) && CUDA_OK(cudaEventCreateWithFlags(&now.waits[i], cudaEventDisableTiming));
    return ok;
}

static bool name_device(int device)
{
    struct cudaDeviceProp p;
    int driver = 0;
    if (!CUDA_OK(cudaGetDeviceProperties(&p, device)) || !CUDA_OK(cudaDriverGetVersion(&driver)))
        return false;
    now.processors = (unsigned)p.multiProcessorCount;
    if (cuda_is_emulated())
        snprintf(now.text, sizeof now.text, "EMULATION of a CUDA device, no GPU");
    else
        snprintf(now.text, sizeof now.text, "%s, %d.%d, %.0f GiB, driver %d.%d", p.name, p.major, p.minor, (double)p.totalGlobalMem / (1024.0 * 1024 * 1024), driver / 1000,
                 driver % 1000 / 10);
    return true;
}

bool cuda_open(int local_rank, double deadline_s, cuda_watch *watch, struct error *error)
{
    int count = 0;
    if (!cuda_available(error))
        return false;
    if (now.open)
        return error_set(error, "CUDA: opened twice");
    now = cuda_state();
    now.deadline_s = deadline_s;
    now.watch = watch;
    now.open = CUDA_OK(cudaGetDeviceCount(&count)) && CUDA_OK(cudaSetDevice(local_rank % count)) && name_device(local_rank % count) && make_lanes();
    if (!now.open) {
        cuda_failed(error);
        cuda_close();
    }
    return now.open;
}

void cuda_close(void)
{
    cuda_kernels_close();
    for (int i = 0; i < CUDA_LANES; i++) { // what one of them says is of no interest any more
        if (now.orders[i])
            (void)cudaEventDestroy(now.orders[i]);
        if (now.waits[i])
            (void)cudaEventDestroy(now.waits[i]);
        if (now.streams[i])
            (void)cudaStreamDestroy(now.streams[i]);
        now.orders[i] = now.waits[i] = NULL;
        now.streams[i] = NULL;
    }
    (void)cudaGetLastError();
    now.open = false;
}

const char *cuda_device_text(void) { return now.text; }
cudaStream_t cuda_stream(enum cuda_lane lane) { return now.streams[lane]; }

// ---- order and waiting ----

void cuda_order(enum cuda_lane earlier, enum cuda_lane later)
{
    if (earlier != later && CUDA_OK(cudaEventRecord(now.orders[earlier], now.streams[earlier])))
        CUDA_OK(cudaStreamWaitEvent(now.streams[later], now.orders[earlier], 0));
}

static void pause_after(double waited_s)
{
    struct timespec pause = {0, PAUSE_NS};
    if (waited_s < BUSY_S)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

// Given up: by its deadline or by whoever watches.
static bool give_up(const char *what, double waited_s)
{
    struct error why;
    bool late = now.stuck || waited_s > now.deadline_s;
    why.text[0] = 0;
    if (late)
        cuda_fail("%s has not ended within %.1f s", what, now.stuck ? waited_s : now.deadline_s);
    if (now.watch != NULL && !now.watch(late, &why)) {
        cuda_fail("while waiting for %s: %s", what, why.text); // the first failure stays
        late = true;
    }
    return now.stuck = late;
}

bool cuda_wait(cudaEvent_t event, const char *what)
{
    double begin = seconds();
    for (;;) {
        cudaError_t code = cudaEventQuery(event);
        if (code == cudaSuccess)
            return true;
        if (code != cudaErrorNotReady) {
            (void)cudaGetLastError();
            return fail_late(code, what);
        }
        double waited = seconds() - begin;
        if ((waited > BUSY_S || now.stuck) && give_up(what, waited))
            return false;
        pause_after(waited);
    }
}

bool cuda_wait_lane(enum cuda_lane lane, const char *what)
{
    return CUDA_OK(cudaEventRecord(now.waits[lane], now.streams[lane])) && cuda_wait(now.waits[lane], what);
}

bool cuda_finish(struct error *error)
{
    for (int i = 0; i < CUDA_LANES; i++)
        cuda_wait_lane((enum cuda_lane)i, lane_names[i]);
    return !cuda_failed(error);
}

// ---- host memory ----

void *cuda_host_allocate(size_t bytes)
{
    void *memory = NULL;
    return CUDA_OK(cudaHostAlloc(&memory, bytes > 0 ? bytes : 1, cudaHostAllocPortable)) ? memory : NULL;
}

void cuda_host_release(void *memory)
{
    if (memory)
        CUDA_OK(cudaFreeHost(memory));
}
