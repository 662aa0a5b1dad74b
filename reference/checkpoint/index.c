// Writing and reading index.json. See index.h and checkpoint.h.
#include "reference/checkpoint/index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference/engine/fault.h"
#include "reference/engine/observe.h"

enum { VERSION = 1, PATH_BYTES = 4096, NAME_BYTES = 512 };

static const enum observe_bit kinds[] = {OBSERVE_PARAM, OBSERVE_EXP_AVG, OBSERVE_EXP_AVG_SQ, OBSERVE_MOMENTUM};

// ---- writing ----

static json_t *pieces_of(const struct unit *u, int member)
{
    const struct layout *l = &u->layout;
    json_t *list = json_array();
    for (int s = 0; s < l->shards; s++)
        for (int i = l->first_piece[s]; i < l->first_piece[s + 1]; i++)
            if (l->pieces[i].tensor == member)
                json_array_append_new(list, json_pack("[i,I,I]", s, (json_int_t)l->pieces[i].offset, (json_int_t)l->pieces[i].length));
    return list;
}

static json_t *tensors_of(const struct engine *e)
{
    json_t *tensors = json_object();
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int i = 0; i < e->unit_count; i++)
            for (int m = 0; m < e->units[i].member_count; m++) {
                int parameter = e->units[i].members[m];
                char name[NAME_BYTES];
                if (!observe_present(e, kinds[k], parameter))
                    continue;
                snprintf(name, sizeof name, "%s/%s", observe_name(kinds[k]), e->c->parameters[parameter].name);
                json_object_set_new(tensors, name,
                                    json_pack("{s:s,s:I,s:o}", "dtype", dtype_name(observe_dtype(e, kinds[k])), "count",
                                              (json_int_t)e->c->parameters[parameter].count, "pieces", pieces_of(&e->units[i], m)));
            }
    return tensors;
}

bool index_write(const struct engine *e, const char *folder, struct error *error)
{
    char path[PATH_BYTES], temporary[PATH_BYTES + 8];
    json_t *updates = json_object();
    for (int i = 0; i < e->c->parameter_count; i++)
        if (e->c->parameters[i].tied_to < 0)
            json_object_set_new(updates, e->c->parameters[i].name, json_integer(e->updates[i]));
    json_t *root = json_pack("{s:i,s:i,s:s,s:f,s:i,s:o,s:o}", "version", VERSION, "shards", e->mesh.shards, "layout",
                             layout_name(e->layout), "loss_scale", e->scale.value, "good_steps", e->scale.good_steps, "updates",
                             updates, "tensors", tensors_of(e));
    snprintf(path, sizeof path, "%s/index.json", folder);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    bool ok = root && !json_dump_file(root, temporary, JSON_INDENT(1)) && !rename(temporary, path);
    json_decref(root);
    return ok || error_set(error, "%s: cannot be written: %s", path, strerror(errno));
}

// ---- reading ----

static bool read_piece(const json_t *item, int shards, int64_t count, struct index_piece *out)
{
    *out = (struct index_piece){(int)json_integer_value(json_array_get(item, 0)), json_integer_value(json_array_get(item, 1)),
                                json_integer_value(json_array_get(item, 2))};
    return json_array_size(item) == 3 && out->shard >= 0 && out->shard < shards && out->offset >= 0 && out->length > 0 &&
           out->length <= count && out->offset <= count - out->length;
}

static bool read_tensor(const char *name, json_t *item, int shards, struct index_tensor *out)
{
    json_t *pieces = json_object_get(item, "pieces"), *count = json_object_get(item, "count");
    const char *type = json_string_value(json_object_get(item, "dtype"));
    *out = (struct index_tensor){.name = name, .count = json_integer_value(count), .piece_count = (int)json_array_size(pieces)};
    out->pieces = calloc((size_t)out->piece_count + 1, sizeof *out->pieces);
    bool ok = out->pieces && type && dtype_parse(type, &out->dtype) && dtype_is_float(out->dtype) && json_is_integer(count);
    for (int i = 0; ok && i < out->piece_count; i++)
        ok = read_piece(json_array_get(pieces, (size_t)i), shards, out->count, &out->pieces[i]);
    return ok;
}

bool index_read(const struct engine *e, const char *folder, struct index *out, struct error *error)
{
    char path[PATH_BYTES];
    json_error_t where;
    const char *name;
    json_t *item;
    (void)e;
    *out = (struct index){0};
    snprintf(path, sizeof path, "%s/index.json", folder);
    out->root = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    if (!out->root)
        return error_set(error, "%s:%d: found %s, expected the index of a checkpoint", path, where.line, where.text);
    json_t *tensors = json_object_get(out->root, "tensors");
    int shards = (int)json_integer_value(json_object_get(out->root, "shards"));
    if (json_integer_value(json_object_get(out->root, "version")) != VERSION || !json_is_object(tensors) || shards < 1)
        return error_set(error, "%s: found no version %d index with shards and tensors", path, VERSION);
    out->tensors = calloc(json_object_size(tensors) + 1, sizeof *out->tensors);
    json_object_foreach(tensors, name, item)
        if (!out->tensors || !read_tensor(name, item, shards, &out->tensors[out->count++]))
            return error_set(error, "%s: found '%s', expected a float dtype, a count and pieces [shard, offset, length] within it",
                             path, name);
    return true;
}

const struct index_tensor *index_find(const struct index *index, const char *name)
{
    for (int i = 0; i < index->count; i++)
        if (!strcmp(index->tensors[i].name, name))
            return &index->tensors[i];
    return NULL;
}

bool index_apply(struct engine *e, const struct index *index, struct error *error)
{
    json_t *updates = json_object_get(index->root, "updates");
    for (int i = 0; i < e->c->parameter_count; i++) {
        json_t *count = json_object_get(updates, e->c->parameters[i].name);
        if (e->c->parameters[i].tied_to < 0 && !json_is_integer(count))
            return error_set(error, "index.json: found no update count of '%s'", e->c->parameters[i].name);
        e->updates[i] = FAULT(step_counter_lost) ? 0 : json_integer_value(count);
    }
    e->scale.value = json_number_value(json_object_get(index->root, "loss_scale"));
    e->scale.good_steps = (int)json_integer_value(json_object_get(index->root, "good_steps"));
    return e->scale.value > 0 || error_set(error, "index.json: found loss scale %g, expected more than 0", e->scale.value);
}

void index_free(struct index *index)
{
    for (int i = 0; i < index->count; i++)
        free(index->tensors[i].pieces);
    free(index->tensors);
    json_decref(index->root);
}
