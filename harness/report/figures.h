// The figures of a report: data files, scripts of results/plots, and gnuplot run on them.
#ifndef HARNESS_REPORT_FIGURES_H
#define HARNESS_REPORT_FIGURES_H

#include "harness/report/probed.h"
#include "harness/report/view.h"

enum { FIGURES = 6 };
struct figure {
    const char *name, *title, *caption; // name: of its files
    char why[256];                      // why there is no picture, or empty
    char note[1024];                    // in sentences: what was left out or drawn at the edge, where it was measured; or empty
    bool absent;                        // of probes, in a run without any: neither drawn nor told of
};

// Writes FOLDER/{name.dat, name.gp, style.gp} and draws name.svg, name.png and name.pdf. False only where files cannot be
// written; a picture that cannot be drawn has its reason in `why`.
bool figures_make(const struct view *v, const struct probed *p, const char *folder, struct figure out[FIGURES], struct error *error);
// A text as a quoted column of a data file, at most `width` columns wide.
void figure_put_quoted(FILE *out, const char *s, int width);
// FOLDER/style.gp, name.dat and name.gp, which is the script with `head` before it.
bool figure_write(const char *folder, const char *name, const char *head, const char *script, const char *data, struct error *error);
// Draws FOLDER/name.{svg,png,pdf} by name.gp; what cannot be drawn is removed, `why` tells the reason.
void figure_draw(const char *folder, struct figure *f);
// Runs `gnuplot -d` on a script in a folder, for format "svg", "png" or "pdf", for at most 60 s. False with the reason.
bool gnuplot_run(const char *folder, const char *script, const char *format, char why[256]);

// ---- shared by the files that make figures ----
enum { FIGURE_LETTER_PX = 8, FIGURE_LINE_PX = 20, FIGURE_ROW_PX = 24, FIGURE_TOP_PX = 70, FIGURE_TICS_PX = 75, FIGURE_GAP_PX = 44 };
// What a figure is made of: its data file, and the numbers that go before its script.
struct figure_files { FILE *data, *head; };
void figure_memory(const struct view *v, const struct probed *p, struct figure_files out, struct figure *f);
void figure_traffic(const struct view *v, const struct probed *p, struct figure_files out, struct figure *f);
void figure_timeline(const struct view *v, const struct probed *p, struct figure_files out, struct figure *f);
// Adds "3 WHAT." to the note where there are any.
void figure_note(struct figure *f, int count, const char *what);
// Puts the note, wrapped, into the script, its characters reduced to what is harmless there; returns its lines.
char figure_harmless(char c); // c, or '?' where a script must not hold it
int figure_put_note(FILE *head, const struct figure *f, int width);

#endif
