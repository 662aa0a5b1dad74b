// What the probes saw in a run, as numbers: bytes per parameter of memory and of traffic by configuration and ranks, and one step's timeline.
//
// A configuration is an implementation, a label ("full", "hybrid 2 replicas, bf16") and a number of ranks; its cases differ in their parameter
// count P. Where there are several sizes a number is the slope of the least squares line of bytes against P: what does not grow with the
// model (the framework, buffers, control messages) cancels. Where there is one size it is bytes / P and says so.
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
    bool has_memory, has_traffic; // whether a probe was there to see it
    double rest, peak;            // live bytes per parameter of the fullest rank: after the last update, and the largest in training
    double rest_theory;           // NAN: none
    double sent[PARTS];           // bytes per parameter that a rank sends in a step, mean of the ranks
    double sent_theory;           // what the strategy needs where each collective is at its minimum; NAN: none
    double sent_gloo;             // the same as gloo does its collectives (docs/probes.md)
};
// a + b / N through the points of a label; NAN where there are fewer than two numbers of ranks.
struct probed_fit { int implementation, label; double a, b, theory_a, theory_b; };

struct probed {
    struct names implementations, labels;
    int source_count, point_count, fit_count;
    struct probed_source *sources;
    struct probed_point *points;  // by implementation, label, ranks
    struct probed_fit *fits;      // of rest, for what was seen at several sizes
    int unread;                   // cases whose records are not of a form that is known
};

void probed_make(const struct view *v, struct probed *out);
void probed_free(struct probed *p);
// Bytes per parameter at rest, a + b / N, of a case's strategy; false where there is no such formula.
bool probed_rest_theory(const struct fsdp_case *c, double *a, double *b);
// The case whose step is drawn for an implementation, or NULL: strategy full where there is one, then most ranks up to four, then most parameters.
const struct probed_source *probed_timeline(const struct probed *p, int implementation);
// "heap, socket": the probes that were loaded in all cases together; the caller frees it.
char *probed_probes(const struct probed *p);

// probes.csv: figure, implementation, configuration, ranks, sizes, quantity, unit, value, theory, probes. probes.json: the same, with the timelines.
bool report_probes_csv(const struct probed *p, FILE *out);
bool report_probes_json(const struct probed *p, FILE *out);

#endif
