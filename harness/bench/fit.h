// The best batch that fits: for each row the largest global batch whose measured peak memory stays within a limit.
//
// The peak of a rank is measured at one and at two rows of a rank, by the heap probe; it grows by a constant for each row. The largest number that
// the line allows is tried, and one less as long as its own measured peak is above the limit.
#ifndef HARNESS_BENCH_FIT_H
#define HARNESS_BENCH_FIT_H

#include "harness/bench/rounds.h"

enum { BENCH_MOST_ROWS = 64 };  // of a rank: the truth of a batch costs its rows

// Largest rows of a rank by the line through (1, one) and (2, two); 0: not even one.
int64_t bench_fit_rows(double one, double two, double limit);
// Sets the rows of every open row, and with them its tokens and flop. Rows that do not fit are SKIP.
bool bench_fit(struct bench *b, double limit, struct error *error);

#endif
