// The one way in which library code reports a failure: a false return and one line of text.
#ifndef FSDPMARK_ERROR_H
#define FSDPMARK_ERROR_H

#include <stdbool.h>

struct error {
    char text[1024]; // one line, no newline; empty where nothing failed
};

// Formats the message and returns false, so that a caller can `return error_set(...)`. The first
// message wins: later calls keep it and only return false. NULL error is allowed.
bool error_set(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
