// Digests of final parameters against those of the family. See family.h.
#include "harness/judge/family.h"

#include <string.h>

static bool comparable(const struct evidence *e, const struct family_member *m, family_filter wanted)
{
    return m->digest && m->truth_digest && e->digest && e->truth_digest && strcmp(m->truth_digest, e->truth_digest) == 0 && wanted(e, m);
}

bool family_has(const struct evidence *e, family_filter wanted)
{
    for (int i = 0; i < e->family_count; i++)
        if (comparable(e, &e->family[i], wanted))
            return true;
    return false;
}

void family_judge(const struct evidence *e, struct finding *f, family_filter wanted, const char *other)
{
    int same = 0;
    for (int i = 0; i < e->family_count; i++) {
        const struct family_member *m = &e->family[i];
        if (!comparable(e, m, wanted))
            continue;
        if (strcmp(m->digest, e->digest) == 0)
            same++;
        else
            finding_fail(f, "", "the final parameters are not those of %s (N = %d, strategy %s), which differs in %s only", m->case_id,
                         m->world_size, strategy_name(m->strategy), other);
    }
    if (same > 0)
        finding_pass(f, "the final parameters are bitwise those of %d cases with %s", same, other);
}
