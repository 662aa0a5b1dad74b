// Training steps of several implementations, side by side: what `fsdpmark bench` measures, and the figures that are made of it.
//
// What: a row is one implementation at one workload, strategy and fabric. A sample is one step: the duration on the rank where it was longest.
// How:  a workload is a case (docs/cases.md) whose program is steps without anything between them. Workers are started by the worker protocol as in
//       `check`, with the recorder preloaded, and the marks of the phases tell when a step began and ended: alike for all, from outside.
//       What the workers end in is judged by the same checks as in `check`; a row that FAILs has no score. Rows take turns, round by round, in shuffled order.
// Source: Hoefler and Belli, Scientific Benchmarking of Parallel Computing Systems, SC 2015, for the statistics; docs/metrics.md for the formulas.
#ifndef HARNESS_BENCH_H
#define HARNESS_BENCH_H

#include <stdio.h>

#include "harness/fabric/fabric.h"
#include "harness/probes/summary.h"
#include "harness/run/session.h"
#include "harness/statistics/statistics.h"
#include "harness/store/series.h"

enum { BENCH_WARM = 2 };        // steps of a start that are left out: frameworks lay out in them what they keep
enum { BENCH_LEAST_ROUNDS = STATISTICS_LEAST }; // before an interval is trusted to be narrow: a ratio has one value a round
enum { BENCH_MOST_ROWS = 64 };  // of a rank, of a batch that is looked for: its truth costs its rows
enum { BENCH_WHY = 256 };
#define BENCH_HERE "this-machine" // no fabric was asked for: what each implementation uses by itself

enum bench_state {
    BENCH_OPEN,     // measured, or to be
    BENCH_WRONG,    // its numbers are: no score
    BENCH_SKIP,     // cannot do it, and says why
    BENCH_BROKEN    // could not be measured or judged
};

// A number, or NAN and the reason.
struct bench_figure { double value; char why[BENCH_WHY]; };
struct bench_launch { int round, count; double *seconds; }; // (count) one start's steps after the warm ones

struct bench_row {
    // What it is. Texts of the first line are borrowed.
    const char *implementation, *fabric, *precision;
    char *workload, *strategy;   // "full", "hybrid-2x2"
    int ranks;
    int steps;                   // of a start that are timed, the warm ones among them
    int64_t rows;                // of the global batch
    int64_t parameters;
    bool most_rows;              // the largest batch that is tried fits: a larger one may
    double tokens, flop;         // of one rank in a step
    double rate_bits;            // line rate of a host, where all have the same; 0: unknown
    char mfu_why[BENCH_WHY];     // why the table's peak is not that of its ranks, or ""
    // What became of it.
    enum bench_state state;
    char why[BENCH_WHY];
    int64_t series;              // in the store, 0: none yet
    int launch_count;
    struct bench_launch *launches;
    // From starts of their own, which are not timed.
    struct bench_figure peak_bytes, sent_bytes, energy_j;
    struct interval exposed;     // share of the step, NAN: exposed_why
    char exposed_why[BENCH_WHY];
};

struct bench_table {
    int count;
    struct bench_row *rows;
    int rounds;                  // ended, all rows in each
    double memory_limit;         // bytes of a rank that each row's batch was fitted to, 0: all have one batch
    double peak_flop_rate;       // of one core [1/s], 0: unknown
    int cores;
    const char *ended;           // "every interval is within 5 %", ...
    double seconds;              // of the rounds
};

// ---- steps.c: from the records of one start ----
// Steps of a program before the first one in which something is observed: those that can be timed.
int bench_timed(const struct fsdp_case *c);
// Seconds of each of the first `steps` steps but BENCH_WARM, on the slowest rank; owned by the caller. Returns how many; 0 with the reason where there are none.
int bench_steps(const struct probe_case *by_rank, int ranks, int steps, double **seconds, char why[BENCH_WHY]);
void bench_seen_peak(const struct probe_case *by_rank, int ranks, int steps, struct bench_figure *out);
// Bytes that the rank which sends most sends in a step, by MPI's calls, else by its sockets.
void bench_seen_sent(const struct probe_case *by_rank, int ranks, struct bench_figure *out);
// Of the whole machine in a step. events: what was counted, "" or NULL: none, for the reason in `why`.
void bench_seen_energy(const struct probe_case *by_rank, const char *events, const char *why, struct bench_figure *out);

// ---- figures.c: from rows ----
// NAN with count 0 where a row has no score.
struct interval bench_step(const struct bench_row *r);
struct interval bench_tokens(const struct bench_row *r);    // per second and rank
struct interval bench_flop_rate(const struct bench_row *r); // per rank
struct interval bench_mfu(const struct bench_table *t, const struct bench_row *r); // NAN where the peak is unknown
const char *bench_mfu_why(const struct bench_table *t, const struct bench_row *r); // why it is, or ""
// The row that ratios are against: of the first implementation at the same workload and fabric, of the same strategy where it has it. NULL: none with a score.
const struct bench_row *bench_base(const struct bench_table *t, const struct bench_row *r);
// Of the step times, of rows of different batches of the times of a token; rounds paired.
struct interval bench_ratio(const struct bench_row *r, const struct bench_row *base);
// "faster", "slower", "no difference shown"; where there were fewer rounds than an interval needs, that.
const char *bench_word(const struct interval *ratio);
bool bench_narrow(const struct bench_table *t, double relative); // every row that is open; at least BENCH_LEAST_ROUNDS each
int bench_status(const struct bench_table *t); // 1: some WRONG; 3: some BROKEN, or nothing measured; else 0
json_t *bench_facts(const struct bench_table *t, const struct bench_row *r); // for the store; new reference
// stored.c: the table again, from what the store has of a run. Texts are borrowed from the series.
void bench_from_stored(const struct stored_serieses *series, int cores, struct bench_table *out);
void bench_table_free(struct bench_table *t);

// ---- table.c, export.c, plots.c ----
void bench_print(const struct bench_table *t, FILE *out);
bool bench_json(const struct bench_table *t, FILE *out);
bool bench_csv(const struct bench_table *t, FILE *out);
// Into the folder: `implementations`, rows side by side, and `tradeoff`, memory against throughput. environment: the run's. What cannot be drawn is told on `out`.
bool bench_plots(const struct bench_table *t, json_t *environment, json_t *implementations, const char *date, const char *folder, FILE *out, struct error *error);

#endif
