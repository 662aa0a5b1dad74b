// What the plots of measured series share. See plot_draw.h.
#include "harness/report/plot_draw.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/report.h"
#include "harness/report/text.h"

enum { TITLE_WIDTH = 60, BELOW_PX = 26 };

// ---- where it was measured ----
static const char *member(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

char *plot_machine(const json_t *environment) {
    const char *cpu = member(environment, "cpu"), *host = member(environment, "host");
    int cores = (int)json_integer_value(json_object_get(environment, "cores"));
    return memory_format("%s, %d cores%s%s", *cpu ? cpu : "an unknown processor", cores, *host ? ", host " : "", host);
}

char *plot_versions(const json_t *environment, const json_t *implementations) {
    const char *name, *implementation, *mpi = member(json_object_get(environment, "libraries"), "mpirun");
    char *out = memory_format("fsdpmark %s%s%s", *member(environment, "version") ? member(environment, "version") : "?", *mpi ? ", " : "", mpi);
    json_t *plan, *version;
    json_object_foreach((json_t *)implementations, implementation, plan) {
        json_object_foreach(json_object_get(plan, "versions"), name, version) {
            char *words = memory_format("%s %s", name, json_is_string(version) ? json_string_value(version) : "?");
            if (!strstr(out, words)) {
                char *longer = memory_format("%s, %s", out, words);
                free(out);
                out = longer;
            }
            free(words);
        }
    }
    return out;
}

char *plot_fabric(const json_t *environment) {
    json_t *one = json_object_get(environment, "fabric"), *all = json_object_get(environment, "fabrics"), *fabric;
    char *out = memory_text("");
    for (size_t i = 0; i < (one ? 1 : json_array_size(all)); i++) {
        fabric = one ? one : json_array_get(all, i);
        char *longer = memory_format("%s%s%s (%s)", out, i ? ", " : "", member(fabric, "name"), member(fabric, "title"));
        free(out);
        out = longer;
    }
    return out;
}

char *plot_bars(int rounds) {
    if (rounds >= STATISTICS_LEAST) return NULL;
    return rounds == 1 ? memory_text("Bars: the spread of the steps of one round, which is no interval of what another round would give")
                       : memory_format("Bars: of %d rounds, fewer than the %d that an interval of 95 %% needs: they hold the median of each", rounds, STATISTICS_LEAST);
}

static void add(struct figure *f, const char *before, const char *text, const char *after) {
    size_t used = strlen(f->note);
    if (text && *text) snprintf(f->note + used, sizeof f->note - used, "%s%s%s%s", used ? " " : "", before, text, after);
}

static void add_about(struct figure *f, const struct plot_about *a) {
    const char *note = a->note ? a->note : "";
    char day[16];
    snprintf(day, sizeof day, "%.10s", a->date ? a->date : "");
    add(f, "", a->interval ? a->interval : "Bars: interval of at least 95 % for the median, by order statistics", ".");
    add(f, "", note, *note && note[strlen(note) - 1] == '.' ? "" : ".");
    add(f, "Machine: ", a->machine, ".");
    add(f, "Fabric: ", a->fabric, ".");
    add(f, "Versions: ", a->versions, ".");
    add(f, "Date: ", day, ".");
}

// ---- a figure under way ----
void plot_begin(struct plot_draft *d) {
    *d = (struct plot_draft){0};
    d->data = open_memstream(&d->data_text, &d->data_bytes);
    d->head = open_memstream(&d->head_text, &d->head_bytes);
    if (!d->data || !d->head) abort();
}

void plot_put_text(FILE *head, const char *name, const char *text) {
    fprintf(head, "%s = '", name);
    for (const char *p = text ? text : ""; *p; p++) fputc(figure_harmless(*p), head);
    fputs("'\n", head);
}

void plot_layout(struct plot_draft *d, const struct plot_about *about, int left, int wide, int tall, int key_lines) {
    int width = left + wide + FIGURE_GAP_PX, key = FIGURE_TOP_PX + tall + PLOT_KEY_GAP_PX;
    add_about(&d->figure, about);
    plot_put_text(d->head, "name", about->name);
    plot_put_text(d->head, "heading", about->title);
    int lines = figure_put_note(d->head, &d->figure, width);
    fprintf(d->head, "width = %d\nheight = %d\nleft = %d\ntop = %d\nwide = %d\ntall = %d\nkeytop = %d\n", width,
            key + FIGURE_LINE_PX * (key_lines + lines) + BELOW_PX, left, FIGURE_TOP_PX, wide, tall, key);
}

static bool is_file_name(const char *s) {
    return s && *s && isalnum((unsigned char)*s) && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == strlen(s);
}

static bool write_and_draw(struct plot_draft *d, const char *name, const char *script, const char *folder, struct error *error) {
    d->figure.name = name;
    if (!is_file_name(name)) return error_set(error, "figure '%s': expected a name of letters, digits and -", name ? name : "");
    if (!report_folder(folder, error) || !figure_write(folder, name, d->head_text, script, d->data_text, error)) return false;
    figure_draw(folder, &d->figure);
    return true;
}

bool plot_end(struct plot_draft *d, const struct plot_about *about, const char *script, const char *folder, char why[PLOT_WHY], struct error *error) {
    fclose(d->data);
    fclose(d->head);
    snprintf(d->figure.why, sizeof d->figure.why, "%s", d->why);
    bool ok = write_and_draw(d, about->name, script, folder, error);
    snprintf(why, PLOT_WHY, "%s", d->figure.why);
    free(d->data_text);
    free(d->head_text);
    return ok;
}

// ---- axes ----
const struct plot_range plot_range_none = {INFINITY, -INFINITY, false};

void plot_range_add(struct plot_range *r, double x) {
    if (!isfinite(x)) return;
    r->low = fmin(r->low, x);
    r->high = fmax(r->high, x);
}

void plot_range_widen(struct plot_range *r, double share, bool from_zero) {
    if (!(r->low <= r->high)) *r = (struct plot_range){1, 10, r->logarithmic};
    if (r->logarithmic) {
        double factor = pow(r->high / r->low, share);
        factor = fmax(factor, 1.05);
        r->low /= factor, r->high *= factor;
        return;
    }
    if (from_zero && r->low > 0) r->low = 0;
    double room = share * (r->high - r->low);
    if (!(room > 0)) room = fmax(fabs(r->high), 1) * share;
    r->high += room;
    if (r->low != 0 || !from_zero) r->low -= room;
}

// Names of powers of a unit's base, from 1.
static const struct scale { double base; const char *names[5]; } scales[] = {
    [PLOT_BYTES] = {1024, {"B", "KiB", "MiB", "GiB", "TiB"}},
    [PLOT_BITS_PER_SECOND] = {1000, {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"}},
    [PLOT_BYTES_PER_SECOND] = {1000, {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"}},
    [PLOT_COUNT] = {1000, {"", "k", "M", "G", "T"}},
    [PLOT_RATIO] = {0, {""}},
};

const char *plot_value(double x, enum plot_unit unit, char text[32]) {
    const struct scale *s = &scales[unit];
    int power = 0;
    while (s->base > 0 && power < 4 && fabs(x) >= s->base * (1 - 1e-9)) x /= s->base, power++;
    snprintf(text, 32, "%.4g%s%s", x, *s->names[power] && unit != PLOT_COUNT ? " " : "", s->names[power]);
    return text;
}

static void put_tic(FILE *head, bool *first, double at, enum plot_unit unit) {
    char text[32];
    fprintf(head, "%s'%s' %.12g", *first ? "" : ", ", plot_value(at + 0.0, unit, text), at + 0.0); // no -0
    *first = false;
}

// 1, 2 and 5 of a decade where there is room for them; else 1 of each, or of each third. Bytes: powers of 2, 4, 8, ...
static void put_logarithmic_tics(FILE *head, const struct plot_range *r, enum plot_unit unit, bool *first) {
    if (unit == PLOT_BYTES) {
        int doublings = (int)ceil(log2(r->high / r->low)), step = doublings / 9 + 1;
        for (int k = (int)ceil(log2(r->low) - 1e-9); k <= log2(r->high) + 1e-9; k++)
            if (k % step == 0) put_tic(head, first, ldexp(1, k), unit);
        return;
    }
    double decades = log10(r->high / r->low);
    for (int k = (int)floor(log10(r->low)) - 1; k <= log10(r->high); k++)
        for (int m = 1; m <= 9; m++) {
            double at = m * pow(10, k);
            bool shown = m == 1 ? decades < 8 || k % 3 == 0 : m == 2 || m == 5 ? decades < 2.7 : m == 3 || m == 7 ? decades < 0.9 : decades < 0.5;
            if (shown && at >= r->low * (1 - 1e-9) && at <= r->high * (1 + 1e-9)) put_tic(head, first, at, unit);
        }
}

// About six, at 1, 2 or 5 times a power of ten; of bytes at a power of two.
static void put_linear_tics(FILE *head, const struct plot_range *r, enum plot_unit unit, bool *first) {
    double rough = (r->high - r->low) / 6, power = pow(10, floor(log10(rough))), step = rough / power < 1.5 ? power : rough / power < 3.5 ? 2 * power : rough / power < 7.5 ? 5 * power : 10 * power;
    if (unit == PLOT_BYTES) step = exp2(round(log2(rough)));
    for (double k = ceil(r->low / step - 1e-9); k * step <= r->high + 1e-9 * step; k++) put_tic(head, first, k * step, unit);
}

void plot_put_axis(FILE *head, const char *axis, const struct plot_range *r, enum plot_unit unit) {
    bool first = true;
    fprintf(head, "set %stics (", axis);
    if (r->logarithmic && r->high / r->low > 1.6) put_logarithmic_tics(head, r, unit, &first);
    else put_linear_tics(head, r, unit, &first);
    fprintf(head, ")\nset %srange [%.12g:%.12g]\n", axis, r->low, r->high);
    if (r->logarithmic) fprintf(head, "set logscale %s\n", axis);
}

// ---- series ----
static bool drawable(double x, bool above_zero) { return isfinite(x) && (!above_zero || x > 0); }

static void put_point(FILE *data, const struct plot_point *p, bool bars, bool above_zero, struct plot_range *x, struct plot_range *y) {
    bool has = bars && drawable(p->y.low, above_zero) && isfinite(p->y.high);
    fprintf(data, "%.12g\t%.9g\t%.9g\t%.9g\n", p->x, p->y.value, has ? p->y.low : p->y.value, has ? p->y.high : p->y.value);
    plot_range_add(x, p->x);
    plot_range_add(y, p->y.value);
    if (!has) return;
    plot_range_add(y, p->y.low);
    plot_range_add(y, p->y.high);
}

// The place of a colour: that of the first series of the name.
static int style_of(const struct plot_series *series, int at) {
    int style = 0;
    for (int i = 0; i < at; i++) {
        bool before = false;
        for (int k = 0; k < i; k++) before |= !strcmp(series[k].name, series[i].name);
        if (!strcmp(series[i].name, series[at].name)) return style;
        style += !before;
    }
    return style;
}

int plot_put_series(struct plot_draft *d, int count, const struct plot_series *series, bool above_zero, struct plot_range *x, struct plot_range *y) {
    int used = 0, left_out = 0, series_left = 0, styles[2 * PLOT_SERIES], dashed[2 * PLOT_SERIES];
    for (int i = 0; i < count; i++) {
        const struct plot_series *s = &series[i];
        int good = 0, style = style_of(series, i);
        for (int k = 0; k < s->count; k++) good += s->points[k].x > 0 && isfinite(s->points[k].x) && drawable(s->points[k].y.value, above_zero);
        left_out += s->count - good;
        series_left += style >= PLOT_SERIES || used >= 2 * PLOT_SERIES;
        if (!good || style >= PLOT_SERIES || used >= 2 * PLOT_SERIES) continue;
        char *title = memory_format("%s%s", s->name, s->predicted ? ", predicted" : "");
        if (used) fputs("\n\n", d->data);
        figure_put_quoted(d->data, title, TITLE_WIDTH);
        fputs("\n", d->data);
        free(title);
        for (int k = 0; k < s->count; k++)
            if (s->points[k].x > 0 && isfinite(s->points[k].x) && drawable(s->points[k].y.value, above_zero))
                put_point(d->data, &s->points[k], !s->predicted, above_zero, x, y);
        styles[used] = style + 1;
        dashed[used++] = s->predicted;
    }
    figure_note(&d->figure, left_out, "points without a figure that can be drawn are left out");
    figure_note(&d->figure, series_left, "series are left out");
    if (!used) snprintf(d->why, sizeof d->why, "no data: no series has a point that can be drawn");
    fprintf(d->head, "series = %d\narray styles[%d]\narray dashed[%d]\n", used, used + !used, used + !used);
    for (int i = 0; i < used; i++) fprintf(d->head, "styles[%d] = %d\ndashed[%d] = %d\n", i + 1, styles[i], i + 1, dashed[i]);
    return used;
}
