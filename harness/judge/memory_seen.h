// What the probes saw of a rank's memory, and its slope over the sizes of a case: bytes of a parameter on a rank.
//
// Live bytes are those of the heap, of anonymous mappings and of device memory together, whichever probes saw them, from the begin of the
// case on. Rest is the end of an optimizer step, when gradients are there still; the peak of a phase is that of a step. Of the steps the one where it
// is least, the first two left out, in which optimizers make their states and frameworks lay out their buffers: how many units are in flight at once, and
// when a thread lets go of the last, varies with the clock, by a whole unit in one step of four; what is held too long is held in every step. What a rank says to have allocated once for all (struct memory_claim) is working memory at
// rest too; it is taken off there, and only there: the peaks hold the rank to the whole.
// The same case at several parameter counts P, at a fixed number of ranks, gives a line over P; what does not grow with P (the interpreter,
// the libraries, one unit's buffers where all units are alike) is its intercept, and cancels.
#ifndef HARNESS_JUDGE_MEMORY_SEEN_H
#define HARNESS_JUDGE_MEMORY_SEEN_H

#include "harness/judge/judge.h"
#include "harness/judge/memory_model.h"
#include "harness/judge/slope.h"

enum { MEMORY_SIZES = 4 };          // parameter counts that a line needs: with three its interval is four times as wide
#define MEMORY_LEAST_PARAMETERS 1e5 // below, a framework's own objects outweigh the tensors

// Do the memory checks judge this case: a probe of memory was asked for, and the case is large enough to show anything?
bool memory_applies(const struct evidence *e);
// ... and it is not the first sizes of a setting, which have no slope yet; or nothing was seen at all.
bool memory_has_line(const struct evidence *e);
// "heap", "cuda" or "heap and cuda": the probes that saw e's own ranks. Empty where none was loaded.
const char *memory_probes(const struct evidence *e);
// The classes that an excess fits: Z13 only where something is frozen, Z30 only under activation checkpointing.
const char *memory_classes(const struct fsdp_case *c);
// BROKEN where the records of e's own case are missing or incomplete; true where there is something to judge.
bool memory_usable(const struct evidence *e, struct finding *f);

// The `memory` event of phase "allocated" of a rank, if there is one.
struct memory_claim memory_claim_of(const struct answer *a);
// Live bytes of one rank. Errors: a phase that is not there.
bool memory_live(const struct probe_case *p, const struct memory_claim *claim, enum memory_phase phase, double *bytes, struct error *error);

// Different parameter counts among the cases of this run, e's own included, that differ from `c` in the number of layers alone.
int memory_size_count(const struct evidence *e, const struct fsdp_case *c);
// A case of each mesh with MEMORY_SIZES sizes, among those that differ from e's in layers, ranks and mesh alone: at most `capacity`.
int memory_meshes(const struct evidence *e, const struct fsdp_case **out, int capacity);

// The line of a rank over the sizes of `c`. Errors: fewer than MEMORY_SIZES sizes, a phase that is not there.
bool memory_rank_line(const struct evidence *e, const struct fsdp_case *c, int rank, enum memory_phase phase, struct slope *out, struct error *error);
// ... of the rank whose slope is the largest.
struct memory_line { struct slope fit; int rank; };
bool memory_line(const struct evidence *e, const struct fsdp_case *c, enum memory_phase phase, struct memory_line *out, struct error *error);

// Line of a rank's live bytes at rest, all of them, over what it claims; returns the number of sizes, 0 where there is no line.
int memory_claim_line(const struct evidence *e, int rank, struct slope *out);

// Does every rank of e hold all parameters between steps, by its `shards` events?
bool memory_whole_parameters(const struct evidence *e);

#endif
