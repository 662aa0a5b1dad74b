// The verdict as one paragraph, and what it rests on. See advise.h.
#include "harness/advise/advise.h"
#include "harness/advise/quantity.h"

enum { WORD = 48 };

static const char *bandwidth(double value, char text[WORD]) { return quantity_write(value, QUANTITY_BANDWIDTH, text, WORD); }

static void interval_text(const struct interval *i, char *text, size_t size)
{
    char value[WORD], low[WORD], high[WORD];
    if (i->count == 0)
        snprintf(text, size, "%s", bandwidth(i->value, value));
    else
        snprintf(text, size, "%s (%s to %s)", bandwidth(i->value, value), bandwidth(i->low, low), isinf(i->high) ? "beyond what was looked at" : bandwidth(i->high, high));
}

static void say_best(const struct advice *a, FILE *out)
{
    const struct advice_row *r = &a->rows[a->best];
    const struct schedule *s = &r->candidate.schedule;
    char step[WORD], line[WORD];
    fprintf(out, "On %d rank%s with %s to a rank%s, %s", a->q->ranks, a->q->ranks == 1 ? "" : "s", bandwidth(machine_bandwidth(&a->q->machine), line),
            a->q->machine.tiers[1].ranks > 0 ? " between groups" : "", r->candidate.name);
    if (s->strategy == STRATEGY_HYBRID)
        fprintf(out, " (%d replicas of %d shards)", s->replicas, s->shards);
    fprintf(out, " is the fastest strategy%s: %s a step, %.0f %% of it communication that nothing hides.", a->count > 1 ? " that fits" : "",
            quantity_write(r->p.step_s, QUANTITY_SECONDS, step, sizeof step), 100 * r->p.exposed_s / r->p.step_s);
}

static void say_what_does_not_fit(const struct advice *a, FILE *out)
{
    int count = 0;
    char need[WORD];
    for (int i = 0; i < a->count; i++)
        if (!a->rows[i].fits)
            fprintf(out, "%s %s (%s)", count++ > 0 ? "," : " Too large for a rank:", a->rows[i].candidate.name,
                    quantity_write(a->rows[i].memory_bytes, QUANTITY_BYTES, need, sizeof need));
    fputs(count > 0 ? "." : "", out);
}

static void say_changes(const struct advice *a, FILE *out)
{
    char at[WORD];
    if (a->crossing_count == 0)
        fputs(" No other bandwidth that was looked at changes that.", out);
    for (int i = 0; i < a->crossing_count; i++)
        fprintf(out, "%s %s is best up to %s,", i == 0 ? " Over bandwidth," : "", a->rows[a->crossings[i].from].candidate.name, bandwidth(a->crossings[i].bandwidth, at));
    if (a->crossing_count > 0)
        fprintf(out, " %s above.", a->rows[a->crossings[a->crossing_count - 1].to].candidate.name);
}

static void say_pays(const struct advice *a, FILE *out)
{
    char text[4 * WORD];
    interval_text(&a->pays, text, sizeof text);
    if (a->pays.value == 0)
        fputs(" FSDP (full) beats plain data parallelism (none) at every bandwidth that was looked at.", out);
    else if (isinf(a->pays.value))
        fputs(" FSDP (full) is slower than plain data parallelism (none) at every bandwidth that was looked at: what it gives is memory.", out);
    else
        fprintf(out, " FSDP (full) loses to plain data parallelism (none) below %s.", text);
}

static void say_bound(const struct advice *a, FILE *out)
{
    char text[4 * WORD];
    interval_text(&a->bound, text, sizeof text);
    if (isinf(a->bound.value))
        fprintf(out, " It is never bound by computing: even at the largest bandwidth more than %.0f %% of its step waits, for latencies.", 100 * CROSSOVER_COMPUTE_BOUND);
    else if (a->bound.value == 0)
        fputs(" It is bound by computing at every bandwidth that was looked at.", out);
    else
        fprintf(out, " It is bound by computing (at most %.0f %% exposed) above %s.", 100 * CROSSOVER_COMPUTE_BOUND, text);
}

void advise_words(const struct advice *a, FILE *out)
{
    if (a->best < 0) {
        fputs("No strategy fits.", out);
        say_what_does_not_fit(a, out);
        fputs(" More ranks, fewer rows, activation checkpointing or a narrower precision would help.\n", out);
        return;
    }
    say_best(a, out);
    say_what_does_not_fit(a, out);
    say_changes(a, out);
    if (a->q->ranks > 1) {
        say_pays(a, out);
        say_bound(a, out);
    }
    fputc('\n', out);
}

static void say_tier(const struct machine *m, int t, FILE *out)
{
    char alpha[WORD], line[WORD];
    fprintf(out, "  %s: %s a step of a collective, %s to a rank\n", m->tiers[1].ranks == 0 ? "interconnect" : t == 0 ? "inside a group" : "between groups",
            quantity_write(m->tiers[t].alpha_s, QUANTITY_SECONDS, alpha, sizeof alpha), bandwidth(1 / m->tiers[t].beta_s_per_byte, line));
}

void advise_settings(const struct advice *a, FILE *out)
{
    if (a->q->settings == NULL)
        return;
    settings_print(a->q->settings, a->q->measured->fabric, out);
    fputc('\n', out);
}

void advise_assumptions(const struct advice *a, FILE *out)
{
    const struct machine *m = &a->q->machine;
    const struct fsdp_case *c = a->q->c;
    char flop[WORD], copy[WORD], update[WORD];
    fprintf(out, "assumptions\n  machine: %s\n", a->q->facts.source);
    for (int i = 0; a->q->measured != NULL && i < a->q->measured->note_count; i++)
        fprintf(out, "  %s\n", a->q->measured->notes[i]);
    if (m->tiers[1].ranks > 0)
        fprintf(out, "  groups: %d of %d ranks\n", m->tiers[1].ranks, m->tiers[0].ranks);
    for (int t = 0; t < 1 + (m->tiers[1].ranks > 0); t++)
        say_tier(m, t, out);
    fprintf(out, "  collectives: %s; several at once share a line, which then carries %.3g times what it carries for one\n", exchange_name(m->exchange), m->both_ways);
    fprintf(out, "  a rank: %s in matrix products, %s copied, %s updated by the optimizer; computing %.3g times as long beside communication\n",
            quantity_write(m->flop_rate, QUANTITY_FLOPS, flop, sizeof flop), quantity_write(m->copy_rate, QUANTITY_BYTE_RATE, copy, sizeof copy),
            quantity_write(m->update_rate, QUANTITY_BYTE_RATE, update, sizeof update), m->contention);
    fprintf(out, "  %s\n", isinf(m->unattended_bytes) ? "communication goes on by itself while a rank computes" : "communication goes on while a rank computes as far as the buffers of the system hold it");
    fprintf(out, "  schedule: the reference engine's; wrap %s, prefetch %d forward and %d backward, %s after forward, layout %s, %lld microbatch%s, activation checkpointing %s\n",
            wrap_name(c->sharding.wrap), c->sharding.prefetch_forward, c->sharding.prefetch_backward, c->sharding.reshard_after_forward ? "resharding" : "no resharding",
            layout_name(c->sharding.layout), (long long)c->data.micros, c->data.micros == 1 ? "" : "es", c->sharding.activation_checkpointing ? "on" : "off");
    fputs("  all ranks alike: no rank is slower, no link is shared with others\n", out);
}
