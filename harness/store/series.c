// Series and their raw samples, written and read. See series.h.
//
// The point is stored as text with sorted keys, so that the same point twice is refused, however its object was built.
#include "harness/store/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/store/connection.h"

static char *dump(json_t *object) { return object ? json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS) : NULL; }

bool store_add_series(struct store *s, int64_t run, const struct series *series, int64_t *id, struct error *error) {
    char *point = dump(series->point), *facts = dump(series->facts);
    bool ok = point || error_set(error, "%s: series %s of %s: its point is no JSON object", s->path, series->name, series->tool);
    ok = ok && store_run(s, SQL_ADD_SERIES, error, "ittttttt", run, series->tool, series->fabric, series->subject, series->name, series->quantity,
                         point, facts);
    if (ok) *id = sqlite3_last_insert_rowid(s->db);
    free(point);
    free(facts);
    return ok;
}

bool store_set_series_facts(struct store *s, int64_t id, json_t *facts, struct error *error) {
    char *text = dump(facts);
    bool ok = store_run(s, SQL_SET_SERIES_FACTS, error, "ti", text, id);
    free(text);
    return ok && (sqlite3_changes(s->db) == 1 || error_set(error, "%s: no series %lld", s->path, (long long)id));
}

static bool insert_samples(struct store *s, int64_t series, int launch, int count, const double *values, struct error *error) {
    bool row;
    sqlite3_stmt *q = store_bind(s, SQL_NEXT_SAMPLE, error, "ii", series, (int64_t)launch);
    if (!q || !store_step(s, q, &row, error)) return false;
    int64_t next = sqlite3_column_int64(q, 0);
    sqlite3_reset(q);
    for (int i = 0; i < count; i++)
        if (!store_run(s, SQL_ADD_SAMPLE, error, "iiir", series, (int64_t)launch, next + i, values[i])) return false;
    return true;
}

bool store_add_samples(struct store *s, int64_t series, int launch, int count, const double *values, struct error *error) {
    for (int i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return error_set(error, "%s: sample %d of launch %d of series %lld is %g, expected a finite number", s->path, i, launch, (long long)series, values[i]);
    if (!store_run(s, SQL_BEGIN, error, "")) return false;
    if (insert_samples(s, series, launch, count, values, error) && store_run(s, SQL_COMMIT, error, "")) return true;
    store_run(s, SQL_ROLLBACK, NULL, "");
    return false;
}

// ---- reading ----
// What a loaded list owns beside its items: blocks in a chain.
struct block { struct block *next; double align; };

static void *take(struct stored_serieses *out, size_t count, size_t size) {
    struct block *b = memory_zeros(1, sizeof *b + count * size);
    b->next = out->arena;
    out->arena = b;
    return b + 1;
}

static const char *text(struct stored_serieses *out, sqlite3_stmt *q, int column) {
    const char *from = (const char *)sqlite3_column_text(q, column);
    size_t bytes = (size_t)sqlite3_column_bytes(q, column);
    return memcpy(take(out, bytes + 1, 1), from ? from : "", bytes);
}

static json_t *object(sqlite3_stmt *q, int column) {
    const char *from = (const char *)sqlite3_column_text(q, column);
    return from ? json_loads(from, 0, NULL) : NULL;
}

static bool load_rows(struct store *s, int64_t run, const char *tool, struct stored_serieses *out, int capacity, struct error *error) {
    bool row, ok;
    sqlite3_stmt *q = store_bind(s, SQL_SERIES, error, "it", run, tool);
    if (!q) return false;
    while ((ok = store_step(s, q, &row, error)) && row && out->count < capacity) {
        struct stored_series *x = &out->items[out->count++];
        const char **texts[] = {&x->tool, &x->fabric, &x->subject, &x->name, &x->quantity};
        x->id = sqlite3_column_int64(q, 0);
        x->run = sqlite3_column_int64(q, 1);
        for (int i = 0; i < 5; i++) *texts[i] = text(out, q, 2 + i);
        x->point = object(q, 7);
        x->facts = object(q, 8);
        if (!x->point) ok = error_set(error, "%s: series %lld: its point is no JSON object", s->path, (long long)x->id);
        if (!ok) break;
    }
    sqlite3_reset(q);
    return ok;
}

struct launch_samples { int count; const double *values; };

// Rows come by series, launch and position: each begins a new series, a new launch, or adds to the one before.
static bool load_samples(struct store *s, int64_t run, const char *tool, struct stored_serieses *out, int samples, int launches, struct error *error) {
    double *values = take(out, (size_t)samples, sizeof *values);
    struct launch_samples *starts = take(out, (size_t)launches, sizeof *starts);
    int at = 0, used = 0, started = 0;
    int64_t launch = -1;
    bool row, ok;
    sqlite3_stmt *q = store_bind(s, SQL_SAMPLES, error, "it", run, tool);
    if (!q) return false;
    while ((ok = store_step(s, q, &row, error)) && row && used < samples) {
        int64_t id = sqlite3_column_int64(q, 0);
        while (at < out->count && out->items[at].id != id) at++;
        if (at == out->count) break; // cannot be: both are read in one transaction
        struct stored_series *x = &out->items[at];
        if (!x->count) {
            x->values = values + used;
            x->launches = (void *)(starts + started);
        }
        if (!x->count || sqlite3_column_int64(q, 1) != launch) {
            if (started == launches) break;
            starts[started++].values = values + used;
            x->launch_count++;
        }
        launch = sqlite3_column_int64(q, 1);
        values[used++] = sqlite3_column_double(q, 2);
        starts[started - 1].count++;
        x->count++;
    }
    sqlite3_reset(q);
    return ok && (used == samples || error_set(error, "%s: run %lld: a sample that belongs to no series", s->path, (long long)run));
}

static bool newest(struct store *s, const char *tool, int64_t *run, struct error *error) {
    bool row;
    sqlite3_stmt *q = store_bind(s, SQL_NEWEST_SERIES_RUN, error, "t", tool);
    if (!q || !store_step(s, q, &row, error)) return false;
    *run = sqlite3_column_int64(q, 0);
    sqlite3_reset(q);
    return *run || error_set(error, "%s: holds no measured series%s%s", s->path, tool ? " of " : "", tool ? tool : "");
}

bool store_count_series(struct store *s, int64_t run, int *count, struct error *error) {
    bool row;
    sqlite3_stmt *q = store_bind(s, SQL_SERIES_COUNTS, error, "it", run, NULL);
    if (!q || !store_step(s, q, &row, error)) return false;
    *count = sqlite3_column_int(q, 0);
    sqlite3_reset(q);
    return true;
}

static bool load(struct store *s, int64_t run, const char *tool, struct stored_serieses *out, struct error *error) {
    bool row;
    if (!run && !newest(s, tool, &run, error)) return false;
    sqlite3_stmt *q = store_bind(s, SQL_SERIES_COUNTS, error, "it", run, tool);
    if (!q || !store_step(s, q, &row, error)) return false;
    int count = sqlite3_column_int(q, 0), samples = sqlite3_column_int(q, 1), launches = sqlite3_column_int(q, 2);
    sqlite3_reset(q);
    if (!count)
        return error_set(error, "%s: run %lld holds no measured series%s%s", s->path, (long long)run, tool ? " of " : "", tool ? tool : "");
    out->items = take(out, (size_t)count, sizeof *out->items);
    return load_rows(s, run, tool, out, count, error) && load_samples(s, run, tool, out, samples, launches, error);
}

bool store_load_series(struct store *s, int64_t run, const char *tool, struct stored_serieses *out, struct error *error) {
    *out = (struct stored_serieses){0};
    if (sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) return store_failed(s, "cannot read", error);
    bool ok = load(s, run, tool, out, error);
    sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
    if (!ok) stored_series_free(out);
    return ok;
}

const char *stored_series_tool(const struct stored_serieses *s) {
    for (int i = 1; i < s->count; i++)
        if (strcmp(s->items[i].tool, s->items[0].tool)) return "";
    return s->count ? s->items[0].tool : "";
}

void stored_series_free(struct stored_serieses *s) {
    for (int i = 0; i < s->count; i++) {
        json_decref(s->items[i].point);
        json_decref(s->items[i].facts);
    }
    for (struct block *b = s->arena, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    *s = (struct stored_serieses){0};
}
