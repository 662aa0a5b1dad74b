// Reproducible draws for shuffling and resampling.
//
// Source: splitmix64, Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014, figure 17.
#ifndef HARNESS_STATISTICS_DRAW_H
#define HARNESS_STATISTICS_DRAW_H

#include <stdint.h>

static inline uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Each of 0..n-1 with the same probability: what would make the first ones likelier is drawn again.
static inline int draw_below(uint64_t *state, int n)
{
    uint64_t range = (uint64_t)n, biased = -range % range, z;
    do
        z = draw(state);
    while (z < biased);
    return (int)(z % range);
}

static inline double draw_unit(uint64_t *state) { return ((double)(draw(state) >> 11) + 0.5) * 0x1p-53; } // in (0, 1)

#endif
