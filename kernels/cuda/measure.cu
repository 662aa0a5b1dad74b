// Norms and finiteness of whole tensors, one or many, with one wait of the host.
//
// How: sums run in double. The elements are dealt out eight by eight, and the sums are added up in an order that is given by n alone, so that float32 and
//      float64 give the same bits for the same data. A maximum is that of the bits of magnitudes, which order like the numbers with NaN above infinity.
#include "kernels/cuda/block.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/mixed.h"
#include "kernels/cuda/set.h"

enum { EIGHT = 8, MEASURE_THREADS = 256 };
static const int64_t MEASURE_BLOCKS = 1024;

static struct cuda_buffer results;

DEVICE double magnitude(double x) { return fabs(x); }

// What an element adds to a measure: a double, or the bits of a magnitude for the maxima.
struct l1_term {
    typedef double sum;
    typedef sum_of how;
    static __device__ double of(double x) { return magnitude(x); }
    static __device__ double result(double sum) { return sum; }
};
struct l2_term {
    typedef double sum;
    typedef sum_of how;
    static __device__ double of(double x) { return x * x; }
    static __device__ double result(double sum) { return sum; }
};
DEVICE double double_of(unsigned long long bits) { double x; memcpy(&x, &bits, sizeof x); return x; }
struct linf_term {
    typedef unsigned long long sum;
    typedef largest_of how;
    static __device__ sum of(double x) { return bits_of(magnitude(x)); }
    static __device__ double result(sum largest) { return double_of(largest); }
};
struct finite_term {
    typedef unsigned long long sum;
    typedef largest_of how;
    static __device__ sum of(double x) { return bits_of(magnitude(x)); }
    static __device__ double result(sum largest) { return largest < 0x7ff0000000000000u ? 1 : 0; }
};

template <class S, class Term> __global__ void measure_partial(int64_t n, const S *x, bool packed, typename Term::sum *partial)
{
    typedef typename Term::sum sum_type;
    SHARED_ARRAY(sum_type, room, MEASURE_THREADS / WARP);
    sum_type sum = 0;
    int64_t step = (int64_t)gridDim.x * blockDim.x * EIGHT;
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * EIGHT; i < n; i += step) {
        values<wide<S>, EIGHT> v = load_part<EIGHT>(x + i, n - i, packed);
        EACH(k, EIGHT) sum = Term::how::of(sum, Term::of((double)v[k]));
    }
    sum = row_reduce<typename Term::how>(sum, sum_type(0), room);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
}

template <class Term> __global__ void measure_result(int blocks, const typename Term::sum *partial, double *result)
{
    typedef typename Term::sum sum_type;
    SHARED_ARRAY(sum_type, room, MEASURE_THREADS / WARP);
    sum_type sum = 0;
    for (int i = (int)threadIdx.x; i < blocks; i += (int)blockDim.x)
        sum = Term::how::of(sum, partial[i]);
    sum = row_reduce<typename Term::how>(sum, sum_type(0), room);
    if (threadIdx.x == 0)
        *result = Term::result(sum);
}

template <class S, class Term> static void measure(int64_t n, const void *x, double *result)
{
    typedef typename Term::sum sum_type;
    int64_t wanted = (n + MEASURE_THREADS * EIGHT - 1) / (MEASURE_THREADS * EIGHT), blocks = wanted < MEASURE_BLOCKS ? wanted : MEASURE_BLOCKS;
    sum_type *partial = (sum_type *)cuda_scratch_take(MEASURE_BLOCKS * sizeof(sum_type));
    if (partial == NULL)
        return;
    if (blocks > 0)
        LAUNCH((measure_partial<S, Term>), dim3((unsigned)blocks), dim3(MEASURE_THREADS), 0, CUDA_COMPUTE, n, (const S *)x, aligned(x), partial);
    LAUNCH(measure_result<Term>, dim3(1), dim3(MEASURE_THREADS), 0, CUDA_COMPUTE, (int)blocks, partial, result);
}

template <class S> static void measure_as(enum device_norm norm, int64_t n, const void *x, double *result)
{
    switch (norm) {
    case DEVICE_NORM_L1: measure<S, l1_term>(n, x, result); break;
    case DEVICE_NORM_L2_SQUARED: measure<S, l2_term>(n, x, result); break;
    case DEVICE_NORM_LINF: measure<S, linf_term>(n, x, result); break;
    case DEVICE_ALL_FINITE: measure<S, finite_term>(n, x, result); break;
    }
}

void cuda_norms(enum device_norm norm, enum dtype type, int count, const void *const *at, const int64_t *n, double *out)
{
    double *all = count > 0 ? (double *)cuda_buffer_reserve(&results, (size_t)count * sizeof *all) : NULL;
    for (int i = 0; i < count; i++)
        out[i] = NAN;
    for (int i = 0; i < count && all != NULL; i++)
        FOR_FLOAT_TYPE(type, S, measure_as<S>(norm, n[i], at[i], all + i))
    if (all != NULL)
        cuda_download(out, all, (size_t)count * sizeof *all);
}

void cuda_measure_close(void) { cuda_buffer_free(&results); }

template <class S> static double one_norm(enum device_norm norm, int64_t n, const void *x)
{
    double result;
    cuda_norms(norm, type_of<S>::value, 1, &x, &n, &result);
    return result;
}

template <class S> double cuda_norm_l1(int64_t n, const void *x) { return one_norm<S>(DEVICE_NORM_L1, n, x); }
template <class S> double cuda_norm_l2_squared(int64_t n, const void *x) { return one_norm<S>(DEVICE_NORM_L2_SQUARED, n, x); }
template <class S> double cuda_norm_linf(int64_t n, const void *x) { return one_norm<S>(DEVICE_NORM_LINF, n, x); }
template <class S> bool cuda_all_finite(int64_t n, const void *x) { return one_norm<S>(DEVICE_ALL_FINITE, n, x) == 1; }

INSTANTIATE_RETURNING(double, norm_l1)
INSTANTIATE_RETURNING(double, norm_l2_squared)
INSTANTIATE_RETURNING(double, norm_linf)
INSTANTIATE_RETURNING(bool, all_finite)
