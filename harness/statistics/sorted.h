// Shared by the files of statistics: finite values, sorted.
#ifndef HARNESS_STATISTICS_SORTED_H
#define HARNESS_STATISTICS_SORTED_H

// A sorted copy, owned by the caller; NULL where there is none or one is not finite.
double *sorted_copy(int count, const double *values);
double sorted_quantile(int count, const double *sorted, double p); // p in [0, 1], linear between neighbours

#endif
