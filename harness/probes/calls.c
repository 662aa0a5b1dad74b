// Names of the calls that the probes wrap. See preload/calls.h.
#include "harness/probes/preload/calls.h"

#include "harness/probes/preload/socket_calls.h"

#define NAME(name, ...) #name,
static const char *const socket_names[] = {SOCKET_CALLS(NAME) SOCKET_OTHERS(NAME)};

static const struct { unsigned first, count; const char *const *names; } tables[] = {
    {CALLS_SOCKET, sizeof socket_names / sizeof *socket_names, socket_names}};

const char *probe_call_name(unsigned call)
{
    for (unsigned i = 0; i < sizeof tables / sizeof *tables; i++)
        if (call >= tables[i].first && call - tables[i].first < tables[i].count)
            return tables[i].names[call - tables[i].first];
    return "unknown call";
}
