// A comparison on the terminal. See compare.h.
//
// Rows that show nothing are counted, not listed, unless all are asked for.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "harness/report/compare.h"
#include "harness/report/text.h"

enum { COLUMNS = 7, WHAT_LEAST = 44, MOST_VERDICTS = 40 };

enum compare_unit compare_unit_of(const char *quantity) {
    return strstr(quantity, "seconds") ? COMPARE_SECONDS : strstr(quantity, "bytes") ? COMPARE_BYTES : COMPARE_NUMBER;
}

const char *compare_value(double x, enum compare_unit unit, char text[32]) {
    static const struct { double from, scale; const char *name; } seconds[] = {{1, 1, "s"}, {1e-3, 1e3, "ms"}, {0, 1e6, "us"}};
    static const struct { double from, scale; const char *name; } bytes[] = {{0x1p30, 0x1p-30, "GiB"}, {0x1p20, 0x1p-20, "MiB"}, {0x1p10, 0x1p-10, "KiB"}, {0, 1, "B"}};
    int i = 0;
    if (!isfinite(x)) return strcpy(text, "-");
    if (unit == COMPARE_SECONDS) {
        while (fabs(x) < seconds[i].from) i++;
        snprintf(text, 32, "%.4g %s", x * seconds[i].scale, seconds[i].name);
    } else if (unit == COMPARE_BYTES) {
        while (fabs(x) < bytes[i].from) i++;
        snprintf(text, 32, "%.4g %s", x * bytes[i].scale, bytes[i].name);
    } else {
        snprintf(text, 32, "%.6g", x);
    }
    return text;
}

static bool shows(const struct compare_row *r) { return r->worse || (compare_tells(r) && strcmp(r->word, "equal") && strcmp(r->word, "no difference shown")); }

static void cells_of(const struct compare_row *r, char *cells[COLUMNS]) {
    char a[32], b[32];
    cells[0] = text_copy(TEXT_TERMINAL, r->what);
    cells[1] = text_copy(TEXT_TERMINAL, r->quantity);
    cells[2] = memory_text(compare_value(r->before.value, r->unit, a));
    cells[3] = memory_text(compare_value(r->after.value, r->unit, b));
    cells[4] = isnan(r->ratio.value) ? memory_text("-") : memory_format("%.3f", r->ratio.value);
    cells[5] = isnan(r->ratio.low) ? memory_text("-") : memory_format("[%.3f, %.3f]%s", r->ratio.low, r->ratio.high, compare_tells(r) ? "" : " *");
    cells[6] = memory_format("%s%s", r->word, r->worse ? " !" : "");
}

static void put_row(char *const cells[COLUMNS], const int width[COLUMNS], const char *color, FILE *out) {
    for (int k = 0; k < COLUMNS; k++) {
        int pad = width[k] - text_width(cells[k]);
        bool right = k >= 2 && k <= 5;
        fprintf(out, "%s%*s%s%s%s%*s", k ? "  " : "", right && pad > 0 ? pad : 0, "", color && k == 6 ? color : "", cells[k], color && k == 6 ? "\x1b[0m" : "",
                !right && pad > 0 && k < COLUMNS - 1 ? pad : 0, "");
    }
    fputc('\n', out);
}

static const char *color_of(const struct compare_row *r, bool color) {
    if (!color) return NULL;
    if (r->worse) return "\x1b[1;31m";
    return !strcmp(r->word, "faster") || !strcmp(r->word, "less") ? "\x1b[32m" : "\x1b[33m";
}

static void put_rows(const struct comparison *c, const struct report_options *o, FILE *out) {
    static const char *const heads[COLUMNS] = {"what", "quantity", "before", "after", "ratio", "interval", "word"};
    int width[COLUMNS], count = 0, rest = 0;
    char *(*cells)[COLUMNS] = memory_zeros((size_t)c->row_count + 1, sizeof *cells), *head[COLUMNS];
    const struct compare_row **rows = memory_zeros((size_t)c->row_count + 1, sizeof *rows);
    for (int i = 0; i < c->row_count; i++)
        if (o->verbose || shows(&c->rows[i])) cells_of(rows[count] = &c->rows[i], cells[count]), count++;
    for (int k = 0; k < COLUMNS; k++) {
        head[k] = memory_text(heads[k]);
        width[k] = text_width(heads[k]);
        for (int i = 0; i < count; i++)
            if (text_width(cells[i][k]) > width[k]) width[k] = text_width(cells[i][k]);
        rest += k ? width[k] + 2 : 0;
    }
    int most = o->columns - rest > WHAT_LEAST ? o->columns - rest : WHAT_LEAST;
    if (width[0] > most) width[0] = most;
    if (count) put_row(head, width, NULL, out);
    for (int i = 0; i < count; i++) {
        if (text_width(cells[i][0]) > width[0]) { // whole, above its figures: names may differ anywhere
            fprintf(out, "%s\n", cells[i][0]);
            cells[i][0][0] = 0;
        }
        put_row(cells[i], width, color_of(rows[i], o->color), out);
        if (rows[i]->worse && rows[i]->worst_case) fprintf(out, "    most on %s\n", rows[i]->worst_case);
        if (rows[i]->why && *rows[i]->why) fputs("    ", out), text_put(out, TEXT_TERMINAL, rows[i]->why), fputc('\n', out);
        for (int k = 0; k < COLUMNS; k++) free(cells[i][k]);
    }
    for (int k = 0; k < COLUMNS; k++) free(head[k]);
    free(cells);
    free(rows);
}

static void put_verdicts(const struct comparison *c, const struct report_options *o, FILE *out) {
    int most = o->verbose ? c->verdict_count : MOST_VERDICTS;
    for (int i = 0; i < c->verdict_count && i < most; i++) {
        const struct compare_verdict *v = &c->verdicts[i];
        fprintf(out, "%s%s -> %s%s%s  ", o->color ? v->worse ? "\x1b[1;31m" : "\x1b[32m" : "", verdict_name(v->before), verdict_name(v->after), v->waived ? " (waived)" : "",
                o->color ? "\x1b[0m" : "");
        text_put(out, TEXT_TERMINAL, v->implementation);
        fputs("  ", out);
        text_put(out, TEXT_TERMINAL, v->case_id);
        if (v->check) fputs("  ", out), text_put(out, TEXT_TERMINAL, v->check);
        if (v->message && *v->message) fputs(": ", out), text_put(out, TEXT_TERMINAL, v->message);
        fputs(v->worse ? " !\n" : "\n", out);
    }
    if (c->verdict_count > most) fprintf(out, "... and %d more changed verdicts (-v)\n", c->verdict_count - most);
}

static void put_differences(const struct comparison *c, FILE *out) {
    const char *name;
    json_t *pair;
    json_object_foreach(c->differences, name, pair) {
        char *before = json_dumps(json_array_get(pair, 0), JSON_ENCODE_ANY | JSON_COMPACT), *after = json_dumps(json_array_get(pair, 1), JSON_ENCODE_ANY | JSON_COMPACT);
        fprintf(out, "the runs differ in %s: ", name);
        text_put(out, TEXT_TERMINAL, before);
        fputs(" -> ", out);
        text_put(out, TEXT_TERMINAL, after);
        fputc('\n', out);
        free(before);
        free(after);
    }
}

static void put_one(FILE *out, int count, const char *what, const char *where) {
    if (count) fprintf(out, "%d %s only in the %s run: not compared\n", count, what, where);
}

bool compare_table(const struct comparison *c, const struct report_options *o, FILE *out) {
    int worse = 0, worse_verdicts = 0, hidden = 0, sampled = 0, few = 0;
    for (int i = 0; i < c->row_count; i++)
        worse += c->rows[i].worse, few += !compare_tells(&c->rows[i]), hidden += !shows(&c->rows[i]) && compare_tells(&c->rows[i]), sampled += !c->rows[i].counted && compare_tells(&c->rows[i]);
    for (int i = 0; i < c->verdict_count; i++) worse_verdicts += c->verdicts[i].worse;
    fprintf(out, "run %lld (%.10s) against run %lld (%.10s)\n", (long long)c->after->id, c->after->started, (long long)c->before->id, c->before->started);
    put_differences(c, out);
    put_rows(c, o, out);
    put_verdicts(c, o, out);
    if (!o->verbose && hidden) fprintf(out, "%d rows equal or without a difference shown (-v lists them)\n", hidden);
    if (few)
        fprintf(out, "%d rows tell nothing%s: an interval of 95 %% takes four starts (of bench: rounds) of each run, or six cases\n", few, o->verbose ? "; * covers less" : " (-v lists them)");
    put_one(out, c->series_before, "series", "first");
    put_one(out, c->series_after, "series", "second");
    put_one(out, c->cases_before, "cases", "first");
    put_one(out, c->cases_after, "cases", "second");
    if (c->cases_both + c->series_both == 0) fputs("the runs have no case and no series in common\n", out);
    else fprintf(out, "%d measured rows (%d of samples with an interval, of which 1 in 20 may differ by chance), %d beyond the threshold of %g %%; %d verdicts changed, %d for the worse\n", c->row_count,
                 sampled, worse, 100 * c->threshold, c->verdict_count, worse_verdicts);
    return !ferror(out) && !fflush(out);
}
