// Which rows a bench has: fabrics x workloads x implementations x strategies. See bench.h.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/advise/model.h"
#include "harness/cases/strings.h"
#include "harness/cli/bench.h"
#include "harness/launch/launch.h"
#include "harness/protocol/memory.h"

static const int64_t most_by_default = 2000000; // parameters of a workload that nobody named
enum { DEFAULT_RANKS = 2 };

static bool read_implementations(const struct bench_request *r, struct bench_plan *p, struct error *error)
{
    p->implementations = memory_zeros((size_t)r->implementations.count + 1, sizeof *p->implementations);
    for (int i = 0; i < r->implementations.count; i++) {
        if (!implementation_read(r->implementations.items[i], r->suite, &p->implementations[i], error))
            return false;
        p->implementation_count++;
        for (int k = 0; k < i; k++)
            if (strcmp(p->implementations[k].name, p->implementations[i].name) == 0)
                return error_set(error, "implementation %s: found twice, expected each once", p->implementations[i].name);
        if (!session_installed(&p->implementations[i], error))
            return false;
    }
    return true;
}

static bool find_files(const struct bench_request *r, struct bench_plan *p, struct error *error)
{
    struct string_list all = {0};
    char *folder = memory_format("%s/workloads", r->suite);
    bool ok = r->workloads.count > 0 || folder_list(folder, ".yaml", &all, error);
    p->files = memory_zeros((size_t)(r->workloads.count + all.count) + 1, sizeof *p->files);
    for (int i = 0; ok && i < r->workloads.count; i++)
        if ((ok = (p->files[p->file_count] = suite_workload_file(r->suite, r->workloads.items[i], error)) != NULL))
            p->file_count++;
    for (int i = 0; ok && i < all.count; i++)
        p->files[p->file_count++] = memory_text(all.items[i]);
    string_list_free(&all);
    free(folder);
    return ok;
}

static bool read_fabric(const struct bench_request *r, const char *name, struct bench_fabric *f, struct error *error)
{
    f->given = true;
    if (!fabric_read(name, r->suite, &f->fabric, error))
        return false;
    f->name = f->fabric.name;
    return f->fabric.kind != FABRIC_HOSTS || fabric_hosts(&f->fabric, r->hostfile, r->agent, error);
}

static bool open_fabric(const struct cli *cli, struct bench_fabric *f, struct error *error)
{
    f->absent = fabric_unavailable(&f->fabric);
    return f->absent != NULL || fabric_open(&f->fabric, 0, cli->program, &f->place, error);
}

static bool hosts_are_asked(const struct bench_request *r, const struct bench_plan *p, struct error *error)
{
    const char *option = r->hostfile != NULL ? "hostfile" : r->agent != NULL ? "agent" : NULL;
    bool some = option == NULL;
    for (int i = 0; i < p->fabric_count; i++)
        some |= p->fabrics[i].given && p->fabrics[i].fabric.kind == FABRIC_HOSTS;
    return some || error_set(error, "--%s: found without a fabric of the kind hosts, expected -f hosts with it", option);
}

static bool open_fabrics(const struct cli *cli, const struct bench_request *r, struct bench_plan *p, struct error *error)
{
    int count = r->fabrics.count > 0 ? r->fabrics.count : 1;
    p->fabrics = memory_zeros((size_t)count, sizeof *p->fabrics);
    for (int i = 0; i < count; i++)
        p->fabrics[i].fabric = (struct fabric){.slow_host = -1};
    for (int i = 0; i < r->fabrics.count; i++) {
        p->fabric_count++;
        if (!read_fabric(r, r->fabrics.items[i], &p->fabrics[i], error))
            return false;
        for (int k = 0; k < i; k++)
            if (strcmp(p->fabrics[k].name, p->fabrics[i].name) == 0)
                return error_set(error, "fabric %s: found twice, expected each once", p->fabrics[i].name);
    }
    bool ok = hosts_are_asked(r, p, error);
    for (int i = 0; ok && i < r->fabrics.count; i++)
        ok = open_fabric(cli, &p->fabrics[i], error);
    if (r->fabrics.count == 0)
        p->fabrics[p->fabric_count++].name = BENCH_HERE;
    return ok;
}

// ---- rows ----
// What a row is made for: one implementation at one workload file on one fabric.
struct making {
    const struct bench_request *r;
    const struct implementation *implementation;
    const struct bench_fabric *fabric;
    const char *file;
    int ranks;
    struct bench *b;
};

static struct bench_row *new_row(struct bench *b, struct bench_item item)
{
    b->table.rows = memory_grow(b->table.rows, (size_t)b->table.count, sizeof *b->table.rows);
    b->items = memory_grow(b->items, (size_t)b->table.count, sizeof *b->items);
    b->items[b->table.count] = item;
    struct bench_row *row = &b->table.rows[b->table.count++];
    *row = (struct bench_row){.peak_bytes = {.value = NAN}, .sent_bytes = {.value = NAN}, .energy_j = {.value = NAN}, .exposed = {.value = NAN}};
    return row;
}

static void skip(struct bench_row *row, const char *why)
{
    row->state = BENCH_SKIP;
    snprintf(row->why, sizeof row->why, "%s", why);
}

// NULL where some launcher of the manifest can start it there.
static char *fabric_refusal(const struct making *m)
{
    const char *why = NULL;
    if (m->fabric->absent != NULL)
        return memory_format("fabric %s cannot be had here: %s", m->fabric->name, m->fabric->absent);
    char *crowded = m->fabric->place != NULL ? fabric_place_crowded(m->fabric->place, m->ranks) : NULL;
    if (crowded != NULL)
        return crowded;
    for (int k = 0; m->fabric->given && k < m->implementation->launchers.count; k++)
        if ((why = fabric_refuses(&m->fabric->fabric, m->implementation->launchers.items[k])) == NULL)
            return NULL;
    return why != NULL ? memory_format("fabric %s takes %s", m->fabric->name, why) : NULL;
}

// The case's name is what stands before the first point of its id.
static char *name_of(const struct fsdp_case *c)
{
    return memory_format("%.*s", (int)strcspn(c->id, "."), c->id);
}

static char *strategy_of(const struct fsdp_case *c)
{
    const struct sharding_spec *s = &c->sharding;
    return s->strategy == STRATEGY_HYBRID ? memory_format("hybrid-%dx%d", s->replicas, s->shards) : memory_text(strategy_name(s->strategy));
}

static bool count_work(struct bench_row *row, const struct fsdp_case *c, struct error *error)
{
    struct workload_model w = {0};
    if (!workload_create(&w, c, c->global_rows / case_data_ranks(c), error))
        return false;
    row->tokens = w.tokens;
    row->flop = w.flop;
    workload_free(&w);
    for (int i = 0; i < c->parameter_count; i++)
        row->parameters += c->parameters[i].tied_to < 0 ? c->parameters[i].count : 0;
    return true;
}

static bool observes_parameters(const struct fsdp_case *c)
{
    bool after_step = false, seen = false;
    for (int i = 0; i < c->program_length; i++) {
        after_step |= c->program[i].verb == VERB_STEP;
        seen |= after_step && c->program[i].verb == VERB_OBSERVE && c->program[i].what & OBSERVE_PARAM;
    }
    return seen;
}

// The table's peak is of float32 products on one core of this machine.
static void tell_peak(struct bench_row *row, const struct fsdp_case *c, const struct fabric *f)
{
    if (c->precision.compute != DTYPE_F32)
        snprintf(row->mfu_why, sizeof row->mfu_why, "the peak of products in %s is unknown: that of float32 is measured", dtype_name(c->precision.compute));
    else if (f->kind == FABRIC_NCCL)
        snprintf(row->mfu_why, sizeof row->mfu_why, "the peak of the GPU is unknown: that of a core is measured");
    else if (f->kind == FABRIC_HOSTS || f->kind == FABRIC_SLURM)
        snprintf(row->mfu_why, sizeof row->mfu_why, "the peak of the other machines is unknown: that of this one is measured");
}

static bool add_row(const struct making *m, const struct planned_case *planned, struct error *error)
{
    const struct fsdp_case *c = &planned->c;
    if (c->layer == LAYER_MEASURED || !observes_parameters(c) || bench_timed(c) <= BENCH_WARM)
        return error_set(error, "%s: found %s, expected what can be timed and judged: more than %d steps before one with observations, parameters observed after it, and a layer other than measured",
                         planned->origin, c->id, BENCH_WARM);
    struct bench_item item = {.implementation = m->implementation, .place = m->fabric->place, .plan = {.count = 1}};
    item.plan.cases = memory_zeros(1, sizeof *item.plan.cases);
    item.plan.cases[0] = (struct planned_case){.gate = -1, .saver = -1, .origin = memory_text(planned->origin)};
    case_copy(&item.plan.cases[0].c, c);
    struct bench_row *row = new_row(m->b, item);
    row->implementation = m->implementation->name;
    row->workload = name_of(c);
    row->fabric = m->fabric->name;
    row->precision = dtype_name(c->precision.compute);
    row->strategy = strategy_of(c);
    row->ranks = c->world_size;
    row->rows = c->global_rows;
    for (const struct bench_row *r = m->b->table.rows; r < row; r++)
        if (r->implementation == row->implementation && r->fabric == row->fabric && strcmp(r->workload, row->workload) == 0 && strcmp(r->strategy, row->strategy) == 0)
            return error_set(error, "%s: found workload %s, strategy %s twice, expected each once", planned->origin, row->workload, row->strategy);
    row->steps = bench_timed(c);
    tell_peak(row, c, &m->fabric->fabric);
    if (m->fabric->place != NULL && m->fabric->fabric.slow_host < 0 && m->fabric->fabric.group == 0)
        row->rate_bits = fabric_place_rate(m->fabric->place, 0);
    char *refusal = planned->skip != NULL ? memory_text(planned->skip) : fabric_refusal(m);
    if (refusal != NULL)
        skip(row, refusal);
    free(refusal);
    return count_work(row, c, error);
}

static bool is_asked(const struct making *m, const struct planned_case *p, const char *strategy)
{
    return !p->is_gate && !p->is_saver && p->c.world_size == m->ranks && strcmp(dtype_name(p->c.precision.compute), m->r->precision) == 0 &&
           (strategy == NULL || strcmp(strategy_name(p->c.sharding.strategy), strategy) == 0);
}

static const struct planned_case *find(const struct making *m, const struct plan *plan, const char *strategy, bool able)
{
    for (int i = 0; i < plan->count; i++)
        if (is_asked(m, &plan->cases[i], strategy) && (!able || plan->cases[i].skip == NULL))
            return &plan->cases[i];
    return NULL;
}

// Adds to the list, once.
static void tell(char list[200], const char *word)
{
    size_t size = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += size)
        if ((at == list || at[-1] == ' ') && (at[size] == 0 || at[size] == ','))
            return;
    snprintf(list + strlen(list), 200 - strlen(list), "%s%s", list[0] != 0 ? ", " : "", word);
}

static bool no_such_case(const struct making *m, const struct plan *plan, const char *strategy, struct error *error)
{
    char ranks[200] = "", precisions[200] = "", strategies[200] = "", number[16];
    for (int i = 0; i < plan->count; i++)
        if (!plan->cases[i].is_gate && !plan->cases[i].is_saver) {
            snprintf(number, sizeof number, "%d", plan->cases[i].c.world_size);
            tell(ranks, number);
            tell(precisions, dtype_name(plan->cases[i].c.precision.compute));
            tell(strategies, strategy_name(plan->cases[i].c.sharding.strategy));
        }
    return error_set(error, "%s: found no case of %d ranks, precision %s%s%s; its ranks are %s, its precisions %s, its strategies %s", m->file, m->ranks, m->r->precision,
                     strategy != NULL ? ", strategy " : "", strategy != NULL ? strategy : "", ranks, precisions, strategies);
}

// One that takes minutes is measured only where it was named.
static bool is_large(const struct plan *plan)
{
    int64_t most = 0;
    for (int i = 0; i < plan->count; i++) {
        int64_t elements = 0;
        for (int k = 0; k < plan->cases[i].c.parameter_count; k++)
            elements += plan->cases[i].c.parameters[k].count;
        most = elements > most ? elements : most;
    }
    return most > most_by_default;
}

// Without --strategy: full where the implementation has it, else the first that it has.
static bool add_rows(const struct making *m, const struct plan *plan, struct error *error)
{
    const struct option_list *asked = &m->r->strategies;
    if (m->r->workloads.count == 0 && is_large(plan))
        return true;
    for (int i = 0; i < (asked->count > 0 ? asked->count : 1); i++) {
        const char *strategy = asked->count > 0 ? asked->items[i] : NULL;
        const struct planned_case *p = strategy != NULL ? find(m, plan, strategy, false) : find(m, plan, "full", true);
        p = p == NULL && strategy == NULL ? find(m, plan, NULL, true) : p;
        p = p == NULL && strategy == NULL ? find(m, plan, NULL, false) : p;
        if (p == NULL)
            return no_such_case(m, plan, strategy, error);
        if (!add_row(m, p, error))
            return false;
    }
    return true;
}

static bool make_rows(struct making *m, struct error *error)
{
    struct selection selection = {.suite = m->r->suite, .case_file = m->file, .seed = (uint64_t)m->r->seed, .scale = 1};
    struct plan plan;
    int hosts = m->fabric->place != NULL ? fabric_place_hosts(m->fabric->place) : 1;
    m->ranks = m->r->ranks > 0 ? (int)m->r->ranks : hosts > 1 ? hosts : DEFAULT_RANKS;
    bool ok = plan_make(&selection, m->implementation, &plan, error);
    ok = ok && add_rows(m, &plan, error);
    plan_free(&plan);
    return ok;
}

bool bench_plan(const struct cli *cli, const struct bench_request *r, struct bench_plan *p, struct bench *b, struct error *error)
{
    bool ok = read_implementations(r, p, error) && find_files(r, p, error) && open_fabrics(cli, r, p, error);
    for (int f = 0; f < p->fabric_count; f++)
        for (int w = 0; ok && w < p->file_count; w++)
            for (int i = 0; ok && i < p->implementation_count; i++) {
                struct making m = {r, &p->implementations[i], &p->fabrics[f], p->files[w], 0, b};
                ok = make_rows(&m, error);
            }
    return ok;
}

void bench_plan_free(struct bench_plan *p)
{
    for (int i = 0; i < p->implementation_count; i++)
        implementation_free(&p->implementations[i]);
    for (int i = 0; i < p->fabric_count; i++) {
        if (p->fabrics[i].place != NULL)
            fabric_close(p->fabrics[i].place);
        fabric_free(&p->fabrics[i].fabric);
        free(p->fabrics[i].absent);
    }
    for (int i = 0; i < p->file_count; i++)
        free(p->files[i]);
    free(p->implementations);
    free(p->fabrics);
    free(p->files);
    *p = (struct bench_plan){0};
}
