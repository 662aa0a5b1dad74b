/*
 * The kernels: the arithmetic of a training step, as one set of functions for each storage type.
 *
 * What: struct kernel_set has a function pointer for each row of kernels/table.h, where every argument,
 *       formula and source is given. kernels_cpu() returns the set for a storage type.
 * How:  arrays are dense, row-major, of the set's storage type; statistics (mean, rstd, lse) are of its
 *       accumulation type. Gradients of parameters accumulate (+=), gradients of activations are
 *       overwritten. Array arguments do not overlap unless the row says so. Sizes may be 0. Kernels
 *       check nothing: an index outside [0, V), a matrix dimension of 2^31 or more, an odd D in RoPE, an
 *       Hq that Hkv does not divide are the caller's errors.
 *       In float32 and float64 kernels compute in their storage type; in bfloat16 and binary16 they
 *       compute in float32 and round each result once, to nearest even.
 * Why:  the engine and the models speak of dtypes, not of C types, and a second set (kernels/cuda/, see
 *       kernels/README.md) is one more function: const struct kernel_set *kernels_cuda(enum dtype).
 *
 * Results do not depend on the vector unit: the AVX2 and the portable build of a set give the same bits,
 * the matrix products of the BLAS excepted.
 */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/dtype.h"
#include "kernels/table.h"

#define KERNEL_MEMBER(returns, name, formula, flop, budget, source) returns (*name)(KERNEL_PARAMETERS(name));
struct kernel_set {
    enum dtype storage;      /* type of the arrays */
    enum dtype accumulation; /* type of the statistics */
    KERNEL_TABLE(KERNEL_MEMBER)
};
#undef KERNEL_MEMBER

/* The CPU's kernels for arrays of that type (F32, F64, BF16, F16); NULL for any other. */
const struct kernel_set *kernels_cpu(enum dtype storage);

/* Type of mean, rstd and lse: F64 for F64, F32 for F32, BF16 and F16. */
enum dtype kernels_acc_dtype(enum dtype storage);

/* Sets how many threads the BLAS underneath may use (at least 1); call it once in each process. */
void kernels_set_threads(int count);

/* ---- between types (rounded once, to nearest even; computed in float, in double if either is F64) ---- */

/* dst[i] = src[i]; the arrays do not overlap. */
void kernels_cast(int64_t n, enum dtype src_type, const void *src, enum dtype dst_type, void *dst);

/* dst[i] += src[i]; floating-point types only. */
void kernels_accumulate(int64_t n, enum dtype src_type, const void *src, enum dtype dst_type, void *dst);

/* dst[i] = value. */
void kernels_fill(int64_t n, enum dtype type, void *dst, double value);

/* ---- optimizers whose parameters, gradients and states have types of their own ---- */

struct optim_types {
    enum dtype p; /* parameters */
    enum dtype g; /* gradients */
    enum dtype s; /* states: momentum, exp_avg, exp_avg_sq */
};

/* The rows sgd and adamw; computed in double if p is F64, else in float; each array is rounded once. */
void optim_sgd(struct optim_types types, int64_t n, double lr, double momentum, double dampening,
               double weight_decay, bool nesterov, int64_t step, void *p, const void *g, void *m);
void optim_adamw(struct optim_types types, int64_t n, double lr, double beta1, double beta2, double eps,
                 double weight_decay, int64_t step, void *p, const void *g, void *exp_avg, void *exp_avg_sq);

/* ---- scratch: float32 copies of 16-bit arrays and attention's tiles, one pool a thread ---- */

/* Grows the calling thread's pool to at least that size, so that kernels need no allocation later.
 * Returns 0, or ENOMEM. */
int kernels_scratch_reserve(size_t bytes);

/* The pool's size. After one step of a program it is what a fresh process should reserve for that program. */
size_t kernels_scratch_bytes(void);

/* Gives the calling thread's pool back. */
void kernels_scratch_free(void);

/* 0, or ENOMEM if a kernel of this thread lacked scratch since the last call of this function; that
 * kernel then left its results untouched. Ask it once a step. */
int kernels_take_error(void);

#endif
