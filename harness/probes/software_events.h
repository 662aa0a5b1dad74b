// The software-defined events that the reference publishes: any PAPI tool reads them as sde:::fsdpmark::NAME (docs/probes.md).
//
// A row: name, unit, what its number is (enum probe_scope), description. All are of the process so far, added up over its cases.
#ifndef HARNESS_PROBES_SOFTWARE_EVENTS_H
#define HARNESS_PROBES_SOFTWARE_EVENTS_H

#define SOFTWARE_EVENTS_OF "fsdpmark"
#define SOFTWARE_EVENTS(X)                                                                                                          \
    X(bytes_gathered, "bytes", PROBE_OF_PROCESS, "payload of the all-gathers: all ranks' parts")                                    \
    X(bytes_reduced, "bytes", PROBE_OF_PROCESS, "payload of the reduce-scatters and all-reduces")                                   \
    X(collectives, "calls", PROBE_OF_PROCESS, "collectives of every kind, broadcasts and barriers among them")                      \
    X(unsharded_bytes_live, "bytes", PROBE_LEVEL, "full parameters, and gradients not yet reduced, that are held now")              \
    X(steps, "steps", PROBE_OF_PROCESS, "optimizer steps, those that an overflow skipped among them")

#endif
