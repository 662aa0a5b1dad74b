// The numbers behind the probes' figures, for other tools. See probed.h.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/report/probed.h"
#include "harness/report/text.h"

struct number { const char *figure, *quantity, *unit; double value, theory; };

// Of a point: what is drawn, in one order for both formats.
static int numbers_of(const struct probed_point *q, struct number out[PARTS + 4]) {
    int count = 0;
    double sent = 0;
    if (isfinite(q->rest)) out[count++] = (struct number){"memory", "live after the last update", "bytes per parameter", q->rest, q->rest_theory};
    if (isfinite(q->peak)) out[count++] = (struct number){"memory", "largest peak of a phase", "bytes per parameter", q->peak, NAN};
    for (int k = 0; q->has_traffic && k < PARTS; k++) {
        sent += q->sent[k];
        if (q->sent[k] != 0) out[count++] = (struct number){"traffic", probed_part_names[k], "bytes per parameter and step", q->sent[k], NAN};
    }
    if (q->has_traffic) out[count++] = (struct number){"traffic", "sent", "bytes per parameter and step", sent, q->sent_theory};
    return count;
}

static void put_quoted(FILE *out, const char *s) {
    fputc('"', out);
    text_put(out, TEXT_CSV, s);
    fputs("\",", out);
}

static void put_number(FILE *out, double x) {
    char buffer[32];
    fputs(isfinite(x) ? text_number(x, buffer) : "", out);
}

bool report_probes_csv(const struct probed *p, FILE *out) {
    fputs("figure,implementation,configuration,ranks,sizes,quantity,unit,value,theory,probes\r\n", out);
    for (int i = 0; i < p->point_count; i++) {
        const struct probed_point *q = &p->points[i];
        struct number numbers[PARTS + 4];
        char probes[64];
        int count = numbers_of(q, numbers);
        probe_set_text(q->largest->seen.by_rank[0].probes, probes);
        for (int k = 0; k < count; k++) {
            put_quoted(out, numbers[k].figure);
            put_quoted(out, p->implementations.items[q->implementation]);
            put_quoted(out, p->labels.items[q->label]);
            fprintf(out, "%d,%d,", q->ranks, q->sizes);
            put_quoted(out, numbers[k].quantity);
            put_quoted(out, numbers[k].unit);
            put_number(out, numbers[k].value);
            fputc(',', out);
            put_number(out, numbers[k].theory);
            fprintf(out, ",\"%s\"\r\n", probes);
        }
    }
    return !ferror(out) && !fflush(out);
}

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *text(const char *s) {
    char *valid = text_copy(TEXT_PLAIN, s);
    json_t *value = json_string(valid);
    free(valid);
    return value;
}

static json_t *points_json(const struct probed *p) {
    json_t *list = json_array();
    for (int i = 0; i < p->point_count; i++) {
        const struct probed_point *q = &p->points[i];
        struct number numbers[PARTS + 4];
        int count = numbers_of(q, numbers);
        for (int k = 0; k < count; k++)
            json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:i, s:i, s:s, s:s, s:o, s:o}", "figure", numbers[k].figure, "implementation",
                                                  text(p->implementations.items[q->implementation]), "configuration", text(p->labels.items[q->label]), "ranks",
                                                  q->ranks, "sizes", q->sizes, "quantity", numbers[k].quantity, "unit", numbers[k].unit, "value",
                                                  number(numbers[k].value), "theory", number(numbers[k].theory)));
    }
    return list;
}

static json_t *fits_json(const struct probed *p) {
    json_t *list = json_array();
    for (int i = 0; i < p->fit_count; i++) {
        const struct probed_fit *f = &p->fits[i];
        json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "implementation", text(p->implementations.items[f->implementation]),
                                              "configuration", text(p->labels.items[f->label]), "a", number(f->a), "b", number(f->b), "theory_a",
                                              number(f->theory_a), "theory_b", number(f->theory_b)));
    }
    return list;
}

static json_t *timelines_json(const struct probed *p) {
    json_t *list = json_array();
    for (int i = 0; i < p->implementations.count; i++) {
        const struct probed_source *s = probed_timeline(p, i);
        if (s)
            json_array_append_new(list, json_pack("{s:o, s:o, s:i, s:O}", "implementation", text(s->c->implementation), "case", text(s->c->case_id), "step",
                                                  s->seen.step, "seen", s->c->probes));
    }
    return list;
}

bool report_probes_json(const struct probed *p, FILE *out) {
    json_t *whole = json_pack("{s:o, s:o, s:o}", "points", points_json(p), "fits", fits_json(p), "timelines", timelines_json(p));
    bool ok = whole && !json_dumpf(whole, out, JSON_INDENT(1));
    json_decref(whole);
    return ok && fputc('\n', out) >= 0 && !fflush(out);
}
