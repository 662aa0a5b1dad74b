// A stored run of `advise --validate` as the command printed it. See validate_output.h.
#include <string.h>

#include "harness/advise/validate_output.h"

static double number(const json_t *object, const char *name) { return json_number_value(json_object_get(object, name)); }

static bool is_step(const struct stored_series *s, const char *quantity)
{
    return strcmp(s->tool, "validate") == 0 && strcmp(s->quantity, quantity) == 0 && json_is_string(json_object_get(s->point, "strategy")) && s->count > 0;
}

static struct interval free_of(const struct stored_serieses *all, const struct stored_series *step)
{
    for (int i = 0; i < all->count; i++)
        if (is_step(&all->items[i], "seconds without communication") && json_equal(all->items[i].point, step->point))
            return statistics_median(all->items[i].count, all->items[i].values);
    return (struct interval){NAN, NAN, NAN, 0, 0};
}

// Runs from before predictions were stored have none.
static struct validate_point point_of(const struct stored_serieses *all, const struct stored_series *s)
{
    struct validate_point p = {.ranks = (int)number(s->point, "ranks"), .rate_bits = number(s->point, "rate_bits"), .name = json_string_value(json_object_get(s->point, "strategy")),
                               .step = statistics_median(s->count, s->values), .free = free_of(all, s), .round_count = s->count, .predicted_s = number(s->facts, "predicted_s")};
    p.fitted = !(p.predicted_s > 0);
    p.error = p.fitted ? 0 : fabs(p.predicted_s / p.step.value - 1);
    return p;
}

void validate_print_stored(const struct stored_serieses *series, FILE *out)
{
    static struct validate_point points[VALIDATE_POINTS];
    struct validate_verdict d;
    int count = 0;
    for (int i = 0; i < series->count && count < VALIDATE_POINTS; i++)
        if (is_step(&series->items[i], "seconds"))
            points[count++] = point_of(series, &series->items[i]);
    validate_judge(count, points, 0, NULL, &d);
    for (int i = 0; i < count; i++)
        points[i].fitted = false; // kept them from being judged
    validate_print(count, points, out);
    if (d.judged > 0)
        validate_print_times(&d, out);
}
