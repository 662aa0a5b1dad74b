// Truths by content: computed once, found afterwards, shared by runs at the same time.
//
// A truth is made in a folder of its own under <cache>/truth and renamed to <cache>/truth/<key> when whole, so a reader never
// sees half of one and of two makers the first wins. Makers are forked children (two at a time at most), each
// bounded by a deadline: a truth that crashes or hangs costs its own cases (BROKEN), not the run. A truth is sealed
// (truth_seal.h); one whose seal is broken is told of, made again and exchanged for the new one in one step.
#ifndef HARNESS_TRUTH_CACHE_H
#define HARNESS_TRUTH_CACHE_H

#include "reference/truth/truth.h"

struct truth_cache {
    char *folder;          // <cache>/truth
    int made, found;       // truths computed by this run, and found
    int counted;           // keys counted so far, so that each counts once
    char (*keys)[33];
    struct truth loaded;   // the last one loaded, of key
    char loaded_key[33];
    void (*tell)(void *context, const char *line); // of damage; context is NULL. Or NULL
};

// $FSDPMARK_CACHE, else $XDG_CACHE_HOME/fsdpmark, else ~/.cache/fsdpmark; where given, that.
bool truth_cache_open(const char *folder, struct truth_cache *out, struct error *error);
void truth_cache_close(struct truth_cache *c);
// Makes what is missing or damaged. errors[i].text: why case i has no truth, empty where it has. Each maker ends within deadline_s.
void truth_cache_fill(struct truth_cache *c, const struct fsdp_case *const *cases, int count, double deadline_s,
                      struct error *errors);
// <cache>/truth/<key> of a case.
void truth_cache_path(const struct truth_cache *c, const struct fsdp_case *of, char *path, size_t size);
// The truth of a case, valid until the next call; a damaged one is made again first. NULL on failure.
const struct truth *truth_cache_load(struct truth_cache *c, const struct fsdp_case *of, struct error *error);

#endif
