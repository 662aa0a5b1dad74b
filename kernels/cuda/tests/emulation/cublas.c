// EMULATION, no GPU: cuBLAS's matrix products, by the host's BLAS. Tests only.
//
// How: a product is queued in the handle's stream. When it runs, its operands are copied to matrices of float (of double for CUBLAS_COMPUTE_64F), multiplied
//      there, and the result is rounded once to its type, to nearest even. Both libraries are column-major.
// Blind to: the order in which a GPU sums; so results are equal where sums are exact, and else within the usual bounds.
#include <cblas.h>
#include <cublas_v2.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/tests/emulation/memory.h"
#include "kernels/cuda/tests/emulation/queue.h"

struct cublasContext { cudaStream_t stream; };

struct matrix { char *at; cudaDataType type; int rows, cols, ld; long long stride; };
struct product {
    cublasOperation_t op_a, op_b;
    int m, n, k, batch;
    bool wide; // computed in double
    double alpha, beta;
    struct matrix a, b, c;
};

// ---- elements ----

static size_t size_of(cudaDataType type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

static float from_bfloat16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t to_bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double get(const struct matrix *x, size_t i)
{
    const void *at = x->at + i * size_of(x->type);
    switch (x->type) {
    case CUDA_R_64F: return *(const double *)at;
    case CUDA_R_32F: return *(const float *)at;
    case CUDA_R_16F: return (double)*(const _Float16 *)at;
    default: return from_bfloat16(*(const uint16_t *)at);
    }
}

static void set(const struct matrix *x, size_t i, double value)
{
    void *at = x->at + i * size_of(x->type);
    switch (x->type) {
    case CUDA_R_64F: *(double *)at = value; break;
    case CUDA_R_32F: *(float *)at = (float)value; break;
    case CUDA_R_16F: *(_Float16 *)at = (_Float16)(float)value; break;
    default: *(uint16_t *)at = to_bfloat16((float)value);
    }
}

// ---- running ----

static void read_matrix(const struct matrix *x, bool wide, void *to)
{
    for (int col = 0; col < x->cols; col++)
        for (int row = 0; row < x->rows; row++) {
            size_t i = (size_t)col * (size_t)x->rows + (size_t)row;
            double value = get(x, (size_t)col * (size_t)x->ld + (size_t)row);
            if (wide)
                ((double *)to)[i] = value;
            else
                ((float *)to)[i] = (float)value;
        }
}

static void write_matrix(const struct matrix *x, bool wide, const void *from)
{
    for (int col = 0; col < x->cols; col++)
        for (int row = 0; row < x->rows; row++) {
            size_t i = (size_t)col * (size_t)x->rows + (size_t)row;
            set(x, (size_t)col * (size_t)x->ld + (size_t)row, wide ? ((const double *)from)[i] : ((const float *)from)[i]);
        }
}

static size_t elements(const struct matrix *x) { return (size_t)x->rows * (size_t)x->cols; }

static void multiply(const struct product *p, const void *a, const void *b, void *c)
{
    enum CBLAS_TRANSPOSE ta = p->op_a == CUBLAS_OP_N ? CblasNoTrans : CblasTrans, tb = p->op_b == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
    int lda = p->a.rows > 0 ? p->a.rows : 1, ldb = p->b.rows > 0 ? p->b.rows : 1, ldc = p->m;
    if (p->wide)
        cblas_dgemm(CblasColMajor, ta, tb, p->m, p->n, p->k, p->alpha, a, lda, b, ldb, p->beta, c, ldc);
    else
        cblas_sgemm(CblasColMajor, ta, tb, p->m, p->n, p->k, (float)p->alpha, a, lda, b, ldb, (float)p->beta, c, ldc);
}

static void next_of(struct matrix *x)
{
    x->at += x->stride * (long long)size_of(x->type);
}

static enum emulation_step run_product(void *context)
{
    struct product p = *(struct product *)context;
    size_t size = p.wide ? sizeof(double) : sizeof(float), na = elements(&p.a), nb = elements(&p.b), nc = elements(&p.c);
    char *a = calloc(na + nb + nc + 1, size), *b = a + na * size, *c = b + nb * size;
    if (a == NULL) {
        emulation_fail(cudaErrorMemoryAllocation, "no memory for a matrix product");
        return EMULATION_FAILED;
    }
    for (int i = 0; i < p.batch; i++, next_of(&p.a), next_of(&p.b), next_of(&p.c)) {
        read_matrix(&p.a, p.wide, a);
        read_matrix(&p.b, p.wide, b);
        if (p.beta != 0)
            read_matrix(&p.c, p.wide, c);
        else
            memset(c, 0, nc * size); // not read: whatever is there, NaN too, leaves no trace
        multiply(&p, a, b, c);
        write_matrix(&p.c, p.wide, c);
    }
    free(a);
    return EMULATION_DONE;
}

// ---- asking for it ----

// The whole of it, all of the batch, lies in one region of the device.
static bool lies_within(const struct matrix *x, int batch, const char *name)
{
    size_t left, last = elements(x) == 0 ? 0 : (size_t)(x->cols - 1) * (size_t)x->ld + (size_t)x->rows;
    size_t bytes = last == 0 ? 0 : (last + (size_t)(batch - 1) * (size_t)x->stride) * size_of(x->type);
    if (bytes == 0 || (memory_find(x->at, &left) != MEMORY_HOST && left >= bytes))
        return true;
    emulation_fail(cudaErrorIllegalAddress, "matrix product: %s of %d x %d, leading dimension %d, %d times, is not within one region of device memory", name, x->rows,
                   x->cols, x->ld, batch);
    return false;
}

static bool types_fit(const struct product *p)
{
    cudaDataType a = p->a.type, c = p->c.type;
    if (a != p->b.type || (p->wide != (a == CUDA_R_64F)) || (p->wide != (c == CUDA_R_64F)))
        return false;
    return a == c || c == CUDA_R_32F;
}

static cublasStatus_t queue_product(cublasHandle_t handle, struct product p)
{
    if (handle == NULL)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (p.m < 0 || p.n < 0 || p.k < 0 || p.batch < 0 || p.a.ld < p.a.rows || p.b.ld < p.b.rows || p.c.ld < p.c.rows || p.a.ld < 1 || p.b.ld < 1 || p.c.ld < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!types_fit(&p))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (p.m == 0 || p.n == 0 || p.batch == 0)
        return CUBLAS_STATUS_SUCCESS;
    if (!lies_within(&p.a, p.batch, "A") || !lies_within(&p.b, p.batch, "B") || !lies_within(&p.c, p.batch, "C"))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    struct product *kept = malloc(sizeof *kept);
    if (kept == NULL)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *kept = p;
    return queue_give(handle->stream, "matrix product", run_product, kept) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, const void *alpha, const void *A,
                                          cudaDataType a_type, int lda, long long stride_a, const void *B, cudaDataType b_type, int ldb, long long stride_b,
                                          const void *beta, void *C, cudaDataType c_type, int ldc, long long stride_c, int batch, cublasComputeType_t compute,
                                          cublasGemmAlgo_t algorithm)
{
    bool wide = compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC, na = op_a == CUBLAS_OP_N, nb = op_b == CUBLAS_OP_N;
    (void)algorithm;
    return queue_product(handle, (struct product){
        .op_a = op_a, .op_b = op_b, .m = m, .n = n, .k = k, .batch = batch, .wide = wide,
        .alpha = wide ? *(const double *)alpha : *(const float *)alpha, .beta = wide ? *(const double *)beta : *(const float *)beta,
        .a = {(char *)(uintptr_t)A, a_type, na ? m : k, na ? k : m, lda, stride_a}, .b = {(char *)(uintptr_t)B, b_type, nb ? k : n, nb ? n : k, ldb, stride_b},
        .c = {C, c_type, m, n, ldc, stride_c}});
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, const void *alpha, const void *A,
                            cudaDataType a_type, int lda, const void *B, cudaDataType b_type, int ldb, const void *beta, void *C, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, A, a_type, lda, 0, B, b_type, ldb, 0, beta, C, c_type, ldc, 0, 1, compute, algorithm);
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, const float *alpha, const float *A, int lda,
                           const float *B, int ldb, const float *beta, float *C, int ldc)
{
    return cublasGemmEx(handle, op_a, op_b, m, n, k, alpha, A, CUDA_R_32F, lda, B, CUDA_R_32F, ldb, beta, C, CUDA_R_32F, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, const double *alpha, const double *A, int lda,
                           const double *B, int ldb, const double *beta, double *C, int ldc)
{
    return cublasGemmEx(handle, op_a, op_b, m, n, k, alpha, A, CUDA_R_64F, lda, B, CUDA_R_64F, ldb, beta, C, CUDA_R_64F, ldc, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT);
}

// ---- the handle ----

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    *handle = emulation_error() == cudaSuccess ? calloc(1, sizeof **handle) : NULL;
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    free(handle);
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version) { return (void)handle, *version = 130000, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    if (handle)
        handle->stream = stream;
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t *stream)
{
    *stream = handle ? handle->stream : NULL;
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes)
{
    (void)workspace, (void)bytes;
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    (void)mode;
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode)
{
    (void)handle;
    return mode == CUBLAS_POINTER_MODE_HOST ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

const char *cublasGetStatusName(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS_INTERNAL_ERROR";
    }
}
const char *cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }
