// Causal attention, forward. See attention.h.
//
// How: the exponentials of a tile stay unnormalised until the second product is done; the division comes with the way back to (B, T, Hq, D), and is by the sum of
//      what was multiplied (rounded to 16 bits where that is the type), so that the weights of a row add up to 1. lse has the sum before that rounding.
#include "kernels/cuda/attention.h"

size_t cuda_attention_limit = (size_t)256 << 20;

// Rows of scores to exponentials, in place where both are of one type; zeros beyond the diagonal. Block (threads of a row, rows at once).
template <class S> __global__ void tile_softmax(attention_tile t, const wide<S> *scores, S *weights, wide<S> *lse, wide<S> *sums, bool packed)
{
    typedef wide<S> W;
    const int N = in_pack<S>::value;
    SHARED_ARRAY(W, room, 256 / WARP);
    int64_t rows = t.heads * t.rows(), keys = t.keys();
    for (int64_t begin = (int64_t)blockIdx.x * blockDim.y; begin < rows; begin += (int64_t)gridDim.x * blockDim.y) {
        int64_t i = begin + threadIdx.y;
        bool active = i < rows;
        attention_row row = locate_row(t, active ? i : begin);
        const W *s = scores + (active ? i : begin) * keys;
        W max = -infinity_of(W()), sum = 0, rounded_sum = 0;
        for (int64_t c = (int64_t)threadIdx.x * N; c < row.visible; c += (int64_t)blockDim.x * N) {
            values<W, N> v = load_part<N>(s + c, keys - c, packed);
            EACH(k, N) max = c + k < row.visible ? larger(v[k], max) : max;
        }
        max = row_reduce<largest_of>(max, -infinity_of(W()), room);
        for (int64_t c = (int64_t)threadIdx.x * N; active && c < keys; c += (int64_t)blockDim.x * N) {
            values<W, N> v = load_part<N>(s + c, keys - c, packed);
            EACH(k, N)
            {
                S rounded;
                v[k] = c + k < row.visible ? exp_of(v[k] - max) : W(0);
                narrow(v[k], &rounded);
                sum += v[k];
                rounded_sum += widen(rounded);
            }
            store_part(weights + i * keys + c, v, keys - c, packed);
        }
        sum = row_sum(sum, room);
        rounded_sum = row_sum(rounded_sum, room);
        if (active && threadIdx.x == 0) {
            lse[row.lse] = max + log_of(sum);
            sums[row.query] = rounded_sum;
        }
    }
}

template <class S>
void cuda_attention_forward(int64_t B, int64_t T, int64_t Hq, int64_t Hkv, int64_t D, double scale, const void *q, const void *k, const void *v, void *out, void *lse)
{
    typedef wide<S> W;
    const bool same = sizeof(S) == sizeof(W);
    if (B * T * Hq * D == 0)
        return;
    attention_shape s = attention_plan(B, T, Hq, Hkv, D, sizeof(W) + (same ? 0 : sizeof(S)));
    size_t total = 0, at_q = cuda_scratch_place(&total, s.queries(), sizeof(S)), at_k = cuda_scratch_place(&total, s.keys(), sizeof(S));
    size_t at_v = cuda_scratch_place(&total, s.keys(), sizeof(S)), at_out = cuda_scratch_place(&total, s.queries(), sizeof(W));
    size_t at_sums = cuda_scratch_place(&total, s.heads * T * s.group, sizeof(W)), at_scores = cuda_scratch_place(&total, s.room(), sizeof(W));
    size_t at_weights = cuda_scratch_place(&total, same ? 0 : s.room(), sizeof(S));
    char *memory = cuda_scratch_take(total);
    if (memory == NULL)
        return;
    S *heads_q = (S *)(memory + at_q), *heads_k = (S *)(memory + at_k), *heads_v = (S *)(memory + at_v);
    W *sums = (W *)(memory + at_sums), *heads_out = (W *)(memory + at_out), *scores = (W *)(memory + at_scores);
    S *weights = same ? (S *)scores : (S *)(memory + at_weights);
    gather_heads<S>(s, s.group * D, q, heads_q);
    gather_heads<S>(s, D, k, heads_k);
    gather_heads<S>(s, D, v, heads_v);
    attention_tile t = {0, 0, 0, 0, s.group, T};
    EACH_PART(s, t)
        for (t.first = 0; t.first < T; t.first += s.tile) {
            t.count = T - t.first < s.tile ? T - t.first : s.tile;
            tile_scores<S>(s, t, scale, heads_q, heads_k, scores);
            unsigned threads = row_threads((t.keys() + in_pack<S>::value - 1) / in_pack<S>::value), at_once = rows_at_once(threads);
            LAUNCH(tile_softmax<S>, dim3(launch_grid(t.heads * t.rows(), at_once)), dim3(threads, at_once), 0, CUDA_COMPUTE, t, scores, weights, (W *)lse, sums,
                   t.keys() % in_pack<S>::value == 0);
            tile_rows<S>(s, t, weights, heads_v, heads_out);
        }
    scatter_heads<S>(s, s.group * D, heads_out, sums, out);
}

INSTANTIATE(attention_forward)
