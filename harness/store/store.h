// The results database: SQLite, write-ahead log, one transaction per case. The report reads only this.
// Schema: results/schema.sql (embedded at build time).
#ifndef HARNESS_STORE_H
#define HARNESS_STORE_H

#include <jansson.h>

#include "harness/judge/judge.h"

struct store;

struct run_info {
    const char *command;      // the command line
    const char *profile, *pattern;
    uint64_t seed;
    json_t *environment;      // allowlisted facts; borrowed
};
struct case_record {
    const char *implementation, *case_id, *family, *layer, *model, *strategy, *layout, *compute;
    int world_size;
    uint64_t seed;
    const char *case_json;    // text of case.json
    const char *origin;       // FILE:LINE
    double seconds;           // of the case in the worker, NAN where unknown
    double judge_seconds;
    int start;                // which start of the workers served it
    int result_count;
    const struct result *results;
    const char *log_tail;     // last lines of the ranks' output where something went wrong, or NULL
    json_t *figures;          // per tensor: [{"check","label","tensor","figure","bound"}...], or NULL
    json_t *probes;           // what the probes saw (harness/probes/stored.h), or NULL
    const char *digest, *truth_digest; // of the final parameters, the subject's and the truth's, for --resume; NULL or "" where unknown
    const char *note;         // that its verdict must be read with, or NULL
    const int64_t *waivers;   // by result: the waiver that covers it, 0 where none does; or NULL
};
// A waiver that concerns an implementation of the run, in words (harness/judge/waivers.h).
struct waiver_record { const char *implementation, *checks, *cases, *versions, *reason, *page, *expires, *origin; };

// Opens or creates; errors name the file. A store left by a killed run opens.
bool store_open(const char *path, bool read_only, struct store **out, struct error *error);
void store_close(struct store *s);
bool store_begin_run(struct store *s, const struct run_info *info, int64_t *run, struct error *error);
// note: what every verdict on the implementation must be read with, or NULL.
bool store_set_plan(struct store *s, int64_t run, const char *implementation, int planned, json_t *versions, const char *note, struct error *error);
bool store_add_seconds(struct store *s, int64_t run, const char *implementation, double seconds, struct error *error);
// The same waiver twice is recorded once.
bool store_add_waiver(struct store *s, int64_t run, const struct waiver_record *waiver, int64_t *id, struct error *error);
bool store_record_case(struct store *s, int64_t run, const struct case_record *record, struct error *error);
bool store_has_case(struct store *s, int64_t run, const char *implementation, const char *case_id); // for --resume
bool store_end_run(struct store *s, int64_t run, int exit_status, struct error *error);

// ---- reading: what reports are made of ----
struct stored_waiver {
    const char *implementation, *checks, *cases, *versions, *reason, *page, *expires, *origin;
    int64_t id;
    bool expired;             // before the day on which the run started
};
struct stored_result {
    const char *check; enum verdict verdict; double figure, bound; const char *unit, *message, *classes, *ranks;
    const struct stored_waiver *waiver; // that covers it, or NULL
    bool waived;              // a FAIL whose waiver is not expired
};
struct stored_case {
    const char *implementation, *case_id, *family, *layer, *model, *strategy, *layout, *compute, *case_json, *origin, *log_tail, *digest, *truth_digest, *note;
    int64_t run; int world_size, start; uint64_t seed; double seconds, judge_seconds;
    int result_count; struct stored_result *results;
    enum verdict verdict;     // worst of the results
    bool waived;              // FAIL, and each of its FAILs is waived
    json_t *figures, *probes; // probes: NULL where none was loaded
};
struct stored_run {
    int64_t id; const char *command, *profile, *pattern, *started, *ended; int exit_status; bool ended_normally; uint64_t seed;
    json_t *environment; json_t *implementations; // name -> {"planned", "versions", "note", "seconds"}
    int case_count; struct stored_case *cases;
    int waiver_count; struct stored_waiver *waivers;
    void *arena;
};
// run 0: the newest. Errors: no such run (and which there are).
bool store_load_run(struct store *s, int64_t run, struct stored_run *out, struct error *error);
// The newest verdict on each case of each implementation, over the runs given, or over all but those of selftest (count 0), as if it were one
// run: its id is 0, its environment maps each run's number to that run's, figures by tensor and
// what probes saw are left out.
bool store_load_newest(struct store *s, const int64_t *runs, int count, struct stored_run *out, struct error *error);
// It judged cases, or was to: false of a run that only measured series (series.h).
bool stored_run_judges(const struct stored_run *r);
void stored_run_free(struct stored_run *r);
bool store_list_runs(struct store *s, json_t **out, struct error *error);

#endif
