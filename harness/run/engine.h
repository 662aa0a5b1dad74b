// State of run_cases, shared by its files: run.c (order), serve.c (one start), follow.c (waiting), blame.c (what went wrong),
// verdict.c (judging and handing over), job_folder.c (what the workers read).
#ifndef HARNESS_ENGINE_H
#define HARNESS_ENGINE_H

#include "harness/launch/launch.h"
#include "harness/run/run.h"
#include "harness/run/watch.h"

enum { ENGINE_RESULTS = 64, ENGINE_TAIL = 6000 };

struct case_state {
    bool over;              // has its verdict
    bool again;             // runs for what it saves alone: its verdict is recorded already
    enum verdict verdict;
    char digest[33];        // of the final parameters, empty where unknown
    char truth_digest[33];  // of the truth's, likewise
    struct error no_truth;
    struct probe_case *probes; // by rank, or NULL
    struct memory_claim *claims; // the same
};

struct engine {
    const struct run_settings *settings;
    const struct implementation *implementation;
    struct plan *plan;
    struct case_state *state;      // by case
    struct truth_cache *cache;
    run_sink sink;
    struct run_counts *counts;
    struct error *error;
    const char *launcher;
    bool ever_answered;            // some start has written an event
    bool started;                  // some start is counted in seconds
    bool stopped;                  // the sink or an interrupt has ended the run
};

// One start of the workers: the cases that it serves, in order.
struct service {
    struct engine *engine;
    char *folder;                  // of the job
    int world_size;
    int count;
    int *index;                    // of the case in the plan
    struct launch launch;
    struct watch watch;            // of the case under way
    int at;                        // which one that is
    double started_s;              // before its processes were made
    double began_s, first_s, ended_s; // of the case under way: clock's start, first event, end
};

enum ending {
    ENDING_ENDED,        // every rank wrote its last line
    ENDING_FAILED,       // a rank died, or reported an error, before all had ended
    ENDING_HANG,         // no event within the deadline
    ENDING_SILENT,       // no rank ever wrote anything and the workers are gone
    ENDING_SILENT_HANG,  // ... and the deadline of the start has passed
    ENDING_INTERRUPTED
};

// follow.c
enum ending follow_case(struct service *s);
// Waits for the workers' own end after their last case; true: all ended with status 0, else the finding says what happened.
bool follow_end(struct service *s, struct finding *finding);

// blame.c
// The case of this start (position) that the failure belongs to, and what to say of it.
int blame_case(struct service *s, enum ending ending, struct finding *finding);
// The template was lost, and the ranks with it.
void blame_template(const struct service *s, struct finding *finding);
void blame_silence(struct service *s, enum ending ending, struct finding *finding);
// "; last event of rank 0: ..., of rank 1: none" of the case under way.
void blame_last_events(const struct watch *w, char *text, size_t size);
// The last lines of every rank's output, NULL where there are none; owned by the caller.
char *blame_log_tail(const struct service *s);

// probing.c
// What the plan wants to be loaded is there.
bool probing_ready(const struct engine *e);
// The manifest's environment and what loads the plan's probes, NULL at the end; NULL where a probe is not built. For probing_environment_free.
const char **probing_environment(const struct engine *e, struct error *error);
void probing_environment_free(const struct engine *e, const char **environment);
// Reads what the probes of the case's ranks wrote into the state of the case. Error: that of the first which cannot be read.
void probing_read(struct service *s, int position, struct error *error);
// Keeps what the ranks say of their own memory, where probes are read.
void probing_claims(struct engine *e, int index, const struct answer *answers);
// What they saw, for the store; NULL: nothing.
json_t *probing_stored(const struct service *s, int position);
// The cases judged so far with probes, but for this one; owned by the caller.
struct probed_case *probing_others(const struct engine *e, int index, int *count);
void probing_free(struct engine *e);

// verdict.c
// Judges a case whose ranks have all ended; extra: one more finding of check `answer`, or NULL.
void verdict_judge(struct service *s, int position, const struct finding *extra);
// Hands over a verdict that needed no evidence.
void verdict_give(struct engine *e, int index, const char *check, const struct finding *finding, int start, const char *log_tail);
// The same of check `answer` for a case of this start, with the last output of its ranks and what rank 0 had remarked.
void verdict_give_answer(struct service *s, int position, const struct finding *finding);

// job_folder.c
char *job_case_folder(const struct service *s, int position);
bool job_folder_make(struct service *s, struct error *error);
// Where the answers of a case that saves lie, for those that load: CHECKPOINT.out. Owned by the caller.
char *job_kept_answers(const struct fsdp_case *saver);
// Moves the answers of a case there.
void job_keep_answers(const struct service *s, int position);

// serve.c
// Serves cases of one world size, restarting as often as needed; indices of the plan.
void serve_group(struct engine *e, const int *indices, int count);

#endif
