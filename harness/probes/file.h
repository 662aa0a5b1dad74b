// The file of a rank's probes, mapped for reading while the rank may still append to it. Layout: record.h.
#ifndef HARNESS_PROBES_FILE_H
#define HARNESS_PROBES_FILE_H

#include <stdbool.h>

#include "harness/probes/record.h"
#include "harness/protocol/error.h"

struct probe_file {
    const char *path;                   // borrowed
    const struct probe_header *header;
    const struct probe_record *records;
    uint64_t count;                     // claimed so far, at most header->room
    uint64_t bytes;                     // mapped
};

// Errors: no file, no header, shorter than its header says.
bool probe_file_open(const char *path, struct probe_file *out, struct error *error);
void probe_file_close(struct probe_file *f);
// *record is record i, or NULL where it was never finished. Errors: a record with a value that no probe writes.
bool probe_file_record(const struct probe_file *f, uint64_t i, const struct probe_record **record, struct error *error);
// The first record of the case with that place in its job, and the one after its last. Errors: no such mark; damaged records.
bool probe_file_case(const struct probe_file *f, int place, uint64_t *begin, uint64_t *end, struct error *error);

#endif
