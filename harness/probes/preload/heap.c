// The heap probe: live bytes of malloc and its kin, and of anonymous mappings. Operator new comes here through malloc.
//
// What: each block counts with its usable size, so that what free takes away is what malloc gave; blocks below 1 KiB in counters alone
//       (record.h), the others in a record each. A block that goes is noted before the call and one that comes after it, so that no
//       moment shows more than was there.
// Maps: free of a mapping names a range, which may be a file's or a part of several: the ranges that are anonymous are kept in a table.
//       Memory that may not be touched (PROT_NONE) is address space and no memory.
// How:  wrappers are made from the tables CALLS below. What they stand before is found by dlsym, which glibc lets happen inside malloc; were
//       it to allocate, it would get a block of `early`. So an allocator or a sanitizer that comes behind this library is used as before.
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/probes/preload/regions.h"
#include "harness/probes/recorder.h"

#define EXPORT __attribute__((visibility("default")))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
enum { SMALL = 1024, PAGE = 4096 };

// ---- what is noted ----
static inline void note(void *block, int sign)
{
    if (block == NULL || !probe_recording())
        return;
    int64_t bytes = (int64_t)malloc_usable_size(block);
    if (bytes < SMALL) {
        probe_small(sign * bytes);
    } else {
        struct probe_record r = {.kind = PROBE_HEAP_LIVE, .bytes = sign * bytes, .address = (uint64_t)(uintptr_t)block};
        probe_append(&r);
    }
}

static struct probe_regions maps;

static void note_map(void *address, int64_t bytes)
{
    struct probe_record r = {.kind = PROBE_MAP_LIVE, .bytes = bytes, .address = (uint64_t)(uintptr_t)address};
    if (bytes != 0)
        probe_append(&r);
}

static size_t pages(size_t bytes) { return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1); }

static uint64_t taken_away(void *address, size_t bytes)
{
    uint64_t gone;
    if (!probe_regions_cut(&maps, (uint64_t)(uintptr_t)address, pages(bytes), &gone))
        probe_unseen(PROBE_MISSED_MEMORY, 0, "munmap (too many mappings)", 0);
    return gone;
}

static void unmapped(void *address, size_t bytes) { note_map(address, -(int64_t)taken_away(address, bytes)); }

static void held(void *address, uint64_t bytes)
{
    if (probe_regions_add(&maps, (uint64_t)(uintptr_t)address, bytes))
        note_map(address, (int64_t)bytes);
    else
        probe_unseen(PROBE_MISSED_MEMORY, 0, "mmap (too many mappings)", 0);
}

// Whatever lay there is gone, be it by MAP_FIXED or by a call that no wrapper saw.
static void mapped(void *address, size_t bytes, int protection, int flags)
{
    unmapped(address, bytes);
    if (flags & MAP_ANONYMOUS && protection != PROT_NONE)
        held(address, pages(bytes));
}

// ---- blocks for dlsym ----
static _Alignas(64) char early[4096];
static size_t early_used;
#define STATIC_TLS __thread __attribute__((tls_model("initial-exec"))) // no allocation at a thread's first access
static STATIC_TLS bool resolving;
static STATIC_TLS bool within; // one of the wrapped calls makes another (glibc's reallocarray calls realloc): it counts once

static void *early_block(size_t alignment, size_t bytes)
{
    size_t at = (early_used + alignment - 1) & ~(alignment - 1);
    if (bytes > sizeof early - at) {
        errno = ENOMEM;
        return NULL;
    }
    early_used = at + bytes;
    return early + at;
}

static bool is_early(const void *block) { return (const char *)block >= early && (const char *)block < early + sizeof early; }

// ---- the tables: X(type, name, parameters, arguments, block that goes, block that comes, block where dlsym asks) ----
#define KEPT(size) (result != NULL || (size) == 0 ? result : p) // a realloc that fails leaves its block
#define CALLS(X)                                                                                                                         \
    X(void *, malloc, (size_t n), (n), NULL, result, early_block(16, n))                                                                 \
    X(void *, calloc, (size_t k, size_t n), (k, n), NULL, result, early_block(16, k * n))                                                \
    X(void *, realloc, (void *p, size_t n), (p, n), p, KEPT(n), early_block(16, n))                                                      \
    X(void *, reallocarray, (void *p, size_t k, size_t n), (p, k, n), p, KEPT(k * n), NULL)                                              \
    X(void *, aligned_alloc, (size_t a, size_t n), (a, n), NULL, result, early_block(a, n))                                              \
    X(void *, memalign, (size_t a, size_t n), (a, n), NULL, result, early_block(a, n))                                                   \
    X(void *, valloc, (size_t n), (n), NULL, result, NULL)                                                                               \
    X(void *, pvalloc, (size_t n), (n), NULL, result, NULL)                                                                              \
    X(int, posix_memalign, (void **out, size_t a, size_t n), (out, a, n), NULL, result == 0 ? *out : NULL, ENOMEM)
#define MAPS(X)                                                                                                                          \
    X(void *, mmap, (void *at, size_t n, int protection, int flags, int file, off_t offset), (at, n, protection, flags, file, offset))  \
    X(void *, mmap64, (void *at, size_t n, int protection, int flags, int file, off_t offset), (at, n, protection, flags, file, offset))

#define REAL(type, name, parameters, ...) static type(*real_##name) parameters;
CALLS(REAL)
MAPS(REAL)
static void (*real_free)(void *);
static int (*real_munmap)(void *, size_t);
static void *(*real_mremap)(void *, size_t, size_t, int, ...);

static void unlock_in_child(void) { probe_regions_unlock(&maps); }

static void __attribute__((constructor(102))) resolve(void)
{
    if (real_free != NULL || resolving)
        return;
    resolving = true;
#define FIND(type, name, ...) *(void **)&real_##name = probe_real(#name, (const void *)(uintptr_t)name);
    FIND(void, free)
    CALLS(FIND)
    MAPS(FIND)
    FIND(int, munmap)
    FIND(void *, mremap)
    resolving = false;
}

static void __attribute__((constructor(103))) announce(void)
{
    probe_loaded(PROBE_HEAP);
    pthread_atfork(NULL, NULL, unlock_in_child);
}

// ---- the wrappers ----
#define WRAP(type, name, parameters, arguments, goes, comes, asked)                                                                      \
    EXPORT type name parameters                                                                                                          \
    {                                                                                                                                    \
        if (UNLIKELY(real_##name == NULL)) {                                                                                             \
            if (resolving)                                                                                                               \
                return asked;                                                                                                            \
            resolve();                                                                                                                   \
        }                                                                                                                                \
        if (within)                                                                                                                      \
            return real_##name arguments;                                                                                                \
        note(goes, -1);                                                                                                                  \
        within = true;                                                                                                                   \
        type result = real_##name arguments;                                                                                             \
        within = false;                                                                                                                  \
        note(comes, 1);                                                                                                                  \
        return result;                                                                                                                   \
    }
#define WRAP_MAP(type, name, parameters, arguments)                                                                                      \
    EXPORT type name parameters                                                                                                          \
    {                                                                                                                                    \
        if (UNLIKELY(real_##name == NULL))                                                                                               \
            resolve();                                                                                                                   \
        type result = real_##name arguments;                                                                                             \
        if (result != MAP_FAILED)                                                                                                        \
            mapped(result, n, protection, flags);                                                                                        \
        return result;                                                                                                                   \
    }
CALLS(WRAP)
MAPS(WRAP_MAP)

EXPORT void free(void *p)
{
    if (p == NULL || UNLIKELY(is_early(p)))
        return;
    if (UNLIKELY(real_free == NULL))
        resolve();
    if (!within)
        note(p, -1);
    real_free(p);
}

EXPORT int munmap(void *at, size_t n)
{
    if (UNLIKELY(real_munmap == NULL))
        resolve();
    uint64_t was = taken_away(at, n);
    note_map(at, -(int64_t)was);
    int result = real_munmap(at, n);
    if (result != 0)
        held(at, was);
    return result;
}

// The new range is anonymous if the old one was.
EXPORT void *mremap(void *at, size_t n, size_t wanted, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    void *fixed = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
    va_end(rest);
    if (UNLIKELY(real_mremap == NULL))
        resolve();
    uint64_t was = taken_away(at, n);
    void *result = real_mremap(at, n, wanted, flags, fixed);
    if (was == 0)
        return result;
    note_map(at, -(int64_t)was);
    if (result != MAP_FAILED)
        mapped(result, wanted, PROT_READ, MAP_ANONYMOUS);
    else
        held(at, was);
    return result;
}
