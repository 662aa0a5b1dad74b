/*
 * How the benchmarks of the kernel table measure a row: settings, inputs, samples.
 *
 * How:  a kernel is called until a sample lasts 5 ms of the thread's processor time, MEASURE_SAMPLES samples, sorted. Two sizes: a model of a few million parameters
 *       (d = 256, T = 256, 8 heads) and a tiny one (d = 16, T = 8).
 */
#ifndef KERNELS_BENCH_MEASURE_H
#define KERNELS_BENCH_MEASURE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/rows.h"

enum { MEASURE_TINY, MEASURE_SMALL, MEASURE_SIZES, MEASURE_SAMPLES = 7 };

static const struct measure_size { const char *name; struct kernel_setting setting; } measure_sizes[MEASURE_SIZES] = {
    {"tiny",
     {.M = 16, .N = 16, .K = 16, .rows = 16, .C = 16, .V = 32, .B = 2, .T = 8, .H = 2, .Hq = 2, .Hkv = 2, .D = 8,
      .n = 256, .step = 2, .alpha = 1, .eps = 1e-5, .theta = 10000, .scale = 0.35, .lr = 1e-3, .momentum = 0.9,
      .beta1 = 0.9, .beta2 = 0.95}},
    {"small",
     {.M = 512, .N = 1024, .K = 256, .rows = 512, .C = 256, .V = 4096, .B = 2, .T = 256, .H = 8, .Hq = 8, .Hkv = 8,
      .D = 32, .n = 524288, .step = 2, .alpha = 1, .eps = 1e-5, .theta = 10000, .scale = 0.18, .lr = 1e-3,
      .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.95}},
};

/* Of this thread, which computes alone: what else runs on its core is not the kernel's. */
static inline double measure_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int measure_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Fills with numbers of magnitude about 1, of both signs for plain inputs. */
static inline bool measure_allocate(const struct kernel_row *row, const struct kernel_setting *s, enum dtype storage, void **arrays)
{
    struct kernel_work work;
    row->work(s, &work);
    for (int i = 0; i < row->argument_count; i++) {
        enum kernel_kind kind = row->arguments[i].kind;
        enum dtype type = kernel_kind_dtype(kind, storage);
        if (!kernel_kind_reads(kind) && !kernel_kind_writes(kind))
            continue;
        arrays[i] = malloc((size_t)work.extent[i] * dtype_size(type) + 1);
        if (arrays[i] == NULL)
            return false;
        for (int64_t e = 0; e < work.extent[i]; e++)
            dtype_set(type, arrays[i], e, kind == KERNEL_TOKENS ? (double)(e * 7 % s->V)
                                          : kind == KERNEL_IN   ? sin((double)e)
                                                                : 1.5 + sin((double)e));
    }
    return true;
}

static inline double measure_sample(const struct kernel_row *row, const struct kernel_set *set, const struct kernel_setting *s,
                                    void *const *arrays, int64_t calls)
{
    double start = measure_now();
    for (int64_t i = 0; i < calls; i++)
        row->call(set, s, arrays);
    return (measure_now() - start) / (double)calls;
}

/* Seconds of a call, sorted: [0] the fastest sample. False without memory. */
static inline bool measure_row(const struct kernel_row *row, const struct kernel_setting *s, enum dtype storage, double seconds[MEASURE_SAMPLES])
{
    const struct kernel_set *set = kernels_cpu(storage);
    void *arrays[KERNEL_MAX_ARGUMENTS] = {0};
    bool ok = measure_allocate(row, s, storage, arrays);
    if (ok) {
        double once = measure_sample(row, set, s, arrays, 3);
        int64_t calls = (int64_t)(5e-3 / once) + 1;
        for (int i = 0; i < MEASURE_SAMPLES; i++)
            seconds[i] = measure_sample(row, set, s, arrays, calls);
        qsort(seconds, MEASURE_SAMPLES, sizeof *seconds, measure_compare);
    }
    for (int i = 0; i < row->argument_count; i++)
        free(arrays[i]);
    return ok;
}

enum { MEASURE_MATRIX = 1024 }; /* rows and columns of the product below */
/* flop/s of the product of two square matrices: what the BLAS reaches on one core, by the fastest of several samples. 0 without memory. */
static inline double measure_matrix_peak(enum dtype storage)
{
    const struct kernel_row *row = kernel_rows;
    struct kernel_setting s = {.M = MEASURE_MATRIX, .N = MEASURE_MATRIX, .K = MEASURE_MATRIX, .alpha = 1};
    double seconds[MEASURE_SAMPLES];
    while (strcmp(row->name, "matmul") != 0)
        row++;
    return measure_row(row, &s, storage, seconds) ? 2.0 * MEASURE_MATRIX * MEASURE_MATRIX * MEASURE_MATRIX / seconds[0] : 0;
}

#endif
