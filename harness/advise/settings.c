// Candidates and the choice. See settings.h.
#include "harness/advise/settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/advise/quantity.h"
#include "harness/protocol/memory.h"

static const double LEVEL = 0.975; // two such intervals give a quotient of 95 % (statistics_quotient)

// What docs/net.md says of Open MPI on a shaped line, each with what is lost without it.
static const char *const tuned[] = {"btl_tcp_flags=1", "btl_tcp_sndbuf=65536", "btl_tcp_rcvbuf=131072", "coll_tuned_use_dynamic_rules=1", "coll_tuned_allgather_algorithm=4",
                                    "coll_tuned_reduce_scatter_algorithm=3", NULL};

// ---- lists of options ----
static int length_of(char *const *mca)
{
    int n = 0;
    while (mca[n] != NULL)
        n++;
    return n;
}

static bool starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static char **find(char **mca, const char *name)
{
    size_t length = strlen(name);
    for (; *mca != NULL; mca++)
        if (strncmp(*mca, name, length) == 0 && (*mca)[length] == '=')
            return mca;
    return NULL;
}

static void copy(char *const *from, char **to)
{
    for (int i = 0; from[i] != NULL && i < FABRIC_WORDS; i++)
        to[i] = memory_text(from[i]);
}

// In place of an earlier one of the same name. A full list stays as it is.
static void set(char **mca, const char *pair)
{
    char *name = memory_format("%.*s", (int)strcspn(pair, "="), pair), **at = find(mca, name);
    int end = length_of(mca);
    if (at != NULL)
        free(*at);
    if (at != NULL || end < FABRIC_WORDS)
        *(at != NULL ? at : mca + end) = memory_text(pair);
    free(name);
}

// The transport and the way to it are no tuning.
static bool tunes(const char *pair)
{
    static const char *const ways[] = {"btl_tcp_if_", "btl_tcp_port_"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (starts(pair, ways[i]))
            return false;
    return starts(pair, "btl_tcp_") || starts(pair, "coll_");
}

static void strip(char **mca)
{
    int kept = 0, count = length_of(mca);
    for (int i = 0; i < count; i++) {
        char *pair = mca[i];
        mca[i] = NULL;
        if (tunes(pair))
            free(pair);
        else
            mca[kept++] = pair;
    }
}

static bool same(char *const *a, char **b)
{
    if (length_of(a) != length_of(b))
        return false;
    for (; *a != NULL; a++) {
        char *name = memory_format("%.*s", (int)strcspn(*a, "="), *a), **at = find(b, name);
        free(name);
        if (at == NULL || strcmp(*a, *at) != 0)
            return false;
    }
    return true;
}

// ---- candidates ----
bool settings_tcp(char *const *mca)
{
    for (; *mca != NULL; mca++)
        if (starts(*mca, "btl=") && strstr(*mca, "tcp") != NULL)
            return true;
    return false;
}

// A further candidate, a copy of the first; dropped again where it comes to the same as one before it.
static struct setting *add(struct settings *s)
{
    struct setting *new = &s->items[s->count++];
    *new = (struct setting){0};
    copy(s->items[0].mca, new->mca);
    return new;
}

static void free_one(struct setting *s)
{
    for (int i = 0; i < FABRIC_WORDS; i++)
        free(s->mca[i]);
    *s = (struct setting){0};
}

static void unless_known(struct settings *s)
{
    for (int i = 0; i < s->count - 1; i++)
        if (same(s->items[i].mca, s->items[s->count - 1].mca)) {
            free_one(&s->items[--s->count]);
            return;
        }
}

static void add_links(struct settings *s)
{
    struct setting *x = add(s);
    char **links = find(x->mca, "btl_tcp_links");
    int now = links != NULL ? atoi(strchr(*links, '=') + 1) : 1, other = now > 1 ? 1 : 2;
    char pair[32];
    snprintf(pair, sizeof pair, "btl_tcp_links=%d", other);
    set(x->mca, pair);
    snprintf(x->name, sizeof x->name, "the same with btl_tcp_links %d in place of %d", other, now);
    unless_known(s);
}

static void add_own(struct settings *s)
{
    struct setting *x = add(s);
    strip(x->mca);
    snprintf(x->name, sizeof x->name, "Open MPI's own choice, the transport alone named");
    unless_known(s);
}

static void add_tuned(struct settings *s)
{
    struct setting *x = add(s);
    for (int i = 0; tuned[i] != NULL; i++)
        set(x->mca, tuned[i]);
    snprintf(x->name, sizeof x->name, "with what docs/net.md says of shaped lines");
    unless_known(s);
}

void settings_make(const struct fabric *f, struct settings *out)
{
    *out = (struct settings){.count = 1};
    copy(f->mca, out->items[0].mca);
    snprintf(out->items[0].name, sizeof out->items[0].name, "as %s says", f->name);
    if (!settings_tcp(f->mca)) {
        snprintf(out->why, sizeof out->why, "no others were tried: %s does not tell Open MPI to use TCP", f->name);
        return;
    }
    add_links(out);
    add_own(out);
    add_tuned(out);
}

void settings_free(struct settings *s)
{
    for (int i = 0; i < s->count; i++)
        free_one(&s->items[i]);
    *s = (struct settings){0};
}

// ---- what was measured, and the choice ----
static bool is_pair(const struct net_point *p)
{
    return p->call_count == 2 && p->calls[0].op == NET_ALL_GATHER && p->calls[1].op == NET_REDUCE_SCATTER && p->calls[0].group == NET_WORLD && p->calls[1].group == NET_WORLD &&
           p->calls[0].type == DTYPE_F32 && p->how == NET_NONBLOCKING;
}

bool settings_take(struct setting *s, const struct net_rows *rows, struct error *error)
{
    for (int i = 0; i < rows->count; i++) {
        const struct stored_series *x = rows->items[i].series;
        if (!is_pair(&rows->items[i].point) || x->count == 0)
            continue;
        int *counts = memory_zeros((size_t)x->launch_count + 1, sizeof *counts);
        for (int k = 0; k < x->launch_count; k++)
            counts[k] = x->launches[k].count;
        s->seconds = statistics_launches(LEVEL, x->launch_count, counts, x->values);
        s->run = x->run;
        s->starts = x->launch_count;
        free(counts);
        return true;
    }
    return error_set(error, "the run of net did not come to the all-gather and reduce-scatter at once: more time is needed");
}

void settings_choose(struct settings *s)
{
    s->chosen = 0;
    for (int i = 0; i < s->count; i++) {
        struct setting *x = &s->items[i], *best = &s->items[s->chosen];
        if (x->seconds.count == 0 || s->items[0].seconds.count == 0)
            continue;
        x->over_first = i == 0 ? (struct interval){1, 1, 1, 1, x->seconds.count} : statistics_quotient(&x->seconds, &s->items[0].seconds);
        x->over_first.coverage = i == 0 ? 1 : fmin(x->over_first.coverage, statistics_launches_coverage(x->starts, s->items[0].starts));
        if (i > 0 && statistics_tells(&x->over_first) && x->over_first.high < 1 && x->seconds.value < best->seconds.value)
            s->chosen = i;
    }
}

// ---- words ----
// What a shell would not leave alone is put into quotes.
char *settings_mpirun(char *const *mca)
{
    char *out = memory_text("mpirun");
    for (; *mca != NULL; mca++) {
        int name = (int)strcspn(*mca, "=");
        const char *value = *mca + name + 1, *quote = strcspn(value, " \t*?$&;|<>()'\"\\") < strlen(value) ? "'" : "";
        char *longer = memory_format("%s --mca %.*s %s%s%s", out, name, *mca, quote, value, quote);
        free(out);
        out = longer;
    }
    return out;
}

static void print_one(const struct settings *s, int i, FILE *out)
{
    const struct setting *x = &s->items[i];
    char seconds[32];
    fprintf(out, "  %c %-52s ", i == s->chosen ? '*' : ' ', x->name);
    if (x->seconds.count == 0)
        fprintf(out, "not measured: %s\n", x->failed);
    else if (i == 0)
        fprintf(out, "%8s\n", quantity_write(x->seconds.value, QUANTITY_SECONDS, seconds, sizeof seconds));
    else
        fprintf(out, "%8s, %.2f times (%.2f to %.2f): %s\n", quantity_write(x->seconds.value, QUANTITY_SECONDS, seconds, sizeof seconds), x->over_first.value, x->over_first.low,
                x->over_first.high, statistics_word(&x->over_first));
}

void settings_print(const struct settings *s, const char *fabric, FILE *out)
{
    char *mpirun = settings_mpirun(s->items[s->chosen].mca), size[32];
    if (s->count > 1) {
        fprintf(out, "Open MPI on %s: all-gather and reduce-scatter of %s at once, %d ranks; * is what the prediction was measured with\n", fabric,
                quantity_write((double)s->bytes, QUANTITY_BYTES, size, sizeof size), s->ranks);
        for (int i = 0; i < s->count; i++)
            print_one(s, i, out);
    } else {
        fprintf(out, "Open MPI on %s: measured %s; %s\n", fabric, s->items[0].name, s->why);
    }
    fprintf(out, "  %s\n", mpirun);
    free(mpirun);
}

static json_t *interval_json(const struct interval *i)
{
    return i->count > 0 ? json_pack("{s:f, s:f, s:f, s:f}", "value", i->value, "low", i->low, "high", i->high, "coverage", i->coverage) : json_null();
}

static json_t *mca_json(char *const *mca)
{
    json_t *out = json_array();
    for (; *mca != NULL; mca++)
        json_array_append_new(out, json_string(*mca));
    return out;
}

json_t *settings_json(const struct settings *s)
{
    json_t *all = json_array();
    for (int i = 0; i < s->count; i++) {
        const struct setting *x = &s->items[i];
        json_array_append_new(all, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:b}", "name", x->name, "mca", mca_json(x->mca), "run", x->run > 0 ? json_integer((json_int_t)x->run) : json_null(),
                                             "seconds", interval_json(&x->seconds), "over_first", interval_json(&x->over_first), "failed", x->failed[0] ? json_string(x->failed) : json_null(), "chosen",
                                             i == s->chosen));
    }
    char *mpirun = settings_mpirun(s->items[s->chosen].mca);
    json_t *out = json_pack("{s:s, s:o, s:s, s:o, s:o}", "mpirun", mpirun, "why_no_others", s->why[0] ? json_string(s->why) : json_null(), "call", "all-gather + reduce-scatter, nonblocking, at once",
                            "bytes", s->bytes > 0 ? json_integer((json_int_t)s->bytes) : json_null(), "candidates", all);
    free(mpirun);
    return out;
}
