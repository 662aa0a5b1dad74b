// The starts of a bench: first those with probes, then rounds of timed ones in shuffled order. See rounds.h.
//
// Each timed start's samples are in the store before the next begins, so that whatever ends the program leaves what was measured.
#include "harness/bench/rounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/launch/interrupt.h"
#include "harness/launch/launch.h"
#include "harness/launch/template.h"
#include "harness/probes/counters.h"
#include "harness/probes/exposed.h"
#include "harness/protocol/memory.h"
#include "harness/store/series.h"

static const unsigned probes_of[BENCH_PURPOSES] = {[BENCH_MEMORY] = 1u << PROBE_HEAP, [BENCH_TRAFFIC] = 1u << PROBE_MPI | 1u << PROBE_SOCKET | 1u << PROBE_WAITS};

unsigned bench_probes(void)
{
    unsigned all = 0;
    for (int p = 0; p < BENCH_PURPOSES; p++)
        all |= probes_of[p];
    return all;
}

struct start { struct bench *b; int row, round; enum bench_purpose purpose; };

// ---- the verdict of a start ----
// What the probes of a start are judged by is not asked here: the model is of another size than those checks need.
static bool counts_here(const struct result *r) { return strncmp(r->check, "memory", 6) != 0 && strncmp(r->check, "traffic", 7) != 0; }

static enum verdict numbers_verdict(const struct run_verdict *v, char why[BENCH_WHY])
{
    enum verdict *of = memory_zeros((size_t)v->result_count + 1, sizeof *of), verdict;
    int count = 0;
    for (int i = 0; i < v->result_count; i++)
        if (counts_here(&v->results[i]))
            of[count++] = v->results[i].finding.verdict;
    verdict = run_verdict_of(of, count);
    for (int i = 0; i < v->result_count && why[0] == 0 && verdict != VERDICT_PASS; i++)
        if (counts_here(&v->results[i]) && v->results[i].finding.verdict == verdict)
            snprintf(why, BENCH_WHY, "%s: %.200s", v->results[i].check, v->results[i].finding.message);
    free(of);
    return verdict;
}

static void close_row(struct bench_row *r, enum verdict verdict, const char *why)
{
    r->state = verdict == VERDICT_FAIL ? BENCH_WRONG : verdict == VERDICT_SKIP ? BENCH_SKIP : BENCH_BROKEN;
    snprintf(r->why, sizeof r->why, "%s", why);
}

static json_t *point_of(const struct bench_row *r)
{
    return json_pack("{si sI ss ss}", "ranks", r->ranks, "rows", (json_int_t)r->rows, "strategy", r->strategy, "precision", r->precision);
}

static bool store_facts(struct bench *b, struct bench_row *r, struct error *error)
{
    bool ok = true;
    json_t *point = point_of(r), *facts = bench_facts(&b->table, r);
    struct series series = {"bench", r->fabric, r->implementation, r->workload, "seconds", point, facts};
    if (r->series == 0)
        ok = store_add_series(b->session.store, b->session.run, &series, &r->series, error);
    else
        ok = store_set_series_facts(b->session.store, r->series, facts, error);
    json_decref(point);
    json_decref(facts);
    return ok;
}

static bool take_times(const struct start *s, struct bench_row *r, const struct run_verdict *v, struct error *error)
{
    struct bench_launch launch = {.round = s->round};
    char why[BENCH_WHY] = "";
    launch.count = bench_steps(v->seen, r->ranks, r->steps, &launch.seconds, why);
    if (launch.count == 0) {
        close_row(r, VERDICT_BROKEN, why);
        return true;
    }
    r->launches = memory_grow(r->launches, (size_t)r->launch_count, sizeof *r->launches);
    r->launches[r->launch_count++] = launch;
    return store_add_samples(s->b->session.store, r->series, s->round, launch.count, launch.seconds, error);
}

static void take_traffic(const struct start *s, struct bench_row *r, const struct run_verdict *v)
{
    struct exposed exposed;
    bench_seen_sent(v->seen, r->ranks, &r->sent_bytes);
    bench_seen_energy(v->seen, s->b->energy_events, s->b->energy_why, &r->energy_j);
    if (v->seen == NULL)
        snprintf(r->exposed_why, sizeof r->exposed_why, "nothing was recorded");
    else if (exposed_of(v->seen, r->ranks, &exposed, r->exposed_why))
        r->exposed = exposed.share;
}

// The probes could not be loaded, or what they see was not to be had: that is not the row's fault.
static void no_figures(const struct start *s, struct bench_row *r, const char *why)
{
    if (s->purpose == BENCH_MEMORY) {
        r->peak_bytes = (struct bench_figure){.value = NAN};
        snprintf(r->peak_bytes.why, BENCH_WHY, "%s", why);
        return;
    }
    r->sent_bytes = r->energy_j = (struct bench_figure){.value = NAN};
    snprintf(r->sent_bytes.why, BENCH_WHY, "%s", why);
    snprintf(r->energy_j.why, BENCH_WHY, "%s", why);
    snprintf(r->exposed_why, sizeof r->exposed_why, "%s", why);
}

static bool take(void *context, const struct run_verdict *v, struct error *error)
{
    const struct start *s = context;
    struct bench_row *r = &s->b->table.rows[s->row];
    char why[BENCH_WHY] = "";
    enum verdict verdict = numbers_verdict(v, why);
    bool ok = true;
    if (verdict == VERDICT_BROKEN && s->purpose != BENCH_TIMED)
        no_figures(s, r, why);
    else if (verdict != VERDICT_PASS)
        close_row(r, verdict, why);
    else if (s->purpose == BENCH_TIMED)
        ok = take_times(s, r, v, error);
    else if (s->purpose == BENCH_MEMORY)
        bench_seen_peak(v->seen, r->ranks, r->steps, &r->peak_bytes);
    else
        take_traffic(s, r, v);
    return (r->series == 0 || store_facts(s->b, r, error)) && ok;
}

// ---- starts ----
// Rows of one implementation on one place share what has made the imports.
static struct template **slot_of(struct bench *b, int row, enum bench_purpose purpose)
{
    int first = 0;
    while (b->items[first].implementation != b->items[row].implementation || b->items[first].place != b->items[row].place)
        first++;
    return &b->items[first].templates[purpose];
}

static struct template *template_of(struct bench *b, int row, enum bench_purpose purpose)
{
    struct template **t = slot_of(b, row, purpose);
    char *folder = memory_format("%s/template.%d.%d", b->session.scratch, row, (int)purpose);
    if (*t == NULL)
        *t = template_new(folder, b->session.settings.case_deadline_s / 2);
    free(folder);
    return *t;
}

static void end_template(struct bench *b, int row, enum bench_purpose purpose)
{
    struct template **t = slot_of(b, row, purpose);
    template_free(*t);
    *t = NULL;
}

static bool start(struct bench *b, int row, int round, enum bench_purpose purpose, struct error *error)
{
    struct start s = {b, row, round, purpose};
    struct bench_item *item = &b->items[row];
    struct run_settings settings = b->session.settings;
    settings.place = item->place;
    settings.template = template_of(b, row, purpose);
    settings.memo = &item->memo;
    settings.context = &s;
    settings.tell = NULL;
    item->plan.marks = true;
    item->plan.probes = probes_of[purpose];
    item->plan.counters = purpose == BENCH_TRAFFIC ? b->energy_events : NULL;
    item->plan.probes |= (unsigned)(item->plan.counters != NULL) << PROBE_PAPI;
    bool ok = run_cases(&settings, item->implementation, &item->plan, NULL, &b->session.cache, take, &b->session.counts, error);
    item->plan.counters = NULL;
    return ok;
}

bool bench_probe_memory(struct bench *b, int row, struct error *error)
{
    bool ok = start(b, row, 0, BENCH_MEMORY, error);
    end_template(b, row, BENCH_MEMORY);
    return ok;
}

static bool is_open(const struct bench *b, int row) { return b->table.rows[row].state == BENCH_OPEN && !interrupt_signal(); }

static void tell(struct bench *b, const char *what, int row)
{
    const struct bench_row *r = &b->table.rows[row];
    bool terminal = isatty(fileno(b->news));
    fprintf(b->news, "%s%s: %s %s, %s on %s, %d ranks%s", terminal ? "\r\x1b[K" : "", what, r->implementation, r->workload, r->strategy, r->fabric, r->ranks,
            terminal ? "" : "\n");
    fflush(b->news);
}

static bool probe_rows(struct bench *b, struct error *error)
{
    static const char *const words[] = {[BENCH_MEMORY] = "memory", [BENCH_TRAFFIC] = "bytes and waits"};
    bool ok = true;
    for (enum bench_purpose p = BENCH_MEMORY; p < BENCH_PURPOSES; p++) {
        for (int row = 0; ok && row < b->table.count; row++) {
            if (!is_open(b, row) || (p == BENCH_MEMORY && b->table.rows[row].peak_bytes.value > 0))
                continue;
            tell(b, words[p], row);
            ok = start(b, row, 0, p, error);
        }
        for (int row = 0; row < b->table.count; row++)
            end_template(b, row, p);
    }
    return ok;
}

// A peak that a batch was looked for with stays.
static void leave_out(struct bench *b)
{
    static const char why[] = "left out by --no-probes";
    for (int row = 0; row < b->table.count; row++) {
        struct start s = {b, row, 0, BENCH_TRAFFIC};
        no_figures(&s, &b->table.rows[row], why);
        s.purpose = BENCH_MEMORY;
        if (!(b->table.rows[row].peak_bytes.value > 0))
            no_figures(&s, &b->table.rows[row], why);
    }
}

// In the table's order, those that cannot be measured too; not before each has its batch, which is part of its point.
static bool store_rows(struct bench *b, struct error *error)
{
    bool ok = true;
    for (int row = 0; ok && row < b->table.count; row++)
        ok = store_facts(b, &b->table.rows[row], error);
    return ok;
}

// ---- rounds ----
static int open_rows(const struct bench *b)
{
    int open = 0;
    for (int row = 0; row < b->table.count; row++)
        open += b->table.rows[row].state == BENCH_OPEN;
    return open;
}

static double widest(const struct bench_table *t)
{
    double most = 0;
    for (int i = 0; i < t->count; i++) {
        struct interval step = bench_step(&t->rows[i]);
        if (step.count > 0)
            most = fmax(most, (step.high - step.low) / 2 / step.value);
    }
    return most;
}

static void tell_round(struct bench *b, int round)
{
    bool terminal = isatty(fileno(b->news));
    fprintf(b->news, "%sround %d: %.0f of %.0f s, widest interval +-%.1f %%%s", terminal ? "\r\x1b[K" : "", round, b->table.seconds, b->limits.seconds, 100 * widest(&b->table),
            terminal ? "" : "\n");
    fflush(b->news);
}

// NULL: goes on.
static const char *enough(struct bench *b, int rounds)
{
    if (interrupt_signal())
        return "interrupted";
    if (open_rows(b) == 0)
        return "no row is left to measure";
    if (bench_narrow(&b->table, b->limits.narrow))
        return "every interval is narrow enough";
    if (b->limits.most_rounds > 0 && rounds >= b->limits.most_rounds)
        return "all rounds are done";
    return b->table.seconds >= b->limits.seconds ? "the time is up" : NULL;
}

// The first round is always ended, unless interrupted: each row has something then.
static bool one_round(struct bench *b, int round, double began_s, bool *cut, struct error *error)
{
    int *order = memory_zeros((size_t)b->table.count + 1, sizeof *order);
    bool ok = true;
    *cut = false;
    statistics_shuffle(b->table.count, order, b->limits.seed + (uint64_t)round);
    for (int i = 0; ok && i < b->table.count; i++) {
        if (b->table.rows[order[i]].state != BENCH_OPEN)
            continue;
        if (interrupt_signal() || (round > 0 && launch_now() - began_s >= b->limits.seconds)) {
            *cut = true;
            break;
        }
        if (isatty(fileno(b->news)))
            tell(b, "time", order[i]);
        ok = start(b, order[i], round, BENCH_TIMED, error);
    }
    free(order);
    return ok;
}

bool bench_rounds(struct bench *b, struct error *error)
{
    if (!b->limits.probed)
        leave_out(b);
    bool ok = store_rows(b, error) && (!b->limits.probed || probe_rows(b, error)), cut;
    double began_s = launch_now();
    for (int round = 0; ok && (b->table.ended = enough(b, round)) == NULL; round++) {
        ok = one_round(b, round, began_s, &cut, error);
        b->table.rounds += ok && !cut;
        b->table.seconds = launch_now() - began_s;
        if (ok)
            tell_round(b, round + 1);
    }
    if (isatty(fileno(b->news)))
        fputs("\r\x1b[K", b->news);
    return ok && store_rows(b, error); // with what ended them
}

// ---- energy ----
// Of `default`, the events that tell energy.
void bench_find_energy(struct bench *b)
{
    struct error error = {0};
    char *all = NULL, *rest;
    if (!counters_resolve("default", &all, &error)) {
        snprintf(b->energy_why, BENCH_WHY, "%.200s", error.text);
        return;
    }
    for (char *event = strtok_r(all, ",", &rest); event != NULL; event = strtok_r(NULL, ",", &rest)) {
        if (strstr(event, "energy") == NULL && strstr(event, "ENERGY") == NULL)
            continue;
        char *longer = b->energy_events != NULL ? memory_format("%s,%s", b->energy_events, event) : memory_text(event);
        free(b->energy_events);
        b->energy_events = longer;
    }
    if (b->energy_events == NULL)
        snprintf(b->energy_why, BENCH_WHY, "no component of PAPI tells energy here (fsdpmark doctor)");
    free(all);
}

void bench_items_free(struct bench *b)
{
    for (int i = 0; i < b->table.count && b->items != NULL; i++) {
        for (int p = 0; p < BENCH_PURPOSES; p++)
            template_free(b->items[i].templates[p]);
        plan_free(&b->items[i].plan);
        memo_free(&b->items[i].memo);
    }
    free(b->items);
    free(b->energy_events);
    b->items = NULL;
    b->energy_events = NULL;
}
