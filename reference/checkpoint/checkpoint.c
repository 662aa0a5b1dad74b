// Saving and loading shards. See checkpoint.h; the index is in index.c.
#include "reference/checkpoint/checkpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "reference/checkpoint/index.h"
#include "reference/engine/fault.h"
#include "reference/engine/observe.h"

enum { PATH_BYTES = 4096, NAME_BYTES = 512 };

static const enum observe_bit saved_kinds[] = {OBSERVE_PARAM, OBSERVE_EXP_AVG, OBSERVE_EXP_AVG_SQ, OBSERVE_MOMENTUM};
enum { SAVED_KINDS = sizeof saved_kinds / sizeof *saved_kinds };

static void shard_path(char *path, const char *folder, int shard)
{
    snprintf(path, PATH_BYTES, "%s/shard%d.safetensors", folder, shard);
}

// mkdir -p of the last component and its parents.
static bool make_folder(const char *folder, struct error *error)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s", folder);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0777);
        *slash = '/';
    }
    return !mkdir(path, 0777) || errno == EEXIST || error_set(error, "%s: cannot be made: %s", folder, strerror(errno));
}

// ---- save ----

static bool add_pieces(const struct engine *e, const struct unit *u, enum observe_bit kind, struct tensors *set, struct error *error)
{
    const struct layout *l = &u->layout;
    enum dtype type = observe_dtype(e, kind);
    for (int i = l->first_piece[e->mesh.shard]; i < l->first_piece[e->mesh.shard + 1]; i++) {
        const struct layout_piece *p = &l->pieces[i];
        char name[NAME_BYTES];
        if (!observe_present(e, kind, u->members[p->tensor]))
            continue;
        snprintf(name, sizeof name, "%s/%s", observe_name(kind), e->c->parameters[u->members[p->tensor]].name);
        struct tensor *t = tensors_add(set, name, type, 1, &p->length, NULL, false);
        if (!t)
            return error_set(error, "checkpoint: '%s' twice", name);
        observe_read(e, u, kind, p->at, p->length, t->data);
    }
    return true;
}

static bool save_shard(const struct engine *e, const char *folder, struct error *error)
{
    struct tensors set = {0};
    char path[PATH_BYTES];
    bool ok = true;
    shard_path(path, folder, e->mesh.shard);
    for (int k = 0; ok && k < SAVED_KINDS; k++)
        for (int i = 0; ok && i < e->unit_count; i++)
            ok = add_pieces(e, &e->units[i], saved_kinds[k], &set, error);
    ok = ok && tensors_write(path, &set, error);
    tensors_free(&set);
    return ok;
}

bool checkpoint_save(struct engine *e, const char *folder, struct error *error)
{
    bool ok = e->rank != 0 || make_folder(folder, error);
    ok = ok && comm_barrier(&e->comm, error) && (e->mesh.replica != 0 || save_shard(e, folder, error)) &&
         comm_barrier(&e->comm, error);
    return ok && (e->rank != 0 || index_write(e, folder, error)) && comm_barrier(&e->comm, error);
}

// ---- load ----

struct source { const char *folder; struct index *index; int open_shard; struct tensors open; };

// The file of one shard, kept open until another is asked for.
static bool open_shard(struct source *s, int shard, struct error *error)
{
    char path[PATH_BYTES];
    if (s->open_shard == shard)
        return true;
    if (s->open_shard >= 0)
        tensors_free(&s->open);
    s->open_shard = -1;
    shard_path(path, s->folder, shard);
    if (!tensors_read(path, &s->open, error))
        return false;
    s->open_shard = shard;
    return true;
}

// Copies what a stored piece and an own piece have in common; returns how many elements, -1 on failure.
static int64_t copy_overlap(struct source *s, const struct index_tensor *t, const struct index_piece *from,
                            const struct layout_piece *to, enum dtype type, void *shard, struct error *error)
{
    int64_t begin = from->offset > to->offset ? from->offset : to->offset;
    int64_t end_from = from->offset + from->length, end_to = to->offset + to->length;
    int64_t end = end_from < end_to ? end_from : end_to;
    if (begin >= end)
        return 0;
    if (!open_shard(s, from->shard, error))
        return -1;
    const struct tensor *stored = tensors_find(&s->open, t->name);
    if (!stored || stored->dtype != t->dtype || stored->count != from->length) {
        error_set(error, "%s: shard %d: '%s' is missing or not as the index says", s->folder, from->shard, t->name);
        return -1;
    }
    kernels_cast(end - begin, t->dtype, engine_at(stored->data, t->dtype, begin - from->offset), type,
                 engine_at(shard, type, (FAULT(load_forgets_offsets) ? 0 : to->at) + begin - to->offset));
    return end - begin;
}

static bool load_piece(struct engine *e, struct source *s, struct unit *u, enum observe_bit kind, const struct layout_piece *to,
                       void *part, struct error *error)
{
    char name[NAME_BYTES];
    const struct case_parameter *p = &e->c->parameters[u->members[to->tensor]];
    int64_t found = 0;
    snprintf(name, sizeof name, "%s/%s", observe_name(kind), p->name);
    const struct index_tensor *t = index_find(s->index, name);
    if (!t || t->count != p->count)
        return error_set(error, "%s/index.json: '%s' of %lld elements: found %lld, expected as many", s->folder, name,
                         (long long)p->count, t ? (long long)t->count : 0LL);
    for (int i = 0; i < t->piece_count; i++) {
        int64_t copied = copy_overlap(s, t, &t->pieces[i], to, observe_dtype(e, kind), part, error);
        if (copied < 0)
            return false;
        found += copied;
    }
    return found == to->length || error_set(error, "%s/index.json: '%s': found %lld of %lld elements from %lld", s->folder, name,
                                            (long long)found, (long long)to->length, (long long)to->offset);
}

static bool load_pieces(struct engine *e, struct source *s, struct unit *u, enum observe_bit kind, void *part, struct error *error)
{
    const struct layout *l = &u->layout;
    for (int i = l->first_piece[e->mesh.shard]; i < l->first_piece[e->mesh.shard + 1]; i++)
        if (observe_present(e, kind, u->members[l->pieces[i].tensor]) && !load_piece(e, s, u, kind, &l->pieces[i], part, error))
            return false;
    return true;
}

// What is not in the checkpoint stays as it is.
static bool load_unit(struct engine *e, struct source *s, struct unit *u, enum observe_bit kind, struct error *error)
{
    size_t bytes = (size_t)u->count * dtype_size(observe_dtype(e, kind));
    void *part = observe_shard(e, u, kind) ? malloc(bytes + 1) : NULL;
    if (!part)
        return !observe_shard(e, u, kind) || error_set(error, "no memory to load unit '%s'", u->name);
    observe_read(e, u, kind, 0, u->count, part);
    bool ok = load_pieces(e, s, u, kind, part, error);
    e->home->upload(observe_shard(e, u, kind), part, bytes);
    free(part);
    return ok;
}

bool checkpoint_load(struct engine *e, const char *folder, struct error *error)
{
    struct index index = {0};
    struct source s = {folder, &index, -1, {0}};
    bool ok = comm_barrier(&e->comm, error) && index_read(e, folder, &index, error);
    for (int k = 0; ok && k < (FAULT(states_not_loaded) ? 1 : SAVED_KINDS); k++)
        for (int i = 0; ok && i < e->unit_count; i++)
            ok = load_unit(e, &s, &e->units[i], saved_kinds[k], error);
    if (s.open_shard >= 0)
        tensors_free(&s.open);
    ok = ok && index_apply(e, &index, error);
    index_free(&index);
    return ok && (FAULT(load_not_gathered) || gather_residents(e, error));
}
