// See regions.h.
#include "harness/probes/preload/regions.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static void lock(struct probe_regions *r)
{
    while (atomic_exchange_explicit(&r->locked, true, memory_order_acquire))
        syscall(SYS_sched_yield); // the C library's is a wait of the worker's to the wait probe
}

EXPORT void probe_regions_unlock(struct probe_regions *r) { atomic_store_explicit(&r->locked, false, memory_order_release); }

// The first region that ends behind the address.
static int find(const struct probe_regions *r, uint64_t address)
{
    int low = 0, high = r->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (r->list[middle].begin + r->list[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool insert(struct probe_regions *r, int at, uint64_t begin, uint64_t bytes)
{
    if (r->count == PROBE_REGIONS)
        return false;
    memmove(&r->list[at + 1], &r->list[at], (size_t)(r->count - at) * sizeof r->list[0]);
    r->list[at] = (struct probe_region){begin, bytes};
    r->count++;
    return true;
}

static void erase(struct probe_regions *r, int at)
{
    r->count--;
    memmove(&r->list[at], &r->list[at + 1], (size_t)(r->count - at) * sizeof r->list[0]);
}

// A region that is cut in its middle leaves two.
static bool cut(struct probe_regions *r, uint64_t begin, uint64_t bytes, uint64_t *gone)
{
    uint64_t end = begin + bytes;
    bool fine = true;
    *gone = 0;
    for (int i = find(r, begin); i < r->count && r->list[i].begin < end;) {
        struct probe_region *g = &r->list[i];
        uint64_t g_end = g->begin + g->bytes, before = g->begin < begin ? begin - g->begin : 0, behind = g_end > end ? g_end - end : 0;
        *gone += g->bytes - before - behind;
        if (before == 0 && behind == 0) {
            erase(r, i);
            continue;
        }
        *g = before ? (struct probe_region){g->begin, before} : (struct probe_region){end, behind};
        i++;
        fine = !(before && behind) || insert(r, i, end, behind);
        i += before && behind;
    }
    return fine;
}

EXPORT bool probe_regions_add(struct probe_regions *r, uint64_t begin, uint64_t bytes)
{
    lock(r);
    bool fine = bytes == 0 || insert(r, find(r, begin), begin, bytes);
    probe_regions_unlock(r);
    return fine;
}

EXPORT bool probe_regions_cut(struct probe_regions *r, uint64_t begin, uint64_t bytes, uint64_t *gone)
{
    lock(r);
    bool fine = cut(r, begin, bytes, gone);
    probe_regions_unlock(r);
    return fine;
}

// The first entry whose key is at least that.
static int find_key(const struct probe_regions *r, uint64_t key)
{
    int low = 0, high = r->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (r->list[middle].begin < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

EXPORT bool probe_regions_put(struct probe_regions *r, uint64_t key, uint64_t bytes)
{
    lock(r);
    bool fine = insert(r, find_key(r, key), key, bytes);
    probe_regions_unlock(r);
    return fine;
}

EXPORT uint64_t probe_regions_take(struct probe_regions *r, uint64_t key)
{
    lock(r);
    int i = find_key(r, key);
    bool there = i < r->count && r->list[i].begin == key;
    uint64_t bytes = there ? r->list[i].bytes : 0;
    if (there)
        erase(r, i);
    probe_regions_unlock(r);
    return bytes;
}
