// For actors that compare each of their own calls with its record: what was written since they last looked.
#ifndef HARNESS_PROBES_TESTS_SEEN_H
#define HARNESS_PROBES_TESTS_SEEN_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/probes/file.h"
#include "harness/probes/preload/calls.h"
#include "harness/probes/summary.h"

static struct probe_file seen_file;
static uint64_t seen_count;
static bool seen_calls[1024];

// After the first mark.
static inline void seen_open(void)
{
    static char path[4096];
    struct error error = {""};
    snprintf(path, sizeof path, "%s/probes.rank%s", getenv("FSDPMARK_JOB"), getenv("RANK"));
    if (!probe_file_open(path, &seen_file, &error)) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    seen_count = atomic_load(&seen_file.header->next);
}

// The next record of what moves; NULL: there is no more. How long something took is told by others (test_wait.c).
static inline const struct probe_record *seen_next(void)
{
    while (seen_count < atomic_load(&seen_file.header->next)) {
        const struct probe_record *r = &seen_file.records[seen_count++];
        if (r->kind != PROBE_WAIT && r->kind != PROBE_PROCESSOR)
            return r;
    }
    return NULL;
}

#define SEEN_FAIL(...) (fprintf(stderr, "rank %s: line %d: ", getenv("RANK"), line), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))

static inline void seen_nothing_at(int line)
{
    const struct probe_record *r = seen_next();
    if (r != NULL)
        SEEN_FAIL("found a record of %s, kind %u, bytes %" PRId64 ", expected none", probe_call_name(r->call), r->kind, r->bytes);
}
#define seen_nothing() seen_nothing_at(__LINE__)

// The next record is of that call and like `x` in all that is counted.
static inline void seen_at(int line, const char *call, struct probe_record x)
{
    const struct probe_record *r = seen_next();
    if (r == NULL)
        SEEN_FAIL("found no record, expected one of %s", call);
    if (strcmp(probe_call_name(r->call), call) != 0 || r->kind != x.kind)
        SEEN_FAIL("found a record of %s, kind %u, expected %s, kind %u", probe_call_name(r->call), r->kind, call, x.kind);
    seen_calls[r->call] = true;
    if (x.kind == PROBE_UNSEEN) {
        if (strcmp(r->counter.event, call) != 0)
            SEEN_FAIL("found '%s' unseen, expected '%s'", r->counter.event, call);
        return;
    }
    if (r->op != x.op || r->type != x.type || r->size != x.size)
        SEEN_FAIL("%s: found %s of %s on %d ranks, expected %s of %s on %d", call, probe_op_name(r->op), probe_type_name(r->type), r->size,
                  probe_op_name(x.op), probe_type_name(x.type), x.size);
    if (r->bytes != x.bytes || r->count != x.count || r->wire != x.wire)
        SEEN_FAIL("%s: found bytes %" PRId64 ", count %" PRId64 ", wire %" PRIu64 ", expected %" PRId64 ", %" PRId64 ", %" PRIu64, call, r->bytes,
                  r->count, r->wire, x.bytes, x.count, x.wire);
    if (r->time_ns == 0 || r->thread == 0)
        SEEN_FAIL("%s: found time %" PRIu64 ", thread %u, expected both", call, r->time_ns, r->thread);
}

// Every call of the table that begins at `first` was seen, but those named.
static inline void seen_all(unsigned first, const char *except)
{
    int line = 0;
    for (unsigned i = first; strcmp(probe_call_name(i), "unknown call") != 0; i++)
        if (!seen_calls[i] && strstr(except, probe_call_name(i)) == NULL)
            SEEN_FAIL("%s was never seen", probe_call_name(i));
}

#endif
