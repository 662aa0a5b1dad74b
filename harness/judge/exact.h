// Bitwise comparison of what a subject observed against the float64 truth, rounded once to the subject's dtype.
//
// Labels are compared in the order of the program and the walk stops at the first that differs: errors after it are
// consequences. The sign of a zero does not count.
#ifndef HARNESS_JUDGE_EXACT_H
#define HARNESS_JUDGE_EXACT_H

#include "harness/judge/judge.h"
#include "harness/judge/program.h"

// Which parameters of the table a claim is about; NULL: all.
typedef bool (*exact_filter)(const struct fsdp_case *c, int parameter);

// Is the case one whose values are exact in any order? (the exact layer; its certificate has a check of its own)
bool exact_case(const struct evidence *e);
// Distance from the rounded reference in ulp of the dtype at the larger of the two; 0 where equal; INFINITY where x is not finite and the reference is.
double exact_ulp(double x, double reference, enum dtype type);
// Ulp allowed: 0, or 2 where N is not a power of two and above 6: a subject may multiply by a rounded 1/N (fl(1/3), fl(1/5)
// and fl(1/6) err by less than 2^-25 relative and lose nothing on these data, fl(1/7) does not). Outside the exact layer 2 for
// every N that is no power of two: there the values carry no factor N.
double exact_allowance(const struct fsdp_case *c);

// Judges every observed label's tensors of the kinds in `what`, reports one finding with hint, place and classes.
// Where the allowance is not 0 only the labels up to the first optimizer step are judged: later ones inherit its error.
// Nothing compared: no call of finding_*, so that the check is BROKEN. default_classes: where no hint fits.
void exact_judge(const struct evidence *e, struct finding *f, unsigned what, exact_filter filter, const char *default_classes);

#endif
