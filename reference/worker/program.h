// Runs the program of a case on an engine, verb by verb, and answers.
#ifndef REFERENCE_WORKER_PROGRAM_H
#define REFERENCE_WORKER_PROGRAM_H

#include "harness/protocol/answer.h"
#include "reference/engine/engine.h"

bool program_run(struct engine *e, struct answer_writer *w, struct error *error);

#endif
