// The rules, a function each; what breaks a rule at several sizes is one finding. See consistency.h.
#include "harness/net/consistency.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/net/plan.h"
#include "harness/net/sizes.h"

static const double TOLERANCE = 1.05, FORM_TOLERANCE = 1.15, SUM_TOLERANCE = 1.25, DIRECTION_TOLERANCE = 1.25, LINK_TOLERANCE = 1.5;
static const double GOOD_SHARE = 0.93, HALF = 0.6, HIDDEN = 0.25;
static const int64_t LARGE = 64 << 10; // from here on bandwidth counts more than latency

// ---- looking rows up ----
static bool is_in(const struct net_row *r, enum net_measure m) { return strcmp(r->point.measure, net_measure_names[m]) == 0; }
static bool plain(const struct net_row *r)
{
    return r->seconds.count > 0 && r->point.call_count == 1 && r->point.product == NET_IDLE && r->point.label[0] == 0 && r->point.offset == 0 &&
           r->point.calls[0].group == NET_WORLD;
}
static bool blocking(const struct net_row *r) { return plain(r) && r->point.how == NET_BLOCKING && r->point.shape == NET_EVEN && !r->point.in_place; }

static const struct net_row *find(const struct net_rows *all, enum net_op op, enum dtype type, int64_t count)
{
    for (int i = 0; i < all->count; i++) {
        const struct net_row *r = &all->items[i];
        if (blocking(r) && r->point.calls[0].op == op && r->point.calls[0].type == type && r->point.calls[0].count == count)
            return r;
    }
    return NULL;
}

static const struct net_row *find_alone(const struct net_rows *all, const char *measure, const struct net_call *c)
{
    for (int i = 0; i < all->count; i++) {
        const struct net_row *r = &all->items[i];
        const struct net_call *k = &r->point.calls[0];
        bool group = k->group == c->group || (k->group == NET_WORLD && c->group == NET_TWIN);
        if (r->seconds.count > 0 && r->point.call_count == 1 && r->point.how == NET_NONBLOCKING && r->point.product == NET_IDLE &&
            strcmp(r->point.measure, measure) == 0 && group && k->op == c->op && k->type == c->type && k->count == c->count)
            return r;
    }
    return NULL;
}

// ---- findings ----
// Where a rule is broken: how often, over which sizes, and where worst.
struct breach { int count; int64_t first, last, worst_bytes; double worst; };

static void breach_add(struct breach *b, int64_t bytes, double factor)
{
    b->first = b->count == 0 || bytes < b->first ? bytes : b->first;
    b->last = b->count == 0 || bytes > b->last ? bytes : b->last;
    if (b->count++ == 0 || factor > b->worst) {
        b->worst = factor;
        b->worst_bytes = bytes;
    }
}

static void put(struct net_findings *out, const char *rule, bool violation, double factor, const char *format, ...) __attribute__((format(printf, 5, 6)));
static void put(struct net_findings *out, const char *rule, bool violation, double factor, const char *format, ...)
{
    if (out->count == FINDINGS_MOST)
        return;
    struct net_finding *f = &out->items[out->count++];
    *f = (struct net_finding){.rule = rule, .violation = violation, .factor = factor};
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, FINDING_TEXT, format, args);
    va_end(args);
}

// Where it is worst: "1M bytes", "4K bytes (of 5 sizes, 8 to 64K)".
static const char *worst(const struct breach *b, char text[120])
{
    char size[32], first[32], last[32];
    if (b->first == b->last)
        snprintf(text, 120, "%s bytes", sizes_text(b->first, first));
    else
        snprintf(text, 120, "%s bytes (of %d sizes, %s to %s)", sizes_text(b->worst_bytes, size), b->count, sizes_text(b->first, first), sizes_text(b->last, last));
    return text;
}

static bool sure(struct interval i) { return i.count > 0 && i.coverage >= 0.95; }

// By how much a is above b for certain; 0 where that is not shown, or samples are too few to show anything.
static double above(struct interval a, struct interval b, double tolerance)
{
    return sure(a) && sure(b) && a.low > tolerance * b.high ? a.value / b.value : 0;
}
static struct interval sum(struct interval a, struct interval b)
{
    return (struct interval){a.value + b.value, a.low + b.low, a.high + b.high, fmin(a.coverage, b.coverage), a.count < b.count ? a.count : b.count};
}
static struct interval times(struct interval a, double k) { return (struct interval){k * a.value, k * a.low, k * a.high, a.coverage, a.count}; }

// ---- rules ----
static void halves(const struct net_rows *all, struct net_findings *out)
{
    struct breach slow = {0}, fast = {0};
    char text[120];
    for (int i = 0; i < all->count; i++) {
        const struct net_row *whole = &all->items[i];
        if (!blocking(whole) || !is_in(whole, NET_SWEEP) || whole->point.calls[0].op != NET_ALL_REDUCE)
            continue;
        const struct net_call *c = &whole->point.calls[0];
        const struct net_row *reduce = find(all, NET_REDUCE_SCATTER, c->type, c->count), *gather = find(all, NET_ALL_GATHER, c->type, c->count);
        if (reduce == NULL || gather == NULL)
            continue;
        struct interval parts = sum(reduce->seconds, gather->seconds);
        double factor = above(whole->seconds, parts, TOLERANCE), other = whole->bytes >= LARGE ? above(parts, whole->seconds, SUM_TOLERANCE) : 0;
        if (factor > 0)
            breach_add(&slow, whole->bytes, factor);
        if (other > 0)
            breach_add(&fast, whole->bytes, other);
    }
    if (slow.count > 0)
        put(out, "halves", true, slow.worst, "all-reduce takes %.2f times reduce-scatter + all-gather at %s, which do the same", slow.worst, worst(&slow, text));
    if (fast.count > 0)
        put(out, "halves", true, fast.worst, "reduce-scatter + all-gather take %.2f times all-reduce at %s, which does the same: their algorithms are not those of all-reduce",
            fast.worst, worst(&fast, text));
}

// The row of the same collective with twice the count.
static void doubled(const struct net_rows *all, struct net_findings *out)
{
    for (int op = NET_ALL_GATHER; op <= NET_BROADCAST; op++) {
        struct breach split = {0}, falling = {0};
        char text[120];
        for (int i = 0; i < all->count; i++) {
            const struct net_row *r = &all->items[i];
            if (!blocking(r) || !is_in(r, NET_SWEEP) || (int)r->point.calls[0].op != op)
                continue;
            const struct net_row *twice = find(all, (enum net_op)op, r->point.calls[0].type, 2 * r->point.calls[0].count);
            double factor = twice != NULL ? above(twice->seconds, times(r->seconds, 2), TOLERANCE) : 0;
            double fall = twice != NULL ? above(r->seconds, twice->seconds, TOLERANCE) : 0;
            if (factor > 0)
                breach_add(&split, twice->bytes, factor);
            if (fall > 0)
                breach_add(&falling, r->bytes, fall);
        }
        if (split.count > 0)
            put(out, "merged", true, split.worst, "one %s takes %.2f times two of half the size at %s", net_op_names[op], split.worst, worst(&split, text));
        if (falling.count > 0)
            put(out, "monotone", true, falling.worst, "%s takes %.2f times what twice the size takes at %s", net_op_names[op], falling.worst, worst(&falling, text));
    }
}

static void directions(const struct net_rows *all, struct net_findings *out)
{
    struct breach b = {0};
    char text[120];
    for (int i = 0; i < all->count; i++) {
        const struct net_row *one = &all->items[i];
        if (!blocking(one) || one->point.calls[0].op != NET_ONE_WAY || one->bytes < LARGE)
            continue;
        const struct net_row *both = find(all, NET_EXCHANGE, one->point.calls[0].type, one->point.calls[0].count);
        double factor = both != NULL ? above(both->seconds, one->seconds, DIRECTION_TOLERANCE) : 0;
        if (factor > 0)
            breach_add(&b, one->bytes, factor);
    }
    if (b.count > 0)
        put(out, "directions", true, b.worst, "both directions at once reach %s%.0f %% of one direction at %s: sending and receiving wait for each other%s",
            1 / b.worst <= HALF ? "half: " : "", 100 / b.worst, worst(&b, text),
            all->items[0].line_rate > 0 ? " (Open MPI over TCP: docs/net.md)" : "");
}

static void line(const struct net_rows *all, struct net_findings *out)
{
    for (int op = NET_ALL_GATHER; op <= NET_REDUCE_SCATTER; op++) {
        const struct net_row *largest = NULL;
        for (int i = 0; i < all->count; i++)
            if (blocking(&all->items[i]) && (int)all->items[i].point.calls[0].op == op && all->items[i].point.calls[0].type == DTYPE_F32 &&
                (largest == NULL || all->items[i].bytes > largest->bytes))
                largest = &all->items[i];
        if (largest == NULL || largest->line_rate <= 0)
            continue;
        char size[32];
        double share = largest->busbw / largest->line_rate;
        put(out, "line", share < GOOD_SHARE, share, "%s of %s bytes reaches %.1f %% of the line rate", net_op_names[op], sizes_text(largest->bytes, size),
            100 * share);
    }
}

static void together(const struct net_rows *all, struct net_findings *out)
{
    for (int i = 0; i < all->count; i++) {
        const struct net_row *r = &all->items[i];
        if (r->seconds.count == 0 || r->point.call_count != 2 || r->point.label[0] != 0)
            continue;
        const struct net_row *a = find_alone(all, r->point.measure, &r->point.calls[0]), *b = find_alone(all, r->point.measure, &r->point.calls[1]);
        if (a == NULL || b == NULL)
            continue;
        char name[64], size[32];
        double factor = above(r->seconds, sum(a->seconds, b->seconds), TOLERANCE), longer = fmax(a->seconds.value, b->seconds.value);
        const char *how = r->point.calls[1].group == NET_TWIN ? "on two communicators" : r->point.calls[0].group == NET_WITHIN ? "on hybrid's two tiers" : "on one communicator";
        if (factor > 0)
            put(out, "together", true, factor, "%s at once %s take %.2f times the one after the other, %s bytes together", net_point_name(&r->point, name), how,
                factor, sizes_text(r->bytes, size));
        else
            put(out, "together", false, r->seconds.value / longer, "%s at once %s, %s bytes together: %.2f times the longer of both alone, %.2f times their sum",
                net_point_name(&r->point, name), how, sizes_text(r->bytes, size), r->seconds.value / longer, r->seconds.value / (a->seconds.value + b->seconds.value));
    }
}

static const struct net_row *even_one(const struct net_rows *all, const struct net_row *r)
{
    for (int i = 0; i < all->count; i++) {
        const struct net_row *e = &all->items[i];
        if (blocking(e) && e->point.calls[0].op == r->point.calls[0].op && e->point.calls[0].type == r->point.calls[0].type &&
            strcmp(e->point.measure, r->point.measure) == 0 && llabs(e->bytes - r->bytes) <= r->bytes / 8)
            return e;
    }
    return NULL;
}

// The two calls that reduce and scatter equal parts.
static void blocks(const struct net_rows *all, struct net_findings *out)
{
    struct breach slow = {0}, fast = {0};
    char text[120];
    for (int i = 0; i < all->count; i++) {
        const struct net_row *r = &all->items[i];
        if (!blocking(r) || r->point.calls[0].op != NET_REDUCE_SCATTER_BLOCK)
            continue;
        const struct net_row *other = find(all, NET_REDUCE_SCATTER, r->point.calls[0].type, r->point.calls[0].count);
        double factor = other != NULL ? above(r->seconds, other->seconds, FORM_TOLERANCE) : 0, less = other != NULL ? above(other->seconds, r->seconds, FORM_TOLERANCE) : 0;
        if (factor > 0)
            breach_add(&slow, r->bytes, factor);
        if (less > 0)
            breach_add(&fast, r->bytes, less);
    }
    if (slow.count > 0)
        put(out, "blocks", true, slow.worst, "MPI_Reduce_scatter_block takes %.2f times MPI_Reduce_scatter in equal parts at %s, which does the same", slow.worst,
            worst(&slow, text));
    if (fast.count > 0)
        put(out, "blocks", true, fast.worst, "MPI_Reduce_scatter in equal parts takes %.2f times MPI_Reduce_scatter_block at %s, which does the same", fast.worst,
            worst(&fast, text));
}

// Nonblocking, in place, uneven: what a form costs beside the plain one, a byte on the line.
static void forms(const struct net_rows *all, struct net_findings *out)
{
    for (int op = NET_ALL_GATHER; op <= NET_BROADCAST; op++)
        for (int form = 0; form < 4; form++) {
            static const char *const names[] = {"nonblocking", "in place", "with uneven shards", "with an empty shard"};
            struct breach slow = {0}, fast = {0};
            char text[120];
            for (int i = 0; i < all->count; i++) {
                const struct net_row *r = &all->items[i];
                if (!plain(r) || (int)r->point.calls[0].op != op || is_in(r, NET_TOGETHER) ||
                    !(form == 0 ? r->point.how == NET_NONBLOCKING : form == 1 ? r->point.in_place : (int)r->point.shape == form - 1))
                    continue;
                const struct net_row *e = even_one(all, r);
                if (e == NULL)
                    continue;
                struct interval mine = times(r->seconds, 1 / r->bus_bytes), its = times(e->seconds, 1 / e->bus_bytes);
                double factor = above(mine, its, FORM_TOLERANCE), other = above(its, mine, FORM_TOLERANCE);
                if (factor > 0)
                    breach_add(&slow, r->bytes, factor);
                if (other > 0)
                    breach_add(&fast, r->bytes, other);
            }
            if (slow.count > 0)
                put(out, "forms", true, slow.worst, "%s %s takes %.2f times the plain call, a byte on the line, at %s", net_op_names[op], names[form], slow.worst,
                    worst(&slow, text));
            if (fast.count > 0 && form != 3)
                put(out, "forms", true, fast.worst, "the plain %s takes %.2f times that %s, a byte on the line, at %s", net_op_names[op], fast.worst, names[form],
                    worst(&fast, text));
        }
}

static void alignment(const struct net_rows *all, struct net_findings *out)
{
    for (int i = 0; i < all->count; i++) {
        const struct net_row *r = &all->items[i];
        const struct net_call *c = &r->point.calls[0];
        int64_t off = c->count / r->ranks * (int64_t)dtype_size(c->type) % 16;
        if (!is_in(r, NET_ALIGNMENT) || r->seconds.count == 0 || (off == 0 && r->point.offset == 0))
            continue;
        const struct net_row *e = even_one(all, r);
        double factor = e != NULL ? above(times(r->seconds, 1 / r->bus_bytes), times(e->seconds, 1 / e->bus_bytes), FORM_TOLERANCE) : 0;
        if (factor > 0 && r->point.offset != 0)
            put(out, "alignment", true, factor, "%s with buffers %d bytes off takes %.2f times the aligned one", net_op_names[c->op], r->point.offset, factor);
        else if (factor > 0)
            put(out, "alignment", true, factor, "%s whose parts are %lld bytes above a multiple of 16 takes %.2f times the one whose parts are multiples",
                net_op_names[c->op], (long long)off, factor);
    }
}

static void hidden(const struct net_rows *all, struct net_findings *out)
{
    for (int i = 0; i < all->count; i++) {
        const struct net_row *r = &all->items[i];
        char size[32];
        if (!sure(r->overlap) || r->point.how != NET_NONBLOCKING || r->overlap.high >= HIDDEN)
            continue;
        put(out, "overlap", true, r->overlap.value, "nonblocking %s of %s bytes beside a product%s: %.0f %% of the shorter side is hidden%s",
            net_op_names[r->point.calls[0].op], sizes_text(r->bytes, size), r->point.product == NET_PRODUCT_TESTED ? " with tests" : "",
            100 * fmax(r->overlap.value, 0), r->point.product == NET_PRODUCT ? ": it moves on only inside MPI's calls" : "");
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Links that take longer than the quick ones. With four ranks two are quick, both where one host is slow and where there are two tiers.
static void links(const struct net_rows *all, struct net_findings *out)
{
    enum { MOST = 64 };
    const struct net_row *by_root[MOST] = {0};
    double seconds[MOST];
    int n = 0, slow = 0, first = -1, ranks = 0;
    char list[240] = "";
    for (int i = 0; i < all->count; i++)
        if (is_in(&all->items[i], NET_LINKS) && sure(all->items[i].seconds) && n < MOST) {
            by_root[all->items[i].point.calls[0].root % MOST] = &all->items[i];
            seconds[n++] = all->items[i].seconds.value;
            ranks = all->items[i].ranks;
        }
    if (n < 3)
        return;
    qsort(seconds, (size_t)n, sizeof *seconds, compare);
    double usual = seconds[(n - 1) / 4], worst_s = seconds[n - 1];
    for (int r = 0; r < ranks && r < MOST; r++)
        if (by_root[r] != NULL && by_root[r]->seconds.low > LINK_TOLERANCE * usual) {
            size_t used = strlen(list);
            snprintf(list + used, sizeof list - used, "%s%d to %d", used > 0 ? ", " : "", r, (r + 1) % ranks);
            first = first < 0 ? r : first;
            slow++;
        }
    if (slow == 0)
        return;
    // Of a slow rank the way to it and the one from it are slow: r-1 to r, r to r+1.
    int rank = slow != 2 ? -1 : by_root[(first + 1) % ranks] != NULL && by_root[(first + 1) % ranks]->seconds.low > LINK_TOLERANCE * usual ? first + 1
               : first == 0 && by_root[ranks - 1] != NULL && by_root[ranks - 1]->seconds.low > LINK_TOLERANCE * usual ? 0 : -1;
    if (rank >= 0)
        put(out, "links", true, worst_s / usual, "rank %d (host %d) is slow: the ways to and from it take up to %.1f times the others", rank,
            rank * by_root[first]->hosts / ranks, worst_s / usual);
    else
        put(out, "links", true, worst_s / usual, "the ways between ranks %s take up to %.1f times the others: the fabric has two tiers, or these links are slow", list,
            worst_s / usual);
}

// No line carries more than its rate.
static void fits_above(const struct net_rows *all, struct net_findings *out)
{
    struct net_fit fits[NET_FITS];
    for (int i = 0, n = net_fits(all, fits); i < n; i++)
        if (net_fit_share(&fits[i]) > 1)
            put(out, "fit", true, net_fit_share(&fits[i]), "fit above the line rate: %.0f %% of it, of %s: the burst, %.0f bytes that the line lets through at once; %d of %d sizes are beyond it",
                100 * net_fit_share(&fits[i]), net_op_names[fits[i].op], fits[i].burst, fits[i].beyond, fits[i].points);
}

void net_consistency(const struct net_rows *rows, struct net_findings *out)
{
    static void (*const rules[])(const struct net_rows *, struct net_findings *) = {line, fits_above, directions, halves, doubled, blocks, forms, alignment, together, hidden, links};
    out->count = 0;
    for (size_t i = 0; rows->count > 0 && i < sizeof rules / sizeof *rules; i++)
        rules[i](rows, out);
}
