// The order of verdicts, in one place: BROKEN over FAIL over SKIP over PASS.
#ifndef HARNESS_STORE_VERDICTS_H
#define HARNESS_STORE_VERDICTS_H

#include "harness/judge/judge.h"

enum { VERDICT_COUNT = 4 };

// 0 the mildest (PASS) to 3 the worst (BROKEN).
int verdict_severity(enum verdict v);
enum verdict verdict_worse(enum verdict a, enum verdict b);
// From its name; false where there is no such verdict.
bool verdict_parse(const char *name, enum verdict *out);

struct stored_result;
// The verdict of a case: the worst of its results. No result at all is BROKEN: nothing was seen.
enum verdict verdict_of_results(const struct stored_result *results, int count);

#endif
