// The waivers that concern the implementation being run, and which of them covers a result.
#ifndef HARNESS_WAIVING_H
#define HARNESS_WAIVING_H

#include "harness/judge/waivers.h"
#include "harness/store/store.h"

struct waiving { int count; const struct waiver **items; int64_t *ids; };

// Records those of a list (NULL: none) that speak of this implementation, its versions and a case of the plan.
bool waiving_begin(struct waiving *w, const struct waiver_list *list, const char *implementation, json_t *versions, const struct plan *plan,
                   struct store *store, int64_t run, struct error *error);
// The place in `items` of the waiver that covers a result, the one that holds longest where several do; -1 where none does.
int waiving_find(const struct waiving *w, const char *case_id, const struct result *result);
// Whether a FAIL with that waiver is waived today (UTC).
bool waiving_holds(const struct waiving *w, int place);
void waiving_end(struct waiving *w);

#endif
