// See sizes.h.
#include "harness/net/sizes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t LARGEST = INT64_C(1) << 32;

bool sizes_add(struct sizes *s, int64_t bytes)
{
    int at = s->count;
    while (at > 0 && s->bytes[at - 1] >= bytes)
        at--;
    if (at < s->count && s->bytes[at] == bytes)
        return true;
    if (s->count == SIZES_MOST)
        return false;
    memmove(s->bytes + at + 1, s->bytes + at, (size_t)(s->count - at) * sizeof *s->bytes);
    s->bytes[at] = bytes;
    s->count++;
    return true;
}

struct sizes sizes_doubling(int64_t first, int64_t last)
{
    struct sizes s = {0};
    for (int64_t bytes = first; bytes <= last && sizes_add(&s, bytes); bytes *= 2)
        continue;
    return s;
}

// A number with its unit; *at moves behind it.
static bool take(const char **at, int64_t *out)
{
    static const char units[] = "KMG";
    char *end;
    errno = 0;
    long long n = strtoll(*at, &end, 10);
    if (end == *at || n < 1 || errno != 0 || **at == '+')
        return false;
    const char *unit = *end != 0 ? strchr(units, *end >= 'a' ? *end - 'a' + 'A' : *end) : NULL;
    int shift = unit != NULL ? 10 * (int)(unit - units + 1) : 0;
    *at = end + (unit != NULL);
    *out = n <= LARGEST >> shift ? n << shift : 0;
    return *out > 0;
}

static bool add_range(struct sizes *s, int64_t first, int64_t last, int64_t factor)
{
    for (int64_t bytes = first; bytes <= last; bytes *= factor)
        if (!sizes_add(s, bytes))
            return false;
    return true;
}

static bool take_item(const char **at, struct sizes *out)
{
    int64_t first, last, factor = 2;
    if (!take(at, &first))
        return false;
    last = first;
    if (strncmp(*at, "..", 2) == 0) {
        *at += 2;
        if (!take(at, &last) || last < first)
            return false;
        if (**at == '*') {
            ++*at;
            if (!take(at, &factor) || factor < 2)
                return false;
        }
    }
    return (**at == 0 || **at == ',') && add_range(out, first, last, factor);
}

bool sizes_parse(const char *text, struct sizes *out, struct error *error)
{
    const char *at = text;
    *out = (struct sizes){0};
    bool ok = take_item(&at, out);
    while (ok && *at == ',') {
        at++;
        ok = take_item(&at, out);
    }
    return ok || error_set(error, "--sizes: found '%s', expected sizes of 1 byte to 4G, at most %d, as 64K, 8..16M or 1K..1M*4, with commas between", text, SIZES_MOST);
}

const char *sizes_text(int64_t bytes, char buffer[32])
{
    static const char units[] = " KMG";
    int unit = 0;
    while (unit < 3 && bytes >= INT64_C(1024) << (10 * unit) && bytes % (INT64_C(1) << (10 * unit + 8)) == 0)
        unit++;
    snprintf(buffer, 32, "%.4g%.*s", (double)bytes / (double)(INT64_C(1) << (10 * unit)), unit > 0, units + unit);
    if (unit == 0)
        snprintf(buffer, 32, "%lld", (long long)bytes);
    return buffer;
}
