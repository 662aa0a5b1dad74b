// The proof that a case's arithmetic is exact in its dtypes, whatever the order of any sum.
//
// For each reduction: sum |terms| <= 2^p * (lowest set bit of any term), p the significant bits of the dtype. Every
// partial sum is then a multiple of that bit and below 2^p times it, so it is a number of the dtype and no addition
// rounds, in any order, fused or not. Terms are taken both as a rank differentiates them and divided by N, so that an
// average may be formed before, after or in powers of two on both sides of the sum.
//
// Reductions: a row's forward and backward products and the sums over rows, calls and microbatches on a rank (compute
// dtype), the sum over ranks (reduce dtype), mean and update (parameter dtype). The forward and backward here are
// written out again, without the kernels, and must give the truth's gradient to the bit.
#ifndef REFERENCE_TRUTH_CERTIFICATE_H
#define REFERENCE_TRUTH_CERTIFICATE_H

#include "reference/truth/serial.h"

struct certificate_sums; // of one parameter on one rank

struct certificate {
    const struct fsdp_case *c;
    int ranks;                        // how many share the rows: N of the claim
    struct certificate_sums *sums;    // by rank, then parameter
    double **micro;                   // gradient of the latest microbatch, by parameter
    double ratio;                     // largest sum |terms| / lowest bit of any reduction, at least 1
    bool exact_gradients, exact_updates;
    char why[256];                    // the first reduction that is not exact
    bool vacuous;                     // some rank or microbatch contributes nothing to some parameter
    char vacuous_why[256];
    double smallest_share;            // of non-zero gradient elements over parameters and steps
};
// Of mlp and witness only: a transformer is never exact. Errors: too large to certify.
bool certificate_open(struct certificate *k, const struct fsdp_case *c, int ranks, struct error *error);
void certificate_close(struct certificate *k);
// To be called before the serial run executes the instruction; does what the verb calls for.
bool certificate_follow(struct certificate *k, struct serial *s, const struct instruction *i, struct error *error);
// Its parts, for a search: the terms of one microbatch; the sums so far against the gradient g (sum over ranks / N,
// NULL: unknown yet), and the update that the gradient makes.
bool certificate_micro(struct certificate *k, struct serial *s, int step, int micro, struct error *error);
void certificate_gradients(struct certificate *k, const struct serial *s, double *const *g);
void certificate_update(struct certificate *k, const struct serial *s);
void certificate_zero(struct certificate *k);

// Why the case's optimizer rounds whatever the data, or NULL.
const char *certificate_inexact_optimizer(const struct fsdp_case *c);

// The lowest set bit of x as a power of two: INFINITY for 0, 0 for a non-finite x.
double certificate_low_bit(double x);

#endif
