// Types: which is wider, and the mean that ends a reduction.
//
// The division comes after the sum and is a true division, rounded to the reduce type, so that sums that are multiples of N
// give exact means for every N; the loss scale is taken out after the conversion to the gradient's type, where it
// cannot underflow.
#include <string.h>

#include "reference/engine/engine.h"
#include "reference/engine/fault.h"

enum { CHUNK = 1024 };

static int width(enum dtype type) { return type == DTYPE_F64 ? 2 : type == DTYPE_F32 ? 1 : 0; }

enum dtype precision_wider(enum dtype a, enum dtype b)
{
    if (a == b || width(a) > width(b))
        return a;
    return width(b) > width(a) ? b : DTYPE_F32; // bf16 and f16: neither holds the other
}

static void mean_f32(int64_t count, const float *sum, float divisor, float factor, float *to, bool add)
{
    for (int64_t i = 0; i < count && add; i++)
        to[i] += sum[i] / divisor * factor;
    for (int64_t i = 0; i < count && !add; i++)
        to[i] = sum[i] / divisor * factor;
}

static void mean_chunk(int64_t count, enum dtype sum_type, const void *sum, double divisor, double factor, enum dtype to_type,
                       void *to, bool add)
{
    double wide[CHUNK];
    uint16_t narrow[CHUNK];
    kernels_cast(count, sum_type, sum, DTYPE_F64, wide);
    for (int64_t i = 0; i < count; i++)
        wide[i] = sum_type == DTYPE_F64 ? wide[i] / divisor : (double)((float)wide[i] / (float)divisor);
    if (dtype_size(sum_type) == sizeof *narrow) {
        kernels_cast(count, DTYPE_F64, wide, sum_type, narrow);
        kernels_cast(count, sum_type, narrow, DTYPE_F64, wide);
    }
    for (int64_t i = 0; i < count; i++)
        wide[i] *= factor;
    if (add)
        kernels_accumulate(count, DTYPE_F64, wide, to_type, to);
    else
        kernels_cast(count, DTYPE_F64, wide, to_type, to);
}

void precision_mean(int64_t count, enum dtype sum_type, const void *sum, double divisor, double factor, enum dtype to_type,
                    void *to, bool add)
{
    if (sum_type == DTYPE_F32 && to_type == DTYPE_F32) {
        mean_f32(count, sum, (float)divisor, (float)factor, to, add);
        return;
    }
    for (int64_t i = 0; i < count; i += CHUNK)
        mean_chunk(count - i < CHUNK ? count - i : CHUNK, sum_type, engine_at(sum, sum_type, i), divisor, factor, to_type,
                   engine_at(to, to_type, i), add);
}
