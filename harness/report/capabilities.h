// What users ask an implementation for, as questions to a case: the rows of the verdict matrix.
#ifndef HARNESS_REPORT_CAPABILITIES_H
#define HARNESS_REPORT_CAPABILITIES_H

#include "harness/protocol/case.h"

struct capability {
    const char *name;                           // one word for machines: "clip-l2"
    const char *group, *title;                  // "clip by global norm", "2-norm"
    bool (*has)(const struct fsdp_case *c);
};
extern const struct capability capabilities[]; // in the order of the rows; name NULL at the end
int capability_count(void);

#endif
