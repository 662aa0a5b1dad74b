// fsdpmark list: what the suite has.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/cli.h"
#include "harness/fabric/fabric.h"
#include "harness/protocol/document.h"
#include "harness/protocol/memory.h"
#include "harness/run/faults.h"
#include "suite/checks/check.h"

// One kind of thing: fills an array of objects, the first two members being what the plain list prints.
struct listing {
    const char *name;
    bool (*fill)(const char *suite, json_t *out, struct error *error);
};

static void add(json_t *out, const char *name, const char *title)
{
    json_array_append_new(out, json_pack("{ss ss}", "name", name, "title", title != NULL ? title : ""));
}

static bool add_variant(const char *name, const char *variant, const char *suite, json_t *out, struct error *error)
{
    char *both = memory_format("%s:%s", name, variant);
    struct implementation implementation;
    bool ok = implementation_read(both, suite, &implementation, error);
    if (ok) {
        add(out, implementation.name, implementation.title);
        implementation_free(&implementation);
    }
    free(both);
    return ok;
}

static bool fill_implementations(const char *suite, json_t *out, struct error *error)
{
    struct string_list names = {0};
    bool ok = suite_list_implementations(suite, &names, error);
    for (int i = 0; ok && i < names.count; i++) {
        struct implementation implementation;
        if ((ok = implementation_read(names.items[i], suite, &implementation, error))) {
            add(out, implementation.name, implementation.title);
            for (int k = 0; ok && k < implementation.variants.count; k++)
                ok = add_variant(implementation.name, implementation.variants.items[k], suite, out, error);
            implementation_free(&implementation);
        }
    }
    string_list_free(&names);
    return ok;
}

static bool fill_titled(bool (*list)(const char *, struct string_list *, struct string_list *, struct error *), const char *suite,
                        json_t *out, struct error *error)
{
    struct string_list names = {0}, titles = {0};
    bool ok = list(suite, &names, &titles, error);
    for (int i = 0; ok && i < names.count; i++)
        add(out, names.items[i], titles.items[i]);
    string_list_free(&names);
    string_list_free(&titles);
    return ok;
}

static bool fill_cases(const char *suite, json_t *out, struct error *error)
{
    return fill_titled(suite_list_cases, suite, out, error);
}

static bool fill_profiles(const char *suite, json_t *out, struct error *error)
{
    return fill_titled(suite_list_profiles, suite, out, error);
}

static bool fill_fabrics(const char *suite, json_t *out, struct error *error)
{
    return fill_titled(fabric_list, suite, out, error);
}

static bool fill_checks(const char *suite, json_t *out, struct error *error)
{
    (void)suite, (void)error;
    for (int i = 0; check_list[i] != NULL; i++) {
        const struct check *c = check_list[i];
        json_array_append_new(out, json_pack("{ss ss si ss ss ss}", "name", c->name, "title", c->claim, "number", c->number, "source",
                                             c->source, "catches", c->catches, "blind", c->blind));
    }
    return true;
}

static bool fill_faults(const char *suite, json_t *out, struct error *error)
{
    struct fault_list faults;
    bool ok = faults_read(suite, &faults, error);
    for (int i = 0; ok && i < faults.count; i++) {
        const struct fault *f = &faults.items[i];
        json_array_append_new(out, json_pack("{ss ss ss ss}", "name", f->name, "title", f->claim, "class", f->class_name, "in", f->in));
    }
    faults_free(&faults);
    return ok;
}

static bool fill_workloads(const char *suite, json_t *out, struct error *error)
{
    return fill_titled(suite_list_workloads, suite, out, error);
}

static const struct listing listings[] = {
    {"implementations", fill_implementations}, {"profiles", fill_profiles}, {"cases", fill_cases},
    {"checks", fill_checks}, {"faults", fill_faults}, {"fabrics", fill_fabrics}, {"workloads", fill_workloads}, {0},
};

static void print_plain(const char *heading, json_t *items)
{
    size_t i;
    json_t *item;
    printf("%s (%zu)\n", heading, json_array_size(items));
    json_array_foreach(items, i, item) {
        const char *class_name = json_string_value(json_object_get(item, "class")), *in = json_string_value(json_object_get(item, "in"));
        const char *catches = json_string_value(json_object_get(item, "catches"));
        printf("  %-28s %s", json_string_value(json_object_get(item, "name")), json_string_value(json_object_get(item, "title")));
        if (class_name != NULL)
            printf(" [%s in %s]", class_name, in);
        printf(catches != NULL && catches[0] != 0 ? " [%s]\n" : "\n", catches);
    }
}

static int list(const struct cli *cli, const char *suite, const char *word, bool as_json)
{
    const char *names[16];
    json_t *all = json_object();
    int count = 0, status = 0;
    for (const struct listing *l = listings; l->name != NULL && status == 0; l++) {
        struct error error = {0};
        names[count++] = l->name;
        names[count] = NULL;
        if (word[0] != 0 && strcmp(word, l->name) != 0)
            continue;
        json_t *items = json_array();
        json_object_set_new(all, l->name, items);
        if (!l->fill(suite, items, &error))
            status = options_bad(cli->command, "%s", error.text);
        else if (!as_json)
            print_plain(l->name, items);
    }
    if (status == 0 && json_object_size(all) == 0) {
        char expected[200];
        const char *near = nearest_name(word, names);
        status = near != NULL ? options_bad(cli->command, "found '%s', nearest is %s", word, near)
                              : options_bad(cli->command, "found '%s', expected %s", word, name_list(names, expected, sizeof expected));
    }
    if (status == 0 && as_json) {
        json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(all);
    return status;
}

int cmd_list(const struct cli *cli, int argc, char **argv)
{
    const char *given = NULL, *word = "";
    bool as_json = false;
    int words;
    const struct option table[] = {
        {"json", 0, OPTION_FLAG, &as_json, NULL, "as JSON"},
        {"suite", 0, OPTION_TEXT, &given, "FOLDER", "the suite"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, &word, 1, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    char *suite = cli_suite(cli, given);
    int status = suite != NULL ? list(cli, suite, word, as_json) : 2;
    free(suite);
    return status;
}
