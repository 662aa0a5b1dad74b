// The table and the report of measured series. See series_report.h.
#include "harness/report/series_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/protocol/memory.h"
#include "harness/report/compare.h"
#include "harness/report/export.h"
#include "harness/report/plots.h"
#include "harness/report/series_name.h"
#include "harness/report/svg.h"
#include "harness/report/text.h"
#include "results.h"

#define FEW "* covers less than 95 %: fewer than six samples, or rounds of bench"

static int64_t errors_of(const struct stored_series *s) { return json_integer_value(json_object_get(s->facts, "errors")); }

// "12.3 us", "12.1 us to 12.9 us"; a star where the interval is that of the extremes. What does not count has its word, and no figure.
static void put_interval(const struct stored_series *s, char value[32], char range[80], char count[32]) {
    char low[32], high[32];
    const char *fault = series_fault(s, NULL);
    struct interval i = series_interval(0.95, s);
    enum compare_unit unit = compare_unit_of(s->quantity);
    if (fault) {
        snprintf(value, 32, "%s", fault);
        range[0] = count[0] = 0;
        return;
    }
    compare_value(i.value, unit, value);
    snprintf(range, 80, "%s to %s%s", compare_value(i.low, unit, low), compare_value(i.high, unit, high), series_is_thin(s) ? " *" : "");
    snprintf(count, 32, "%d in %d", s->count, s->launch_count);
}

static void put_faults(const struct stored_serieses *series, const json_t *varies, FILE *out) {
    for (int i = 0; i < series->count; i++) {
        const char *why, *fault = series_fault(&series->items[i], &why);
        if (!fault || !*why) continue;
        char *name = series_name(&series->items[i], varies);
        text_put(out, TEXT_TERMINAL, name);
        fprintf(out, ", %s: ", fault);
        text_put(out, TEXT_TERMINAL, why);
        fputc('\n', out);
        free(name);
    }
}

// Whole, for names may differ anywhere; one that is wider than its column stands above its figures.
static void put_name(const char *name, int width, FILE *out) {
    char *text = text_copy(TEXT_TERMINAL, name);
    int wide = text_width(text);
    fprintf(out, "%s%s%*s", text, wide > width ? "\n" : "", wide > width ? width : width - wide, "");
    free(text);
}

bool series_table(const struct stored_serieses *series, const struct report_options *o, FILE *out) {
    json_t *varies = series_varying(series);
    int64_t errors = 0;
    int wide = o->columns > 110 ? 60 : 44;
    bool few = false;
    fprintf(out, "%-*s  %-18s %12s  %-26s %s\n", wide, "series", "quantity", "median", "interval", "samples in starts");
    for (int i = 0; i < series->count; i++) {
        char value[32], range[80], count[32], *name = series_name(&series->items[i], varies), *quantity = text_shorten(TEXT_TERMINAL, series->items[i].quantity, 18);
        put_interval(&series->items[i], value, range, count);
        put_name(name, wide, out);
        fprintf(out, "  %s%*s %12s  %-26s %s\n", quantity, 18 - text_width(quantity), "", value, range, count);
        errors += errors_of(&series->items[i]);
        few |= strchr(range, '*') != NULL;
        free(name);
        free(quantity);
    }
    if (few) fputs(FEW "\n", out);
    put_faults(series, varies, out);
    fprintf(out, "\n%d series, %lld errors\n", series->count, (long long)errors);
    json_decref(varies);
    return !ferror(out) && !fflush(out);
}

// ---- the page ----
#define fill(out, ...) text_fill(out, TEXT_XML, __VA_ARGS__)

static void put_head(const struct stored_run *r, FILE *out) {
    char id[32];
    snprintf(id, sizeof id, "%lld", (long long)r->id);
    fill(out, "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head><meta charset=\"utf-8\"/>"
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/><title>fsdpmark run %</title>\n<style>\n", id);
    fputs(page_css, out);
    fill(out, "</style></head>\n<body><h1>fsdpmark run %</h1>\n<p><code>%</code></p>\n<p class=\"dim\">started %, %</p>\n", id, r->command, r->started,
         r->ended_normally ? r->ended : "not ended: running still, or interrupted");
    char *machine = plot_machine(r->environment), *versions = plot_versions(r->environment, r->implementations);
    fill(out, "<p>%; %</p>\n", machine, versions);
    free(machine);
    free(versions);
}

static void put_figures(const char *folder, const char *missing, FILE *out) {
    static const struct { const char *name, *title; } figures[] = {
        {"busbw", "Bus bandwidth against size"}, {"implementations", "Implementations side by side"}, {"tradeoff", "Memory against throughput"}, {"bandwidth", "Throughput against bandwidth"},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        char *path = memory_format("%s/figures/%s.svg", folder, figures[i].name), *prefix = memory_format("%s-", figures[i].name);
        if (!access(path, R_OK)) {
            fill(out, "<h2>%</h2>\n<figure><div class=\"scroll\" role=\"img\" aria-label=\"%\">", figures[i].title, figures[i].title);
            svg_inline(out, path, prefix);
            fputs("</div></figure>\n", out);
        }
        free(path);
        free(prefix);
    }
    if (*missing) fill(out, "<p class=\"dim\">%</p>\n", missing);
}

static void put_rows(const struct stored_serieses *series, FILE *out) {
    json_t *varies = series_varying(series);
    fputs("<h2>Series</h2>\n<p class=\"dim\">Medians over all starts with intervals of at least 95 %. " FEW ". Every sample is in series.csv and "
          "run.json.</p>\n<div class=\"scroll\"><table><thead><tr><th>series</th><th>quantity</th><th>median</th><th>interval</th><th>samples in starts</th><th>errors</th><th>why no figure</th></tr></thead>"
          "<tbody>\n", out);
    for (int i = 0; i < series->count; i++) {
        const struct stored_series *s = &series->items[i];
        char value[32], range[80], count[32], errors[32], *name = series_name(s, varies);
        const char *why, *fault = series_fault(s, &why);
        put_interval(s, value, range, count);
        snprintf(errors, sizeof errors, "%lld", (long long)errors_of(s));
        fill(out, "<tr><td>%</td><td>%</td><td class=\"number\">%</td><td class=\"number\">%</td><td class=\"number\">%</td><td class=\"number\">%</td><td>%</td></tr>\n", name, s->quantity, value, range,
             count, errors, fault ? why : "");
        free(name);
    }
    fputs("</tbody></table></div>\n", out);
    json_decref(varies);
}

static bool close_file(FILE *out, bool ok, const char *path, struct error *error) {
    int reason = errno;
    if (out && fclose(out)) ok = false, reason = errno;
    return (out && ok) || error_set(error, "%s: cannot be written: %s", path, strerror(reason));
}

static bool write_page(const struct stored_run *r, const struct stored_serieses *series, const char *folder, const char *name, const char *missing, struct error *error) {
    char *path = memory_format("%s/%s", folder, name);
    FILE *out = fopen(path, "we");
    if (out) {
        put_head(r, out);
        put_figures(folder, missing, out);
        put_rows(series, out);
        fputs("</body></html>\n", out);
    }
    bool ok = close_file(out, out && !ferror(out), path, error);
    free(path);
    return ok;
}

bool series_report(const struct stored_run *r, const struct stored_serieses *series, const char *folder, const char *name, const char *missing, struct error *error) {
    static const struct { const char *name; bool (*write)(const struct export *, FILE *); } exports[] = {{"run.json", export_json}, {"series.csv", export_csv}};
    struct export e = {r, series, NULL};
    bool ok = report_folder(folder, error) && write_page(r, series, folder, name, missing, error);
    for (int i = 0; ok && i < 2; i++) {
        char *path = memory_format("%s/%s", folder, exports[i].name);
        FILE *out = fopen(path, "we");
        ok = close_file(out, out && exports[i].write(&e, out), path, error);
        free(path);
    }
    return ok;
}
