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

static void fit_row(struct bench *b, int row, double limit, struct error *error)
{
    struct bench_row *r = &b->table.rows[row];
    double one = peak_at(b, row, 1, error), two = isfinite(one) ? peak_at(b, row, 2, error) : NAN;
    int64_t rows = isfinite(two) ? bench_fit_rows(one, two, limit) : 0, tried = 2;
    double peak = two;
    for (; rows > 0 && isfinite(peak) && (tried != rows || peak > limit); rows -= peak > limit) {
        peak = peak_at(b, row, rows, error);
        tried = rows;
    }
    if (r->state != BENCH_OPEN || !isfinite(peak) || interrupt_signal() || error->text[0])
        return;
    if (rows == 0) {
        r->state = BENCH_SKIP;
        snprintf(r->why, sizeof r->why, "one row of a rank needs %.4g MiB, and the limit is %.4g MiB", one * 0x1p-20, limit * 0x1p-20);
    }
}

bool bench_fit(struct bench *b, double limit, struct error *error)
{
    for (int row = 0; row < b->table.count && !interrupt_signal() && error->text[0] == 0; row++)
        if (b->table.rows[row].state == BENCH_OPEN) {
            fprintf(b->news, "largest batch: %s %s, %s\n", b->table.rows[row].implementation, b->table.rows[row].workload, b->table.rows[row].strategy);
            fit_row(b, row, limit, error);
        }
    return error->text[0] == 0;
}
