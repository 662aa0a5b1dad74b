// The best batch that fits: for each row the largest global batch whose measured peak memory stays within a limit.
//
// The peak of a rank is measured by the heap probe, at one and at two rows of a rank, then at the largest number that the line through the first and the last
// allows, until one more row than fits is measured too, and does not fit. That a larger batch needs no less is taken for granted.
#ifndef HARNESS_BENCH_FIT_H
#define HARNESS_BENCH_FIT_H

#include "harness/bench/rounds.h"

// Largest rows of a rank by the line through (1, one) and (2, two); 0: not even one.
int64_t bench_fit_rows(double one, double two, double limit);
// Sets the rows of every open row, and with them its tokens and flop. Rows that do not fit are SKIP.
bool bench_fit(struct bench *b, double limit, struct error *error);

#endif
