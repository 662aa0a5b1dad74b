// Evidence in, findings out: the contract between the harness and the checks.
//
// judge_case loads what a case's workers wrote, refuses what has the wrong structure, and runs every check of
// check_list that applies. A check reads `struct evidence` and speaks through finding_*; figures for plots go through
// judge_figure. Helpers that several checks share have a header each: holdings.h (who holds what), program.h (what the
// program asked), exact.h (bitwise), gradient.h (gradients at the subject's own parameters), hint.h (fault classes that
// the figures support), update.h (one optimizer step), noise.h and ratio.h (the calibrated layer), orders.h, norm.h, family.h.
#ifndef HARNESS_JUDGE_H
#define HARNESS_JUDGE_H

#include <jansson.h>

#include "harness/protocol/answer.h"
#include "harness/protocol/case.h"
#include "harness/protocol/tensors.h"
#include "harness/probes/summary.h"
#include "reference/truth/truth.h"

// Ratio allowed in the calibrated layer; docs/method.md tells the calibration.
#define JUDGE_BUDGET 4.0

enum verdict { VERDICT_PASS, VERDICT_FAIL, VERDICT_SKIP, VERDICT_BROKEN };
const char *verdict_name(enum verdict v); // "PASS" ...

// One label that the worker observed: rank 0's full tensors and, where the case asked, each rank's own.
struct observed {
    char *label;
    struct tensors full;
    struct tensors *local; // by rank, world_size of them, or NULL
};

// Final parameters of another case of the same family that this run has judged already.
// digest: as judge_case returned it. truth_digest: judge_truth_digest of that case; two members are compared only
// where their truths end in the same bits (data may differ by world size), NULL = not compared.
struct family_member { const char *case_id; int world_size; enum strategy strategy; const char *digest, *truth_digest; };

// The uninterrupted run that saved what this case loads (docs/cases.md, save_ranks): what it observed.
struct saved_run {
    const struct fsdp_case *c;
    const char *folder;       // with its labels
    const char *truth_digest; // as family_member.truth_digest
};

// What a rank says of its own memory, its `memory` event of phase "allocated" [bytes]: held from the first step to the last. rest: parameters,
// gradients, optimizer states; working: all other tags. told false: it says nothing, and what it holds changes.
struct memory_claim { bool told; double rest, working; };

// What the probes of another case of this run saw, and its ranks claimed (by rank, as evidence.probes): what slopes over sizes and ranks are made of.
struct probed_case { const struct fsdp_case *c; const struct probe_case *probes; const struct memory_claim *claims; };

struct holdings; // who holds which elements, from the `shards` events: harness/judge/holdings.h

struct evidence {
    const struct fsdp_case *c;
    const struct truth *truth;
    int world_size;
    const struct answer *answers;   // by rank
    int observed_count;
    const struct observed *observed;
    const char *implementation;
    const char *digest;             // of the last observed param label, NULL where none
    const char *truth_digest;       // of the truth's last param label, rounded to the parameter dtype; NULL where none
    const struct holdings *holdings;
    json_t *figures;                // array that judge_figure appends to, NULL: figures are dropped
    const char *check;              // name of the check that is judging
    int family_count;
    const struct family_member *family;
    double budget;                  // ratio allowed in the calibrated layer
    const struct saved_run *saved;  // NULL where the case loads nothing of another's
    struct tensors saved_state;     // what it observed under the first label with parameters after this case's load
    struct error saved_error;       // why there is none
    const struct probe_case *probes; // by rank, or NULL: no probe was asked for, or probe_error says why there is nothing
    const char *probe_error;        // or NULL
    unsigned probes_asked;          // bits of enum probe_id; 0: not known, any
    int probed_count;               // cases judged before this one
    const struct probed_case *probed;
};
const struct observed *evidence_find(const struct evidence *e, const char *label);

// Records one figure per tensor for plots: {"check", "label", "tensor", "figure", "bound", "unit"}. Judges nothing.
void judge_figure(const struct evidence *e, const char *label, const char *tensor, double figure, double bound, const char *unit);

// What a check found. Filled by the check through the functions below; the worst stays.
struct finding {
    enum verdict verdict;
    bool emitted;         // any finding_* was called
    double figure, bound; // NAN where there is none
    char unit[32];        // "ulp", "ratio", "elements", ...
    char message[1024];   // tensor, step, shard, fitted scalar and residual, in words
    char classes[128];    // fault classes that the FAIL fits, likeliest first: "Z01 Z03"
    char ranks[64];       // ranks that it concerns: "2" or "0-3"
};

// The only comparison: PASS iff figure is finite and figure <= bound, tested on the bits (exponent
// field), so that no compiler flag can let a NaN pass.
bool judge_compare(double figure, double bound);
bool judge_finite(double x);
// The worse of two figures: the larger, and one that is not finite over all others, so that a maximum cannot lose a NaN.
double judge_worse(double a, double b);

// Records one judged thing: PASS or FAIL by judge_compare(figure, bound). Of several calls the
// worst stays: BROKEN over FAIL over SKIP over PASS, among FAILs the first.
void finding_compare(struct finding *f, double figure, double bound, const char *unit, const char *classes, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
void finding_fail(struct finding *f, const char *classes, const char *format, ...) __attribute__((format(printf, 3, 4)));
void finding_pass(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void finding_skip(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void finding_broken(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The fit of a subject's tensor to a reference: a = <x, ref>/<ref, ref>, residual = |x - a ref| / |a ref|;
// distance = |x - ref|_2, max_abs, first differing flat index (bitwise after rounding ref to the subject's
// dtype) or -1, count of differing elements, nonfinite count.
struct fit { double scalar, residual, distance, max_abs, ref_norm; int64_t first, differing, nonfinite, count; };
bool judge_fit(const struct tensor *x, const struct tensor *ref, int64_t offset, int64_t length, struct fit *out);
// Names the scale in words for N = R S ranks and m microbatches: "N", "1/N", "R", "sqrt(N)", ... or NULL.
const char *judge_scale_name(double scalar, const struct fsdp_case *c, char *buffer, size_t size);

struct check;
extern const struct check *const check_list[]; // generated from suite/checks/, NULL at the end

// One verdict of one check on one case.
struct result {
    const char *check; // static storage
    struct finding finding;
};
// Loads observed labels from the case folder and runs every check that applies. results: at most `capacity`,
// returns the count. j->answers: world_size of them, by rank. A case in which no check applied gives one BROKEN result of check "evidence".
// Missing files, wrong shapes, missing tensors, NaN each give their own FAIL of check "answer" with its message.
struct judge_context {
    const char *case_folder;  // with out/
    const struct fsdp_case *c;
    const struct truth *truth;
    const struct answer *answers;
    const char *implementation;
    int family_count;
    const struct family_member *family;
    double budget;            // 0: JUDGE_BUDGET
    json_t *figures;          // array, borrowed, appended to: case_record.figures of the store; NULL: none wanted
    const struct saved_run *saved; // or NULL
    const struct probe_case *probes; // as in evidence, and the next three
    const char *probe_error;
    unsigned probes_asked;
    int probed_count;
    const struct probed_case *probed;
};
int judge_case(const struct judge_context *j, struct result *results, int capacity, char digest[33]);


// Digest (XXH3, 128 bits, hex) of all tensors PREFIX/... of a set in the order of the case's table: name, dtype, bytes.
// False where the set has none.
bool judge_digest(const struct fsdp_case *c, const struct tensors *set, const char *prefix, char hex[33]);
// The same of the truth's last label with parameters, rounded to the case's parameter dtype: family_member.truth_digest.
bool judge_truth_digest(const struct fsdp_case *c, const struct truth *t, char hex[33]);

#endif
