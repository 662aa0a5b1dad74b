// The matrix of a case: axes, their values as overlays, and how each shows in names.
#ifndef HARNESS_MATRIX_H
#define HARNESS_MATRIX_H

#include "harness/cases/draft.h"
#include "harness/cases/suite.h"

enum { MATRIX_MAX_AXES = 24, MATRIX_MAX_CASES = 20000 };

struct axis_value {
    const struct node *overlay; // mapping to lay over the draft
    char *label;                // as it shows in names; "" where it shows elsewhere
    bool only_sharding;         // variants: sets sharding alone
};
struct axis {
    const char *key;            // as written, borrowed from the document
    bool is_variant;
    int count;
    struct axis_value *values;
};
struct matrix {
    int axis_count;
    struct axis axes[MATRIX_MAX_AXES];
    const struct node *exclude; // list of mappings, or NULL
};

// Reads `matrix` and `exclude` of a case. i tells what `layout: all` means.
bool matrix_read(struct document *doc, const struct node *case_node, const struct implementation *i, struct matrix *out, struct error *error);
void matrix_free(struct matrix *m);

// The key without "sharding." in front.
const char *axis_bare_key(const char *key);
// Where an axis matters: bits of 1 << strategy; all ones where always.
unsigned axis_strategies(const char *key);
// Does another value of the axis leave the trained numbers as they are?
bool axis_only_sharding(const struct axis *a, int value);

#endif
