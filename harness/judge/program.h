// What the program of a case says about its own labels: which gradient, at which parameters, what is frozen.
//
// Checks ask this instead of reading label names: "s0.grad" is a habit of the standard program, the order of its
// instructions is what binds.
#ifndef HARNESS_JUDGE_PROGRAM_H
#define HARNESS_JUDGE_PROGRAM_H

#include "harness/protocol/case.h"

// One observe instruction.
struct program_label {
    int at;             // index of the instruction
    const char *label;  // borrowed from the case
    unsigned what;      // enum observe_bit
    bool local;
    int gradient_step;  // step whose microbatches, all and only, are summed in the gradients here; -1 where none or a mixture
    int parameters_at;  // observe instruction that shows the parameters which that gradient was taken at; -1 where none
    int steps_done;     // optimizer steps before it (step verbs)
};

// Fills at most `capacity` labels in program order; returns how many the program has.
int program_labels(const struct fsdp_case *c, struct program_label *labels, int capacity);
// The label of an observe instruction.
struct program_label program_label_at(const struct fsdp_case *c, int at);
// frozen[i] for each parameter of the table, as the freeze and unfreeze verbs before instruction `at` leave it.
// A tied parameter follows the name that it is tied to.
void program_frozen(const struct fsdp_case *c, int at, bool *frozen);
// The observe instruction with `bit`, the last before `at`, with no `step` or `load` in between; -1 where none.
int program_state_before(const struct fsdp_case *c, int at, unsigned bit);
// Does instruction `at` show what a load brought, no step in between?
bool program_after_load(const struct fsdp_case *c, int at);
// Number of instructions of a verb.
int program_count(const struct fsdp_case *c, enum verb verb);
// Index of the first instruction of a verb at or after `from`, or -1.
int program_next(const struct fsdp_case *c, enum verb verb, int from);

#endif
