// Is the cost model right? Predicted against measured step times, and the predicted against the measured change of the best strategy.
//
// What: points = numbers of ranks x line rates x strategies. The line (alpha, and the share of its rate that data gets) and the rates of computing are measured
//       apart from the steps that are judged: the line by a network measurement, computing by the same steps without communication.
// How:  a point's error is |predicted / measured - 1|. Strategies take turns step by step, so that the quotient of two at a rate is the median of quotients of
//       neighbours, with its interval. The best strategy changes from a to b where a is best at some rate and faster than b, b best at a higher one and faster than a, as far as
//       their intervals tell. It does so where the line of least squares through the logarithms of the quotients between these two rates passes 0.
#ifndef HARNESS_ADVISE_VALIDATE_H
#define HARNESS_ADVISE_VALIDATE_H

#include "harness/advise/crossover.h"

enum { VALIDATE_POINTS = 160, VALIDATE_RATES = 16, VALIDATE_SWITCHES = 8 };
static const double VALIDATE_ERROR = 0.15, VALIDATE_FACTOR = 1.3;
enum { VALIDATE_LEAST = 12 };

struct validate_point {
    int ranks;
    double rate_bits;              // of a host's line
    const char *name;              // of the strategy
    struct schedule schedule;
    const struct workload_model *w; // of a rank at that number of ranks
    struct interval step, free, free_update; // measured [s]
    int round_count;
    double *seconds;               // of each round; those of one place with the same index are neighbours
    bool fitted;                   // the model took something from this point: it is not judged
    double predicted_s, error;
};
// A line whose rate can be chosen: what was measured at two rates, for all rates. A byte takes beta_s + beta_bits (8 / rate), the processor's part and the line's.
// The emulated line saves up what it may send while a latency passes: a gather takes the larger of its latency and its bytes. So alpha is the time of a small
// gather, beta that of a large one for each byte; a straight line through both would see neither.
struct validate_line { double alpha_s, beta_s, beta_bits; };
struct gather_times { double rate_bits, small_s, large_s, large_bytes; int ranks; }; // medians; bytes of all parts
struct validate_line validate_line_of(const struct gather_times *a, const struct gather_times *b);
struct tier validate_tier(const struct validate_line *l, double rate_bits);
double validate_rate(const struct validate_line *l, double bandwidth); // bit/s of the line that gives so many bytes/s

// What the steps without communication say of computing at a number of ranks; the line is the caller's.
bool validate_computing(int count, const struct validate_point *points, double copy_rate, struct machine *m);
// predicted_s and error of a point on a machine whose line has the point's rate.
void validate_predict(struct validate_point *p, const struct machine *m);

struct validate_switch { int ranks; const char *below, *above; double measured_bits, predicted_bits, factor; bool ok; };
struct validate_verdict {
    int judged, switch_count;
    double median_error, worst_error;
    struct validate_switch switches[VALIDATE_SWITCHES];
    bool times_ok, switches_ok, ok;
};
// What the model knows of a number of ranks: computing; the line, which is set to each bandwidth in turn.
struct validate_knowledge { int ranks; struct machine machine; struct validate_line line; };
void validate_judge(int count, const struct validate_point *points, int known_count, const struct validate_knowledge *known, struct validate_verdict *out);
// Where the quotient passes 1 on the line of least squares through (log rate, log quotient); NAN: nowhere, it is level or falls.
double validate_crossing(int count, const double *rates, const double *quotients);

#endif
