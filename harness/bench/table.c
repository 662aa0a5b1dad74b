// A bench on the terminal: one table for each workload on each fabric. See bench.h.
//
// WRONG, SKIP and BROKEN rows have no figures; the reason stands below the table, as do those of each n/a.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench/bench.h"
#include "harness/protocol/memory.h"
#include "harness/report/text.h"

enum { COLUMNS = 11, NOTES = 256 };
static const char *const heads[COLUMNS] = {"implementation", "strategy", "tokens/s/rank", "step", "interval", "GFLOP/s/rank", "MFU", "exposed", "peak memory", "sent/step", "energy/step"};
static const char *const strategy_heads[] = {"strategy", "strategy, global batch"}, *const ratio_heads[] = {"step against the first", "time of a token against the first"};

struct notes { int count; char *text[NOTES]; };

static const char most_rows[] = "a larger batch may fit: this one, of 64 rows of a rank, is the largest that is tried";
_Static_assert(BENCH_MOST_ROWS == 64, "as the text says");

static void note(struct notes *n, const char *who, const char *what, const char *why)
{
    char *text = memory_format("%s%s%s: %s", who, what[0] ? ", " : "", what, why);
    for (int i = 0; i < n->count; i++)
        if (strcmp(n->text[i], text) == 0) {
            free(text);
            return;
        }
    if (n->count < NOTES)
        n->text[n->count++] = text;
    else
        free(text);
}

static char *seconds(double s)
{
    return !isfinite(s) ? memory_text("-") : s < 1e-3 ? memory_format("%.4g us", 1e6 * s) : s < 1 ? memory_format("%.4g ms", 1e3 * s) : memory_format("%.4g s", s);
}

static char *bytes(double b)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    for (; b >= 1024 && u < 4; u++)
        b /= 1024;
    return memory_format("%.4g %s", b, units[u]);
}

static char *figure(const struct bench_figure *f, char *(*write)(double), struct notes *n, const char *who, const char *what)
{
    if (f->why[0] == 0 && isfinite(f->value))
        return write(f->value);
    note(n, who, what, f->why[0] ? f->why : "not measured");
    return memory_text("n/a");
}

static char *joule(double j) { return memory_format("%.3g J", j); }

static char *interval(const struct interval *i)
{
    double scale = i->value < 1e-3 ? 1e6 : i->value < 1 ? 1e3 : 1;
    return memory_format("[%.4g, %.4g]%s", scale * i->low, scale * i->high, statistics_tells(i) ? "" : " *");
}

static char *ratio(const struct bench_table *t, const struct bench_row *r)
{
    const struct bench_row *base = bench_base(t, r);
    struct interval q = bench_ratio(r, base);
    if (base == r)
        return memory_text("1");
    if (q.count == 0)
        return memory_text("-");
    if (q.count == 1)
        return memory_format("%.3f %s", q.value, bench_word(&q));
    return memory_format("%.3f [%.3f, %.3f]%s %s", q.value, q.low, q.high, statistics_tells(&q) ? "" : " *", bench_word(&q));
}

static void scored(const struct bench_table *t, const struct bench_row *r, char *cells[COLUMNS + 1], struct notes *n)
{
    struct interval step = bench_step(r), tokens = bench_tokens(r), flop = bench_flop_rate(r), mfu = bench_mfu(t, r);
    cells[2] = memory_format("%.4g", tokens.value);
    cells[3] = seconds(step.value);
    cells[4] = interval(&step);
    cells[5] = memory_format("%.3g", 1e-9 * flop.value);
    cells[6] = mfu.count > 0 ? memory_format("%.2g %%", 100 * mfu.value) : memory_text("n/a");
    if (mfu.count == 0)
        note(n, r->implementation, "MFU", bench_mfu_why(t, r));
    cells[7] = r->exposed.count > 0 ? memory_format("%.1f %%", 100 * r->exposed.value) : memory_text("n/a");
    if (r->exposed.count == 0)
        note(n, r->implementation, "exposed", r->exposed_why[0] ? r->exposed_why : "not measured");
    cells[8] = figure(&r->peak_bytes, bytes, n, r->implementation, "peak memory");
    cells[9] = figure(&r->sent_bytes, bytes, n, r->implementation, "sent");
    cells[10] = figure(&r->energy_j, joule, n, "energy", "");
    cells[11] = ratio(t, r);
    if (r->most_rows)
        note(n, r->implementation, r->strategy, most_rows);
}

static void fill(const struct bench_table *t, const struct bench_row *r, char *cells[COLUMNS + 1], struct notes *n)
{
    static const char *const words[] = {"not run", "WRONG", "SKIP", "BROKEN"};
    cells[0] = text_copy(TEXT_TERMINAL, r->implementation);
    cells[1] = memory_text(r->strategy);
    if (r->state == BENCH_OPEN && r->launch_count > 0) {
        scored(t, r, cells, n);
        return;
    }
    cells[2] = memory_text(words[r->state]);
    for (int k = 3; k <= COLUMNS; k++)
        cells[k] = memory_text("-");
    if (r->why[0])
        note(n, r->implementation, words[r->state], r->why);
}

static void put(char *const cells[COLUMNS + 1], const int width[COLUMNS + 1], FILE *out)
{
    for (int k = 0; k <= COLUMNS; k++) {
        int pad = width[k] - text_width(cells[k]);
        bool left = k < 2 || k == COLUMNS;
        fprintf(out, "%s%*s%s%*s", k > 0 ? "  " : "  ", left ? 0 : pad, "", cells[k], left && k < COLUMNS ? pad : 0, "");
    }
    fputc('\n', out);
}

static bool together(const struct bench_row *a, const struct bench_row *b)
{
    return strcmp(a->workload, b->workload) == 0 && strcmp(a->fabric, b->fabric) == 0 && strcmp(a->precision, b->precision) == 0 && a->ranks == b->ranks;
}

static bool is_first(const struct bench_table *t, int i)
{
    for (int k = 0; k < i; k++)
        if (together(&t->rows[k], &t->rows[i]))
            return false;
    return true;
}

static bool one_size(const struct bench_table *t, const struct bench_row *first)
{
    for (int i = 0; i < t->count; i++)
        if (together(&t->rows[i], first) && t->rows[i].rows != first->rows)
            return false;
    return true;
}

static void head(const struct bench_table *t, const struct bench_row *r, FILE *out)
{
    char *fabric = text_copy(TEXT_TERMINAL, r->fabric), *workload = text_copy(TEXT_TERMINAL, r->workload);
    fprintf(out, "\n%s on %s: %d rank%s, %s, %.4g parameters; ", workload, fabric, r->ranks, r->ranks == 1 ? "" : "s", r->precision, (double)r->parameters);
    if (t->memory_limit > 0) {
        char *limit = bytes(t->memory_limit);
        fprintf(out, "the largest global batch with at most %s on each rank", limit);
        free(limit);
    } else {
        fputs("the same global batch for all", out);
    }
    if (one_size(t, r))
        fprintf(out, ": %lld rows; a rank has %.4g tokens and %.3g GFLOP a step", (long long)r->rows, r->tokens, 1e-9 * r->flop);
    fputc('\n', out);
    free(fabric);
    free(workload);
}

static void put_group(const struct bench_table *t, const struct bench_row *first, struct notes *n, FILE *out)
{
    char *(*cells)[COLUMNS + 1] = memory_zeros((size_t)t->count + 1, sizeof *cells);
    int width[COLUMNS + 1] = {0}, count = 1;
    for (int k = 0; k <= COLUMNS; k++)
        cells[0][k] = memory_text(k == 1 ? strategy_heads[!one_size(t, first)] : k < COLUMNS ? heads[k] : ratio_heads[!one_size(t, first)]);
    for (int i = 0; i < t->count; i++)
        if (together(&t->rows[i], first)) {
            fill(t, &t->rows[i], cells[count], n);
            if (!one_size(t, first) && t->rows[i].state != BENCH_SKIP) {
                char *longer = memory_format("%s, %lld rows", cells[count][1], (long long)t->rows[i].rows);
                free(cells[count][1]);
                cells[count][1] = longer;
            }
            count++;
        }
    for (int i = 0; i < count; i++)
        for (int k = 0; k <= COLUMNS; k++)
            width[k] = text_width(cells[i][k]) > width[k] ? text_width(cells[i][k]) : width[k];
    head(t, first, out);
    for (int i = 0; i < count; i++) {
        put(cells[i], width, out);
        for (int k = 0; k <= COLUMNS; k++)
            free(cells[i][k]);
    }
    free(cells);
}

static bool any_thin(const struct bench_table *t)
{
    for (int i = 0; i < t->count; i++) {
        const struct bench_row *r = &t->rows[i], *base = bench_base(t, r);
        struct interval step = bench_step(r), q = bench_ratio(r, base != r ? base : NULL);
        if ((step.count > 0 && !statistics_tells(&step)) || (q.count > 1 && !statistics_tells(&q)))
            return true;
    }
    return false;
}

void bench_print(const struct bench_table *t, FILE *out)
{
    struct notes n = {0};
    int most = 0;
    for (int i = 0; i < t->count; i++) {
        most = t->rows[i].ranks > most ? t->rows[i].ranks : most;
        if (is_first(t, i))
            put_group(t, &t->rows[i], &n, out);
    }
    fprintf(out, "\nstep: the slowest rank's, median over starts and steps, the first %d of a start left out; intervals of at least 95 %%\n", BENCH_WARM);
    if (any_thin(t))
        fprintf(out, "* covers less than 95 %%, for which it takes %d rounds\n", BENCH_LEAST_ROUNDS);
    fputs("in starts of their own, not timed: exposed communication as a share of the step, peak memory of the fullest rank, bytes of the rank that sends most, energy of the machine\n", out);
    if (t->peak_flop_rate > 0)
        fprintf(out, "MFU: against %.4g GFLOP/s, what one core reaches in a product of float32 matrices now\n", 1e-9 * t->peak_flop_rate);
    if (most > t->cores && t->cores > 0)
        fprintf(out, "%d ranks on %d core%s: they wait for each other's turn, and times say so\n", most, t->cores, t->cores == 1 ? "" : "s");
    for (int i = 0; i < n.count; i++) {
        char *text = text_copy(TEXT_TERMINAL, n.text[i]);
        fprintf(out, "%s\n", text);
        free(text);
        free(n.text[i]);
    }
    fprintf(out, "%d round%s", t->rounds, t->rounds == 1 ? "" : "s");
    if (t->seconds > 0)
        fprintf(out, " in %.0f s: %s", t->seconds, t->ended != NULL ? t->ended : "ended early");
    fputc('\n', out);
}
