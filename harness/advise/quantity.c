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

// What no machine has is a slip of the unit.
static const struct { double least, most; const char *example; } kinds[] = {
    [QUANTITY_SECONDS] = {0.999e-9, 100.1, "a time such as 5us or 0.2ms, from 1ns to 100s"},
    [QUANTITY_BANDWIDTH] = {125, 1.25e14, "a bandwidth such as 100Mbit/s or 50GB/s, from 1kbit/s to 1Pbit/s"},
    [QUANTITY_BYTES] = {1e3, 1e15, "a size such as 80GB or 64GiB, from 1kB to 1PB"},
    [QUANTITY_FLOPS] = {1e3, 1e18, "a rate such as 400T or 30Gflop/s, from 1k to 1000P"},
    [QUANTITY_BYTE_RATE] = {1e3, 1e18, "a rate such as 2T or 10GB/s, from 1kB/s to 1000PB/s"},
    [QUANTITY_COUNT_RATE] = {1e-3, 1e18, "a rate such as 10k, from 0.001 to 1000P"},
};

bool quantity_read(const char *text, enum quantity kind, double *out)
{
    char *end;
    double value = strtod(text, &end), factor;
    if (end == text || !factor_of(end + strspn(end, " "), kind, &factor))
        return false;
    *out = value * factor;
    return *out >= kinds[kind].least && *out <= kinds[kind].most;
}

const char *quantity_example(enum quantity kind) { return kinds[kind].example; }

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
