// One case from evidence to results: load, validate, run every check that applies.
//
// The first result is always that of "answer": the structure of what the workers wrote. A case whose structure is wrong gets no
// other result, because a check would judge less than it claims. A check that applies and says nothing is BROKEN, and so is a
// case to which no check applies.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/judge/evidence.h"
#include "suite/checks/check.h"

static const struct finding nothing_found = {.verdict = VERDICT_PASS, .figure = NAN, .bound = NAN};

static bool add(struct result *results, int capacity, int *count, const char *check, const struct finding *f)
{
    if (*count >= capacity)
        return false;
    results[(*count)++] = (struct result){check, *f};
    return true;
}

static int run_checks(struct evidence *e, struct result *results, int capacity, int *count)
{
    int applied = 0;
    for (int i = 0; check_list[i]; i++) {
        const struct check *check = check_list[i];
        struct finding f = nothing_found;
        if (!check->applies(e))
            continue;
        e->check = check->name;
        check->judge(e, &f);
        if (!f.emitted)
            finding_broken(&f, "the check applies but saw nothing");
        if (!add(results, capacity, count, check->name, &f)) {
            finding_broken(&results[capacity - 1].finding, "more than %d checks apply: results were lost", capacity);
            return applied;
        }
        applied++;
    }
    return applied;
}

int judge_case(const struct judge_context *j, struct result *results, int capacity, char digest[33])
{
    struct loaded_evidence loaded;
    struct finding answer = nothing_found;
    int count = 0;
    digest[0] = 0;
    bool usable = evidence_load(j, &loaded, &answer);
    if (usable)
        finding_pass(&answer, "%d labels from %d ranks are complete", loaded.evidence.observed_count, loaded.evidence.world_size);
    add(results, capacity, &count, "answer", &answer);
    if (usable) {
        int applied = run_checks(&loaded.evidence, results, capacity, &count);
        struct finding broken = nothing_found;
        finding_broken(&broken, "no check applies to this case: it proves nothing");
        if (applied == 0)
            add(results, capacity, &count, "evidence", &broken);
        if (loaded.evidence.digest)
            snprintf(digest, 33, "%s", loaded.evidence.digest);
    }
    evidence_free(&loaded);
    return count;
}
