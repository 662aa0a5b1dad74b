// What `fsdpmark net` prints and writes, made of rows (rows.h).
#ifndef HARNESS_NET_OUTPUT_H
#define HARNESS_NET_OUTPUT_H

#include <stdio.h>

#include "harness/net/consistency.h"

// A table a measure, the fits, the findings, the errors.
bool net_table(const struct net_rows *rows, const struct net_findings *findings, FILE *out);
// {"run", "fabric", "ranks", "hosts", "errors", "rows": [...], "fits": [...], "findings": [...]}
bool net_json(const struct net_rows *rows, const struct net_findings *findings, FILE *out);
// A line a row, RFC 4180.
bool net_csv(const struct net_rows *rows, FILE *out);
// FOLDER/busbw.{svg,png,pdf}: bus bandwidth against size. `why`: as in harness/report/plots.h.
bool net_figures(const struct net_rows *rows, const struct stored_run *run, const char *folder, char why[256], struct error *error);
// "float", "bfloat16", ... as nccl-tests spells them.
const char *net_type_name(enum dtype type);
// "sum" of what reduces, else "none".
const char *net_redop(const struct net_point *p);
// What sets a row apart from the plain call: "nonblocking, in place"; "" where nothing does. ranks: of the run.
const char *net_form(const struct net_row *r, char text[160]);

#endif
