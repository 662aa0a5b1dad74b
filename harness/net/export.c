// Rows as JSON and CSV: the same fields in both, from one table. See output.h.
#include "harness/net/output.h"

#include <math.h>
#include <string.h>

#include "harness/report/text.h"

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }
static json_t *share(const struct net_row *r) { return r->line_rate > 0 ? number(100 * r->busbw / r->line_rate) : json_null(); }
static json_t *name(const struct net_row *r)
{
    char text[64];
    return json_string(net_point_name(&r->point, text));
}
static json_t *form(const struct net_row *r)
{
    char text[160];
    return json_string(net_form(r, text));
}
static json_t *value_of(struct interval i) { return i.count > 0 ? number(i.value) : json_null(); }
static json_t *low_of(struct interval i) { return i.count > 0 ? number(i.low) : json_null(); }
static json_t *high_of(struct interval i) { return i.count > 0 ? number(i.high) : json_null(); }

// Every field of a row, in order.
static json_t *row_json(const struct net_row *r)
{
    const struct net_point *p = &r->point;
    json_t *o = json_object();
    const struct { const char *key; json_t *value; } fields[] = {
        {"measure", json_string(p->measure)}, {"name", name(r)}, {"form", form(r)}, {"ranks", json_integer(r->ranks)}, {"hosts", json_integer(r->hosts)},
        {"size", json_integer((json_int_t)r->bytes)}, {"count", json_integer((json_int_t)p->calls[0].count)}, {"type", json_string(net_type_name(p->calls[0].type))},
        {"redop", json_string(net_redop(p))}, {"how", json_string(net_how_names[p->how])}, {"in_place", json_boolean(p->in_place)},
        {"shards", json_string(net_shape_names[p->shape])}, {"offset", json_integer(p->offset)}, {"product", json_string(net_product_names[p->product])},
        {"seconds", value_of(r->seconds)}, {"seconds_low", low_of(r->seconds)}, {"seconds_high", high_of(r->seconds)}, {"coverage", number(r->seconds.coverage)},
        {"samples", json_integer(r->seconds.count)}, {"launches", json_integer(r->launches)}, {"calls_per_sample", json_integer(r->calls_per_sample)},
        {"algbw", number(r->algbw)}, {"busbw", number(r->busbw)}, {"line_rate", r->line_rate > 0 ? number(r->line_rate) : json_null()},
        {"percent_of_line", share(r)}, {"errors", json_integer((json_int_t)r->errors)},
        {"overlap", value_of(r->overlap)}, {"overlap_low", low_of(r->overlap)}, {"overlap_high", high_of(r->overlap)},
        {"call_alone", value_of(r->call_alone)}, {"product_alone", value_of(r->product_alone)},
        {"call_slowdown", value_of(r->call_slowdown)}, {"call_slowdown_low", low_of(r->call_slowdown)}, {"call_slowdown_high", high_of(r->call_slowdown)},
        {"product_slowdown", value_of(r->product_slowdown)}, {"product_slowdown_low", low_of(r->product_slowdown)}, {"product_slowdown_high", high_of(r->product_slowdown)},
        {"over_bare", value_of(r->over_bare)}, {"over_bare_low", low_of(r->over_bare)}, {"over_bare_high", high_of(r->over_bare)},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        json_object_set_new(o, fields[i].key, fields[i].value);
    return o;
}

static json_t *fits_json(const struct net_rows *rows)
{
    struct net_fit fits[NET_FITS];
    json_t *list = json_array();
    for (int i = 0, n = net_fits(rows, fits); i < n; i++) {
        const struct alpha_beta *f = &fits[i].fit;
        double share = net_fit_share(&fits[i]);
        json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", net_op_names[fits[i].op], "points", fits[i].points,
                                              "left_out", fits[i].left_out, "starts", f->starts, "alpha_s", number(f->alpha_s.value), "alpha_low",
                                              number(f->alpha_s.low), "alpha_high", number(f->alpha_s.high), "beta_s_per_byte", number(f->beta_s_per_byte.value),
                                              "beta_low", number(f->beta_s_per_byte.low), "beta_high", number(f->beta_s_per_byte.high), "percent_of_line",
                                              share > 0 ? number(100 * share) : json_null(), "worst_residual", number(f->worst_residual)));
    }
    return list;
}

bool net_json(const struct net_rows *rows, const struct net_findings *findings, FILE *out)
{
    json_t *list = json_array(), *found = json_array();
    for (int i = 0; i < rows->count; i++) {
        json_t *row = row_json(&rows->items[i]);
        if (rows->items[i].first_error != NULL)
            json_object_set_new(row, "first_error", json_string(rows->items[i].first_error));
        json_array_append_new(list, row);
    }
    for (int i = 0; i < findings->count; i++)
        json_array_append_new(found, json_pack("{s:s, s:s, s:b, s:o}", "rule", findings->items[i].rule, "text", findings->items[i].text, "violation",
                                               findings->items[i].violation, "factor", number(findings->items[i].factor)));
    json_t *root = json_pack("{s:I, s:s, s:i, s:i, s:I, s:o, s:o, s:o}", "run", (json_int_t)(rows->count > 0 ? rows->items[0].series->run : 0), "fabric",
                             rows->fabric, "ranks", rows->count > 0 ? rows->items[0].ranks : 0, "hosts", rows->count > 0 ? rows->items[0].hosts : 0, "errors",
                             (json_int_t)rows->errors, "rows", list, "fits", fits_json(rows), "findings", found);
    bool ok = root != NULL && json_dumpf(root, out, JSON_INDENT(1)) == 0 && fputc('\n', out) != EOF;
    json_decref(root);
    return ok && fflush(out) == 0;
}

static void put_cell(json_t *value, FILE *out)
{
    char buffer[32];
    if (json_is_string(value)) {
        fputc('"', out);
        text_put(out, TEXT_CSV, json_string_value(value));
        fputc('"', out);
    } else if (json_is_integer(value))
        fprintf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fputs(text_number(json_real_value(value), buffer), out);
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "true" : "false", out);
}

static void put_line(json_t *row, bool names, FILE *out)
{
    const char *key;
    json_t *value;
    bool later = false;
    json_object_foreach(row, key, value)
    {
        if (later)
            fputc(',', out);
        later = true;
        if (names)
            fputs(key, out);
        else
            put_cell(value, out);
    }
    fputs("\r\n", out);
}

bool net_csv(const struct net_rows *rows, FILE *out)
{
    for (int i = 0; i < rows->count; i++) {
        json_t *row = row_json(&rows->items[i]);
        if (i == 0)
            put_line(row, true, out);
        put_line(row, false, out);
        json_decref(row);
    }
    return !ferror(out) && fflush(out) == 0;
}
