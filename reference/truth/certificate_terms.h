// The terms of a microbatch on one rank, as the certificate sums them. Private to the certificate.
#ifndef REFERENCE_TRUTH_CERTIFICATE_TERMS_H
#define REFERENCE_TRUTH_CERTIFICATE_TERMS_H

#include "reference/truth/certificate.h"

// By element: sum |terms|, lowest bit of a term, of a term divided by N, and the sum itself.
struct certificate_sums { double *total, *low, *low_mean, *value; };

struct certificate_terms {
    struct certificate *k;
    struct serial *s;
    const bool *wanted;            // by parameter
    struct certificate_sums *sums; // the rank's, by parameter
    int step, micro, rank;
};
// All terms of the rank's rows.
bool certificate_add_terms(struct certificate_terms *t, struct error *error);
// One term factor * other of a gradient element; factor carries the rank's factor of the loss.
void certificate_term(const struct certificate_terms *t, int parameter, int64_t element, double factor, double other);
// One reduction against a dtype; false, and the certificate lost, where it may round. update: of the optimizer.
bool certificate_note(struct certificate *k, enum dtype type, double sum, double low, bool update, const char *what,
                      const char *name);

#endif
