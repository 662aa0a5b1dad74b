// A random order. See statistics.h.
// Source: Fisher and Yates as in Knuth, The Art of Computer Programming 2, section 3.4.2, algorithm P.
#include "harness/statistics/draw.h"
#include "harness/statistics/statistics.h"

void statistics_shuffle(int count, int *order, uint64_t seed)
{
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        int j = draw_below(&seed, i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}
