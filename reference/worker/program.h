// Runs the program of a case on an engine, verb by verb, and answers.
#ifndef REFERENCE_WORKER_PROGRAM_H
#define REFERENCE_WORKER_PROGRAM_H

#include "harness/library/fsdpmark.h"
#include "reference/engine/engine.h"

bool program_run(fsdpmark *f, struct engine *e, struct error *error);

#endif
