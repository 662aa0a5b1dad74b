// The order of verdicts. The enumeration's numbers are names, not ranks, so the order is a table.
#include "harness/store/verdicts.h"

#include <string.h>

#include "harness/store/store.h"

static const int severities[VERDICT_COUNT] = {
    [VERDICT_PASS] = 0, [VERDICT_SKIP] = 1, [VERDICT_FAIL] = 2, [VERDICT_BROKEN] = 3,
};

int verdict_severity(enum verdict v) { return severities[v]; }

enum verdict verdict_worse(enum verdict a, enum verdict b) { return severities[b] > severities[a] ? b : a; }

bool verdict_parse(const char *name, enum verdict *out) {
    for (int v = 0; name && v < VERDICT_COUNT; v++)
        if (!strcmp(name, verdict_name((enum verdict)v))) {
            *out = (enum verdict)v;
            return true;
        }
    return false;
}

enum verdict verdict_of_results(const struct stored_result *results, int count) {
    enum verdict worst = count ? VERDICT_PASS : VERDICT_BROKEN;
    for (int i = 0; i < count; i++) worst = verdict_worse(worst, results[i].verdict);
    return worst;
}
