// Builds the view of a stored run. See view.h.
#include "harness/report/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/report.h"
#include "harness/report/text.h"

int names_add(struct names *n, const char *name) {
    int found = names_find(n, name);
    if (found >= 0) return found;
    if (!n->index) n->index = json_object();
    n->items = memory_grow(n->items, (size_t)n->count, sizeof *n->items);
    json_object_set_new_nocheck(n->index, name, json_integer(n->count));
    n->items[n->count] = json_object_iter_key(json_object_iter_at(n->index, name));
    return n->count++;
}

int names_find(const struct names *n, const char *name) {
    json_t *place = json_object_get(n->index, name);
    return place ? (int)json_integer_value(place) : -1;
}

void names_free(struct names *n) {
    free(n->items);
    json_decref(n->index);
}

static int64_t planned(const struct stored_run *run, const char *implementation) {
    return json_integer_value(json_object_get(json_object_get(run->implementations, implementation), "planned"));
}

static void add_missing(struct view *v, const struct stored_case *like, const char *message) {
    struct stored_case *c = &v->added[v->added_count];
    struct stored_result *r = &v->added_results[v->added_count];
    snprintf(v->added_messages[v->added_count], sizeof *v->added_messages, "%s", message);
    *r = (struct stored_result){.check = "evidence", .verdict = VERDICT_BROKEN, .figure = NAN, .bound = NAN, .unit = "",
                                .message = v->added_messages[v->added_count], .classes = "", .ranks = ""};
    *c = *like;
    c->results = r;
    c->result_count = 1;
    c->verdict = VERDICT_BROKEN;
    v->added_count++;
}

static void append_case(struct view *v, const struct stored_case *c) {
    if (!c->result_count) {
        add_missing(v, c, "no check judged this case: nothing was seen");
        c = &v->added[v->added_count - 1];
    }
    struct view_case *k = &v->cases[v->case_count++];
    *k = (struct view_case){.c = c, .verdict = c->verdict, .rows = &v->rows[v->row_count], .row_count = c->result_count};
    for (int i = 0; i < c->result_count; i++) {
        v->rows[v->row_count++] = (struct row){c, &c->results[i]};
        v->results.of[c->results[i].verdict]++;
    }
    v->tally.of[k->verdict]++;
}

static void append_not_run(struct view *v, const char *implementation, int64_t recorded) {
    int64_t expected = planned(v->run, implementation);
    char message[256];
    if (expected <= recorded && (expected || recorded)) return;
    if (expected)
        snprintf(message, sizeof message, "%lld of %lld planned cases were not run: the run was interrupted",
                 (long long)(expected - recorded), (long long)expected);
    else
        snprintf(message, sizeof message, "no case was planned: nothing was seen");
    struct stored_case none = {.implementation = implementation, .case_id = "(not run)", .family = "(not run)", .layer = "", .model = "",
                               .strategy = "", .layout = "", .compute = "", .origin = "", .seed = v->run->seed,
                               .seconds = NAN, .judge_seconds = NAN};
    add_missing(v, &none, message);
    append_case(v, &v->added[v->added_count - 1]);
}

// By implementation, so that groups and suites of every format are contiguous.
static void append_implementation(struct view *v, const char *implementation) {
    int64_t recorded = 0;
    for (int i = 0; i < v->run->case_count; i++)
        if (!strcmp(v->run->cases[i].implementation, implementation)) {
            append_case(v, &v->run->cases[i]);
            recorded++;
        }
    append_not_run(v, implementation, recorded);
}

// Families of the store tell precisions and sizes apart, for checks that compare members; a reader wants fewer rows.
static const char *short_family(struct view *v, const char *family) {
    size_t length = strcspn(family, ".");
    char *name = length ? strndup(family, length) : memory_text(family);
    int at = names_add(&v->families, name);
    free(name);
    return v->families.items[at];
}

static struct view_group *group_of(struct view *v, const struct view_case *k) {
    for (int i = v->group_count - 1; i >= 0 && !strcmp(v->groups[i].implementation, k->c->implementation); i--)
        if (!strcmp(v->groups[i].family, k->family)) return &v->groups[i];
    v->groups = memory_grow(v->groups, (size_t)v->group_count, sizeof *v->groups);
    v->groups[v->group_count] = (struct view_group){.implementation = k->c->implementation, .family = k->family};
    return &v->groups[v->group_count++];
}

static void append_to_group(struct view *v, const struct view_case *k) {
    struct view_group *g = group_of(v, k);
    g->cases = memory_grow(g->cases, (size_t)g->case_count, sizeof *g->cases);
    g->cases[g->case_count++] = k;
    g->result_count += k->row_count;
    g->tally.of[k->verdict]++;
    g->verdict = verdict_worse(g->verdict, k->verdict);
    if (!isnan(k->c->seconds)) g->seconds += k->c->seconds;
}

static void fill_matrix(struct view *v) {
    int width = v->implementations.count;
    v->matrix = memory_zeros((size_t)(v->case_ids.count * width) + 1, sizeof *v->matrix);
    for (int i = 0; i < v->case_count; i++) {
        const struct stored_case *c = v->cases[i].c;
        int column = names_find(&v->implementations, c->implementation);
        if (column >= 0) v->matrix[names_find(&v->case_ids, c->case_id) * width + column] = &v->cases[i];
    }
}

void view_make(const struct stored_run *run, struct view *v) {
    *v = (struct view){.run = run};
    const char *key;
    json_t *value;
    json_object_foreach(run->implementations, key, value) names_add(&v->implementations, key);
    size_t results = 0, cases = (size_t)run->case_count;
    for (int i = 0; i < run->case_count; i++) {
        names_add(&v->implementations, run->cases[i].implementation);
        results += (size_t)run->cases[i].result_count;
    }
    size_t added = cases + (size_t)v->implementations.count + 1;
    v->added = memory_zeros(added, sizeof *v->added);
    v->added_results = memory_zeros(added, sizeof *v->added_results);
    v->added_messages = memory_zeros(added, sizeof *v->added_messages);
    v->cases = memory_zeros(added, sizeof *v->cases);
    v->rows = memory_zeros(results + added, sizeof *v->rows);
    for (int i = 0; i < v->implementations.count; i++) append_implementation(v, v->implementations.items[i]);
    if (!v->implementations.count) append_not_run(v, "(none)", 0);
    for (int i = 0; i < v->case_count; i++) {
        v->cases[i].family = short_family(v, v->cases[i].c->family);
        append_to_group(v, &v->cases[i]);
    }
    for (int f = 0; f < v->families.count; f++) // so that the cases of a family are neighbours, whichever implementation has them
        for (int g = 0; g < v->group_count; g++)
            for (int i = 0; !strcmp(v->groups[g].family, v->families.items[f]) && i < v->groups[g].case_count; i++)
                names_add(&v->case_ids, v->groups[g].cases[i]->c->case_id);
    fill_matrix(v);
}

void view_free(struct view *v) {
    for (int i = 0; i < v->group_count; i++) free(v->groups[i].cases);
    free(v->groups);
    free(v->cases);
    free(v->rows);
    free(v->added);
    free(v->added_results);
    free(v->added_messages);
    free(v->matrix);
    names_free(&v->implementations);
    names_free(&v->families);
    names_free(&v->case_ids);
    *v = (struct view){0};
}

int view_reasons(const struct view_group *g, struct reason **out) {
    int count = 0;
    *out = memory_zeros((size_t)g->case_count, sizeof **out);
    for (int i = 0; i < g->case_count; i++) {
        const struct view_case *k = g->cases[i];
        const struct row *row = k->rows;
        if (k->verdict != VERDICT_SKIP) continue;
        while (row->r->verdict != VERDICT_SKIP) row++;
        int at = 0;
        while (at < count && strcmp((*out)[at].message, row->r->message)) at++;
        if (at == count) (*out)[count++] = (struct reason){.message = row->r->message, .first = k};
        (*out)[at].cases++;
    }
    return count;
}

bool view_judged(const struct view *v) { return v->tally.of[VERDICT_PASS] || v->tally.of[VERDICT_FAIL]; }

int report_exit_status(const struct stored_run *r) {
    struct view v;
    view_make(r, &v);
    int status = v.tally.of[VERDICT_BROKEN] || !view_judged(&v) ? 3 : v.tally.of[VERDICT_FAIL] ? 1 : 0;
    view_free(&v);
    return status;
}

// ---- fields ----
#define OF_CASE(name, kind, member) {name, kind, false, offsetof(struct stored_case, member)}
#define OF_RESULT(name, kind, member) {name, kind, true, offsetof(struct stored_result, member)}
const struct field fields[FIELD_COUNT] = {
    OF_CASE("implementation", FIELD_TEXT, implementation),
    OF_CASE("case", FIELD_TEXT, case_id),
    OF_RESULT("check", FIELD_TEXT, check),
    OF_RESULT("verdict", FIELD_VERDICT, verdict),
    OF_RESULT("figure", FIELD_NUMBER, figure),
    OF_RESULT("bound", FIELD_NUMBER, bound),
    OF_RESULT("unit", FIELD_TEXT, unit),
    OF_RESULT("message", FIELD_TEXT, message),
    OF_RESULT("classes", FIELD_TEXT, classes),
    OF_RESULT("ranks", FIELD_TEXT, ranks),
    OF_CASE("seed", FIELD_SEED, seed),
    OF_CASE("family", FIELD_TEXT, family),
    OF_CASE("layer", FIELD_TEXT, layer),
    OF_CASE("model", FIELD_TEXT, model),
    OF_CASE("strategy", FIELD_TEXT, strategy),
    OF_CASE("layout", FIELD_TEXT, layout),
    OF_CASE("compute", FIELD_TEXT, compute),
    OF_CASE("world_size", FIELD_INT, world_size),
    OF_CASE("origin", FIELD_TEXT, origin),
};

static const void *field_place(const struct row *row, int field) {
    const void *owner = fields[field].of_result ? (const void *)row->r : (const void *)row->c;
    return (const char *)owner + fields[field].offset;
}

double field_number(const struct row *row, int field) { return *(const double *)field_place(row, field); }

int64_t field_integer(const struct row *row, int field) {
    const void *place = field_place(row, field);
    return fields[field].kind == FIELD_INT ? *(const int *)place : (int64_t) * (const uint64_t *)place;
}

bool row_has_figure(const struct row *row) { return !isnan(row->r->figure) || !isnan(row->r->bound); }

const char *field_text(const struct row *row, int field, char buffer[32]) {
    switch (fields[field].kind) {
    case FIELD_TEXT: return *(const char *const *)field_place(row, field);
    case FIELD_VERDICT: return verdict_name(row->r->verdict);
    case FIELD_INT: snprintf(buffer, 32, "%lld", (long long)field_integer(row, field)); return buffer;
    case FIELD_SEED: snprintf(buffer, 32, "%llu", (unsigned long long)field_integer(row, field)); return buffer;
    case FIELD_NUMBER: break;
    }
    double x = field_number(row, field);
    return isnan(x) && isnan(row->r->bound) ? "" : text_number(x, buffer);
}

const char *row_comparison(const struct row *row, char *buffer, size_t size) {
    double figure = row->r->figure, bound = row->r->bound;
    *buffer = 0;
    if (!row_has_figure(row)) return buffer;
    const char *relation = judge_compare(figure, bound) ? "<=" : figure > bound ? ">" : "is not <=";
    if (isnan(bound)) snprintf(buffer, size, "%.6g %s", figure, row->r->unit);
    else snprintf(buffer, size, "%.6g %s %.6g %s", figure, relation, bound, row->r->unit);
    size_t end = strlen(buffer);
    while (end && buffer[end - 1] == ' ') buffer[--end] = 0;
    return buffer;
}
