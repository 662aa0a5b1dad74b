// EMULATION, no GPU: streams and events as queues of steps. See queue.h.
#include "kernels/cuda/tests/emulation/queue.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cuda/tests/emulation/memory.h"

// One cudaEventRecord(): events and the streams that wait hold it.
struct record { int holders; bool happened; uint64_t time_ns; };
struct CUevent_st { struct record *last; };

struct work {
    struct work *next;
    uint64_t order; // of queueing, over all streams
    const char *what;
    enum emulation_step (*step)(void *context); // NULL: `record` happens, or is waited for
    void *context;
    bool owned, waits;
    struct record *record;
};
struct CUstream_st {
    struct CUstream_st *next; // in the order in which they were made
    struct work *head, **tail;
    bool blocking, gone;
    bool tried; // its work said AGAIN, and nothing has ended since
};
typedef struct CUstream_st stream;

enum policy { RANDOM, LATEST_FIRST, FIRST_STREAM_LAST, QUEUED };
enum { QUERY_NS = 1000000 }; // what a query may run

static stream zero = {.tail = &zero.head, .blocking = true}; // the default stream; the list of all begins here
static uint64_t next_order, state;

// ---- order ----

uint32_t queue_random(uint32_t below) // xorshift64*, Vigna 2016
{
    if (state == 0)
        state = emulation_number("FSDPMARK_EMULATION_SEED", 1) * 0x9e3779b97f4a7c15u | 1;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)(((state * 0x2545f4914f6cdd1du) >> 32) * below >> 32);
}

static enum policy policy(void)
{
    static const char *const names[] = {"random", "latest-first", "first-stream-last", "queued"};
    const char *name = getenv("FSDPMARK_EMULATION_ORDER");
    for (int i = 0; name && i < 4; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum policy)i;
    if (name)
        emulation_fail(cudaErrorInvalidValue, "FSDPMARK_EMULATION_ORDER: found '%s', expected random, latest-first, first-stream-last or queued", name);
    return RANDOM;
}

// The default stream waits for all earlier work of blocking streams, and they for its.
static bool in_turn(const stream *s)
{
    if (s != &zero)
        return !s->blocking || zero.head == NULL || zero.head->order > s->head->order;
    for (const stream *o = zero.next; o; o = o->next)
        if (o->blocking && o->head && o->head->order < s->head->order)
            return false;
    return true;
}

static bool ready(const stream *s)
{
    return s->head && !s->tried && !(s->head->step == NULL && s->head->waits && !s->head->record->happened) && in_turn(s);
}

static stream *choose(enum policy p)
{
    stream *chosen = NULL;
    uint32_t candidates = 0;
    for (stream *s = &zero; s; s = s->next) {
        if (!ready(s))
            continue;
        candidates++;
        bool better = chosen == NULL || (p == RANDOM && queue_random(candidates) == 0) || p == FIRST_STREAM_LAST ||
                      (p == LATEST_FIRST && s->head->order > chosen->head->order) || (p == QUEUED && s->head->order < chosen->head->order);
        chosen = better ? s : chosen;
    }
    return chosen;
}

// ---- running ----

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void let_go(struct record *r)
{
    if (r && --r->holders == 0)
        free(r);
}

static void release(struct work *w)
{
    let_go(w->record);
    if (w->owned)
        free(w->context);
    free(w);
}

static void pop(stream *s)
{
    struct work *w = s->head;
    s->head = w->next;
    if (s->head == NULL)
        s->tail = &s->head;
    release(w);
}

static void bury(void)
{
    for (stream **s = &zero.next; *s;) {
        stream *dead = (*s)->gone && (*s)->head == NULL ? *s : NULL;
        if (dead == NULL) {
            s = &(*s)->next;
            continue;
        }
        *s = dead->next;
        free(dead);
    }
}

// The first work of the stream, once. False: the device has failed.
static bool step(stream *s)
{
    struct work *w = s->head;
    enum emulation_step result = EMULATION_DONE;
    if (w->step)
        result = w->step(w->context);
    else if (!w->waits)
        *w->record = (struct record){w->record->holders, true, now_ns()};
    if (result == EMULATION_FAILED && emulation_error() == cudaSuccess)
        emulation_fail(cudaErrorUnknown, "%s failed", w->what);
    if (result == EMULATION_AGAIN) {
        s->tried = true;
        return true;
    }
    pop(s);
    for (stream *o = &zero; o; o = o->next)
        o->tried = false;
    return result == EMULATION_DONE;
}

struct goal { const stream *stream; const struct record *record; }; // neither: all streams
static bool reached(struct goal g)
{
    if (g.record)
        return g.record->happened;
    for (const stream *s = &zero; s && g.stream == NULL; s = s->next)
        if (s->head)
            return false;
    return g.stream == NULL || g.stream->head == NULL;
}

// Runs work until the goal is reached, the time is over (0: none), nothing can go on now, or the device has failed.
static void run(struct goal g, uint64_t limit_ns)
{
    enum policy p = policy();
    uint64_t begin = limit_ns > 0 ? now_ns() : 0;
    stream *s;
    while (emulation_error() == cudaSuccess && !reached(g) && (s = choose(p)) != NULL) {
        memory_open();
        if (!step(s) || (limit_ns > 0 && now_ns() - begin > limit_ns))
            break;
    }
    memory_close();
    for (s = &zero; s; s = s->next)
        s->tried = false;
    bury();
}

static cudaError_t finish(struct goal g)
{
    while (emulation_error() == cudaSuccess && !reached(g)) {
        run(g, 0);
        if (!reached(g))
            sched_yield(); // for work that another process has to go on with
    }
    return emulation_result(emulation_error());
}

static cudaError_t query(struct goal g)
{
    run(g, QUERY_NS);
    return emulation_error() != cudaSuccess ? emulation_result(emulation_error()) : reached(g) ? cudaSuccess : cudaErrorNotReady;
}

// ---- queueing ----

static stream *of(cudaStream_t handle)
{
    for (stream *s = zero.next; s && handle; s = s->next)
        if (s == handle && !s->gone)
            return s;
    return handle ? NULL : &zero;
}

static cudaError_t append(cudaStream_t handle, struct work w)
{
    stream *s = of(handle);
    struct work *kept = s && emulation_error() == cudaSuccess ? malloc(sizeof *kept) : NULL;
    w.order = next_order++;
    if (kept == NULL) {
        let_go(w.record);
        if (w.owned)
            free(w.context);
        return emulation_result(emulation_error() != cudaSuccess ? emulation_error() : s ? cudaErrorMemoryAllocation : cudaErrorInvalidResourceHandle);
    }
    *kept = w;
    *s->tail = kept;
    s->tail = &kept->next;
    return cudaSuccess;
}

cudaError_t emulation_enqueue(cudaStream_t s, const char *what, enum emulation_step (*f)(void *context), void *context)
{
    return append(s, (struct work){.what = what, .step = f, .context = context});
}
cudaError_t queue_give(cudaStream_t s, const char *what, enum emulation_step (*f)(void *context), void *context)
{
    return append(s, (struct work){.what = what, .step = f, .context = context, .owned = true});
}
void queue_finish(cudaStream_t s) { finish((struct goal){.stream = of(s)}); }
void queue_finish_all(void) { finish((struct goal){0}); }

struct host_call { void (*function)(void *data); void *data; };
static enum emulation_step call_host(void *context)
{
    struct host_call *c = context;
    memory_close();
    c->function(c->data);
    memory_open();
    return EMULATION_DONE;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, void (*function)(void *data), void *data)
{
    struct host_call *c = malloc(sizeof *c);
    if (c == NULL)
        return emulation_result(cudaErrorMemoryAllocation);
    *c = (struct host_call){function, data};
    return queue_give(s, "cudaLaunchHostFunc", call_host, c);
}

// ---- streams ----

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *handle, unsigned flags)
{
    stream *s = emulation_error() == cudaSuccess ? calloc(1, sizeof *s) : NULL, **last = &zero.next;
    if (s == NULL)
        return emulation_result(emulation_error() != cudaSuccess ? emulation_error() : cudaErrorMemoryAllocation);
    s->tail = &s->head;
    s->blocking = !(flags & cudaStreamNonBlocking);
    while (*last)
        last = &(*last)->next;
    *last = *handle = s;
    return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t *handle) { return cudaStreamCreateWithFlags(handle, cudaStreamDefault); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *handle, unsigned flags, int priority) { return (void)priority, cudaStreamCreateWithFlags(handle, flags); }

cudaError_t cudaStreamDestroy(cudaStream_t handle) // returns at once; what is queued still runs
{
    stream *s = handle ? of(handle) : NULL;
    if (s == NULL)
        return emulation_result(cudaErrorInvalidResourceHandle);
    s->gone = true;
    bury();
    return emulation_result(emulation_error());
}

cudaError_t cudaStreamQuery(cudaStream_t s) { return of(s) ? query((struct goal){.stream = of(s)}) : emulation_result(cudaErrorInvalidResourceHandle); }
cudaError_t cudaStreamSynchronize(cudaStream_t s) { return of(s) ? finish((struct goal){.stream = of(s)}) : emulation_result(cudaErrorInvalidResourceHandle); }
cudaError_t cudaDeviceSynchronize(void) { return finish((struct goal){0}); }

void queue_reset(void)
{
    for (stream *s = &zero; s; s = s->next) {
        while (s->head)
            pop(s);
        s->gone = true;
    }
    bury();
    zero.gone = false;
}

// ---- events ----

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = emulation_error() == cudaSuccess ? calloc(1, sizeof **event) : NULL;
    return *event ? cudaSuccess : emulation_result(emulation_error() != cudaSuccess ? emulation_error() : cudaErrorMemoryAllocation);
}
cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (event == NULL)
        return emulation_result(cudaErrorInvalidResourceHandle);
    let_go(event->last);
    free(event);
    return emulation_result(emulation_error());
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t s)
{
    struct record *r = event && of(s) ? malloc(sizeof *r) : NULL;
    if (r == NULL)
        return emulation_result(event && of(s) ? cudaErrorMemoryAllocation : cudaErrorInvalidResourceHandle);
    *r = (struct record){.holders = 2};
    let_go(event->last);
    event->last = r;
    return append(s, (struct work){.what = "cudaEventRecord", .record = r});
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    if (event == NULL || of(s) == NULL)
        return emulation_result(cudaErrorInvalidResourceHandle);
    if (event->last == NULL)
        return emulation_result(emulation_error());
    event->last->holders++;
    return append(s, (struct work){.what = "cudaStreamWaitEvent", .record = event->last, .waits = true});
}

static cudaError_t of_event(cudaEvent_t event, cudaError_t (*ask)(struct goal g))
{
    if (event == NULL)
        return emulation_result(cudaErrorInvalidResourceHandle);
    return event->last ? ask((struct goal){.record = event->last}) : emulation_result(emulation_error());
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return of_event(event, query); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return of_event(event, finish); }

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    if (start == NULL || end == NULL || start->last == NULL || end->last == NULL)
        return emulation_result(cudaErrorInvalidResourceHandle);
    if (!start->last->happened || !end->last->happened)
        return cudaErrorNotReady;
    *ms = (float)((double)(int64_t)(end->last->time_ns - start->last->time_ns) / 1e6);
    return emulation_result(emulation_error());
}
