// What the probes saw in a run, as numbers: bytes per parameter of memory and of traffic by configuration and ranks, and one step's timeline.
//
// A configuration is an implementation, a label ("full", "hybrid, bf16, 2 replicas") and a number of ranks; its cases differ in their parameter
// count P. Memory is what the checks memory-rest, memory-peak and memory-scaling recorded: slopes over P, with the theory's. Traffic is the slope of
// the least squares line of bytes against P where there are several sizes, so that control messages cancel; else bytes / P, and says so.
#ifndef HARNESS_REPORT_PROBED_H
#define HARNESS_REPORT_PROBED_H

#include "harness/probes/stored.h"
#include "harness/report/view.h"

struct probed_source { const struct stored_case *c; struct fsdp_case spec; struct probe_stored seen; int64_t parameters; };

// What is stacked in a bar: wire bytes of collectives where a probe of MPI or NCCL saw some, else what the sockets took, by phase.
enum probed_part { PART_GATHER, PART_SCATTER, PART_ALL_REDUCE, PART_ALL_TO_ALL, PART_OTHER, PART_SOCKET_FORWARD, PART_SOCKET_BACKWARD, PART_SOCKET_OTHER, PARTS };
extern const char *const probed_part_names[PARTS];

struct probed_point {
    int implementation, label;    // places of their names
    int ranks, sizes;             // sizes: distinct P
    const struct probed_source *largest;
    bool has_traffic;             // whether a probe was there to see it, and saw all of it
    bool uncounted;               // a probe was there, but records were lost or bytes moved past it
    double rest, peak;            // live bytes per parameter: after the last update, and the largest of a phase; NAN: not judged
    double rest_theory;           // NAN: none
    double sent[PARTS];           // bytes per parameter that a rank sends in a step, mean of the ranks
    double sent_theory;           // what the strategy needs where each collective is at its minimum; NAN: none
    double sent_gloo;             // the same as gloo does its collectives (docs/probes.md)
};
// a + b / S over the shards S, as the check memory-scaling fitted it.
struct probed_fit { int implementation, label; double a, b, theory_a, theory_b; };

struct probed {
    struct names implementations, labels;
    int source_count, point_count, fit_count;
    struct probed_source *sources;
    struct probed_point *points;  // by implementation, label, ranks
    struct probed_fit *fits;      // of rest
    int unread;                   // cases whose records are not of a form that is known
};

void probed_make(const struct view *v, struct probed *out);
void probed_free(struct probed *p);
// The theory's bytes per parameter at rest, a + b / N, of a point's label: what memory-scaling compared with, else the strategy's.
void probed_rest_theory(const struct probed *p, const struct probed_point *q, double *a, double *b);
// Whether a step of it can be drawn: one was kept, and nothing of it is known to be missing.
bool probed_has_timeline(const struct probed_source *s);
// The case whose step is drawn for an implementation, or NULL: strategy full where there is one, then most ranks up to four, then most parameters.
const struct probed_source *probed_timeline(const struct probed *p, int implementation);
// "heap, socket": the probes that were loaded in all cases together; the caller frees it.
char *probed_probes(const struct probed *p);

// probes.csv: figure, implementation, configuration, ranks, sizes, quantity, unit, value, theory, probes. probes.json: the same, with the timelines.
bool report_probes_csv(const struct probed *p, FILE *out);
bool report_probes_json(const struct probed *p, FILE *out);

#endif
