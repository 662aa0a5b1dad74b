// Ranges of versions, as waivers state them: "torch >=2.15,<2.16; numpy >=2". See versions.c for the order.
#ifndef HARNESS_VERSIONS_H
#define HARNESS_VERSIONS_H

#include <jansson.h>

#include "harness/protocol/error.h"

// -1, 0 or 1 by which of a and b comes first; false where one of them is no version.
bool versions_compare(const char *a, const char *b, int *order);
// Whether a text is a range; the error says what was found and expected.
bool versions_valid(const char *ranges, struct error *error);
// Whether what is there (object: name to version) lies in every part of a valid range. A package that is not
// there, or whose version has no order, lies in none: why then says so in words.
bool versions_within(const char *ranges, json_t *there, char *why, size_t size);

#endif
