// Random correct configurations, written as a case file.
#ifndef HARNESS_RANDOM_H
#define HARNESS_RANDOM_H

#include <stdint.h>
#include <stdio.h>

// Writes `count` cases, drawn from the seed, as YAML in the format of docs/cases.md. The same seed gives the
// same text on every machine. max_ranks: largest world size drawn (1..8). Errors: those of the stream (ferror).
void random_cases_write(FILE *out, int count, uint64_t seed, int max_ranks);

#endif
