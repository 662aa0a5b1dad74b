/*
 * Benchmark of every row of the kernel table: time, GFLOP/s and GB/s by the row's declared flop and bytes.
 *
 * How:  one thread; each kernel is called until a sample lasts 5 ms, 7 samples, the median is printed with
 *       the fastest and slowest. Two sizes: a model of a few million parameters (d = 256, T = 256, 8 heads)
 *       and a tiny one (d = 16, T = 8). Usage: bench_kernels [f32|f64|bf16|f16] [NAME-PART]
 *       bench_kernels --markdown prints the table as documentation instead.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/rows.h"

static const struct {
    const char *name;
    struct kernel_setting setting;
} sizes[] = {
    {"tiny",
     {.M = 16, .N = 16, .K = 16, .rows = 16, .C = 16, .V = 32, .B = 2, .T = 8, .H = 2, .Hq = 2, .Hkv = 2, .D = 8,
      .n = 256, .step = 2, .alpha = 1, .eps = 1e-5, .theta = 10000, .scale = 0.35, .lr = 1e-3, .momentum = 0.9,
      .beta1 = 0.9, .beta2 = 0.95}},
    {"small",
     {.M = 512, .N = 1024, .K = 256, .rows = 512, .C = 256, .V = 4096, .B = 2, .T = 256, .H = 8, .Hq = 8, .Hkv = 8,
      .D = 32, .n = 524288, .step = 2, .alpha = 1, .eps = 1e-5, .theta = 10000, .scale = 0.18, .lr = 1e-3,
      .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.95}},
};
enum { SIZE_COUNT = sizeof sizes / sizeof *sizes, SAMPLES = 7 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Fills with numbers of magnitude about 1, of both signs for plain inputs. */
static bool allocate(const struct kernel_row *row, const struct kernel_setting *s, enum dtype storage, void **arrays)
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

static double sample(const struct kernel_row *row, const struct kernel_set *set, const struct kernel_setting *s,
                     void *const *arrays, int64_t calls)
{
    double start = now_s();
    for (int64_t i = 0; i < calls; i++)
        row->call(set, s, arrays);
    return (now_s() - start) / (double)calls;
}

static void measure(const struct kernel_row *row, int size, enum dtype storage)
{
    const struct kernel_setting *s = &sizes[size].setting;
    const struct kernel_set *set = kernels_cpu(storage);
    void *arrays[KERNEL_MAX_ARGUMENTS] = {0};
    double seconds[SAMPLES];
    struct kernel_work work;
    row->work(s, &work);
    if (allocate(row, s, storage, arrays)) {
        double once = sample(row, set, s, arrays, 3);
        int64_t calls = (int64_t)(5e-3 / once) + 1;
        for (int i = 0; i < SAMPLES; i++)
            seconds[i] = sample(row, set, s, arrays, calls);
        qsort(seconds, SAMPLES, sizeof *seconds, compare);
        double median = seconds[SAMPLES / 2];
        printf("%-24s %-5s %-5s %11.3f %11.3f %11.3f %9.2f %9.2f\n", row->name, dtype_name(storage), sizes[size].name,
               median * 1e6, seconds[0] * 1e6, seconds[SAMPLES - 1] * 1e6, work.flop / median * 1e-9,
               kernel_row_bytes(row, s, storage) / median * 1e-9);
    }
    for (int i = 0; i < row->argument_count; i++)
        free(arrays[i]);
}

/* A cell of a Markdown table: bars would end it. */
static void print_cell(const char *text)
{
    for (; *text; text++)
        printf(*text == '|' ? "\\|" : "%c", *text);
}

static void print_markdown(void)
{
    printf("| kernel | formula | arguments | flop | budget [u] | source |\n| --- | --- | --- | --- | --- | --- |\n");
    for (const struct kernel_row *row = kernel_rows; row < kernel_rows + kernel_row_count; row++) {
        printf("| `%s` | ", row->name);
        print_cell(row->formula);
        printf(" | ");
        for (int i = 0; i < row->argument_count; i++) {
            const struct kernel_argument *a = &row->arguments[i];
            bool reads = kernel_kind_reads(a->kind), writes = kernel_kind_writes(a->kind);
            if (reads || writes)
                printf("%s%s (%s) ", reads && writes ? "updates " : reads ? "reads " : "writes ", a->name, a->extent);
        }
        printf("| %s | %s | %s |\n", row->flop, row->budget, row->source);
    }
}

int main(int argc, char **argv)
{
    enum dtype storage = DTYPE_F32;
    if (argc > 1 && strcmp(argv[1], "--markdown") == 0) {
        print_markdown();
        return 0;
    }
    if (argc > 1 && (!dtype_parse(argv[1], &storage) || kernels_cpu(storage) == NULL)) {
        fprintf(stderr, "bench_kernels: found type %s, expected f32, f64, bf16 or f16\n", argv[1]);
        return 2;
    }
    kernels_set_threads(1);
    printf("%-24s %-5s %-5s %11s %11s %11s %9s %9s\n", "kernel", "type", "size", "median us", "min us", "max us",
           "GFLOP/s", "GB/s");
    for (int r = 0; r < kernel_row_count; r++)
        for (int size = 0; size < SIZE_COUNT; size++)
            if (argc < 3 || strstr(kernel_rows[r].name, argv[2]) != NULL)
                measure(&kernel_rows[r], size, storage);
    kernels_scratch_free();
    return 0;
}
