// Runs planned cases of one implementation: truths, starts of the workers, verdicts.
//
// Every case ends in exactly one call of the sink, except where the run is interrupted. What the worker does wrong is a FAIL of the
// check `answer`, what the harness could not do is BROKEN; the rest of the cases goes on in a new start.
#ifndef HARNESS_RUN_H
#define HARNESS_RUN_H

#include "harness/cases/suite.h"
#include "harness/judge/judge.h"
#include "harness/run/truth_cache.h"

struct run_settings {
    const char *program;      // path of fsdpmark itself
    const char *scratch;      // this run's temporary folder
    const char *launcher;     // NULL: the implementation's first
    const struct fabric_place *place; // NULL: this machine, as the launcher has it
    struct run_memo *memo;    // of a plan of one case that is run again and again (harness/run/memo.h), or NULL
    struct template *template; // of the launcher `fork` (harness/launch/template.h): the session's, it outlives runs of one implementation
    double start_deadline_s;  // from a start to the first event
    double case_deadline_s;   // without a new event; ten times that in all
    double truth_deadline_s;
    double budget;            // ratio allowed in the calibrated layer
    bool keep;                // leave job folders in the scratch folder
    bool gated;               // an unsharded N = 1 case that does not PASS leaves its sharded cases unjudged
    void (*tell)(void *context, const char *line); // rare news (a restart, ...), or NULL
    void *context;            // of tell and sink
};

// What became of a case.
struct run_verdict {
    const struct planned_case *planned;
    int index;                // in the list given
    enum verdict verdict;     // the worst of the results
    int result_count;
    const struct result *results;
    double seconds;           // between its first and last event as seen from outside, NAN where it did not end
    double judge_seconds;
    int start;                // which start served it, 0 where none did
    const char *log_tail;     // NULL where all is well
    const char *digest, *truth_digest; // of the final parameters, empty where there are none
    json_t *figures;          // array for the store, or NULL
    json_t *probes;           // what the probes saw, for the store, or NULL
    const struct probe_case *seen; // the same by rank, as it was recorded, or NULL
    const char *note;         // that rank 0 gave in its hello, or NULL
};

struct run_counts {
    int cases, starts;
    int first_starts, later_starts;    // that came to an event: first ones of an implementation, or of its template, and others
    double first_start_s, later_start_s; // from the start of their processes to that event, summed up
    int judged;               // cases that were judged from evidence
    double own_s;             // the harness's own time on those: preparing, reading, recording
    double checks_s;          // the time of their checks
};

// Takes the verdict; false (with the error set) ends the run.
typedef bool (*run_sink)(void *context, const struct run_verdict *v, struct error *error);

// The folder of the preloaded libraries, found from fsdpmark's own path; NULL where there is none. Owned by the caller.
char *probing_folder(const char *program);
// Those libraries are there, for probes as bits of enum probe_id. Error: the first that is not.
bool probing_built(const char *program, unsigned probes, struct error *error);

// The texts of a list with NULL at the end: borrowed texts in an owned array.
const char **run_argv(const struct string_list *l);

// The verdict of a case as gates see it: the worst of its results, where a check that does not apply (SKIP) beside others
// that PASS changes nothing.
enum verdict run_verdict_of(const enum verdict *verdicts, int count);

// What an earlier session of the run has found out about a case.
struct known_case {
    int verdict;              // -1: nothing
    char digest[33], truth_digest[33]; // of the final parameters, empty where unknown
};

// known: by case; NULL: nothing is known. Cases get their checkpoint folder under scratch, those that load what another saves that
// of the other; what a case saved does not outlive a session, so a case that saves is run again (and not recorded again)
// where one that loads it is open. False only where the run cannot go on.
bool run_cases(const struct run_settings *s, const struct implementation *implementation, struct plan *plan, const struct known_case *known,
               struct truth_cache *cache, run_sink sink, struct run_counts *counts, struct error *error);

#endif
