// One stored run: what `check` and `selftest` share. Opens store, scratch folder and cache; each verdict becomes a row and a
// line of progress.
#ifndef HARNESS_SESSION_H
#define HARNESS_SESSION_H

#include "harness/report/report.h"
#include "harness/run/run.h"
#include "harness/run/waiving.h"
#include "harness/store/store.h"

struct session {
    struct store *store;
    int64_t run;
    struct truth_cache cache;
    struct run_settings settings;   // scratch, template, tell and context are the session's
    struct run_counts counts;
    struct progress *progress;
    char *scratch;
    const char *implementation;     // under which verdicts are recorded now
    const char *note;               // of its manifest
    double began_s;
    const struct waiver_list *waivers; // known failures, borrowed; NULL: none
    struct waiving waiving;         // those that concern the implementation that runs now
    run_sink watcher;               // sees every verdict too, or NULL
    void *watcher_context;
};

// Looks whether an implementation can run here. False: the error holds its own reason and the remedy.
bool session_installed(const struct implementation *i, struct error *error);
// What the manifest's `versions` command prints, as an object; empty where it has none. New reference.
json_t *session_versions(const struct implementation *i);

// Begins a run in the store (resume 0) or takes up an old one.
bool session_open(struct session *s, const char *store, const struct run_settings *settings, const struct run_info *info, int64_t resume,
                  struct error *error);
// Announces an implementation's plan and runs it. name: how it is recorded, usually implementation->name; progress goes to
// `out` unless NULL. known: see run_cases.
bool session_run(struct session *s, const char *name, const struct implementation *i, struct plan *plan, const struct known_case *known, FILE *out,
                 struct error *error);
// Records that an implementation does not run here: one SKIP with the reason. Once a run.
#define SESSION_ABSENT "(not installed)"
bool session_absent(struct session *s, const struct implementation *i, const char *reason, struct error *error);
// The line "N cases in X s, ...": counts, truths, and the harness's own cost.
void session_summary(const struct session *s, FILE *out);
// Ends the run in the store unless status is negative (interrupted), removes the scratch folder unless kept (then it is named
// on `out`).
bool session_close(struct session *s, int status, FILE *out, struct error *error);
// <XDG_DATA_HOME or ~/.local/share>/fsdpmark/results.db, or $FSDPMARK_STORE; its folder is made. Owned by the caller.
char *session_default_store(struct error *error);

#endif
