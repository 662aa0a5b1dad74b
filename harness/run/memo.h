// Verdicts for evidence that has been judged before: a case that is started again and again mostly ends in the same bits.
//
// The evidence of a start is what its ranks wrote: the tensors, and the events without the times in them. What probes saw is not in it, so a caller that
// gives a memo must not look at the results of checks which judge that.
#ifndef HARNESS_MEMO_H
#define HARNESS_MEMO_H

#include "harness/judge/judge.h"

struct run_memo {
    char evidence[33];        // empty: nothing yet
    char digest[33];          // as judge_case gave it
    int count;
    struct result *results;   // owned
    int hits;                 // how often it was of use
};

// folder: of the case. False where something cannot be read; then nothing is like it.
bool memo_digest(const char *folder, const struct answer *answers, int ranks, char hex[33]);
// judge_case, or what the memo knows of the same evidence. memo NULL: judge_case.
int memo_judge(struct run_memo *memo, const struct judge_context *j, int ranks, struct result *results, int capacity, char digest[33]);
void memo_free(struct run_memo *memo);

#endif
