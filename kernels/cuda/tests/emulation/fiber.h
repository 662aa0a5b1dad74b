// EMULATION, no GPU: fibers, the stacks that a block's threads run on. Tests only.
//
// What: a fiber runs `body` on a stack of its own until that waits or returns; if it returned, the next run calls it again.
// How:  x86-64: a switch saves the six registers that a call must keep, in assembly, a few nanoseconds. Elsewhere, and with -DEMULATION_UCONTEXT: ucontext.
//       Below each stack lies a page that nobody may touch.
#ifndef EMULATION_FIBER_H
#define EMULATION_FIBER_H

#include <stdbool.h>
#include <stddef.h>

enum { FIBER_MAX = 1024, FIBER_STACK_BYTES = 64 << 10 };

struct fiber;

// A fiber that runs nothing; NULL: no memory. All of a process have the same body.
struct fiber *fiber_take(void (*body)(void));
// From outside: runs it until it, or one that it passed to, waits or its body returns: that one is then taken no longer.
void fiber_run(struct fiber *f);
// From within: waits, and another one that waits goes on: half the switches, and the processor guesses where they lead.
void fiber_pass(struct fiber *to);
// From within: back to who ran it.
void fiber_wait(void);
// The one that runs; NULL outside.
struct fiber *fiber_current(void);
// Takes back all, wherever they wait.
void fiber_reset(void);
// True where the address is a stack's guard page.
bool fiber_overflow(const void *address);

#endif
