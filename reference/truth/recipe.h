// Recipes: how initial parameters and data of a case are made. See docs/cases.md for what each is for.
#ifndef REFERENCE_TRUTH_RECIPE_H
#define REFERENCE_TRUTH_RECIPE_H

#include "harness/protocol/case.h"
#include "harness/protocol/tensors.h"
#include "reference/truth/random.h"

// Makes both sets by the case's recipe (not `given`). Errors: the recipe does not fit the model, nothing exact found.
bool recipe_make(const struct fsdp_case *c, struct tensors *init, struct tensors *data, struct error *error);
// Other initial parameters, different in every element, from the same recipe.
void recipe_other(const struct fsdp_case *c, const struct tensors *init, struct tensors *other);
// The two exact recipes (exact.c): small integers, a certificate for every rank count of a fixed list.
bool exact_make(const struct fsdp_case *c, struct tensors *init, struct tensors *data, struct error *error);

// Empty sets of the right names and shapes: parameters 0; loss weights 1, or masked where the case has uneven tokens.
void recipe_allocate(const struct fsdp_case *c, struct tensors *init, struct tensors *data);

// Data must tell ranks and microbatches apart, or a missing reduction is invisible. Recipes that draw data: all rows of a
// microbatch differ, and each row differs between the microbatches of a step; values and given: not all ranks and not all microbatches are alike. Weights: none sums to 0 where a
// loss divides by it. Errors: which are alike.
bool distinct_check(const struct fsdp_case *c, const struct tensors *data, struct error *error);
// The first of these for one step.
bool distinct_step(const struct fsdp_case *c, const struct tensors *data, int step, struct error *error);

#endif
