// The words for the usual precisions: f32, f64, bf16, bf16-reduce, bf16-pure, f16.
#ifndef HARNESS_PRECISION_H
#define HARNESS_PRECISION_H

#include "harness/protocol/case_fields.h"

// The word that names a precision, "custom" for others.
const char *precision_word(const struct precision_spec *p);
// The words, NULL at the end.
const char *const *precision_words(void);
// Field reader: a word or a mapping as in case.json; draft begins with a struct fsdp_case.
bool precision_read(struct reading *r, const struct field *f, const struct node *node, void *draft);

#endif
