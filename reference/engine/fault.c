// Which seeded fault is active. See fault.h.
#include "reference/engine/fault.h"

#include <stddef.h>

static const char *active;

void fault_set(const char *name) { active = name; }

// Names have dashes where they are told, and underscores where they are C.
bool fault_is(const char *name)
{
    const char *a = active;
    for (; a && *a && *name && (*a == *name || (*a == '-' && *name == '_')); a++)
        name++;
    return a && !*a && !*name;
}
