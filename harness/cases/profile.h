// Profiles: which cases a run takes.
#ifndef HARNESS_PROFILE_H
#define HARNESS_PROFILE_H

#include "harness/cases/draft.h"

struct profile {
    struct document doc;
    const struct node *cases; // list of {pattern, AXIS: VALUES}
    unsigned probes;          // bits of enum probe_id
    int *matched;             // by entry: drafts whose name or id matched the pattern
    int *selected;            // by entry: drafts that the restrictions let through
};

// suite/profiles/NAME.yaml. Errors: FILE:LINE, or the known names where there is no such profile.
bool profile_read(const char *suite, const char *name, struct profile *out, struct error *error);
// Does an entry select the draft? Counts.
bool profile_selects(struct profile *p, const struct draft *d);
// Complains of entries that selected nothing.
bool profile_used(const struct profile *p, struct error *error);
void profile_free(struct profile *p);

#endif
