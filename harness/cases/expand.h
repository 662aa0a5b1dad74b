// One case of a case file to all its combinations.
#ifndef HARNESS_EXPAND_H
#define HARNESS_EXPAND_H

#include "harness/cases/draft.h"
#include "harness/cases/suite.h"

struct expanded {
    struct draft draft;
    char *gate;         // id of its gate
    struct draft *saver; // the finished case that saves what this one loads, or NULL
    char *origin;       // FILE:LINE
};
// Called for each combination; takes ownership of what it is given. False stops the expansion.
typedef bool expanded_fn(struct expanded *e, void *context, struct error *error);

// Expands the cases of a file for an implementation. Errors carry FILE:LINE.
bool expand_document(struct document *doc, const struct implementation *i, expanded_fn *take, void *context, struct error *error);
bool expand_file(const char *path, const struct implementation *i, expanded_fn *take, void *context, struct error *error);
void expanded_free(struct expanded *e);

// Names and titles of the cases of a file, without expansion.
bool expand_names(const char *path, struct string_list *names, struct string_list *titles, struct error *error);

#endif
