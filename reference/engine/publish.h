// The engine's counts as software-defined events of PAPI: sde:::fsdpmark::bytes_gathered and others (harness/probes/software_events.h).
//
// What: any PAPI tool in the process reads them, as it reads a counter of the processor.
// How:  nothing is counted for it: PAPI calls back when a tool reads, and the answer is made of what the engine counts anyway, of the
//       engine that is open now and of those before it.
// Source: Danalis, Jagode, Herault, Luszczek, Dongarra, "Software-defined events through PAPI", IPDPSW 2019; sde_lib.h of PAPI 7.
#ifndef REFERENCE_ENGINE_PUBLISH_H
#define REFERENCE_ENGINE_PUBLISH_H

#include "reference/engine/engine.h"

// Registers the events; once a process, before a tool asks for them. False in a build without PAPI's libsde.
bool publish_open(void);
// The engine whose counts are read from now on; before it closes, NULL: its counts stay in the sums.
void publish_engine(const struct engine *e);

#endif
