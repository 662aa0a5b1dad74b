// Opening the results store and running its statements.
//
// Write-ahead logging makes a killed writer harmless: what was committed is in the log, and the next
// one to open the file replays it. synchronous = NORMAL syncs at checkpoints, which under a log is
// safe against a crash of the process always and never corrupts after one of the machine
// (source: sqlite.org/pragma.html#pragma_synchronous).
#include "harness/store/connection.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/protocol/memory.h"
#include "schema.h"

enum { APPLICATION_ID = 0x46534450, SCHEMA_VERSION = 5, OLDEST_VERSION = 2, BUSY_MS = 10000, BUSY_STEP_MS = 50 };

#define CASE_COLUMNS                                                                                              \
    "implementation, case_id, family, layer, model, strategy, layout, compute, world_size, seed, case_json, "     \
    "origin, seconds, judge_seconds, start, log_tail, figures, digest, truth_digest, note, probes"
#define WAIVER_COLUMNS "implementation, checks, cases, versions, reason, page, expires, origin"
// ?1: a JSON list of runs; NULL: all but those of selftest, whose subjects are faulty on purpose.
#define WANTED_RUNS "SELECT id FROM run WHERE CASE WHEN ?1 IS NULL THEN coalesce(profile, '') <> 'selftest' ELSE id IN (SELECT value FROM json_each(?1)) END"
#define NEWEST_CASES "SELECT max(id) FROM judged_case WHERE run IN (" WANTED_RUNS ") GROUP BY implementation, case_id"
#define NOW "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"

#define OF_RUN(table) "(SELECT 1 FROM " table " WHERE run = r.id)"
#define NOT_JUDGED \
    "CASE WHEN EXISTS " OF_RUN("series") " AND NOT EXISTS (SELECT 1 FROM plan WHERE run = r.id AND planned > 0) AND NOT EXISTS " OF_RUN("judged_case") " THEN 0 " \
    "ELSE (SELECT count(*) FROM plan p WHERE p.run = r.id AND max(p.planned, 1) > " \
    "(SELECT count(*) FROM judged_case c WHERE c.run = p.run AND c.implementation = p.implementation)) " \
    "+ (NOT EXISTS " OF_RUN("plan") " AND NOT EXISTS " OF_RUN("judged_case") ") END"
#define LOOSE_WAIVERS \
    "(SELECT count(*) FROM (SELECT implementation FROM waiver WHERE run = r.id AND expires < substr(r.started, 1, 10) UNION SELECT w.implementation " \
    "FROM judged_case c JOIN result t ON t.judged_case = c.id JOIN waiver w ON w.id = t.waiver WHERE c.run = r.id AND t.verdict = 'PASS'))"

static const char *const statement_sql[SQL_STATEMENTS] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_BEGIN_RUN] = "INSERT INTO run (command, profile, pattern, seed, environment, started) VALUES (?, ?, ?, ?, ?, " NOW ")",
    [SQL_END_RUN] = "UPDATE run SET ended = " NOW ", exit_status = ? WHERE id = ?",
    [SQL_SET_PLAN] = "INSERT INTO plan (run, implementation, planned, versions, note) VALUES (?, ?, ?, ?, ?) "
                     "ON CONFLICT DO UPDATE SET planned = excluded.planned, versions = excluded.versions, note = excluded.note",
    [SQL_ADD_SECONDS] = "UPDATE plan SET seconds = coalesce(seconds, 0) + ?3 WHERE run = ?1 AND implementation = ?2",
    [SQL_ADD_WAIVER] = "INSERT INTO waiver (run, " WAIVER_COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    [SQL_FIND_WAIVER] = "SELECT id FROM waiver WHERE run = ? AND (" WAIVER_COLUMNS ") = (?, ?, ?, ?, ?, ?, ?, ?)",
    [SQL_RECORD_CASE] = "INSERT INTO judged_case (run, " CASE_COLUMNS ") "
                        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [SQL_RECORD_RESULT] = "INSERT INTO result (judged_case, position, check_name, verdict, figure, bound, unit, message, "
                          "classes, ranks, waiver) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0))",
    [SQL_HAS_CASE] = "SELECT 1 FROM judged_case WHERE run = ? AND implementation = ? AND case_id = ?",
    // Of cases: a run that only measured series is not what a report of verdicts is about, unless there is no other. Bench states versions in a plan of 0 cases.
    [SQL_NEWEST_RUN] = "SELECT coalesce(max(id) FILTER (WHERE id IN (SELECT run FROM plan WHERE planned > 0) OR id NOT IN (SELECT run FROM series)), max(id)) FROM run",
    [SQL_RUN] = "SELECT id, command, profile, pattern, started, ended, exit_status, seed, environment FROM run WHERE id = ?",
    [SQL_PLANS] = "SELECT implementation, planned, versions, note, seconds FROM plan WHERE run = ? ORDER BY rowid",
    [SQL_WAIVERS] = "SELECT " WAIVER_COLUMNS ", id, expires < (SELECT substr(started, 1, 10) FROM run WHERE id = ?1) FROM waiver "
                    "WHERE run = ?1 ORDER BY id",
    [SQL_COUNTS] = "SELECT (SELECT count(*) FROM judged_case WHERE run = ?1), (SELECT count(*) FROM result r "
                   "JOIN judged_case c ON c.id = r.judged_case WHERE c.run = ?1), (SELECT count(*) FROM waiver WHERE run = ?1)",
    [SQL_CASES] = "SELECT " CASE_COLUMNS ", id, run FROM judged_case WHERE run = ? ORDER BY id",
    [SQL_RESULTS] = "SELECT r.judged_case, check_name, verdict, figure, bound, unit, message, classes, ranks, waiver "
                    "FROM judged_case c JOIN result r ON r.judged_case = c.id WHERE c.run = ? ORDER BY c.id, r.position",
    [SQL_NEWEST_PLANS] = "SELECT implementation, planned, versions, note, seconds, max(run) FROM plan p WHERE run IN (" WANTED_RUNS ") "
                         "AND (planned > 0 OR run NOT IN (SELECT run FROM series)) GROUP BY implementation",
    [SQL_NEWEST_WAIVERS] = "SELECT " WAIVER_COLUMNS ", w.id, expires < substr(started, 1, 10) FROM waiver w JOIN run r ON r.id = w.run "
                           "WHERE run IN (" WANTED_RUNS ")",
    [SQL_NEWEST_COUNTS] = "SELECT count(*), coalesce(sum((SELECT count(*) FROM result WHERE judged_case = c.id)), 0), "
                          "(SELECT count(*) FROM waiver) FROM judged_case c WHERE id IN (" NEWEST_CASES ")",
    [SQL_NEWEST_CASES] = "SELECT implementation, case_id, family, layer, model, strategy, layout, compute, world_size, seed, case_json, origin, "
                         "seconds, judge_seconds, start, log_tail, NULL, digest, truth_digest, note, NULL, id, run FROM judged_case WHERE id IN ("
                         NEWEST_CASES ") ORDER BY id",
    [SQL_NEWEST_RESULTS] = "SELECT judged_case, check_name, verdict, figure, bound, unit, message, classes, ranks, waiver FROM result "
                           "WHERE judged_case IN (" NEWEST_CASES ") ORDER BY judged_case, position",
    [SQL_ENVIRONMENTS] = "SELECT id, environment FROM run WHERE id IN (" WANTED_RUNS ")",
    // As every report counts (report/view.c): an implementation of which something was not judged is one BROKEN more, one whose waivers do not hold one FAIL.
    [SQL_RUNS] = "SELECT r.id, r.command, r.profile, r.pattern, r.started, r.ended, r.exit_status, "
                 "sum(v.verdict = 'PASS'), total(v.verdict = 'FAIL') + " LOOSE_WAIVERS ", sum(v.verdict = 'SKIP'), total(v.verdict = 'BROKEN') + " NOT_JUDGED ", "
                 "count(v.run), sum(v.waived) FROM run r LEFT JOIN case_verdict v ON v.run = r.id GROUP BY r.id ORDER BY r.id",
    [SQL_RUN_IDS] = "SELECT id FROM run ORDER BY id DESC",
    [SQL_ADD_SERIES] = "INSERT INTO series (run, tool, fabric, subject, name, quantity, point, facts) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [SQL_SET_SERIES_FACTS] = "UPDATE series SET facts = ? WHERE id = ?",
    [SQL_ADD_SAMPLE] = "INSERT INTO sample (series, launch, position, value) VALUES (?, ?, ?, ?)",
    [SQL_NEXT_SAMPLE] = "SELECT coalesce(max(position) + 1, 0) FROM sample WHERE series = ? AND launch = ?",
    [SQL_NEWEST_SERIES_RUN] = "SELECT coalesce(max(run), 0) FROM series WHERE ?1 IS NULL OR tool = ?1",
    [SQL_SERIES] = "SELECT id, run, tool, fabric, subject, name, quantity, point, facts FROM series WHERE run = ?1 AND (?2 IS NULL OR tool = ?2) "
                   "ORDER BY id",
    [SQL_SERIES_COUNTS] = "SELECT count(*), sum((SELECT count(*) FROM sample WHERE series = s.id)), "
                          "sum((SELECT count(DISTINCT launch) FROM sample WHERE series = s.id)) FROM series s "
                          "WHERE run = ?1 AND (?2 IS NULL OR tool = ?2)",
    [SQL_SAMPLES] = "SELECT p.series, p.launch, p.value FROM series s JOIN sample p ON p.series = s.id WHERE s.run = ?1 AND (?2 IS NULL OR s.tool = ?2) "
                    "ORDER BY p.series, p.launch, p.position",
};

bool store_failed(struct store *s, const char *what, struct error *error) {
    return error_set(error, "%s: %s: %s", s->path, what, s->db ? sqlite3_errmsg(s->db) : "out of memory");
}

static bool bind_all(sqlite3_stmt *q, const char *format, va_list args) {
    int status = SQLITE_OK;
    for (int i = 1; *format && status == SQLITE_OK; i++, format++) {
        if (*format == 't') {
            status = sqlite3_bind_text(q, i, va_arg(args, const char *), -1, SQLITE_TRANSIENT);
        } else if (*format == 'i') {
            status = sqlite3_bind_int64(q, i, va_arg(args, int64_t));
        } else {
            double x = va_arg(args, double); // SQLite would store NaN as NULL too; saying so is cheap
            status = isnan(x) ? sqlite3_bind_null(q, i) : sqlite3_bind_double(q, i, x);
        }
    }
    return status == SQLITE_OK;
}

static sqlite3_stmt *bind_list(struct store *s, enum statement id, struct error *error, const char *format, va_list args) {
    sqlite3_stmt **q = &s->statements[id];
    if (!*q && sqlite3_prepare_v3(s->db, statement_sql[id], -1, SQLITE_PREPARE_PERSISTENT, q, NULL) != SQLITE_OK) {
        store_failed(s, "cannot prepare a statement", error);
        return NULL;
    }
    sqlite3_reset(*q);
    if (bind_all(*q, format, args)) return *q;
    store_failed(s, "cannot bind a statement", error);
    return NULL;
}

sqlite3_stmt *store_bind(struct store *s, enum statement id, struct error *error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    sqlite3_stmt *q = bind_list(s, id, error, format, args);
    va_end(args);
    return q;
}

bool store_step(struct store *s, sqlite3_stmt *statement, bool *row, struct error *error) {
    int status = sqlite3_step(statement);
    *row = status == SQLITE_ROW;
    if (*row) return true;
    if (status != SQLITE_DONE) store_failed(s, "cannot read or write the results", error);
    sqlite3_reset(statement); // ends the implicit transaction, so that no reader holds the log open
    return status == SQLITE_DONE;
}

bool store_run(struct store *s, enum statement id, struct error *error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    sqlite3_stmt *q = bind_list(s, id, error, format, args);
    va_end(args);
    bool row;
    return q && store_step(s, q, &row, error);
}

// The one number that a query gives.
static bool query_number(struct store *s, const char *sql, int64_t *out, struct error *error) {
    sqlite3_stmt *q = NULL;
    bool ok = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW;
    if (ok) *out = sqlite3_column_int64(q, 0);
    else if (sqlite3_errcode(s->db) == SQLITE_NOTADB) error_set(error, "%s: not a results store: the file is no SQLite database", s->path);
    else store_failed(s, "cannot open the results store", error);
    sqlite3_finalize(q);
    return ok;
}

// Switching the journal mode needs the file alone and does not wait for the busy timeout, so two programs that
// create a store at once are made to take turns here.
static bool execute_waiting(struct store *s, const char *sql, struct error *error) {
    for (int waited = 0; waited < BUSY_MS; waited += BUSY_STEP_MS) {
        int status = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
        if (status == SQLITE_OK) return true;
        if ((status & 0xff) != SQLITE_BUSY) break;
        sqlite3_sleep(BUSY_STEP_MS);
    }
    return store_failed(s, "cannot set up the results store", error);
}

struct identity { int64_t application, version, objects; };
// One snapshot: between the first number and the last another program may create the store.
static bool identify(struct store *s, struct identity *out, struct error *error) {
    bool inside = !sqlite3_get_autocommit(s->db);
    if (!inside && !execute_waiting(s, "BEGIN", error)) return false;
    bool ok = query_number(s, "PRAGMA application_id", &out->application, error) &&
              query_number(s, "PRAGMA user_version", &out->version, error) &&
              query_number(s, "SELECT count(*) FROM sqlite_master", &out->objects, error);
    if (!inside) sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
    return ok;
}

static bool is_empty(const struct identity *i) { return !i->application && !i->version && !i->objects; }

static bool check_identity(struct store *s, const struct identity *i, struct error *error) {
    if (i->application != APPLICATION_ID)
        return error_set(error, "%s: not a results store: a SQLite database of another program (application id %lld, expected %d)",
                         s->path, (long long)i->application, APPLICATION_ID);
    if (i->version < OLDEST_VERSION || i->version > SCHEMA_VERSION)
        return error_set(error, "%s: results store of schema version %lld, this program reads versions %d to %d; "
                         "use the fsdpmark that wrote it, or another file", s->path, (long long)i->version, OLDEST_VERSION, SCHEMA_VERSION);
    return true;
}

// Tables are made, or changed, inside one transaction, after a second look: another program may have been first.
static bool execute_alone(struct store *s, bool (*due)(const struct identity *), const char *sql, const char *what, struct error *error) {
    struct identity now;
    if (!execute_waiting(s, "BEGIN IMMEDIATE", error)) return false;
    bool ok = identify(s, &now, error);
    if (ok && due(&now)) ok = sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK || store_failed(s, what, error);
    if (sqlite3_exec(s->db, ok ? "COMMIT" : "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK && ok) ok = store_failed(s, what, error);
    return ok;
}

static bool create(struct store *s, struct error *error) {
    return execute_waiting(s, "PRAGMA journal_mode = WAL", error) && execute_alone(s, is_empty, schema_sql, "cannot create the tables", error);
}

static bool is_old(const struct identity *i) { return i->version < SCHEMA_VERSION; }
static bool is_version_2(const struct identity *i) { return i->version == 2; }
static bool is_version_3(const struct identity *i) { return i->version == 3; }
static bool is_version_4(const struct identity *i) { return i->version == 4; }

// A store that is only to be read is brought up to date by a second, writing, connection.
static bool upgrade(struct store *s, bool read_only, int version, struct error *error) {
    struct store *writer;
    struct error own = {0};
    static const char what[] = "cannot bring the results store to the current schema";
    if (!read_only)
        return execute_alone(s, is_version_2, schema_2_to_3_sql, what, error) && execute_alone(s, is_version_3, schema_3_to_4_sql, what, error) &&
               execute_alone(s, is_version_4, schema_4_to_5_sql, what, error);
    if (!store_open(s->path, false, &writer, &own))
        return error_set(error, "%s: results store of schema version %d, which must be brought to version %d, and cannot be written here", s->path,
                         version, SCHEMA_VERSION);
    store_close(writer);
    return true;
}

static bool prepare_store(struct store *s, bool read_only, struct error *error) {
    struct identity i;
    if (!identify(s, &i, error)) return false;
    if (is_empty(&i)) {
        if (read_only) return error_set(error, "%s: an empty file, expected a results store (`fsdpmark check` writes one)", s->path);
        if (!create(s, error) || !identify(s, &i, error)) return false;
    }
    if (!check_identity(s, &i, error) || (is_old(&i) && !upgrade(s, read_only, (int)i.version, error))) return false;
    if (read_only) return true;
    return execute_waiting(s, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON", error);
}

// A log that a killed writer left needs its index file beside it even to be read. In a folder that cannot be written,
// a store without a log can still be read as the immutable file that it is.
static int open_file(struct store *s, bool read_only) {
    if (!read_only) return sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    char *log = sqlite3_mprintf("%s-wal", s->path), *folder = sqlite3_mprintf("%s", s->path);
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash) slash[1] = 0;
    bool immutable = log && folder && access(log, F_OK) && access(slash ? folder : ".", W_OK);
    sqlite3_free(folder);
    sqlite3_free(log);
    if (!immutable) return sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READONLY, NULL);
    sqlite3_str *uri = sqlite3_str_new(NULL);
    sqlite3_str_appendall(uri, "file:");
    for (const char *p = s->path; *p; p++)
        strchr("%?#", *p) ? sqlite3_str_appendf(uri, "%%%02X", *p) : sqlite3_str_appendchar(uri, 1, *p);
    sqlite3_str_appendall(uri, "?immutable=1");
    char *text = sqlite3_str_finish(uri);
    int status = text ? sqlite3_open_v2(text, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) : SQLITE_NOMEM;
    sqlite3_free(text);
    return status;
}

bool store_open(const char *path, bool read_only, struct store **out, struct error *error) {
    struct stat about;
    *out = NULL;
    if (!stat(path, &about) && S_ISDIR(about.st_mode)) return error_set(error, "%s: a folder, expected the file of a results store", path);
    if (read_only && access(path, F_OK))
        return error_set(error, "%s: no such file, expected a results store (`fsdpmark check` writes one)", path);
    struct store *s = memory_zeros(1, sizeof *s);
    s->path = memory_text(path);
    bool ok = open_file(s, read_only) == SQLITE_OK || store_failed(s, "cannot open the results store", error);
    if (ok) {
        sqlite3_busy_timeout(s->db, BUSY_MS);
        ok = prepare_store(s, read_only, error);
    }
    if (ok) *out = s;
    else store_close(s);
    return ok;
}

void store_close(struct store *s) {
    if (!s) return;
    for (int i = 0; i < SQL_STATEMENTS; i++) sqlite3_finalize(s->statements[i]);
    sqlite3_close(s->db);
    free(s->path);
    free(s);
}
