// The figures of what probes saw: memory against ranks, traffic of a step, the timeline of one. See figures.h and probed.h.
//
// Each caption ends with where and when it was measured and by which probes, since bytes and times are of a machine.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/figures.h"
#include "harness/report/plots.h"
#include "harness/report/text.h"

enum {
    MOST_SERIES = 8, MOST_PANELS = 12, ACROSS = 3, MOST_BARS = 48, MOST_TIMELINES = 4, MOST_RANKS = 8, CURVE_POINTS = 60, TITLE_WIDTH = 60, WIDE_PX = 380,
    TALL_PX = 320, BAR_PX = 22, LANES_PX = 46, STEP_PX = 820
};

static int least(int a, int b) { return a < b ? a : b; }

// ---- where it was measured ----
static void add_words(struct figure *f, const char *before, const char *words) {
    size_t used = strlen(f->note);
    if (words && *words) snprintf(f->note + used, sizeof f->note - used, "%s%s", used && f->note[used - 1] != ' ' ? before : "", words);
}

static void add_versions(const struct view *v, const struct probed *p, struct figure *f) {
    for (int i = 0; i < p->implementations.count; i++) {
        const char *name;
        json_t *value, *plan = json_object_get(v->run->implementations, p->implementations.items[i]);
        json_object_foreach(json_object_get(plan, "versions"), name, value) {
            char *words = memory_format("%s %s", name, json_is_string(value) ? json_string_value(value) : "?");
            if (!strstr(f->note, words)) add_words(f, ", ", words);
            free(words);
        }
    }
}

// "Intel Xeon, 2 cores, host x; virtual-100m (...); fsdpmark 0.5, torch 2.15; 2026-11-30; seen by heap, socket."
static void add_provenance(const struct view *v, const struct probed *p, struct figure *f) {
    const json_t *e = v->run->environment;
    char date[16], *probes = probed_probes(p), *fabric = plot_fabric(e);
    char *machine = memory_format("Measured on %s, %d cores", json_is_string(json_object_get(e, "cpu")) ? json_string_value(json_object_get(e, "cpu")) : "an unknown processor",
                                  (int)json_integer_value(json_object_get(e, "cores")));
    char *version = memory_format("fsdpmark %s", json_is_string(json_object_get(e, "version")) ? json_string_value(json_object_get(e, "version")) : "?");
    char *seen = memory_format("probes: %s.", *probes ? probes : "none");
    snprintf(date, sizeof date, "%.10s", v->run->started);
    figure_note(f, p->unread, "cases are left out: this program does not know the form of their records");
    add_words(f, " ", machine);
    if (*fabric) add_words(f, "; ", fabric);
    add_words(f, "; ", version);
    add_versions(v, p, f);
    add_words(f, "; ", date);
    add_words(f, "; ", seen);
    free(machine);
    free(version);
    free(seen);
    free(probes);
    free(fabric);
}

static void put_titles(FILE *data, const struct names *names, const int *which, int count) {
    for (int i = 0; i < count; i++) {
        fprintf(data, "%d\t", i + 1);
        figure_put_quoted(data, names->items[which[i]], TITLE_WIDTH);
        fputc('\n', data);
    }
}

static int place_of(const int *list, int count, int value) {
    for (int i = 0; i < count; i++)
        if (list[i] == value) return i;
    return -1;
}

// ---- memory ----
static bool is_drawn(const struct probed_point *q) { return isfinite(q->rest); }

struct chosen { int panels, series, *panel, *label, panels_left, series_left; };
static void choose(const struct probed *p, struct chosen *c) {
    *c = (struct chosen){.panel = memory_zeros((size_t)p->point_count + 1, sizeof(int)), .label = memory_zeros((size_t)p->point_count + 1, sizeof(int))};
    for (int i = 0; i < p->point_count; i++) {
        if (!is_drawn(&p->points[i])) continue;
        if (place_of(c->panel, c->panels, p->points[i].implementation) < 0) c->panel[c->panels++] = p->points[i].implementation;
        if (place_of(c->label, c->series, p->points[i].label) < 0) c->label[c->series++] = p->points[i].label;
    }
    c->panels_left = c->panels - least(c->panels, MOST_PANELS);
    c->series_left = c->series - least(c->series, MOST_SERIES);
    c->panels -= c->panels_left;
    c->series -= c->series_left;
}

// "full, theory 16 / N"; hybrid's b grows with its replicas.
static char *series_title(const struct probed *p, int label) {
    double a, b;
    const struct probed_point *q = p->points;
    while (q->label != label || !is_drawn(q)) q++;
    probed_rest_theory(p, q, &a, &b);
    if (b == 0) return memory_format("%s: theory %g", p->labels.items[label], a);
    if (a == 0) return memory_format("%s: theory %g / N", p->labels.items[label], b);
    return memory_format("%s: theory %g + %g / N", p->labels.items[label], a, b);
}

// Points of a panel, then its curves, one a series, parted by a blank line.
static void put_panel(FILE *data, const struct probed *p, const struct chosen *c, int panel, double low, double high) {
    fputs("\n\n-9\tnan\t0\tnan\n", data);
    for (int i = 0; i < p->point_count; i++) {
        const struct probed_point *q = &p->points[i];
        int series = place_of(c->label, c->series, q->label);
        if (is_drawn(q) && q->implementation == c->panel[panel] && series >= 0) fprintf(data, "%d\t%.9g\t%d\t%.9g\n", q->ranks, q->rest, series + 1, q->peak);
    }
    fputs("\n\n-9\tnan\t0\n", data);
    for (int s = 0; s < c->series; s++) {
        double a, b;
        const struct probed_point *q = NULL;
        for (int i = 0; i < p->point_count && !q; i++)
            if (is_drawn(&p->points[i]) && p->points[i].label == c->label[s] && p->points[i].implementation == c->panel[panel]) q = &p->points[i];
        if (!q) continue;
        probed_rest_theory(p, q, &a, &b);
        for (int k = 0; k <= CURVE_POINTS; k++) {
            double n = low + (high - low) * k / CURVE_POINTS;
            fprintf(data, "%.6g\t%.9g\t%d\n", n, a + b / n, s + 1);
        }
        fputs("\n", data);
    }
}

void figure_memory(const struct view *v, const struct probed *p, struct figure_files out, struct figure *f) {
    struct chosen c;
    double top = 0, low = INFINITY, high = 0;
    int across, lines;
    choose(p, &c);
    for (int i = 0; i < p->point_count; i++) {
        const struct probed_point *q = &p->points[i];
        if (!is_drawn(q)) continue;
        top = fmax(top, fmax(fmax(q->rest, q->peak), q->rest_theory)); // fmax leaves NaN out
        low = fmin(low, q->ranks), high = fmax(high, q->ranks);
    }
    if (!c.panels) snprintf(f->why, sizeof f->why, "no data: no check of this run judged memory at rest (memory-rest, profile memory)");
    figure_note(f, c.series_left, "configurations are left out");
    figure_note(f, c.panels_left, "implementations are left out");
    add_provenance(v, p, f);
    put_titles(out.data, &p->implementations, c.panel, c.panels);
    for (int s = 0; s < c.series; s++) {
        char *title = series_title(p, c.label[s]);
        fputs("\n\n", out.data);
        figure_put_quoted(out.data, title, TITLE_WIDTH);
        fputs("\n-9\t-9\n", out.data);
        free(title);
    }
    for (int panel = 0; panel < c.panels; panel++) put_panel(out.data, p, &c, panel, low, high);
    across = least(c.panels, ACROSS) + !c.panels;
    int left = 90, wide = c.panels > 1 ? WIDE_PX : 620, bands = (c.panels + across - 1) / across, pitch = TALL_PX + FIGURE_TICS_PX + FIGURE_LINE_PX;
    int width = left + across * (wide + FIGURE_GAP_PX), key = FIGURE_TOP_PX + bands * pitch;
    lines = figure_put_note(out.head, f, width);
    fprintf(out.head, "width = %d\nheight = %d\nleft = %d\ntop = %d\nwide = %d\ntall = %d\ngap = %d\npitch = %d\nkeytop = %d\n", width,
            key + FIGURE_LINE_PX * (c.series + 1 + lines), left, FIGURE_TOP_PX, wide, TALL_PX, FIGURE_GAP_PX, pitch, key);
    fprintf(out.head, "across = %d\npanels = %d\nseries = %d\nlow = %g\nhigh = %g\nceiling = %.6g\n", across, c.panels, c.series, low, high, 1.08 * top);
    free(c.panel);
    free(c.label);
}

// ---- traffic ----
// Rows from above: a name for each implementation, then its bars.
struct bars { FILE *rows, *marks, *gloo, *parts[PARTS]; int count; double most; };

static double put_bar(struct bars *b, const struct probed_point *q) {
    double at = 0;
    for (int k = 0; k < PARTS; k++) {
        double bytes = fmax(q->sent[k], 0);
        if (bytes > 0) fprintf(b->parts[k], "%.9g\t%.9g\t%d\n", at, at + bytes, b->count);
        at += bytes;
    }
    bool sockets = q->sent[PART_SOCKET_FORWARD] > 0 || q->sent[PART_SOCKET_BACKWARD] > 0 || q->sent[PART_SOCKET_OTHER] > 0;
    if (isfinite(q->sent_theory)) fprintf(b->marks, "%.9g\t%d\n", q->sent_theory, b->count);
    if (isfinite(q->sent_gloo) && sockets) fprintf(b->gloo, "%.9g\t%d\n", q->sent_gloo, b->count);
    return fmax(at, fmax(isfinite(q->sent_theory) ? q->sent_theory : 0, isfinite(q->sent_gloo) && sockets ? q->sent_gloo : 0));
}

static void put_row(struct bars *b, const char *text) {
    fprintf(b->rows, "%d\t", ++b->count);
    figure_put_quoted(b->rows, text, TITLE_WIDTH);
    fputc('\n', b->rows);
}

static bool has_bar(const struct probed_point *q) { return q->has_traffic && q->ranks > 1; }

static void put_bars(const struct probed *p, struct bars *b, int *widest, int *left_out) {
    for (int i = 0, last = -1; i < p->point_count; i++) {
        const struct probed_point *q = &p->points[i];
        if (!has_bar(q)) continue;
        if (b->count >= MOST_BARS) {
            ++*left_out;
            continue;
        }
        if (q->implementation != last) put_row(b, p->implementations.items[q->implementation]);
        last = q->implementation;
        char *text = memory_format("%s, N = %d%s", p->labels.items[q->label], q->ranks, q->sizes > 1 ? "" : " *");
        *widest = least(TITLE_WIDTH, text_width(text) > *widest ? text_width(text) : *widest);
        put_row(b, text);
        b->most = fmax(b->most, put_bar(b, q));
        free(text);
    }
}

void figure_traffic(const struct view *v, const struct probed *p, struct figure_files out, struct figure *f) {
    struct bars b = {.most = 0};
    char *texts[PARTS + 3];
    size_t sizes[PARTS + 3];
    int widest = 20, left_out = 0, single = 0, uncounted = 0;
    FILE **streams[PARTS + 3] = {[PARTS] = &b.rows, [PARTS + 1] = &b.marks, [PARTS + 2] = &b.gloo};
    for (int k = 0; k < PARTS + 3; k++) {
        if (k < PARTS) streams[k] = &b.parts[k];
        if (!(*streams[k] = open_memstream(&texts[k], &sizes[k]))) abort();
    }
    put_bars(p, &b, &widest, &left_out);
    for (int i = 0; i < p->point_count; i++) {
        single += has_bar(&p->points[i]) && p->points[i].sizes == 1;
        uncounted += p->points[i].uncounted && p->points[i].ranks > 1;
    }
    for (int k = 0; k < PARTS + 3; k++) fclose(*streams[k]);
    fprintf(out.data, "%s", texts[PARTS]);
    for (int k = 0; k < PARTS; k++) fprintf(out.data, "\n\n\"%s\"\n-9\t-9\t-9\n%s", probed_part_names[k], texts[k]);
    for (int k = 1; k < 3; k++) fprintf(out.data, "\n\n-9\t-9\n%s", texts[PARTS + k]);
    if (!b.count) snprintf(f->why, sizeof f->why, "no data: no case of several ranks was seen by the socket, mpi or nccl probe");
    figure_note(f, single, "bars marked * are of one model size, control messages included; the others are slopes over sizes");
    figure_note(f, left_out, "configurations are left out");
    figure_note(f, uncounted, "more have no bar: the probes lost records, or bytes moved past them");
    add_provenance(v, p, f);
    int left = FIGURE_LETTER_PX * widest + 40, wide = 620, tall = BAR_PX * b.count + 10, key = FIGURE_TOP_PX + tall + FIGURE_TICS_PX, used = 0;
    for (int k = 0; k < PARTS; k++) used += sizes[k] > 0;
    int lines = figure_put_note(out.head, f, left + wide + FIGURE_GAP_PX);
    fprintf(out.head, "width = %d\nheight = %d\nleft = %d\ntop = %d\nwide = %d\ntall = %d\nkeytop = %d\nrows = %d\nceiling = %.6g\ngloo = %d\narray used[%d] = [", left + wide + FIGURE_GAP_PX,
            key + FIGURE_LINE_PX * (used + 2 + (sizes[PARTS + 2] > 0) + lines), left, FIGURE_TOP_PX, wide, tall, key, b.count, b.most > 0 ? 1.05 * b.most : 1, sizes[PARTS + 2] > 0, PARTS);
    for (int k = 0; k < PARTS; k++) fprintf(out.head, "%s%d", k ? ", " : "", sizes[k] > 0);
    fputs("]\n", out.head);
    for (int k = 0; k < PARTS + 3; k++) free(texts[k]);
}

// ---- timeline ----
enum timeline_part { FORWARD, BACKWARD, UPDATE, HARNESS, WAITED, GATHER, REDUCE, COLLECTIVE, SENT, RECEIVED, TIMELINE_PARTS };

static enum timeline_part part_of_phase(const char *name) {
    if (!strcmp(name, "forward") || !strcmp(name, "eval")) return FORWARD;
    if (!strcmp(name, "backward")) return BACKWARD;
    return !strcmp(name, "observe") ? HARNESS : UPDATE;
}

static enum timeline_part part_of_span(const struct probe_span *s) {
    if (s->kind == PROBE_WAIT) return WAITED;
    if (s->kind == PROBE_SEND) return SENT;
    if (s->kind == PROBE_RECEIVE) return RECEIVED;
    if (s->kind != PROBE_COLLECTIVE) return COLLECTIVE;
    bool reduces = s->op == PROBE_REDUCE_SCATTER || s->op == PROBE_ALL_REDUCE || s->op == PROBE_REDUCE || s->op == PROBE_ALL_TO_ALL;
    return s->op == PROBE_ALL_GATHER ? GATHER : reduces ? REDUCE : COLLECTIVE;
}

// Lanes of a rank's row, from above: phases, and over their lower half the waits within them; calls, bytes taken by sockets, bytes given.
static void lane(enum timeline_part k, double row, double *low, double *high) {
    static const double lanes[TIMELINE_PARTS][2] = {[FORWARD] = {-0.42, -0.08}, [BACKWARD] = {-0.42, -0.08}, [UPDATE] = {-0.42, -0.08}, [HARNESS] = {-0.42, -0.08},
        [WAITED] = {-0.26, -0.08}, [GATHER] = {-0.04, 0.12}, [REDUCE] = {-0.04, 0.12}, [COLLECTIVE] = {-0.04, 0.12}, [SENT] = {0.14, 0.27}, [RECEIVED] = {0.28, 0.41}};
    *low = row + lanes[k][0], *high = row + lanes[k][1];
}

static double put_timeline(FILE *data, const struct probed_source *s, bool used[TIMELINE_PARTS]) {
    double begin = INFINITY, end = 0, low, high;
    int ranks = least(s->seen.ranks, MOST_RANKS);
    for (int r = 0; r < ranks; r++) {
        double from, to;
        if (!probe_step_times(&s->seen.by_rank[r], s->seen.step, &from, &to)) continue;
        begin = fmin(begin, from), end = fmax(end, to);
    }
    for (int k = 0; k < TIMELINE_PARTS; k++) {
        fputs("\n\n-9\t-9\t-9\t-9\n", data);
        for (int r = 0; r < ranks; r++) {
            const struct probe_case *p = &s->seen.by_rank[r];
            lane((enum timeline_part)k, r, &low, &high);
            for (int i = 0; k <= HARNESS && i < p->phase_count; i++) {
                const struct probe_phase *ph = &p->phases[i];
                if ((int)part_of_phase(ph->name) != k || ph->end_s <= begin || ph->begin_s >= end) continue;
                used[k] = true;
                fprintf(data, "%.6g\t%.6g\t%.3f\t%.3f\n", 1e3 * (fmax(ph->begin_s, begin) - begin), 1e3 * (fmin(ph->end_s, end) - begin), low, high);
            }
            for (int i = 0; k > HARNESS && i < s->seen.span_count[r]; i++) {
                const struct probe_span *span = &s->seen.spans[r][i];
                if ((int)part_of_span(span) != k) continue;
                used[k] = true;
                double to = fmin(fmax(span->end_s, span->begin_s + 0.001 * (end - begin)), end); // wide enough to be seen
                fprintf(data, "%.6g\t%.6g\t%.3f\t%.3f\n", 1e3 * (span->begin_s - begin), 1e3 * (to - begin), low, high);
            }
        }
    }
    return 1e3 * (end - begin);
}

void figure_timeline(const struct view *v, const struct probed *p, struct figure_files out, struct figure *f) {
    bool used[TIMELINE_PARTS] = {false};
    double spans[MOST_TIMELINES];
    int ranks[MOST_TIMELINES], panels = 0, left_out = 0, rows = 0;
    const struct probed_source *chosen[MOST_TIMELINES];
    for (int i = 0; i < p->implementations.count; i++) {
        const struct probed_source *s = probed_timeline(p, i);
        if (s && panels == MOST_TIMELINES) left_out++;
        if (s && panels < MOST_TIMELINES) chosen[panels++] = s;
    }
    for (int i = 0; i < panels; i++) {
        char *title = memory_format("%s: %s, step %d", chosen[i]->c->implementation, chosen[i]->c->case_id, chosen[i]->seen.step);
        fprintf(out.data, "%d\t", i + 1);
        figure_put_quoted(out.data, title, 100);
        fputc('\n', out.data);
        free(title);
    }
    for (int i = 0; i < panels; i++) {
        spans[i] = put_timeline(out.data, chosen[i], used);
        ranks[i] = least(chosen[i]->seen.ranks, MOST_RANKS);
        rows += ranks[i];
    }
    if (!panels) snprintf(f->why, sizeof f->why, "no data: no case of this run has the phases of a whole step");
    add_words(f, " ", "In the phases, below: the thread that trains waits, for communication or for anything else. A nonblocking call of MPI lasts until the program is told of its end; one of NCCL as long as its "
              "start. All are drawn at least 1/1000 of the step long.");
    figure_note(f, left_out, "implementations are left out");
    add_provenance(v, p, f);
    int left = 90, pitch = FIGURE_TICS_PX + FIGURE_LINE_PX, key = FIGURE_TOP_PX + rows * LANES_PX + panels * pitch, titles = 0;
    for (int k = 0; k < TIMELINE_PARTS; k++) titles += used[k];
    int lines = figure_put_note(out.head, f, left + STEP_PX + FIGURE_GAP_PX);
    fprintf(out.head, "width = %d\nheight = %d\nleft = %d\ntop = %d\nwide = %d\nkeytop = %d\npanels = %d\nlane = %d\npitch = %d\n", left + STEP_PX + FIGURE_GAP_PX,
            key + FIGURE_LINE_PX * (titles + 2 + lines), left, FIGURE_TOP_PX, STEP_PX, key, panels, LANES_PX, pitch);
    for (int k = 0; k < 3; k++) {
        fprintf(out.head, k == 0 ? "array used[%d] = [" : k == 1 ? "array ranks[%d] = [" : "array span[%d] = [", k == 0 ? TIMELINE_PARTS : panels + !panels);
        for (int i = 0; i < (k == 0 ? (int)TIMELINE_PARTS : panels); i++) fprintf(out.head, "%s%.6g", i ? ", " : "", k == 0 ? used[i] : k == 1 ? ranks[i] : spans[i]);
        fputs(panels || k == 0 ? "]\n" : "0]\n", out.head);
    }
}
