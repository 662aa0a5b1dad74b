// The figures of a bench: rows side by side, and memory against throughput. The drawing: harness/report/plots.h.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench/bench.h"
#include "harness/protocol/memory.h"
#include "harness/report/plots.h"

// Names in the order of their first appearance.
struct names { int count; const char **items; };

static int place_of(struct names *n, const char *name)
{
    for (int i = 0; i < n->count; i++)
        if (strcmp(n->items[i], name) == 0)
            return i;
    n->items = memory_grow(n->items, (size_t)n->count, sizeof *n->items);
    n->items[n->count] = name;
    return n->count++;
}

static char *row_name(const struct bench_row *r, bool fabrics)
{
    return memory_format("%s, %s%s%s", r->workload, r->strategy, fabrics ? ", " : "", fabrics ? r->fabric : "");
}

static bool several_fabrics(const struct bench_table *t)
{
    for (int i = 1; i < t->count; i++)
        if (strcmp(t->rows[i].fabric, t->rows[0].fabric) != 0)
            return true;
    return false;
}

// Rows of one fabric stand together.
static char *fabrics_of(const struct bench_table *t)
{
    char *out = memory_text("");
    for (int i = 0; i < t->count; i++) {
        if (i > 0 && strcmp(t->rows[i].fabric, t->rows[i - 1].fabric) == 0)
            continue;
        char *longer = memory_format("%s%s%s", out, i > 0 ? ", " : "", t->rows[i].fabric);
        free(out);
        out = longer;
    }
    return out;
}

// Of the rows that are drawn, the fewest.
static int rounds_of(const struct bench_table *t)
{
    int least = STATISTICS_LEAST;
    for (int i = 0; i < t->count; i++)
        if (bench_step(&t->rows[i]).count > 0 && t->rows[i].launch_count < least)
            least = t->rows[i].launch_count;
    return least;
}

static void explain(const char *name, const char *why, FILE *out)
{
    if (why[0])
        fprintf(out, "figure %s: not drawn: %s\n", name, why);
}

static bool side_by_side(const struct bench_table *t, const struct plot_about *about, const char *folder, FILE *out, struct error *error)
{
    struct names rows = {0}, series = {0};
    char **owned = memory_zeros((size_t)t->count + 1, sizeof *owned), why[PLOT_WHY] = "";
    bool fabrics = several_fabrics(t);
    for (int i = 0; i < t->count; i++) {
        owned[i] = row_name(&t->rows[i], fabrics);
        place_of(&rows, owned[i]);
        place_of(&series, t->rows[i].implementation);
    }
    struct interval *cells = memory_zeros((size_t)(rows.count * series.count) + 1, sizeof *cells);
    for (int i = 0; i < t->count; i++)
        cells[place_of(&rows, owned[i]) * series.count + place_of(&series, t->rows[i].implementation)] = bench_tokens(&t->rows[i]);
    struct plot_implementations p = {*about, "tokens / s of a rank", false, rows.count, series.count, rows.items, series.items, cells};
    bool ok = plot_implementations(&p, folder, why, error);
    explain(about->name, why, out);
    for (int i = 0; i < t->count; i++)
        free(owned[i]);
    free(owned);
    free(cells);
    free(rows.items);
    free(series.items);
    return ok;
}

static bool trade(const struct bench_table *t, const struct plot_about *about, const char *folder, FILE *out, struct error *error)
{
    struct names series = {0};
    struct plot_trade_point *points = memory_zeros((size_t)t->count + 1, sizeof *points);
    char **labels = memory_zeros((size_t)t->count + 1, sizeof *labels), why[PLOT_WHY] = "";
    bool fabrics = several_fabrics(t);
    int count = 0;
    for (int i = 0; i < t->count; i++) {
        const struct bench_row *r = &t->rows[i];
        struct interval tokens = bench_tokens(r);
        if (tokens.count == 0 || r->peak_bytes.why[0] || !(r->peak_bytes.value > 0))
            continue;
        labels[count] = row_name(r, fabrics);
        points[count] = (struct plot_trade_point){labels[count], place_of(&series, r->implementation), r->peak_bytes.value, tokens};
        count++;
    }
    struct plot_trade p = {*about, series.count, series.items, count, points};
    bool ok = plot_trade(&p, folder, why, error);
    explain(about->name, why, out);
    for (int i = 0; i < count; i++)
        free(labels[i]);
    free(labels);
    free(points);
    free(series.items);
    return ok;
}

bool bench_plots(const struct bench_table *t, json_t *environment, json_t *implementations, const char *date, const char *folder, FILE *out, struct error *error)
{
    char *machine = plot_machine(environment), *fabrics = fabrics_of(t), *versions = plot_versions(environment, implementations), *bars = plot_bars(rounds_of(t));
    struct plot_about about = {.name = "implementations", .title = "Training steps, side by side", .machine = machine, .fabric = fabrics,
                               .versions = versions, .date = date, .interval = bars, .note = "Numbers judged in the same run; a wrong one has no mark"};
    bool ok = side_by_side(t, &about, folder, out, error);
    about.name = "tradeoff";
    about.title = "Memory against throughput";
    about.note = "Memory: the largest of the heap in a step, in starts of their own";
    ok = ok && trade(t, &about, folder, out, error);
    free(machine);
    free(fabrics);
    free(versions);
    free(bars);
    return ok;
}
