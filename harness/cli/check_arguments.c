// The arguments of a check as its run stores them, so that --resume plans the same again.
#include <string.h>

#include "harness/cli/check.h"

// One table for both directions.
#define TEXT(name, member) {name, 't', offsetof(struct check_request, member)}
#define INTEGER(name, member) {name, 'i', offsetof(struct check_request, member)}
#define REAL(name, member) {name, 'r', offsetof(struct check_request, member)}
#define FLAG(name, member) {name, 'f', offsetof(struct check_request, member)}
static const struct { const char *name; char kind; size_t offset; } arguments[] = {
    TEXT("profile", profile), TEXT("pattern", pattern), TEXT("case_file", case_file), TEXT("suite", suite), TEXT("launcher", launcher),
    TEXT("waivers", waivers), TEXT("probes", probes), TEXT("counters", counters), TEXT("fabric", fabric_name), TEXT("hostfile", hostfile), TEXT("agent", agent),
    INTEGER("seed", seed), INTEGER("random", random), REAL("deadline_s", deadline_s), REAL("budget", budget),
    FLAG("no_gate", ungated), FLAG("no_waivers", no_waivers), FLAG("all_implementations", all),
};
enum { ARGUMENTS = sizeof arguments / sizeof *arguments };

json_t *check_arguments_write(const struct check_request *r)
{
    json_t *out = json_object(), *list = json_array();
    for (int i = 0; i < r->implementations.count; i++)
        json_array_append_new(list, json_string(r->implementations.items[i]));
    json_object_set_new(out, "implementations", list);
    for (int i = 0; i < ARGUMENTS; i++) {
        const void *from = (const char *)r + arguments[i].offset;
        json_t *value = NULL;
        switch (arguments[i].kind) {
        case 't': value = *(const char *const *)from != NULL ? json_string(*(const char *const *)from) : NULL; break;
        case 'i': value = json_integer(*(const int64_t *)from); break;
        case 'r': value = json_real(*(const double *)from); break;
        default: value = json_boolean(*(const bool *)from);
        }
        if (value != NULL)
            json_object_set_new(out, arguments[i].name, value);
    }
    return out;
}

bool check_arguments_read(struct check_request *r, json_t *from)
{
    json_t *list = json_object_get(from, "implementations"), *item;
    size_t i;
    r->implementations.count = 0;
    json_array_foreach(list, i, item)
        if (i < sizeof r->implementations.items / sizeof *r->implementations.items)
            r->implementations.items[r->implementations.count++] = json_string_value(item);
    for (int k = 0; k < ARGUMENTS; k++) {
        void *to = (char *)r + arguments[k].offset;
        json_t *value = json_object_get(from, arguments[k].name);
        switch (arguments[k].kind) {
        case 't': *(const char **)to = json_string_value(value); break;
        case 'i': *(int64_t *)to = json_integer_value(value); break;
        case 'r': *(double *)to = json_number_value(value); break;
        default: *(bool *)to = json_is_true(value);
        }
    }
    return r->implementations.count > 0 || r->all;
}
