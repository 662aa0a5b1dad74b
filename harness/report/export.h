// Everything of a stored run for other programs: one table, one JSON document, and timelines as traces.
#ifndef HARNESS_REPORT_EXPORT_H
#define HARNESS_REPORT_EXPORT_H

#include <stdio.h>

#include "harness/store/series.h"

struct export {
    const struct stored_run *run;
    const struct stored_serieses *series;
    const char *pattern;  // of the cases whose timelines are written: a glob of the id, or a text that it holds; NULL: one case an implementation, that
                          // which the report draws
};

// A row a value, of all kinds in one table: kind (result, figure, measured, sample, fact), tool, fabric, subject, name, point, quantity, launch,
// index, value, bound, unit, verdict, message.
bool export_csv(const struct export *e, FILE *out);
// {"run", "environment", "cases": [{..., "spec", "measured", "results", "figures", "probes"}], "series": [{..., "point", "facts", "launches": [[...]]}]}
bool export_json(const struct export *e, FILE *out);
// Trace Event Format: a process a rank, a thread each for phases, calls, sent and received bytes; live bytes as counters. For chrome://tracing and Perfetto.
// Source: Trace Event Format, nduca and dsinclair, Google, 2016: JSON object format, complete (X), counter (C) and metadata (M) events.
bool export_trace(const struct export *e, FILE *out);
// Execution traces with the names of MLCommons Chakra's schema (mlcommons/chakra, schema/protobuf/et_def.proto): one a rank, of one step.
// {"traces": [{"implementation", "case", "rank", "global_metadata": GlobalMetadata, "nodes": [Node]}]}; docs/probes.md tells what is filled.
bool export_chakra(const struct export *e, FILE *out);
// How many cases have a timeline that the pattern asks for: with 0 the traces are empty.
int export_timelines(const struct export *e);

#endif
