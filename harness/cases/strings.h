// Lists of owned texts.
#ifndef HARNESS_STRINGS_H
#define HARNESS_STRINGS_H

#include "harness/cases/suite.h"

void string_list_add(struct string_list *l, const char *text);
bool string_list_has(const struct string_list *l, const char *text);
void string_list_sort(struct string_list *l);
// The items as a NULL-terminated array (the caller frees the array only).
const char **string_list_names(const struct string_list *l);
// Files of a folder that end with `suffix`, full paths, sorted; folders where suffix is NULL.
bool folder_list(const char *folder, const char *suffix, struct string_list *out, struct error *error);

#endif
