// What MPI says of a call's data: elements, types, neighbours. Only by PMPI, so that nothing here is counted.
//
// The probe is loaded into workers without MPI too, so it must not need MPI's library: functions are looked up when first used, and MPI's
// data (MPI_FLOAT is the address of some in Open MPI) is never named. Types are known by their names instead.
#ifndef HARNESS_PROBES_PRELOAD_MPI_DATA_H
#define HARNESS_PROBES_PRELOAD_MPI_DATA_H

#include <mpi.h>
#include <stdatomic.h>
#include <string.h>

#include "harness/probes/recorder.h"

// PMPI_<name>, found once. MPI_<name> lends its type alone: where this probe has no such wrapper, naming it would need MPI's library.
#define PMPI(name) __extension__({ \
    static _Atomic(void *) real_; \
    if (real_ == NULL) \
        real_ = probe_real("PMPI_" #name, NULL); \
    (__typeof__(&MPI_##name))real_; })

struct data_kind { enum probe_type type; int64_t size; };
static const struct data_kind kind_of_bytes = {PROBE_TYPE_OTHER, 1}; // where elements have no one type

static const struct { const char *name; enum probe_type type; } mpi_types[] = {
    {"MPI_FLOAT", PROBE_F32}, {"MPI_REAL", PROBE_F32}, {"MPI_REAL4", PROBE_F32}, {"MPI_DOUBLE", PROBE_F64}, {"MPI_DOUBLE_PRECISION", PROBE_F64},
    {"MPI_REAL8", PROBE_F64}, {"MPI_BYTE", PROBE_BYTE}, {"MPI_CHAR", PROBE_BYTE}, {"MPI_SIGNED_CHAR", PROBE_BYTE},
    {"MPI_UNSIGNED_CHAR", PROBE_BYTE}, {"MPI_INT8_T", PROBE_BYTE}, {"MPI_UINT8_T", PROBE_BYTE}, {"MPI_INT", PROBE_I32},
    {"MPI_INT32_T", PROBE_I32}, {"MPI_INTEGER", PROBE_I32}, {"MPI_LONG", PROBE_I64}, {"MPI_LONG_LONG", PROBE_I64},
    {"MPI_LONG_LONG_INT", PROBE_I64}, {"MPI_INT64_T", PROBE_I64}, {"MPI_UINT16_T", PROBE_U16}, {"MPI_UNSIGNED_SHORT", PROBE_U16}};

static int64_t size_of(MPI_Datatype type)
{
    int size = 0;
    return PMPI(Type_size)(type, &size) == MPI_SUCCESS && size > 0 ? size : 0;
}

static int64_t bytes_of(int64_t count, MPI_Datatype type) { return count * size_of(type); }

// MPI's own types live as long as the process and are asked for at every call, which costs more than the record: they are remembered.
enum { MPI_TYPES_KEPT = 64 };
static struct { _Atomic(MPI_Datatype) type; struct data_kind kind; } mpi_types_kept[MPI_TYPES_KEPT];
static atomic_int mpi_types_next;

static void keep_kind(MPI_Datatype type, struct data_kind kind)
{
    int i = atomic_fetch_add(&mpi_types_next, 1);
    if (i >= MPI_TYPES_KEPT)
        return;
    mpi_types_kept[i].kind = kind;
    atomic_store_explicit(&mpi_types_kept[i].type, type, memory_order_release);
}

// A type that a program made is OTHER, whatever it is made of.
static struct data_kind ask_kind(MPI_Datatype type)
{
    struct data_kind kind = {PROBE_TYPE_OTHER, size_of(type)};
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length, integers, addresses, types, combiner = MPI_COMBINER_DUP;
    if (PMPI(Type_get_envelope)(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS || combiner != MPI_COMBINER_NAMED ||
        PMPI(Type_get_name)(type, name, &length) != MPI_SUCCESS)
        return kind;
    for (size_t i = 0; i < sizeof mpi_types / sizeof *mpi_types; i++)
        if (strcmp(name, mpi_types[i].name) == 0)
            kind.type = mpi_types[i].type;
    keep_kind(type, kind);
    return kind;
}

static struct data_kind kind_of(MPI_Datatype type)
{
    int kept = atomic_load_explicit(&mpi_types_next, memory_order_relaxed);
    for (int i = 0; i < kept && i < MPI_TYPES_KEPT; i++)
        if (atomic_load_explicit(&mpi_types_kept[i].type, memory_order_acquire) == type)
            return mpi_types_kept[i].kind;
    return ask_kind(type);
}

static int64_t sum(const int counts[], int64_t n)
{
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++)
        total += counts[i];
    return total;
}

static int64_t sum_bytes(const int counts[], const MPI_Datatype types[], int64_t n)
{
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++)
        total += bytes_of(counts[i], types[i]);
    return total;
}

// ---- neighbours of a process in a topology (MPI 3.1, section 7.6) --------------------------------
struct neighbours { int64_t in, out; };

static struct neighbours neighbours(MPI_Comm comm)
{
    int topology = MPI_UNDEFINED, me = 0, in = 0, out = 0, weighted;
    PMPI(Topo_test)(comm, &topology);
    if (topology == MPI_CART && PMPI(Cartdim_get)(comm, &in) == MPI_SUCCESS)
        in = out = 2 * in;
    else if (topology == MPI_GRAPH && PMPI(Comm_rank)(comm, &me) == MPI_SUCCESS && PMPI(Graph_neighbors_count)(comm, me, &in) == MPI_SUCCESS)
        out = in;
    else if (topology == MPI_DIST_GRAPH)
        PMPI(Dist_graph_neighbors_count)(comm, &in, &out, &weighted);
    return (struct neighbours){in, out};
}

// Ranks that this one sends to, in the order of the call's counts.
static void destinations(MPI_Comm comm, struct neighbours n, int me, int to[])
{
    int topology = MPI_UNDEFINED, from[n.in + 1], from_weights[n.in + 1], to_weights[n.out + 1];
    PMPI(Topo_test)(comm, &topology);
    if (topology == MPI_GRAPH)
        PMPI(Graph_neighbors)(comm, me, (int)n.out, to);
    else if (topology == MPI_DIST_GRAPH)
        PMPI(Dist_graph_neighbors)(comm, (int)n.in, from, from_weights, (int)n.out, to, to_weights);
    else
        for (int d = 0; d < n.out / 2; d++)
            PMPI(Cart_shift)(comm, d, 1, &to[2 * d], &to[2 * d + 1]);
}

// Bytes to neighbours that are not this rank itself; a step of 0: the same count, or type, for all.
static int64_t sent_to_neighbours(MPI_Comm comm, const int counts[], int step, const MPI_Datatype types[], int type_step)
{
    struct neighbours n = neighbours(comm);
    int64_t bytes = 0;
    int me = 0, to[n.out + 1];
    PMPI(Comm_rank)(comm, &me);
    destinations(comm, n, me, to);
    for (int i = 0; i < n.out; i++)
        if (to[i] != me && to[i] != MPI_PROC_NULL)
            bytes += bytes_of(counts[i * step], types[i * type_step]);
    return bytes;
}

#endif
