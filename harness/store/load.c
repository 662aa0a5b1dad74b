// Reading a run back: everything that reports are made of, in one structure that owns its memory.
//
// A run that is being written may be read: the statements run inside one read transaction, so that
// cases and results agree. Strings live in an arena of blocks, freed with the run.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/store/connection.h"
#include "harness/store/verdicts.h"

enum { BLOCK_BYTES = 1 << 16, RUNS_NAMED = 10 };
struct block { struct block *next; size_t used, size; char bytes[]; };

static void *take(struct stored_run *r, size_t bytes) {
    bytes = (bytes + 15) & ~(size_t)15;
    struct block *b = r->arena;
    if (!b || b->size - b->used < bytes) {
        size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        b = memory_zeros(1, sizeof *b + size);
        b->next = r->arena;
        b->size = size;
        r->arena = b;
    }
    b->used += bytes;
    return b->bytes + b->used - bytes;
}

static const char *text(struct stored_run *r, sqlite3_stmt *q, int column) {
    const void *from = sqlite3_column_text(q, column);
    if (!from) return NULL;
    size_t bytes = (size_t)sqlite3_column_bytes(q, column);
    return memcpy(take(r, bytes + 1), from, bytes);
}

static const char *text_or_empty(struct stored_run *r, sqlite3_stmt *q, int column) {
    const char *found = text(r, q, column);
    return found ? found : "";
}

static double number(sqlite3_stmt *q, int column) {
    return sqlite3_column_type(q, column) == SQLITE_NULL ? NAN : sqlite3_column_double(q, column);
}

static json_t *json(sqlite3_stmt *q, int column) {
    const char *from = (const char *)sqlite3_column_text(q, column);
    return from ? json_loads(from, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
}

static void read_run_row(struct stored_run *r, sqlite3_stmt *q) {
    r->id = sqlite3_column_int64(q, 0);
    r->command = text_or_empty(r, q, 1);
    r->profile = text(r, q, 2);
    r->pattern = text(r, q, 3);
    r->started = text_or_empty(r, q, 4);
    r->ended = text(r, q, 5);
    r->ended_normally = r->ended != NULL;
    r->exit_status = sqlite3_column_int(q, 6);
    r->seed = (uint64_t)sqlite3_column_int64(q, 7);
    r->environment = json(q, 8);
    if (!r->environment) r->environment = json_object();
}

static void read_plan_row(struct stored_run *r, sqlite3_stmt *q) {
    json_t *versions = json(q, 2);
    bool timed = sqlite3_column_type(q, 4) != SQLITE_NULL;
    json_t *plan = json_pack("{s:I, s:o, s:o, s:o}", "planned", (json_int_t)sqlite3_column_int64(q, 1), "versions",
                             versions ? versions : json_object(), "note", json_string_nocheck(text_or_empty(r, q, 3)), "seconds",
                             timed ? json_real(sqlite3_column_double(q, 4)) : json_null());
    json_object_set_new_nocheck(r->implementations, (const char *)sqlite3_column_text(q, 0), plan);
}

static void read_case_row(struct stored_run *r, sqlite3_stmt *q, struct stored_case *c) {
    const char **texts[] = {&c->implementation, &c->case_id, &c->family, &c->layer, &c->model, &c->strategy, &c->layout, &c->compute};
    for (int i = 0; i < 8; i++) *texts[i] = text_or_empty(r, q, i);
    c->world_size = sqlite3_column_int(q, 8);
    c->seed = (uint64_t)sqlite3_column_int64(q, 9);
    c->case_json = text(r, q, 10);
    c->origin = text_or_empty(r, q, 11);
    c->seconds = number(q, 12);
    c->judge_seconds = number(q, 13);
    c->start = sqlite3_column_int(q, 14);
    c->log_tail = text(r, q, 15);
    c->figures = json(q, 16);
    c->digest = text_or_empty(r, q, 17);
    c->truth_digest = text_or_empty(r, q, 18);
    c->note = text_or_empty(r, q, 19);
    c->probes = json(q, 20);
    c->run = sqlite3_column_int64(q, 22);
}

static void read_waiver_row(struct stored_run *r, sqlite3_stmt *q, struct stored_waiver *w) {
    const char **texts[] = {&w->implementation, &w->checks, &w->cases, &w->versions, &w->reason, &w->page, &w->expires, &w->origin};
    for (int i = 0; i < 8; i++) *texts[i] = text_or_empty(r, q, i);
    w->id = sqlite3_column_int64(q, 8);
    w->expired = sqlite3_column_int(q, 9);
}

static const struct stored_waiver *find_waiver(const struct stored_run *r, int64_t id) {
    for (int i = 0; i < r->waiver_count; i++)
        if (r->waivers[i].id == id) return &r->waivers[i];
    return NULL;
}

static bool read_result_row(struct stored_run *r, sqlite3_stmt *q, struct stored_result *out) {
    out->check = text_or_empty(r, q, 1);
    out->figure = number(q, 3);
    out->bound = number(q, 4);
    const char **texts[] = {&out->unit, &out->message, &out->classes, &out->ranks};
    for (int i = 0; i < 4; i++) *texts[i] = text_or_empty(r, q, 5 + i);
    bool known = verdict_parse((const char *)sqlite3_column_text(q, 2), &out->verdict);
    out->waiver = find_waiver(r, sqlite3_column_int64(q, 9));
    out->waived = out->verdict == VERDICT_FAIL && out->waiver && !out->waiver->expired;
    return known;
}

// Which statements read, and what they are bound to: one run, or a JSON list of runs (NULL: all).
struct source { enum statement plans, waivers, counts, cases, results; bool one; int64_t run; const char *runs; };

static sqlite3_stmt *bind(struct store *s, const struct source *from, enum statement id, struct error *error) {
    return from->one ? store_bind(s, id, error, "i", from->run) : store_bind(s, id, error, "t", from->runs);
}

static bool load_plans(struct store *s, const struct source *from, struct stored_run *r, struct error *error) {
    r->implementations = json_object();
    sqlite3_stmt *q = bind(s, from, from->plans, error);
    bool row, ok;
    if (!q) return false;
    while ((ok = store_step(s, q, &row, error)) && row) read_plan_row(r, q);
    return ok;
}

// ids: the key of each case, in order, by which the results that follow find theirs.
static bool load_cases(struct store *s, const struct source *from, struct stored_run *r, int64_t *ids, int capacity, struct error *error) {
    sqlite3_stmt *q = bind(s, from, from->cases, error);
    bool row, ok;
    if (!q) return false;
    while ((ok = store_step(s, q, &row, error)) && row && r->case_count < capacity) {
        ids[r->case_count] = sqlite3_column_int64(q, 21);
        read_case_row(r, q, &r->cases[r->case_count++]);
    }
    sqlite3_reset(q);
    return ok;
}

static bool load_results(struct store *s, const struct source *from, struct stored_run *r, const int64_t *ids, int count, struct error *error) {
    struct stored_result *results = take(r, sizeof *results * (size_t)(count + 1));
    sqlite3_stmt *q = bind(s, from, from->results, error);
    bool row, ok;
    if (!q) return false;
    for (int i = 0, at = 0; (ok = store_step(s, q, &row, error)) && row && i < count; i++) {
        while (at < r->case_count && ids[at] != sqlite3_column_int64(q, 0)) at++;
        if (at == r->case_count || !read_result_row(r, q, &results[i])) {
            ok = error_set(error, "%s: run %lld: a result with verdict '%s' that belongs nowhere", s->path, (long long)r->id,
                           (const char *)sqlite3_column_text(q, 2));
            break;
        }
        if (!r->cases[at].result_count++) r->cases[at].results = &results[i];
    }
    sqlite3_reset(q);
    for (int i = 0; i < r->case_count; i++) {
        struct stored_case *c = &r->cases[i];
        c->verdict = verdict_of_results(c->results, c->result_count);
        c->waived = c->verdict == VERDICT_FAIL;
        for (int k = 0; k < c->result_count; k++) c->waived &= c->results[k].verdict != VERDICT_FAIL || c->results[k].waived;
    }
    return ok;
}

static bool load_waivers(struct store *s, const struct source *from, struct stored_run *r, int capacity, struct error *error) {
    sqlite3_stmt *q = bind(s, from, from->waivers, error);
    bool row, ok;
    r->waivers = take(r, sizeof *r->waivers * (size_t)(capacity + 1));
    if (!q) return false;
    while ((ok = store_step(s, q, &row, error)) && row && r->waiver_count < capacity)
        read_waiver_row(r, q, &r->waivers[r->waiver_count++]);
    sqlite3_reset(q);
    return ok;
}

static bool load_counts(struct store *s, const struct source *from, int *cases, int *results, int *waivers, struct error *error) {
    sqlite3_stmt *q = bind(s, from, from->counts, error);
    bool row;
    if (!q || !store_step(s, q, &row, error)) return false;
    *cases = sqlite3_column_int(q, 0);
    *results = sqlite3_column_int(q, 1);
    *waivers = sqlite3_column_int(q, 2);
    sqlite3_reset(q);
    return true;
}

static bool load_contents(struct store *s, const struct source *from, struct stored_run *r, struct error *error) {
    int cases, results, waivers;
    if (!load_plans(s, from, r, error) || !load_counts(s, from, &cases, &results, &waivers, error) || !load_waivers(s, from, r, waivers, error))
        return false;
    r->cases = take(r, sizeof *r->cases * (size_t)(cases + 1));
    int64_t *ids = take(r, sizeof *ids * (size_t)(cases + 1));
    return load_cases(s, from, r, ids, cases, error) && load_results(s, from, r, ids, results, error);
}

static bool no_such_run(struct store *s, int64_t run, struct error *error) {
    char found[256] = "";
    size_t used = 0;
    bool row = false;
    sqlite3_stmt *q = store_bind(s, SQL_RUN_IDS, error, "");
    for (int i = 0; q && store_step(s, q, &row, error) && row && i <= RUNS_NAMED; i++)
        used += (size_t)snprintf(found + used, sizeof found - used, i == RUNS_NAMED ? ", ..." : "%s%lld", i ? ", " : "",
                                 (long long)sqlite3_column_int64(q, 0));
    if (q) sqlite3_reset(q);
    if (!used) return error_set(error, "%s: holds no runs (`fsdpmark check` records one)", s->path);
    return error_set(error, "%s: no run %lld; it holds, newest first: %s", s->path, (long long)run, found);
}

static bool newest(struct store *s, int64_t *run, struct error *error) {
    sqlite3_stmt *q = store_bind(s, SQL_NEWEST_RUN, error, "");
    bool row;
    if (!q || !store_step(s, q, &row, error)) return false;
    *run = sqlite3_column_int64(q, 0);
    sqlite3_reset(q);
    return true;
}

static bool load(struct store *s, int64_t run, struct stored_run *out, struct error *error) {
    if (!run && !newest(s, &run, error)) return false;
    sqlite3_stmt *q = store_bind(s, SQL_RUN, error, "i", run);
    bool row;
    if (!q || !store_step(s, q, &row, error)) return false;
    if (!row) return no_such_run(s, run, error);
    read_run_row(out, q);
    sqlite3_reset(q);
    return load_contents(s, &(struct source){SQL_PLANS, SQL_WAIVERS, SQL_COUNTS, SQL_CASES, SQL_RESULTS, true, out->id, NULL}, out, error);
}

bool store_load_run(struct store *s, int64_t run, struct stored_run *out, struct error *error) {
    *out = (struct stored_run){0};
    if (sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) return store_failed(s, "cannot read", error);
    bool ok = load(s, run, out, error);
    sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
    if (!ok) stored_run_free(out);
    return ok;
}

static bool runs_exist(struct store *s, const int64_t *runs, int count, struct error *error) {
    for (int i = 0; i < count; i++) {
        bool row;
        sqlite3_stmt *q = store_bind(s, SQL_RUN, error, "i", runs[i]);
        if (!q || !store_step(s, q, &row, error)) return false;
        if (!row) return no_such_run(s, runs[i], error);
        sqlite3_reset(q);
    }
    return true;
}

static bool load_environments(struct store *s, const char *runs, struct stored_run *r, struct error *error) {
    bool row, ok;
    r->environment = json_object();
    sqlite3_stmt *q = store_bind(s, SQL_ENVIRONMENTS, error, "t", runs);
    if (!q) return false;
    while ((ok = store_step(s, q, &row, error)) && row)
        json_object_set_new(r->environment, (const char *)sqlite3_column_text(q, 0), json(q, 1));
    return ok;
}

static bool load_newest(struct store *s, const int64_t *runs, int count, struct stored_run *out, struct error *error) {
    json_t *list = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(list, json_integer(runs[i]));
    char *text = count ? json_dumps(list, 0) : NULL;
    struct source from = {SQL_NEWEST_PLANS, SQL_NEWEST_WAIVERS, SQL_NEWEST_COUNTS, SQL_NEWEST_CASES, SQL_NEWEST_RESULTS, false, 0, text};
    bool ok = runs_exist(s, runs, count, error) && load_environments(s, text, out, error) && load_contents(s, &from, out, error);
    json_decref(list);
    free(text);
    return ok;
}

bool store_load_newest(struct store *s, const int64_t *runs, int count, struct stored_run *out, struct error *error) {
    *out = (struct stored_run){.command = "", .started = ""};
    if (sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) return store_failed(s, "cannot read", error);
    bool ok = load_newest(s, runs, count, out, error);
    sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
    if (!ok) stored_run_free(out);
    return ok;
}

bool stored_run_judges(const struct stored_run *r) {
    const char *name;
    json_t *plan;
    json_object_foreach(r->implementations, name, plan)
        if (json_integer_value(json_object_get(plan, "planned")) > 0) return true;
    return r->case_count > 0;
}

void stored_run_free(struct stored_run *r) {
    for (int i = 0; i < r->case_count; i++) {
        json_decref(r->cases[i].figures);
        json_decref(r->cases[i].probes);
    }
    json_decref(r->environment);
    json_decref(r->implementations);
    for (struct block *b = r->arena, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    *r = (struct stored_run){0};
}

// The names of the columns of SQL_RUNS, in order; text columns first, then numbers.
bool store_list_runs(struct store *s, json_t **out, struct error *error) {
    static const char *const names[] = {"id", "command", "profile", "pattern", "started", "ended", "exit_status",
                                        "pass", "fail", "skip", "broken", "cases", "waived"};
    sqlite3_stmt *q = store_bind(s, SQL_RUNS, error, "");
    bool row, ok;
    if (!q) return false;
    *out = json_array();
    while ((ok = store_step(s, q, &row, error)) && row) {
        json_t *run = json_object();
        for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
            int type = sqlite3_column_type(q, i);
            json_t *value = type == SQLITE_NULL ? (i >= 7 ? json_integer(0) : json_null())
                            : type == SQLITE_TEXT ? json_string_nocheck((const char *)sqlite3_column_text(q, i))
                                                  : json_integer(sqlite3_column_int64(q, i));
            json_object_set_new(run, names[i], value);
        }
        json_array_append_new(*out, run);
    }
    if (!ok) {
        json_decref(*out);
        *out = NULL;
    }
    return ok;
}
