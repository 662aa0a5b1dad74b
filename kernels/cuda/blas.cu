// Matrix products by cuBLAS. See blas.h.
//
// Of cuBLAS: cublasCreate, cublasDestroy, cublasSetStream, cublasSetMathMode, cublasGemmEx, cublasGemmStridedBatchedEx, cublasGetStatusString.
// How: cuBLAS is column-major, and a row-major matrix is its own transpose there: C^T = op(B)^T op(A)^T, so the operands change places and nothing else.
//      float32 is float32 (no TensorFloat-32); 16-bit products are summed in float32 also where a product is split, and rounded once.
#include "kernels/cuda/blas.h"

#include <cublas_v2.h>

#include "kernels/cuda/memory.h"

static cublasHandle_t handle;

static bool blas_ok(cublasStatus_t status, const char *call, const struct product *p)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return true;
    cuda_fail("%s: %s; M %lld, N %lld, K %lld, batch %lld, stream compute", call, cublasGetStatusString(status), p ? (long long)p->M : 0, p ? (long long)p->N : 0,
              p ? (long long)p->K : 0, p ? (long long)p->batch : 0);
    return false;
}

static bool blas_open(void)
{
    if (handle != NULL)
        return true;
    if (!blas_ok(cublasCreate(&handle), "cublasCreate", NULL))
        return false;
    cublasMath_t exact = (cublasMath_t)(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    return blas_ok(cublasSetStream(handle, cuda_stream(CUDA_COMPUTE)), "cublasSetStream", NULL) &&
           blas_ok(cublasSetMathMode(handle, exact), "cublasSetMathMode", NULL);
}

void cuda_blas_close(void)
{
    if (handle != NULL)
        (void)blas_ok(cublasDestroy(handle), "cublasDestroy", NULL);
    handle = NULL;
}

static cudaDataType_t blas_type(enum dtype type)
{
    return type == DTYPE_F64 ? CUDA_R_64F : type == DTYPE_F32 ? CUDA_R_32F : type == DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_16F;
}

void cuda_product(enum dtype in, enum dtype out, const struct product *p, const void *a, const void *b, void *c)
{
    if (p->M == 0 || p->N == 0 || p->batch == 0 || !blas_open())
        return;
    float alpha32 = (float)p->alpha, beta32 = (float)p->beta;
    const void *alpha = in == DTYPE_F64 ? (const void *)&p->alpha : &alpha32, *beta = in == DTYPE_F64 ? (const void *)&p->beta : &beta32;
    cublasComputeType_t compute = in == DTYPE_F64 ? CUBLAS_COMPUTE_64F : in == DTYPE_F32 ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
    cublasOperation_t op_a = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, op_b = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cudaDataType_t from = blas_type(in), to = blas_type(out);
    int M = (int)p->M, N = (int)p->N, K = (int)p->K;
    if (p->batch == 1)
        (void)blas_ok(cublasGemmEx(handle, op_b, op_a, N, M, K, alpha, b, from, (int)p->row_b, a, from, (int)p->row_a, beta, c, to, (int)p->row_c, compute,
                                   CUBLAS_GEMM_DEFAULT), "cublasGemmEx", p);
    else
        (void)blas_ok(cublasGemmStridedBatchedEx(handle, op_b, op_a, N, M, K, alpha, b, from, (int)p->row_b, p->next_b, a, from, (int)p->row_a, p->next_a, beta,
                                                 c, to, (int)p->row_c, p->next_c, (int)p->batch, compute, CUBLAS_GEMM_DEFAULT),
                      "cublasGemmStridedBatchedEx", p);
}
