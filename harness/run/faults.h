// Seeded faults: suite/faults/*.yaml, and the plans that must find them.
//
// A file holds one fault, or a list of them under `faults`:
//   name: scale-by-n              # what the option `fault` of a case says to the worker
//   class: Z01                    # of docs/method.md
//   in: reference                 # the implementation that carries it
//   claim: gradients are not divided by the number of ranks
//   cases: ["exact-mlp.full.*.n2*"]  # globs of case ids; "profile:NAME" stands for a profile
//   expect: step-bitwise          # optional: this check must be among those that say FAIL
//   probes: [heap, mpi]           # optional: probes that its cases are run with (docs/probes.md)
#ifndef HARNESS_FAULTS_H
#define HARNESS_FAULTS_H

#include "harness/cases/suite.h"

struct fault {
    char *name, *class_name, *in, *claim, *expect; // expect: NULL where not given
    struct string_list cases;
    unsigned probes;                               // bits of enum probe_id
    char *origin;                                  // FILE:LINE
};
struct fault_list { int count; struct fault *items; };

// All faults of the suite, by file name. Errors: "FILE:LINE: what was found, what was expected".
bool faults_read(const char *suite, struct fault_list *out, struct error *error);
void faults_free(struct fault_list *l);

// Appends the fault's cases, each carrying it: id and family get the suffix ".fault-<name>", the options `fault`. They have no
// gate. A case that saves what another loads does not carry it: it is shared with the correct cases, so that its own verdict
// cannot hide the fault. fault_of grows with the plan: index of the fault by case.
bool faults_plan(const struct fault *f, int index, const char *suite, const struct implementation *i, struct plan *plan,
                 int **fault_of, struct error *error);
// Appends the same cases without the fault (fault_of -1), each once, with ids as they are.
bool faults_plan_correct(const struct fault *f, const char *suite, const struct implementation *i, struct plan *plan, int **fault_of,
                         struct error *error);

#endif
