// Seeded faults: bugs that real FSDP implementations had, one line each, at the place where they would sit.
//
// What: FAULT(name) is 0 in the normal build. In the faulty build (-DFSDPMARK_FAULTS, program
//       fsdp-reference-faulty) it is true while the case's option `fault`, or the environment's FSDPMARK_FAULT, is `name`
//       (with dashes for the underscores).
// Why:  a checker is worth what it catches. suite/faults/<name>.yaml lists each, with its class and the cases that show it; those that only a device can have (cuda_...)
//       are in kernels/cuda/tests/emulated_faulty.yaml.
#ifndef REFERENCE_ENGINE_FAULT_H
#define REFERENCE_ENGINE_FAULT_H

#include <stdbool.h>

#ifdef FSDPMARK_FAULTS
#define FAULT(name) fault_is(#name)
enum { FAULT_BUILD = 1 };
#else
#define FAULT(name) 0
enum { FAULT_BUILD = 0 };
#endif

#ifdef __cplusplus
extern "C" {
#endif
// Sets the active fault (NULL: none); the string is borrowed.
void fault_set(const char *name);
bool fault_is(const char *name);
#ifdef __cplusplus
}
#endif

#endif
