// Float64 gradients at the subject's own parameters: of the whole step, or of one rank's or microbatch's share.
//
// A share is made by setting the loss weights of all other rows to 0, so the share goes through the same float64
// truth as the whole and the shares add up to it.
#ifndef HARNESS_JUDGE_GRADIENT_H
#define HARNESS_JUDGE_GRADIENT_H

#include "harness/judge/judge.h"
#include "harness/judge/program.h"

// Whose rows count (rank: a data rank); -1 for all.
struct share { int rank, micro; };
static const struct share SHARE_ALL = {-1, -1};

// The parameters that the gradient of label l was taken at: the subject's, as observed; NULL where not observed.
const struct tensors *gradient_parameters(const struct evidence *e, const struct program_label *l);
// "grad/<name>" F64 of l->gradient_step at `parameters` ("param/<name>", any dtype), what is frozen at l left out. The global
// loss's gradient (its mean over ranks where every rank's loss carries the factor N of docs/protocol.md). loss may be NULL.
// False with a message where the label has no single step. A per-rank mean stays normalised by what is left of the rank's rows.
bool gradient_of(const struct evidence *e, const struct program_label *l, const struct tensors *parameters, struct share share,
                 struct tensors *gradient, double *loss, struct error *error);
// With every rank normalised by its own token weights instead of the global ones: mean over ranks of sum_r(w l)/W_r.
bool gradient_normalised_by_rank(const struct evidence *e, const struct program_label *l, const struct tensors *parameters,
                                 struct tensors *gradient, struct error *error);
// Of the step's rows read as one microbatch of m G rows on one rank (the same bytes, another shape).
bool gradient_one_batch(const struct evidence *e, const struct program_label *l, const struct tensors *parameters,
                        struct tensors *gradient, struct error *error);
// The gradients of the two uses of a tied weight apart: "grad/embed.weight" and "grad/head.weight".
bool gradient_untied(const struct evidence *e, const struct program_label *l, const struct tensors *parameters,
                     struct tensors *gradient, struct error *error);
// The gradients of the calls of an mlp apart: "grad/layers.<call>.weight".
bool gradient_by_call(const struct evidence *e, const struct program_label *l, const struct tensors *parameters,
                      struct tensors *gradient, struct error *error);

// to += factor * from, by name; tensors that `to` lacks are added.
void gradient_add(struct tensors *to, const struct tensors *from, double factor);

#endif
