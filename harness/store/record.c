// Writing a run: its start, its plans, its cases one transaction each, its end.
//
// A case is recorded whole or not at all, so that a run that was killed resumes at the first case
// that is not there. A case is recorded once: a second verdict on it is an error, not a correction.
#include <stdlib.h>
#include <string.h>

#include "harness/store/connection.h"

static char *dump(json_t *value) { return value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL; }

bool store_begin_run(struct store *s, const struct run_info *info, int64_t *run, struct error *error) {
    char *environment = dump(info->environment);
    bool ok = store_run(s, SQL_BEGIN_RUN, error, "tttit", info->command ? info->command : "", info->profile, info->pattern,
                        (int64_t)info->seed, environment ? environment : "{}");
    free(environment);
    if (ok) *run = sqlite3_last_insert_rowid(s->db);
    return ok;
}

bool store_set_plan(struct store *s, int64_t run, const char *implementation, int planned, json_t *versions, const char *note, struct error *error) {
    char *text = dump(versions);
    bool ok = store_run(s, SQL_SET_PLAN, error, "ititt", run, implementation, (int64_t)planned, text ? text : "{}", note);
    free(text);
    return ok;
}

bool store_add_seconds(struct store *s, int64_t run, const char *implementation, double seconds, struct error *error) {
    return store_run(s, SQL_ADD_SECONDS, error, "itr", run, implementation, seconds);
}

bool store_add_waiver(struct store *s, int64_t run, const struct waiver_record *w, int64_t *id, struct error *error) {
    bool row = false;
    if (!store_run(s, SQL_ADD_WAIVER, error, "itttttttt", run, w->implementation, w->checks, w->cases, w->versions, w->reason, w->page,
                   w->expires, w->origin))
        return false;
    sqlite3_stmt *q = store_bind(s, SQL_FIND_WAIVER, error, "itttttttt", run, w->implementation, w->checks, w->cases, w->versions, w->reason,
                                 w->page, w->expires, w->origin);
    if (!q || !store_step(s, q, &row, error)) return false;
    if (!row) return error_set(error, "%s: waiver %s was not recorded", s->path, w->origin);
    *id = sqlite3_column_int64(q, 0);
    sqlite3_reset(q);
    return true;
}

static bool insert_results(struct store *s, const struct case_record *r, int64_t id, struct error *error) {
    for (int i = 0; i < r->result_count; i++) {
        const struct finding *f = &r->results[i].finding;
        if (!store_run(s, SQL_RECORD_RESULT, error, "iittrrtttti", id, (int64_t)i, r->results[i].check, verdict_name(f->verdict),
                       f->figure, f->bound, f->unit, f->message, f->classes, f->ranks, r->waivers ? r->waivers[i] : (int64_t)0))
            return false;
    }
    return true;
}

static bool insert_case(struct store *s, int64_t run, const struct case_record *r, struct error *error) {
    char *figures = dump(r->figures), *probes = dump(r->probes);
    bool ok = store_run(s, SQL_RECORD_CASE, error, "ittttttttiittrritttttt", run, r->implementation, r->case_id, r->family, r->layer,
                        r->model, r->strategy, r->layout, r->compute, (int64_t)r->world_size, (int64_t)r->seed, r->case_json,
                        r->origin, r->seconds, r->judge_seconds, (int64_t)r->start, r->log_tail, figures, r->digest, r->truth_digest, r->note,
                        probes);
    free(probes);
    free(figures);
    return ok && insert_results(s, r, sqlite3_last_insert_rowid(s->db), error);
}

bool store_record_case(struct store *s, int64_t run, const struct case_record *r, struct error *error) {
    if (store_has_case(s, run, r->implementation, r->case_id))
        return error_set(error, "%s: run %lld has case %s of %s already", s->path, (long long)run, r->case_id, r->implementation);
    if (!store_run(s, SQL_BEGIN, error, "")) return false;
    if (insert_case(s, run, r, error) && store_run(s, SQL_COMMIT, error, "")) return true;
    store_run(s, SQL_ROLLBACK, NULL, "");
    return false;
}

bool store_has_case(struct store *s, int64_t run, const char *implementation, const char *case_id) {
    sqlite3_stmt *q = store_bind(s, SQL_HAS_CASE, NULL, "itt", run, implementation, case_id);
    bool row = false;
    bool found = q && store_step(s, q, &row, NULL) && row;
    if (q) sqlite3_reset(q);
    return found;
}

bool store_end_run(struct store *s, int64_t run, int exit_status, struct error *error) {
    if (!store_run(s, SQL_END_RUN, error, "ii", (int64_t)exit_status, run)) return false;
    return sqlite3_changes(s->db) == 1 || error_set(error, "%s: no run %lld to end", s->path, (long long)run);
}
