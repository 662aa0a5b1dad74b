// SplitMix64 and what is made of it. See random.h.
// Source: Steele, Lea, Flood 2014, OOPSLA, figure 16 (finaliser of MurmurHash3's family); normal: Box, Muller 1958.
#include "reference/truth/random.h"

#include <math.h>

uint64_t random_bits(struct random *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

struct random random_stream(uint64_t seed, const char *purpose, uint64_t index)
{
    struct random r = {seed};
    for (; *purpose; purpose++)
        r.state = random_bits(&r) ^ (uint64_t)(unsigned char)*purpose;
    r.state = random_bits(&r) ^ index;
    r.state = random_bits(&r);
    return r;
}

double random_uniform(struct random *r)
{
    return (double)(random_bits(r) >> 11) * 0x1p-53;
}

int64_t random_integer(struct random *r, int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits(r) % (uint64_t)(high - low + 1));
}

double random_normal(struct random *r)
{
    double radius = sqrt(-2 * log(1 - random_uniform(r)));
    return radius * cos(6.283185307179586 * random_uniform(r));
}
