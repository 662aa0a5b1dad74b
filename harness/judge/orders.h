// The values that a sum of N rounded additions can take: every order, every place of the division.
#ifndef HARNESS_JUDGE_ORDERS_H
#define HARNESS_JUDGE_ORDERS_H

#include <stdbool.h>

#include "kernels/dtype.h"

enum { ORDERS_MAX_RANKS = 5 };

// Is x, held as `stored`, a mean of the n <= ORDERS_MAX_RANKS terms as some reduction in `type` computes it? Every binary tree of additions, each
// rounded to `type`, divided by n before or after, and the sum in wider arithmetic rounded once at the end.
bool orders_reach(double x, const double *terms, int n, enum dtype type, enum dtype stored);

#endif
