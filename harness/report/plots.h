// The figures of what net, bench, advise and compare measured or predicted: drawing functions over plain data, which their owners fill.
//
// Each writes FOLDER/NAME.{svg,png,pdf} by gnuplot, beside the data (NAME.dat) and the scripts (NAME.gp, style.gp) that made them, so that
// `gnuplot -d NAME.gp` draws it again. FOLDER is made where it is not there. Texts may hold anything: they go into data files, or are reduced to harmless characters. Values that are not finite, or not
// above 0 on a logarithmic axis, are left out and counted in the caption. Nothing is told by colour alone.
// Returns false only where files cannot be written; a picture that cannot be drawn has its reason in `why` (no gnuplot, no data), else why is "".
#ifndef HARNESS_REPORT_PLOTS_H
#define HARNESS_REPORT_PLOTS_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/protocol/error.h"
#include "harness/statistics/statistics.h"

enum { PLOT_SERIES = 8, PLOT_ROWS = 40 }; // the most that are drawn; more are left out, which the caption says
enum { PLOT_WHY = 256 };

// What every caption says. Texts are borrowed; NULL or "" where it does not apply.
struct plot_about {
    const char *name;     // of the files: letters, digits, '-'
    const char *title;
    const char *machine;  // plot_machine(environment of the run)
    const char *fabric;   // "virtual-100m: 4 hosts at 100 Mbit/s each"
    const char *versions; // plot_versions(environment, implementations of the run)
    const char *date;     // of the run, ISO 8601; its day is shown
    const char *interval; // NULL: "Bars: interval of at least 95 % for the median, by order statistics"
    const char *note;     // whatever else the reader must know: "Predicted lines: cost model fed by ..."
};
// "AMD EPYC 7, 8 cores, host x"; "fsdpmark 0.6, Open MPI 4.1.4, torch 2.9". implementations: stored_run's, or NULL. The caller frees.
char *plot_machine(const json_t *environment);
char *plot_versions(const json_t *environment, const json_t *implementations);
// "virtual-100m (Emulated cluster of 4 hosts, 100 Mbit/s each)", several with commas between; "" where none was asked for. The caller frees.
char *plot_fabric(const json_t *environment);
// What bars of so many rounds of bench are: NULL, as by default, from STATISTICS_LEAST on. The caller frees.
char *plot_bars(int rounds);

struct plot_point { double x; struct interval y; }; // a predicted one: low = high = NAN or = value
struct plot_series {
    const char *name;
    bool predicted;       // dashed line without marks, in the colour of the measured series of the same name
    int count;
    const struct plot_point *points; // by x
};

// busbw against size: x message bytes, y byte/s. line_rate: byte/s, 0 where it is unknown.
struct plot_busbw { struct plot_about about; double line_rate; int count; const struct plot_series *series; };
bool plot_busbw(const struct plot_busbw *p, const char *folder, char why[PLOT_WHY], struct error *error);

// Throughput against bandwidth, one line per strategy: x bit/s, y tokens/s (of all ranks, or as `unit` says). Crossovers are vertical strokes with their
// interval as a band (low = high = NAN: none) and a name ("full = none, measured").
struct plot_crossover { double bits; double low, high; const char *name; bool predicted; };
struct plot_bandwidth {
    struct plot_about about;
    const char *unit;     // NULL: "tokens / s"
    int count; const struct plot_series *series;
    int crossover_count; const struct plot_crossover *crossovers;
};
bool plot_bandwidth(const struct plot_bandwidth *p, const char *folder, char why[PLOT_WHY], struct error *error);

// Memory against throughput, the trade that FSDP is: a mark per configuration, its label beside it ("full, 4 ranks"); series: implementation.
struct plot_trade_point { const char *label; int series; double peak_bytes; struct interval tokens; }; // of the fullest rank; tokens/s per rank
struct plot_trade { struct plot_about about; int series_count; const char *const *series; int count; const struct plot_trade_point *points; };
bool plot_trade(const struct plot_trade *p, const char *folder, char why[PLOT_WHY], struct error *error);

// Implementations side by side: a row per workload (or per strategy), a mark with its interval per implementation. cells[row * series_count + series];
// count 0: not measured. `unit`: of x; `less`: less is better (seconds), else more.
struct plot_implementations {
    struct plot_about about;
    const char *unit;
    bool less;
    int row_count, series_count;
    const char *const *rows, *const *series;
    const struct interval *cells;
};
bool plot_implementations(const struct plot_implementations *p, const char *folder, char why[PLOT_WHY], struct error *error);

// A against B: the ratio B / A of each row with its interval and its word; a stroke at 1 and, where threshold is above 0, one at 1 + threshold.
struct plot_ab_row { const char *name, *word; struct interval ratio; };
struct plot_ab { struct plot_about about; const char *a, *b; double threshold; int count; const struct plot_ab_row *rows; };
bool plot_ab(const struct plot_ab *p, const char *folder, char why[PLOT_WHY], struct error *error);

// The crossover map: bandwidth x model size, one colour and hatching per best strategy, which is also written into its largest area.
// bits and parameters ascend; best[j * bits_count + i]: place in names of the fastest at (bits[i], parameters[j]), -1: none.
struct plot_map_mark { double bits, parameters; const char *name; };  // a measured point: the mark, and what was fastest there
struct plot_map_curve { const char *name; int count; const double *bits, *parameters; }; // "compute-bound right of it"
struct plot_map {
    struct plot_about about;
    int name_count; const char *const *names;
    int bits_count, parameters_count;
    const double *bits, *parameters;
    const int *best;
    const unsigned char *close; // NULL, or 1 where the second is as fast within what the model is trusted: drawn lighter
    int mark_count; const struct plot_map_mark *marks;
    int curve_count; const struct plot_map_curve *curves;
};
bool plot_map(const struct plot_map *p, const char *folder, char why[PLOT_WHY], struct error *error);

#endif
