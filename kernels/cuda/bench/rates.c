// Rates of the CUDA kernels: bytes and flop per second of each row of the kernel table, beside what the card reaches.
//
// How:  arrays of hundreds of megabytes, far beyond any cache; a kernel is called until a sample lasts some milliseconds by the device's own events, the
//       median of five samples. Bytes and flop are the row's own (kernels/table.h). Two peaks come first: a copy within the device (each byte read and
//       written), and the product of two square matrices in each type, which is cuBLAS's. One JSON object a line:
//       {"peak": "copy", "gb_per_s"}, {"peak": "matmul", "type", "gflop_per_s"},
//       {"kernel", "type", "seconds", "gb_per_s", "gflop_per_s", "of_copy", "of_matmul"}; "emulated": true where there is no GPU.
//       Usage: bench-cuda [--small] [SECONDS]. --small: sizes that an emulation can run. After that many seconds the other
//       rows are left out, and counted in the last line {"rows", "failed", "left_out"}.
// Why:  a kernel that only moves memory can do no better than a copy; the target is 85 % of it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cuda/cuda.h"
#include "kernels/rows.h"

enum { SAMPLES = 5, TILE = 1 << 20 };
static const double deadline_s = 60, sample_s = 4e-3;

static const struct kernel_setting large = {
    .M = 4096, .N = 4096, .K = 4096, .rows = 16384, .C = 4096, .V = 16384, .B = 4, .T = 2048, .H = 32, .Hq = 32, .Hkv = 8, .D = 128, .n = 64 << 20, .step = 2,
    .alpha = 1, .eps = 1e-5, .theta = 10000, .scale = 0.088, .lr = 1e-3, .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.95};
static const struct kernel_setting small = {
    .M = 16, .N = 16, .K = 16, .rows = 16, .C = 32, .V = 32, .B = 1, .T = 8, .H = 2, .Hq = 2, .Hkv = 1, .D = 8, .n = 512, .step = 2,
    .alpha = 1, .eps = 1e-5, .theta = 10000, .scale = 0.35, .lr = 1e-3, .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.95};

static const struct device *const gpu = &device_cuda;
static cudaEvent_t begin, end;

static double value(enum kernel_kind kind, int64_t e, int64_t V)
{
    double wave = (double)(e * 2654435761u % 1000) / 500 - 1; // in [-1, 1)
    return kind == KERNEL_TOKENS ? (double)(e * 7 % V) : kind == KERNEL_IN ? wave : 1.5 + 0.5 * wave;
}

// One tile is made by the host; the rest of the array repeats it.
static void *fill(enum kernel_kind kind, enum dtype type, int64_t count, int64_t V)
{
    int64_t first = count < TILE ? count : TILE, size = (int64_t)dtype_size(type);
    char *host = malloc((size_t)(first * size) + 1), *array = gpu->allocate((size_t)(count * size) + 1);
    for (int64_t e = 0; host && e < first; e++)
        dtype_set(type, host, e, value(kind, e, V));
    if (host && array) {
        gpu->upload(array, host, (size_t)(first * size));
        for (int64_t done = first; done < count; done += first)
            gpu->copy(array + done * size, array, (size_t)((count - done < first ? count - done : first) * size));
    }
    free(host);
    return array;
}

static bool allocate(const struct kernel_row *row, const struct kernel_setting *s, enum dtype type, void **arrays)
{
    struct kernel_work work;
    row->work(s, &work);
    for (int i = 0; i < row->argument_count; i++) {
        enum kernel_kind kind = row->arguments[i].kind;
        if (!kernel_kind_reads(kind) && !kernel_kind_writes(kind))
            continue;
        arrays[i] = fill(kind, kernel_kind_dtype(kind, type), work.extent[i], s->V);
        if (!arrays[i])
            return false;
    }
    return true;
}

// ---- timing ----

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct task { const struct kernel_row *row; const struct kernel_setting *s; enum dtype type; void **arrays; size_t copy_bytes; };

static double sample(const struct task *t, int calls)
{
    float ms = 0;
    CUDA_OK(cudaEventRecord(begin, cuda_stream(CUDA_COMPUTE)));
    for (int i = 0; i < calls; i++)
        if (t->row)
            t->row->call(kernels_cuda(t->type), t->s, t->arrays);
        else
            gpu->copy(t->arrays[0], t->arrays[1], t->copy_bytes);
    CUDA_OK(cudaEventRecord(end, cuda_stream(CUDA_COMPUTE)));
    cuda_wait(end, "a sample");
    CUDA_OK(cudaEventElapsedTime(&ms, begin, end));
    return 1e-3 * ms / calls;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The median [s] of a call; 0 where it failed.
static double measure(const struct task *t)
{
    double seconds[SAMPLES], once = (sample(t, 1), sample(t, 1));
    int calls = once > 0 && once < sample_s ? (int)(sample_s / once) + 1 : 1;
    calls = calls > 1000 ? 1000 : calls;
    for (int i = 0; i < SAMPLES; i++)
        seconds[i] = sample(t, calls);
    qsort(seconds, SAMPLES, sizeof *seconds, by_value);
    struct error why = {""};
    if (!gpu->failed(&why))
        return seconds[SAMPLES / 2];
    fprintf(stderr, "bench-cuda: %s: %s\n", t->row ? t->row->name : "copy", why.text);
    return 0;
}

static double measure_row(const struct kernel_row *row, const struct kernel_setting *s, enum dtype type)
{
    void *arrays[KERNEL_MAX_ARGUMENTS] = {0};
    double seconds = allocate(row, s, type, arrays) ? measure(&(struct task){row, s, type, arrays, 0}) : 0;
    for (int i = 0; i < row->argument_count; i++)
        if (arrays[i])
            gpu->release(arrays[i]);
    return seconds;
}

static double copy_rate(const struct kernel_setting *s)
{
    size_t bytes = (size_t)s->n * sizeof(float);
    void *arrays[2] = {gpu->allocate(bytes), gpu->allocate(bytes)};
    double seconds = arrays[0] && arrays[1] ? measure(&(struct task){NULL, s, DTYPE_F32, arrays, bytes}) : 0;
    gpu->release(arrays[0]);
    gpu->release(arrays[1]);
    return seconds > 0 ? 2.0 * (double)bytes / seconds : 0;
}

// ---- what is printed ----

static const char *mark(void) { return cuda_is_emulated() ? ", \"emulated\": true" : ""; }

static bool print_row(const struct kernel_row *row, const struct kernel_setting *s, enum dtype type, double copy, double matmul)
{
    struct kernel_work work;
    row->work(s, &work);
    double seconds = measure_row(row, s, type), bytes = kernel_row_bytes(row, s, type);
    if (seconds <= 0) {
        printf("{\"kernel\": \"%s\", \"type\": \"%s\", \"failed\": true%s}\n", row->name, dtype_name(type), mark());
        return false;
    }
    printf("{\"kernel\": \"%s\", \"type\": \"%s\", \"seconds\": %.9g, \"gb_per_s\": %.6g, \"gflop_per_s\": %.6g, \"of_copy\": %.4g, \"of_matmul\": %.4g%s}\n", row->name,
           dtype_name(type), seconds, 1e-9 * bytes / seconds, 1e-9 * work.flop / seconds, copy > 0 ? bytes / seconds / copy : 0, matmul > 0 ? work.flop / seconds / matmul : 0, mark());
    fflush(stdout);
    return true;
}

static bool print_all(const struct kernel_setting *s, double limit_s)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_BF16};
    double start = now_s(), copy = copy_rate(s);
    bool ok = copy > 0;
    int rows = 0, failed = 0, left_out = 0;
    printf("{\"peak\": \"copy\", \"gb_per_s\": %.6g%s}\n", 1e-9 * copy, mark());
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        struct kernel_setting square = *s;
        square.M = square.N = square.K = 2 * s->M;
        double seconds = measure_row(&kernel_rows[0], &square, types[k]);
        double matmul = seconds > 0 ? 2.0 * (double)square.M * (double)square.N * (double)square.K / seconds : 0;
        printf("{\"peak\": \"matmul\", \"type\": \"%s\", \"gflop_per_s\": %.6g%s}\n", dtype_name(types[k]), 1e-9 * matmul, mark());
        for (int r = 0; r < kernel_row_count; r++)
            if (now_s() - start > limit_s)
                left_out++;
            else if (print_row(&kernel_rows[r], s, types[k], copy, matmul))
                rows++;
            else
                failed++;
    }
    printf("{\"rows\": %d, \"failed\": %d, \"left_out\": %d%s}\n", rows, failed, left_out, mark());
    return ok && failed == 0;
}

int main(int argc, char **argv)
{
    struct error error = {""};
    bool is_small = argc > 1 && strcmp(argv[1], "--small") == 0;
    double limit_s = argc > 1 + is_small ? atof(argv[1 + is_small]) : 60;
    if (limit_s <= 0 || argc > 2 + is_small) {
        fprintf(stderr, "bench-cuda: found '%s', expected [--small] [SECONDS]\n", argv[argc - 1]);
        return 2;
    }
    if (!cuda_available(&error) || !cuda_open(0, deadline_s, NULL, &error)) {
        fprintf(stderr, "bench-cuda: %s\n", error.text);
        return 2;
    }
    printf("{\"device\": \"%s\"%s}\n", cuda_device_text(), mark());
    bool ok = CUDA_OK(cudaEventCreate(&begin)) && CUDA_OK(cudaEventCreate(&end)) && print_all(is_small ? &small : &large, limit_s);
    cuda_close();
    return !ok;
}
