// The network interface by which an address is reached.
#ifndef HARNESS_INTERFACE_H
#define HARNESS_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>

// host: a name or an address. False where it is unknown or no interface has a route to it.
bool interface_to(const char *host, char *name, size_t size);

#endif
