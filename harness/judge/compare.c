// The one comparison that every verdict passes through.
//
// How: finiteness is read from the exponent field, in integer arithmetic, before any floating-point comparison.
// Why: a compiler told to ignore NaN may turn `!(figure > bound)` into `figure <= bound`, and then NaN passes.
// Source: IEEE 754-2019, section 3.4: an exponent field of all ones encodes infinity or NaN.
#include <math.h>
#include <string.h>

#include "harness/judge/judge.h"

bool judge_finite(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits >> 52 & 0x7ff) != 0x7ff;
}

bool judge_compare(double figure, double bound)
{
    return judge_finite(figure) && judge_finite(bound) && figure <= bound;
}

double judge_worse(double a, double b)
{
    if (!judge_finite(a) || !judge_finite(b))
        return judge_finite(a) ? b : a;
    return a > b ? a : b;
}

const char *verdict_name(enum verdict v)
{
    static const char *const names[] = {"PASS", "FAIL", "SKIP", "BROKEN"};
    return v <= VERDICT_BROKEN ? names[v] : "?";
}
