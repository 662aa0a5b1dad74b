// A picture of gnuplot's made part of a page.
#ifndef HARNESS_REPORT_SVG_H
#define HARNESS_REPORT_SVG_H

#include <stdbool.h>
#include <stdio.h>

// Writes the svg element of a file: without prolog and tooltips, its ids prefixed so that several pictures can share a
// page. False where the file has none.
bool svg_inline(FILE *out, const char *path, const char *prefix);

#endif
