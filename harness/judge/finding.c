// What a check says: every call records one judged thing, and the worst of them stays.
//
// Order: BROKEN over FAIL over SKIP over PASS. Among FAILs the first stays (checks go through steps and tensors in
// the order of the program, so the first is where subject and truth part); among PASSes the one closest to its bound.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness/judge/judge.h"

static int severity(enum verdict v)
{
    static const int order[] = {[VERDICT_PASS] = 0, [VERDICT_SKIP] = 1, [VERDICT_FAIL] = 2, [VERDICT_BROKEN] = 3};
    return order[v];
}

static double closeness(double figure, double bound)
{
    return bound > 0 ? figure / bound : figure;
}

static bool is_worse(const struct finding *f, enum verdict v, double figure, double bound)
{
    if (!f->emitted)
        return true;
    if (v != f->verdict)
        return severity(v) > severity(f->verdict);
    return v == VERDICT_PASS && judge_finite(figure) &&
           (!judge_finite(f->figure) || closeness(figure, bound) > closeness(f->figure, f->bound));
}

// Fills the finding where this is worse than what it holds; the classes stay empty for anything but a FAIL.
static void record(struct finding *f, enum verdict v, double figure, double bound, const char *unit, const char *classes,
                   const char *format, va_list arguments)
{
    if (is_worse(f, v, figure, bound)) {
        f->verdict = v;
        f->figure = figure;
        f->bound = bound;
        snprintf(f->unit, sizeof f->unit, "%s", unit);
        snprintf(f->classes, sizeof f->classes, "%s", v == VERDICT_FAIL && classes ? classes : "");
        f->ranks[0] = 0;
        vsnprintf(f->message, sizeof f->message, format, arguments);
    }
    f->emitted = true;
}

void finding_compare(struct finding *f, double figure, double bound, const char *unit, const char *classes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    record(f, judge_compare(figure, bound) ? VERDICT_PASS : VERDICT_FAIL, figure, bound, unit, classes, format, arguments);
    va_end(arguments);
}

#define RECORD(verdict, classes)                                        \
    do {                                                                \
        va_list arguments;                                              \
        va_start(arguments, format);                                    \
        record(f, verdict, NAN, NAN, "", classes, format, arguments);   \
        va_end(arguments);                                              \
    } while (0)

void finding_fail(struct finding *f, const char *classes, const char *format, ...) { RECORD(VERDICT_FAIL, classes); }
void finding_pass(struct finding *f, const char *format, ...) { RECORD(VERDICT_PASS, NULL); }
void finding_skip(struct finding *f, const char *format, ...) { RECORD(VERDICT_SKIP, NULL); }
void finding_broken(struct finding *f, const char *format, ...) { RECORD(VERDICT_BROKEN, NULL); }

void judge_figure(const struct evidence *e, const char *label, const char *tensor, double figure, double bound, const char *unit)
{
    if (e->figures)
        json_array_append_new(e->figures, json_pack("{s:s, s:s, s:s, s:o, s:o, s:s}", "check", e->check ? e->check : "", "label",
                                                    label, "tensor", tensor, "figure", answer_number(figure), "bound",
                                                    answer_number(bound), "unit", unit));
}
