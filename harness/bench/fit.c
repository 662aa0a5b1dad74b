// See fit.h.
#include "harness/bench/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/launch/interrupt.h"
#include "harness/run/memo.h"

int64_t bench_fit_rows(double one, double two, double limit)
{
    double each = two - one;
    if (one > limit)
        return 0;
    double rows = each > 0 ? 1 + floor((limit - one) / each) : BENCH_MOST_ROWS;
    return rows < BENCH_MOST_ROWS ? (int64_t)rows : BENCH_MOST_ROWS;
}

static void set_rows(struct bench *b, int row, int64_t rows)
{
    struct bench_row *r = &b->table.rows[row];
    struct fsdp_case *c = &b->items[row].plan.cases[0].c;
    int64_t global = rows * case_data_ranks(c);
    r->tokens *= (double)global / (double)r->rows;
    r->flop *= (double)global / (double)r->rows;
    r->rows = c->global_rows = global;
    memo_free(&b->items[row].memo); // another case
}

// NAN where the row is closed or its peak was not seen: then the row says why.
static double peak_at(struct bench *b, int row, int64_t rows, struct error *error)
{
    struct bench_row *r = &b->table.rows[row];
    set_rows(b, row, rows);
    r->peak_bytes = (struct bench_figure){.value = NAN};
    if (!bench_probe_memory(b, row, error) || r->state != BENCH_OPEN || interrupt_signal())
        return NAN;
    if (r->peak_bytes.why[0]) {
        r->state = BENCH_BROKEN;
        snprintf(r->why, sizeof r->why, "its peak memory was not seen: %.200s", r->peak_bytes.why);
    }
    return r->peak_bytes.value;
}

// What is known while the largest is looked for: `most` rows of a rank fit, with that peak; so many do not.
struct range { int64_t most, too_many; double peak; };

static int64_t between(const struct range *r, int64_t rows) { return rows <= r->most ? r->most + 1 : rows >= r->too_many ? r->too_many - 1 : rows; }

// Tries the number that a line allows until the next larger one is known not to fit. False: the row was closed.
static bool search(struct bench *b, int row, double limit, double one, struct range *r, struct error *error)
{
    for (int64_t rows = 2; r->most + 1 < r->too_many;) {
        double peak = peak_at(b, row, rows, error);
        if (!isfinite(peak))
            return false;
        if (peak <= limit)
            *r = (struct range){rows, r->too_many, peak};
        else
            r->too_many = rows;
        rows = between(r, bench_fit_rows(one, one + (peak - one) / (double)(rows - 1), limit));
    }
    return true;
}

static void fit_row(struct bench *b, int row, double limit, struct error *error)
{
    struct bench_row *r = &b->table.rows[row];
    double one = peak_at(b, row, 1, error);
    struct range range = {1, BENCH_MOST_ROWS + 1, one};
    if (!isfinite(one) || (one <= limit && !search(b, row, limit, one, &range, error)))
        return;
    set_rows(b, row, range.most);
    r->peak_bytes = (struct bench_figure){.value = range.peak};
    r->most_rows = range.most == BENCH_MOST_ROWS;
    if (one > limit) {
        r->state = BENCH_SKIP;
        snprintf(r->why, sizeof r->why, "one row of a rank needs %.4g MiB, and the limit is %.4g MiB", one * 0x1p-20, limit * 0x1p-20);
    }
}

bool bench_fit(struct bench *b, double limit, struct error *error)
{
    b->table.memory_limit = limit;
    for (int row = 0; row < b->table.count && !interrupt_signal() && error->text[0] == 0; row++)
        if (b->table.rows[row].state == BENCH_OPEN) {
            fprintf(b->news, "largest batch: %s %s, %s\n", b->table.rows[row].implementation, b->table.rows[row].workload, b->table.rows[row].strategy);
            fit_row(b, row, limit, error);
        }
    return error->text[0] == 0;
}
