// From the records of a rank to the phases of one case. See summary.h.
//
// Live bytes: large blocks have records, whose running sum is exact at every moment; of small ones only the marks tell. So live = sum of
// the records + what the mark notes, and the peak of a phase is the sum of both peaks: an upper bound, too large by at most the small
// blocks' rise within the phase.
#include <stdlib.h>
#include <string.h>

#include "harness/probes/file.h"
#include "harness/probes/preload/calls.h"
#include "harness/probes/summary.h"
#include "harness/protocol/memory.h"

// A damaged file may hold any number: sums stay at the limit instead of overflowing.
static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return !__builtin_add_overflow(a, b, &sum) ? sum : b > 0 ? INT64_MAX : INT64_MIN;
}
static int64_t minus(int64_t a, int64_t b) { return plus(a, b == INT64_MIN ? INT64_MAX : -b); }

// One pass over the records of a case.
struct reading {
    const struct probe_file *file;
    struct probe_case *out;
    char *names;               // what is left of the pool that the names are copied to
    int64_t live[3], peak[3];  // large blocks: heap, map, device; the peak within the phase
    int64_t small_first;       // live bytes of small blocks at the mark of the case
};

static const char *keep_name(struct reading *r, const char *text)
{
    const char *kept = r->names;
    size_t size = strlen(text) + 1;
    memcpy(r->names, text, size);
    r->names += size;
    return kept;
}

static struct probe_live *live_of(struct probe_phase *p, int i) { return i == 0 ? &p->heap : i == 1 ? &p->map : &p->device; }

// small: live bytes of small blocks now; small_peak: their largest within the phase.
static void end_phase(struct reading *r, double time_s, int64_t small, int64_t small_peak)
{
    struct probe_phase *p = &r->out->phases[r->out->phase_count - 1];
    p->end_s = time_s;
    for (int i = 0; i < 3; i++) {
        struct probe_live *l = live_of(p, i);
        l->end = plus(r->live[i], i == 0 ? minus(small, r->small_first) : 0);
        l->peak = plus(r->peak[i], i == 0 ? minus(small_peak, r->small_first) : 0);
    }
}

static void begin_phase(struct reading *r, const struct probe_record *mark)
{
    struct probe_case *c = r->out;
    if (c->phase_count == 0)
        r->small_first = mark->mark.small_live;
    struct probe_phase *p = &c->phases[c->phase_count++];
    *p = (struct probe_phase){.name = keep_name(r, mark->mark.phase), .step = mark->mark.step, .begin_s = (double)mark->time_ns / 1e9};
    for (int i = 0; i < 3; i++) {
        live_of(p, i)->begin = plus(r->live[i], i == 0 ? minus(mark->mark.small_live, r->small_first) : 0);
        r->peak[i] = r->live[i];
    }
}

static void add_live(struct reading *r, int i, int64_t bytes)
{
    r->live[i] = plus(r->live[i], bytes);
    if (r->live[i] > r->peak[i])
        r->peak[i] = r->live[i];
}

static bool is_number(const struct probe_record *r)
{
    bool all_parts = r->op == PROBE_ALL_GATHER || r->op == PROBE_ALL_TO_ALL || r->op == PROBE_REDUCE_SCATTER;
    return r->kind == PROBE_COLLECTIVE && r->bytes > 0 && r->bytes <= 8 * (all_parts ? r->size : 1);
}

static void add_traffic(struct probe_phase *p, const struct probe_record *r)
{
    bool socket = r->kind == PROBE_SEND || r->kind == PROBE_RECEIVE;
    p->on_device |= !socket && r->call >= CALLS_NCCL;
    struct probe_traffic t = {.kind = (enum probe_kind)r->kind, .peer = socket ? r->address : 0};
    if (!socket)
        t.op = (enum probe_op)r->op, t.type = (enum probe_type)r->type, t.size = r->size, t.number = is_number(r);
    struct probe_traffic *to = p->traffic, *end = p->traffic + p->traffic_count;
    while (to < end && (to->kind != t.kind || to->op != t.op || to->type != t.type || to->size != t.size || to->peer != t.peer || to->number != t.number))
        to++;
    if (to == end) {
        p->traffic = memory_grow(p->traffic, (size_t)p->traffic_count, sizeof t);
        to = &p->traffic[p->traffic_count++];
        *to = t;
    }
    to->calls++;
    to->bytes = plus(to->bytes, r->bytes);
    to->wire = plus(to->wire, socket ? 0 : r->wire < INT64_MAX ? (int64_t)r->wire : INT64_MAX);
    to->seconds += r->duration_ns / 1e9;
}

static void add_unseen(struct reading *r, struct probe_phase *p, const struct probe_record *record)
{
    bool memory = record->op == PROBE_MISSED_MEMORY;
    if ((*(memory ? &r->out->untracked : &r->out->unseen))++ == 0)
        *(memory ? &r->out->untracked_call : &r->out->unseen_call) = keep_name(r, record->counter.event);
    p->unseen += !memory;
}

static void add_counter(struct reading *r, struct probe_phase *p, const struct probe_record *record)
{
    p->counters = memory_grow(p->counters, (size_t)p->counter_count, sizeof *p->counters);
    bool counted = record->type == PROBE_COUNTED;
    p->counters[p->counter_count++] = (struct probe_counter){keep_name(r, record->counter.event), counted ? record->counter.value : 0,
                                                             (enum probe_scope)record->op, counted ? 0 : (int)record->counter.value};
}

// Noted at the mark that ends the phase, or at the first mark of a rank's later thread, which ends none.
static void add_processor(struct probe_phase *p, const struct probe_record *record)
{
    p->process_s += record->bytes / 1e9;
    p->thread_s += record->count / 1e9;
}

static void add_wait(struct probe_phase *p, const struct probe_record *record)
{
    p->waits = plus(p->waits, record->count);
    p->wait_s += record->duration_ns / 1e9;
}

static void add(struct reading *r, const struct probe_record *record)
{
    struct probe_phase *p = r->out->phase_count ? &r->out->phases[r->out->phase_count - 1] : NULL;
    switch ((enum probe_kind)record->kind) {
    case PROBE_MARK:
        if (p != NULL)
            end_phase(r, (double)record->time_ns / 1e9, record->mark.small_live, record->mark.small_peak);
        begin_phase(r, record);
        break;
    case PROBE_COUNTER: add_counter(r, p, record); break;
    case PROBE_HEAP_LIVE: case PROBE_MAP_LIVE: case PROBE_DEVICE_LIVE:
        add_live(r, (int)(record->kind - PROBE_HEAP_LIVE), record->bytes);
        break;
    case PROBE_SEND: case PROBE_RECEIVE: case PROBE_COLLECTIVE: case PROBE_POINT: add_traffic(p, record); break;
    case PROBE_UNSEEN: add_unseen(r, p, record); break;
    case PROBE_WAIT: add_wait(p, record); break;
    case PROBE_PROCESSOR: add_processor(p, record); break;
    case PROBE_NOTHING: case PROBE_CONNECT: case PROBE_KINDS: break;
    }
}

// Counts what the pass may keep, so that it has room: a record that is unfinished now may be finished by then.
static void make_room(struct reading *r, uint64_t begin, uint64_t end)
{
    size_t marks = 0, names = 0;
    for (uint64_t i = begin; i < end; i++) {
        uint32_t kind = __atomic_load_n(&r->file->records[i].kind, __ATOMIC_ACQUIRE);
        marks += kind == PROBE_MARK || kind == PROBE_NOTHING;
        names += kind == PROBE_COUNTER || kind == PROBE_UNSEEN || kind == PROBE_NOTHING;
    }
    r->out->phases = memory_zeros(marks, sizeof *r->out->phases);
    r->out->owned = r->names = memory_zeros(marks * PROBE_PHASE_BYTES + names * sizeof r->file->records->counter.event, 1);
}

static bool read_case(struct reading *r, uint64_t begin, uint64_t end, struct error *error)
{
    const struct probe_header *h = r->file->header;
    const struct probe_record *record;
    uint64_t last_ns = 0;
    make_room(r, begin, end);
    for (uint64_t i = begin; i < end; i++) {
        if (!probe_file_record(r->file, i, &record, error))
            return false;
        if (record == NULL)
            continue;
        add(r, record);
        last_ns = record->time_ns > last_ns ? record->time_ns : last_ns;
    }
    // The last phase ends at the mark of the next case, or with the last record.
    const struct probe_record *next = end < r->file->count ? &r->file->records[end] : NULL;
    if (next != NULL)
        end_phase(r, (double)next->time_ns / 1e9, next->mark.small_live, next->mark.small_peak);
    else
        end_phase(r, (double)last_ns / 1e9, atomic_load(&h->small_live), atomic_load(&h->small_peak));
    return true;
}

bool probe_read(const char *path, int place, struct probe_case *out, struct error *error)
{
    struct probe_file file;
    uint64_t begin, end;
    *out = (struct probe_case){0};
    if (!probe_file_open(path, &file, error))
        return false;
    const struct probe_header *h = file.header;
    struct reading r = {.file = &file, .out = out};
    *out = (struct probe_case){.rank = (int)h->rank, .probes = atomic_load(&h->probes), .lost = (int64_t)atomic_load(&h->lost)};
    bool fine = probe_file_case(&file, place, &begin, &end, error) && read_case(&r, begin, end, error);
    if (!fine)
        probe_case_free(out);
    probe_file_close(&file);
    return fine;
}

void probe_case_free(struct probe_case *p)
{
    for (int i = 0; i < p->phase_count; i++) {
        free(p->phases[i].traffic);
        free(p->phases[i].counters);
    }
    free(p->phases);
    free(p->owned);
    *p = (struct probe_case){0};
}
