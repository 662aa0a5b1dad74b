/*
 * The rows of the kernel table against what this machine can do: a roofline.
 *
 * What: each kernel's measured GFLOP/s over its declared flop per byte, and that as a part of its roof, min(peak, intensity x bandwidth).
 *       Roofs are measured here and now, one thread: the BLAS's product of two square matrices for the peak, and memcpy for the
 *       bandwidths, whose bytes are those read and written, with arrays of 2 MiB (as the kernels' own, which stay in the cache) and of
 *       128 MiB (from memory). Best of several samples for roofs, the median for kernels, which are judged by the cache's roof.
 * Limits: kernels that update in place, or read more than they write, may pass a roof made of copies. Kernels without flop have no place in it.
 * Source: Williams, Waterman, Patterson 2009, "Roofline: an insightful visual performance model", CACM 52(4).
 * Usage: bench_roofline [f32|f64|bf16|f16] [FOLDER]; into FOLDER go roofline.dat and roofline.head for results/plots/roofline.gp.
 */
#include <stdio.h>
#include <string.h>

#include "kernels/bench/measure.h"

enum { ROOF_SAMPLES = 7 };
static const size_t cache_bytes = (size_t)2 << 20, memory_bytes = (size_t)128 << 20;

struct roofs { double peak, cache, memory; }; /* GFLOP/s, GB/s, GB/s */
struct point { const char *name; double intensity, gflops, part; };

/* GB/s of the fastest of several copies; each sample copies as much as the largest array. */
static double copy_bandwidth(size_t bytes)
{
    char *from = malloc(bytes), *to = malloc(bytes);
    double best = 0;
    if (from == NULL || to == NULL)
        abort();
    memset(from, 1, bytes);
    memset(to, 2, bytes);
    for (int sample = 0; sample < ROOF_SAMPLES; sample++) {
        size_t calls = memory_bytes / bytes;
        double start = measure_now();
        for (size_t i = 0; i < calls; i++) {
            memcpy(to, from, bytes);
            __asm__ volatile("" : : "r"(to) : "memory"); /* every copy happens */
        }
        double rate = 2.0 * (double)(calls * bytes) / (measure_now() - start) * 1e-9;
        best = rate > best ? rate : best;
    }
    free(from);
    free(to);
    return best;
}

static bool measure_point(const struct kernel_row *row, enum dtype storage, const struct roofs *r, struct point *p)
{
    const struct kernel_setting *s = &measure_sizes[MEASURE_SMALL].setting;
    double seconds[MEASURE_SAMPLES];
    struct kernel_work work;
    row->work(s, &work);
    if (!(work.flop > 0) || !measure_row(row, s, storage, seconds))
        return false;
    p->name = row->name;
    p->intensity = work.flop / kernel_row_bytes(row, s, storage);
    p->gflops = work.flop / seconds[MEASURE_SAMPLES / 2] * 1e-9;
    p->part = p->gflops / fmin(r->peak, p->intensity * r->cache);
    return true;
}

static int by_intensity(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    return (x->intensity > y->intensity) - (x->intensity < y->intensity);
}

/* What the picture needs: a row a kernel, and in front of the script the numbers of the roofs and the layout in pixels. */
static bool write_picture(const char *folder, const struct roofs *r, const struct point *points, int count, int left_out, enum dtype storage)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/roofline.dat", folder);
    FILE *data = fopen(path, "w");
    snprintf(path, sizeof path, "%s/roofline.head", folder);
    FILE *head = fopen(path, "w");
    for (int i = 0; data != NULL && i < count; i++)
        fprintf(data, "%d\t%s\t%.6g\t%.6g\t%.4g\n", i + 1, points[i].name, points[i].intensity, points[i].gflops, 100 * points[i].part);
    if (head != NULL) {
        int tall = 24 * count;
        fprintf(head, "name = \"roofline\"\nheading = \"Kernels against this machine, %s, one thread\"\n", dtype_name(storage));
        fprintf(head, "note = \"Roofs: best of %d; kernels: median of %d, their arrays in the cache, flop and bytes as declared. %d kernels without flop are left out.\\n"
                      "A kernel that updates in place, or reads more than it writes, may pass a roof that is made of copies.\"\nlines = 2\n", ROOF_SAMPLES, MEASURE_SAMPLES, left_out);
        fprintf(head, "peak = %.6g\ncache = %.6g\nmemory = %.6g\nrows = %d\n", r->peak, r->cache, r->memory, count);
        fprintf(head, "width = 1240\nheight = %d\nleft = 80\ntop = 70\nwide = 600\ntall = %d\ngap = 220\nkeytop = %d\n", tall + 230, tall, tall + 135);
    }
    bool ok = data != NULL && head != NULL;
    ok = (data == NULL || fclose(data) == 0) && ok;
    ok = (head == NULL || fclose(head) == 0) && ok;
    if (!ok)
        perror(path);
    return ok;
}

int main(int argc, char **argv)
{
    enum dtype storage = DTYPE_F32;
    const char *folder = argc > 1 ? argv[argc - 1] : NULL;
    bool typed = argc > 1 && dtype_parse(argv[1], &storage) && kernels_cpu(storage) != NULL;
    if (argc > 3 || (argc == 3 && !typed)) {
        fprintf(stderr, "bench_roofline: found '%s', expected [f32|f64|bf16|f16] [FOLDER]\n", argv[1]);
        return 2;
    }
    if (argc == 2 && typed)
        folder = NULL;
    kernels_set_threads(1);
    struct roofs r = {1e-9 * measure_matrix_peak(storage), copy_bandwidth(cache_bytes), copy_bandwidth(memory_bytes)};
    struct point *points = calloc((size_t)kernel_row_count, sizeof *points);
    int count = 0;
    for (int i = 0; points != NULL && i < kernel_row_count; i++)
        count += measure_point(&kernel_rows[i], storage, &r, &points[count]);
    if (count > 0)
        qsort(points, (size_t)count, sizeof *points, by_intensity);
    printf("roofs, %s, one thread: %.1f GFLOP/s of the BLAS (%d x %d), copies %.1f GB/s in the cache (%zu MiB), %.1f GB/s from memory (%zu MiB)\n",
           dtype_name(storage), r.peak, MEASURE_MATRIX, MEASURE_MATRIX, r.cache, cache_bytes >> 20, r.memory, memory_bytes >> 20);
    printf("%-24s %11s %11s %11s\n", "kernel", "flop/byte", "GFLOP/s", "% of roof");
    for (int i = 0; i < count; i++)
        printf("%-24s %11.3f %11.2f %11.0f\n", points[i].name, points[i].intensity, points[i].gflops, 100 * points[i].part);
    bool ok = count > 0 && (folder == NULL || write_picture(folder, &r, points, count, kernel_row_count - count, storage));
    free(points);
    kernels_scratch_free();
    return ok ? 0 : 1;
}
