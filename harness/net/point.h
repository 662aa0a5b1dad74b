// What is measured: one point is a call, or two at once, of given sizes, made in a given way. The harness writes points into a job, the worker reads them.
//
// Sizes are as nccl-tests counts them: `count` is the elements of the whole buffer, that of an all-gather's output and of a reduce-scatter's input, so that
// one rank's part is count / ranks of it.
#ifndef HARNESS_NET_POINT_H
#define HARNESS_NET_POINT_H

#include <jansson.h>

#include "harness/protocol/error.h"
#include "kernels/dtype.h"

// reduce-scatter is MPI_Reduce_scatter, in equal parts too; reduce-scatter-block is MPI_Reduce_scatter_block. one-way: rank r sends to r + n/2; exchange: both send to each other at once; link: rank `root` sends to the next, the others look on.
enum net_op { NET_ALL_GATHER, NET_REDUCE_SCATTER, NET_ALL_REDUCE, NET_BROADCAST, NET_ONE_WAY, NET_EXCHANGE, NET_LINK, NET_REDUCE_SCATTER_BLOCK, NET_OPS };
// Who takes part: all ranks; all again, on a communicator of its own; consecutive ranks (the shards of hybrid); those of one place in each of these (its replicas).
enum net_group { NET_WORLD, NET_TWIN, NET_WITHIN, NET_BETWEEN, NET_GROUPS };
enum net_how { NET_BLOCKING, NET_NONBLOCKING, NET_HOWS };
// Rows of a tensor over ranks as torch.chunk deals them: n rows; 2n - 1 rows, so that the last rank has half a part; n - 1 rows, so that it has none.
enum net_shape { NET_EVEN, NET_UNEVEN, NET_EMPTY, NET_SHAPES };
// What else a rank does between start and end of the call: nothing; a matrix product; the same in slices with a test for completion after each.
enum net_product { NET_IDLE, NET_PRODUCT, NET_PRODUCT_TESTED, NET_PRODUCTS };

// What is recorded of a point [s, slowest rank]. Beside a product three things take turns: the call, the product, both at once, of which the whole is NET_SECONDS,
// and each side is told too. A bare loop takes turns with a batch of calls.
enum net_series { NET_SECONDS, NET_CALL_ALONE, NET_PRODUCT_ALONE, NET_PRODUCT_BESIDE, NET_CALL_BESIDE, NET_BARE, NET_BATCH, NET_SERIES };

struct net_call { enum net_op op; enum net_group group; enum dtype type; int64_t count; int root; };
enum { NET_CALLS = 2 };
struct net_point {
    const char *measure;  // the part of the measurement that it belongs to (plan.h)
    const char *label;    // unit of the model, or ""
    int call_count;
    struct net_call calls[NET_CALLS];
    enum net_how how;
    enum net_shape shape;
    bool in_place;
    int offset;           // bytes by which buffers are off the alignment of 64
    enum net_product product;
    bool bare;            // a bare loop takes turns with it
};
struct net_job {
    uint64_t seed;
    int launch;           // which start this is
    double seconds;       // for all points
    double narrow;        // half width of the interval at which a point is done; 0: never
    int within;           // ranks of NET_WITHIN, 0: there are no two tiers
    bool drain;           // the fabric saves up what it may send: calls right behind another are timed
    int corrupt_rank;     // whose output is damaged before it is checked, -1: nobody's
    int64_t corrupt_iteration;
    int point_count;
    struct net_point *points;
};

extern const char *const net_op_names[NET_OPS + 1], *const net_group_names[NET_GROUPS + 1], *const net_how_names[NET_HOWS + 1],
    *const net_shape_names[NET_SHAPES + 1], *const net_product_names[NET_PRODUCTS + 1], *const net_series_names[NET_SERIES + 1]; // the last: "seconds", "call alone", ...

// "all-gather", "all-gather + reduce-scatter"; buffer holds it.
const char *net_point_name(const struct net_point *p, char buffer[64]);
bool net_op_reduces(enum net_op op);
bool net_op_runs_ahead(enum net_op op); // a rank may end it before others have begun

// Elements of each of n ranks (their sum may be less than count: rows are whole), and where they start.
void net_shards(int64_t count, int n, enum net_shape shape, int *counts, int *starts);
// Elements that net_shards deals out.
int64_t net_dealt(int64_t count, int n, enum net_shape shape);
// How often the buffer's bytes pass the line of the rank where they do so most (nccl-tests' factor of busbw): all-gather and reduce-scatter (n-1)/n,
// in uneven shapes 1 - smallest part; all-reduce 2 (n-1)/n; else 1.
double net_bus_factor(const struct net_call *c, int n, enum net_shape shape);

json_t *net_point_write(const struct net_point *p);
// Texts are borrowed from the object.
bool net_point_read(json_t *object, struct net_point *out, struct error *error);
bool net_job_write(const struct net_job *job, const char *path, struct error *error);
// *root holds the texts and is to be released after the points.
bool net_job_read(const char *path, struct net_job *out, json_t **root, struct error *error);

#endif
