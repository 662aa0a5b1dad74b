// Which seeded fault is active. See fault.h.
#include "reference/engine/fault.h"

#include <stddef.h>
#include <string.h>

static const char *active;

void fault_set(const char *name) { active = name; }

bool fault_is(const char *name) { return active != NULL && !strcmp(active, name); }
