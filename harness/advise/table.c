// The strategies as a table and as JSON. See advise.h.
#include "harness/advise/advise.h"
#include "harness/advise/quantity.h"

enum { CELL = 32 };

static void name_cell(const struct advice_row *r, char cell[CELL])
{
    const struct schedule *s = &r->candidate.schedule;
    if (s->strategy == STRATEGY_HYBRID)
        snprintf(cell, CELL, "hybrid %dx%d", s->replicas, s->shards);
    else
        snprintf(cell, CELL, "%s", r->candidate.name);
}

static void row(const struct advice *a, int i, FILE *out)
{
    const struct advice_row *r = &a->rows[i];
    char name[CELL], step[CELL], memory[CELL], sent[CELL], tokens[CELL], mfu[CELL] = "n/a";
    name_cell(r, name);
    if (!isnan(r->mfu))
        snprintf(mfu, sizeof mfu, "%.1f %%", 100 * r->mfu);
    fprintf(out, "  %c %-16s %8lld %10s %8.1f %% %10s %10s %13s %8s%s\n", i == a->best ? '*' : ' ', name, (long long)r->rows,
            quantity_write(r->p.step_s, QUANTITY_SECONDS, step, sizeof step), 100 * r->p.exposed_s / r->p.step_s,
            quantity_write(r->memory_bytes, QUANTITY_BYTES, memory, sizeof memory), quantity_write(r->p.sent_bytes, QUANTITY_BYTES, sent, sizeof sent),
            quantity_write(r->tokens_per_s, QUANTITY_COUNT_RATE, tokens, sizeof tokens), mfu, r->fits ? "" : "  does not fit");
}

void advise_table(const struct advice *a, FILE *out)
{
    fprintf(out, "  %c %-16s %8s %10s %10s %10s %10s %13s %8s\n", ' ', "strategy", "rows", "step", "exposed", "memory", "sent", "tokens", "MFU");
    for (int i = 0; i < a->count; i++)
        row(a, i, out);
}

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *interval_json(const struct interval *i) { return json_pack("{s:o, s:o, s:o}", "value", number(i->value), "low", number(i->low), "high", number(i->high)); }

static json_t *row_json(const struct advice *a, int i)
{
    const struct advice_row *r = &a->rows[i];
    const struct schedule *s = &r->candidate.schedule;
    return json_pack("{s:s, s:i, s:i, s:b, s:b, s:I, s:f, s:f, s:f, s:f, s:f, s:i, s:i, s:f, s:o}", "strategy", strategy_name(s->strategy), "replicas", s->replicas, "shards", s->shards,
                     "best", i == a->best, "fits", r->fits, "rows", (json_int_t)r->rows, "step_seconds", r->p.step_s, "compute_seconds", r->p.compute_s,
                     "exposed_seconds", r->p.exposed_s, "memory_bytes", r->memory_bytes, "sent_bytes", r->p.sent_bytes, "collectives", r->p.collectives, "events", r->p.events,
                     "tokens_per_second", r->tokens_per_s, "mfu", number(r->mfu));
}

static json_t *machine_json(const struct machine *m, const struct machine_facts *f)
{
    json_t *tiers = json_array();
    for (int t = 0; t < 1 + (m->tiers[1].ranks > 0); t++)
        json_array_append_new(tiers, json_pack("{s:f, s:f, s:i}", "alpha_seconds", m->tiers[t].alpha_s, "bytes_per_second", 1 / m->tiers[t].beta_s_per_byte, "ranks", m->tiers[t].ranks));
    return json_pack("{s:s, s:o, s:s, s:f, s:o, s:f, s:f, s:f, s:f, s:o, s:o}", "source", f->source, "tiers", tiers, "exchange", exchange_name(m->exchange), "flop_rate", m->flop_rate,
                     "copy_rate", number(m->copy_rate), "update_rate", m->update_rate, "overhead_seconds", m->overhead_s, "contention", m->contention, "both_ways", m->both_ways,
                     "unattended_bytes", number(m->unattended_bytes), "peak_flop_rate", f->peak_flop_rate > 0 ? json_real(f->peak_flop_rate) : json_null());
}

static json_t *notes_json(const struct measured *m)
{
    json_t *notes = json_array();
    for (int i = 0; m != NULL && i < m->note_count; i++)
        json_array_append_new(notes, json_string(m->notes[i]));
    return notes;
}

// null: nowhere in the range for a bandwidth, without limit for others, not measured for Open MPI.
json_t *advise_json(const struct advice *a)
{
    json_t *rows = json_array(), *changes = json_array();
    for (int i = 0; i < a->count; i++)
        json_array_append_new(rows, row_json(a, i));
    for (int i = 0; i < a->crossing_count; i++)
        json_array_append_new(changes, json_pack("{s:f, s:s, s:s}", "bytes_per_second", a->crossings[i].bandwidth, "below", a->rows[a->crossings[i].from].candidate.name,
                                                 "above", a->rows[a->crossings[i].to].candidate.name));
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "ranks", a->q->ranks, "machine", machine_json(&a->q->machine, &a->q->facts), "notes", notes_json(a->q->measured), "open_mpi",
                     a->q->settings != NULL ? settings_json(a->q->settings) : json_null(), "strategies", rows, "changes", changes, "full_beats_none_above", interval_json(&a->pays),
                     "full_compute_bound_above", interval_json(&a->bound));
}
