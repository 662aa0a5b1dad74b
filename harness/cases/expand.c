// Case files: every case laid over its defaults and multiplied by its matrix. See expand.h and docs/cases.md.
//
// Axes that mean nothing to some strategies are laid over last: by then the strategy is known, and where it
// does not use them only their first value is taken, without effect, so that nothing is trained twice.
#include "harness/cases/expand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cases/matrix.h"
#include "harness/cases/saver.h"
#include "harness/cases/strings.h"
#include "harness/protocol/memory.h"

struct expansion {
    struct document *doc;
    const struct node *defaults; // or NULL
    const struct node *node;     // of the case
    struct matrix matrix;
    int chosen[MATRIX_MAX_AXES]; // value of each axis
    bool used[MATRIX_MAX_AXES];  // it means something to the strategy
    expanded_fn *take;
    void *context;
    int emitted;
    struct error *error;
};

static void append_label(char *name, size_t size, const char *label)
{
    size_t length = strlen(name);
    if (*label)
        snprintf(name + length, size - length, ".%s", label);
}

enum axes { AXES_ALL, AXES_NUMBERS = 1, AXES_NO_SYNC = 2, AXES_NO_SAVER = 4 };

static void append_axes(const struct expansion *x, char *name, size_t size, unsigned which)
{
    for (int i = 0; i < x->matrix.axis_count; i++) {
        const struct axis *a = &x->matrix.axes[i];
        bool skip = (which & AXES_NUMBERS && axis_only_sharding(a, x->chosen[i])) || (which & AXES_NO_SYNC && strcmp(a->key, "sync") == 0) ||
                    (which & AXES_NO_SAVER && strncmp(a->key, "save_", 5) == 0);
        if (x->used[i] && !skip)
            append_label(name, size, a->values[x->chosen[i]].label);
    }
}

static void append_count(char *name, size_t size, char letter, int count)
{
    char label[16];
    snprintf(label, sizeof label, "%c%d", letter, count);
    append_label(name, size, label);
}

// The id of a case tells all.
static char *make_id(const struct expansion *x, const struct draft *d, const char *prefix, unsigned axes)
{
    const struct sharding_spec *s = &d->c.sharding;
    char id[512], mesh[48];
    snprintf(mesh, sizeof mesh, s->strategy == STRATEGY_HYBRID ? "%s-%dx%d" : "%s", strategy_name(s->strategy), s->replicas, s->shards);
    snprintf(id, sizeof id, "%s%s.%s", prefix, d->name, mesh);
    if (s->layout != SHARD_ANY)
        append_label(id, sizeof id, s->layout == SHARD_FLAT ? "flat" : "param");
    append_count(id, sizeof id, 'n', d->c.world_size);
    if (s->tensor > 1)
        append_count(id, sizeof id, 't', s->tensor);
    if (s->pipeline > 1)
        append_count(id, sizeof id, 'p', s->pipeline);
    append_axes(x, id, sizeof id, axes);
    return memory_text(id);
}

// The family tells only what changes the numbers, the gate what changes them at one rank.
static void make_names(const struct expansion *x, struct expanded *e)
{
    struct draft *d = &e->draft;
    char family[512], gate[512];
    snprintf(family, sizeof family, "%s", d->name);
    snprintf(gate, sizeof gate, "gate.%s", d->name);
    if (d->rows_per_rank || d->c.loss == LOSS_MEAN_OF_RANKS)
        append_count(family, sizeof family, 'n', case_data_ranks(&d->c));
    if (d->rows_per_rank)
        append_count(gate, sizeof gate, 'n', case_data_ranks(&d->c));
    append_axes(x, family, sizeof family, AXES_NUMBERS);
    append_axes(x, gate, sizeof gate, AXES_NUMBERS | AXES_NO_SYNC);
    d->c.id = make_id(x, d, "", AXES_ALL);
    d->c.family = memory_text(family);
    e->gate = memory_text(gate);
}

static bool lay_axes(struct expansion *x, struct draft *d, bool late, bool *skip)
{
    for (int i = 0; i < x->matrix.axis_count; i++) {
        const struct axis *a = &x->matrix.axes[i];
        unsigned strategies = axis_strategies(a->key);
        if ((strategies != ~0u) != late)
            continue;
        x->used[i] = strategies >> d->c.sharding.strategy & 1;
        if (!x->used[i])
            *skip = *skip || x->chosen[i] > 0;
        else if (!draft_overlay(d, x->doc, a->values[x->chosen[i]].overlay, a->is_variant ? DRAFT_VARIANT : DRAFT_AXIS, x->error))
            return false;
    }
    return true;
}

static bool is_excluded(const struct expansion *x, const struct draft *d)
{
    for (int i = 0; x->matrix.exclude && i < x->matrix.exclude->count; i++)
        if (draft_matches(d, x->matrix.exclude->items[i], NULL))
            return true;
    return false;
}

// Under its own name or as a path.
static bool has_axis(const struct expansion *x, const char *key)
{
    for (int i = 0; i < x->matrix.axis_count; i++)
        if (x->used[i] && strcmp(axis_bare_key(x->matrix.axes[i].key), key) == 0)
            return true;
    return false;
}

static bool consistent(const struct expansion *x, const struct draft *d)
{
    char path[96];
    struct error problem = {""};
    return case_consistent(&d->c, path, &problem) || node_error(x->doc, node_at(x->node, path), x->error, "%s: %s: %s", d->c.id, path, problem.text);
}

// unfinished: what e->draft was made of.
static bool add_saver(const struct expansion *x, struct expanded *e, const struct draft *unfinished)
{
    if (!saver_asked(&e->draft, x->doc, x->node, x->error))
        return false;
    if (!e->draft.save_ranks)
        return true;
    e->saver = memory_zeros(1, sizeof *e->saver);
    if (!saver_make(e->saver, unfinished, x->doc, x->node, x->error))
        return false;
    e->saver->c.id = make_id(x, e->saver, "save.", AXES_NO_SAVER);
    e->saver->c.family = memory_text(e->draft.c.family);
    return consistent(x, e->saver);
}

// One finished combination, if its mesh fits and no rule excludes it.
static bool emit(struct expansion *x, struct draft *d)
{
    const struct sharding_spec *s = &d->c.sharding;
    bool given = s->strategy == STRATEGY_HYBRID && s->replicas > 0;
    if (given && has_axis(x, "mesh") && (int64_t)s->replicas * s->shards != case_data_ranks(&d->c))
        return true;
    if (d->c.world_size % ((int64_t)s->tensor * s->pipeline) != 0 && (has_axis(x, "tensor") || has_axis(x, "pipeline")))
        return true;
    struct expanded e = {.origin = memory_format("%s:%d", x->doc->where, x->node->line)};
    draft_copy(&e.draft, d);
    bool fine = draft_finish(&e.draft, x->doc, x->node, x->error);
    if (fine && is_excluded(x, &e.draft)) {
        expanded_free(&e);
        return true;
    }
    if (fine) {
        make_names(x, &e);
        fine = consistent(x, &e.draft) && add_saver(x, &e, d);
    }
    if (!fine) {
        expanded_free(&e);
        return false;
    }
    x->emitted++;
    return x->take(&e, x->context, x->error);
}

// mesh: all stands for every factorization of the ranks.
static bool emit_meshes(struct expansion *x, struct draft *d)
{
    if (!d->mesh_all || !has_axis(x, "mesh"))
        return emit(x, d);
    d->mesh_all = false;
    for (int r = 1, n = case_data_ranks(&d->c); r <= n; r++) {
        if (n % r)
            continue;
        d->c.sharding.replicas = r;
        d->c.sharding.shards = n / r;
        if (!emit(x, d))
            return false;
    }
    return true;
}

static bool combination(struct expansion *x)
{
    struct draft d;
    bool skip = false;
    draft_start(&d);
    bool fine = (!x->defaults || draft_overlay(&d, x->doc, x->defaults, DRAFT_DEFAULTS, x->error)) &&
                draft_overlay(&d, x->doc, x->node, DRAFT_CASE, x->error) && lay_axes(x, &d, false, &skip) && lay_axes(x, &d, true, &skip) &&
                (skip || emit_meshes(x, &d));
    draft_free(&d);
    return fine;
}

// Counts through all combinations, the last axis fastest.
static bool next_combination(struct expansion *x)
{
    for (int i = x->matrix.axis_count - 1; i >= 0; i--) {
        if (++x->chosen[i] < x->matrix.axes[i].count)
            return true;
        x->chosen[i] = 0;
    }
    return false;
}

static bool expand_case(struct document *doc, const struct node *defaults, const struct node *node, const struct implementation *impl,
                        expanded_fn *take, void *context, struct error *error)
{
    struct expansion x = {.doc = doc, .defaults = defaults, .node = node, .take = take, .context = context, .error = error};
    bool fine = node->kind == NODE_MAPPING || node_error(doc, node, error, "found no mapping, expected a case {name, title, ...}");
    fine = fine && matrix_read(doc, node, impl, &x.matrix, error);
    while (fine && (fine = combination(&x)) && next_combination(&x))
        ;
    matrix_free(&x.matrix);
    return fine && (x.emitted || node_error(doc, node, error, "found no combination left by matrix and exclude, expected at least one"));
}

// The cases of a document: {defaults, cases} or one case.
static bool find_cases(const struct document *doc, const struct node **defaults, const struct node **cases, struct error *error)
{
    static const char *const keys[] = {"defaults", "cases", NULL};
    struct reading r = {.document = doc, .error = error};
    const struct node *root = doc->root;
    *defaults = node_get(root, "defaults");
    *cases = node_get(root, "cases");
    if (root->kind != NODE_MAPPING)
        return node_error(doc, root, error, "found no mapping, expected {defaults, cases} or one case");
    if (!*cases && !*defaults)
        return true;
    for (int i = 0; i < root->count; i++)
        if (strcmp(root->keys[i], "defaults") != 0 && strcmp(root->keys[i], "cases") != 0)
            return field_unknown(&r, root, root->key_lines[i], root->keys[i], keys);
    if (!*cases || (*cases)->kind != NODE_SEQUENCE || (*cases)->count == 0)
        return node_error(doc, *cases ? *cases : root, error, "cases: found no case, expected a list of cases");
    return true;
}

bool expand_document(struct document *doc, const struct implementation *impl, expanded_fn *take, void *context, struct error *error)
{
    const struct node *defaults, *cases;
    bool fine = find_cases(doc, &defaults, &cases, error);
    for (int i = 0; fine && i < (cases ? cases->count : 1); i++)
        fine = expand_case(doc, defaults, cases ? cases->items[i] : doc->root, impl, take, context, error);
    return fine;
}

bool expand_file(const char *path, const struct implementation *impl, expanded_fn *take, void *context, struct error *error)
{
    struct document doc;
    if (!document_read(path, &doc, error))
        return false;
    bool fine = expand_document(&doc, impl, take, context, error);
    document_free(&doc);
    return fine;
}

void expanded_free(struct expanded *e)
{
    draft_free(&e->draft);
    if (e->saver)
        draft_free(e->saver);
    free(e->saver);
    free(e->gate);
    free(e->origin);
    *e = (struct expanded){0};
}

bool expand_names(const char *path, struct string_list *names, struct string_list *titles, struct error *error)
{
    struct document doc;
    const struct node *defaults, *cases;
    if (!document_read(path, &doc, error))
        return false;
    bool fine = find_cases(&doc, &defaults, &cases, error);
    for (int i = 0; fine && i < (cases ? cases->count : 1); i++) {
        const struct node *node = cases ? cases->items[i] : doc.root;
        struct draft d;
        draft_start(&d);
        fine = (!defaults || draft_overlay(&d, &doc, defaults, DRAFT_DEFAULTS, error)) &&
               draft_overlay(&d, &doc, node, DRAFT_CASE, error) &&
               ((d.name && d.title) || node_error(&doc, node, error, "found a case without name or title, expected both"));
        if (fine) {
            string_list_add(names, d.name);
            string_list_add(titles, d.title);
        }
        draft_free(&d);
    }
    document_free(&doc);
    return fine;
}
