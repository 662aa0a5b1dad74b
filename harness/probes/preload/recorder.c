// The file of a rank, written by whichever probe and thread has something to say. See recorder.h and record.h.
//
// What: fsdpmark_mark opens the file at its first call; probe_append takes the next place by an atomic addition and writes there.
// How:  room is asked of the file system one chunk at a time before it is written to, so that a full disk makes lost records and no
//       SIGBUS. Nothing here allocates; a signal handler that comes in the middle of an append loses its own record, and no more.
// Fork: the state lies in a page that the kernel wipes in a child (MADV_WIPEONFORK). So a child records nothing, unless it is a rank of its
//       own and marks a phase: then it opens its own file. The file of another process is never opened: O_EXCL.
#include "harness/probes/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "harness/probes/preload/clock.h"
#include "harness/probes/waiting.h"

#define EXPORT __attribute__((visibility("default")))
#define STATIC_TLS __thread __attribute__((tls_model("initial-exec"))) // no allocation at a thread's first access

// 256 MiB at most, of which only what is written takes room.
enum { CAPACITY = 1 << 22, CHUNK = 1 << 14 /* records, 1 MiB */, SMALL_BYTES = 1024, AT_MARK = 4, AHEAD = 8, PATH_BYTES = 3000,
       POPULATE_WRITE = 23 /* MADV_POPULATE_WRITE of Linux 5.14, unknown to older headers */ };

// The page that a child finds wiped.
struct state {
    struct probe_header *_Atomic header; // NULL: not recording
    struct probe_header *paused;         // the header while fsdpmark_pause holds
    struct probe_record *records;
    uint64_t capacity;
    _Atomic bool growing, tried, full;   // full: the file system refused once, and is not asked again
    char path[PATH_BYTES];
};

static struct state *state;
static _Atomic uint32_t loaded;
static void (*_Atomic at_mark[AT_MARK])(const char *, int);
static STATIC_TLS bool inside;
static STATIC_TLS uint32_t thread;

// By system calls, since a probe wraps mmap.
static void *map(size_t bytes, int flags, int file)
{
    long address = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, flags, file, 0L);
    return address == -1 ? NULL : (void *)address;
}

static void __attribute__((constructor(101))) make_state(void)
{
    struct state *page = map(sizeof *page, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (page == NULL)
        return;
    if (syscall(SYS_madvise, page, sizeof *page, MADV_WIPEONFORK) == 0)
        state = page;
    else
        fprintf(stderr, "fsdpmark: probes: madvise MADV_WIPEONFORK: %s, expected Linux 4.14 or newer: nothing is recorded\n", strerror(errno));
}

// Asks for the chunk that holds record i. False: the disk is full.
static bool grow(struct state *s, struct probe_header *h, uint64_t i)
{
    int error = errno;
    while (atomic_exchange_explicit(&s->growing, true, memory_order_acquire))
        syscall(SYS_sched_yield); // the C library's is a wait that the wait probe would write down, amid this record
    uint64_t room = atomic_load(&h->room);
    int file = room > i || s->full ? -1 : open(s->path, O_RDWR | O_CLOEXEC); // opened again each time: the program may close any number
    while (file >= 0 && room <= i) {
        off_t at = PROBE_HEADER_BYTES + (off_t)room * PROBE_RECORD_BYTES;
        uint64_t more = s->capacity - room < CHUNK ? s->capacity - room : CHUNK;
        if (fallocate(file, 0, at, (off_t)(more * PROBE_RECORD_BYTES)) != 0)
            break;
        // All pages at once cost a third of a fault for each. Where the kernel is too old, they come one by one.
        syscall(SYS_madvise, &s->records[room], more * PROBE_RECORD_BYTES, POPULATE_WRITE);
        room += more;
    }
    if (file >= 0)
        close(file);
    s->full = room <= i;
    atomic_store(&h->room, room);
    atomic_store_explicit(&s->growing, false, memory_order_release);
    errno = error;
    return room > i;
}

static uint64_t capacity_wanted(void)
{
    struct rlimit limit;
    const char *text = getenv("FSDPMARK_PROBE_RECORDS"); // for tests of a full file
    uint64_t wanted = text != NULL ? strtoull(text, NULL, 10) : CAPACITY;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur / PROBE_RECORD_BYTES < wanted + 64)
        wanted = limit.rlim_cur > PROBE_HEADER_BYTES ? (limit.rlim_cur - PROBE_HEADER_BYTES) / PROBE_RECORD_BYTES : 0;
    return wanted;
}

// Room for the header and all records, of which the first chunk is real; NULL with errno.
static struct probe_header *make_file(struct state *s)
{
    uint64_t bytes = PROBE_HEADER_BYTES + s->capacity * PROBE_RECORD_BYTES;
    int file = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0)
        return NULL;
    struct probe_header *h = NULL;
    if (ftruncate(file, (off_t)bytes) == 0 && fallocate(file, 0, 0, PROBE_HEADER_BYTES) == 0)
        h = map(bytes, MAP_SHARED, file);
    int error = errno;
    close(file);
    if (h == NULL)
        unlink(s->path);
    errno = error;
    return h;
}

static void open_file(struct state *s)
{
    const char *folder = getenv("FSDPMARK_JOB"), *rank = getenv("RANK");
    if (getenv("FSDPMARK_PROBES") == NULL || folder == NULL || rank == NULL)
        return;
    if (snprintf(s->path, PATH_BYTES, "%s/probes.rank%s", folder, rank) >= PATH_BYTES) {
        fprintf(stderr, "fsdpmark: probes: the path of the job folder has more than %d letters: nothing is recorded\n", PATH_BYTES - 20);
        return;
    }
    thread = 0; // a forked child has its parent's number
    s->capacity = capacity_wanted();
    struct probe_header *h = make_file(s);
    if (h == NULL) {
        if (errno != EEXIST) // a child of the rank that marks a phase
            fprintf(stderr, "fsdpmark: probes: %s: %s: nothing is recorded\n", s->path, strerror(errno));
        return;
    }
    s->records = (struct probe_record *)((char *)h + PROBE_HEADER_BYTES);
    h->version = PROBE_VERSION;
    h->rank = (uint32_t)strtoul(rank, NULL, 10);
    h->capacity = s->capacity;
    h->pid = (uint32_t)getpid();
    h->small_bytes = SMALL_BYTES;
    atomic_store(&h->probes, atomic_load(&loaded));
    clock_open();
    memcpy(h->magic, PROBE_MAGIC, sizeof h->magic);
    atomic_store_explicit(&s->header, h, memory_order_release);
}

static struct probe_header *header(void)
{
    return state != NULL ? atomic_load_explicit(&state->header, memory_order_acquire) : NULL;
}

EXPORT bool probe_recording(void) { return header() != NULL; }

EXPORT void probe_loaded(enum probe_id id)
{
    struct probe_header *h = header();
    atomic_fetch_or(&loaded, 1u << id);
    if (h != NULL)
        atomic_fetch_or(&h->probes, 1u << id);
}

static uint32_t this_thread(void)
{
    if (thread == 0)
        thread = (uint32_t)syscall(SYS_gettid);
    return thread;
}

static void write_record(struct probe_record *to, const struct probe_record *r)
{
    struct probe_record copy = *r;
    copy.kind = PROBE_NOTHING;
    copy.time_ns = r->time_ns != 0 ? r->time_ns : probe_now();
    if (r->kind == PROBE_MARK)
        copy.mark.mark_thread = this_thread();
    else if (r->kind != PROBE_COUNTER && r->kind != PROBE_UNSEEN)
        copy.thread = this_thread();
    *to = copy;
    __atomic_store_n(&to->kind, r->kind, __ATOMIC_RELEASE);
}

// A record's line is not in any cache when it is written: the one that comes AHEAD records later is asked for now.
EXPORT struct probe_record *probe_append(const struct probe_record *r)
{
    struct probe_header *h = header();
    struct probe_record *written = NULL;
    if (h == NULL)
        return NULL;
    bool within = inside;
    inside = true;
    uint64_t i = within ? UINT64_MAX : atomic_fetch_add_explicit(&h->next, 1, memory_order_relaxed);
    if (i < state->capacity && (i < atomic_load_explicit(&h->room, memory_order_relaxed) || (!state->full && grow(state, h, i)))) {
        written = &state->records[i];
        write_record(written, r);
        __builtin_prefetch(written + AHEAD, 1);
    } else {
        atomic_fetch_add(&h->lost, 1);
    }
    inside = within;
    return written;
}

EXPORT void probe_unseen(enum probe_missed what, int call, const char *name, uint64_t time_ns)
{
    struct probe_record r = {.time_ns = time_ns, .kind = PROBE_UNSEEN, .op = (uint8_t)what, .call = (uint16_t)call};
    strncpy(r.counter.event, name, sizeof r.counter.event - 1);
    probe_append(&r);
}

static uint32_t nanoseconds(uint64_t from, uint64_t to)
{
    return to < from ? 0 : to - from < UINT32_MAX ? (uint32_t)(to - from) : UINT32_MAX;
}

EXPORT void probe_ended(struct probe_record *r, uint64_t now) { __atomic_store_n(&r->duration_ns, nanoseconds(r->time_ns, now), __ATOMIC_RELAXED); }

EXPORT void probe_small(int64_t change)
{
    struct probe_header *h = header();
    if (h == NULL)
        return;
    int64_t now = atomic_fetch_add_explicit(&h->small_live, change, memory_order_relaxed) + change;
    int64_t peak = atomic_load_explicit(&h->small_peak, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak_explicit(&h->small_peak, &peak, now, memory_order_relaxed, memory_order_relaxed))
        continue;
}

EXPORT int64_t probe_small_limit(void) { return SMALL_BYTES; }

EXPORT void probe_at_mark(void (*function)(const char *phase, int step))
{
    for (int i = 0; i < AT_MARK; i++) {
        void (*none)(const char *, int) = NULL;
        if (atomic_compare_exchange_strong(&at_mark[i], &none, function))
            return;
    }
}

EXPORT void fsdpmark_pause(int pause)
{
    if (state == NULL || (state->paused != NULL) == (pause != 0))
        return;
    struct probe_header *other = atomic_exchange(&state->header, state->paused);
    state->paused = pause ? other : NULL;
}

EXPORT void fsdpmark_mark(const char *phase, int step)
{
    if (state == NULL)
        return;
    if (!atomic_load_explicit(&state->tried, memory_order_acquire) && !atomic_exchange(&state->tried, true))
        open_file(state);
    struct probe_header *h = header();
    if (h == NULL)
        return;
    uint64_t now = probe_now();
    waiting_mark(now);
    for (int i = 0; i < AT_MARK && at_mark[i] != NULL; i++, now = 0) // what they take is not the new phase's
        at_mark[i](phase, step);
    struct probe_record r = {.kind = PROBE_MARK, .time_ns = now};
    for (int i = 0; i < PROBE_PHASE_BYTES - 1 && phase[i] != 0; i++) // a few letters: by strncpy, which no cache has here, it takes twice as long
        r.mark.phase[i] = phase[i];
    r.mark.step = step;
    r.mark.small_live = atomic_load(&h->small_live);
    r.mark.small_peak = atomic_exchange(&h->small_peak, r.mark.small_live);
    probe_append(&r);
}
