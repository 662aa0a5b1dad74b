// Parts of a run as JSON, for those that write it whole.
#ifndef HARNESS_REPORT_JSON_H
#define HARNESS_REPORT_JSON_H

#include "harness/report/view.h"

json_t *json_text(const char *s);   // null for NULL; what is not UTF-8 becomes U+FFFD
json_t *json_figure(double x);      // null where it is not finite
json_t *json_run(const struct view *v);        // id, command, times, verdicts, implementations
json_t *json_result(const struct row *row);    // a member a field of view.h

#endif
