// Laying the mappings of a case file over a draft. See draft.h; the keys are in docs/cases.md.
//
// The table of keys is made from that of case.json: fields that the harness derives are left out, the
// fields of `sharding` appear under their bare names too, and the suite's own keys are added.
#include "harness/cases/draft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cases/precision.h"
#include "harness/protocol/memory.h"

enum { KEYS_MAX = 60 };
#define IN(member) .offset = offsetof(struct draft, member)

static bool read_nothing(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    (void)r, (void)f, (void)node, (void)base;
    return true;
}

static bool read_program(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    if (!node || node->kind != NODE_SEQUENCE || node->count == 0)
        return field_error(r, f, node, "a list of verbs");
    ((struct draft *)base)->program = node;
    return true;
}

// `data: exact` is short for `data: {recipe: exact}`.
static bool read_data(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    const struct field recipe = {f->name, FIELD_STRING, IN(c.data.recipe)};
    bool word = node && node->kind == NODE_SCALAR;
    return field_read(r, word ? &recipe : field_find(case_fields, "data"), node, base);
}

static bool read_sync(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    static const char *const names[] = {"all", "last", NULL};
    const struct field row = {f->name, FIELD_ENUM, .names = names};
    int last;
    bool fine = field_read(r, &row, node, &last);
    if (fine)
        ((struct draft *)base)->sync_last = last;
    return fine;
}

static bool read_rows_per_rank(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    struct draft *d = base;
    const struct field row = {f->name, FIELD_INT64, IN(rows_per_rank), .least = 1, .most = 1 << 20};
    d->c.global_rows = 0;
    return field_read(r, &row, node, base);
}

static bool read_global_rows(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    (void)f;
    ((struct draft *)base)->rows_per_rank = 0;
    return field_read(r, field_find(case_fields, "global_rows"), node, base);
}

static bool read_mesh(struct reading *r, const struct field *f, const struct node *node, void *base)
{
    struct draft *d = base;
    const struct field pair = {f->name, FIELD_PAIR, IN(c.sharding.replicas), .least = 1, .most = 1 << 20};
    d->mesh_all = false;
    if (node && node->kind == NODE_SEQUENCE)
        return field_read(r, &pair, node, base);
    d->c.sharding.replicas = d->c.sharding.shards = 0;
    d->mesh_all = node && node->kind == NODE_SCALAR && strcmp(node->text, "all") == 0;
    return d->mesh_all || (node && node->kind == NODE_SCALAR && strcmp(node->text, "auto") == 0) ||
           field_error(r, f, node, "auto, all or [R, S]");
}

const char *const save_layout_names[] = {[SAVE_LAYOUT_SAME] = "same", [SAVE_LAYOUT_OTHER] = "other", NULL};

static const struct field own_keys[] = {
    {"ranks", FIELD_INT, IN(c.world_size), .least = 1, .most = 64},
    {"rows_per_rank", FIELD_CUSTOM, .read = read_rows_per_rank},
    {"global_rows", FIELD_CUSTOM, .read = read_global_rows},
    {"steps", FIELD_INT64, IN(c.data.steps), .least = 1, .most = 100000},
    {"micros", FIELD_INT64, IN(c.data.micros), .least = 1, .most = 10000},
    {"sync", FIELD_CUSTOM, .read = read_sync},
    {"mesh", FIELD_CUSTOM, .read = read_mesh},
    {"precision", FIELD_CUSTOM, .read = precision_read},
    {"data", FIELD_CUSTOM, .read = read_data},
    {"observe_local", FIELD_BOOL, IN(observe_local)},
    {"save_ranks", FIELD_INT, IN(save_ranks), .least = 1, .most = 64},
    {"save_layout", FIELD_ENUM, IN(save_layout), .names = save_layout_names},
    {"program", FIELD_CUSTOM, .read = read_program},
};
static const char *const shared_keys[] = {"layer", "seed", "model", "sharding", "optimizer", "clip", "loss", "divergent_init"};
static const struct field case_keys[] = {
    {"name", FIELD_STRING, IN(name)}, {"title", FIELD_STRING, IN(title)},
    {"matrix", FIELD_CUSTOM, .read = read_nothing}, {"exclude", FIELD_CUSTOM, .read = read_nothing},
};
static const struct field variant_key = {"name", FIELD_STRING, IN(variant)};

// The rows that a part of a case file may have; ends with an empty row.
static void make_table(enum draft_part part, struct field table[KEYS_MAX])
{
    int count = 0;
    if (part == DRAFT_CASE)
        for (size_t i = 0; i < sizeof case_keys / sizeof *case_keys; i++)
            table[count++] = case_keys[i];
    if (part == DRAFT_VARIANT)
        table[count++] = variant_key;
    for (size_t i = 0; i < sizeof shared_keys / sizeof *shared_keys; i++)
        table[count++] = *field_find(case_fields, shared_keys[i]);
    for (size_t i = 0; i < sizeof own_keys / sizeof *own_keys; i++)
        table[count++] = own_keys[i];
    const struct field *sharding = field_find(case_fields, "sharding");
    for (const struct field *f = sharding->object[0]; f->name; f++)
        if (strcmp(f->name, "mesh") != 0) {
            table[count] = *f;
            table[count++].offset += sharding->offset;
        }
    table[count] = (struct field){0};
}

bool draft_overlay(struct draft *d, const struct document *doc, const struct node *mapping, enum draft_part part, struct error *error)
{
    struct field table[KEYS_MAX];
    struct reading r = {.document = doc, .error = error, .partial = true, .root = &d->c};
    make_table(part, table);
    if (node_get(mapping, "rows_per_rank") && node_get(mapping, "global_rows"))
        return node_error(doc, node_get(mapping, "rows_per_rank"), error, "found rows_per_rank and global_rows, expected one of them");
    return fields_read(&r, mapping, table, d);
}

bool draft_key_known(const struct document *doc, const struct node *at, int line, const char *key, struct error *error)
{
    struct field table[KEYS_MAX];
    const char *names[KEYS_MAX + 1] = {"variant"};
    struct reading r = {.document = doc, .error = error};
    int count = 1;
    make_table(DRAFT_AXIS, table);
    for (struct field *f = table; f->name; f++)
        names[count++] = f->name;
    names[count] = NULL;
    size_t length = strcspn(key, ".");
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == length && strncmp(names[i], key, length) == 0)
            return true;
    return field_unknown(&r, at, line, key, names);
}

void draft_start(struct draft *d)
{
    *d = (struct draft){
        .c = {.layer = (enum case_layer)-1, .world_size = 2, .seed = 1, .loss = (enum loss_kind)-1,
              .model = {.kind = (enum model_kind)-1, .bias = true, .layers = 2, .dim = 32, .heads = 4, .vocab = 50, .context = 16,
                        .norm_eps = 1e-5, .rope_theta = 10000},
              .sharding = {.strategy = STRATEGY_FULL, .tensor = 1, .pipeline = 1, .layout = SHARD_ANY, .reshard_after_forward = true, .wrap_pattern = memory_text("")},
              .precision = {.scale_initial = 1, .scale_growth = 2, .scale_backoff = 0.5, .scale_interval = 2000},
              .optimizer = {.lr = NAN, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = NAN},
              .data = {.density = 0.6, .std = 0.1, .steps = 1, .micros = 1, .init = NAN},
              .checkpoint = memory_text("")},
        .rows_per_rank = 2, .observe_local = true,
    };
}

void draft_copy(struct draft *dst, const struct draft *src)
{
    *dst = *src;
    case_copy(&dst->c, &src->c);
    dst->name = memory_text(src->name);
    dst->title = memory_text(src->title);
    dst->variant = memory_text(src->variant);
}

void draft_free(struct draft *d)
{
    case_free(&d->c);
    free(d->name);
    free(d->title);
    free(d->variant);
    *d = (struct draft){0};
}
