// Ctrl-C and SIGTERM: noted by a handler, acted upon by the loops that wait, so that every start is ended in order.
#ifndef HARNESS_INTERRUPT_H
#define HARNESS_INTERRUPT_H

// Takes SIGINT, SIGTERM and SIGHUP. A second signal of the same kind ends the process at once (the keeper ends the workers).
void interrupt_install(void);
// The signal that arrived, 0 where none did.
int interrupt_signal(void);

#endif
