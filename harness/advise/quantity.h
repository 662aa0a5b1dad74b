// Numbers with units, as people write them: "100Mbit/s", "50 GB/s", "5us", "400T", "80GiB".
#ifndef HARNESS_ADVISE_QUANTITY_H
#define HARNESS_ADVISE_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>

enum quantity { QUANTITY_SECONDS, QUANTITY_BANDWIDTH /* bytes/s; bit/s and B/s */, QUANTITY_BYTES, QUANTITY_FLOPS /* flop/s; a prefix alone is enough */,
                QUANTITY_BYTE_RATE /* B/s; likewise */, QUANTITY_COUNT_RATE /* 1/s */ };
bool quantity_read(const char *text, enum quantity kind, double *out); // false: no such quantity, or one that no machine has
const char *quantity_example(enum quantity kind);                      // for complaints
// Three digits and a fitting unit. Returns text.
const char *quantity_write(double value, enum quantity kind, char *text, size_t size);

#endif
