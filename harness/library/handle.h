// What is behind a handle of fsdpmark.h. For this library, and for the reference, which trains on the case as it lies here.
#ifndef HARNESS_LIBRARY_HANDLE_H
#define HARNESS_LIBRARY_HANDLE_H

#include "harness/library/fsdpmark.h"
#include "harness/protocol/answer.h"
#include "harness/protocol/case_fields.h"
#include "harness/protocol/job.h"
#include "harness/protocol/tensors.h"

enum stage {
    STAGE_CLOSED,  // no case is open
    STAGE_SILENT,  // a case is open, nothing was said
    STAGE_TALKING, // hello was said
    STAGE_ENDED    // done, unsupported or error was said
};

struct fsdpmark {
    struct job job;
    char *implementation, *version;
    int next;            // case to open next
    int status;          // exit status
    struct error error;  // the first failure
    void (*mark)(const char *phase, int step);

    enum stage stage;    // of the open case; all below belongs to it
    const char *id;      // in job.cases
    char *folder, *where; // where: path of case.json
    struct document document;
    struct fsdp_case c;
    struct tensors init, data;
    struct answer_writer writer;
    json_t *configured;
    struct tensors full, local;            // put, not yet written
    struct fsdpmark_parameter *parameters; // (c.parameter_count)
    struct fsdpmark_instruction *program;  // (program_length), without stop
    int program_length;
    struct fsdpmark_tensor *views;         // (2 data.count + init.count): batches, data, init
};

// May the caller go on? No failure so far, and a case is open and not ended.
bool handle_open(fsdpmark *f, const char *function);
// Keeps the message if it is the first, tells the harness where a case is open; false.
bool handle_fail(fsdpmark *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Takes the fields' reference. Says hello first where nobody has, where `early`; else that is a failure.
bool handle_event(fsdpmark *f, const char *event, json_t *fields, bool early);
// The parameter of that name that has a storage of its own; NULL, a failure, where there is none.
const struct fsdpmark_parameter *handle_parameter(fsdpmark *f, const char *function, const char *name);
// Frees what was put.
void handle_drop(fsdpmark *f);

#endif
