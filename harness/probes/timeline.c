// The communication of one step, call by call, from a rank's file of records. See stored.h.
//
// How: the file is mapped and read once; a record that is not wholly written is passed over. A call of its own thread may be written after
//      one that began later, so spans are sorted before neighbours are joined.
#include <stdlib.h>
#include <string.h>

#include "harness/probes/file.h"
#include "harness/probes/stored.h"
#include "harness/protocol/memory.h"

enum { PIECES_OF_A_STEP = 500 };

int probe_timeline_step(const struct probe_case *p)
{
    int last = -1;
    for (int i = 0; i < p->phase_count; i++)
        if (strcmp(p->phases[i].name, "step") == 0 && p->phases[i].step > last)
            last = p->phases[i].step;
    return last;
}

bool probe_step_times(const struct probe_case *p, int step, double *begin_s, double *end_s)
{
    bool found = false;
    for (int i = 0; i < p->phase_count; i++) {
        const struct probe_phase *ph = &p->phases[i];
        if (ph->step != step || !probe_of_step(ph->name))
            continue;
        *begin_s = found ? *begin_s : ph->begin_s;
        *end_s = ph->end_s;
        found = true;
    }
    return found;
}

// As what it is drawn; PROBE_NOTHING: not at all.
static enum probe_kind kind_of(const struct probe_record *r)
{
    switch (r->kind) {
    case PROBE_SEND: case PROBE_RECEIVE: case PROBE_COLLECTIVE: case PROBE_POINT: case PROBE_WAIT: return (enum probe_kind)r->kind;
    default: return PROBE_NOTHING;
    }
}

static int by_begin(const void *a, const void *b)
{
    const struct probe_span *x = a, *y = b;
    return x->begin_s < y->begin_s ? -1 : x->begin_s > y->begin_s;
}

static int join(struct probe_span *spans, int count, double gap_s)
{
    int kept = 0, last[PROBE_KINDS][PROBE_OPS];
    memset(last, -1, sizeof last);
    for (int i = 0; i < count; i++) {
        int *at = &last[spans[i].kind][spans[i].op];
        struct probe_span *before = *at >= 0 ? &spans[*at] : NULL;
        if (before != NULL && spans[i].begin_s - before->end_s < gap_s) {
            before->end_s = spans[i].end_s > before->end_s ? spans[i].end_s : before->end_s;
            before->bytes += spans[i].bytes;
        } else {
            *at = kept;
            spans[kept++] = spans[i];
        }
    }
    return kept;
}

static int collect(const struct probe_record *records, uint64_t count, double begin_s, double end_s, struct probe_span **out)
{
    int found = 0;
    *out = NULL;
    for (uint64_t i = 0; i < count; i++) {
        const struct probe_record *r = &records[i];
        double at = 1e-9 * (double)r->time_ns;
        enum probe_kind kind = kind_of(r);
        if (kind == PROBE_NOTHING || r->op >= PROBE_OPS || at < begin_s || at > end_s)
            continue;
        *out = memory_grow(*out, (size_t)found, sizeof **out);
        (*out)[found++] = (struct probe_span){kind, (enum probe_op)r->op, at, at + 1e-9 * r->duration_ns, r->bytes};
    }
    if (found > 0)
        qsort(*out, (size_t)found, sizeof **out, by_begin);
    return join(*out, found, (end_s - begin_s) / PIECES_OF_A_STEP);
}

int probe_spans(const char *path, double begin_s, double end_s, struct probe_span **out)
{
    struct probe_file file;
    *out = NULL;
    if (!probe_file_open(path, &file, NULL))
        return 0;
    int count = collect(file.records, file.count, begin_s, end_s, out);
    probe_file_close(&file);
    return count;
}
