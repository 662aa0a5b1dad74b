/*
 * Each kernel once more, as its formula reads: plain loops over doubles, every operation counted.
 *
 * What: plain_set, a kernel set for float64, and plain_flop, the operations done since it was set to 0.
 * Why:  the oracle of the fast kernels, written apart from them, and the count that the table's declared
 *       flop is held against.
 */
#ifndef KERNELS_TESTS_PLAIN_H
#define KERNELS_TESTS_PLAIN_H

#include <math.h>

#include "kernels/kernels.h"

static double plain_flop;

static double counted(double value)
{
    plain_flop++;
    return value;
}
static double add(double a, double b) { return counted(a + b); }
static double sub(double a, double b) { return counted(a - b); }
static double mul(double a, double b) { return a == 1 ? b : b == 1 ? a : counted(a * b); }
static double over(double a, double b) { return counted(a / b); }
static double larger(double a, double b) { return counted(a > b || isnan(a) ? a : b); }
static double call(double (*function)(double), double a) { return counted(function(a)); }
static double power(double a, double b) { return counted(pow(a, b)); }

typedef const double *in;
typedef double *out;

static void plain_matmul(bool trans_a, bool trans_b, int64_t M, int64_t N, int64_t K, double alpha,
                         const void *a, const void *b, double beta, void *c)
{
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            double *sum = (out)c + m * N + n;
            *sum = beta == 0 ? 0 : mul(beta, *sum);
            for (int64_t k = 0; k < K; k++)
                *sum = add(*sum, counted(mul(alpha, ((in)a)[trans_a ? k * M + m : m * K + k]) *
                                         ((in)b)[trans_b ? n * K + k : k * N + n]));
        }
}

static void plain_bias_add_forward(int64_t rows, int64_t C, const void *bias, void *y)
{
    for (int64_t i = 0; i < rows * C; i++)
        ((out)y)[i] = add(((out)y)[i], ((in)bias)[i % C]);
}

static void plain_bias_backward(int64_t rows, int64_t C, const void *dy, void *dbias)
{
    for (int64_t i = 0; i < rows * C; i++)
        ((out)dbias)[i % C] = add(((out)dbias)[i % C], ((in)dy)[i]);
}

static void plain_add(int64_t n, const void *x, void *y)
{
    for (int64_t i = 0; i < n; i++)
        ((out)y)[i] = add(((out)y)[i], ((in)x)[i]);
}

static void plain_embedding_forward(int64_t rows, int64_t C, int64_t V, const int32_t *tokens, const void *table,
                                    void *y)
{
    (void)V;
    for (int64_t i = 0; i < rows * C; i++)
        ((out)y)[i] = ((in)table)[tokens[i / C] * C + i % C];
}

static void plain_embedding_backward(int64_t rows, int64_t C, int64_t V, const int32_t *tokens, const void *dy,
                                     void *dtable)
{
    (void)V;
    for (int64_t i = 0; i < rows * C; i++) {
        double *sum = (out)dtable + tokens[i / C] * C + i % C;
        *sum = add(*sum, ((in)dy)[i]);
    }
}

static void plain_layernorm_forward(int64_t rows, int64_t C, double eps, const void *x_, const void *gamma,
                                    const void *beta, void *y, void *mean, void *rstd)
{
    for (int64_t r = 0; r < rows; r++) {
        in x = (in)x_ + r * C;
        double sum = 0, squares = 0;
        for (int64_t c = 0; c < C; c++)
            sum = add(sum, x[c]);
        double m = over(sum, (double)C);
        for (int64_t c = 0; c < C; c++) {
            double d = sub(x[c], m);
            squares = add(squares, mul(d, d));
        }
        double s = over(1, call(sqrt, add(over(squares, (double)C), eps)));
        for (int64_t c = 0; c < C; c++)
            ((out)y)[r * C + c] = add(mul(mul(sub(x[c], m), s), ((in)gamma)[c]), ((in)beta)[c]);
        ((out)mean)[r] = m;
        ((out)rstd)[r] = s;
    }
}

static void plain_layernorm_backward(int64_t rows, int64_t C, const void *x, const void *gamma, const void *mean,
                                     const void *rstd, const void *dy_, void *dx, void *dgamma, void *dbeta)
{
    double h[C + 1], g[C + 1];
    for (int64_t r = 0; r < rows; r++) {
        in dy = (in)dy_ + r * C;
        double sum_g = 0, sum_gh = 0, s = ((in)rstd)[r];
        for (int64_t c = 0; c < C; c++) {
            h[c] = mul(sub(((in)x)[r * C + c], ((in)mean)[r]), s);
            g[c] = mul(dy[c], ((in)gamma)[c]);
            sum_g = add(sum_g, g[c]);
            sum_gh = add(sum_gh, mul(g[c], h[c]));
        }
        double mean_g = over(sum_g, (double)C), mean_gh = over(sum_gh, (double)C);
        for (int64_t c = 0; c < C; c++) {
            ((out)dx)[r * C + c] = mul(s, sub(sub(g[c], mean_g), mul(h[c], mean_gh)));
            ((out)dgamma)[c] = add(((out)dgamma)[c], mul(dy[c], h[c]));
            ((out)dbeta)[c] = add(((out)dbeta)[c], dy[c]);
        }
    }
}

static void plain_rmsnorm_forward(int64_t rows, int64_t C, double eps, const void *x_, const void *gamma, void *y,
                                  void *rstd)
{
    for (int64_t r = 0; r < rows; r++) {
        in x = (in)x_ + r * C;
        double squares = 0;
        for (int64_t c = 0; c < C; c++)
            squares = add(squares, mul(x[c], x[c]));
        double s = over(1, call(sqrt, add(over(squares, (double)C), eps)));
        for (int64_t c = 0; c < C; c++)
            ((out)y)[r * C + c] = mul(mul(x[c], s), ((in)gamma)[c]);
        ((out)rstd)[r] = s;
    }
}

static void plain_rmsnorm_backward(int64_t rows, int64_t C, const void *x, const void *gamma, const void *rstd,
                                   const void *dy_, void *dx, void *dgamma)
{
    double h[C + 1], g[C + 1];
    for (int64_t r = 0; r < rows; r++) {
        in dy = (in)dy_ + r * C;
        double sum_gh = 0, s = ((in)rstd)[r];
        for (int64_t c = 0; c < C; c++) {
            h[c] = mul(((in)x)[r * C + c], s);
            g[c] = mul(dy[c], ((in)gamma)[c]);
            sum_gh = add(sum_gh, mul(g[c], h[c]));
        }
        double mean_gh = over(sum_gh, (double)C);
        for (int64_t c = 0; c < C; c++) {
            ((out)dx)[r * C + c] = mul(s, sub(g[c], mul(h[c], mean_gh)));
            ((out)dgamma)[c] = add(((out)dgamma)[c], mul(dy[c], h[c]));
        }
    }
}

static void plain_rope(int64_t B, int64_t T, int64_t H, int64_t D, double theta, double sign, out x)
{
    for (int64_t i = 0; i < D / 2; i++) {
        double frequency = power(theta, -2.0 * (double)i / (double)D);
        for (int64_t t = 0; t < T; t++) {
            double angle = counted((double)t * frequency);
            double c = call(cos, angle), s = sign * call(sin, angle);
            for (int64_t bh = 0; bh < B * H; bh++) {
                out low = x + ((bh / H * T + t) * H + bh % H) * D + i, high = low + D / 2;
                double a = *low, b = *high;
                *low = counted(counted(a * c) - counted(b * s));
                *high = counted(counted(b * c) + counted(a * s));
            }
        }
    }
}

static void plain_rope_forward(int64_t B, int64_t T, int64_t H, int64_t D, double theta, void *x)
{
    plain_rope(B, T, H, D, theta, 1, x);
}

static void plain_rope_backward(int64_t B, int64_t T, int64_t H, int64_t D, double theta, void *dx)
{
    plain_rope(B, T, H, D, theta, -1, dx);
}

static double plain_dot(int64_t n, in x, in y)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum = add(sum, counted(x[i] * y[i]));
    return sum;
}

/* y += factor x */
static void plain_axpy(int64_t n, double factor, in x, out y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = add(y[i], counted(factor * x[i]));
}

static void plain_attention_forward(int64_t B, int64_t T, int64_t Hq, int64_t Hkv, int64_t D, double scale,
                                    const void *q, const void *k, const void *v, void *y, void *lse)
{
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < Hq; h++)
            for (int64_t i = 0; i < T; i++) {
                int64_t row = ((b * T + i) * Hq + h) * D, group = h / (Hq / Hkv);
                double s[T], max = -INFINITY, sum = 0;
                for (int64_t j = 0; j <= i; j++) {
                    s[j] = mul(scale, plain_dot(D, (in)q + row, (in)k + ((b * T + j) * Hkv + group) * D));
                    max = larger(max, s[j]);
                }
                for (int64_t d = 0; d < D; d++)
                    ((out)y)[row + d] = 0;
                for (int64_t j = 0; j <= i; j++) {
                    double e = call(exp, sub(s[j], max));
                    sum = add(sum, e);
                    plain_axpy(D, e, (in)v + ((b * T + j) * Hkv + group) * D, (out)y + row);
                }
                for (int64_t d = 0; d < D; d++)
                    ((out)y)[row + d] = over(((out)y)[row + d], sum);
                ((out)lse)[(b * Hq + h) * T + i] = add(max, call(log, sum));
            }
}

static void plain_attention_backward(int64_t B, int64_t T, int64_t Hq, int64_t Hkv, int64_t D, double scale,
                                     const void *q, const void *k, const void *v, const void *y, const void *lse,
                                     const void *dy, void *dq, void *dk, void *dv)
{
    for (int64_t i = 0; i < B * T * Hkv * D; i++)
        ((out)dk)[i] = ((out)dv)[i] = 0;
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < Hq; h++)
            for (int64_t i = 0; i < T; i++) {
                int64_t row = ((b * T + i) * Hq + h) * D;
                double delta = plain_dot(D, (in)dy + row, (in)y + row);
                for (int64_t d = 0; d < D; d++)
                    ((out)dq)[row + d] = 0;
                for (int64_t j = 0; j <= i; j++) {
                    int64_t key = ((b * T + j) * Hkv + h / (Hq / Hkv)) * D;
                    double s = mul(scale, plain_dot(D, (in)q + row, (in)k + key));
                    double p = call(exp, sub(s, ((in)lse)[(b * Hq + h) * T + i]));
                    double ds = counted(p * sub(plain_dot(D, (in)dy + row, (in)v + key), delta));
                    plain_axpy(D, p, (in)dy + row, (out)dv + key);
                    plain_axpy(D, ds, (in)k + key, (out)dq + row);
                    plain_axpy(D, ds, (in)q + row, (out)dk + key);
                }
                for (int64_t d = 0; d < D; d++)
                    ((out)dq)[row + d] = mul(scale, ((out)dq)[row + d]);
            }
    for (int64_t i = 0; i < B * T * Hkv * D; i++)
        ((out)dk)[i] = mul(scale, ((out)dk)[i]);
}

static const double gelu_slope = 0.79788456080286535588; /* sqrt(2 / pi) */

static void plain_gelu_forward(int64_t n, const void *x_, void *y)
{
    for (int64_t i = 0; i < n; i++) {
        double x = ((in)x_)[i];
        double u = mul(gelu_slope, add(x, mul(0.044715, mul(mul(x, x), x))));
        ((out)y)[i] = mul(0.5, mul(x, add(1, call(tanh, u))));
    }
}

static void plain_gelu_backward(int64_t n, const void *x_, const void *dy, void *dx)
{
    for (int64_t i = 0; i < n; i++) {
        double x = ((in)x_)[i], square = mul(x, x);
        double t = call(tanh, mul(gelu_slope, add(x, mul(mul(0.044715, square), x))));
        double slope = mul(gelu_slope, add(1, mul(0.134145, square)));
        double bend = mul(mul(x, sub(1, mul(t, t))), slope);
        ((out)dx)[i] = mul(((in)dy)[i], mul(0.5, add(add(1, t), bend)));
    }
}

static void plain_swiglu_forward(int64_t n, const void *a, const void *b, void *y)
{
    for (int64_t i = 0; i < n; i++)
        ((out)y)[i] = mul(((in)b)[i], over(((in)a)[i], add(1, call(exp, -((in)a)[i]))));
}

static void plain_swiglu_backward(int64_t n, const void *a_, const void *b, const void *dy_, void *da, void *db)
{
    for (int64_t i = 0; i < n; i++) {
        double a = ((in)a_)[i], dy = ((in)dy_)[i], s = over(1, add(1, call(exp, -a)));
        ((out)da)[i] = mul(mul(mul(dy, ((in)b)[i]), s), add(1, mul(a, sub(1, s))));
        ((out)db)[i] = mul(mul(dy, a), s);
    }
}

static void plain_relu_forward(int64_t n, const void *x, void *y)
{
    for (int64_t i = 0; i < n; i++)
        ((out)y)[i] = larger(((in)x)[i], 0);
}

static void plain_relu_backward(int64_t n, const void *x, const void *dy, void *dx)
{
    for (int64_t i = 0; i < n; i++)
        ((out)dx)[i] = counted(((in)x)[i] > 0 ? ((in)dy)[i] : 0);
}

static void plain_softmax_xent_forward(int64_t rows, int64_t V, const void *logits, const int32_t *targets,
                                       const double *weights, void *lse, double *loss)
{
    *loss = 0;
    for (int64_t r = 0; r < rows && V > 0; r++) {
        in x = (in)logits + r * V;
        double max = -INFINITY, sum = 0;
        for (int64_t v = 0; v < V; v++)
            max = larger(max, x[v]);
        for (int64_t v = 0; v < V; v++)
            sum = add(sum, call(exp, sub(x[v], max)));
        ((out)lse)[r] = add(max, call(log, sum));
        *loss = add(*loss, mul(weights[r], sub(((out)lse)[r], x[targets[r]])));
    }
}

static void plain_softmax_xent_backward(int64_t rows, int64_t V, const void *logits, const int32_t *targets,
                                        const double *weights, const void *lse, double scale, void *dlogits)
{
    for (int64_t r = 0; r < rows && V > 0; r++) {
        double factor = mul(scale, weights[r]);
        for (int64_t v = 0; v < V; v++) {
            double p = call(exp, sub(((in)logits)[r * V + v], ((in)lse)[r]));
            ((out)dlogits)[r * V + v] = mul(factor, v == targets[r] ? sub(p, 1) : p);
        }
    }
}

static void plain_squared_error_forward(int64_t rows, int64_t C, const void *y, const float *targets,
                                        const double *weights, double *loss)
{
    *loss = 0;
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t c = r * C; c < (r + 1) * C; c++) {
            double d = sub(((in)y)[c], targets[c]);
            sum = add(sum, mul(d, d));
        }
        *loss = add(*loss, mul(weights[r], sum));
    }
}

static void plain_squared_error_backward(int64_t rows, int64_t C, const void *y, const float *targets,
                                         const double *weights, double scale, void *dy)
{
    for (int64_t r = 0; r < rows; r++) {
        double factor = mul(mul(2, scale), weights[r]);
        for (int64_t c = r * C; c < (r + 1) * C; c++)
            ((out)dy)[c] = mul(factor, sub(((in)y)[c], targets[c]));
    }
}

static void plain_sgd(int64_t n, double lr, double momentum, double dampening, double weight_decay, bool nesterov,
                      int64_t step, void *p, const void *g, void *m_)
{
    double fresh = sub(1, dampening);
    for (int64_t i = 0; i < n; i++) {
        double d = add(((in)g)[i], mul(weight_decay, ((out)p)[i])), *m = (out)m_ + i;
        *m = step == 1 ? d : add(mul(momentum, *m), mul(fresh, d));
        ((out)p)[i] = sub(((out)p)[i], mul(lr, nesterov ? add(d, mul(momentum, *m)) : *m));
    }
}

static void plain_adamw(int64_t n, double lr, double beta1, double beta2, double eps, double weight_decay,
                        int64_t step, void *p, const void *g_, void *m_, void *v_)
{
    double shrink = sub(1, mul(lr, weight_decay)), fresh1 = sub(1, beta1), fresh2 = sub(1, beta2);
    double rate = over(lr, sub(1, power(beta1, (double)step)));
    double root = call(sqrt, sub(1, power(beta2, (double)step)));
    for (int64_t i = 0; i < n; i++) {
        double g = ((in)g_)[i], *m = (out)m_ + i, *v = (out)v_ + i;
        *m = add(mul(beta1, *m), mul(fresh1, g));
        *v = add(mul(beta2, *v), mul(mul(fresh2, g), g));
        double change = mul(rate, over(*m, add(over(call(sqrt, *v), root), eps)));
        ((out)p)[i] = sub(mul(((out)p)[i], shrink), change);
    }
}

static void plain_scale(int64_t n, double alpha, void *x)
{
    for (int64_t i = 0; i < n; i++)
        ((out)x)[i] = counted(alpha * ((out)x)[i]);
}

static double plain_norm_l1(int64_t n, const void *x)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum = add(sum, fabs(((in)x)[i]));
    return sum;
}

static double plain_norm_l2_squared(int64_t n, const void *x)
{
    return plain_dot(n, x, x);
}

static double plain_norm_linf(int64_t n, const void *x)
{
    double max = 0;
    for (int64_t i = 0; i < n; i++)
        max = larger(fabs(((in)x)[i]), max);
    return max;
}

static bool plain_all_finite(int64_t n, const void *x)
{
    bool all = true;
    for (int64_t i = 0; i < n; i++)
        all = all && isfinite(((in)x)[i]);
    return all;
}

#define PLAIN_ENTRY(returns, name, formula, flop, budget, source) .name = plain_##name,
static const struct kernel_set plain_set = {
    .storage = DTYPE_F64,
    .accumulation = DTYPE_F64,
    KERNEL_TABLE(PLAIN_ENTRY)
};

#endif
