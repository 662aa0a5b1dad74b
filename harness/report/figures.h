// The figures of a report: data files, scripts of results/plots, and gnuplot run on them.
#ifndef HARNESS_REPORT_FIGURES_H
#define HARNESS_REPORT_FIGURES_H

#include "harness/report/view.h"

enum { FIGURES = 3 };
struct figure {
    const char *name, *title, *caption; // name: of its files
    char why[256];                      // why there is no picture, or empty
    char note[512];                     // in sentences: what was left out or drawn at the edge; or empty
};

// Writes FOLDER/{name.dat, name.gp, style.gp} and draws name.svg and name.png. False only where files cannot be
// written; a picture that cannot be drawn has its reason in `why`.
bool figures_make(const struct view *v, const char *folder, struct figure out[FIGURES], struct error *error);
// A text as a quoted column of a data file, at most `width` columns wide.
void figure_put_quoted(FILE *out, const char *s, int width);
// FOLDER/style.gp, name.dat and name.gp, which is the script with `head` before it.
bool figure_write(const char *folder, const char *name, const char *head, const char *script, const char *data, struct error *error);
// Runs `gnuplot -d` on a script in a folder, for format "svg" or "png", for at most 60 s. False with the reason.
bool gnuplot_run(const char *folder, const char *script, const char *format, char why[256]);

#endif
