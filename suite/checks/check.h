// A check: one named claim about a case, judged from evidence, never from live state.
//
// Each suite/checks/<name>.c ends in `const struct check check_<name> = {...}` (dashes of the name are
// underscores in file and symbol); the list of checks is made from the folder by the Makefile.
// Adding a check is adding a file.
//
// A check that applies must end in exactly one verdict per judged thing through finding_* of judge.h. One that applies and
// emits nothing is BROKEN. All comparisons of figures go through judge_compare.
#ifndef SUITE_CHECK_H
#define SUITE_CHECK_H

#include "harness/judge/judge.h"

struct check {
    const char *name;     // "step-bitwise"
    int number;           // of the catalogue in docs/method.md; 0 for anti-vacuity
    const char *claim;    // the formula in one line
    const char *source;   // where the claim comes from
    const char *catches;  // fault classes, "Z01 Z03"
    const char *blind;    // what it cannot see
    bool (*applies)(const struct evidence *e);
    void (*judge)(const struct evidence *e, struct finding *f);
};

#endif
