// What a case asks for against what a manifest says.
#ifndef HARNESS_CAPABILITY_H
#define HARNESS_CAPABILITY_H

#include "harness/cases/suite.h"

// Names of the features that `cannot` may list, NULL at the end.
extern const char *const feature_names[];
// Why the implementation cannot be asked for the case, one line (to be freed), or NULL where it can.
char *capability_missing(const struct implementation *i, const struct fsdp_case *c);

#endif
