// Follows the event files of a case while the ranks write them.
#ifndef HARNESS_WATCH_H
#define HARNESS_WATCH_H

#include "harness/protocol/answer.h"

enum { WATCH_LINE = 240 };

struct rank_watch {
    char *path;
    int fd;                  // -1 until the file exists
    int lines;               // whole lines seen
    bool ended;              // the last line was done, unsupported or error
    enum event_kind end;
    bool garbage;            // a line was no event
    char last[WATCH_LINE];   // beginning of the last whole line
    char *partial;           // what follows it
    size_t partial_size, partial_capacity;
};
struct watch { int ranks; struct rank_watch *rank; };

bool watch_open(struct watch *w, const char *case_folder, int ranks);
// Reads what is new; true where anything was.
bool watch_poll(struct watch *w);
int watch_ended(const struct watch *w);  // ranks that have ended
int watch_lines(const struct watch *w);  // lines of all ranks
void watch_close(struct watch *w);

#endif
