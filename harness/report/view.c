// Builds the view of a stored run. See view.h.
#include "harness/report/view.h"

#include <math.h>
#include <stdarg.h>
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

static struct stored_result *add_result(struct view *v, const char *check, enum verdict verdict) {
    struct stored_result *r = &v->added_results[v->added_result_count];
    *r = (struct stored_result){.check = check, .verdict = verdict, .figure = NAN, .bound = NAN, .unit = "",
                                .message = v->added_messages[v->added_result_count++], .classes = "", .ranks = ""};
    return r;
}

static void set_message(struct stored_result *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void set_message(struct stored_result *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf((char *)r->message, sizeof(*((struct view *)0)->added_messages), format, args);
    va_end(args);
}

static struct stored_case *add_case(struct view *v, const struct stored_case *like, struct stored_result *results, int count) {
    struct stored_case *c = &v->added[v->added_count++];
    *c = *like;
    c->results = results;
    c->result_count = count;
    c->verdict = verdict_of_results(results, count);
    c->waived = false;
    return c;
}

static struct stored_case nameless(const struct view *v, const char *implementation, const char *name) {
    return (struct stored_case){.implementation = implementation, .case_id = name, .family = name, .layer = "", .model = "", .strategy = "",
                                .layout = "", .compute = "", .origin = "", .note = "", .seed = v->run->seed, .seconds = NAN, .judge_seconds = NAN};
}

static void append_case(struct view *v, const struct stored_case *c) {
    if (!c->result_count) {
        struct stored_result *r = add_result(v, "evidence", VERDICT_BROKEN);
        set_message(r, "no check judged this case: nothing was seen");
        c = add_case(v, c, r, 1);
    }
    struct view_case *k = &v->cases[v->case_count++];
    *k = (struct view_case){.c = c, .verdict = c->verdict, .rows = &v->rows[v->row_count], .row_count = c->result_count};
    for (int i = 0; i < c->result_count; i++) {
        v->rows[v->row_count++] = (struct row){c, &c->results[i]};
        v->results.of[c->results[i].verdict]++;
        v->results.waived += c->results[i].waived;
    }
    v->tally.of[k->verdict]++;
    v->tally.waived += c->waived;
}

static void append_not_run(struct view *v, const char *implementation, int64_t recorded) {
    int64_t expected = planned(v->run, implementation);
    if (expected <= recorded && (expected || recorded)) return;
    struct stored_result *r = add_result(v, "evidence", VERDICT_BROKEN);
    if (expected)
        set_message(r, "%lld of %lld planned cases were not run: the run was interrupted", (long long)(expected - recorded), (long long)expected);
    else
        set_message(r, "no case was planned: nothing was seen");
    struct stored_case none = nameless(v, implementation, "(not run)");
    append_case(v, add_case(v, &none, r, 1));
}

// ---- waivers that no longer hold ----

// Results that PASS although the waiver says that they FAIL; first: one of them.
static int unexpected(const struct view *v, const struct stored_waiver *w, struct row *first) {
    int count = 0;
    for (int i = 0; i < v->run->case_count; i++)
        for (int k = 0; k < v->run->cases[i].result_count; k++) {
            const struct stored_result *r = &v->run->cases[i].results[k];
            if (r->waiver != w || r->verdict != VERDICT_PASS) continue;
            if (!count++) *first = (struct row){&v->run->cases[i], r};
        }
    return count;
}

static void add_waiver_result(struct view *v, const struct stored_waiver *w) {
    struct row first = {0};
    int passed = unexpected(v, w, &first);
    if (w->expired)
        set_message(add_result(v, "waiver-expired", VERDICT_FAIL), "%s: expired on %s: look again at %s, then renew or remove the waiver", w->origin,
                    w->expires, w->page);
    if (!w->expired && passed) {
        char more[64] = "";
        if (passed > 1) snprintf(more, sizeof more, " (and %d more of its results)", passed - 1);
        set_message(add_result(v, "unexpected-pass", VERDICT_FAIL), "%s: check %s of %s is PASS%s, the waiver says that it FAILs: narrow or remove it",
                    w->origin, first.r->check, first.c->case_id, more);
    }
}

static void append_waivers(struct view *v, const char *implementation) {
    int before = v->added_result_count;
    for (int i = 0; i < v->run->waiver_count; i++)
        if (!strcmp(v->run->waivers[i].implementation, implementation)) add_waiver_result(v, &v->run->waivers[i]);
    struct stored_case none = nameless(v, implementation, "(waivers)");
    if (v->added_result_count == before) return;
    append_case(v, add_case(v, &none, &v->added_results[before], v->added_result_count - before));
    v->waiver_cases++;
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
    append_waivers(v, implementation);
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
    g->tally.waived += k->c->waived;
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
    size_t added = cases + 2 * (size_t)v->implementations.count + 1, added_results = added + (size_t)run->waiver_count;
    v->added = memory_zeros(added, sizeof *v->added);
    v->added_results = memory_zeros(added_results, sizeof *v->added_results);
    v->added_messages = memory_zeros(added_results, sizeof *v->added_messages);
    v->cases = memory_zeros(added, sizeof *v->cases);
    v->rows = memory_zeros(results + added_results, sizeof *v->rows);
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

int view_remarks(const struct view *v, const char *implementation, struct remark **out, int *cases) {
    int count = 0;
    *cases = 0;
    *out = memory_zeros((size_t)v->case_count + 1, sizeof **out);
    for (int i = 0; i < v->case_count; i++) {
        const struct stored_case *c = v->cases[i].c;
        if (strcmp(c->implementation, implementation)) continue;
        int at = 0;
        ++*cases;
        if (!c->note || !*c->note) continue;
        while (at < count && strcmp((*out)[at].note, c->note)) at++;
        if (at == count) (*out)[count++].note = c->note;
        (*out)[at].cases++;
    }
    return count;
}

bool tally_is_waived(const struct tally *t) { return t->waived && t->waived == t->of[VERDICT_FAIL] && !t->of[VERDICT_BROKEN]; }

const char *tally_words(const struct tally *t, enum verdict v, char buffer[64]) {
    int n = snprintf(buffer, 64, "%d %s", t->of[v], verdict_name(v));
    if (v == VERDICT_FAIL && t->waived == t->of[v] && t->waived) snprintf(buffer + n, 64 - (size_t)n, " (waived)");
    else if (v == VERDICT_FAIL && t->waived) snprintf(buffer + n, 64 - (size_t)n, " (%d waived)", t->waived);
    return buffer;
}

bool view_judged(const struct view *v) { return v->tally.of[VERDICT_PASS] || v->tally.of[VERDICT_FAIL] > v->waiver_cases; }

int report_exit_status(const struct stored_run *r) {
    struct view v;
    view_make(r, &v);
    int status = v.tally.of[VERDICT_BROKEN] || !view_judged(&v) ? 3 : v.tally.of[VERDICT_FAIL] > v.tally.waived ? 1 : 0;
    view_free(&v);
    return status;
}

// ---- fields ----
#define CASE(name, kind, member) {name, kind, OF_CASE, offsetof(struct stored_case, member)}
#define RESULT(name, kind, member) {name, kind, OF_RESULT, offsetof(struct stored_result, member)}
#define WAIVER(name, member) {name, FIELD_TEXT, OF_WAIVER, offsetof(struct stored_waiver, member)}
const struct field fields[FIELD_COUNT] = {
    CASE("implementation", FIELD_TEXT, implementation),
    CASE("case", FIELD_TEXT, case_id),
    RESULT("check", FIELD_TEXT, check),
    RESULT("verdict", FIELD_VERDICT, verdict),
    RESULT("figure", FIELD_NUMBER, figure),
    RESULT("bound", FIELD_NUMBER, bound),
    RESULT("unit", FIELD_TEXT, unit),
    RESULT("message", FIELD_TEXT, message),
    RESULT("classes", FIELD_TEXT, classes),
    RESULT("ranks", FIELD_TEXT, ranks),
    CASE("seed", FIELD_SEED, seed),
    CASE("family", FIELD_TEXT, family),
    CASE("layer", FIELD_TEXT, layer),
    CASE("model", FIELD_TEXT, model),
    CASE("strategy", FIELD_TEXT, strategy),
    CASE("layout", FIELD_TEXT, layout),
    CASE("compute", FIELD_TEXT, compute),
    CASE("world_size", FIELD_INT, world_size),
    CASE("origin", FIELD_TEXT, origin),
    RESULT("waived", FIELD_WAIVED, waived),
    WAIVER("waiver_reason", reason),
    WAIVER("waiver_page", page),
    WAIVER("waiver_expires", expires),
    CASE("note", FIELD_TEXT, note),
};

static const void *field_place(const struct row *row, int field) {
    const void *owners[] = {[OF_CASE] = row->c, [OF_RESULT] = row->r, [OF_WAIVER] = row->r->waiver};
    const void *owner = owners[fields[field].owner];
    return owner ? (const char *)owner + fields[field].offset : NULL;
}

double field_number(const struct row *row, int field) { return *(const double *)field_place(row, field); }

int64_t field_integer(const struct row *row, int field) {
    const void *place = field_place(row, field);
    if (fields[field].kind == FIELD_WAIVED) return *(const bool *)place;
    return fields[field].kind == FIELD_INT ? *(const int *)place : (int64_t) * (const uint64_t *)place;
}

bool row_has_figure(const struct row *row) { return !isnan(row->r->figure) || !isnan(row->r->bound); }

const char *field_text(const struct row *row, int field, char buffer[32]) {
    switch (fields[field].kind) {
    case FIELD_TEXT: {
        const char *const *text = field_place(row, field);
        return text && *text ? *text : "";
    }
    case FIELD_WAIVED: return field_integer(row, field) ? "waived" : "";
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
