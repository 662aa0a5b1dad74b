// Times the steps of several cases that take turns in one start, each with its communication and without it.
//
// Why: what is compared (sharding strategies of one model) meets the same moments of a busy machine, step by step; and what a step costs where
//      communication takes no time, at this number of ranks on these cores, is what a cost model has to know of computing (harness/advise).
// How: each case has two engines, one on the real backend and one on the null backend (reference/backends/null.c). A round steps all of them once, in a
//      shuffled order, barrier to barrier; the first round warms up and is not printed.
#ifndef REFERENCE_WORKER_TURNS_H
#define REFERENCE_WORKER_TURNS_H

// The line: after the steps, all-gathers of a size follow each other without pause, barrier to barrier, right behind a large one, so that a line which saves up what it may
//      send (tbf) has nothing saved up.
enum { TURNS_CASES = 6, TURNS_SIZES = 4, TURNS_GATHERS_IN_A_ROW = 4 };

// arguments: ROUNDS CASE.json... of the same ranks and model. Rank 0 prints a JSON line for each step: {"case": index of the argument, "free", "round",
// "seconds", "update_seconds" (of the optimizer, with the gathers of resident parameters)}, and for each size {"gather_bytes" (of all parts), "round", "seconds" (of one gather)}.
// Returns the exit status.
int turns_run(int count, char **arguments);

#endif
