// The host as a device. See device.h.
#include "kernels/device.h"

#include <stdlib.h>
#include <string.h>

enum { MEAN_CHUNK = 1024, ROW_CHUNK = 256, ALIGNMENT = 64 };

// ---- memory ----

static void *host_allocate(size_t bytes)
{
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, rounded ? rounded : ALIGNMENT);
    return memory ? memset(memory, 0, rounded) : NULL;
}

static void host_copy(void *dst, const void *src, size_t bytes)
{
    if (bytes > 0)
        memcpy(dst, src, bytes);
}

static void host_clear(void *dst, size_t bytes)
{
    if (bytes > 0)
        memset(dst, 0, bytes);
}

static void *at(const void *array, enum dtype type, int64_t i) { return (char *)(uintptr_t)array + (size_t)i * dtype_size(type); }

// ---- the mean of a sum over ranks ----

static void mean_f32(int64_t n, const float *sum, float divisor, float factor, float *to, bool add)
{
    for (int64_t i = 0; i < n && add; i++)
        to[i] += sum[i] / divisor * factor;
    for (int64_t i = 0; i < n && !add; i++)
        to[i] = sum[i] / divisor * factor;
}

static void mean_chunk(int64_t n, enum dtype sum_type, const void *sum, double divisor, double factor, enum dtype to_type, void *to, bool add)
{
    double wide[MEAN_CHUNK];
    uint16_t narrow[MEAN_CHUNK];
    kernels_cast(n, sum_type, sum, DTYPE_F64, wide);
    for (int64_t i = 0; i < n; i++)
        wide[i] = sum_type == DTYPE_F64 ? wide[i] / divisor : (double)((float)wide[i] / (float)divisor);
    if (dtype_size(sum_type) == sizeof *narrow) {
        kernels_cast(n, DTYPE_F64, wide, sum_type, narrow);
        kernels_cast(n, sum_type, narrow, DTYPE_F64, wide);
    }
    for (int64_t i = 0; i < n; i++)
        wide[i] *= factor;
    if (add)
        kernels_accumulate(n, DTYPE_F64, wide, to_type, to);
    else
        kernels_cast(n, DTYPE_F64, wide, to_type, to);
}

static void host_mean(int64_t n, enum dtype sum_type, const void *sum, double divisor, double factor, enum dtype to_type, void *to, bool add)
{
    if (sum_type == DTYPE_F32 && to_type == DTYPE_F32) {
        mean_f32(n, sum, (float)divisor, (float)factor, to, add);
        return;
    }
    for (int64_t i = 0; i < n; i += MEAN_CHUNK)
        mean_chunk(n - i < MEAN_CHUNK ? n - i : MEAN_CHUNK, sum_type, at(sum, sum_type, i), divisor, factor, to_type, at(to, to_type, i), add);
}

// ---- norms ----

static void host_norms(enum device_norm norm, enum dtype type, int count, const void *const *arrays, const int64_t *n, double *out)
{
    const struct kernel_set *k = kernels_cpu(type);
    for (int i = 0; i < count; i++)
        out[i] = norm == DEVICE_NORM_L1 ? k->norm_l1(n[i], arrays[i]) : norm == DEVICE_NORM_L2_SQUARED ? k->norm_l2_squared(n[i], arrays[i])
                 : norm == DEVICE_NORM_LINF ? k->norm_linf(n[i], arrays[i]) : k->all_finite(n[i], arrays[i]);
}

// ---- the witness ----

// n elements of any type as float64, by way of the storage type where that is another one.
static void widen(enum dtype storage, int64_t n, enum dtype type, const void *from, double *to)
{
    double rounded[ROW_CHUNK];
    if (type != storage && storage != DTYPE_F64) {
        kernels_cast(n, type, from, storage, rounded);
        kernels_cast(n, storage, rounded, DTYPE_F64, to);
    } else {
        kernels_cast(n, type, from, DTYPE_F64, to);
    }
}

static double row_product(enum dtype storage, int64_t C, const void *w, const float *x)
{
    double sum = 0, w_chunk[ROW_CHUNK], x_chunk[ROW_CHUNK];
    for (int64_t begin = 0; begin < C; begin += ROW_CHUNK) {
        int64_t n = C - begin < ROW_CHUNK ? C - begin : ROW_CHUNK;
        widen(storage, n, storage, at(w, storage, begin), w_chunk);
        widen(storage, n, DTYPE_F32, x + begin, x_chunk);
        for (int64_t i = 0; i < n; i++)
            sum += w_chunk[i] * x_chunk[i];
    }
    return sum;
}

static void host_row_products(enum dtype storage, int64_t rows, int64_t C, const void *w, const float *x, double *sums)
{
    for (int64_t r = 0; r < rows; r++)
        sums[r] += row_product(storage, C, w, x + r * C);
}

static void host_add_weighted_rows(enum dtype storage, int64_t rows, int64_t C, double scale, const float *weights, const float *x, void *gradient)
{
    double sum[ROW_CHUNK], x_chunk[ROW_CHUNK];
    for (int64_t begin = 0; begin < C; begin += ROW_CHUNK) {
        int64_t n = C - begin < ROW_CHUNK ? C - begin : ROW_CHUNK;
        void *target = at(gradient, storage, begin);
        widen(storage, n, storage, target, sum);
        for (int64_t r = 0; r < rows; r++) {
            double factor = scale * weights[r];
            widen(storage, n, DTYPE_F32, x + r * C + begin, x_chunk);
            for (int64_t i = 0; factor != 0 && i < n; i++)
                sum[i] += factor * x_chunk[i];
        }
        for (int64_t i = 0; i < n; i++)
            dtype_set(storage, target, i, sum[i]);
    }
}

static void host_weighted_sum(int64_t rows, const float *weights, const double *values, double *sum)
{
    *sum = 0;
    for (int64_t r = 0; r < rows; r++)
        *sum += weights[r] * values[r];
}

// ---- nothing runs behind the host ----

static bool host_finish(struct error *error)
{
    (void)error;
    return true;
}

static bool host_failed(struct error *error)
{
    if (kernels_take_error() == 0)
        return false;
    error_set(error, "no memory for the kernels");
    return true;
}

const struct device device_cpu = {
    .name = "cpu", .host = true, .kernels = kernels_cpu, .allocate = host_allocate, .release = free, .copy = host_copy, .clear = host_clear,
    .upload = host_copy, .download = host_copy, .cast = kernels_cast, .accumulate = kernels_accumulate, .fill = kernels_fill, .mean = host_mean,
    .sgd = optim_sgd, .adamw = optim_adamw, .norms = host_norms, .row_products = host_row_products, .add_weighted_rows = host_add_weighted_rows,
    .weighted_sum = host_weighted_sum, .finish = host_finish, .failed = host_failed,
};
