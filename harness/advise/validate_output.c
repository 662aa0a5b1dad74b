// What a validation showed, for machines and as figures. See validate.h.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/advise/validate_output.h"

enum { STRATEGIES = 4, TEXT = 200 };

static json_t *interval_json(const struct interval *i) { return json_pack("{s:f, s:f, s:f}", "value", i->value, "low", i->low, "high", i->high); }

json_t *validate_json(int count, const struct validate_point *points, const struct validate_verdict *d)
{
    json_t *all = json_array(), *changes = json_array();
    for (int i = 0; i < count; i++) {
        const struct validate_point *p = &points[i];
        json_array_append_new(all, json_pack("{s:i, s:f, s:s, s:o, s:o, s:f, s:f, s:b, s:i}", "ranks", p->ranks, "rate_bits", p->rate_bits, "strategy", p->name, "step_seconds",
                                             interval_json(&p->step), "computing_seconds", interval_json(&p->free), "predicted_seconds", p->predicted_s, "error", p->error, "fitted",
                                             p->fitted, "rounds", p->round_count));
    }
    for (int i = 0; i < d->switch_count; i++) {
        const struct validate_switch *s = &d->switches[i];
        json_array_append_new(changes, json_pack("{s:i, s:s, s:s, s:f, s:f, s:f, s:b}", "ranks", s->ranks, "below", s->below, "above", s->above, "measured_bits", s->measured_bits,
                                                 "predicted_bits", s->predicted_bits, "factor", s->factor, "ok", s->ok));
    }
    return json_pack("{s:o, s:o, s:i, s:f, s:f, s:f, s:f, s:b, s:b, s:b}", "points", all, "changes", changes, "judged", d->judged, "median_error", d->median_error, "worst_error",
                     d->worst_error, "bound_of_the_median", VALIDATE_ERROR, "bound_of_a_change", VALIDATE_FACTOR, "times_ok", d->times_ok, "changes_ok", d->switches_ok, "ok", d->ok);
}

void validate_print(int count, const struct validate_point *points, FILE *out)
{
    fprintf(out, "%5s %14s %-8s %13s %24s %10s %10s %7s\n", "ranks", "rate", "strategy", "measured", "interval", "computing", "predicted", "error");
    for (int i = 0; i < count; i++) {
        const struct validate_point *p = &points[i];
        char predicted[TEXT] = "       n/a     n/a";
        if (p->predicted_s > 0)
            snprintf(predicted, sizeof predicted, "%7.1f ms %5.1f %%", 1e3 * p->predicted_s, 100 * p->error);
        fprintf(out, "%5d %7.4g Mbit/s %-8s %10.1f ms %8.1f to %8.1f ms %7.1f ms %s%s\n", p->ranks, p->rate_bits / 1e6, p->name, 1e3 * p->step.value, 1e3 * p->step.low, 1e3 * p->step.high,
                1e3 * p->free.value, predicted, p->fitted ? " (fitted)" : "");
    }
}

void validate_print_times(const struct validate_verdict *d, FILE *out)
{
    fprintf(out, "step times: median error %.1f %% over %d points, largest %.1f %%; bound %.0f %%: %s\n", 100 * d->median_error, d->judged, 100 * d->worst_error, 100 * VALIDATE_ERROR,
            d->times_ok ? "PASS" : "FAIL");
}

json_t *validate_facts(const struct validate_point *p) { return json_pack("{s:f, s:f}", "predicted_s", p->predicted_s, "tokens_per_step", p->w->tokens); }

// Tokens a second of all ranks: what is slow in seconds is low in these.
static struct interval throughput(const struct validate_point *p)
{
    double tokens = p->w->tokens * p->ranks;
    struct interval y = p->step;
    y.value = tokens / p->step.value, y.low = tokens / p->step.high, y.high = tokens / p->step.low;
    return y;
}

// A measured and a predicted series of each strategy, in the order in which they come.
static int series_of(int ranks, int count, const struct validate_point *points, struct plot_point store[2 * STRATEGIES][VALIDATE_RATES], struct plot_series out[2 * STRATEGIES])
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        const struct validate_point *p = &points[i];
        if (p->ranks != ranks)
            continue;
        int k = 0;
        while (k < found && strcmp(out[k].name, p->name) != 0)
            k += 2;
        if (k == found && (found += 2) <= 2 * STRATEGIES)
            for (int j = 0; j < 2; j++)
                out[k + j] = (struct plot_series){p->name, j == 1, 0, store[k + j]};
        if (k >= 2 * STRATEGIES || out[k].count == VALIDATE_RATES)
            continue;
        store[k][out[k].count++] = (struct plot_point){p->rate_bits, throughput(p)};
        store[k + 1][out[k + 1].count++] = (struct plot_point){p->rate_bits, {p->w->tokens * ranks / p->predicted_s, NAN, NAN, 0, 0}};
    }
    return found < 2 * STRATEGIES ? found : 2 * STRATEGIES;
}

bool validate_figure(int ranks, int count, const struct validate_point *points, const struct validate_verdict *d, const struct plot_about *about, const char *folder, char why[PLOT_WHY],
                     struct error *error)
{
    static struct plot_point store[2 * STRATEGIES][VALIDATE_RATES];
    struct plot_series series[2 * STRATEGIES];
    struct plot_crossover marks[2 * VALIDATE_SWITCHES];
    char names[2 * VALIDATE_SWITCHES][80], name[32], title[TEXT];
    int mark_count = 0;
    for (int i = 0; i < d->switch_count; i++)
        for (int predicted = 0; predicted < 2 && d->switches[i].ranks == ranks; predicted++) {
            const struct validate_switch *s = &d->switches[i];
            snprintf(names[mark_count], sizeof names[0], "%s = %s, %s", s->below, s->above, predicted ? "predicted" : "measured");
            marks[mark_count] = (struct plot_crossover){predicted ? s->predicted_bits : s->measured_bits, NAN, NAN, names[mark_count], predicted};
            mark_count++;
        }
    snprintf(name, sizeof name, "validate-%d", ranks);
    snprintf(title, sizeof title, "Throughput against bandwidth, %d hosts: measured and predicted", ranks);
    struct plot_bandwidth plot = {.about = *about, .count = series_of(ranks, count, points, store, series), .series = series, .crossover_count = mark_count, .crossovers = marks};
    plot.about.name = name;
    plot.about.title = title;
    return plot_bandwidth(&plot, folder, why, error);
}
