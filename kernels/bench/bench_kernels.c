/*
 * Benchmark of every row of the kernel table: time, GFLOP/s and GB/s by the row's declared flop and bytes.
 *
 * How:  one thread, measure.h; the median is printed with the fastest and slowest.
 *       Usage: bench_kernels [f32|f64|bf16|f16] [NAME-PART]
 *       bench_kernels --markdown prints the table as documentation instead.
 */
#include <stdio.h>
#include <string.h>

#include "kernels/bench/measure.h"

static void measure(const struct kernel_row *row, int size, enum dtype storage)
{
    const struct kernel_setting *s = &measure_sizes[size].setting;
    double seconds[MEASURE_SAMPLES];
    struct kernel_work work;
    row->work(s, &work);
    if (!measure_row(row, s, storage, seconds))
        return;
    double median = seconds[MEASURE_SAMPLES / 2];
    printf("%-24s %-5s %-5s %11.3f %11.3f %11.3f %9.2f %9.2f\n", row->name, dtype_name(storage), measure_sizes[size].name,
           median * 1e6, seconds[0] * 1e6, seconds[MEASURE_SAMPLES - 1] * 1e6, work.flop / median * 1e-9,
           kernel_row_bytes(row, s, storage) / median * 1e-9);
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
        for (int size = 0; size < MEASURE_SIZES; size++)
            if (argc < 3 || strstr(kernel_rows[r].name, argv[2]) != NULL)
                measure(&kernel_rows[r], size, storage);
    kernels_scratch_free();
    return 0;
}
