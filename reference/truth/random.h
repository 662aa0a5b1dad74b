// Random numbers that a seed and a few integers name, the same on every machine.
#ifndef REFERENCE_TRUTH_RANDOM_H
#define REFERENCE_TRUTH_RANDOM_H

#include <stdint.h>

struct random { uint64_t state; };

// The stream of a seed, a purpose and an index: streams of different arguments have nothing in common.
struct random random_stream(uint64_t seed, const char *purpose, uint64_t index);
uint64_t random_bits(struct random *r);
double random_uniform(struct random *r);                            // [0, 1), 53 bits
int64_t random_integer(struct random *r, int64_t low, int64_t high); // both included
double random_normal(struct random *r);                             // mean 0, variance 1

#endif
