// Reading state out. See observe.h.
#include "reference/engine/observe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 6, NAME_BYTES = 512 };

static bool is_gradient(enum observe_bit kind) { return kind == OBSERVE_GRAD || kind == OBSERVE_CLIPPED; }

static int state_index(enum observe_bit kind) { return kind == OBSERVE_EXP_AVG_SQ; }

static bool has_state(const struct engine *e, enum observe_bit kind)
{
    enum optimizer_kind wanted = kind == OBSERVE_MOMENTUM ? OPTIMIZER_SGD : OPTIMIZER_ADAMW;
    return e->c->optimizer.kind == wanted && e->state_count > state_index(kind);
}

bool observe_present(const struct engine *e, enum observe_bit kind, int parameter)
{
    if (e->c->parameters[parameter].tied_to >= 0)
        return false;
    if (is_gradient(kind))
        return engine_trains(e, parameter) && e->units[e->wrapping.unit_of[parameter]].has_gradient;
    return kind == OBSERVE_PARAM || has_state(e, kind);
}

enum dtype observe_dtype(const struct engine *e, enum observe_bit kind)
{
    return kind == OBSERVE_PARAM ? e->parameter : is_gradient(kind) ? e->gradient : e->state_type;
}

void *observe_shard(const struct engine *e, const struct unit *u, enum observe_bit kind)
{
    (void)e;
    return kind == OBSERVE_PARAM ? u->shard : is_gradient(kind) ? u->gradient : u->states[state_index(kind)];
}

void observe_read(const struct engine *e, const struct unit *u, enum observe_bit kind, int64_t first, int64_t n, void *to)
{
    enum dtype type = observe_dtype(e, kind);
    e->home->download(to, engine_at(observe_shard(e, u, kind), type, first), (size_t)n * dtype_size(type));
}

// The full parameters of resident units are the parameters themselves, not their rounding to the compute type.
static bool full_is_true(const struct engine *e, enum observe_bit kind)
{
    return kind == OBSERVE_PARAM && e->unit_count > 0 && e->units[0].resident && e->parameter == e->compute;
}

bool observe_holds_all(const struct engine *e, enum observe_bit kind)
{
    return e->mesh.shards == 1 || full_is_true(e, kind);
}

double observe_padding(const struct engine *e, enum observe_bit kind)
{
    double largest = 0;
    for (int i = 0; i < e->unit_count; i++) {
        const struct unit *u = &e->units[i];
        bool present = is_gradient(kind) ? u->has_gradient : kind == OBSERVE_PARAM || has_state(e, kind);
        for (int64_t at = u->count - layout_padding(&u->layout, e->mesh.shard); present && at < u->count; at++) {
            double element; // room for any type
            observe_read(e, u, kind, at, 1, &element);
            double value = fabs(dtype_get(observe_dtype(e, kind), &element, 0));
            largest = value > largest || value != value ? value : largest;
        }
    }
    return largest;
}

static struct tensor *add(struct tensors *out, const struct engine *e, enum observe_bit kind, int parameter, int dims,
                          const int64_t *shape, struct error *error)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s/%s", observe_name(kind), e->c->parameters[parameter].name);
    struct tensor *t = tensors_add(out, name, observe_dtype(e, kind), dims, shape, NULL, false);
    if (!t)
        error_set(error, "observe: '%s' cannot be added", name);
    return t;
}

static int64_t pieces_count(const struct engine *e, const struct layout *l, int member)
{
    int64_t count = 0;
    for (int i = l->first_piece[e->mesh.shard]; i < l->first_piece[e->mesh.shard + 1]; i++)
        count += l->pieces[i].tensor == member ? l->pieces[i].length : 0;
    return count;
}

static void copy_pieces(const struct engine *e, const struct unit *u, int member, enum observe_bit kind, void *to)
{
    const struct layout *l = &u->layout;
    enum dtype type = observe_dtype(e, kind);
    int64_t at = 0;
    for (int i = l->first_piece[e->mesh.shard]; i < l->first_piece[e->mesh.shard + 1]; i++) {
        const struct layout_piece *p = &l->pieces[i];
        if (p->tensor != member)
            continue;
        observe_read(e, u, kind, p->at, p->length, engine_at(to, type, at));
        at += p->length;
    }
}

// What the rank holds of one tensor of a unit: all of it, or its pieces one after another.
static bool add_local(const struct engine *e, const struct unit *u, int member, enum observe_bit kind, struct tensors *out,
                      struct error *error)
{
    enum dtype type = observe_dtype(e, kind);
    int parameter = u->members[member];
    bool all = full_is_true(e, kind);
    int64_t count = all ? e->c->parameters[parameter].count : pieces_count(e, &u->layout, member);
    struct tensor *t = count ? add(out, e, kind, parameter, 1, &count, error) : NULL;
    if (t && all)
        e->on->download(t->data, engine_at(u->full, type, u->layout.tensor_offset[member]), (size_t)count * dtype_size(type));
    else if (t)
        copy_pieces(e, u, member, kind, t->data);
    return t != NULL || count == 0;
}

bool observe_local(const struct engine *e, unsigned what, struct tensors *out, struct error *error)
{
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; what & (1u << k) && i < e->unit_count; i++)
            for (int m = 0; m < e->units[i].member_count; m++)
                if (observe_present(e, (enum observe_bit)(1u << k), e->units[i].members[m]) &&
                    !add_local(e, &e->units[i], m, (enum observe_bit)(1u << k), out, error))
                    return false;
    return true;
}

static bool add_full(const struct engine *e, const struct unit *u, enum observe_bit kind, const void *all, struct tensors *out,
                     struct error *error)
{
    const struct layout *l = &u->layout;
    enum dtype type = observe_dtype(e, kind);
    for (int m = 0; m < u->member_count; m++) {
        const struct case_parameter *c = &e->c->parameters[u->members[m]];
        if (!observe_present(e, kind, u->members[m]))
            continue;
        struct tensor *t = add(out, e, kind, u->members[m], c->dims, c->shape, error);
        if (!t)
            return false;
        for (int s = 0; s < l->shards; s++)
            for (int i = l->first_piece[s]; i < l->first_piece[s + 1]; i++)
                if (l->pieces[i].tensor == m)
                    memcpy(engine_at(t->data, type, l->pieces[i].offset), engine_at(all, type, l->starts[s] + l->pieces[i].at),
                           (size_t)l->pieces[i].length * dtype_size(type));
    }
    return true;
}

static bool gather_kind(struct engine *e, const struct unit *u, enum observe_bit kind, struct tensors *out, struct error *error)
{
    enum dtype type = observe_dtype(e, kind);
    void *all = calloc((size_t)u->layout.full_count + 1, dtype_size(type));
    bool ok = all != NULL || error_set(error, "no memory to observe unit '%s'", u->name);
    void *own = ok ? engine_at(all, type, u->layout.starts[e->mesh.shard]) : NULL;
    if (ok)
        observe_read(e, u, kind, 0, u->count, own);
    ok = ok && (e->mesh.shards == 1 || comm_gather_hosts(&e->comm, type, own, all, u->layout.counts, u->layout.starts, error));
    ok = ok && (e->rank != 0 || add_full(e, u, kind, all, out, error));
    free(all);
    return ok;
}

static bool any_present(const struct engine *e, const struct unit *u, enum observe_bit kind)
{
    for (int m = 0; m < u->member_count; m++)
        if (observe_present(e, kind, u->members[m]))
            return true;
    return false;
}

bool observe_full(struct engine *e, unsigned what, struct tensors *out, struct error *error)
{
    struct comm_count counts[COMM_KINDS];
    bool ok = true;
    memcpy(counts, e->comm.counts, sizeof counts);
    for (int k = 0; ok && k < KINDS; k++)
        for (int i = 0; ok && what & (1u << k) && i < e->unit_count; i++)
            if (any_present(e, &e->units[i], (enum observe_bit)(1u << k)))
                ok = gather_kind(e, &e->units[i], (enum observe_bit)(1u << k), out, error);
    memcpy(e->comm.counts, counts, sizeof counts);
    return ok;
}
