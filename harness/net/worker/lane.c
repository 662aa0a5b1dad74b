// A call with its buffers: made, filled, checked. See worker.h.
//
// Every set of buffers lies between guards, so that what is written beside a buffer is seen too, and an input that a call was not to change is checked as well.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/net/worker/worker.h"
#include "harness/protocol/memory.h"

enum { ALIGNMENT = 64, GUARD_BYTE = 0xa5 };

static bool input_is_part(enum net_op op) { return op == NET_ALL_GATHER; }
static bool output_is_part(enum net_op op) { return op == NET_REDUCE_SCATTER || op == NET_REDUCE_SCATTER_BLOCK; }

static MPI_Datatype mpi_type(enum dtype type)
{
    return type == DTYPE_F32 ? MPI_FLOAT : type == DTYPE_F64 ? MPI_DOUBLE : MPI_UINT16_T; // 16-bit floats are moved as they are
}

// Pairs lie half the ranks apart, so that on several hosts they cross between them; a link goes to the next rank.
static void choose_partner(struct lane *l)
{
    int half = l->size / 2, r = l->rank, next = (l->call.root + 1) % l->size;
    l->partner = -1;
    if (l->call.op == NET_LINK && l->size > 1 && (r == l->call.root || r == next))
        l->partner = r == next ? l->call.root : next;
    if ((l->call.op == NET_ONE_WAY || l->call.op == NET_EXCHANGE) && r < 2 * half)
        l->partner = (r + half) % (2 * half);
    l->sends = l->partner >= 0 && (l->call.op == NET_LINK ? r == l->call.root : l->call.op == NET_EXCHANGE || r < half);
    l->receives = l->partner >= 0 && (l->call.op == NET_EXCHANGE || !l->sends);
}

bool lane_open(struct lane *l, const struct net_point *p, int which, const MPI_Comm *groups, struct error *error)
{
    const struct net_call *c = &p->calls[which];
    *l = (struct lane){.call = *c, .shape = p->shape, .comm = groups[c->group], .mpi = mpi_type(c->type), .element = dtype_size(c->type),
                       .in_place = p->in_place || c->op == NET_BROADCAST};
    if (l->comm == MPI_COMM_NULL)
        return error_set(error, "%s: the group '%s' is not there", net_op_names[c->op], net_group_names[c->group]);
    if (net_op_reduces(c->op) && c->type != DTYPE_F32 && c->type != DTYPE_F64)
        return error_set(error, "%s of %s: MPI has no sum of it", net_op_names[c->op], dtype_name(c->type));
    MPI_Comm_rank(l->comm, &l->rank);
    MPI_Comm_size(l->comm, &l->size);
    l->bits = values_bits(c->type, net_op_reduces(c->op) ? l->size : 1);
    l->counts = memory_zeros((size_t)l->size, sizeof *l->counts);
    l->starts = memory_zeros((size_t)l->size, sizeof *l->starts);
    l->keys = memory_zeros((size_t)l->size, sizeof *l->keys);
    bool parts = input_is_part(c->op) || output_is_part(c->op);
    net_shards(c->count, l->size, p->shape, l->counts, l->starts);
    l->total = parts ? net_dealt(c->count, l->size, p->shape) : c->count;
    choose_partner(l);
    size_t whole = (size_t)l->total * l->element, part = (size_t)l->counts[l->rank] * l->element;
    l->in_bytes = input_is_part(c->op) ? part : whole;
    l->out_bytes = output_is_part(c->op) ? part : whole;
    return calls_choose(l, p->how, error);
}

// Room of one buffer with its guards; every buffer begins at the alignment, offset bytes behind it.
static size_t room(size_t bytes) { return (bytes + 2 * LANE_GUARD + 2 * ALIGNMENT) / ALIGNMENT * ALIGNMENT; }
static size_t whole_bytes(const struct lane *l) { return l->in_bytes > l->out_bytes ? l->in_bytes : l->out_bytes; }

size_t lane_bytes(const struct lane *l) { return l->in_place ? room(whole_bytes(l)) : room(l->in_bytes) + room(l->out_bytes); }

static char *place(char **at, size_t bytes, int offset)
{
    char *data = *at + LANE_GUARD + offset;
    memset(*at, GUARD_BYTE, room(bytes));
    *at += room(bytes);
    return data;
}

bool lane_allocate(struct lane *l, int sets, int offset)
{
    l->memory = aligned_alloc(ALIGNMENT, lane_bytes(l) * (size_t)sets);
    l->sets = l->memory != NULL ? sets : 0;
    char *at = l->memory;
    for (int k = 0; k < l->sets; k++) {
        l->in[k] = l->out[k] = place(&at, l->in_place ? whole_bytes(l) : l->in_bytes, offset);
        if (!l->in_place)
            l->out[k] = place(&at, l->out_bytes, offset);
        else if (input_is_part(l->call.op))
            l->in[k] = (char *)l->out[k] + (size_t)l->starts[l->rank] * l->element;
        l->send[k] = l->in_place ? MPI_IN_PLACE : l->in[k];
        l->recv[k] = l->out[k];
    }
    return l->memory != NULL;
}

void lane_release(struct lane *l)
{
    free(l->memory);
    l->memory = NULL;
    l->sets = 0;
}

void lane_close(struct lane *l)
{
    lane_release(l);
    free(l->counts);
    free(l->starts);
    free(l->keys);
}

static int64_t input_first(const struct lane *l) { return input_is_part(l->call.op) ? l->starts[l->rank] : 0; }
static bool has_input(const struct lane *l) { return l->call.op == NET_BROADCAST ? l->rank == 0 : l->call.op == NET_ONE_WAY || l->call.op == NET_LINK ? l->sends : true; }

// As after a call, the output is what the caches have seen last: an input that was just written would be read from nearer than where calls follow each other.
static void look_over_outputs(const struct lane *l)
{
    enum { LINE = 64 };
    for (int k = 0; k < l->sets; k++)
        for (size_t i = 0; i < l->out_bytes; i += LINE)
            (void)((const volatile char *)l->out[k])[i];
}

void lane_fill(struct lane *l, uint64_t seed, int which, int64_t first_iteration)
{
    for (int k = 0; k < l->sets && has_input(l); k++)
        values_fill(l->call.type, l->in[k], (int64_t)(l->in_bytes / l->element), values_key(seed, l->rank, first_iteration + k, which), input_first(l), l->bits);
    look_over_outputs(l);
}

static void check_values(struct lane *l, uint64_t seed, int which, int set, int64_t iteration, struct mismatch *out)
{
    for (int r = 0; r < l->size; r++)
        l->keys[r] = values_key(seed, r, iteration, which);
    const char *found = l->out[set];
    switch (l->call.op) {
    case NET_ALL_GATHER:
        for (int r = 0; r < l->size; r++)
            values_check(l->call.type, found + (size_t)l->starts[r] * l->element, l->counts[r], &l->keys[r], 1, l->starts[r], l->bits, out);
        break;
    case NET_REDUCE_SCATTER:
    case NET_REDUCE_SCATTER_BLOCK:
        values_check(l->call.type, found, l->counts[l->rank], l->keys, l->size, l->starts[l->rank], l->bits, out);
        break;
    case NET_ALL_REDUCE:
        values_check(l->call.type, found, l->total, l->keys, l->size, 0, l->bits, out);
        break;
    case NET_BROADCAST:
        values_check(l->call.type, found, l->total, &l->keys[0], 1, 0, l->bits, out);
        break;
    default:
        if (l->receives)
            values_check(l->call.type, found, l->total, &l->keys[l->partner], 1, 0, l->bits, out);
    }
}

static int64_t damaged(const char *from, size_t bytes)
{
    int64_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += (unsigned char)from[i] != GUARD_BYTE;
    return count;
}

static int64_t check_guards(const char *data, size_t bytes, int64_t so_far)
{
    return so_far + damaged(data - LANE_GUARD, LANE_GUARD) + damaged(data + bytes, LANE_GUARD);
}

void lane_check(struct lane *l, uint64_t seed, int which, int set, int64_t iteration, struct lane_damage *out)
{
    check_values(l, seed, which, set, iteration, &out->values);
    if (l->in_place) {
        out->guards = check_guards(l->out[set], whole_bytes(l), out->guards);
        return;
    }
    uint32_t own = values_key(seed, l->rank, iteration, which);
    if (has_input(l))
        values_check(l->call.type, l->in[set], (int64_t)(l->in_bytes / l->element), &own, 1, input_first(l), l->bits, &out->input);
    out->guards = check_guards(l->in[set], l->in_bytes, out->guards);
    out->guards = check_guards(l->out[set], l->out_bytes, out->guards);
}

void lane_corrupt(struct lane *l, int set)
{
    size_t last = (l->out_bytes / l->element - 1) * l->element;
    if (l->out_bytes > 0)
        ((char *)l->out[set])[last + l->element - 1] ^= 1; // of the exponent, in little endian: never rounded away
}
