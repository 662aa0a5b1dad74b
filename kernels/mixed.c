/*
 * Kernels between types: cast, accumulate, fill, and optimizers with three types.
 *
 * How: fast paths between float32 and the 16-bit types, and for equal types; everything else goes element
 *      by element through double, which is exact for every floating-point source and rounds once.
 *      The optimizers widen their arrays a chunk at a time onto the stack and call the rows sgd and adamw.
 */
#include <string.h>

#include "kernels/cpu/sets.h"
#include "kernels/kernels.h"

/* A pair of types as one number, for the switch. */
#define PAIR(from, to) ((int)(from)*DTYPE_COUNT + (int)(to))

void kernels_cast(int64_t n, enum dtype src_type, const void *src, enum dtype dst_type, void *dst)
{
    const struct convert_set *convert = kernels_convert();
    if (n <= 0)
        return;
    if (src_type == dst_type) {
        memcpy(dst, src, (size_t)n * dtype_size(dst_type));
        return;
    }
    switch (PAIR(src_type, dst_type)) {
    case PAIR(DTYPE_BF16, DTYPE_F32): convert->bf16_to_f32(n, src, dst); return;
    case PAIR(DTYPE_F32, DTYPE_BF16): convert->bf16_from_f32(n, src, dst); return;
    case PAIR(DTYPE_F16, DTYPE_F32): convert->f16_to_f32(n, src, dst); return;
    case PAIR(DTYPE_F32, DTYPE_F16): convert->f16_from_f32(n, src, dst); return;
    case PAIR(DTYPE_F32, DTYPE_F64):
        for (int64_t i = 0; i < n; i++)
            ((double *)dst)[i] = ((const float *)src)[i];
        return;
    case PAIR(DTYPE_F64, DTYPE_F32):
        for (int64_t i = 0; i < n; i++)
            ((float *)dst)[i] = (float)((const double *)src)[i];
        return;
    default: break;
    }
    for (int64_t i = 0; i < n; i++)
        dtype_set(dst_type, dst, i, dtype_get(src_type, src, i));
}

void kernels_fill(int64_t n, enum dtype type, void *dst, double value)
{
    if (n <= 0)
        return;
    size_t size = dtype_size(type), total = (size_t)n * size;
    dtype_set(type, dst, 0, value);
    for (size_t done = size; done < total;) {
        size_t more = done < total - done ? done : total - done;
        memcpy((char *)dst + done, dst, more);
        done += more;
    }
}

enum { CHUNK = 512 };

/* The type that a chunk is computed in. */
static enum dtype wide_type(enum dtype first, enum dtype second)
{
    return first == DTYPE_F64 || second == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
}

static char *element(enum dtype type, const void *array, int64_t i)
{
    return (char *)(uintptr_t)array + (size_t)i * dtype_size(type);
}

/* One array of an optimizer, and the chunk of it that is widened. */
struct operand {
    enum dtype type;
    void *array; /* may be NULL */
    double wide[CHUNK]; /* room for either wide type */
};

static void *operand_open(struct operand *o, int64_t first, int64_t count, enum dtype wide)
{
    if (o->array == NULL)
        return NULL;
    if (o->type == wide)
        return element(o->type, o->array, first);
    kernels_cast(count, o->type, element(o->type, o->array, first), wide, o->wide);
    return o->wide;
}

static void operand_close(struct operand *o, int64_t first, int64_t count, enum dtype wide)
{
    if (o->array != NULL && o->type != wide)
        kernels_cast(count, wide, o->wide, o->type, element(o->type, o->array, first));
}

void kernels_accumulate(int64_t n, enum dtype src_type, const void *src, enum dtype dst_type, void *dst)
{
    enum dtype wide = wide_type(src_type, dst_type);
    const struct kernel_set *k = kernels_cpu(wide);
    if (src_type == wide && dst_type == wide) {
        k->add(n, src, dst);
        return;
    }
    struct operand from = {.type = src_type, .array = (void *)(uintptr_t)src};
    struct operand to = {.type = dst_type, .array = dst};
    for (int64_t first = 0; first < n; first += CHUNK) {
        int64_t count = n - first < CHUNK ? n - first : CHUNK;
        const void *x = operand_open(&from, first, count, wide);
        k->add(count, x, operand_open(&to, first, count, wide));
        operand_close(&to, first, count, wide);
    }
}

/* Chunks are needed only where some array is not of the wide type. */
static int64_t chunk_size(struct optim_types t, enum dtype wide, int64_t n)
{
    return t.p == wide && t.g == wide && t.s == wide ? n : CHUNK;
}

void optim_sgd(struct optim_types types, int64_t n, double lr, double momentum, double dampening,
               double weight_decay, bool nesterov, int64_t step, void *p, const void *g, void *m)
{
    enum dtype wide = wide_type(types.p, types.p);
    int64_t size = chunk_size(types, wide, n);
    struct operand param = {.type = types.p, .array = p}, state = {.type = types.s, .array = momentum != 0 ? m : NULL};
    struct operand grad = {.type = types.g, .array = (void *)(uintptr_t)g};
    for (int64_t first = 0; first < n; first += size) {
        int64_t count = n - first < size ? n - first : size;
        void *wide_p = operand_open(&param, first, count, wide), *wide_m = operand_open(&state, first, count, wide);
        kernels_cpu(wide)->sgd(count, lr, momentum, dampening, weight_decay, nesterov, step, wide_p,
                               operand_open(&grad, first, count, wide), wide_m);
        operand_close(&param, first, count, wide);
        operand_close(&state, first, count, wide);
    }
}

void optim_adamw(struct optim_types types, int64_t n, double lr, double beta1, double beta2, double eps,
                 double weight_decay, int64_t step, void *p, const void *g, void *exp_avg, void *exp_avg_sq)
{
    enum dtype wide = wide_type(types.p, types.p);
    int64_t size = chunk_size(types, wide, n);
    struct operand param = {.type = types.p, .array = p}, grad = {.type = types.g, .array = (void *)(uintptr_t)g};
    struct operand first_moment = {.type = types.s, .array = exp_avg};
    struct operand second_moment = {.type = types.s, .array = exp_avg_sq};
    for (int64_t first = 0; first < n; first += size) {
        int64_t count = n - first < size ? n - first : size;
        void *wide_p = operand_open(&param, first, count, wide), *wide_g = operand_open(&grad, first, count, wide);
        void *wide_m = operand_open(&first_moment, first, count, wide);
        void *wide_v = operand_open(&second_moment, first, count, wide);
        kernels_cpu(wide)->adamw(count, lr, beta1, beta2, eps, weight_decay, step, wide_p, wide_g, wide_m, wide_v);
        operand_close(&param, first, count, wide);
        operand_close(&first_moment, first, count, wide);
        operand_close(&second_moment, first, count, wide);
    }
}
