// Known failures: a FAIL that is written up stays a FAIL, is marked as waived, and does not decide the exit status.
//
// suite/waivers.yaml, form and rules: docs/waivers.md. A waiver holds for named checks, implementations, versions and cases,
// until a date. What is BROKEN or SKIP cannot be waived: nothing was seen there.
#ifndef HARNESS_WAIVERS_H
#define HARNESS_WAIVERS_H

#include <jansson.h>

#include "harness/cases/suite.h"

struct waiver {
    struct string_list implementations; // NAME, NAME:VARIANT or a glob of these
    struct string_list checks;          // names as results show them
    struct string_list cases;           // globs of case ids
    char *versions;                     // see versions.h
    char *reason;
    char *page;                         // FILE or FILE#ANCHOR, as written
    char *expires;                      // last day on which it holds, YYYY-MM-DD
    char *origin;                       // FILE:LINE
};
struct waiver_list { int count; struct waiver *items; };

// Pages are looked for below `folder`. Errors: "FILE:LINE: what was found, what was expected".
bool waivers_read(const char *path, const char *folder, struct waiver_list *out, struct error *error);
void waivers_free(struct waiver_list *l);
// Whether it speaks of this implementation in these versions (object: name to version).
bool waiver_concerns(const struct waiver *w, const char *implementation, json_t *versions);
bool waiver_covers_case(const struct waiver *w, const char *case_id);
bool waiver_covers_check(const struct waiver *w, const char *check);

#endif
