// The tables on a terminal. See output.h.
#include "harness/net/output.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "harness/net/plan.h"
#include "harness/report/text.h"

static const char *const titles[NET_MEASURES] = {
    [NET_SWEEP] = "Collectives by size",
    [NET_DIRECTIONS] = "One way and both ways at once, rank r with rank r + n/2",
    [NET_LINKS] = "From each rank to the next",
    [NET_MIXED] = "Gathers of bfloat16 beside reductions of float32, as many elements",
    [NET_FORMS] = "Blocking, nonblocking, in place",
    [NET_SHARDS] = "Even, uneven and empty shards",
    [NET_ALIGNMENT] = "A rank's part around a multiple of 16 bytes; buffers off the alignment",
    [NET_TOGETHER] = "All-gather and reduce-scatter at the same time, and each alone",
    [NET_TIERS] = "Hybrid's two tiers, each alone and both at once",
    [NET_COMPUTE] = "Beside a matrix product",
    [NET_UNIT_SIZES] = "The units of the model",
};

const char *net_type_name(enum dtype type)
{
    return type == DTYPE_F32 ? "float" : type == DTYPE_F64 ? "double" : type == DTYPE_BF16 ? "bfloat16" : type == DTYPE_F16 ? "half" : dtype_name(type);
}

const char *net_redop(const struct net_point *p)
{
    for (int i = 0; i < p->call_count; i++)
        if (net_op_reduces(p->calls[i].op))
            return "sum";
    return "none";
}

static void add_word(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add_word(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    used += (size_t)snprintf(text + used, size - used, "%s", used > 0 ? ", " : "");
    if (used < size)
        vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

const char *net_form(const struct net_row *r, char text[160])
{
    const struct net_point *p = &r->point;
    text[0] = 0;
    if (p->label[0] != 0)
        add_word(text, 160, "%.40s", p->label);
    if (p->how == NET_NONBLOCKING && p->call_count == 1)
        add_word(text, 160, "nonblocking");
    if (p->in_place)
        add_word(text, 160, "in place");
    if (p->shape != NET_EVEN)
        add_word(text, 160, p->shape == NET_UNEVEN ? "uneven" : "one empty");
    if (p->offset != 0)
        add_word(text, 160, "%d bytes off", p->offset);
    if (p->calls[0].op == NET_LINK)
        add_word(text, 160, "%d to %d", p->calls[0].root, (p->calls[0].root + 1) % r->ranks);
    if (p->call_count == 1 && p->calls[0].group != NET_WORLD)
        add_word(text, 160, p->calls[0].group == NET_WITHIN ? "within groups" : "between groups");
    if (p->call_count == 2)
        add_word(text, 160, p->calls[1].group == NET_TWIN ? "two communicators" : p->calls[1].group == NET_BETWEEN ? "two tiers" : "one communicator");
    if (p->product != NET_IDLE)
        add_word(text, 160, p->product == NET_PRODUCT ? "product" : "product, tests");
    return text;
}

static void heading(enum net_measure m, bool line, FILE *out)
{
    fprintf(out, "\n%s\n", titles[m]);
    if (m == NET_COMPUTE)
        fprintf(out, "%10s %11s %9s %5s  %11s %11s %11s  %8s %8s %8s %7s  %s\n", "size", "count", "type", "redop", "call alone", "product", "both", "hidden",
                "call x", "product x", "errors", "");
    else
        fprintf(out, "%10s %11s %9s %5s  %11s %-23s %9s %9s %s%7s  %s\n", "size", "count", "type", "redop", "time", "interval", "algbw", "busbw",
                line ? " % line " : "", "errors", "");
    if (m == NET_COMPUTE)
        fprintf(out, "%10s %11s %9s %5s  %11s %11s %11s  %8s %8s %8s\n", "(B)", "(elements)", "", "", "(us)", "(us)", "(us)", "(share)", "slower", "slower");
    else
        fprintf(out, "%10s %11s %9s %5s  %11s %-23s %9s %9s\n", "(B)", "(elements)", "", "", "(us)", "(us)", "(GB/s)", "(GB/s)");
}

static const char *interval_text(struct interval i, double unit, char text[48])
{
    snprintf(text, 48, "%.5g to %.5g%s", i.low * unit, i.high * unit, i.coverage < 0.95 ? " *" : "");
    return text;
}

// "4.35e-05 GB/s" serves nobody: three digits, whatever the magnitude.
static const char *rate(double bytes_per_s, char text[24])
{
    snprintf(text, 24, bytes_per_s >= 1e7 ? "%.3f" : "%.2g", 1e-9 * bytes_per_s);
    return text;
}

static void put_row(const struct net_row *r, enum net_measure m, bool line, FILE *out)
{
    char name[64], form[160], interval[48], algbw[24], busbw[24];
    const struct net_point *p = &r->point;
    fprintf(out, "%10lld %11lld %9s %5s  ", (long long)r->bytes, (long long)p->calls[0].count, net_type_name(p->calls[0].type), net_redop(p));
    if (r->seconds.count == 0)
        fputs("not measured: the time was up  ", out);
    else if (m == NET_COMPUTE && r->overlap.count > 0)
        fprintf(out, "%11.2f %11.2f %11.2f  %8.2f %8.2f %8.2f %7lld  ", 1e6 * r->call_alone.value, 1e6 * r->product_alone.value, 1e6 * r->seconds.value,
                r->overlap.value, r->call_slowdown.value, r->product_slowdown.value, (long long)r->errors);
    else {
        fprintf(out, "%11.2f %-23s %9s %9s ", 1e6 * r->seconds.value, interval_text(r->seconds, 1e6, interval), rate(r->algbw, algbw), rate(r->busbw, busbw));
        if (line && r->line_rate > 0)
            fprintf(out, "%6.1f  ", 100 * r->busbw / r->line_rate);
        else if (line)
            fprintf(out, "%6s  ", "-");
        fprintf(out, "%7lld  ", (long long)r->errors);
    }
    net_form(r, form);
    fprintf(out, "%s%s%s", net_point_name(p, name), form[0] != 0 ? ", " : "", form);
    if (r->over_bare.count > 0)
        fprintf(out, "; over a bare loop %.3f (%.3f to %.3f)", r->over_bare.value, r->over_bare.low, r->over_bare.high);
    fputc('\n', out);
}

static void put_measure(const struct net_rows *rows, enum net_measure m, FILE *out)
{
    bool begun = false, line = false;
    for (int i = 0; i < rows->count; i++)
        line |= rows->items[i].line_rate > 0;
    for (int i = 0; i < rows->count; i++) {
        const struct net_row *r = &rows->items[i];
        if (strcmp(r->point.measure, net_measure_names[m]) != 0)
            continue;
        if (!begun)
            heading(m, line, out);
        begun = true;
        put_row(r, m, line, out);
    }
}

static void put_formula(const struct net_rows *rows, FILE *out)
{
    bool has = false, uneven = false;
    for (int i = 0; i < rows->count; i++) {
        has |= rows->items[i].point.product == NET_IDLE;
        uneven |= rows->items[i].point.shape != NET_EVEN;
    }
    if (has)
        fprintf(out, "\nbusbw = algbw x factor, of n ranks: (n-1)/n for all-gather and reduce-scatter%s, 2 (n-1)/n for all-reduce, 1 else; of calls at once the sum\n",
                uneven ? " (of uneven shards 1 - the smallest's part)" : "");
}

// Of an interval that holds 0 the bandwidth has no upper end.
static const char *bandwidth(const struct net_fit *f, char text[80])
{
    const struct interval *beta = &f->fit.beta_s_per_byte;
    int used = snprintf(text, 80, "1/beta %.4g GB/s (%.4g to ", 1e-9 / beta->value, 1e-9 / beta->high);
    snprintf(text + used, 80 - (size_t)used, beta->low > 0 ? "%.4g)" : "any)", 1e-9 / beta->low);
    return text;
}

static void put_fits(const struct net_rows *rows, FILE *out)
{
    struct net_fit fits[NET_FITS];
    int count = net_fits(rows, fits), left_out = 0;
    double burst = 0;
    char text[80];
    for (int i = 0; i < count; i++) {
        const struct net_fit *f = &fits[i];
        if (i == 0)
            fputs("\nLatency and bandwidth, fitted to the sizes above: seconds = alpha + beta x bytes on the line\n", out);
        fprintf(out, "  %-15s alpha %.2f us (%.2f to %.2f), %s", net_op_names[f->op], 1e6 * f->fit.alpha_s.value, 1e6 * f->fit.alpha_s.low, 1e6 * f->fit.alpha_s.high,
                bandwidth(f, text));
        if (f->line_rate > 0)
            fprintf(out, ", %.1f %% of the line", 100 * net_fit_share(f));
        fprintf(out, "; %d sizes, none further off than %.0f %%; ", f->points, 100 * f->fit.worst_residual);
        if (f->fit.starts > 1)
            fprintf(out, "intervals over %d starts\n", f->fit.starts);
        else
            fprintf(out, "intervals over samples, not over starts%s\n", f->fit.alpha_s.coverage < 0.95 ? " *" : "");
        left_out += f->left_out;
        burst = f->burst;
    }
    if (left_out > 0)
        fprintf(out, "  Left out are messages that fit into the burst, %.0f bytes that the line lets through at once, and take more than %.0f %% of the line\n", burst,
                100 * NET_FIT_SHORT);
}

static void put_findings(const struct net_findings *f, FILE *out)
{
    for (int pass = 0; pass < 2; pass++) {
        bool begun = false;
        for (int i = 0; i < f->count; i++)
            if (f->items[i].violation == (pass == 0)) {
                if (!begun)
                    fputs(pass == 0 ? "\nNot as it should be\n" : "\nSeen\n", out);
                begun = true;
                fprintf(out, "  %-11s ", f->items[i].rule);
                text_wrap(out, f->items[i].text, 110, 14);
            }
    }
}

static void put_errors(const struct net_rows *rows, FILE *out)
{
    for (int i = 0; i < rows->count; i++)
        if (rows->items[i].errors > 0) {
            fprintf(out, "FAIL: %lld wrong elements: ", (long long)rows->items[i].errors);
            text_put(out, TEXT_TERMINAL, rows->items[i].first_error);
            fputc('\n', out);
        }
}

bool net_table(const struct net_rows *rows, const struct net_findings *findings, FILE *out)
{
    bool few = false;
    for (int m = 0; m < NET_MEASURES; m++)
        put_measure(rows, (enum net_measure)m, out);
    for (int i = 0; i < rows->count; i++)
        few |= rows->items[i].seconds.count > 0 && rows->items[i].seconds.coverage < 0.95;
    if (few)
        fputs("\n* fewer than six samples: the interval is that of the extremes\n", out);
    put_formula(rows, out);
    put_fits(rows, out);
    put_findings(findings, out);
    if (rows->errors > 0)
        fputc('\n', out);
    put_errors(rows, out);
    return !ferror(out) && fflush(out) == 0;
}
