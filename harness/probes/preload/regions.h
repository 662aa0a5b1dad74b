// Which bytes are held, by address: what a call that frees an address or a range of addresses takes away.
//
// A fixed table, sorted; used from any thread, it never allocates. It holds either ranges (add, cut) or keys with their bytes (put, take),
// which may lie closer to each other than their bytes: handles.
#ifndef HARNESS_PROBES_PRELOAD_REGIONS_H
#define HARNESS_PROBES_PRELOAD_REGIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { PROBE_REGIONS = 1 << 15 };
struct probe_region { uint64_t begin, bytes; };
struct probe_regions {
    _Atomic bool locked;
    int count;
    struct probe_region list[PROBE_REGIONS];
};

// False where the table is full, of all three: the caller says so (PROBE_UNSEEN). A range that is added overlaps none: cut it first.
bool probe_regions_add(struct probe_regions *r, uint64_t begin, uint64_t bytes);
bool probe_regions_put(struct probe_regions *r, uint64_t key, uint64_t bytes);
// Takes the range away from whatever holds it; *gone: bytes that were held in it. False where the table had no room for what lay behind it: those bytes
// are held still, and will not be known when they go.
bool probe_regions_cut(struct probe_regions *r, uint64_t begin, uint64_t bytes, uint64_t *gone);
// Takes the key away: its bytes, 0 where it is not held.
uint64_t probe_regions_take(struct probe_regions *r, uint64_t key);
// In a forked child, whose other threads are gone.
void probe_regions_unlock(struct probe_regions *r);

#endif
