// Message sizes as people write them: "64K", "8..16M" (doubling), "1K..1M*4" (times 4), and lists of these with commas.
#ifndef HARNESS_NET_SIZES_H
#define HARNESS_NET_SIZES_H

#include "harness/protocol/error.h"

#include <stdint.h>

enum { SIZES_MOST = 128 };
struct sizes { int count; int64_t bytes[SIZES_MOST]; }; // ascending, each once

// K, M and G are powers of 1024. Errors: what was found and what was expected.
bool sizes_parse(const char *text, struct sizes *out, struct error *error);
bool sizes_add(struct sizes *s, int64_t bytes); // false: full
// From first to last by doubling.
struct sizes sizes_doubling(int64_t first, int64_t last);
// "8", "4K", "1.5M"; buffer holds it.
const char *sizes_text(int64_t bytes, char buffer[32]);

#endif
