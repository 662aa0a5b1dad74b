// Causal attention by tiles of queries: what the forward and the backward share.
//
// How: arrays (B, T, Hkv, run) are brought into the order (B, Hkv, T, run) first, run = D for keys and values, (Hq / Hkv) D for queries: then the queries that
//      share a key head are the rows of one matrix, and one batched product does a tile of `rows` of them for all heads: scores (heads, rows, keys) against the
//      keys up to the tile's last one. A tile is at most ATTENTION_TILE positions and heads are taken in parts, so that the tiles stay below
//      cuda_attention_limit bytes: nothing of size T x T is in memory. Only the softmax is written here; the products are cuBLAS's, on tensor cores for 16 bits.
// Numbers: scores, sums and statistics are of wide<S>. What goes into a second product is of the storage type, as tensor cores take it: probabilities, and the
//      scores' gradients, are rounded to 16 bits there, which the CPU's set does not do (kernels/README.md).
// Source: Dao et al. 2022, arXiv:2205.14135, appendix B, for the formulas.
#ifndef KERNELS_CUDA_ATTENTION_H
#define KERNELS_CUDA_ATTENTION_H

#include "kernels/cuda/blas.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/set.h"

enum { ATTENTION_TILE = 128, ATTENTION_LEAST_TILE = 16 };

// Bytes for the tiles of one call; tests lower it.
extern size_t cuda_attention_limit;

struct attention_shape {
    int64_t T, D, Hkv, group, heads; // group: queries' heads for each key head; heads: B Hkv
    int64_t tile, at_once;           // positions of a tile, heads of a part
    int64_t queries() const { return heads * T * group * D; }
    int64_t keys() const { return heads * T * D; }
    int64_t room() const { return at_once * tile * group * T; } // scores of a tile
};

// bytes: for each score.
static inline attention_shape attention_plan(int64_t B, int64_t T, int64_t Hq, int64_t Hkv, int64_t D, size_t bytes)
{
    attention_shape s = {T, D, Hkv, Hq / Hkv, B * Hkv, 0, 0};
    int64_t fit = (int64_t)(cuda_attention_limit / (bytes * (size_t)(s.group * T))), tiles = fit / ATTENTION_LEAST_TILE; // positions; heads with the least tile
    s.at_once = tiles < 1 ? 1 : tiles < s.heads ? tiles : s.heads;
    s.tile = fit / s.at_once;
    s.tile = s.tile > ATTENTION_TILE ? (int64_t)ATTENTION_TILE : s.tile < 1 ? 1 : s.tile;
    s.tile = s.tile > T ? T : s.tile;
    return s;
}

// A tile: the queries first .. first + count - 1 of the heads head .. head + heads - 1.
struct attention_tile {
    int64_t head, heads, first, count;
    int64_t group, T;
    __host__ __device__ int64_t rows() const { return count * group; }
    __host__ __device__ int64_t keys() const { return first + count; }
};

#define EACH_PART(s, t) for (t.head = 0; t.head < s.heads && (t.heads = s.heads - t.head < s.at_once ? s.heads - t.head : s.at_once, true); t.head += s.at_once)

// ---- between (B, T, Hkv, run) and (B, Hkv, T, run) ----

// Where element i of the second lies in the first.
DEVICE int64_t apart(int64_t i, int64_t T, int64_t Hkv, int64_t run)
{
    int64_t row = i / run, c = i - row * run, head = row / T, t = row - head * T, b = head / Hkv;
    return ((b * T + t) * Hkv + head - b * Hkv) * run + c;
}

template <class S> struct gather_op {
    static const int count = in_pack<S>::value;
    int64_t T, Hkv, run;
    const S *from;
    S *to;
    template <int N> __device__ void at(int64_t i) const
    {
        typedef pack<S, N> P;
        *reinterpret_cast<P *>(to + i) = *reinterpret_cast<const P *>(from + apart(i, T, Hkv, run));
    }
};

// divisor: NULL, or one for each D elements.
template <class S> struct scatter_op {
    typedef wide<S> W;
    static const int count = in_pack<S>::value;
    int64_t T, Hkv, run, D;
    const W *from, *divisor;
    S *to;
    template <int N> __device__ void at(int64_t i) const
    {
        values<W, N> v = load<N>(from + i);
        if (divisor != NULL) {
            W by = divisor[i / D];
            EACH(k, N) v[k] /= by;
        }
        store(to + apart(i, T, Hkv, run), v);
    }
};

template <class S> static void gather_heads(const attention_shape &s, int64_t run, const void *from, S *to)
{
    map(gather_op<S>{s.T, s.Hkv, run, (const S *)from, to}, s.heads * s.T * run, aligned(from) && run % in_pack<S>::value == 0);
}

template <class S> static void scatter_heads(const attention_shape &s, int64_t run, const wide<S> *from, const wide<S> *divisor, void *to)
{
    map(scatter_op<S>{s.T, s.Hkv, run, s.D, from, divisor, (S *)to}, s.heads * s.T * run, aligned(to) && s.D % in_pack<S>::value == 0);
}

// ---- products over a tile ----

// scores (heads, rows, keys) = alpha x y^T; x: queries or their like, y: keys or values, of all heads.
template <class S> static void tile_scores(const attention_shape &s, const attention_tile &t, double alpha, const S *x, const S *y, wide<S> *scores)
{
    int64_t D = s.D, run = s.group * D;
    struct product p = {false, true, t.rows(), t.keys(), D, alpha, 0, D, D, t.keys(), t.heads, s.T * run, s.T * D, t.rows() * t.keys()};
    cuda_product(type_of<S>::value, type_of<wide<S>>::value, &p, x + (t.head * s.T + t.first) * run, y + t.head * s.T * D, scores);
}

// to (rows, D of the tile) = weights y.
template <class S> static void tile_rows(const attention_shape &s, const attention_tile &t, const S *weights, const S *y, wide<S> *to)
{
    int64_t D = s.D, run = s.group * D;
    struct product p = {false, false, t.rows(), D, t.keys(), 1, 0, t.keys(), D, D, t.heads, t.rows() * t.keys(), s.T * D, s.T * run};
    cuda_product(type_of<S>::value, type_of<wide<S>>::value, &p, weights, y + t.head * s.T * D, to + (t.head * s.T + t.first) * run);
}

// to (keys, D) = weights^T x, added to what is there unless it is the first tile.
template <class S> static void tile_keys(const attention_shape &s, const attention_tile &t, bool add, const S *weights, const S *x, wide<S> *to)
{
    int64_t D = s.D, run = s.group * D;
    struct product p = {true, false, t.keys(), D, t.rows(), 1, add ? 1.0 : 0.0, t.keys(), D, D, t.heads, t.rows() * t.keys(), s.T * run, s.T * D};
    cuda_product(type_of<S>::value, type_of<wide<S>>::value, &p, weights, x + (t.head * s.T + t.first) * run, to + t.head * s.T * D);
}

// ---- the row of a tile that a row of a block works on ----

// Row i of (heads, rows): its head and position, and where its statistics lie.
struct attention_row {
    int64_t visible; // keys that it sees
    int64_t lse;     // in (B, Hq, T)
    int64_t query;   // in (B, Hkv, T, group)
};

DEVICE attention_row locate_row(const attention_tile &t, int64_t i)
{
    int64_t head = t.head + i / t.rows(), m = i % t.rows(), position = t.first + m / t.group, j = m % t.group;
    return {position + 1, (head * t.group + j) * t.T + position, (head * t.T + position) * t.group + j};
}

#endif
