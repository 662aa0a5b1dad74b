// From suite files to the list of cases that a run asks of one implementation. See suite.h.
//
// Order: the gates of what will run, the cases that save what others load, then the cases by world size, each in the order of the files.
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cases/capability.h"
#include "harness/cases/expand.h"
#include "harness/cases/gate.h"
#include "harness/cases/profile.h"
#include "harness/cases/strings.h"
#include "harness/protocol/memory.h"

enum { PLAN_MAX_CASES = 20000 };

struct chosen { struct planned_case planned; struct fsdp_case *saver; char *gate; int order; };
struct planning {
    const struct selection *selection;
    const struct implementation *implementation;
    struct profile profile;
    int count, seen;
    struct chosen *cases;
};

static void planned_free(struct planned_case *p)
{
    case_free(&p->c);
    free(p->skip);
    free(p->origin);
}

static bool matches_one(const char *pattern, const struct draft *d)
{
    if (strpbrk(pattern, "*?["))
        return fnmatch(pattern, d->c.id, 0) == 0 || fnmatch(pattern, d->name, 0) == 0;
    return strstr(d->c.id, pattern) != NULL;
}

// Any of those between the commas, which no id has.
static bool matches_pattern(const char *patterns, const struct draft *d)
{
    bool matches = !patterns || !*patterns;
    for (const char *at = patterns; !matches && *at; at += strspn(at, ",")) {
        size_t size = strcspn(at, ",");
        char *one = memory_format("%.*s", (int)size, at);
        matches = size > 0 && matches_one(one, d);
        free(one);
        at += size;
    }
    return matches;
}

static void give_options(struct fsdp_case *c, const struct implementation *i)
{
    free(c->options);
    c->options = memory_copy(i->options, (size_t)i->option_count, sizeof *i->options);
    c->option_count = i->option_count;
    for (int k = 0; k < i->option_count; k++)
        c->options[k] = (struct case_option){memory_text(i->options[k].name), memory_text(i->options[k].value)};
}

// Options, seed: what a run gives to all its cases.
static void prepare(const struct planning *p, struct fsdp_case *to, const struct fsdp_case *from)
{
    case_copy(to, from);
    give_options(to, p->implementation);
    to->seed = p->selection->seed ? p->selection->seed : to->seed;
}

static void take_saver(const struct planning *p, struct chosen *c, const struct fsdp_case *saver)
{
    c->saver = memory_zeros(1, sizeof *c->saver);
    prepare(p, c->saver, saver);
    char *missing = c->planned.skip ? NULL : capability_missing(p->implementation, saver);
    if (missing)
        c->planned.skip = memory_format("the case that saves, %s: %s", saver->id, missing);
    free(missing);
}

static bool take(struct expanded *e, void *context, struct error *error)
{
    struct planning *p = context;
    struct draft *d = &e->draft;
    bool in_profile = !p->profile.cases || profile_selects(&p->profile, d);
    if (++p->seen > PLAN_MAX_CASES) {
        error_set(error, "%s: found more than %d cases in all, expected fewer", e->origin, PLAN_MAX_CASES);
        expanded_free(e);
        return false;
    }
    if (in_profile && matches_pattern(p->selection->pattern, d)) {
        struct chosen c = {.gate = memory_text(e->gate), .order = p->count};
        prepare(p, &c.planned.c, &d->c);
        c.planned.origin = memory_text(e->origin);
        c.planned.skip = capability_missing(p->implementation, &c.planned.c);
        if (e->saver)
            take_saver(p, &c, &e->saver->c);
        p->cases = memory_grow(p->cases, (size_t)p->count, sizeof *p->cases);
        p->cases[p->count++] = c;
    }
    expanded_free(e);
    return true;
}

static int by_id(const void *a, const void *b)
{
    const struct chosen *const *x = a, *const *y = b;
    int order = strcmp((*x)->planned.c.id, (*y)->planned.c.id);
    return order ? order : (*x)->order - (*y)->order;
}

static bool ids_unique(const struct planning *p, struct error *error)
{
    const struct chosen **sorted = memory_zeros((size_t)p->count, sizeof *sorted);
    bool fine = true;
    for (int i = 0; i < p->count; i++)
        sorted[i] = &p->cases[i];
    qsort(sorted, (size_t)p->count, sizeof *sorted, by_id);
    for (int i = 1; fine && i < p->count; i++)
        if (strcmp(sorted[i - 1]->planned.c.id, sorted[i]->planned.c.id) == 0)
            fine = error_set(error, "%s: found id '%s' a second time, expected each id once (first at %s)", sorted[i]->planned.origin,
                             sorted[i]->planned.c.id, sorted[i - 1]->planned.origin);
    free(sorted);
    return fine;
}

static int by_ranks(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;
    int order = x->planned.c.world_size - y->planned.c.world_size;
    return order ? order : x->order - y->order;
}

static int index_of(const struct plan *plan, const char *id)
{
    for (int i = 0; i < plan->count; i++)
        if (strcmp(plan->cases[i].c.id, id) == 0)
            return i;
    return -1;
}

// One for each id that a case which will run names.
static void add_gates(const struct planning *p, struct plan *plan)
{
    for (int i = 0; i < p->count; i++) {
        const struct chosen *c = &p->cases[i];
        if (c->planned.skip || index_of(plan, c->gate) >= 0)
            continue;
        struct planned_case *gate = &plan->cases[plan->count++];
        *gate = (struct planned_case){.gate = -1, .is_gate = true, .saver = -1, .origin = memory_text(c->planned.origin)};
        gate_make(&gate->c, c->saver ? c->saver : &c->planned.c, c->gate);
    }
}

static int saver_ranks(const struct chosen *c)
{
    return c->saver && !c->planned.skip ? c->saver->world_size : 0;
}

static int by_saver_ranks(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;
    int order = saver_ranks(x) - saver_ranks(y);
    return order ? order : x->order - y->order;
}

static void add_savers(struct planning *p, struct plan *plan)
{
    qsort(p->cases, (size_t)p->count, sizeof *p->cases, by_saver_ranks);
    for (int i = 0; i < p->count; i++) {
        struct chosen *c = &p->cases[i];
        if (saver_ranks(c) == 0 || index_of(plan, c->saver->id) >= 0)
            continue;
        struct planned_case *saver = &plan->cases[plan->count++];
        *saver = (struct planned_case){.gate = index_of(plan, c->gate), .saver = -1, .is_saver = true, .origin = memory_text(c->planned.origin)};
        case_copy(&saver->c, c->saver);
    }
}

// Hands the cases over to the plan.
static void assemble(struct planning *p, struct plan *plan)
{
    plan->cases = memory_zeros((size_t)p->count * 3, sizeof *plan->cases);
    add_gates(p, plan);
    add_savers(p, plan);
    qsort(p->cases, (size_t)p->count, sizeof *p->cases, by_ranks);
    for (int i = 0; i < p->count; i++) {
        struct planned_case *c = &p->cases[i].planned;
        c->gate = c->skip ? -1 : index_of(plan, p->cases[i].gate);
        c->saver = c->skip || !p->cases[i].saver ? -1 : index_of(plan, p->cases[i].saver->id);
        plan->cases[plan->count++] = *c;
        *c = (struct planned_case){0};
    }
}

static bool case_files(const struct selection *s, struct string_list *files, struct error *error)
{
    if (s->case_file) {
        string_list_add(files, s->case_file);
        return true;
    }
    char *folder = memory_format("%s/cases", s->suite);
    bool fine = folder_list(folder, ".yaml", files, error);
    free(folder);
    return fine;
}

static bool nothing_selected(const struct planning *p, struct error *error)
{
    const struct selection *s = p->selection;
    bool in_profile = s->profile != NULL, by_pattern = s->pattern && *s->pattern;
    return error_set(error, "found no case%s%s%s%s%s%s among %d of %s%s, expected at least one", in_profile ? " of profile '" : "",
                     in_profile ? s->profile : "", in_profile ? "'" : "", by_pattern ? " that matches '" : "", by_pattern ? s->pattern : "",
                     by_pattern ? "'" : "", p->seen, s->case_file ? s->case_file : s->suite, s->case_file ? "" : "/cases");
}

bool plan_make(const struct selection *s, const struct implementation *i, struct plan *out, struct error *error)
{
    struct planning p = {.selection = s, .implementation = i};
    struct string_list files = {0};
    *out = (struct plan){0};
    bool counted = false, fine = (!s->profile || profile_read(s->suite, s->profile, &p.profile, error)) && case_files(s, &files, error);
    for (int k = 0; fine && k < files.count; k++)
        fine = expand_file(files.items[k], i, take, &p, error);
    fine = counted = fine && (!p.profile.cases || profile_used(&p.profile, error));
    fine = fine && (p.count || nothing_selected(&p, error)) && ids_unique(&p, error);
    out->probes = p.profile.probes;
    if (fine)
        assemble(&p, out);
    else
        out->problem = counted && !p.count ? PLAN_NOTHING : PLAN_BAD;
    for (int k = 0; k < p.count; k++) {
        planned_free(&p.cases[k].planned);
        if (p.cases[k].saver)
            case_free(p.cases[k].saver);
        free(p.cases[k].saver);
        free(p.cases[k].gate);
    }
    free(p.cases);
    profile_free(&p.profile);
    string_list_free(&files);
    return fine;
}

void plan_free(struct plan *p)
{
    for (int i = 0; i < p->count; i++)
        planned_free(&p->cases[i]);
    free(p->cases);
    free(p->counters);
    *p = (struct plan){0};
}
