// The table of a stored bench again: rows from its series, figures from their facts. See bench.h.
//
// Launches are stored by round, and a row that is open has one in each, so that rounds can be paired as in the bench itself. How many were ended, how long they
// took and why there are no more is a fact of each series; where it is not (the run was killed, or is older), rounds are those that every row counted has.
#include <math.h>
#include <string.h>

#include "harness/bench/bench.h"
#include "harness/protocol/memory.h"
#include "harness/store/series.h"

static const char *text(const json_t *object, const char *name)
{
    const char *out = json_string_value(json_object_get(object, name));
    return out != NULL ? out : "";
}

static double number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void take_why(const json_t *facts, const char *name, char why[BENCH_WHY])
{
    char *member = memory_format("%s_why", name);
    snprintf(why, BENCH_WHY, "%s", text(facts, member));
    free(member);
}

static struct bench_figure figure(const json_t *facts, const char *name)
{
    struct bench_figure out = {.value = number(facts, name)};
    take_why(facts, name, out.why);
    return out;
}

static void take_exposed(const json_t *facts, struct bench_row *r)
{
    const json_t *share = json_object_get(facts, "exposed_share");
    double part[3] = {NAN, NAN, NAN};
    for (size_t i = 0; i < 3 && json_array_size(share) == 3; i++)
        part[i] = json_number_value(json_array_get(share, i));
    r->exposed = (struct interval){part[0], part[1], part[2], 0.95, isfinite(part[0])};
    take_why(facts, "exposed_share", r->exposed_why);
}

static enum bench_state state_of(const char *verdict)
{
    static const char *const words[] = {[BENCH_WRONG] = "WRONG", [BENCH_SKIP] = "SKIP", [BENCH_BROKEN] = "BROKEN"};
    for (int i = BENCH_WRONG; i <= BENCH_BROKEN; i++)
        if (strcmp(verdict, words[i]) == 0)
            return (enum bench_state)i;
    return BENCH_OPEN;
}

static void take_row(const struct stored_series *s, struct bench_row *r)
{
    const json_t *facts = s->facts;
    *r = (struct bench_row){.implementation = s->subject, .fabric = s->fabric, .precision = text(s->point, "precision"), .workload = memory_text(s->name),
                            .strategy = memory_text(text(s->point, "strategy")), .ranks = (int)json_integer_value(json_object_get(s->point, "ranks")),
                            .rows = json_integer_value(json_object_get(s->point, "rows")), .parameters = json_integer_value(json_object_get(facts, "parameters")),
                            .tokens = number(facts, "tokens_per_step"), .flop = number(facts, "flop_per_step"), .rate_bits = fmax(0, number(facts, "rate_bits")),
                            .state = state_of(text(facts, "verdict")), .series = s->id, .peak_bytes = figure(facts, "peak_bytes"), .sent_bytes = figure(facts, "sent_bytes"),
                            .energy_j = figure(facts, "energy_j"), .most_rows = json_is_true(json_object_get(facts, "most_rows"))};
    snprintf(r->why, sizeof r->why, "%s", text(facts, "why"));
    take_why(facts, "mfu", r->mfu_why);
    take_exposed(facts, r);
    r->launches = memory_zeros((size_t)s->launch_count + 1, sizeof *r->launches);
    for (; r->launch_count < s->launch_count; r->launch_count++) {
        int count = s->launches[r->launch_count].count;
        r->launches[r->launch_count] = (struct bench_launch){r->launch_count, count, memory_copy(s->launches[r->launch_count].values, (size_t)count, sizeof(double))};
    }
}

// Without the fact, a round that was cut short shows by a row that has no launch in it.
static void take_rounds(const struct stored_serieses *series, struct bench_table *t)
{
    const json_t *facts = series->count > 0 ? series->items[0].facts : NULL;
    int least = -1;
    for (int i = 0; i < t->count; i++)
        if (t->rows[i].state == BENCH_OPEN && (least < 0 || t->rows[i].launch_count < least))
            least = t->rows[i].launch_count;
    bool told = text(facts, "ended")[0] != 0;
    t->rounds = told ? (int)json_integer_value(json_object_get(facts, "rounds")) : least > 0 ? least : 0;
    t->seconds = told ? fmax(0, number(facts, "rounds_s")) : 0;
    t->ended = told ? text(facts, "ended") : NULL;
}

void bench_from_stored(const struct stored_serieses *series, int cores, struct bench_table *out)
{
    *out = (struct bench_table){.cores = cores, .rows = memory_zeros((size_t)series->count + 1, sizeof *out->rows)};
    for (int i = 0; i < series->count; i++) {
        if (strcmp(series->items[i].tool, "bench") != 0)
            continue;
        struct bench_row *r = &out->rows[out->count++];
        take_row(&series->items[i], r);
        out->memory_limit = fmax(out->memory_limit, number(series->items[i].facts, "memory_limit"));
        out->peak_flop_rate = fmax(out->peak_flop_rate, number(series->items[i].facts, "peak_flop_rate"));
    }
    take_rounds(series, out);
}
