// A template: a process of the implementation that has made its imports, and forks the ranks of one start after another.
//
// Why: an interpreter that imports its framework takes seconds a rank, a fork of one that has done so takes milliseconds. How: a keeper
// (template_keeper.c) is the ancestor of the template and of all that it forks, as with any other start (launch.h). The harness asks the keeper, the
// keeper asks the template and notes what it tells; so the harness never waits for either, and what they do is bounded by the keeper's own
// deadlines. Only one start at a time lives under a template: everything below the keeper except the template belongs to it. A template
// that ends, or hangs, takes its start along; the next start makes a new one. What template and keeper say to each other: docs/protocol.md.
#ifndef HARNESS_TEMPLATE_H
#define HARNESS_TEMPLATE_H

#include "harness/launch/keeper.h"

struct template;

// No process yet: the first start makes it. Logs and ends of its processes go into `folder`, which is made. patience_s: what it gets to
// fork, and to tell of ranks that are gone. NULL where memory is out.
struct template *template_new(const char *folder, double patience_s);
// Ends the template and all that it has started; returns when nothing is left.
void template_free(struct template *t);

// Of a launch that template_start began: launch.c calls these.
// Looks, without waiting, whether the start is over, or lost with its template.
void template_poll(struct launch *l);
void template_stop(struct launch *l, double grace_s);

// The life of the keeper: spawns the task, the template, and obeys the packets of its lifeline, "start RANKS FOLDER" or "enter RANKS FOLDER" (ranks on hosts of a
// place: namespaces.h) and "stop TENTHS". It
// answers each start once nothing of it is left: "over", or "gone" where the template has ended too but the ranks' ends are known. It ends
// with its template. Called in a fork of the harness.
_Noreturn void template_keep(struct keeper_task *task, double patience_s, int lifeline, pid_t harness);

#endif
