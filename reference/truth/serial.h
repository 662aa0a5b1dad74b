// A serial float64 run of a case's program: training itself, without anything that makes it fast.
//
// One process holds everything: parameters, gradients, optimizer state, each an array of doubles by index of the
// parameter table. Each verb of docs/protocol.md is one function. The rows are still taken in the N groups that
// the ranks would take, since the loss may depend on them.
#ifndef REFERENCE_TRUTH_SERIAL_H
#define REFERENCE_TRUTH_SERIAL_H

#include "reference/models/pass.h"
#include "reference/truth/truth.h"

enum { SERIAL_SLOTS = 1001 };

struct serial;
// Called before each instruction is run, with step and micro filled in (a backward gets those of its slot).
typedef bool (*serial_hook)(void *context, struct serial *s, const struct instruction *i, struct error *error);

// What save keeps and load brings back.
struct serial_state {
    double **p;               // parameters
    double **first, **second; // sgd: momentum; adamw: exp_avg, exp_avg_sq
    int64_t *counts;          // updates of each parameter
    int64_t steps;            // optimizer steps taken
};

struct serial {
    const struct fsdp_case *c;
    const struct tensors *data;
    struct model m;
    struct model_pass pass;
    const float **x;          // witness: pointers of a batch
    struct serial_state now, saved;
    bool has_saved;
    double **g;
    bool *has_gradient;       // a backward reached it since zero_grad
    bool *frozen, *used;      // used: some call reads it
    double clip_factor;       // of the latest clip; 1 after zero_grad
    struct { int step, micro; } slots[SERIAL_SLOTS];
    bool slot_open[SERIAL_SLOTS];
    int step_count;
    struct truth_step *steps; // by step of the data
    int eval_count;
    double *evals;
    serial_hook hook;
    void *context;
};

// data is borrowed and may be filled in by the hook. Parameters start at 0. *s is to be closed in either case.
bool serial_open(struct serial *s, const struct fsdp_case *c, const struct tensors *data, struct error *error);
void serial_close(struct serial *s);
// Parameters from "<prefix>/<name>" (prefix NULL: "<name>"), any floating-point dtype. Errors: missing, wrong shape.
bool serial_set_parameters(struct serial *s, const struct tensors *from, const char *prefix, struct error *error);

// One microbatch: loss = its share of the global loss; backward adds the gradient of that.
bool serial_micro(struct serial *s, int step, int micro, bool backward, double *loss, struct error *error);
// The optimizer's formulas, for n elements: t counts from 1. first, second: the moments.
void serial_update(const struct optimizer_spec *o, bool decay, int64_t t, int64_t n, double *p, const double *g,
                   double *first, double *second);
// Runs the program (program.c).
bool serial_run(struct serial *s, struct error *error);

#endif
