/*
 * The arrays of one call of any kernel: allocated from its row, filled at random, fenced, compared.
 *
 * How:  each array lies between two fences of known bytes, which a kernel must leave as they are. What a
 *       kernel overwrites starts as NaN, so that a value it forgot is seen.
 */
#ifndef KERNELS_TESTS_ARRAYS_H
#define KERNELS_TESTS_ARRAYS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/rows.h"
#include "kernels/tests/settings.h"

#define FOR_EACH_CASE(row, setting)                                                           \
    for (const struct kernel_row *row = kernel_rows; row < kernel_rows + kernel_row_count; row++) \
        for (const struct kernel_setting *setting = settings; setting < settings + SETTING_COUNT; setting++)

enum { FENCE_BYTES = 64, FENCE = 0xa5 };

struct arrays {
    const struct kernel_row *row;
    const struct kernel_setting *setting;
    struct kernel_work work;
    enum dtype storage;
    void *at[KERNEL_MAX_ARGUMENTS]; /* NULL where the argument is no array */
    double returned;
};

static inline bool is_array(enum kernel_kind kind)
{
    return kernel_kind_reads(kind) || kernel_kind_writes(kind);
}

static inline enum dtype type_at(const struct arrays *a, int i)
{
    return kernel_kind_dtype(a->row->arguments[i].kind, a->storage);
}

static inline size_t bytes_at(const struct arrays *a, int i)
{
    return (size_t)a->work.extent[i] * dtype_size(type_at(a, i));
}

/* A 64-bit linear congruential generator (Knuth, MMIX); the upper half as a number in (0, 1). */
static inline double random_unit(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 32) + 0.5) * 0x1p-32;
}

/* Standard normal (Box, Muller 1958). */
static inline double random_normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(random_unit(state)));
    return radius * cos(6.283185307179586 * random_unit(state));
}

/* A reciprocal deviation, a log-sum, a second moment and a loss weight are positive. */
static inline bool must_be_positive(const struct kernel_argument *argument)
{
    return argument->kind == KERNEL_STAT_IN || argument->kind == KERNEL_WEIGHTS ||
           strcmp(argument->name, "exp_avg_sq") == 0;
}

static inline double random_element(const struct arrays *a, int i, int64_t e, bool positive, uint64_t *state)
{
    const struct kernel_argument *argument = &a->row->arguments[i];
    double z = random_normal(state);
    if (argument->kind == KERNEL_TOKENS)
        return (double)(e * 2 % a->setting->V);
    if (kernel_kind_writes(argument->kind) && !kernel_kind_reads(argument->kind))
        return NAN;
    return positive || must_be_positive(argument) ? fabs(z) + 0.5 : z;
}

static inline struct arrays arrays_new(const struct kernel_row *row, const struct kernel_setting *setting,
                                       enum dtype storage, bool positive, uint64_t seed)
{
    struct arrays a = {.row = row, .setting = setting, .storage = storage};
    row->work(setting, &a.work);
    for (int i = 0; i < row->argument_count; i++) {
        if (!is_array(row->arguments[i].kind))
            continue;
        char *block = malloc(bytes_at(&a, i) + 2 * FENCE_BYTES);
        assert_non_null(block);
        memset(block, FENCE, bytes_at(&a, i) + 2 * FENCE_BYTES);
        a.at[i] = block + FENCE_BYTES;
        for (int64_t e = 0; e < a.work.extent[i]; e++)
            dtype_set(type_at(&a, i), a.at[i], e, random_element(&a, i, e, positive, &seed));
    }
    return a;
}

static inline void arrays_free(struct arrays *a)
{
    for (int i = 0; i < a->row->argument_count; i++)
        if (a->at[i] != NULL)
            free((char *)a->at[i] - FENCE_BYTES);
}

/* to = from, converted; both are of the same row and setting. */
static inline void arrays_copy(struct arrays *to, const struct arrays *from)
{
    for (int i = 0; i < to->row->argument_count; i++)
        if (to->at[i] != NULL)
            kernels_cast(to->work.extent[i], type_at(from, i), from->at[i], type_at(to, i), to->at[i]);
    to->returned = from->returned;
}

static inline void arrays_check_fences(const struct arrays *a)
{
    for (int i = 0; i < a->row->argument_count; i++)
        for (size_t b = 0; a->at[i] != NULL && b < FENCE_BYTES; b++) {
            assert_int_equal(((unsigned char *)a->at[i] - FENCE_BYTES)[b], FENCE);
            assert_int_equal(((unsigned char *)a->at[i] + bytes_at(a, i))[b], FENCE);
        }
}

static inline void arrays_call(struct arrays *a, const struct kernel_set *set)
{
    a->returned = a->row->call(set, a->setting, a->at);
    assert_int_equal(kernels_take_error(), 0);
    arrays_check_fences(a);
}

/* True if the two hold the same bits in everything that the kernel writes or returns. */
static inline bool arrays_same_results(const struct arrays *a, const struct arrays *b)
{
    for (int i = 0; i < a->row->argument_count; i++)
        if (kernel_kind_writes(a->row->arguments[i].kind) && memcmp(a->at[i], b->at[i], bytes_at(a, i)) != 0)
            return false;
    return memcmp(&a->returned, &b->returned, sizeof a->returned) == 0;
}

struct distance {
    double error;     /* largest |a - b|; NaN if one is NaN where the other is not */
    double magnitude; /* largest |b| */
};

static inline struct distance distance_at(const struct arrays *a, const struct arrays *b, int i)
{
    struct distance d = {0, 0};
    for (int64_t e = 0; e < a->work.extent[i]; e++) {
        double x = dtype_get(type_at(a, i), a->at[i], e), y = dtype_get(type_at(b, i), b->at[i], e);
        double error = x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y);
        if (!(error <= d.error))
            d.error = error;
        if (fabs(y) > d.magnitude)
            d.magnitude = fabs(y);
        if (isnan(error))
            return d;
    }
    return d;
}

/* Fails with the figure unless |a - b| <= (roundings u_storage + budget u) * the array's magnitude for each result. */
static inline double check_results(const struct arrays *a, const struct arrays *b, double roundings, double budget, double u)
{
    double worst = 0, own = dtype_unit_roundoff(a->storage);
    for (int i = 0; i < a->row->argument_count; i++) {
        if (!kernel_kind_writes(a->row->arguments[i].kind))
            continue;
        struct distance d = distance_at(a, b, i);
        double rounding = own > u && type_at(a, i) == a->storage ? own : 0;
        double bound = (roundings * rounding + budget * u) * d.magnitude;
        if (!(d.error <= bound))
            fail_msg("%s, %s, setting %d, %s: error %g, expected at most %g = %g u * %g", a->row->name,
                     dtype_name(a->storage), (int)(a->setting - settings), a->row->arguments[i].name, d.error,
                     bound, bound / d.magnitude / u, d.magnitude);
        if (d.magnitude > 0 && d.error / d.magnitude / u > worst)
            worst = d.error / d.magnitude / u;
    }
    double error = fabs(a->returned - b->returned);
    if (!(error <= budget * u * fabs(b->returned)))
        fail_msg("%s, %s: returned %.17g, expected %.17g", a->row->name, dtype_name(a->storage), a->returned,
                 b->returned);
    return worst;
}

#endif
