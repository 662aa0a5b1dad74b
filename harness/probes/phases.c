// The phases that a worker may mark (docs/probes.md, Phases), and what each belongs to. See summary.h.
#include "harness/probes/summary.h"

#include <stdio.h>
#include <string.h>

enum { ELSEWHERE, TRAINING, OF_A_STEP /* and of training */ };
static const struct { const char *name; int belongs; } phases[] = {
    {"case", ELSEWHERE}, {"zero_grad", TRAINING}, {"forward", OF_A_STEP}, {"backward", OF_A_STEP}, {"clip", OF_A_STEP}, {"step", OF_A_STEP},
    {"eval", TRAINING}, {"freeze", TRAINING}, {"unfreeze", TRAINING}, {"save", ELSEWHERE}, {"load", ELSEWHERE}, {"observe", ELSEWHERE},
    {"stop", ELSEWHERE}, {"end", ELSEWHERE}};
enum { PHASES = sizeof phases / sizeof *phases };

static int belongs(const char *phase)
{
    for (int i = 0; i < PHASES; i++)
        if (strcmp(phase, phases[i].name) == 0)
            return phases[i].belongs;
    return -1;
}

bool probe_trains(const char *phase) { return belongs(phase) >= TRAINING; }
bool probe_of_step(const char *phase) { return belongs(phase) == OF_A_STEP; }

bool probe_phases_known(const struct probe_case *p, struct error *error)
{
    char list[200] = "";
    for (int i = 0; i < PHASES; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i == 0 ? "" : i == PHASES - 1 ? " or " : ", ", phases[i].name);
    for (int i = 0; i < p->phase_count; i++)
        if (belongs(p->phases[i].name) < 0)
            return error_set(error, "rank %d marks phase '%s', expected %s (docs/probes.md, Phases)", p->rank, p->phases[i].name, list);
    return true;
}
