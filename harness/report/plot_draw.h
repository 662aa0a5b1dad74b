// Shared by the files that draw the plots of measured series: a figure under way, axes with ticks that say their unit, captions.
#ifndef HARNESS_REPORT_PLOT_DRAW_H
#define HARNESS_REPORT_PLOT_DRAW_H

#include <stdio.h>

#include "harness/report/figures.h"
#include "harness/report/plots.h"

enum { PLOT_LEFT_PX = 116, PLOT_WIDE_PX = 640, PLOT_TALL_PX = 360, PLOT_KEY_GAP_PX = 64 };

// A figure under way: what goes into its data file and before its script, and the start of its caption.
struct plot_draft {
    FILE *data, *head;
    char *data_text, *head_text;
    size_t data_bytes, head_bytes;
    struct figure figure; // its note grows
    char why[PLOT_WHY];   // "" or why nothing can be drawn
};
void plot_begin(struct plot_draft *d);
// Pixels: left of the plot, its width and height, lines of the key. Writes name, heading, caption and layout into the head.
void plot_layout(struct plot_draft *d, const struct plot_about *about, int left, int wide, int tall, int key_lines);
// Writes the files, draws the pictures, frees.
bool plot_end(struct plot_draft *d, const struct plot_about *about, const char *script, const char *folder, char why[PLOT_WHY], struct error *error);

// A text reduced to what is harmless in a script, as NAME = '...'.
void plot_put_text(FILE *head, const char *name, const char *text);

enum plot_unit { PLOT_BYTES, PLOT_BITS_PER_SECOND, PLOT_BYTES_PER_SECOND, PLOT_COUNT, PLOT_RATIO };
// The range that the values take, for an axis.
struct plot_range { double low, high; bool logarithmic; };
void plot_range_add(struct plot_range *r, double x);       // what is not finite is passed over
extern const struct plot_range plot_range_none;
// "set xtics (...)" for axis "x" or "y" in words of the unit, "set logscale" where it is, "set xrange [...]".
void plot_put_axis(FILE *head, const char *axis, const struct plot_range *r, enum plot_unit unit);
// Room at both ends of a range: a share of its length. A linear one whose low end is above 0 begins at 0 where `from_zero`.
void plot_range_widen(struct plot_range *r, double share, bool from_zero);
// "64 KiB", "100 Mbit/s", "2.5 GB/s", "12k".
const char *plot_value(double x, enum plot_unit unit, char text[32]);

// Blocks of a data file, one a series that has points that can be drawn: the quoted title, then x, y, low, high. Puts into the head how many there are (series),
// and arrays styles and dashed. Counts what is left out in the note.
int plot_put_series(struct plot_draft *d, int count, const struct plot_series *series, bool above_zero, struct plot_range *x, struct plot_range *y);

#endif
