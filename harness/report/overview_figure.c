// The verdict matrix as a figure: results/plots/matrix.gp on a data file, drawn in a folder of its own.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/protocol/memory.h"
#include "harness/report/figures.h"
#include "harness/report/overview.h"
#include "harness/report/text.h"
#include "results.h"

enum { LABEL_WIDTH = 48, NAME_WIDTH = 28, LETTER_PX = 8, ROW_PX = 24, COLUMN_PX = 104, TOP_PX = 60, SLANT_PX = 150, KEY_PX = 70 };

static void put_axis(const struct overview *m, FILE *data) {
    for (int row = 0; row < m->row_count; row++) {
        char *name = memory_format("%s: %s", capabilities[m->rows[row]].group, capabilities[m->rows[row]].title);
        fprintf(data, "%d\t", row + 1);
        figure_put_quoted(data, name, LABEL_WIDTH);
        fputc('\n', data);
        free(name);
    }
    fputs("\n\n", data);
    for (int i = 0; i < m->implementations.count; i++) {
        fprintf(data, "%d\t", i + 1);
        figure_put_quoted(data, m->implementations.items[i], NAME_WIDTH);
        fputc('\n', data);
    }
}

// Blocks in the order of the script's key; none is empty: its first point lies outside the picture.
static void put_cells(const struct overview *m, FILE *data) {
    static const char *const classes[] = {"pass", "fail", "waived", "skip", "broken"};
    for (int k = 0; k < 5; k++) {
        fputs("\n\n-9\t-9\t\" \"\n", data);
        for (int row = 0; row < m->row_count; row++)
            for (int i = 0; i < m->implementations.count; i++) {
                char words[64];
                const struct overview_cell *cell = overview_at(m, m->rows[row], i);
                if (!strcmp(overview_class(cell), classes[k])) fprintf(data, "%d\t%d\t\"%s\"\n", i + 1, row + 1, overview_text(cell, words));
            }
    }
}

static void put_layout(const struct overview *m, FILE *head) {
    int left = 0, wide = COLUMN_PX * m->implementations.count, tall = ROW_PX * m->row_count;
    if (wide < 420) wide = 420;
    for (int row = 0; row < m->row_count; row++) {
        int letters = (int)(strlen(capabilities[m->rows[row]].group) + strlen(capabilities[m->rows[row]].title)) + 2;
        if (LETTER_PX * letters > left) left = LETTER_PX * letters;
    }
    int keytop = TOP_PX + tall + SLANT_PX;
    fprintf(head, "name = 'matrix'\nheading = 'Verdicts by capability'\nnote = ''\nlines = 0\nwidth = %d\nheight = %d\nleft = %d\ntop = %d\nwide = %d\ntall = %d\n"
                  "keytop = %d\nrows = %d\ncolumns = %d\n",
            left + 30 + wide + 40, keytop + KEY_PX, left + 30, TOP_PX, wide, tall, keytop, m->row_count, m->implementations.count);
}

static bool copy(const char *folder, const char *name, const char *to, struct error *error) {
    char *from = memory_format("%s/%s", folder, name), block[1 << 14];
    FILE *in = fopen(from, "r"), *out = in ? fopen(to, "w") : NULL;
    bool ok = in && out;
    for (size_t n; ok && (n = fread(block, 1, sizeof block, in)) > 0;) ok = fwrite(block, 1, n, out) == n;
    if (in) ok = !ferror(in) && ok, fclose(in);
    if (out && fclose(out)) ok = false;
    if (!ok) error_set(error, "%s: cannot be written: %s", to, strerror(errno));
    free(from);
    return ok;
}

static bool draw(const struct overview *m, const char *folder, const char *svg, const char *png, struct error *error) {
    char *data_text = NULL, *head_text = NULL, why[256] = "";
    size_t data_bytes, head_bytes;
    FILE *data = open_memstream(&data_text, &data_bytes), *head = open_memstream(&head_text, &head_bytes);
    if (!data || !head) abort();
    put_axis(m, data);
    put_cells(m, data);
    put_layout(m, head);
    fclose(data);
    fclose(head);
    bool ok = figure_write(folder, "matrix", head_text, matrix_gp, data_text, error);
    const char *const formats[] = {"svg", "png"}, *const targets[] = {svg, png}, *const names[] = {"matrix.svg", "matrix.png"};
    for (int i = 0; ok && i < 2; i++)
        if (targets[i])
            ok = (gnuplot_run(folder, "matrix.gp", formats[i], why) || error_set(error, "%s: no picture: %s", targets[i], why)) && copy(folder, names[i], targets[i], error);
    free(data_text);
    free(head_text);
    return ok;
}

bool overview_figure(const struct overview *m, const char *svg, const char *png, struct error *error) {
    static const char *const made[] = {"matrix.dat", "matrix.gp", "style.gp", "matrix.svg", "matrix.png"};
    const char *base = getenv("TMPDIR");
    char *folder = memory_format("%s/fsdpmark.XXXXXX", base && *base ? base : "/tmp");
    bool there = mkdtemp(folder) != NULL, ok = there || error_set(error, "%s: %s", folder, strerror(errno));
    ok = ok && draw(m, folder, svg, png, error);
    for (size_t i = 0; there && i < sizeof made / sizeof *made; i++) {
        char *path = memory_format("%s/%s", folder, made[i]);
        unlink(path);
        free(path);
    }
    if (there) rmdir(folder);
    free(folder);
    return ok;
}
