// The case that saves what another case loads.
//
// A case whose program loads without having saved names who did: `save_ranks: N`. From it a second case is made, the saver: the same
// training on N ranks, uninterrupted. Its program is the standard one up to the step before the first that follows the load, `save`, and
// then everything that follows `load` in the other's. So both run the same verbs on the same data from there on, the one
// with, the other without a load in between, and whatever the loader observes has its counterpart.
#ifndef HARNESS_SAVER_H
#define HARNESS_SAVER_H

#include "harness/cases/draft.h"

// Does a finished draft name who saves where, and only where, its program asks for it? Sets the error otherwise.
bool saver_asked(const struct draft *loader, const struct document *doc, const struct node *at, struct error *error);
// Makes and finishes the saver of an unfinished draft with save_ranks; id and family are the caller's to set.
bool saver_make(struct draft *saver, const struct draft *unfinished, struct document *doc, const struct node *at, struct error *error);

#endif
