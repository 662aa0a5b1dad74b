// A stored run as every report sees it: rows in order, cases in groups, counts. The one traversal.
//
// What is missing is a row too: a case without results, and planned cases that were never recorded, each give one
// BROKEN row, so that no format can show a run as better than it was. So are waivers that no longer hold: each is a FAIL
// of its implementation's case "(waivers)".
#ifndef HARNESS_REPORT_VIEW_H
#define HARNESS_REPORT_VIEW_H

#include "harness/store/store.h"
#include "harness/store/verdicts.h"

struct tally { int of[VERDICT_COUNT], waived; }; // by enum verdict; waived: of the FAILs

// One result and the case it belongs to.
struct row { const struct stored_case *c; const struct stored_result *r; };

struct view_case {
    const struct stored_case *c;
    const char *family;     // the part of the case's family before the first dot: "exact-mlp" of "exact-mlp.bf16"
    enum verdict verdict;
    const struct row *rows; // its own
    int row_count;
};

// The cases of one family (in the sense of view_case) judged on one implementation.
struct view_group {
    const char *implementation, *family;
    int case_count, result_count;
    const struct view_case **cases;
    struct tally tally;     // of cases
    enum verdict verdict;   // worst
    double seconds;         // sum of what is known
};

// In order of first appearance. index: name to place, and owner of the names.
struct names { int count; const char **items; json_t *index; };

struct view {
    const struct stored_run *run;
    int row_count, case_count, group_count;
    struct row *rows;
    struct view_case *cases;
    struct view_group *groups;    // by implementation, then family
    struct names implementations, families, case_ids;
    const struct view_case **matrix; // (case_ids, implementations); NULL where an implementation has no such case
    struct tally tally;           // of cases
    struct tally results;
    int waiver_cases;             // how many of the cases are "(waivers)"
    struct stored_case *added;    // those made up for what is missing
    struct stored_result *added_results;
    int added_count, added_result_count;
    char (*added_messages)[512];
};

void view_make(const struct stored_run *run, struct view *out);
void view_free(struct view *v);
// "FAIL", "2 FAIL (1 waived)": a count of a tally in words.
const char *tally_words(const struct tally *t, enum verdict v, char buffer[64]);
// Whether all that FAILs in it is waived.
bool tally_is_waived(const struct tally *t);
// Whether some case was judged: one is PASS or FAIL.
bool view_judged(const struct view *v);
// The place of a name, or -1.
int names_find(const struct names *n, const char *name);
// The same, added where it is not there; the name is copied.
int names_add(struct names *n, const char *name);
void names_free(struct names *n);
// Distinct reasons of the SKIPs of a group, with the count of cases that give each first; the caller frees the array.
struct reason { const char *message; int cases; const struct view_case *first; };
int view_reasons(const struct view_group *g, struct reason **out);

// Distinct notes on the cases of an implementation, with the count of cases that bear each; the caller frees the array.
struct remark { const char *note; int cases; };
int view_remarks(const struct view *v, const char *implementation, struct remark **out, int *cases);

// ---- the fields of a row, one table for every format ----
enum field_kind { FIELD_TEXT, FIELD_NUMBER, FIELD_INT, FIELD_SEED, FIELD_VERDICT, FIELD_WAIVED };
enum field_owner { OF_CASE, OF_RESULT, OF_WAIVER };
struct field { const char *name; enum field_kind kind; enum field_owner owner; size_t offset; };
enum { FIELD_COUNT = 24 };
extern const struct field fields[FIELD_COUNT];
// The value as text (""where there is none); buffer backs numbers. Not escaped.
const char *field_text(const struct row *row, int field, char buffer[32]);
double field_number(const struct row *row, int field);   // FIELD_NUMBER
int64_t field_integer(const struct row *row, int field); // FIELD_INT and FIELD_SEED, FIELD_WAIVED as 0 or 1
// Whether the result has a figure to show: a NaN beside a bound was measured, a NaN without one stands for nothing.
bool row_has_figure(const struct row *row);
// "3 > 0 elements": the figure against its bound; "" where the result has none.
const char *row_comparison(const struct row *row, char *buffer, size_t size);

#endif
