// Comparisons between cases of one family: same model, data and program, other sharding.
#ifndef HARNESS_JUDGE_FAMILY_H
#define HARNESS_JUDGE_FAMILY_H

#include "harness/judge/judge.h"

typedef bool (*family_filter)(const struct evidence *e, const struct family_member *m);
// Is there a member to compare with: wanted, with a digest, and with a truth that ends in the same bits?
bool family_has(const struct evidence *e, family_filter wanted);
// Compares digests with all such members; other: what distinguishes them, in words. A FAIL names no class: a digest cannot tell.
void family_judge(const struct evidence *e, struct finding *f, family_filter wanted, const char *other);

#endif
