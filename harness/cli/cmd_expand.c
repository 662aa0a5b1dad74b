// fsdpmark expand: the fully specified cases of a selection, as the workers are given them.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "harness/cli/cli.h"
#include "harness/protocol/memory.h"

static bool write_cases(const struct plan *plan, const char *folder, bool gates, struct error *error)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return error_set(error, "%s: %m", folder);
    for (int i = 0; i < plan->count; i++) {
        const struct planned_case *p = &plan->cases[i];
        if ((p->is_gate || p->is_saver) && !gates)
            continue;
        char *path = memory_format("%s/%s.json", folder, p->c.id);
        bool ok = case_write(&p->c, path, error);
        free(path);
        if (!ok)
            return false;
    }
    return true;
}

static void print_cases(const struct plan *plan, bool gates)
{
    for (int i = 0; i < plan->count; i++)
        if (gates || !(plan->cases[i].is_gate || plan->cases[i].is_saver))
            printf("%s  %s%s%s\n", plan->cases[i].c.id, plan->cases[i].origin, plan->cases[i].skip ? "  SKIP: " : "",
                   plan->cases[i].skip ? plan->cases[i].skip : "");
}

int cmd_expand(const struct cli *cli, int argc, char **argv)
{
    const char *name = "reference", *suite = NULL, *folder = NULL;
    struct option_list patterns = {0};
    struct selection s = {.scale = 1};
    bool gates = false;
    int words;
    const struct option table[] = {
        {"implementation", 'i', OPTION_TEXT, &name, "IMPL", "whose cases: a name, or the path of a manifest (reference)"},
        {"profile", 'p', OPTION_TEXT, &s.profile, "PROFILE", "the cases of a profile"},
        {"pattern", 'k', OPTION_LIST, &patterns, "PATTERN", "only ids that match the glob, or hold the text; of several (commas between) any"},
        {"case", 0, OPTION_TEXT, &s.case_file, "FILE", "the cases of this file"},
        {"gates", 0, OPTION_FLAG, &gates, NULL, "also the cases that run first: unsharded ones, and those that save what others load"},
        {"output", 'o', OPTION_TEXT, &folder, "DIR", "write DIR/<id>.json (without: list the ids)"},
        {"suite", 0, OPTION_TEXT, &suite, "DIR", "the suite folder"},
        {0},
    };
    enum options_result parsed = options_parse(cli->command, table, argc, argv, NULL, 0, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    char *found = cli_suite(cli, suite);
    if (found == NULL)
        return 2;
    struct implementation implementation = {0};
    struct plan plan = {0};
    struct error error = {0};
    char *pattern = options_joined(&patterns);
    s.suite = found;
    s.pattern = pattern;
    bool read = implementation_read(name, found, &implementation, &error);
    bool planned = read && plan_make(&s, &implementation, &plan, &error);
    bool ok = planned && (folder == NULL || write_cases(&plan, folder, gates, &error));
    if (!ok)
        options_bad(cli->command, "%s", error.text);
    else if (folder == NULL)
        print_cases(&plan, gates);
    if (planned)
        plan_free(&plan);
    if (read)
        implementation_free(&implementation);
    free(pattern);
    free(found);
    return ok ? 0 : 2;
}
