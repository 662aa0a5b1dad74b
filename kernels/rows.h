/*
 * The table of kernels at run time: each row described as data, with one call that fits every kernel.
 *
 * Why: a test, a benchmark or a document goes through kernel_rows and needs no line for a new kernel.
 */
#ifndef KERNELS_ROWS_H
#define KERNELS_ROWS_H

#include "kernels/kernels.h"

enum kernel_kind {
    KERNEL_DIM, KERNEL_SCALAR, KERNEL_FLAG, KERNEL_IN, KERNEL_OUT, KERNEL_UPD, KERNEL_STAT_IN, KERNEL_STAT_OUT,
    KERNEL_TOKENS, KERNEL_WEIGHTS, KERNEL_TARGETS, KERNEL_RESULT
};
enum { KERNEL_MAX_ARGUMENTS = 16 };

/* A value for every DIM, SCALAR and FLAG of the table, by the same name. */
struct kernel_setting {
    int64_t M, N, K, rows, C, V, B, T, H, Hq, Hkv, D, n, step;
    double alpha, beta, eps, theta, scale, lr, momentum, dampening, weight_decay, beta1, beta2;
    bool trans_a, trans_b, nesterov;
};

struct kernel_argument {
    enum kernel_kind kind;
    const char *name;
    const char *extent; /* number of elements, as text */
};

/* What a row amounts to under one setting. */
struct kernel_work {
    int64_t extent[KERNEL_MAX_ARGUMENTS];  /* elements of each argument; 0 for sizes, scalars, flags */
    int64_t touched[KERNEL_MAX_ARGUMENTS]; /* elements of it that are moved */
    double flop;
    double budget; /* of float32, in u times the largest magnitude of an output */
};

struct kernel_row {
    const char *name, *returns, *formula, *flop, *budget, *source;
    int argument_count;
    const struct kernel_argument *arguments;
    void (*work)(const struct kernel_setting *setting, struct kernel_work *work);
    /* Calls the kernel of that set; arrays[i] belongs to argument i, and is not looked at where that is a
     * size, scalar or flag. Returns what the kernel returns, 0 for void. */
    double (*call)(const struct kernel_set *set, const struct kernel_setting *setting, void *const *arrays);
};

extern const struct kernel_row kernel_rows[];
extern const int kernel_row_count;

/* How often an argument of that kind is read, and how often written: 0 or 1 each. */
int kernel_kind_reads(enum kernel_kind kind);
int kernel_kind_writes(enum kernel_kind kind);

/* The element type of an argument in the kernels for a storage type; only for kinds that are arrays. */
enum dtype kernel_kind_dtype(enum kernel_kind kind, enum dtype storage);

/* sum over arrays of touched * size * (reads + writes) [bytes] */
double kernel_row_bytes(const struct kernel_row *row, const struct kernel_setting *setting, enum dtype storage);

#endif
