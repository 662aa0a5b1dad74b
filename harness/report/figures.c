// What the figures show. Each gathers its data from the view, writes them as blocks of a data file, and puts the
// numbers that its script needs in front of it. Names from data go into data files only, never into a script.
//
// Sizes are pixels, fixed here rather than left to gnuplot: panels of a figure must agree, and a note must have its room.
#include "harness/report/figures.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/ratios.h"
#include "harness/report/text.h"
#include "results.h"

enum {
    MOST_SERIES = 8, MOST_ROWS = 32, MOST_PANELS = 12, ACROSS = 3, MOST_FAMILIES = 64, MOST_COLUMNS = 10,
    LABEL_WIDTH = 44, TITLE_WIDTH = 50, LETTER_PX = FIGURE_LETTER_PX, LINE_PX = FIGURE_LINE_PX, ROW_PX = FIGURE_ROW_PX, TOP_PX = FIGURE_TOP_PX,
    TICS_PX = FIGURE_TICS_PX, GAP_PX = FIGURE_GAP_PX
};

void figure_put_quoted(FILE *out, const char *s, int width) {
    char *label = text_shorten(TEXT_GNUPLOT, s, width);
    fprintf(out, "\"%s\"", *label ? label : " ");
    free(label);
}

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

void figure_note(struct figure *f, int count, const char *what) {
    size_t used = strlen(f->note);
    if (count > 0) snprintf(f->note + used, sizeof f->note - used, "%s%d %s.", used ? " " : "", count, what);
}

// A version or a machine's name may hold anything; gnuplot would run what stands in back quotes.
char figure_harmless(char c) { return (unsigned char)c < 128 && (isalnum((unsigned char)c) || strchr(" .,:;()+-/@_%|<>=*", c)) ? c : '?'; }

int figure_put_note(FILE *head, const struct figure *f, int width) {
    char *text = NULL;
    size_t bytes;
    int lines = 0;
    FILE *wrapped = open_memstream(&text, &bytes);
    if (!wrapped) abort();
    text_wrap(wrapped, f->note, (width - 24) / LETTER_PX, 0);
    fclose(wrapped);
    fputs("note = \"", head);
    for (const char *p = text; *p; p++)
        if (*p != '\n') fputc(figure_harmless(*p), head);
        else if (++lines && p[1]) fputs("\\n", head);
    if (!*f->note) lines = 0;
    fprintf(head, "\"\nlines = %d\n", lines);
    free(text);
    return lines;
}

static int widest(const char *const *names, int count, int limit) {
    int width = 0;
    for (int i = 0; i < count; i++) width = most(width, text_width(names[i]));
    return LETTER_PX * least(width, limit);
}

// ---- ratios ----
// A block of names at 1, 2, ...; the blank is what stands in place of a name where it was written before.
static void put_axis(FILE *data, const char *const *names, int count, int width) {
    for (int i = 0; i < count; i++) {
        fprintf(data, "%d\t", i + 1);
        figure_put_quoted(data, names[i], width);
        fputs("\t\" \"\n", data);
    }
}

// Blocks: rows, panels, a title for each series (its point lies outside the picture), the points of each panel.
static void put_ratios(FILE *data, const struct ratios *r) {
    put_axis(data, r->rows, r->row_count, LABEL_WIDTH);
    fputs("\n\n", data);
    put_axis(data, r->panels, r->panel_count, TITLE_WIDTH);
    for (int s = 0; s < r->series_count; s++) {
        fputs("\n\n", data);
        figure_put_quoted(data, r->series[s], TITLE_WIDTH);
        fputs("\n1e9\t-9\n", data);
    }
    for (int p = 0, at = 0; p < r->panel_count; p++) {
        fputs("\n\n-9\t1e9\t0\tnan\n", data); // so that no block is empty
        for (int s = 0; s < r->series_count; s++)
            for (int row = 0; row < r->row_count; row++) {
                const struct ratio_cell *c = &r->cells[at];
                bool there = at < r->cell_count && c->panel == p && c->series == s && c->row == row;
                if (there) fprintf(data, "%d\t%.9g\t%d\t%.9g\n", row + 1, fmin(c->worst, r->high), s + 1, c->median);
                else fprintf(data, "%d\tnan\t%d\tnan\n", row + 1, s + 1);
                at += there;
            }
    }
}

// Panels in bands of at most ACROSS, the key and the note below.
static void put_layout(FILE *head, const struct ratios *r, const struct figure *f, int left, int wide, int tall) {
    int across = least(r->panel_count, ACROSS), bands = (r->panel_count + across - 1) / across, pitch = tall + TICS_PX + LINE_PX;
    int width = left + across * (wide + GAP_PX), key = TOP_PX + bands * pitch;
    int lines = figure_put_note(head, f, width), height = key + LINE_PX * (r->series_count + 1 + lines);
    fprintf(head, "width = %d\nheight = %d\nleft = %d\ntop = %d\nwide = %d\ntall = %d\ngap = %d\npitch = %d\nkeytop = %d\n", width, height,
            left, TOP_PX, wide, tall, GAP_PX, pitch, key);
    fprintf(head, "across = %d\npanels = %d\nseries = %d\nrows = %d\nlow = %g\nhigh = %g\n", across, r->panel_count, r->series_count,
            r->row_count, r->low, r->high);
}

static void note_ratios(const struct ratios *r, struct figure *f, const char *series, const char *cells) {
    figure_note(f, r->rows_left, "tensors with smaller ratios are left out");
    figure_note(f, r->series_left, series);
    figure_note(f, r->panels_left, "implementations are left out");
    figure_note(f, r->unplaced, cells);
    figure_note(f, r->beyond, "not finite, or beyond the axis, are drawn at its upper end");
}

static bool is_empty(const struct ratios *r, struct figure *f, const char *what) {
    if (!r->cell_count) snprintf(f->why, sizeof f->why, "no data: %s", what);
    return !r->cell_count;
}

static void write_ratio(const struct view *v, const struct probed *probed, struct figure_files out, struct figure *f) {
    (void)probed;
    struct ratios r;
    ratios_by_tensor(v, (struct ratio_limits){MOST_PANELS, MOST_SERIES, MOST_ROWS}, &r);
    if (!is_empty(&r, f, "no check of this run recorded figures by tensor above 0 with a bound above 0")) {
        note_ratios(&r, f, "checks with smaller ratios are left out", "pairs of tensor and check have no figure above 0 and are not drawn");
        put_ratios(out.data, &r);
        put_layout(out.head, &r, f, widest(r.rows, r.row_count, LABEL_WIDTH) + 30, r.panel_count > 1 ? 380 : 560, ROW_PX * most(r.row_count, 3));
    }
    ratios_free(&r);
}

static void write_ranks(const struct view *v, const struct probed *probed, struct figure_files out, struct figure *f) {
    (void)probed;
    struct ratios r;
    ratios_by_ranks(v, (struct ratio_limits){MOST_PANELS, MOST_SERIES, MOST_ROWS}, &r);
    if (!is_empty(&r, f, "no result of a calibrated case of this run has a figure and a bound above 0")) {
        note_ratios(&r, f, "strategies with smaller ratios are left out", "pairs of strategy and ranks have no figure above 0 and are not drawn");
        put_ratios(out.data, &r);
        put_layout(out.head, &r, f, 90, most(70 * r.row_count, r.panel_count > 1 ? 380 : 660), 340);
    }
    ratios_free(&r);
}

// ---- verdicts ----
// Families by their worst verdict, the worst first; equals keep their order.
static int *order_families(const struct view *v) {
    int *worst = memory_zeros((size_t)v->families.count + 1, sizeof *worst), *order = memory_zeros((size_t)v->families.count + 1, sizeof *order);
    for (int i = 0; i < v->group_count; i++) {
        int family = names_find(&v->families, v->groups[i].family);
        worst[family] = most(worst[family], verdict_severity(v->groups[i].verdict));
    }
    for (int severity = VERDICT_COUNT - 1, count = 0; severity >= 0; severity--)
        for (int i = 0; i < v->families.count; i++)
            if (worst[i] == severity) order[count++] = i;
    free(worst);
    return order;
}

static void put_cell(FILE *data, const struct view_group *g, int column, int row) {
    int worst = g->tally.of[g->verdict];
    fprintf(data, "%d\t%d\t\"%s %d", column, row, verdict_name(g->verdict), worst);
    if (worst < g->case_count) fprintf(data, " of %d", g->case_count);
    if (tally_is_waived(&g->tally)) fputs(" waived", data);
    fputs("\"\n", data);
}

// A block of names with their places; a block is never empty, its first point lies outside the picture.
static void put_names(FILE *data, const struct names *names, const int *order, int count, int width) {
    fputs("-9\t\" \"\n", data);
    for (int i = 0; i < count; i++) {
        fprintf(data, "%d\t", i + 1);
        figure_put_quoted(data, names->items[order ? order[i] : i], width);
        fputc('\n', data);
    }
    fputs("\n\n", data);
}

static void write_verdicts(const struct view *v, const struct probed *probed, struct figure_files out, struct figure *f) {
    (void)probed;
    FILE *data = out.data, *head = out.head;
    int *families = order_families(v);
    int rows = least(v->families.count, MOST_FAMILIES), columns = least(v->implementations.count, MOST_COLUMNS), slant = 0;
    if (!columns) snprintf(f->why, sizeof f->why, "no data: the run judged no implementation");
    put_names(data, &v->families, families, rows, LABEL_WIDTH);
    put_names(data, &v->implementations, NULL, columns, 30);
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
        fputs("-9\t-9\t\" \"\n", data);
        for (int i = 0; i < v->group_count; i++) {
            const struct view_group *g = &v->groups[i];
            int row = 0, column = names_find(&v->implementations, g->implementation);
            while (row < rows && strcmp(v->families.items[families[row]], g->family)) row++;
            if ((int)g->verdict == verdict && row < rows && column >= 0 && column < columns) put_cell(data, g, column + 1, row + 1);
        }
        fputs("\n\n", data);
    }
    for (int i = 0; i < columns; i++) slant |= text_width(v->implementations.items[i]) > 17;
    figure_note(f, v->families.count - rows, "families with no worse verdict are left out");
    figure_note(f, v->implementations.count - columns, "implementations are left out");
    int left = widest(v->families.items, v->families.count, LABEL_WIDTH) + 30, wide = most(135 * columns, 420), tall = ROW_PX * rows;
    int lines = figure_put_note(head, f, left + wide + GAP_PX), keytop = TOP_PX + tall + 40 + 110 * slant;
    fprintf(head, "width = %d\nheight = %d\nleft = %d\ntop = %d\nwide = %d\ntall = %d\nkeytop = %d\nrows = %d\ncolumns = %d\nslant = %d\n",
            left + wide + GAP_PX, keytop + LINE_PX * (2 + lines), left, TOP_PX, wide, tall, keytop, rows, columns, slant);
    free(families);
}

// ---- files ----
static const struct {
    const char *name, *title, *caption, *script;
    void (*write)(const struct view *, const struct probed *, struct figure_files, struct figure *);
    bool of_probes;
} kinds[FIGURES] = {
    {"ratio", "Figure over bound, by tensor and check", "Large: the worst of all cases, ranks and labels; small: their median. Right of the "
     "line is a FAIL. Moments and gradients count for their parameter. Exact checks, whose bound is 0, are not drawn.", ratio_gp, write_ratio, false},
    {"ranks", "Figure over bound against ranks", "The worst of the calibrated cases of each strategy at each number of ranks; above the line is a "
     "FAIL. Points are moved sideways so that none hides another.", ranks_gp, write_ranks, false},
    {"verdicts", "Verdicts by family", "The worst verdict of each implementation in each family of cases, and how many of its cases have it.",
     verdicts_gp, write_verdicts, false},
    {"memory", "Memory against ranks", "Bytes per parameter that the fullest rank holds, seen from outside: large after the last update, small the largest peak "
     "of a phase, each the slope over model sizes, so that what does not grow with the model cancels; the lines are the theory's a + b / N at rest.", memory_gp, figure_memory, true},
    {"traffic", "Traffic of a step by collective", "Bytes per parameter that a rank sends in a training step, seen from outside and stacked by what moved them; the "
     "black stroke is the nearest of what the strategy allows, every collective at its minimum.", traffic_gp, figure_traffic, true},
    {"timeline", "One step on each rank", "Above: the phases of one step of each rank, as it marked them; below: when its communication was under way, as the probes "
     "saw the calls.", timeline_gp, figure_timeline, true},
};

static bool write_file(const char *folder, const char *name, const char *extension, const char *head, const char *body, struct error *error) {
    char *path = memory_format("%s/%s%s", folder, name, extension);
    FILE *out = fopen(path, "w");
    bool ok = out && fputs(head, out) >= 0 && fputs(body, out) >= 0;
    if (out && fclose(out)) ok = false;
    if (!ok) error_set(error, "%s: cannot write: %s", path, strerror(errno));
    free(path);
    return ok;
}

bool figure_write(const char *folder, const char *name, const char *head, const char *script, const char *data, struct error *error) {
    return write_file(folder, "style", ".gp", "", style_gp, error) && write_file(folder, name, ".dat", "", data, error) &&
           write_file(folder, name, ".gp", head, script, error);
}

void figure_draw(const char *folder, struct figure *f) {
    static const char *const formats[] = {"svg", "png", "pdf"};
    char *script = memory_format("%s.gp", f->name);
    for (int i = 0; i < 3; i++) {
        char *picture = memory_format("%s/%s.%s", folder, f->name, formats[i]);
        if (*f->why || !gnuplot_run(folder, script, formats[i], f->why)) remove(picture); // of an earlier report, or half drawn
        free(picture);
    }
    free(script);
}

static bool make_one(const struct view *v, const struct probed *p, const char *folder, int kind, struct figure *f, struct error *error) {
    char *data_text = NULL, *head_text = NULL;
    size_t data_bytes, head_bytes;
    FILE *data = open_memstream(&data_text, &data_bytes), *head = open_memstream(&head_text, &head_bytes);
    if (!data || !head) return error_set(error, "%s: out of memory", folder);
    *f = (struct figure){.name = kinds[kind].name, .title = kinds[kind].title, .caption = kinds[kind].caption,
                         .absent = kinds[kind].of_probes && !p->source_count};
    fprintf(head, "name = '%s'\n", f->name);
    if (f->absent) snprintf(f->why, sizeof f->why, "no probe was loaded in this run");
    else kinds[kind].write(v, p, (struct figure_files){data, head}, f);
    fprintf(head, "heading = '%s'\n", f->title);
    fclose(data);
    fclose(head);
    bool ok = *f->why || figure_write(folder, f->name, head_text, kinds[kind].script, data_text, error);
    if (ok) figure_draw(folder, f);
    free(data_text);
    free(head_text);
    return ok;
}

bool figures_make(const struct view *v, const struct probed *p, const char *folder, struct figure out[FIGURES], struct error *error) {
    if (!write_file(folder, "style", ".gp", "", style_gp, error)) return false; // also where no figure has data
    for (int i = 0; i < FIGURES; i++)
        if (!make_one(v, p, folder, i, &out[i], error)) return false;
    return true;
}
