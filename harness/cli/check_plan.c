// Which implementations a check judges, and which cases of each.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/cases/random.h"
#include "harness/cases/strings.h"
#include "harness/cli/check.h"
#include "harness/launch/interrupt.h"
#include "harness/probes/counters.h"
#include "harness/probes/summary.h"
#include "harness/protocol/memory.h"

static bool names_launcher(const struct implementation *i, const char *asked, struct error *error)
{
    for (int k = 0; asked != NULL && k < i->launchers.count; k++)
        if (strcmp(i->launchers.items[k], asked) == 0)
            return true;
    return asked == NULL || error_set(error, "--launcher: found '%s', which the manifest of %s does not name", asked, i->name);
}

// Some launcher of the manifest, or the one that was asked for, must be able to start ranks on the fabric.
static bool takes_fabric(const struct implementation *i, const struct check_request *r, struct error *error)
{
    const char *refusal = NULL;
    bool taken = r->fabric == NULL;
    for (int k = 0; !taken && k < i->launchers.count; k++)
        if (r->launcher == NULL || strcmp(r->launcher, i->launchers.items[k]) == 0) {
            refusal = fabric_refuses(r->fabric, i->launchers.items[k]);
            taken = refusal == NULL;
        }
    return taken || error_set(error, "fabric %s: found %s, whose launcher%s %s%s, expected %s", r->fabric->name, i->name, r->launcher == NULL ? "s are not it" : " is",
                              r->launcher == NULL ? "" : r->launcher, "", refusal != NULL ? refusal : "one that its manifest names");
}

// The papi probe needs to know what to count; --counters asks for the probe.
static bool plan_counters(const struct check_request *r, struct plan *plan, struct error *error)
{
    plan->probes |= (unsigned)(r->counters != NULL) << PROBE_PAPI;
    return !(plan->probes >> PROBE_PAPI & 1) || counters_resolve(r->counters != NULL ? r->counters : "default", &plan->counters, error);
}

// A case of layer measured is there for what probes see: without them nothing of its claim would be judged.
static bool skip_unobserved(struct plan *plan)
{
    for (int i = 0; plan->probes == 0 && i < plan->count; i++)
        if (plan->cases[i].c.layer == LAYER_MEASURED && !plan->cases[i].is_gate && plan->cases[i].skip == NULL)
            plan->cases[i].skip = memory_text("what it claims is seen by probes alone, and none is loaded (--probes)");
    return true;
}

static bool plan_cases(const struct check_request *r, const char *case_file, struct check_subject *s, struct error *error)
{
    struct selection selection = {.suite = r->suite, .profile = r->profile, .pattern = r->pattern, .case_file = case_file,
                                  .seed = (uint64_t)r->seed, .scale = 1};
    return names_launcher(&s->implementation, r->launcher, error) && takes_fabric(&s->implementation, r, error) && plan_make(&selection, &s->implementation, &s->plan, error) &&
           (r->probes == NULL || probe_set(r->probes, &s->plan.probes, error)) && plan_counters(r, &s->plan, error) &&
           skip_unobserved(&s->plan) && session_installed(&s->implementation, error); // last: it may take seconds
}

static bool plan_one(const struct check_request *r, const char *name, const char *case_file, struct check_subjects *out, struct error *error)
{
    struct implementation implementation;
    if (!implementation_read(name, r->suite, &implementation, error))
        return false;
    out->items = memory_grow(out->items, (size_t)out->count, sizeof *out->items);
    struct check_subject *s = &out->items[out->count++];
    *s = (struct check_subject){.implementation = implementation};
    for (int k = 0; k < out->count - 1; k++)
        if (strcmp(out->items[k].implementation.name, implementation.name) == 0)
            return error_set(error, "implementation %s: found twice, expected each once", implementation.name);
    struct error own = {0};
    if (plan_cases(r, case_file, s, &own))
        return true;
    // A mistake in the suite or the selection is one; that it does not run here, or that nothing of it was asked for, is a SKIP.
    if (!r->all || interrupt_signal() || (s->plan.problem != PLAN_FINE && s->plan.problem != PLAN_NOTHING))
        return error_set(error, "%s", own.text);
    s->absent = memory_text(own.text);
    return true;
}

// An implementation and its variants, unless its manifest says that it is no subject.
static bool plan_family(const struct check_request *r, const char *name, const char *case_file, struct check_subjects *out, struct error *error)
{
    struct implementation whole;
    if (!implementation_read(name, r->suite, &whole, error))
        return false;
    bool ok = !whole.no_subject, asked = ok;
    ok = !asked || plan_one(r, name, case_file, out, error);
    for (int i = 0; ok && asked && i < whole.variants.count; i++) {
        char *both = memory_format("%s:%s", name, whole.variants.items[i]);
        ok = plan_one(r, both, case_file, out, error);
        free(both);
    }
    implementation_free(&whole);
    return ok;
}

static bool plan_all(const struct check_request *r, const char *case_file, struct check_subjects *out, struct error *error)
{
    struct string_list names = {0};
    bool ok = suite_list_implementations(r->suite, &names, error);
    for (int i = 0; ok && i < names.count; i++)
        ok = plan_family(r, names.items[i], case_file, out, error);
    string_list_free(&names);
    int present = 0;
    for (int i = 0; ok && i < out->count; i++)
        present += out->items[i].absent == NULL;
    if (ok && present == 0)
        ok = error_set(error, "--all-implementations: found none that can run: %s", out->count > 0 ? out->items[0].absent : "the suite has none");
    return ok;
}

// --random: the drawn cases become a case file, which the plan reads like anybody's. It has no name, so that nothing is left of it
// however the program ends. Returns what keeps it, which the caller closes; -1 on failure.
static int draw_random(const struct check_request *r, char path[64], struct error *error)
{
    int fd = r->random <= 20000 ? memfd_create("fsdpmark-random", MFD_CLOEXEC) : -1, copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    FILE *file = copy >= 0 ? fdopen(copy, "w") : NULL;
    if (file != NULL)
        random_cases_write(file, (int)r->random, r->seed != 0 ? (uint64_t)r->seed : 1, 8);
    bool ok = file != NULL && !ferror(file);
    if (file != NULL)
        ok &= fclose(file) == 0;
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    if (ok)
        return fd;
    error_set(error, "--random %lld: the cases cannot be written (20000 cases at most)", (long long)r->random);
    if (fd >= 0)
        close(fd);
    return -1;
}

bool check_plan(const struct check_request *r, struct check_subjects *out, struct error *error)
{
    char drawn[64], *counters = NULL;
    *out = (struct check_subjects){0};
    if (r->counters != NULL && !counters_resolve(r->counters, &counters, error)) // before what takes time
        return false;
    free(counters);
    int random = r->random != 0 ? draw_random(r, drawn, error) : -1;
    bool ok = r->random == 0 || random >= 0;
    const char *case_file = random >= 0 ? drawn : r->case_file;
    if (ok && r->all)
        ok = plan_all(r, case_file, out, error);
    for (int i = 0; ok && !r->all && i < r->implementations.count; i++)
        ok = plan_one(r, r->implementations.items[i], case_file, out, error);
    if (random >= 0)
        close(random);
    return ok;
}

void check_plan_free(struct check_subjects *subjects)
{
    for (int i = 0; i < subjects->count; i++) {
        struct check_subject *s = &subjects->items[i];
        plan_free(&s->plan);
        implementation_free(&s->implementation);
        free(s->known);
        free(s->absent);
    }
    free(subjects->items);
    *subjects = (struct check_subjects){0};
}

// ---- what an earlier session of the run found out ----

static void mark_known(const struct stored_case *c, struct known_case *known)
{
    enum verdict *verdicts = memory_zeros((size_t)c->result_count + 1, sizeof *verdicts);
    for (int v = 0; v < c->result_count; v++)
        verdicts[v] = c->results[v].verdict;
    known->verdict = (int)run_verdict_of(verdicts, c->result_count);
    snprintf(known->digest, sizeof known->digest, "%s", c->digest);
    snprintf(known->truth_digest, sizeof known->truth_digest, "%s", c->truth_digest);
    free(verdicts);
}

bool check_plan_known(const struct stored_run *run, struct check_subjects *subjects, struct error *error)
{
    for (int k = 0; k < subjects->count; k++) {
        struct check_subject *s = &subjects->items[k];
        bool begun = false;
        s->known = memory_zeros((size_t)s->plan.count + 1, sizeof *s->known);
        for (int i = 0; i < s->plan.count; i++)
            s->known[i].verdict = -1;
        for (int c = 0; c < run->case_count; c++) {
            if (strcmp(run->cases[c].implementation, s->implementation.name) != 0)
                continue;
            begun |= strcmp(run->cases[c].case_id, SESSION_ABSENT) != 0;
            for (int i = 0; i < s->plan.count; i++)
                if (strcmp(run->cases[c].case_id, s->plan.cases[i].c.id) == 0)
                    mark_known(&run->cases[c], &s->known[i]);
        }
        if (s->absent != NULL && begun)
            return error_set(error, "run %lld has judged %s, which does not run now: %s", (long long)run->id, s->implementation.name, s->absent);
    }
    return true;
}
