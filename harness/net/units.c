// Units by way of the reference's own wrapping. See units.h.
#include "harness/net/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cases/suite.h"
#include "harness/protocol/memory.h"
#include "reference/sharding/wrapping.h"

static int64_t elements(const struct fsdp_case *c, const struct wrapping *w, int unit)
{
    int64_t count = 0;
    for (int i = w->first[unit]; i < w->first[unit + 1]; i++)
        count += c->parameters[w->members[i]].count;
    return count;
}

static bool add_unit(struct net_units *out, const char *name, int64_t count, struct error *error)
{
    for (int i = 0; i < out->count; i++)
        if (out->units[i].count == count) {
            out->units[i].times++;
            return true;
        }
    if (out->count == NET_UNITS)
        return error_set(error, "found units of more than %d sizes, expected fewer", NET_UNITS);
    struct net_unit *u = &out->units[out->count++];
    *u = (struct net_unit){.count = count, .times = 1};
    snprintf(u->label, sizeof u->label, "%s", name[0] != 0 ? name : "root");
    return true;
}

bool net_units_of(const struct fsdp_case *c, struct net_units *out, struct error *error)
{
    struct wrapping w;
    *out = (struct net_units){.name = memory_text(c->id), .gather = c->precision.compute, .reduce = c->precision.reduce};
    if (!wrapping_create(&w, c, error))
        return false;
    bool ok = true;
    for (int u = 0; ok && u < w.unit_count; u++)
        ok = add_unit(out, w.names[u], elements(c, &w, u), error);
    wrapping_free(&w);
    return ok;
}

void net_units_free(struct net_units *u)
{
    free(u->name);
    *u = (struct net_units){0};
}

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool from_json(const char *path, struct net_units *out, struct error *error)
{
    struct fsdp_case c = {0};
    if (!case_read(path, &c, error))
        return false;
    bool ok = net_units_of(&c, out, error);
    case_free(&c);
    return ok;
}

// The first case that is no gate, of a file or of the suite; the reference knows them all.
static bool from_cases(const char *file, const char *pattern, const char *suite, struct net_units *out, struct error *error)
{
    struct implementation reference = {0};
    struct plan plan = {0};
    struct selection s = {.suite = suite, .case_file = file, .pattern = pattern, .scale = 1};
    if (!implementation_read("reference", suite, &reference, error))
        return false;
    bool planned = plan_make(&s, &reference, &plan, error), ok = false;
    int first = 0;
    while (planned && first < plan.count - 1 && plan.cases[first].is_gate)
        first++;
    if (planned)
        ok = net_units_of(&plan.cases[first].c, out, error);
    if (planned)
        plan_free(&plan);
    implementation_free(&reference);
    return ok;
}

bool net_units_read(const char *file, const char *pattern, const char *suite, struct net_units *out, struct error *error)
{
    *out = (struct net_units){0};
    return file != NULL && ends_in(file, ".json") ? from_json(file, out, error) : from_cases(file, pattern, suite, out, error);
}
