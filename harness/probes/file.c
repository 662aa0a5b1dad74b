// Opening a probes file, and telling a record from damage. See file.h.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/probes/file.h"

static bool header_fine(const struct probe_file *f, struct error *error)
{
    const struct probe_header *h = f->header;
    uint64_t room = (f->bytes - PROBE_HEADER_BYTES) / PROBE_RECORD_BYTES;
    if (memcmp(h->magic, PROBE_MAGIC, sizeof h->magic) != 0)
        return error_set(error, "%s: its first bytes are not \"%s\": not a file of the probes, or its header was never finished", f->path, PROBE_MAGIC);
    if (h->version != PROBE_VERSION)
        return error_set(error, "%s: found version %u, expected %u", f->path, h->version, PROBE_VERSION);
    if (h->capacity > room)
        return error_set(error, "%s: found room for %" PRIu64 " records, expected %" PRIu64 " as its header says: truncated", f->path, room, h->capacity);
    if (atomic_load(&h->room) > h->capacity)
        return error_set(error, "%s: found %" PRIu64 " records with room, expected at most %" PRIu64 ": damaged", f->path, atomic_load(&h->room), h->capacity);
    return true;
}

bool probe_file_open(const char *path, struct probe_file *out, struct error *error)
{
    struct stat status;
    *out = (struct probe_file){.path = path};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return error_set(error, "%s: %s: the probes of this rank recorded nothing; so it is with a worker that sets no phase marks (docs/probes.md)", path, strerror(errno));
    void *map = MAP_FAILED;
    bool fine = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= PROBE_HEADER_BYTES;
    if (!fine)
        error_set(error, "%s: found no header of %d bytes, expected a file of the probes", path, PROBE_HEADER_BYTES);
    else if ((map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0)) == MAP_FAILED)
        fine = error_set(error, "%s: cannot be mapped: %s", path, strerror(errno));
    close(file);
    if (!fine)
        return false;
    out->header = map;
    out->bytes = (uint64_t)status.st_size;
    out->records = (const struct probe_record *)((const char *)map + PROBE_HEADER_BYTES);
    if (!header_fine(out, error)) {
        probe_file_close(out);
        return false;
    }
    // Not beyond the room: a hole cannot be read where the file system is full.
    uint64_t claimed = atomic_load(&out->header->next), room = atomic_load(&out->header->room);
    out->count = claimed < room ? claimed : room;
    return true;
}

void probe_file_close(struct probe_file *f)
{
    if (f->header != NULL)
        munmap((void *)(uintptr_t)f->header, f->bytes);
    f->header = NULL;
}

static bool damaged(const struct probe_file *f, uint64_t i, const char *what, unsigned found, unsigned limit, struct error *error)
{
    return error_set(error, "%s: record %" PRIu64 " is damaged: found %s %u, expected one below %u", f->path, i, what, found, limit);
}

static bool text_ends(const struct probe_file *f, uint64_t i, const char *text, size_t size, struct error *error)
{
    return memchr(text, 0, size) != NULL || error_set(error, "%s: record %" PRIu64 " is damaged: found a name without an end", f->path, i);
}

bool probe_file_record(const struct probe_file *f, uint64_t i, const struct probe_record **record, struct error *error)
{
    const struct probe_record *r = &f->records[i];
    uint32_t kind = __atomic_load_n(&r->kind, __ATOMIC_ACQUIRE);
    *record = kind == PROBE_NOTHING ? NULL : r;
    if (kind >= PROBE_KINDS)
        return damaged(f, i, "kind", kind, PROBE_KINDS, error);
    if (kind == PROBE_MARK)
        return text_ends(f, i, r->mark.phase, sizeof r->mark.phase, error);
    if (kind == PROBE_COUNTER && r->op > PROBE_LEVEL)
        return damaged(f, i, "op", r->op, PROBE_LEVEL + 1, error);
    if (kind == PROBE_COUNTER && r->type > PROBE_UNCOUNTED)
        return damaged(f, i, "type", r->type, PROBE_UNCOUNTED + 1, error);
    if (kind == PROBE_COUNTER || kind == PROBE_UNSEEN)
        return text_ends(f, i, r->counter.event, sizeof r->counter.event, error);
    bool moves = kind == PROBE_COLLECTIVE || kind == PROBE_POINT;
    if (moves && r->op >= PROBE_OPS)
        return damaged(f, i, "op", r->op, PROBE_OPS, error);
    if (moves && r->type >= PROBE_TYPES)
        return damaged(f, i, "type", r->type, PROBE_TYPES, error);
    return true;
}

bool probe_file_case(const struct probe_file *f, int place, uint64_t *begin, uint64_t *end, struct error *error)
{
    const struct probe_record *r;
    bool found = false;
    *end = f->count;
    for (uint64_t i = 0; i < f->count; i++) {
        if (!probe_file_record(f, i, &r, error))
            return false;
        if (r == NULL || r->kind != PROBE_MARK || strcmp(r->mark.phase, "case") != 0)
            continue;
        if (found) {
            *end = i;
            return true;
        }
        found = r->mark.step == place;
        *begin = i;
    }
    return found || error_set(error, "%s: found no mark of case %d in %" PRIu64 " records: this rank has not marked its phases (docs/probes.md)%s", f->path, place, f->count,
                              atomic_load(&f->header->lost) > 0 ? ", or the file was full" : "");
}
