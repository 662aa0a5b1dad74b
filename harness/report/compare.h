// One stored run against another: what was measured in both, as ratios with intervals and words, and verdicts that changed.
//
// What: a row is a quantity that both runs have. Of series (net, bench, validate): their samples, and the counts of bytes among their facts. Of check
//       runs: seconds and bytes of the cases of one implementation and family that both judged.
// Wrong numbers have no speed: a series whose numbers or buffers were wrong in either run has a word for it in place of a ratio, and is worse where the second run's were.
// How:  samples give medians over launches with intervals of 97.5 %, so that their quotient covers 95 % (statistics.h). Seconds of cases
//       are one a case: the median of their ratios with its interval. Bytes are counted, not sampled: the row's interval is the smallest and the largest ratio.
// A word needs an interval of 95 %, over starts as well (statistics_launches_coverage): four of each run, or six cases. Fewer tell nothing, and are no regression.
// The runs took no turns: whatever else changed between them is in the ratio.
#ifndef HARNESS_REPORT_COMPARE_H
#define HARNESS_REPORT_COMPARE_H

#include "harness/report/measured.h"
#include "harness/report/report.h"
#include "harness/statistics/statistics.h"
#include "harness/store/series.h"

enum compare_unit { COMPARE_SECONDS, COMPARE_BYTES, COMPARE_NUMBER }; // less is better but of a NUMBER, which is never worse
struct compare_row {
    char *what;             // "all-gather, bytes 4096 (net, virtual-100m, mpi)"; "reference, exact-mlp (12 cases)"
    char *quantity;         // "seconds", "peak bytes"
    enum compare_unit unit;
    struct interval before, after; // of cases: medians over them
    struct interval ratio;  // after / before; infinite where something came of nothing
    int starts;             // of series: the fewer of the two runs; 0: of cases
    bool counted;           // its interval is no statement on chance
    double slack;           // counts that differ by no larger share are equal: live bytes of two runs of one program do; 0: exact
    const char *word;       // "faster", "slower", "no difference shown"; "more", "less", "equal", "more and less"; what is too few for any; or as `fault` says
    bool worse;             // beyond the threshold, as the whole interval shows; of counts: as the largest ratio shows; of a fault: the second run's
    const char *fault;      // "WRONG", "was WRONG", ...: samples that do not count (series_name.h), so that there is no ratio; else NULL
    const char *why;        // of a fault, or NULL
    const char *worst_case; // of counts: the case with the largest ratio; or NULL
};
struct compare_verdict {
    const char *implementation, *case_id, *check, *message; // check and message: what decided the worse of the two, or NULL
    enum verdict before, after;
    bool waived;            // the later one is a waived FAIL
    bool worse;             // PASS < SKIP < FAIL < BROKEN, and not waived
};
struct comparison {
    const struct stored_run *before, *after;
    double threshold;       // a share: 0.05
    int row_count, verdict_count;
    struct compare_row *rows;         // what is worse first, then what differs, each by how much
    struct compare_verdict *verdicts; // what is worse first
    int cases_both, cases_before, cases_after;    // judged in both, in one alone
    int series_both, series_before, series_after; // a series that is wrong is a row, though it be in the second run alone
    json_t *differences;    // of the environments: {"commit": [before, after]}
};
struct compare_side { const struct stored_run *run; const struct stored_serieses *series; };

void compare_make(struct compare_side before, struct compare_side after, double threshold, struct comparison *out);
void compare_free(struct comparison *c);
// 0; 1 where a row or a verdict is worse; 3 where the runs have nothing in common.
int compare_exit_status(const struct comparison *c);

bool compare_table(const struct comparison *c, const struct report_options *o, FILE *out);
bool compare_json(const struct comparison *c, FILE *out);
bool compare_csv(const struct comparison *c, FILE *out); // rows, then verdicts, told apart by the first column
enum compare_unit compare_unit_of(const char *quantity);
bool compare_tells(const struct compare_row *r);    // false: its interval covers less than 95 %
const char *compare_value(double x, enum compare_unit unit, char text[32]); // "1.23 ms", "4 KiB", "3"; "-" where there is none
// FOLDER/compare.{svg,png,pdf}: the rows that differ most. `why`: as in plots.h.
bool compare_figure(const struct comparison *c, const char *folder, char why[256], struct error *error);

#endif
