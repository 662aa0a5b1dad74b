// Loading what the workers of a case wrote, and refusing what has the wrong structure.
#ifndef HARNESS_JUDGE_EVIDENCE_H
#define HARNESS_JUDGE_EVIDENCE_H

#include "harness/judge/judge.h"

// Evidence with what it owns.
struct loaded_evidence {
    struct evidence evidence;
    struct observed *observed;
    struct holdings *holdings;
    char digest[33], truth_digest[33];
};
// Reads the labels that the program observes from j->case_folder/out. What is missing, unreadable, of wrong shape or dtype, or not
// finite becomes a FAIL in `answer`, one call each; false where no check can be run (a worker gave up or structure is wrong).
bool evidence_load(const struct judge_context *j, struct loaded_evidence *out, struct finding *answer);
void evidence_free(struct loaded_evidence *l);

// Structure alone, for a label already in memory; exposed for tests and for the fuzzer of worker output.
bool evidence_validate(const struct evidence *e, const struct observed *o, unsigned what, struct finding *answer);

#endif
