// What is known of a PAPI event beyond what PAPI tells: for the probe that reads it and the harness that shows it.
#ifndef HARNESS_PROBES_COUNTER_H
#define HARNESS_PROBES_COUNTER_H

#include <string.h>

#include "harness/probes/record.h"
#include "harness/probes/software_events.h"

enum { COUNTERS_MAX = 32, COUNTER_NAME_BYTES = sizeof ((struct probe_record *)0)->counter.event };

struct counter_fact { const char *event, *unit; enum probe_scope scope; };

// PAPI has no unit for the kernel's clocks: perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK; nor for software-defined
// events, nor does it tell which of those are levels.
static inline const struct counter_fact *counter_fact(const char *event)
{
#define FACT(name, unit, scope, what) {"sde:::" SOFTWARE_EVENTS_OF "::" #name, unit, scope},
    static const struct counter_fact facts[] = {
        {"perf::TASK-CLOCK", "ns", PROBE_OF_PROCESS}, {"perf::CPU-CLOCK", "ns", PROBE_OF_PROCESS}, SOFTWARE_EVENTS(FACT)};
#undef FACT
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (strcmp(facts[i].event, event) == 0)
            return &facts[i];
    return NULL;
}

// What a record calls the event: the end of a name that is too long for it.
static inline const char *counter_key(const char *event)
{
    size_t size = strlen(event);
    return size < COUNTER_NAME_BYTES ? event : event + size - COUNTER_NAME_BYTES + 1;
}

#endif
