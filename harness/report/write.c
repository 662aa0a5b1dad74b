// The report folder: every format in its file, the page last, since it takes the figures in.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/protocol/memory.h"
#include "harness/report/html.h"
#include "harness/report/report.h"

static const struct { const char *name; bool (*write)(const struct stored_run *r, FILE *out); } formats[] = {
    {"report.md", report_markdown}, {"results.csv", report_csv}, {"results.json", report_json},
};

static bool make_folder(const char *path, struct error *error) {
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

bool report_write(const struct stored_run *r, const char *folder, struct error *error) {
    char *pictures = memory_format("%s/figures", folder);
    struct figure figures[FIGURES];
    struct view v;
    bool ok = make_folder(pictures, error);
    for (size_t i = 0; ok && i < sizeof formats / sizeof *formats; i++) {
        char *path = memory_format("%s/%s", folder, formats[i].name);
        FILE *out = fopen(path, "w");
        ok = finish(out, out && formats[i].write(r, out), path, error);
        free(path);
    }
    view_make(r, &v);
    ok = ok && figures_make(&v, pictures, figures, error) && write_page(&v, figures, folder, pictures, error);
    view_free(&v);
    free(pictures);
    return ok;
}
