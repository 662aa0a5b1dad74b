// Progress of a run: a bar that redraws itself on a terminal, few plain lines in a log.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/protocol/memory.h"
#include "harness/report/report.h"
#include "harness/report/text.h"
#include "harness/report/view.h"

enum { BAR = 24, TOLD = 20, QUIET_SECONDS = 2 };

struct progress {
    FILE *out;
    char *title;
    int total, done, told, tenth; // tenth: of the total, last reported
    bool terminal;
    struct tally tally;
    double begun, reported;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct progress *progress_open(FILE *out, const char *title, int total, bool terminal) {
    struct progress *p = memory_zeros(1, sizeof *p);
    *p = (struct progress){.out = out, .title = text_copy(TEXT_TERMINAL, title), .total = total, .terminal = terminal, .begun = now()};
    p->reported = p->begun;
    return p;
}

static void put_tally(const struct progress *p) {
    char words[64];
    for (int v = VERDICT_FAIL; v < VERDICT_COUNT; v++)
        if (p->tally.of[v]) fprintf(p->out, ", %s", tally_words(&p->tally, (enum verdict)v, words));
}

static void draw_bar(const struct progress *p, const char *what) {
    int full = p->total > 0 ? (int)((int64_t)p->done * BAR / p->total) : 0;
    if (full > BAR) full = BAR;
    fprintf(p->out, "\r\x1b[K%s [%.*s%*s] %d/%d", p->title, full, "########################", BAR - full, "", p->done, p->total);
    put_tally(p);
    fputs("  ", p->out);
    int room = report_columns(p->out) - text_width(p->title) - BAR - 50;
    char *name = text_copy(TEXT_TERMINAL, what);
    if (text_width(name) < room) fputs(name, p->out); // a line that wraps could not be redrawn
    free(name);
    fflush(p->out);
}

static void tell_failure(struct progress *p, const char *what, enum verdict verdict, bool waived, const char *message) {
    p->told++;
    if (!p->terminal && p->told > TOLD + 1) return;
    if (p->terminal) fputs("\r\x1b[K", p->out);
    if (!p->terminal && p->told == TOLD + 1) {
        fputs("more FAIL or BROKEN are in the table only\n", p->out);
        return;
    }
    fprintf(p->out, "%s%s ", verdict_name(verdict), waived ? " (waived)" : "");
    text_put(p->out, TEXT_TERMINAL, what);
    if (message && *message) fputs(": ", p->out);
    text_put(p->out, TEXT_TERMINAL, message);
    fputc('\n', p->out);
}

static void report_line(struct progress *p) {
    int tenth = p->total > 0 ? (int)((int64_t)p->done * 10 / p->total) : 0;
    double time = now();
    bool last = p->done == p->total;
    if (!last && (tenth == p->tenth || time - p->reported < QUIET_SECONDS)) return;
    p->tenth = tenth;
    p->reported = time;
    fprintf(p->out, "%s: %d of %d", p->title, p->done, p->total);
    put_tally(p);
    fprintf(p->out, ", %.1f s\n", time - p->begun);
    fflush(p->out);
}

void progress_step(struct progress *p, const char *what, enum verdict verdict, bool waived, const char *message) {
    p->done++;
    p->tally.of[verdict]++;
    p->tally.waived += waived;
    if (verdict_severity(verdict) >= verdict_severity(VERDICT_FAIL)) tell_failure(p, what, verdict, waived, message);
    if (p->terminal) draw_bar(p, what);
    else report_line(p);
}

void progress_close(struct progress *p) {
    if (!p) return;
    if (p->terminal) fputs("\r\x1b[K", p->out);
    fflush(p->out);
    free(p->title);
    free(p);
}
