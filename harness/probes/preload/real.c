// The function that a wrapper stands before.
//
// RTLD_NEXT finds it where its library was linked or opened globally. A library that an interpreter opened for itself alone (Python's
// extension modules, RTLD_LOCAL) is not searched by it, although its users are bound to the wrapper: then every loaded library is asked.
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/probes/recorder.h"

static void *ask(const char *library, const char *name, const void *wrapper)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD), *found = handle != NULL ? dlsym(handle, name) : NULL;
    if (handle != NULL)
        dlclose(handle);
    return found != wrapper ? found : NULL;
}

__attribute__((visibility("default"))) void *probe_real_elsewhere(const char *name, const void *wrapper)
{
    void *found = NULL, *self = dlopen(NULL, RTLD_LAZY);
    struct link_map *library = NULL;
    if (self != NULL)
        dlinfo(self, RTLD_DI_LINKMAP, &library);
    for (; library != NULL && found == NULL; library = library->l_next)
        if (library->l_name[0] != 0)
            found = ask(library->l_name, name, wrapper);
    if (self != NULL)
        dlclose(self);
    if (found != NULL)
        return found;
    fprintf(stderr, "fsdpmark: probes: %s was called, but no loaded library has it\n", name);
    abort();
}
