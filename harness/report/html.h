// The report page.
#ifndef HARNESS_REPORT_HTML_H
#define HARNESS_REPORT_HTML_H

#include "harness/report/figures.h"

// Writes the page: self-contained, without scripts, and well-formed as XML. folder holds the figures' SVG files.
bool report_html(const struct view *v, const struct figure figures[FIGURES], const char *folder, FILE *out);

#endif
