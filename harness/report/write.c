// The report folder: every format in its file, the page last, since it takes the figures in.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/protocol/memory.h"
#include "harness/report/counters.h"
#include "harness/report/html.h"
#include "harness/report/report.h"

static const struct { const char *name; bool (*write)(const struct stored_run *r, FILE *out); } formats[] = {
    {"report.md", report_markdown}, {"results.csv", report_csv}, {"results.json", report_json},
};

bool report_folder(const char *path, struct error *error) {
    char *part = memory_text(path);
    bool ok = true;
    for (char *p = part + 1; ok && *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        ok = !mkdir(part, 0777) || errno == EEXIST;
        *p = '/';
    }
    ok = ok && (!mkdir(part, 0777) || errno == EEXIST);
    if (!ok) error_set(error, "%s: cannot make the folder: %s", path, strerror(errno));
    free(part);
    return ok;
}

static bool finish(FILE *out, bool ok, const char *path, struct error *error) {
    int reason = errno;
    if (out && fclose(out)) {
        ok = false;
        reason = errno;
    }
    return (out && ok) || error_set(error, "%s: cannot write: %s", path, strerror(reason));
}

static bool write_page(const struct view *v, const struct figure figures[FIGURES], const char *folder, const char *pictures, struct error *error) {
    char *path = memory_format("%s/index.html", folder);
    FILE *out = fopen(path, "w");
    bool ok = finish(out, out && report_html(v, figures, pictures, out), path, error);
    free(path);
    return ok;
}

// The numbers of the probes' figures; none from an earlier report where this run had no probes.
static bool write_numbers(const struct probed *p, const char *folder, struct error *error) {
    static const struct { const char *name; bool (*write)(const struct probed *p, FILE *out); } kinds[] = {
        {"probes.csv", report_probes_csv}, {"probes.json", report_probes_json}};
    bool ok = true;
    for (int i = 0; ok && i < 2; i++) {
        char *path = memory_format("%s/%s", folder, kinds[i].name);
        FILE *out = p->source_count ? fopen(path, "w") : NULL;
        if (p->source_count) ok = finish(out, out && kinds[i].write(p, out), path, error);
        else remove(path);
        free(path);
    }
    return ok;
}

// Of the counters, likewise: results.json has them anyway.
static bool write_counters(const struct stored_run *r, const char *folder, struct error *error) {
    char *path = memory_format("%s/counters.csv", folder);
    bool some = counters_some(r), ok = true;
    FILE *out = some ? fopen(path, "w") : NULL;
    if (some) ok = finish(out, out && counters_csv(r, out), path, error);
    else remove(path);
    free(path);
    return ok;
}

bool report_write(const struct stored_run *r, const char *folder, struct error *error) {
    char *pictures = memory_format("%s/figures", folder);
    struct figure figures[FIGURES];
    struct view v;
    struct probed p;
    bool ok = report_folder(pictures, error);
    for (size_t i = 0; ok && i < sizeof formats / sizeof *formats; i++) {
        char *path = memory_format("%s/%s", folder, formats[i].name);
        FILE *out = fopen(path, "w");
        ok = finish(out, out && formats[i].write(r, out), path, error);
        free(path);
    }
    view_make(r, &v);
    probed_make(&v, &p);
    ok = ok && write_numbers(&p, folder, error) && write_counters(r, folder, error) && figures_make(&v, &p, pictures, figures, error) && write_page(&v, figures, folder, pictures, error);
    probed_free(&p);
    view_free(&v);
    free(pictures);
    return ok;
}
