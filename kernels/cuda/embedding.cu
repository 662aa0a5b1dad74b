// The transpose of the lookup: dtable[tokens[r],:] += dout[r,:], the rows of a token added up in a fixed order.
//
// How: the rows of each token are listed: counted, given a place, put there in any order, and put in order by counting how many of the list come before each.
//      Then the first row of each list adds up its list. Only integers are counted with atomics, and where a list lies does not matter, so every run has the
//      same bits. The work is that of the rows; the table is touched only where a token occurs.
// Why:  floating-point atomics on the table would be shorter and differ from run to run.
#include "kernels/cuda/block.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/set.h"

enum { LIST_THREADS = 256, SUM_LANES = 8 };

struct token_lists {
    int64_t rows, V;
    const int32_t *tokens;
    int32_t *count, *filled; // (V)
    int32_t *begin;          // (V): where the list of a token begins
    int32_t *used;           // (1): places given away
    int32_t *listed;         // (rows): the lists, in any order
    int32_t *ordered;        // (rows): the lists, ascending
};

struct count_op {
    static const int count = 1;
    struct token_lists l;
    template <int N> __device__ void at(int64_t r) const { atomicAdd(&l.count[l.tokens[r]], 1); }
};

struct place_op {
    static const int count = 1;
    struct token_lists l;
    template <int N> __device__ void at(int64_t v) const
    {
        if (l.count[v] > 0)
            l.begin[v] = atomicAdd(l.used, l.count[v]);
    }
};

struct list_op {
    static const int count = 1;
    struct token_lists l;
    template <int N> __device__ void at(int64_t r) const
    {
        int32_t v = l.tokens[r];
        l.listed[l.begin[v] + atomicAdd(&l.filled[v], 1)] = (int32_t)r;
    }
};

// A warp for each place.
static __global__ void order_lists(struct token_lists l)
{
    int64_t warp = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / WARP, warps = (int64_t)gridDim.x * blockDim.x / WARP;
    for (int64_t place = warp; place < l.rows; place += warps) {
        int32_t r = l.listed[place], v = l.tokens[r], before = 0;
        for (int32_t i = (int32_t)(threadIdx.x % WARP); i < l.count[v]; i += WARP)
            before += l.listed[l.begin[v] + i] < r;
        before = warp_reduce<sum_of>(before);
        if (threadIdx.x % WARP == 0)
            l.ordered[l.begin[v] + before] = r;
    }
}

// Block (32, SUM_LANES) and grid (rows, column blocks): N columns a thread, every SUM_LANES-th row of the list a lane.
template <class S> __global__ void add_lists(struct token_lists l, int64_t C, const S *dout, S *dtable, bool packed)
{
    const int N = in_pack<S>::value;
    typedef values<wide<S>, N> V;
    SHARED_ARRAY(V, room, SUM_LANES * WARP);
    int32_t v = l.tokens[blockIdx.x], begin = l.begin[v], count = l.count[v];
    if (l.ordered[begin] != (int32_t)blockIdx.x)
        return;
    int64_t c = ((int64_t)blockIdx.y * WARP + threadIdx.x) * N;
    V sum = {};
    for (int32_t i = (int32_t)threadIdx.y; i < count && c < C; i += SUM_LANES) {
        V x = load_part<N>(dout + l.ordered[begin + i] * C + c, C - c, packed);
        EACH(k, N) sum[k] += x[k];
    }
    room[threadIdx.y * WARP + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || c >= C)
        return;
    int lanes = count < SUM_LANES ? count : (int)SUM_LANES;
    V old = load_part<N>(dtable + v * C + c, C - c, packed);
    for (int lane = 1; lane < lanes; lane++)
        EACH(k, N) sum[k] += room[lane * WARP + threadIdx.x][k];
    EACH(k, N) old[k] += sum[k];
    store_part(dtable + v * C + c, old, C - c, packed);
}

static bool list_tokens(struct token_lists *l)
{
    size_t total = 0, counts = cuda_scratch_place(&total, 2 * l->V + 1, sizeof(int32_t)), begin = cuda_scratch_place(&total, l->V, sizeof(int32_t));
    size_t listed = cuda_scratch_place(&total, l->rows, sizeof(int32_t)), ordered = cuda_scratch_place(&total, l->rows, sizeof(int32_t));
    char *memory = cuda_scratch_take(total);
    if (memory == NULL)
        return false;
    l->count = (int32_t *)(memory + counts), l->filled = l->count + l->V, l->used = l->filled + l->V;
    l->begin = (int32_t *)(memory + begin), l->listed = (int32_t *)(memory + listed), l->ordered = (int32_t *)(memory + ordered);
    cuda_clear(l->count, (size_t)(2 * l->V + 1) * sizeof *l->count);
    map(count_op{*l}, l->rows, false);
    map(place_op{*l}, l->V, false);
    map(list_op{*l}, l->rows, false);
    LAUNCH(order_lists, dim3(launch_grid(l->rows, LIST_THREADS / WARP)), dim3(LIST_THREADS), 0, CUDA_COMPUTE, *l);
    return true;
}

template <class S> void cuda_embedding_backward(int64_t rows, int64_t C, int64_t V, const int32_t *tokens, const void *dout, void *dtable)
{
    struct token_lists l = {rows, V, tokens, NULL, NULL, NULL, NULL, NULL, NULL};
    if (rows == 0 || C == 0 || !list_tokens(&l))
        return;
    int64_t width = WARP * in_pack<S>::value;
    LAUNCH(add_lists<S>, dim3((unsigned)rows, (unsigned)((C + width - 1) / width)), dim3(WARP, SUM_LANES), 0, CUDA_COMPUTE, l, C, (const S *)dout, (S *)dtable,
           aligned(dout, dtable) && C % in_pack<S>::value == 0);
}

INSTANTIATE(embedding_backward)
