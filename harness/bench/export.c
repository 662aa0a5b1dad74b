// A bench as JSON and CSV. What is not there is null in JSON and empty in CSV, with the reason beside it. See bench.h.
#include <math.h>
#include <stdlib.h>

#include "harness/bench/bench.h"
#include "harness/report/text.h"

static const char *const states[] = {"PASS", "WRONG", "SKIP", "BROKEN"};

static const char *state_of(const struct bench_row *r) { return r->state == BENCH_OPEN && r->launch_count == 0 ? "none" : states[r->state]; }

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *interval(const struct interval *i)
{
    return i->count == 0 ? json_null() : json_pack("{so so so sf si}", "value", number(i->value), "low", number(i->low), "high", number(i->high), "coverage", i->coverage, "count", i->count);
}

static json_t *launches(const struct bench_row *r)
{
    json_t *out = json_array();
    for (int i = 0; i < r->launch_count; i++) {
        json_t *seconds = json_array();
        for (int k = 0; k < r->launches[i].count; k++)
            json_array_append_new(seconds, json_real(r->launches[i].seconds[k]));
        json_array_append_new(out, json_pack("{si so}", "round", r->launches[i].round, "seconds", seconds));
    }
    return out;
}

static json_t *row(const struct bench_table *t, const struct bench_row *r)
{
    struct interval step = bench_step(r), tokens = bench_tokens(r), flop = bench_flop_rate(r), mfu = bench_mfu(t, r), q = bench_ratio(r, bench_base(t, r));
    json_t *out = json_pack("{ss ss ss ss ss si sI ss}", "implementation", r->implementation, "workload", r->workload, "fabric", r->fabric, "strategy", r->strategy, "precision", r->precision,
                            "ranks", r->ranks, "rows", (json_int_t)r->rows, "verdict", state_of(r));
    json_object_set_new(out, "step_s", interval(&step));
    json_object_set_new(out, "tokens_per_s_and_rank", interval(&tokens));
    json_object_set_new(out, "flop_per_s_and_rank", interval(&flop));
    json_object_set_new(out, "mfu", interval(&mfu));
    json_object_set_new(out, "ratio", interval(&q));
    json_object_set_new(out, "word", q.count > 0 && bench_base(t, r) != r ? json_string(bench_word(&q)) : json_null());
    json_object_set_new(out, "facts", bench_facts(t, r));
    json_object_set_new(out, "launches", launches(r));
    return out;
}

bool bench_json(const struct bench_table *t, FILE *out)
{
    json_t *rows = json_array();
    for (int i = 0; i < t->count; i++)
        json_array_append_new(rows, row(t, &t->rows[i]));
    json_t *all = json_pack("{si sf so si so so}", "rounds", t->rounds, "seconds", t->seconds, "ended", t->ended != NULL ? json_string(t->ended) : json_null(), "cores", t->cores, "peak_flop_rate",
                            number(t->peak_flop_rate > 0 ? t->peak_flop_rate : NAN), "rows", rows);
    bool ok = all != NULL && json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0 && fputc('\n', out) != EOF;
    json_decref(all);
    return ok && fflush(out) == 0;
}

static void put(FILE *out, const char *text, char after)
{
    fputc('"', out);
    text_put(out, TEXT_CSV, text);
    fprintf(out, "\"%c", after);
}

static void put_number(FILE *out, double x, char after)
{
    char buffer[32];
    fprintf(out, "%s%c", isfinite(x) ? text_number(x, buffer) : "", after);
}

static void put_figure(FILE *out, const struct bench_figure *f, char after) { put_number(out, f->why[0] ? NAN : f->value, after); }

bool bench_csv(const struct bench_table *t, FILE *out)
{
    fputs("implementation,workload,fabric,strategy,precision,ranks,rows,verdict,why,step_s,step_low_s,step_high_s,coverage,samples,tokens_per_s_and_rank,flop_per_s_and_rank,mfu,"
          "exposed_share,peak_bytes,sent_bytes,energy_j,ratio,ratio_low,ratio_high,word,rounds,parameters,tokens_per_step,flop_per_step,mfu_why,exposed_share_why,peak_bytes_why,sent_bytes_why,"
          "energy_j_why\n", out);
    for (int i = 0; i < t->count; i++) {
        const struct bench_row *r = &t->rows[i];
        struct interval step = bench_step(r), tokens = bench_tokens(r), flop = bench_flop_rate(r), mfu = bench_mfu(t, r), q = bench_ratio(r, bench_base(t, r));
        bool scored = step.count > 0;
        const char *texts[] = {r->implementation, r->workload, r->fabric, r->strategy, r->precision};
        for (int k = 0; k < 5; k++)
            put(out, texts[k], ',');
        fprintf(out, "%d,%lld,%s,", r->ranks, (long long)r->rows, state_of(r));
        put(out, r->why, ',');
        const double numbers[] = {step.value, step.low, step.high, scored ? step.coverage : NAN, scored ? step.count : NAN, tokens.value, flop.value, mfu.value, r->exposed.count > 0 ? r->exposed.value : NAN};
        for (int k = 0; k < 9; k++)
            put_number(out, numbers[k], ',');
        put_figure(out, &r->peak_bytes, ',');
        put_figure(out, &r->sent_bytes, ',');
        put_figure(out, &r->energy_j, ',');
        put_number(out, q.value, ',');
        put_number(out, q.low, ',');
        put_number(out, q.high, ',');
        put(out, q.count > 0 && bench_base(t, r) != r ? bench_word(&q) : "", ',');
        fprintf(out, "%d,%lld,", r->launch_count, (long long)r->parameters);
        put_number(out, r->tokens, ',');
        put_number(out, r->flop, ',');
        const char *whys[] = {bench_mfu_why(t, r), r->exposed.count > 0 ? "" : r->exposed_why, r->peak_bytes.why, r->sent_bytes.why, r->energy_j.why};
        for (int k = 0; k < 5; k++)
            put(out, whys[k], k < 4 ? ',' : '\n');
    }
    return fflush(out) == 0 && !ferror(out);
}
