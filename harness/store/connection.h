// The open database behind struct store: its prepared statements and how they are bound and run.
// Private to harness/store.
#ifndef HARNESS_STORE_CONNECTION_H
#define HARNESS_STORE_CONNECTION_H

#include <sqlite3.h>

#include "harness/store/store.h"

enum statement {
    SQL_BEGIN, SQL_COMMIT, SQL_ROLLBACK,
    SQL_BEGIN_RUN, SQL_END_RUN, SQL_SET_PLAN, SQL_ADD_SECONDS, SQL_ADD_WAIVER, SQL_FIND_WAIVER,
    SQL_RECORD_CASE, SQL_RECORD_RESULT, SQL_HAS_CASE,
    SQL_NEWEST_RUN, SQL_RUN, SQL_PLANS, SQL_WAIVERS, SQL_COUNTS, SQL_CASES, SQL_RESULTS, SQL_RUNS, SQL_RUN_IDS,
    SQL_NEWEST_PLANS, SQL_NEWEST_WAIVERS, SQL_NEWEST_COUNTS, SQL_NEWEST_CASES, SQL_NEWEST_RESULTS, SQL_ENVIRONMENTS,
    SQL_ADD_SERIES, SQL_SET_SERIES_FACTS, SQL_ADD_SAMPLE, SQL_NEXT_SAMPLE, SQL_NEWEST_SERIES_RUN, SQL_SERIES, SQL_SERIES_COUNTS, SQL_SAMPLES,
    SQL_STATEMENTS
};

struct store {
    sqlite3 *db;
    char *path;                             // as the caller named it, for messages
    sqlite3_stmt *statements[SQL_STATEMENTS]; // prepared at first use
};

// The statement, reset and bound by one letter an argument: t const char * (NULL is NULL),
// i int64_t, r double (NaN is NULL). NULL where it cannot be prepared or bound (error is set).
sqlite3_stmt *store_bind(struct store *s, enum statement id, struct error *error, const char *format, ...);
// Binds and runs a statement that gives no rows; changes nothing where it fails.
bool store_run(struct store *s, enum statement id, struct error *error, const char *format, ...);
// The next row: true with *row true, true with *row false at the end, false on an error.
bool store_step(struct store *s, sqlite3_stmt *statement, bool *row, struct error *error);
// "PATH: what: SQLite's message".
bool store_failed(struct store *s, const char *what, struct error *error);

#endif
