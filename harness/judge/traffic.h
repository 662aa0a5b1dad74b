// The theory of a case's traffic: which collectives a step of it needs, phase by phase, and what an implementation really sent.
//
// What: traffic_plan walks the program of a case and writes down, for each phase (docs/probes.md), the collectives that its strategy
//       needs: kind, ranks of the group, dtype, calls, payload. U units of S^ elements, w bytes of a gathered and g of a reduced element,
//       groups of n, f(n) = (n-1)/n:
//         none       all-reduce g S^ over R in a backward that synchronises
//         optimizer  reduce-scatter g S^ (or all-reduce) in a backward that synchronises, all-gather w S^ after the update
//         grad       the same, reduce-scatter always
//         full       all-gather w S^ in the forward; w S^ again in the backward, less what stays gathered, nothing where
//                    reshard_after_forward is false; reduce-scatter g S^ in a backward that synchronises
//         hybrid     as full over S ranks, and all-reduce g S^ / S over R
//       Wire bytes, added up over the ranks of a group: (n-1) payload of a gather or reduce-scatter, twice that of an all-reduce: f(n) and
//       2 f(n) of the payload for each rank.
// How:  what the strategy leaves to the implementation is a choice (struct traffic_choice): which padding, which units stay gathered. All
//       choices of a case are listed, the plan of each is made, and the nearest to what was seen is the one that is compared.
// Why so: units, chunks and padding are computed here from the case alone, not by the reference's code, so that it is judged too.
// Source: Rajbhandari et al. 2020, arXiv:1910.02054, section 7; Zhao et al. 2023, arXiv:2304.11277, section 3; Patarasuk and Yuan 2009
// (ring algorithms). docs/metrics.md has the formulas.
#ifndef HARNESS_JUDGE_TRAFFIC_H
#define HARNESS_JUDGE_TRAFFIC_H

#include "harness/judge/judge.h"

enum { TRAFFIC_ROWS = 24, TRAFFIC_CHOICES = 512, TRAFFIC_GAPS = 16 };

// What the strategy leaves open; each is legal, and each makes another count.
enum traffic_padding { TRAFFIC_UNPADDED, TRAFFIC_CHUNKS /* each parameter to a multiple of rows */, TRAFFIC_FLAT /* each unit */ };
struct traffic_choice {
    enum traffic_padding padding;
    bool root_kept, last_kept; // from forward to backward, though others are resharded
    bool kept_later;           // from the second backward on: which units come last is known from the first
    bool kept_unsynced;        // nothing is resharded after a backward without synchronisation
    bool gathers_first;        // optimizer, grad: gathered in the first forward of a step, not after the update
    bool reduces_all;          // optimizer: an all-reduce, though only a part is needed
    bool deferred;             // the replicas of hybrid, or optimizer's gradients, once a step: in its last synchronising backward
    bool split;                // an all-reduce is a reduce-scatter and an all-gather; of few elements, one gather of all versions
};

// Collectives of one kind in one phase, on one rank. An all-to-all of the same payload does the work of a reduce-scatter.
struct traffic_row { enum probe_op op; int size; enum probe_type type; int64_t calls, bytes, wire; };

struct traffic_phase {
    const char *name;          // "forward"
    int step;                  // -1: none
    bool sync;                 // of a backward
    int count;
    struct traffic_row rows[TRAFFIC_ROWS];
};
struct traffic_plan {
    int units;
    int64_t elements;          // without padding
    int count;
    struct traffic_phase *phases;
};

// The row of a kind, made where it is not there yet; NULL: the phase has TRAFFIC_ROWS others, which no plan has (a handful, of merged phases twice that).
struct traffic_row *traffic_row_of(struct traffic_phase *phase, enum probe_op op, int size, enum probe_type type);

// Why there is no formula for a case, or NULL.
const char *traffic_unpredicted(const struct fsdp_case *c);
// All choices that make a difference for the case, at most TRAFFIC_CHOICES; the first is the plainest. Returns how many.
int traffic_choices(const struct fsdp_case *c, struct traffic_choice *out);
// The plan of a rank. Owned by the caller: traffic_plan_free.
struct traffic_plan traffic_plan(const struct fsdp_case *c, const struct traffic_choice *choice, int rank);
void traffic_plan_free(struct traffic_plan *p);
// In words what a choice is: "root kept from forward to backward, flat padding"; "" for the plainest.
const char *traffic_choice_text(const struct traffic_choice *choice, char *text, size_t size);

// Bytes that a rank sends for a row of a plan, by how a library does its collectives.
// gather, scatter, reduce: multiples of f(n) payload; gather_call, reduce_call: headers of a call, for each other rank.
struct traffic_library { const char *name, *words; double gather, scatter, reduce, gather_call, reduce_call; };
// By the name of a backend ("gloo"): what it is known to do, else the best that is possible.
const struct traffic_library *traffic_library(const char *backend);
// Of the training phases of a plan, of all ranks, divided by N.
double traffic_sent(const struct fsdp_case *c, const struct traffic_choice *choice, const struct traffic_library *library);

// ---- what was seen ----

// What a rank did in the phases of a plan: phases[i] of `out` belongs to phases[i] of the plan. A worker that does not mark its backward has it
// in its forward: plan and out are merged so. Scalars: collectives of at most 8 bytes a rank, taken out of the rows. Errors: phases that do
// not follow the program, more kinds of collectives in one than there is room for.
struct traffic_seen { int count; struct traffic_phase *phases; int64_t scalars, most_scalars, barriers, points, point_bytes, collectives; double sent; };
bool traffic_see(struct traffic_plan *plan, const struct probe_case *probes, struct traffic_seen *out, struct error *error);
void traffic_seen_free(struct traffic_seen *s);

// Where plan and observation part. seen or expected may be 0.
struct traffic_gap {
    int phase;
    struct traffic_row expected, seen; // op, size and type of the one that is there
};
// All gaps of one rank, at most TRAFFIC_GAPS kept; returns how many. `bucketed`: calls are the implementation's, between 1 and `buckets`.
int traffic_compare(const struct traffic_plan *plan, const struct traffic_seen *seen, int64_t buckets, struct traffic_gap *gaps);
// A dtype, or words of its width that carry it: MPI has no bf16; then the bytes tell.
bool traffic_same_type(enum probe_type expected, enum probe_type seen);
// The gap in words that name the excess, and the fault classes that it fits.
void traffic_gap_text(const struct fsdp_case *c, const struct traffic_plan *plan, const struct traffic_gap *gap, char *text, size_t size, const char **classes);

// The choice whose plan is nearest to what the probes saw on all ranks, and where the rank that is farthest from it parts from it.
struct traffic_match {
    struct traffic_choice choice;
    struct traffic_plan plan;  // of that rank
    int rank, gap_count;
    struct traffic_gap gaps[TRAFFIC_GAPS];
    int64_t calls, scalars, most_scalars, barriers, points; // most_scalars: in one phase; the others of all ranks
    double wire_seen, wire_expected;                // bytes, of all ranks
};
// Errors: phases that do not follow the program. Owned by the caller: traffic_match_free.
bool traffic_nearest(const struct evidence *e, struct traffic_match *out, struct error *error);
void traffic_match_free(struct traffic_match *m);

enum { TRAFFIC_PROBES = 1 << PROBE_MPI | 1 << PROBE_NCCL | 1 << PROBE_SOCKET };
// Which witness there is for a case. UNSEEN: nothing moved anywhere.
enum traffic_witness { TRAFFIC_UNSEEN, TRAFFIC_COLLECTIVES, TRAFFIC_POINTS, TRAFFIC_SOCKETS };
enum traffic_witness traffic_witness(const struct evidence *e);
// False, and said so, where the records of e's own ranks are not there, not whole, not those of its program, or known to miss what moves bytes.
bool traffic_usable(const struct evidence *e, struct finding *f);
// As traffic_usable, of another case, whose ranks recorded `probes`.
bool traffic_complete(const struct fsdp_case *c, const struct probe_case *probes);
// Bits of the probes that are there to judge traffic by, or were asked for where nothing could be read. A gate, whose one rank moves nothing, is not
// held to it: what it says of its numbers would be lost with it.
unsigned traffic_loaded(const struct evidence *e);
// The witness that judges: collectives, also of one rank, or sockets. UNSEEN: there is none, and f has been told why.
enum traffic_witness traffic_judged(const struct evidence *e, struct finding *f);
// A value of hello.configured of rank 0, or NULL.
const char *traffic_configured(const struct evidence *e, const char *key);
// Bytes that sockets of all ranks have taken in the training phases, divided by N.
double traffic_socket_bytes(const struct probe_case *probes, int ranks);

#endif
