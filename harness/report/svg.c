// Makes a picture of gnuplot's part of a page.
//
// gnuplot gives the same ids to the marks and patterns of every picture, and titles that browsers show as tooltips
// ("gnuplot_plot_1"). References are rewritten where they stand: id='..', href='#..' and url(#..).
#include "harness/report/svg.h"

#include <stdlib.h>
#include <string.h>

static char *read_whole(const char *path) {
    FILE *in = fopen(path, "r");
    char *text = NULL;
    size_t bytes = 0;
    if (!in) return NULL;
    if (getdelim(&text, &bytes, 0, in) < 0) {
        free(text);
        text = NULL;
    }
    fclose(in);
    return text;
}

static const char *skip_element(const char *at, const char *open, const char *close) {
    if (strncmp(at, open, strlen(open))) return at;
    const char *end = strstr(at, close);
    return end ? end + strlen(close) : at;
}

bool svg_inline(FILE *out, const char *path, const char *prefix) {
    static const char *const references[] = {" id='", " id=\"", "href='#", "href=\"#", "url(#"};
    char *text = read_whole(path);
    const char *at = text ? strstr(text, "<svg") : NULL;
    bool found = at && strstr(at, "</svg>");
    while (found && *at) {
        const char *after = skip_element(skip_element(at, "<title>", "</title>"), "<desc>", "</desc>");
        if (after != at) {
            at = after;
            continue;
        }
        size_t used = 0;
        for (size_t i = 0; i < sizeof references / sizeof *references && !used; i++)
            if (!strncmp(at, references[i], strlen(references[i]))) used = strlen(references[i]);
        fprintf(out, "%.*s%s", used ? (int)used : 1, at, used ? prefix : "");
        at += used ? used : 1;
    }
    free(text);
    return found;
}
