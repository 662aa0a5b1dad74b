// Holds slopes of memory to what the strategy has: a verdict by the whole 95 % interval, never by its middle alone.
//
// Peaks scatter by whole units, which are sent or freed a moment sooner or later, and a slope through such points may miss by chance. So
//     FAIL    the interval lies beyond the tolerance as a whole: shown;
//     PASS    the slope lies within the tolerance, and its interval ends within the resolution: shown, for excesses from there on;
//     BROKEN  neither: the points scatter too much to tell. The remedy is to run again on a machine that is less busy.
// Of four sizes as the suite has them no pattern of one unit more or less is a FAIL: the interval then holds the true slope.
// Source: Draper and Smith, Applied Regression Analysis, chapter 1 (harness/judge/slope.h).
#ifndef HARNESS_JUDGE_MEMORY_HOLD_H
#define HARNESS_JUDGE_MEMORY_HOLD_H

#include "harness/judge/memory_seen.h"

#define MEMORY_TOLERANCE 0.03  // of the bytes of a parameter
#define MEMORY_RESOLUTION 0.10 // an excess from here on is never a PASS

enum memory_told { MEMORY_WITHIN, MEMORY_BEYOND, MEMORY_UNTOLD };
// off: how far a figure lies beyond its bound, half: of its interval, both as parts of the bound. Not finite: never within.
enum memory_told memory_told(double off, double half, double tolerance, double resolution);

// Bytes of a parameter; least 0: bounded above alone.
struct memory_bound { double least, most; };

// What a rank holds at rest over groups of that many: copies and gradients that need not be there may be missing.
struct memory_bound memory_rest_bound(const struct memory_model *m, int shards);

// A slope of memory against its bound; off: how far beyond, as a part of the most.
enum memory_told memory_slope_told(const struct slope *s, struct memory_bound b);
double memory_slope_off(const struct slope *s, struct memory_bound b);

// The slope of every rank in that phase; the worst rank's stays in the finding, and is recorded as a figure.
void memory_hold(const struct evidence *e, struct finding *f, enum memory_phase phase, struct memory_bound bound, const struct memory_model *m);

#endif
