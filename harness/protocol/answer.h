// What a worker answers: the event lines of one rank, written by a worker and read by the harness.
#ifndef FSDPMARK_ANSWER_H
#define FSDPMARK_ANSWER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "harness/protocol/case.h"
#include "harness/protocol/error.h"

// ---- writing (worker side) ----
struct answer_writer { FILE *file; int rank; char *out_folder; };
// Opens CASE_FOLDER/out/rank<R>.jsonl for appending.
bool answer_open(struct answer_writer *w, const char *case_folder, int rank, struct error *error);
// Writes one event: takes the object's reference, adds "event", flushes. Non-finite numbers must
// have been put in with answer_number.
bool answer_event(struct answer_writer *w, const char *event, json_t *fields);
// A JSON number, or the strings "nan", "inf", "-inf".
json_t *answer_number(double value);
void answer_close(struct answer_writer *w);

// ---- reading (harness side) ----
enum event_kind {
    EVENT_HELLO, EVENT_UNSUPPORTED, EVENT_SHARDS, EVENT_MICRO, EVENT_EVAL, EVENT_CLIP, EVENT_STEP,
    EVENT_OBSERVED, EVENT_MEMORY, EVENT_TRAFFIC, EVENT_ERROR, EVENT_DONE
};
struct event { enum event_kind kind; json_t *fields; int line; };
struct answer {
    int rank;
    int count;
    struct event *events;
    bool ended;          // the last line was done, unsupported or error
    enum event_kind end; // which
};
// Reads the events of a rank's file; validates names, required fields and their types by one table,
// that hello comes first and names this case, this rank and this world size, and that nothing comes
// after the end. A last line without newline counts as not there yet. Errors: "FILE:LINE: ...".
bool answer_read(const char *path, const char *case_id, int rank, int world_size, struct answer *out, struct error *error);
// Same, from memory (used by the fuzzer).
bool answer_parse(const char *text, size_t size, const char *where, const char *case_id, int rank,
                  int world_size, struct answer *out, struct error *error);
void answer_free(struct answer *a);
const struct event *answer_find(const struct answer *a, enum event_kind kind, int nth);
// Number field, also the strings for non-finite ones; "a.b": field b of the object a. Missing: NAN is not returned but false.
bool event_number(const struct event *e, const char *field, double *out);

#endif
