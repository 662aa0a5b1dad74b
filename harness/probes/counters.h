// PAPI as the harness asks it: which components and events this machine has, and why others are not there.
//
// Without libpapi at build time every question is answered with that.
#ifndef HARNESS_PROBES_COUNTERS_H
#define HARNESS_PROBES_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/protocol/error.h"

// The events of "EVENT,default,...", each once, comma between; owned by the caller. `default`: what a process can be counted by
// everywhere, the usual hardware events, and the energy that the machine tells. Errors: no name of an event, none at all, no PAPI.
bool counters_resolve(const char *words, char **events, struct error *error);

// Why a worker could not count an event: what PAPI says of its component, else of the code.
void counters_reason(const char *event, int code, char *text, size_t size);
// "ns", "bytes"; "events" where neither PAPI nor counter.h knows one.
const char *counters_unit(const char *event);
// Why threads cannot be followed, so that one thread of a worker is counted alone; empty where they can.
void counters_thread_reason(char *text, size_t size);
// Why what the kernel does in a process's name is not counted in it; empty where it is.
void counters_kernel_reason(char *text, size_t size);

// events: how many PAPI knows; usable: "" or a list of those of `default` that count here.
struct counters_component { const char *name, *about, *reason; int events; char usable[400], refused[400]; };
// Calls look for each component, disabled ones too. Returns how many; 0: no PAPI, and why.
int counters_components(void (*look)(void *context, const struct counters_component *c), void *context, char *why, size_t size);

#endif
