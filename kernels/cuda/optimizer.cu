// Optimizers: SGD with momentum, AdamW with decoupled decay, each array of its own type; one pass over the memory.
//
// How: the operations and their order are those of kernels/cpu/optimizer.inc, in float, in double if the parameters are float64; each array is rounded once.
//      The rows of the table are the case of equal types.
#include "kernels/cuda/map.h"
#include "kernels/cuda/mixed.h"
#include "kernels/cuda/set.h"

// Elements a thread has at once: 16 bytes of the narrowest type, but no more than 8.
template <class P, class G, class S> struct optim_count {
    static const int pg = in_pack<P>::value > in_pack<G>::value ? in_pack<P>::value : in_pack<G>::value;
    static const int value = pg > in_pack<S>::value ? pg : in_pack<S>::value;
};

template <class P, class G, class S> struct sgd_op {
    typedef wide<P> W;
    static const int count = optim_count<P, G, S>::value;
    W rate, decay, mu, keep, fresh;
    bool nesterov, first;
    P *p;
    const G *g;
    S *m; // NULL: no momentum
    template <int N> __device__ void at(int64_t i) const
    {
        values<W, N> x = load_as<N, W>(p + i), d = load_as<N, W>(g + i), v = {};
        if (m != NULL && !first)
            v = load_as<N, W>(m + i);
        EACH(k, N)
        {
            d[k] = decay == 0 ? d[k] : d[k] + decay * x[k]; // an infinite parameter makes no NaN without decay
            v[k] = (first ? W(0) : keep * v[k]) + fresh * d[k];
            W along = m == NULL ? d[k] : nesterov ? d[k] + mu * v[k] : v[k];
            x[k] -= rate * along;
        }
        store(p + i, x);
        if (m != NULL)
            store(m + i, v);
    }
};

template <class P, class G, class S> struct adamw_op {
    typedef wide<P> W;
    static const int count = optim_count<P, G, S>::value;
    W shrink, b1, b2, fresh1, fresh2, epsilon, rate, root;
    P *p;
    const G *g;
    S *m, *v;
    template <int N> __device__ void at(int64_t i) const
    {
        values<W, N> x = load_as<N, W>(p + i), d = load_as<N, W>(g + i), a = load_as<N, W>(m + i), b = load_as<N, W>(v + i);
        EACH(k, N)
        {
            a[k] = b1 * a[k] + fresh1 * d[k];
            b[k] = b2 * b[k] + fresh2 * d[k] * d[k];
            x[k] = x[k] * shrink - rate * (a[k] / (root_of(b[k]) / root + epsilon));
        }
        store(p + i, x);
        store(m + i, a);
        store(v + i, b);
    }
};

template <class P, class G, class S>
static void sgd_of(int64_t n, double lr, double momentum, double dampening, double weight_decay, bool nesterov, int64_t step, void *p, const void *g, void *m)
{
    typedef wide<P> W;
    void *state = momentum != 0 ? m : NULL;
    map(sgd_op<P, G, S>{(W)lr, (W)weight_decay, (W)momentum, step == 1 ? W(0) : (W)momentum, step == 1 ? W(1) : (W)(1 - dampening), nesterov, step == 1, (P *)p,
                        (const G *)g, (S *)state},
        n, aligned(p, g, state));
}

template <class P, class G, class S>
static void adamw_of(int64_t n, double lr, double beta1, double beta2, double eps, double weight_decay, int64_t step, void *p, const void *g, void *exp_avg,
                     void *exp_avg_sq)
{
    typedef wide<P> W;
    map(adamw_op<P, G, S>{(W)(1 - lr * weight_decay), (W)beta1, (W)beta2, (W)(1 - beta1), (W)(1 - beta2), (W)eps, (W)(lr / (1 - pow(beta1, (double)step))),
                          (W)sqrt(1 - pow(beta2, (double)step)), (P *)p, (const G *)g, (S *)exp_avg, (S *)exp_avg_sq},
        n, aligned(p, g, exp_avg, exp_avg_sq));
}

#define FOR_TYPES(types, ...) FOR_FLOAT_TYPE((types).p, P, FOR_FLOAT_TYPE((types).g, G, FOR_FLOAT_TYPE((types).s, S, __VA_ARGS__)))

void cuda_optim_sgd(struct optim_types types, int64_t n, double lr, double momentum, double dampening, double weight_decay, bool nesterov, int64_t step, void *p,
                    const void *g, void *m)
{
    FOR_TYPES(types, sgd_of<P, G, S>(n, lr, momentum, dampening, weight_decay, nesterov, step, p, g, m))
}

void cuda_optim_adamw(struct optim_types types, int64_t n, double lr, double beta1, double beta2, double eps, double weight_decay, int64_t step, void *p,
                      const void *g, void *exp_avg, void *exp_avg_sq)
{
    FOR_TYPES(types, adamw_of<P, G, S>(n, lr, beta1, beta2, eps, weight_decay, step, p, g, exp_avg, exp_avg_sq))
}

template <class S>
void cuda_sgd(int64_t n, double lr, double momentum, double dampening, double weight_decay, bool nesterov, int64_t step, void *p, const void *g, void *m)
{
    sgd_of<S, S, S>(n, lr, momentum, dampening, weight_decay, nesterov, step, p, g, m);
}

template <class S>
void cuda_adamw(int64_t n, double lr, double beta1, double beta2, double eps, double weight_decay, int64_t step, void *p, const void *g, void *exp_avg,
                void *exp_avg_sq)
{
    adamw_of<S, S, S>(n, lr, beta1, beta2, eps, weight_decay, step, p, g, exp_avg, exp_avg_sq);
}

INSTANTIATE(sgd)
INSTANTIATE(adamw)
