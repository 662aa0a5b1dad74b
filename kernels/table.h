/*
 * The table of kernels: one row each, and everything that is said about a kernel is said in its row.
 *
 * What: KERNEL_TABLE(X) calls X(returns, name, formula, flop, budget, source) once a row, and
 *       KERNEL_ARGS_name(F, A) lists that row's arguments: F(kind, name, extent, touched) for the first,
 *       A(...) for each other one, in the order of the prototype.
 * How:  the row makes the prototype (kernels.h), the 16-bit versions (cpu/half.c), the runtime description
 *       with its generic call (table.c), and from that the tests, the benchmark and the documentation.
 * Why:  declared work that is written in several places drifts from the code.
 *
 * Kinds of argument:
 *   DIM      int64_t          a size
 *   SCALAR   double           rounded once to the arithmetic's type where it meets an array
 *   FLAG     bool
 *   IN       const void *     storage type, read
 *   OUT      void *           storage type, overwritten, never read
 *   UPD      void *           storage type, read and written
 *   STAT_IN, STAT_OUT         accumulation type (kernels_acc_dtype), read / overwritten
 *   TOKENS   const int32_t *  indices, each in [0, V)
 *   WEIGHTS  const double *   a weight for each row
 *   TARGETS  const float *    real-valued targets
 *   RESULT   double *         one number, overwritten
 * extent is the number of elements of the array, touched how many of them are moved (they differ for
 * tables only); 0 extent for a DIM, SCALAR or FLAG.
 *
 * bytes  = sum over arrays of touched * size * (reads + writes): the traffic that no cache can save.
 * flop   = additions, multiplications, divisions, comparisons and calls of exp, tanh, sqrt, log, cos,
 *          sin and pow of the plain formula, one each; negations, magnitudes and factors of 1 are free.
 * budget = bound on |float32 - float64| for each output array, in units of u = 2^-24 times the array's
 *          largest magnitude, for standard normal data. 16-bit types: u_16 + budget u, of the same unit.
 *          Measured, then doubled or more: kernels/README.md has the figures.
 */
#ifndef KERNELS_TABLE_H
#define KERNELS_TABLE_H

#define KERNEL_TABLE(X)                                                                                       \
    X(void, matmul, "C = alpha op(A) op(B) + beta C; A, B, C row-major; beta = 0 does not read C",            \
      2.0 * M * N * K, 8 + 0.25 * K, "BLAS level 3, GEMM")                                                     \
    X(void, bias_add_forward, "y[r,c] += bias[c]", 1.0 * rows * C, 2, "affine layer")                         \
    X(void, bias_backward, "dbias[c] += sum_r dy[r,c]", 1.0 * rows * C, 4 + 0.25 * rows, "affine layer")       \
    X(void, add, "y += x", 1.0 * n, 2, "residual sum")                                                        \
    X(void, embedding_forward, "out[r,:] = table[tokens[r],:]", 0.0, 0, "table lookup")                       \
    X(void, embedding_backward, "dtable[tokens[r],:] += dout[r,:]", 1.0 * rows * C, 4 + 0.25 * rows,          \
      "transpose of the lookup")                                                                              \
    X(void, layernorm_forward,                                                                                \
      "mean = sum_c x / C; rstd = 1/sqrt(sum_c (x - mean)^2 / C + eps); y = (x - mean) rstd gamma + beta",    \
      rows *(8.0 * C + 5), 16, "Ba, Kiros, Hinton 2016, arXiv:1607.06450, eq. 3-4")                           \
    X(void, layernorm_backward,                                                                               \
      "h = (x - mean) rstd, g = dy gamma; dx = rstd (g - sum_c g / C - h sum_c (g h) / C); "                  \
      "dgamma += sum_r dy h; dbeta += sum_r dy",                                                              \
      rows *(13.0 * C + 2), 16 + 0.25 * rows, "derivative of layernorm_forward")                               \
    X(void, rmsnorm_forward, "rstd = 1/sqrt(sum_c x^2 / C + eps); y = x rstd gamma", rows *(4.0 * C + 4), 12, \
      "Zhang, Sennrich 2019, arXiv:1910.07467, eq. 4")                                                        \
    X(void, rmsnorm_backward,                                                                                 \
      "h = x rstd, g = dy gamma; dx = rstd (g - h sum_c (g h) / C); dgamma += sum_r dy h",                    \
      rows *(9.0 * C + 1), 16 + 0.25 * rows, "derivative of rmsnorm_forward")                                  \
    X(void, rope_forward,                                                                                     \
      "a = t theta^(-2i/D); (x[i], x[i+D/2]) = (x[i] cos a - x[i+D/2] sin a, x[i+D/2] cos a + x[i] sin a)",   \
      3.0 * B * T * H * D + 1.5 * T * D + 0.5 * D, 8, "Su et al. 2021, arXiv:2104.09864, eq. 34; pairs (i, i+D/2)") \
    X(void, rope_backward, "the rotation by -a", 3.0 * B * T * H * D + 1.5 * T * D + 0.5 * D, 8,                    \
      "transpose of rope_forward")                                                                            \
    X(void, attention_forward,                                                                                \
      "s[i,j] = scale q[i].k[j], j <= i; lse[i] = log sum_j exp s[i,j]; out[i] = sum_j exp(s[i,j] - lse[i]) " \
      "v[j]; query head h reads key head h / (Hq / Hkv)",                                                     \
      B *Hq *(0.5 * T * (T + 1) * (4.0 * D + 5) + T * (D + 2.0)), 12 + 0.5 * D,                               \
      "Vaswani et al. 2017, arXiv:1706.03762, eq. 1; groups: Ainslie et al. 2023, arXiv:2305.13245")          \
    X(void, attention_backward,                                                                               \
      "p = exp(s - lse); dv[j] = sum_i p dout[i]; ds = p (dout[i].v[j] - dout[i].out[i]); "                   \
      "dq[i] = scale sum_j ds k[j]; dk[j] = scale sum_i ds q[i]",                                             \
      B *Hq *(0.5 * T * (T + 1) * (10.0 * D + 5) + 3.0 * T * D) + 1.0 * B * T * Hkv * D, 40 + 0.5 * D,        \
      "Dao et al. 2022, arXiv:2205.14135, appendix B.2")                                                      \
    X(void, gelu_forward, "y = x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2", 9.0 * n, 8,                  \
      "Hendrycks, Gimpel 2016, arXiv:1606.08415, section 2")                                                  \
    X(void, gelu_backward,                                                                                    \
      "t = tanh(sqrt(2/pi) (x + 0.044715 x^3)); dx = dy ((1 + t) + x (1 - t^2) sqrt(2/pi) "                   \
      "(1 + 0.134145 x^2)) / 2",                                                                              \
      17.0 * n, 12, "derivative of gelu_forward")                                                             \
    X(void, swiglu_forward, "y = a b / (1 + exp(-a))", 4.0 * n, 8, "Shazeer 2020, arXiv:2002.05202, eq. 6")   \
    X(void, swiglu_backward,                                                                                  \
      "s = 1 / (1 + exp(-a)); da = dy b s (1 + a (1 - s)); db = dy a s", 11.0 * n, 12,                        \
      "derivative of swiglu_forward")                                                                         \
    X(void, relu_forward, "y = max(x, 0)", 1.0 * n, 0, "Nair, Hinton 2010, ICML")                             \
    X(void, relu_backward, "dx = dy if x > 0, else 0", 1.0 * n, 0, "derivative of relu_forward; 0 at 0")      \
    X(void, softmax_xent_forward,                                                                             \
      "lse[r] = log sum_v exp logits[r,v]; loss = sum_r weights[r] (lse[r] - logits[r,targets[r]])",          \
      rows *(4.0 * V + 5), 8, "log-sum-exp: Blanchard, Higham, Higham 2021, eq. 1.3-1.4")                    \
    X(void, softmax_xent_backward,                                                                            \
      "dlogits[r,v] = scale weights[r] (exp(logits[r,v] - lse[r]) - [v = targets[r]])",                       \
      rows *(3.0 * V + 2), 24, "derivative of softmax_xent_forward")                                          \
    X(void, squared_error_forward, "loss = sum_r weights[r] sum_c (y[r,c] - t[r,c])^2", rows *(3.0 * C + 2),  \
      8, "least squares")                                                                                    \
    X(void, squared_error_backward, "dy[r,c] = 2 scale weights[r] (y[r,c] - t[r,c])", rows *(2.0 * C + 2), 4, \
      "derivative of squared_error_forward")                                                                  \
    X(void, sgd,                                                                                              \
      "g' = g + weight_decay p; m = g' if step = 1, else momentum m + (1 - dampening) g'; "                   \
      "p -= lr (nesterov ? g' + momentum m : m)",                                                             \
      9.0 * n + 1, 8, "Sutskever et al. 2013, ICML; operation order of torch.optim.SGD")                          \
    X(void, adamw,                                                                                            \
      "p *= 1 - lr weight_decay; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; "                \
      "p -= lr / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + eps)",                                \
      14.0 * n + 10, 16, "Loshchilov, Hutter 2017, arXiv:1711.05101, algorithm 2")                             \
    X(void, scale, "x *= alpha", 1.0 * n, 2, "BLAS level 1, SCAL")                                            \
    X(double, norm_l1, "sum |x|", 1.0 * n, 0, "BLAS level 1, ASUM")                                           \
    X(double, norm_l2_squared, "sum x^2", 2.0 * n, 0, "square of BLAS level 1, NRM2")                         \
    X(double, norm_linf, "max |x|; NaN if any x is NaN", 1.0 * n, 0, "maximum norm")                          \
    X(bool, all_finite, "true if no x is infinite or NaN", 0.0, 0, "IEEE 754-2019, 5.7.2 isFinite")

/* alpha, beta: see the formula. op(A) is (M, K), op(B) is (K, N); trans_a says that A is stored (K, M). */
#define KERNEL_ARGS_matmul(F, A)                                                                        \
    F(FLAG, trans_a, 0, 0) A(FLAG, trans_b, 0, 0) A(DIM, M, 0, 0) A(DIM, N, 0, 0) A(DIM, K, 0, 0)       \
    A(SCALAR, alpha, 0, 0) A(IN, a, M * K, M * K) A(IN, b, K * N, K * N) A(SCALAR, beta, 0, 0)          \
    A(UPD, c, M * N, M * N)

/* bias (C), y and dy (rows, C), dbias (C) accumulates. */
#define KERNEL_ARGS_bias_add_forward(F, A) \
    F(DIM, rows, 0, 0) A(DIM, C, 0, 0) A(IN, bias, C, C) A(UPD, y, rows * C, rows * C)
#define KERNEL_ARGS_bias_backward(F, A) \
    F(DIM, rows, 0, 0) A(DIM, C, 0, 0) A(IN, dy, rows * C, rows * C) A(UPD, dbias, C, C)

#define KERNEL_ARGS_add(F, A) F(DIM, n, 0, 0) A(IN, x, n, n) A(UPD, y, n, n)

/* tokens (rows), table and dtable (V, C), out and dout (rows, C); dtable accumulates. */
#define KERNEL_ARGS_embedding_forward(F, A)                                                             \
    F(DIM, rows, 0, 0) A(DIM, C, 0, 0) A(DIM, V, 0, 0) A(TOKENS, tokens, rows, rows)                    \
    A(IN, table, V * C, rows * C) A(OUT, out, rows * C, rows * C)
#define KERNEL_ARGS_embedding_backward(F, A)                                                            \
    F(DIM, rows, 0, 0) A(DIM, C, 0, 0) A(DIM, V, 0, 0) A(TOKENS, tokens, rows, rows)                    \
    A(IN, dout, rows * C, rows * C) A(UPD, dtable, V * C, rows * C)

/* x, y, dy, dx (rows, C); gamma, beta, dgamma, dbeta (C); mean, rstd (rows). beta may be NULL (no shift),
 * dgamma and dbeta may be NULL (frozen). */
#define KERNEL_ARGS_layernorm_forward(F, A)                                                             \
    F(DIM, rows, 0, 0) A(DIM, C, 0, 0) A(SCALAR, eps, 0, 0) A(IN, x, rows * C, rows * C)                \
    A(IN, gamma, C, C) A(IN, beta, C, C) A(OUT, y, rows * C, rows * C) A(STAT_OUT, mean, rows, rows)    \
    A(STAT_OUT, rstd, rows, rows)
#define KERNEL_ARGS_layernorm_backward(F, A)                                                            \
    F(DIM, rows, 0, 0) A(DIM, C, 0, 0) A(IN, x, rows * C, rows * C) A(IN, gamma, C, C)                  \
    A(STAT_IN, mean, rows, rows) A(STAT_IN, rstd, rows, rows) A(IN, dy, rows * C, rows * C)             \
    A(OUT, dx, rows * C, rows * C) A(UPD, dgamma, C, C) A(UPD, dbeta, C, C)

/* As LayerNorm, without mean and shift. dgamma may be NULL. */
#define KERNEL_ARGS_rmsnorm_forward(F, A)                                                               \
    F(DIM, rows, 0, 0) A(DIM, C, 0, 0) A(SCALAR, eps, 0, 0) A(IN, x, rows * C, rows * C)                \
    A(IN, gamma, C, C) A(OUT, y, rows * C, rows * C) A(STAT_OUT, rstd, rows, rows)
#define KERNEL_ARGS_rmsnorm_backward(F, A)                                                              \
    F(DIM, rows, 0, 0) A(DIM, C, 0, 0) A(IN, x, rows * C, rows * C) A(IN, gamma, C, C)                  \
    A(STAT_IN, rstd, rows, rows) A(IN, dy, rows * C, rows * C) A(OUT, dx, rows * C, rows * C)           \
    A(UPD, dgamma, C, C)

/* x (B, T, H, D) in place, D even; dx likewise. Positions are 0 .. T-1. */
#define KERNEL_ARGS_rope_forward(F, A)                                                                  \
    F(DIM, B, 0, 0) A(DIM, T, 0, 0) A(DIM, H, 0, 0) A(DIM, D, 0, 0) A(SCALAR, theta, 0, 0)              \
    A(UPD, x, B * T * H * D, B * T * H * D)
#define KERNEL_ARGS_rope_backward(F, A)                                                                 \
    F(DIM, B, 0, 0) A(DIM, T, 0, 0) A(DIM, H, 0, 0) A(DIM, D, 0, 0) A(SCALAR, theta, 0, 0)              \
    A(UPD, dx, B * T * H * D, B * T * H * D)

/* q, out, dout, dq (B, T, Hq, D); k, v, dk, dv (B, T, Hkv, D); lse (B, Hq, T). Hkv divides Hq. */
#define KERNEL_ARGS_attention_forward(F, A)                                                             \
    F(DIM, B, 0, 0) A(DIM, T, 0, 0) A(DIM, Hq, 0, 0) A(DIM, Hkv, 0, 0) A(DIM, D, 0, 0)                  \
    A(SCALAR, scale, 0, 0) A(IN, q, B * T * Hq * D, B * T * Hq * D)                                     \
    A(IN, k, B * T * Hkv * D, B * T * Hkv * D) A(IN, v, B * T * Hkv * D, B * T * Hkv * D)               \
    A(OUT, out, B * T * Hq * D, B * T * Hq * D) A(STAT_OUT, lse, B * Hq * T, B * Hq * T)
#define KERNEL_ARGS_attention_backward(F, A)                                                            \
    F(DIM, B, 0, 0) A(DIM, T, 0, 0) A(DIM, Hq, 0, 0) A(DIM, Hkv, 0, 0) A(DIM, D, 0, 0)                  \
    A(SCALAR, scale, 0, 0) A(IN, q, B * T * Hq * D, B * T * Hq * D)                                     \
    A(IN, k, B * T * Hkv * D, B * T * Hkv * D) A(IN, v, B * T * Hkv * D, B * T * Hkv * D)               \
    A(IN, out, B * T * Hq * D, B * T * Hq * D) A(STAT_IN, lse, B * Hq * T, B * Hq * T)                  \
    A(IN, dout, B * T * Hq * D, B * T * Hq * D) A(OUT, dq, B * T * Hq * D, B * T * Hq * D)              \
    A(OUT, dk, B * T * Hkv * D, B * T * Hkv * D) A(OUT, dv, B * T * Hkv * D, B * T * Hkv * D)

/* Elementwise; y may be x, dx may be dy, da may be dy. */
#define KERNEL_ARGS_gelu_forward(F, A) F(DIM, n, 0, 0) A(IN, x, n, n) A(OUT, y, n, n)
#define KERNEL_ARGS_gelu_backward(F, A) F(DIM, n, 0, 0) A(IN, x, n, n) A(IN, dy, n, n) A(OUT, dx, n, n)
#define KERNEL_ARGS_swiglu_forward(F, A) F(DIM, n, 0, 0) A(IN, a, n, n) A(IN, b, n, n) A(OUT, y, n, n)
#define KERNEL_ARGS_swiglu_backward(F, A)                                                               \
    F(DIM, n, 0, 0) A(IN, a, n, n) A(IN, b, n, n) A(IN, dy, n, n) A(OUT, da, n, n) A(OUT, db, n, n)
#define KERNEL_ARGS_relu_forward(F, A) F(DIM, n, 0, 0) A(IN, x, n, n) A(OUT, y, n, n)
#define KERNEL_ARGS_relu_backward(F, A) F(DIM, n, 0, 0) A(IN, x, n, n) A(IN, dy, n, n) A(OUT, dx, n, n)

/* logits and dlogits (rows, V), targets (rows), weights (rows), lse (rows). */
#define KERNEL_ARGS_softmax_xent_forward(F, A)                                                          \
    F(DIM, rows, 0, 0) A(DIM, V, 0, 0) A(IN, logits, rows * V, rows * V) A(TOKENS, targets, rows, rows) \
    A(WEIGHTS, weights, rows, rows) A(STAT_OUT, lse, rows, rows) A(RESULT, loss, 1, 1)
#define KERNEL_ARGS_softmax_xent_backward(F, A)                                                         \
    F(DIM, rows, 0, 0) A(DIM, V, 0, 0) A(IN, logits, rows * V, rows * V) A(TOKENS, targets, rows, rows) \
    A(WEIGHTS, weights, rows, rows) A(STAT_IN, lse, rows, rows) A(SCALAR, scale, 0, 0)                  \
    A(OUT, dlogits, rows * V, rows * V)

/* y, dy (rows, C); targets (rows, C); weights (rows). */
#define KERNEL_ARGS_squared_error_forward(F, A)                                                         \
    F(DIM, rows, 0, 0) A(DIM, C, 0, 0) A(IN, y, rows * C, rows * C)                                     \
    A(TARGETS, targets, rows * C, rows * C) A(WEIGHTS, weights, rows, rows) A(RESULT, loss, 1, 1)
#define KERNEL_ARGS_squared_error_backward(F, A)                                                        \
    F(DIM, rows, 0, 0) A(DIM, C, 0, 0) A(IN, y, rows * C, rows * C)                                     \
    A(TARGETS, targets, rows * C, rows * C) A(WEIGHTS, weights, rows, rows) A(SCALAR, scale, 0, 0)      \
    A(OUT, dy, rows * C, rows * C)

/* p, g, m, v (n). step counts from 1. m may be NULL if momentum is 0; with momentum 0 it is not touched. */
#define KERNEL_ARGS_sgd(F, A)                                                                           \
    F(DIM, n, 0, 0) A(SCALAR, lr, 0, 0) A(SCALAR, momentum, 0, 0) A(SCALAR, dampening, 0, 0)            \
    A(SCALAR, weight_decay, 0, 0) A(FLAG, nesterov, 0, 0) A(DIM, step, 0, 0) A(UPD, p, n, n)            \
    A(IN, g, n, n) A(UPD, m, n, n)
#define KERNEL_ARGS_adamw(F, A)                                                                         \
    F(DIM, n, 0, 0) A(SCALAR, lr, 0, 0) A(SCALAR, beta1, 0, 0) A(SCALAR, beta2, 0, 0)                   \
    A(SCALAR, eps, 0, 0) A(SCALAR, weight_decay, 0, 0) A(DIM, step, 0, 0) A(UPD, p, n, n) A(IN, g, n, n) \
    A(UPD, exp_avg, n, n) A(UPD, exp_avg_sq, n, n)

#define KERNEL_ARGS_scale(F, A) F(DIM, n, 0, 0) A(SCALAR, alpha, 0, 0) A(UPD, x, n, n)

/* Sums are formed in double whatever the storage type; infinities and NaN propagate; 0 for n = 0. */
#define KERNEL_ARGS_norm_l1(F, A) F(DIM, n, 0, 0) A(IN, x, n, n)
#define KERNEL_ARGS_norm_l2_squared(F, A) F(DIM, n, 0, 0) A(IN, x, n, n)
#define KERNEL_ARGS_norm_linf(F, A) F(DIM, n, 0, 0) A(IN, x, n, n)
#define KERNEL_ARGS_all_finite(F, A) F(DIM, n, 0, 0) A(IN, x, n, n)

/* The C types of the kinds. */
#define KERNEL_TYPE_DIM int64_t
#define KERNEL_TYPE_SCALAR double
#define KERNEL_TYPE_FLAG bool
#define KERNEL_TYPE_IN const void *
#define KERNEL_TYPE_OUT void *
#define KERNEL_TYPE_UPD void *
#define KERNEL_TYPE_STAT_IN const void *
#define KERNEL_TYPE_STAT_OUT void *
#define KERNEL_TYPE_TOKENS const int32_t *
#define KERNEL_TYPE_WEIGHTS const double *
#define KERNEL_TYPE_TARGETS const float *
#define KERNEL_TYPE_RESULT double *

#define KERNEL_PARAMETER(kind, name, extent, touched) KERNEL_TYPE_##kind name
#define KERNEL_COMMA_PARAMETER(kind, name, extent, touched) , KERNEL_TYPE_##kind name
#define KERNEL_ARGUMENT(kind, name, extent, touched) name
#define KERNEL_COMMA_ARGUMENT(kind, name, extent, touched) , name

/* The parameter list of a row's prototype, and the list that passes its parameters on. */
#define KERNEL_PARAMETERS(name) KERNEL_ARGS_##name(KERNEL_PARAMETER, KERNEL_COMMA_PARAMETER)
#define KERNEL_ARGUMENTS(name) KERNEL_ARGS_##name(KERNEL_ARGUMENT, KERNEL_COMMA_ARGUMENT)

#endif
