// See quantity.h. Prefixes are decimal (k, M, G, T, P), or binary with an i (KiB).
#include "harness/advise/quantity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double prefix(const char **at)
{
    static const char letters[] = "kMGTP";
    const char *found = **at == 'K' ? letters : **at ? strchr(letters, **at) : NULL;
    if (found == NULL)
        return 1;
    bool binary = (*at)[1] == 'i';
    *at += 1 + binary;
    return pow(binary ? 1024 : 1000, (double)(found - letters) + 1);
}

static bool seconds(const char *unit, double *factor)
{
    static const struct { const char *name; double factor; } units[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(unit, units[i].name) == 0)
            return *factor = units[i].factor, true;
    return false;
}

static bool factor_of(const char *unit, enum quantity kind, double *factor)
{
    if (kind == QUANTITY_SECONDS)
        return seconds(unit, factor);
    *factor = prefix(&unit);
    if (kind == QUANTITY_BANDWIDTH && (strcmp(unit, "bit/s") == 0 || strcmp(unit, "bit") == 0 || strcmp(unit, "b/s") == 0))
        return *factor /= 8, true;
    if (kind == QUANTITY_BANDWIDTH)
        return strcmp(unit, "B/s") == 0;
    if (kind == QUANTITY_BYTES)
        return strcmp(unit, "B") == 0;
    return *unit == 0 || strcmp(unit, kind == QUANTITY_FLOPS ? "flop/s" : "B/s") == 0;
}

bool quantity_read(const char *text, enum quantity kind, double *out)
{
    char *end;
    double value = strtod(text, &end), factor;
    if (end == text || !factor_of(end + strspn(end, " "), kind, &factor))
        return false;
    *out = value * factor;
    return *out > 0 && isfinite(*out);
}

const char *quantity_example(enum quantity kind)
{
    static const char *const examples[] = {"a time such as 5us or 0.2ms", "a bandwidth such as 100Mbit/s or 50GB/s", "a size such as 80GB or 64GiB", "a rate such as 400T or 30Gflop/s", "a rate such as 2T or 10GB/s", "a rate such as 10k"};
    return examples[kind];
}

const char *quantity_write(double value, enum quantity kind, char *text, size_t size)
{
    static const char *const units[] = {"s", "bit/s", "B", "flop/s", "B/s", "/s"}, *const large[] = {"", "k", "M", "G", "T", "P"}, *const small[] = {"", "m", "u", "n"};
    double v = kind == QUANTITY_BANDWIDTH ? 8 * value : value;
    int at = v > 0 && isfinite(v) ? (int)floor(log10(v * 1.0005) / 3) : 0;
    at = kind == QUANTITY_SECONDS && at > 0 ? 0 : at < -3 ? -3 : at > 5 ? 5 : at;
    v *= pow(1000, -at);
    int whole = v >= 1 ? (int)floor(log10(v * 1.0005)) + 1 : 1;
    snprintf(text, size, "%.*f %s%s", whole < 3 ? 3 - whole : 0, v, at >= 0 ? large[at] : small[-at], units[kind]);
    return text;
}
