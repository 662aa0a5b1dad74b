// Causal attention, backward: the probabilities again from lse, tile by tile. See attention.h.
//
// How: tiles go from the last to the first, so that the first one done writes all of dk and dv and the others add to them, in float, in one order.
#include "kernels/cuda/attention.h"

// delta (B, Hkv, T, group) = sum_d dout out, of each query; a warp each.
template <class S> __global__ void query_deltas(attention_tile t, int64_t Hkv, int64_t D, const S *out, const S *dout, wide<S> *delta)
{
    typedef wide<S> W;
    int64_t warp = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / WARP, warps = (int64_t)gridDim.x * blockDim.x / WARP, lane = threadIdx.x % WARP;
    for (int64_t i = warp; i < t.heads * t.T * t.group; i += warps) {
        int64_t at = apart(i * D, t.T, Hkv, t.group * D);
        W sum = 0;
        for (int64_t d = lane; d < D; d += WARP)
            sum += widen(dout[at + d]) * widen(out[at + d]);
        sum = warp_reduce<sum_of>(sum);
        if (lane == 0)
            delta[i] = sum;
    }
}

// p = exp(s - lse), ds = p (dp - delta) scale on the visible part of a row, 0 beyond; in place where the types are one.
template <class S>
__global__ void tile_gradients(attention_tile t, wide<S> scale, const wide<S> *scores, const wide<S> *dweights, const wide<S> *lse, const wide<S> *delta,
                               S *weights, S *dscores, bool packed)
{
    typedef wide<S> W;
    const int N = in_pack<S>::value;
    int64_t rows = t.heads * t.rows(), keys = t.keys();
    for (int64_t i = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; i < rows; i += (int64_t)gridDim.x * blockDim.y) {
        attention_row row = locate_row(t, i);
        W log_sum = lse[row.lse], d = delta[row.query];
        for (int64_t c = (int64_t)threadIdx.x * N; c < keys; c += (int64_t)blockDim.x * N) {
            values<W, N> p = load_part<N>(scores + i * keys + c, keys - c, packed), ds = load_part<N>(dweights + i * keys + c, keys - c, packed);
            EACH(k, N)
            {
                bool visible = c + k < row.visible;
                p[k] = visible ? exp_of(p[k] - log_sum) : W(0);
                ds[k] = visible ? p[k] * (ds[k] - d) * scale : W(0);
            }
            store_part(weights + i * keys + c, p, keys - c, packed);
            store_part(dscores + i * keys + c, ds, keys - c, packed);
        }
    }
}

// The arrays in the order of heads, and the tiles.
template <class S> struct backward_arrays {
    S *q, *k, *v, *dout;
    wide<S> *dq, *dk, *dv, *delta, *scores, *dweights;
    S *weights, *dscores;
};

template <class S> static bool backward_take(const attention_shape &s, backward_arrays<S> *a)
{
    typedef wide<S> W;
    const bool same = sizeof(S) == sizeof(W);
    const int64_t counts[] = {s.queries(), s.keys(), s.keys(), s.queries(), s.queries(), s.keys(), s.keys(), s.heads * s.T * s.group, s.room(), s.room(),
                              same ? 0 : s.room(), same ? 0 : s.room()};
    size_t at[12], total = 0;
    for (int i = 0; i < 12; i++)
        at[i] = cuda_scratch_place(&total, counts[i], i < 4 || i >= 10 ? sizeof(S) : sizeof(W));
    char *memory = cuda_scratch_take(total);
    if (memory == NULL)
        return false;
    S **narrow_at[] = {&a->q, &a->k, &a->v, &a->dout};
    W **wide_at[] = {&a->dq, &a->dk, &a->dv, &a->delta, &a->scores, &a->dweights};
    for (int i = 0; i < 4; i++)
        *narrow_at[i] = (S *)(memory + at[i]);
    for (int i = 0; i < 6; i++)
        *wide_at[i] = (W *)(memory + at[4 + i]);
    a->weights = same ? (S *)a->scores : (S *)(memory + at[10]);
    a->dscores = same ? (S *)a->dweights : (S *)(memory + at[11]);
    return true;
}

template <class S> static void backward_tile(const attention_shape &s, const attention_tile &t, double scale, const wide<S> *lse, const backward_arrays<S> &a)
{
    const int N = in_pack<S>::value;
    unsigned threads = row_threads((t.keys() + N - 1) / N), at_once = rows_at_once(threads);
    bool add = t.keys() < s.T;
    tile_scores<S>(s, t, scale, a.q, a.k, a.scores);
    tile_scores<S>(s, t, 1, a.dout, a.v, a.dweights);
    LAUNCH(tile_gradients<S>, dim3(launch_grid(t.heads * t.rows(), at_once)), dim3(threads, at_once), 0, CUDA_COMPUTE, t, (wide<S>)scale, a.scores, a.dweights, lse,
           a.delta, a.weights, a.dscores, t.keys() % N == 0);
    tile_keys<S>(s, t, add, a.weights, a.dout, a.dv);
    tile_rows<S>(s, t, a.dscores, a.k, a.dq);
    tile_keys<S>(s, t, add, a.dscores, a.q, a.dk);
}

template <class S>
void cuda_attention_backward(int64_t B, int64_t T, int64_t Hq, int64_t Hkv, int64_t D, double scale, const void *q, const void *k, const void *v, const void *out,
                             const void *lse, const void *dout, void *dq, void *dk, void *dv)
{
    typedef wide<S> W;
    if (B * T * Hkv * D == 0)
        return;
    attention_shape s = attention_plan(B, T, Hq, Hkv, D, 2 * (sizeof(W) + (sizeof(S) == sizeof(W) ? 0 : sizeof(S))));
    backward_arrays<S> a;
    if (!backward_take<S>(s, &a))
        return;
    gather_heads<S>(s, s.group * D, q, a.q);
    gather_heads<S>(s, D, k, a.k);
    gather_heads<S>(s, D, v, a.v);
    gather_heads<S>(s, s.group * D, dout, a.dout);
    attention_tile t = {0, s.heads, 0, 0, s.group, T};
    LAUNCH(query_deltas<S>, dim3(launch_grid(s.heads * T * s.group, 256 / WARP)), dim3(256), 0, CUDA_COMPUTE, t, Hkv, D, (const S *)out, (const S *)dout, a.delta);
    EACH_PART(s, t)
        for (t.first = (T - 1) / s.tile * s.tile; t.first >= 0; t.first -= s.tile) {
            t.count = T - t.first < s.tile ? T - t.first : s.tile;
            backward_tile<S>(s, t, scale, (const W *)lse, a);
        }
    scatter_heads<S>(s, s.group * D, a.dq, NULL, dq);
    scatter_heads<S>(s, D, a.dk, NULL, dk);
    scatter_heads<S>(s, D, a.dv, NULL, dv);
}

INSTANTIATE(attention_backward)
