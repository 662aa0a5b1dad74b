// See waiving.h.
#include "harness/run/waiving.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/protocol/memory.h"

static bool covers_some_case(const struct waiver *w, const struct plan *plan)
{
    for (int i = 0; i < plan->count; i++)
        if (waiver_covers_case(w, plan->cases[i].c.id))
            return true;
    return false;
}

static char *joined(const struct string_list *list)
{
    char *text = memory_text("");
    for (int i = 0; i < list->count; i++) {
        char *longer = memory_format("%s%s%s", text, i > 0 ? ", " : "", list->items[i]);
        free(text);
        text = longer;
    }
    return text;
}

static bool record(const struct waiver *w, const char *implementation, struct store *store, int64_t run, int64_t *id, struct error *error)
{
    char *checks = joined(&w->checks), *cases = joined(&w->cases);
    struct waiver_record r = {implementation, checks, cases, w->versions, w->reason, w->page, w->expires, w->origin};
    bool ok = store_add_waiver(store, run, &r, id, error);
    free(checks);
    free(cases);
    return ok;
}

bool waiving_begin(struct waiving *w, const struct waiver_list *list, const char *implementation, json_t *versions, const struct plan *plan,
                   struct store *store, int64_t run, struct error *error)
{
    size_t room = list != NULL ? (size_t)list->count + 1 : 1;
    *w = (struct waiving){.items = memory_zeros(room, sizeof *w->items), .ids = memory_zeros(room, sizeof *w->ids)};
    for (int i = 0; list != NULL && i < list->count; i++) {
        const struct waiver *one = &list->items[i];
        if (!waiver_concerns(one, implementation, versions) || !covers_some_case(one, plan))
            continue;
        if (!record(one, implementation, store, run, &w->ids[w->count], error))
            return false;
        w->items[w->count++] = one;
    }
    return true;
}

int waiving_find(const struct waiving *w, const char *case_id, const struct result *result)
{
    int best = -1;
    bool judged = result->finding.verdict == VERDICT_FAIL || result->finding.verdict == VERDICT_PASS;
    for (int i = 0; judged && i < w->count; i++)
        if (waiver_covers_check(w->items[i], result->check) && waiver_covers_case(w->items[i], case_id) &&
            (best < 0 || strcmp(w->items[i]->expires, w->items[best]->expires) > 0))
            best = i;
    return best;
}

bool waiving_holds(const struct waiving *w, int place)
{
    char today[16];
    time_t now = time(NULL);
    struct tm utc;
    strftime(today, sizeof today, "%Y-%m-%d", gmtime_r(&now, &utc));
    return place >= 0 && strcmp(w->items[place]->expires, today) >= 0;
}

void waiving_end(struct waiving *w)
{
    free(w->items);
    free(w->ids);
    *w = (struct waiving){0};
}
