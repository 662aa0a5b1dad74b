// Every check passes a right subject, fails a wrong one with the right words and class, and is BROKEN where it saw nothing.
//
// One table: check, case, fault, expected verdict, a part of the message, a class that must be named first. A check of the folder that the
// table does not both pass and fail makes the last test fail.
#include "suite/checks/tests/synthetic.h"

#define MLP "layer: exact\nmodel: {kind: mlp, sizes: [4, 6, 3]}\ndata: {recipe: exact, density: 0.7}\noptimizer: {kind: sgd, lr: 0.25}\nglobal_rows: 8\nsteps: 3\nlayout: per_parameter\n"
#define EXACT "name: exact\ntitle: t\nranks: 2\n" MLP
#define EXACT3 "name: exact\ntitle: t\nranks: 3\n" MLP
#define MICROS "name: exact\ntitle: t\nranks: 2\nmicros: 3\n" MLP
#define MESH "name: exact\ntitle: t\nranks: 4\nstrategy: hybrid\nmesh: [2, 2]\n" MLP
#define UNITS "model: {kind: witness, units: [{name: u0, parameters: [{name: w, shape: [5, 3]}, {name: bias, shape: [2]}]}]}\nglobal_rows: 4\nlayout: per_parameter\n"
#define WITNESS "name: witness\ntitle: t\nranks: 4\nlayer: witness\nloss: sum\ndata: {recipe: values, values: [1, 2, 3, 4]}\n" UNITS
#define ORDER "name: witness\ntitle: t\nranks: 3\nlayer: witness\nloss: sum\nmodel: {kind: witness, units: [{name: u0, parameters: [{name: w, shape: [4]}]}]}\nrows_per_rank: 1\ndata: {recipe: values, values: [256, 1, 2]}\n"
#define CLIP "name: witness\ntitle: t\nranks: 4\nstrategy: hybrid\nmesh: [2, 2]\nlayer: witness\nloss: sum\nclip: {norm: \"2\", limit: 1}\ndata: {recipe: values, values: [1, 2, 3, 4], pattern: [3, 4, 12]}\n" UNITS
#define ADAM "name: witness\ntitle: t\nranks: 2\nlayer: witness\nloss: sum\nsteps: 3\noptimizer: {kind: adamw, lr: 0.125, eps: 1, weight_decay: 0.25}\ndata: {recipe: values, values: [1, 2, 3, 4], pattern: [1, 0, -2]}\n" UNITS
#define GPT "name: gpt\ntitle: t\nranks: 2\nlayer: calibrated\nmodel: {kind: transformer, layers: 1, dim: 8, heads: 2, ffn: 8, vocab: 23, context: 4}\ndata: {recipe: gaussian, std: 0.3, uneven_tokens: true}\nglobal_rows: 4\nsteps: 3\nlayout: per_parameter\n"
#define TIED "name: tied\ntitle: t\nranks: 2\nlayer: calibrated\nmodel: {kind: transformer, layers: 1, dim: 8, heads: 2, ffn: 8, vocab: 9, context: 4, tied: true}\ndata: {recipe: gaussian, std: 0.3}\nglobal_rows: 4\nsteps: 2\nlayout: per_parameter\n"

// ---- faults ----

static void scale_all(struct tensors *set, double factor)
{
    for (int i = 0; i < set->count; i++)
        for (int64_t k = 0; k < set->items[i].count; k++)
            ((double *)set->items[i].data)[k] *= factor;
}

static void times_n(struct synthetic *s, const struct program_label *l, struct tensors *g) { (void)l; scale_all(g, s->c->world_size); }
static void times_replicas(struct synthetic *s, const struct program_label *l, struct tensors *g) { (void)l; scale_all(g, s->c->sharding.replicas); }

static void replace(struct tensors *to, struct tensors *from)
{
    tensors_free(to);
    *to = *from;
}

static void only_last_micro(struct synthetic *s, const struct program_label *l, struct tensors *g)
{
    struct tensors share;
    assert_true(gradient_of(&s->e, l, &s->state, (struct share){-1, (int)s->c->data.micros - 1}, &share, NULL, NULL));
    replace(g, &share);
}

static void reapplied(struct synthetic *s, const struct program_label *l, struct tensors *g)
{
    struct tensors sum = {0}, share;
    for (int i = 0; i < s->c->data.micros; i++) {
        assert_true(gradient_of(&s->e, l, &s->state, (struct share){-1, i}, &share, NULL, NULL));
        gradient_add(&sum, &share, pow(1.0 / s->c->world_size, (double)s->c->data.micros - 1 - i));
        tensors_free(&share);
    }
    replace(g, &sum);
}

static void rank0_only(struct synthetic *s, const struct program_label *l, struct tensors *g)
{
    struct tensors share;
    assert_true(gradient_of(&s->e, l, &s->state, (struct share){0, -1}, &share, NULL, NULL));
    scale_all(&share, s->c->world_size);
    replace(g, &share);
}

static void replica0_only(struct synthetic *s, const struct program_label *l, struct tensors *g)
{
    struct tensors sum = {0}, share;
    for (int r = 0; r < s->c->sharding.shards; r++) {
        assert_true(gradient_of(&s->e, l, &s->state, (struct share){r, -1}, &share, NULL, NULL));
        gradient_add(&sum, &share, s->c->sharding.replicas);
        tensors_free(&share);
    }
    replace(g, &sum);
}

// The last shard of the first tensor is off by one.
static void last_shard(struct synthetic *s, const struct program_label *l, struct tensors *g)
{
    (void)l;
    struct range r = holdings_chunk(&s->c->parameters[0], s->c->sharding.shards - 1, s->c->sharding.shards);
    struct tensor *t = tensors_find2(g, "grad", s->c->parameters[0].name);
    assert_true(r.length > 0);
    for (int64_t i = r.offset; i < r.offset + r.length; i++)
        ((double *)t->data)[i] += 1;
}

static void stale(struct synthetic *s, const struct program_label *l, struct tensors *g)
{
    struct tensors old;
    if (s->e.observed_count < 3) // init, s0.grad: nothing older yet
        return;
    const struct observed *before = &s->observed[s->e.observed_count - 3];
    assert_non_null(tensors_find2(&before->full, "param", s->c->parameters[0].name));
    assert_true(gradient_of(&s->e, l, &before->full, SHARE_ALL, &old, NULL, NULL));
    replace(g, &old);
}

static void dirty(struct synthetic *s, const struct program_label *l, struct tensors *g)
{
    (void)l;
    for (int i = s->e.observed_count - 1; i >= 0; i--)
        if (tensors_find2(&s->observed[i].full, "grad", s->c->parameters[0].name)) {
            gradient_add(g, &s->observed[i].full, 1);
            return;
        }
}

static void in_bf16(struct synthetic *s, const struct program_label *l, struct tensors *g)
{
    (void)s, (void)l;
    for (int i = 0; i < g->count; i++)
        for (int64_t k = 0; k < g->items[i].count; k++) {
            double *v = (double *)g->items[i].data + k;
            *v = bf16_to_f32(bf16_from_f64(*v));
        }
}

static void nan_gradient(struct synthetic *s, const struct program_label *l, struct tensors *g)
{
    (void)s, (void)l;
    ((double *)g->items[0].data)[0] = NAN;
}

static void by_rank(struct synthetic *s, const struct program_label *l, struct tensors *g)
{
    struct tensors own;
    struct error error = {{0}};
    assert_true(gradient_normalised_by_rank(&s->e, l, &s->state, &own, &error));
    replace(g, &own);
}

static void embedding_only(struct synthetic *s, const struct program_label *l, struct tensors *g)
{
    struct tensors apart;
    assert_true(gradient_untied(&s->e, l, &s->state, &apart, NULL));
    memcpy(tensors_find(g, "grad/embed.weight")->data, tensors_find(&apart, "grad/embed.weight")->data,
           (size_t)tensors_find(g, "grad/embed.weight")->count * sizeof(double));
    tensors_free(&apart);
}

static void one_call(struct synthetic *s, const struct program_label *l, struct tensors *g)
{
    struct tensors calls;
    struct error error = {{0}};
    if (!gradient_by_call(&s->e, l, &s->state, &calls, &error))
        fail_msg("%s", error.text);
    for (int bias = 0; bias < 2; bias++)
        memcpy(tensors_find(g, bias ? "grad/layers.1.bias" : "grad/layers.1.weight")->data,
               tensors_find(&calls, bias ? "grad/layers.1.bias" : "grad/layers.1.weight")->data,
               (size_t)tensors_find(g, bias ? "grad/layers.1.bias" : "grad/layers.1.weight")->count * sizeof(double));
    tensors_free(&calls);
}

static void leak_row(struct synthetic *s, const struct program_label *l, struct tensors *g)
{
    (void)s, (void)l;
    struct tensor *t = tensors_find(g, "grad/embed.weight");
    for (int64_t i = 0; i < t->count; i++)
        ((double *)t->data)[i] += ((double *)t->data)[i] == 0 ? 1e-30 : 0;
}

static void fixed(struct synthetic *s, int step, struct tensors *state, const struct tensors *before) { (void)s, (void)step; synthetic_copy(state, before); }

static void double_step(struct synthetic *s, int step, struct tensors *state, const struct tensors *before)
{
    (void)s, (void)step;
    for (int i = 0; i < state->count; i++)
        for (int64_t k = 0; strncmp(state->items[i].name, "param/", 6) == 0 && k < state->items[i].count; k++) {
            double *v = (double *)state->items[i].data + k, b = ((const double *)tensors_find(before, state->items[i].name)->data)[k];
            *v += *v - b;
        }
}

static void rounded_update(struct synthetic *s, int step, struct tensors *state, const struct tensors *before) { (void)before, (void)step; in_bf16(s, NULL, state); }

static void shard_norm(struct synthetic *s, double *factor, double *norms)
{
    for (int r = 0; r < s->c->world_size; r++)
        norms[r] = norm_of(&s->e, &s->gradient, "grad", r).value;
    *factor = fmin(1, s->c->clip_limit / norms[0]);
}
static void replica_norm(struct synthetic *s, double *factor, double *norms)
{
    (void)factor;
    for (int r = 0; r < s->c->world_size; r++)
        norms[r] *= sqrt(s->c->sharding.replicas);
}
static void clipped_twice(struct synthetic *s, double *factor, double *norms) { (void)s, (void)norms; *factor *= *factor; }

// ---- faults of answers and observed state ----

static struct tensor *full_tensor(struct synthetic *s, const char *label, const char *name)
{
    const struct observed *o = evidence_find(&s->e, label);
    assert_non_null(o);
    struct tensor *t = tensors_find(&o->full, name);
    assert_non_null(t);
    return t;
}
static void init_off(struct synthetic *s) { struct tensor *t = full_tensor(s, "init", "param/layers.0.weight"); ((float *)t->data)[t->count - 1] += 1; }
static void init_nan(struct synthetic *s) { ((float *)full_tensor(s, "init", "param/layers.0.weight")->data)[0] = NAN; }
static void local_off(struct synthetic *s)
{
    struct observed *o = &s->observed[s->e.observed_count - 1];
    ((float *)o->local[1].items[0].data)[0] += 1;
}
static void loaded_off(struct synthetic *s) { ((float *)full_tensor(s, "loaded", "exp_avg/layers.0.weight")->data)[0] += 1; }
// What the subject loaded is what another case saved.
static void saved_elsewhere(struct synthetic *s)
{
    static struct saved_run saved;
    const struct tensors *loaded = &evidence_find(&s->e, "loaded")->full;
    saved = (struct saved_run){s->c, "", s->truth_digest};
    s->e.saved = &saved;
    for (int i = 0; i < loaded->count; i++) {
        const struct tensor *t = &loaded->items[i];
        tensors_add(&s->e.saved_state, t->name, t->dtype, t->dims, t->shape, t->data, true);
    }
}
static void moment_not_loaded(struct synthetic *s)
{
    saved_elsewhere(s);
    struct tensor *t = tensors_find(&s->e.saved_state, "exp_avg_sq/layers.1.bias");
    ((float *)t->data)[2] += 1;
}
static void rotated(struct synthetic *s)
{
    saved_elsewhere(s);
    struct tensor *t = tensors_find(&s->e.saved_state, "param/layers.0.weight");
    float *v = t->data, first = v[0];
    memmove(v, v + 1, (size_t)(t->count - 1) * sizeof *v);
    v[t->count - 1] = first;
}
static void all_alike(struct synthetic *s)
{
    saved_elsewhere(s);
    struct tensor *t = tensors_find(&s->e.saved_state, "param/layers.0.weight");
    for (int64_t i = 0; i < t->count; i++)
        ((float *)t->data)[i] = 1;
}
static void other_truth(struct synthetic *s)
{
    static struct saved_run other;
    saved_elsewhere(s);
    other = *s->e.saved;
    other.truth_digest = "0123";
    s->e.saved = &other;
}
static void nothing_kept(struct synthetic *s)
{
    saved_elsewhere(s);
    tensors_free(&s->e.saved_state);
    error_set(&s->e.saved_error, "no such file");
}
static void other_eval(struct synthetic *s)
{
    json_t *loss = json_object_get(answer_find(&s->answers[1], EVENT_EVAL, 0)->fields, "loss");
    json_real_set(loss, 2 * json_real_value(loss) + 1);
}
static void save_changes(struct synthetic *s) { ((float *)full_tensor(s, "saved", "exp_avg/layers.0.weight")->data)[0] += 1; }
// The subject trains nothing, and its gradients are those of where it stands.
static void stands_still(struct synthetic *s)
{
    for (int i = 1; i < s->e.observed_count; i++)
        for (int p = 0; s->c->program[0].label && p < s->c->parameter_count; p++) {
            struct tensor *t = tensors_find2(&s->observed[i].full, "param", s->c->parameters[p].name);
            const struct tensor *first = tensors_find2(&s->observed[0].full, "param", s->c->parameters[p].name);
            if (t)
                memcpy(t->data, first->data, (size_t)t->count * sizeof(float));
        }
}
static void frozen_moves(struct synthetic *s) { ((float *)full_tensor(s, "s1", "param/layers.1.weight")->data)[0] += 1; }
static void frozen_gradient(struct synthetic *s)
{
    const struct tensor *t = full_tensor(s, "s0.grad", "grad/layers.1.weight");
    tensors_add((struct tensors *)&evidence_find(&s->e, "s1.grad")->full, "grad/layers.1.weight", t->dtype, t->dims, t->shape, t->data, true);
}
static void unused_moves(struct synthetic *s) { ((float *)full_tensor(s, "s1", "param/unused.0.weight")->data)[0] += 1; }
static void tied_copy(struct synthetic *s)
{
    struct tensor *t = full_tensor(s, "s0", "param/embed.weight");
    struct tensor *copy = tensors_add((struct tensors *)&evidence_find(&s->e, "s0")->full, "param/head.weight", t->dtype, t->dims, t->shape, t->data, true);
    ((float *)copy->data)[3] += 1;
}
static void moments_in_bf16(struct synthetic *s, int step, struct tensors *state, const struct tensors *before)
{
    (void)s, (void)step, (void)before;
    for (int i = 0; i < state->count; i++)
        for (int64_t k = 0; strncmp(state->items[i].name, "exp_avg/", 8) == 0 && k < state->items[i].count; k++)
            ((double *)state->items[i].data)[k] = bf16_to_f32(bf16_from_f64(((double *)state->items[i].data)[k]));
}
static void wrong_config(struct synthetic *s) { json_object_set_new(json_object_get(s->answers[1].events[0].fields, "configured"), "compute", json_string("bf16")); }
static void no_config(struct synthetic *s) { json_object_clear(json_object_get(s->answers[0].events[0].fields, "configured")); }
static void held_twice(struct synthetic *s)
{
    struct held_part *part = &s->holdings.by[HELD_OPTIMIZER][1].parts[0];
    part->ranges[0] = (struct range){0, s->c->parameters[0].count};
    part->total = part->ranges[0].length;
}
static void held_by_none(struct synthetic *s) { s->holdings.by[HELD_PARAMETER][1].parts[0].count = 0; s->holdings.by[HELD_PARAMETER][1].parts[0].total = 0; }
static void nothing_reported(struct synthetic *s) { s->holdings.by[HELD_PARAMETER][0].reported = s->holdings.by[HELD_OPTIMIZER][0].reported = s->holdings.by[HELD_GRADIENT][0].reported = false; }
static void shifted(struct synthetic *s) { s->holdings.by[HELD_PARAMETER][1].parts[0].ranges[0].offset -= 1; }
static void padding_dirty(struct synthetic *s) { s->holdings.by[HELD_PARAMETER][1].padding_max = 0.5; }
static void padding_nan(struct synthetic *s) { s->holdings.by[HELD_PARAMETER][1].padding_max = NAN; }
static void padding_short(struct synthetic *s) { s->holdings.by[HELD_PARAMETER][1].padding += 1; }
static void no_certificate(struct synthetic *s) { s->truth.exact = false; }
static void vacuous_certificate(struct synthetic *s) { s->truth.smallest_gradient_share = 0; }
static void same_data(struct synthetic *s)
{
    struct tensor *t = tensors_find(&s->truth.data, "input");
    for (int64_t i = 0; i < t->count; i++)
        ((float *)t->data)[i] = 1;
    t = tensors_find(&s->truth.data, "target");
    for (int64_t i = 0; i < t->count; i++)
        ((float *)t->data)[i] = 1;
}
static void truth_rests(struct synthetic *s)
{
    for (int k = 0; k < s->truth.label_count; k++)
        for (int i = 0; i < s->truth.labels[k].tensors.count; i++)
            memset(s->truth.labels[k].tensors.items[i].data, 0, (size_t)s->truth.labels[k].tensors.items[i].count * sizeof(double));
}
static void no_noise(struct synthetic *s) { tensors_free(&s->truth.noise); s->truth.noise = (struct tensors){0}; }
static void no_labels(struct synthetic *s) { s->e.observed = NULL; s->e.observed_count = 0; }
static void scale_differs(struct synthetic *s)
{
    for (int i = 0; i < s->answers[1].count; i++)
        if (s->answers[1].events[i].kind == EVENT_STEP)
            json_object_set_new(s->answers[1].events[i].fields, "loss_scale", json_real(2));
}
static void not_skipped(struct synthetic *s)
{
    for (int i = 0; i < s->answers[1].count; i++)
        if (s->answers[1].events[i].kind == EVENT_STEP)
            json_object_set_new(s->answers[1].events[i].fields, "skipped", json_false());
}
static void no_skip_in_truth(struct synthetic *s)
{
    for (int k = 0; k < s->truth.step_count; k++)
        s->truth.steps[k].skipped = false;
    for (int r = 0; r < s->c->world_size; r++)
        for (int i = 0; i < s->answers[r].count; i++)
            if (s->answers[r].events[i].kind == EVENT_STEP)
                json_object_set_new(s->answers[r].events[i].fields, "skipped", json_false());
}
// family
static struct family_member relatives[1];
static void family(struct synthetic *s, int ranks, enum strategy strategy, const char *digest)
{
    relatives[0] = (struct family_member){"other", ranks, strategy, digest, s->truth_digest};
    s->e.family = relatives;
    s->e.family_count = 1;
}
static const char *own_digest(struct synthetic *s)
{
    judge_digest(s->c, &s->observed[s->e.observed_count - 1].full, "param", s->digest);
    return s->digest;
}
static void other_n(struct synthetic *s) { family(s, 1, STRATEGY_FULL, own_digest(s)); }
static void other_n_off(struct synthetic *s) { family(s, 1, STRATEGY_FULL, "0123"); }
static void other_way(struct synthetic *s) { family(s, 2, STRATEGY_NONE, own_digest(s)); }
static void other_way_off(struct synthetic *s) { family(s, 2, STRATEGY_NONE, "0123"); }
static void other_set(struct synthetic *s) { family(s, 2, STRATEGY_FULL, own_digest(s)); }
static void other_set_off(struct synthetic *s) { family(s, 2, STRATEGY_FULL, "0123"); }

#define REUSE "name: exact\ntitle: t\nranks: 2\nlayer: exact\nmodel: {kind: mlp, sizes: [4, 5, 5, 3], calls: [0, 1, 1, 2]}\ndata: {recipe: exact, density: 0.7}\noptimizer: {kind: sgd, lr: 0.25}\nglobal_rows: 8\n"
#define CHECKPOINTING EXACT "activation_checkpointing: true\n"
#define UNUSED "name: exact\ntitle: t\nranks: 2\nlayer: exact\nmodel: {kind: mlp, sizes: [4, 6, 3], unused: 1}\ndata: {recipe: exact, density: 0.7}\noptimizer: {kind: sgd, lr: 0.25}\nglobal_rows: 8\nsteps: 2\n"
#define FROZEN EXACT "program: [init, train 0, \"freeze layers.1.*\", train 1, \"unfreeze layers.1.*\", train 2, stop]\n"
#define RESUME "name: resume\ntitle: t\nranks: 2\nlayer: calibrated\nmodel: {kind: mlp, sizes: [4, 6, 3]}\ndata: {recipe: gaussian}\noptimizer: {kind: adamw, lr: 0.01}\nglobal_rows: 8\nsteps: 2\n" \
    "program: [init, train 0, save, micro 1 0, step 1, zero_grad, load, \"observe loaded param,exp_avg,exp_avg_sq\", eval 1 0, train 1, stop]\n"
#define SAVE "name: resume\ntitle: t\nranks: 2\nlayer: calibrated\nmodel: {kind: mlp, sizes: [4, 6, 3]}\ndata: {recipe: gaussian}\noptimizer: {kind: adamw, lr: 0.01}\nglobal_rows: 8\n" \
    "program: [init, train 0, save, \"observe saved param,exp_avg,exp_avg_sq\", stop]\n"
#define FLAT "name: exact\ntitle: t\nranks: 2\nlayer: exact\nmodel: {kind: mlp, sizes: [4, 5, 3]}\ndata: {recipe: exact, density: 0.7}\noptimizer: {kind: sgd, lr: 0.25}\nglobal_rows: 8\nlayout: flat\n"
#define OVERFLOW "name: witness\ntitle: t\nranks: 2\nlayer: witness\nloss: sum\nsteps: 3\ndata: {recipe: values, values: [1, 2, inf, 2, 2, 1], init: 1}\nrows_per_rank: 1\n" \
    "precision: {parameter: f32, compute: f16, reduce: f32, optimizer_state: f32, loss_scale: {mode: dynamic, initial: 16, growth: 2, backoff: 0.5, interval: 2000}}\n" \
    "model: {kind: witness, units: [{name: u0, parameters: [{name: w, shape: [4]}]}]}\n"

static const struct row {
    const char *check, *yaml;
    struct fault fault;
    enum verdict verdict;
    const char *message, *classes;
} rows[] = {
    {"step-bitwise", EXACT, {0}, VERDICT_PASS, "equal the truth bitwise", ""},
    {"step-bitwise", EXACT3, {0}, VERDICT_PASS, "bitwise", ""},
    {"step-bitwise", EXACT, {.gradient = times_n}, VERDICT_FAIL, "a = 2 (N)", "Z01"},
    {"step-bitwise", EXACT, {.gradient = rank0_only}, VERDICT_FAIL, "the reduction is missing", "Z03"},
    {"step-bitwise", EXACT3, {.gradient = last_shard}, VERDICT_FAIL, "only in the last shard (rank 2 of 3)", "Z11"},
    {"step-bitwise", EXACT, {.gradient = stale}, VERDICT_FAIL, "stale parameters", "Z15"},
    {"step-bitwise", EXACT, {.gradient = dirty}, VERDICT_FAIL, "buffer was not cleared", "Z18"},
    {"step-bitwise", EXACT, {.update = fixed}, VERDICT_FAIL, "did not move at all", "Z22"},
    {"step-bitwise", EXACT, {.update = double_step}, VERDICT_FAIL, "2 (N) times the right one", "Z23"},
    {"step-bitwise", EXACT, {.gradient = nan_gradient}, VERDICT_FAIL, "s0.grad, step 0", NULL},
    {"step-bitwise", EXACT, {.finish = no_labels}, VERDICT_BROKEN, "saw nothing", ""},
    {"mean-witness", WITNESS, {0}, VERDICT_PASS, "policy found: the mean over 4 ranks", ""},
    {"mean-witness", WITNESS, {.gradient = times_n}, VERDICT_FAIL, "a = 4 (N)", "Z01"},
    {"mean-witness", WITNESS, {.gradient = nan_gradient}, VERDICT_FAIL, "", NULL},
    {"mean-witness", WITNESS, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"accumulation", MICROS, {0}, VERDICT_PASS, "", ""},
    {"accumulation", MICROS, {.gradient = only_last_micro}, VERDICT_FAIL, "last microbatch only", "Z04"},
    {"accumulation", MICROS, {.gradient = reapplied}, VERDICT_FAIL, "c = 1/N", "Z05"},
    {"accumulation", MICROS, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"rank-count", EXACT, {.finish = other_n}, VERDICT_PASS, "", ""},
    {"rank-count", EXACT, {.finish = other_n_off}, VERDICT_FAIL, "N = 1", ""},
    {"strategies-agree", EXACT, {.finish = other_way}, VERDICT_PASS, "", ""},
    {"strategies-agree", EXACT, {.finish = other_way_off}, VERDICT_FAIL, "strategy none", ""},
    {"settings-agree", EXACT, {.finish = other_set}, VERDICT_PASS, "", ""},
    {"settings-agree", EXACT, {.finish = other_set_off}, VERDICT_FAIL, "other settings", ""},
    {"mesh-gradient", MESH, {0}, VERDICT_PASS, "", ""},
    {"mesh-gradient", MESH, {.gradient = times_replicas}, VERDICT_FAIL, "a = 2 (R)", "Z02"},
    {"mesh-gradient", MESH, {.gradient = replica0_only}, VERDICT_FAIL, "over replicas is missing", "Z03"},
    {"mesh-gradient", MESH, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"reduce-precision", ORDER, {0}, VERDICT_PASS, "0 of 4", ""},
    {"reduce-precision", ORDER "precision: bf16-reduce\n", {.gradient = in_bf16}, VERDICT_PASS, "", ""},
    {"reduce-precision", ORDER, {.gradient = in_bf16}, VERDICT_FAIL, "policy found: a reduction in bf16", "Z19"},
    {"reduce-precision", ORDER, {.gradient = times_n}, VERDICT_FAIL, "", "Z01"},
    {"reduce-precision", ORDER, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"one-batch", MICROS, {0}, VERDICT_PASS, "", ""},
    {"one-batch", MICROS, {.gradient = only_last_micro}, VERDICT_FAIL, "not that of one batch", "Z04"},
    {"one-batch", GPT, {0}, VERDICT_PASS, "", ""},
    {"one-batch", GPT, {.gradient = by_rank}, VERDICT_FAIL, "its own tokens", "Z09"},
    {"one-batch", GPT, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"global-norm", CLIP, {0}, VERDICT_PASS, "", ""},
    {"global-norm", CLIP, {.clip = shard_norm}, VERDICT_FAIL, "the rank's own shard", "Z07"},
    {"global-norm", CLIP, {.clip = replica_norm}, VERDICT_FAIL, "replicas are counted 2 times", "Z08"},
    {"global-norm", CLIP, {.clip = clipped_twice}, VERDICT_FAIL, "the clipped gradient of u0.w", "Z08"},
    {"global-norm", CLIP, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"overflow-skip", OVERFLOW, {0}, VERDICT_PASS, "skip 1 of 3", ""},
    {"overflow-skip", OVERFLOW, {.finish = scale_differs}, VERDICT_FAIL, "loss scale", "Z21"},
    {"overflow-skip", OVERFLOW, {.finish = not_skipped}, VERDICT_FAIL, "rank 1 took step 1", "Z21"},
    {"overflow-skip", OVERFLOW, {.finish = no_skip_in_truth}, VERDICT_BROKEN, "nothing to skip", ""},
    {"adam-update", ADAM, {0}, VERDICT_PASS, "3 steps", ""},
    {"adam-update", ADAM, {.update = fixed}, VERDICT_FAIL, "step count 1", "Z23"},
    {"adam-update", ADAM, {.update = double_step}, VERDICT_FAIL, "2 (N) times", "Z23"},
    {"adam-update", ADAM, {.update = rounded_update}, VERDICT_FAIL, "", NULL},
    {"adam-update", ADAM, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"chunk-layout", EXACT3, {0}, VERDICT_PASS, "", ""},
    {"chunk-layout", EXACT3, {.finish = shifted}, VERDICT_FAIL, "chunk 1 of 3", "Z11"},
    {"chunk-layout", EXACT3, {.finish = nothing_reported}, VERDICT_BROKEN, "", ""},
    {"flat-layout", FLAT, {0}, VERDICT_PASS, "", ""},
    {"flat-layout", FLAT, {.finish = padding_dirty}, VERDICT_FAIL, "padding is 0.5", "Z18"},
    {"flat-layout", FLAT, {.finish = padding_nan}, VERDICT_FAIL, "padding is nan", "Z18"},
    {"flat-layout", FLAT, {.finish = padding_short}, VERDICT_FAIL, "with padding", "Z11"},
    {"flat-layout", FLAT, {.finish = nothing_reported}, VERDICT_BROKEN, "", ""},
    {"initial-gather", EXACT, {0}, VERDICT_PASS, "", ""},
    {"initial-gather", EXACT, {.finish = init_off}, VERDICT_FAIL, "layers.0.weight differs from its initial value in 1 of", "Z11"},
    {"initial-gather", EXACT, {.finish = init_nan}, VERDICT_FAIL, "", NULL},
    {"initial-gather", EXACT, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"tied-weight", TIED, {0}, VERDICT_PASS, "", ""},
    {"tied-weight", TIED, {.gradient = embedding_only}, VERDICT_FAIL, "embedding's use only", "Z10"},
    {"tied-weight", TIED, {.finish = tied_copy}, VERDICT_FAIL, "are tied but differ", "Z10"},
    {"tied-weight", TIED, {.finish = no_noise}, VERDICT_BROKEN, "no noise", ""},
    {"frozen-units", FROZEN, {0}, VERDICT_PASS, "", ""},
    {"frozen-units", FROZEN, {.finish = frozen_moves}, VERDICT_FAIL, "is frozen but changed", "Z13"},
    {"frozen-units", FROZEN, {.finish = frozen_gradient}, VERDICT_FAIL, "which is frozen", "Z13"},
    {"frozen-units", FROZEN, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"unused-parameters", UNUSED, {0}, VERDICT_PASS, "", ""},
    {"unused-parameters", UNUSED, {.finish = unused_moves}, VERDICT_FAIL, "changed", "Z14"},
    {"unused-parameters", UNUSED, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"reused-module", REUSE, {0}, VERDICT_PASS, "", ""},
    {"reused-module", REUSE, {.gradient = one_call}, VERDICT_FAIL, "of call 2 (of layers.1) is missing", "Z12"},
    {"reused-module", REUSE, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"checkpointing-equal", CHECKPOINTING, {0}, VERDICT_PASS, "", ""},
    {"checkpointing-equal", CHECKPOINTING, {.gradient = stale}, VERDICT_FAIL, "stale", "Z15"},
    {"checkpointing-equal", CHECKPOINTING, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"fresh-parameters", EXACT, {0}, VERDICT_PASS, "", ""},
    {"fresh-parameters", EXACT, {.gradient = stale}, VERDICT_FAIL, "1 of the way", "Z15"},
    {"fresh-parameters", EXACT, {.gradient = times_n}, VERDICT_FAIL, "staleness alone does not explain it", ""},
    {"fresh-parameters", GPT, {0}, VERDICT_PASS, "", ""},
    {"fresh-parameters", GPT, {.gradient = stale}, VERDICT_FAIL, "of the way", "Z15"},
    {"fresh-parameters", EXACT, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"fresh-parameters", EXACT, {.finish = stands_still}, VERDICT_SKIP, "the truth's do", ""},
    {"replicas-agree", MESH, {0}, VERDICT_PASS, "equals the gathered tensor bitwise", ""},
    {"replicas-agree", MESH, {.finish = local_off}, VERDICT_FAIL, "on rank 1 differs", "Z15"},
    {"replicas-agree", MESH, {.finish = nothing_reported}, VERDICT_BROKEN, "", ""},
    {"update-from-state", RESUME, {.update = moments_in_bf16}, VERDICT_FAIL, "exp_avg of", "Z20"},
    {"save-load", RESUME, {0}, VERDICT_PASS, "", ""},
    {"save-load", RESUME, {.finish = loaded_off}, VERDICT_FAIL, "loaded: exp_avg/layers.0.weight", "Z25"},
    {"save-load", RESUME, {.finish = saved_elsewhere}, VERDICT_PASS, "", ""},
    {"save-load", RESUME, {.finish = moment_not_loaded}, VERDICT_FAIL, "loaded: exp_avg_sq/layers.1.bias differs from resume.full.n2", "Z25 Z26"},
    {"save-load", RESUME, {.finish = rotated}, VERDICT_FAIL, "in 24 of 24 elements", "Z26 Z25"},
    {"save-load", RESUME, {.finish = all_alike}, VERDICT_BROKEN, "0 of 24 elements of param/layers.0.weight", ""},
    {"save-load", RESUME, {.finish = other_truth}, VERDICT_BROKEN, "other data", ""},
    {"save-load", RESUME, {.finish = nothing_kept}, VERDICT_BROKEN, "no such file", ""},
    {"save-load", RESUME, {.finish = other_eval}, VERDICT_FAIL, "the first forward after the load", "Z26"},
    {"save-load", SAVE, {0}, VERDICT_PASS, "", ""},
    {"save-load", SAVE, {.finish = save_changes}, VERDICT_FAIL, "saved: exp_avg/layers.0.weight differs from s0", "Z25"},
    {"update-from-state", RESUME, {0}, VERDICT_PASS, "2 steps", ""},
    {"save-load", RESUME, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"gradient-ratio", GPT, {0}, VERDICT_PASS, "times the noise", ""},
    {"gradient-ratio", GPT, {.gradient = times_n}, VERDICT_FAIL, "a = 2 (N)", "Z01"},
    {"gradient-ratio", GPT, {.gradient = by_rank}, VERDICT_FAIL, "its own tokens", "Z09"},
    {"gradient-ratio", GPT, {.gradient = last_shard}, VERDICT_FAIL, "only in the last shard (rank 1 of 2)", "Z11"},
    {"gradient-ratio", GPT, {.gradient = in_bf16}, VERDICT_FAIL, "fits into bf16", "Z19"},
    {"gradient-ratio", GPT, {.gradient = nan_gradient}, VERDICT_FAIL, "", NULL},
    {"gradient-ratio", GPT, {.finish = no_noise}, VERDICT_BROKEN, "no noise", ""},
    {"zero-rows", GPT, {0}, VERDICT_PASS, "", ""},
    {"zero-rows", GPT, {.gradient = leak_row}, VERDICT_FAIL, "a token that no input holds", "Z18"},
    {"reduction-bound", WITNESS, {0}, VERDICT_PASS, "", ""},
    {"reduction-bound", WITNESS, {.gradient = times_n}, VERDICT_FAIL, "of the bound", "Z01"},
    {"reduction-bound", WITNESS, {.gradient = nan_gradient}, VERDICT_FAIL, "nan", NULL},
    {"reduction-bound", WITNESS, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"update-from-state", GPT, {0}, VERDICT_PASS, "3 steps", ""},
    {"update-from-state", GPT, {.update = fixed}, VERDICT_FAIL, "did not move", "Z22"},
    {"update-from-state", GPT, {.update = double_step}, VERDICT_FAIL, "times the right one", "Z23"},
    {"update-from-state", GPT, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"loss-per-step", EXACT, {0}, VERDICT_PASS, "", ""},
    {"loss-per-step", EXACT, {.loss_factor = 2}, VERDICT_FAIL, "(N times)", "Z01"},
    {"loss-per-step", GPT, {0}, VERDICT_PASS, "", ""},
    {"loss-per-step", GPT, {.loss_factor = 1.01}, VERDICT_FAIL, "add up to", ""},
    {"loss-per-step", EXACT, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"after-steps", GPT, {0}, VERDICT_PASS, "after 3 steps", ""},
    {"after-steps", GPT, {.update = fixed}, VERDICT_FAIL, "after 3 steps", ""},
    {"after-steps", GPT, {.finish = no_labels}, VERDICT_BROKEN, "", ""},
    {"configured-as-asked", EXACT, {0}, VERDICT_PASS, "", ""},
    {"configured-as-asked", EXACT, {.finish = wrong_config}, VERDICT_FAIL, "rank 1 configured compute = bf16, the case asks for f32", "Z19"},
    {"configured-as-asked", EXACT, {.finish = no_config}, VERDICT_FAIL, "rank 0 does not say", ""},
    {"really-sharded", EXACT, {0}, VERDICT_PASS, "", ""},
    {"really-sharded", EXACT, {.finish = held_twice}, VERDICT_FAIL, "optimizer of layers.0.weight", "Z27"},
    {"really-sharded", EXACT, {.finish = held_by_none}, VERDICT_FAIL, "no rank of 0-1 holds", "Z11"},
    {"really-sharded", EXACT, {.finish = nothing_reported}, VERDICT_BROKEN, "nothing to see", ""},
    {"parameters-moved", EXACT, {0}, VERDICT_PASS, "", ""},
    {"parameters-moved", EXACT, {.update = fixed}, VERDICT_FAIL, "the truth moves it", "Z22"},
    {"parameters-moved", EXACT, {.finish = truth_rests}, VERDICT_BROKEN, "vacuous", ""},
    {"data-differs", EXACT, {0}, VERDICT_PASS, "", ""},
    {"data-differs", EXACT, {.finish = same_data}, VERDICT_BROKEN, "same data", ""},
    {"certificate", EXACT, {0}, VERDICT_PASS, "certified", ""},
    {"certificate", EXACT, {.finish = no_certificate}, VERDICT_BROKEN, "no certificate", ""},
    {"certificate", EXACT, {.finish = vacuous_certificate}, VERDICT_BROKEN, "zero everywhere", ""},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void row_holds(void **state)
{
    const struct row *row = *state;
    struct synthetic *s = synthetic_run(row->yaml, &row->fault);
    struct finding f = synthetic_judge(s, row->check);
    if (f.verdict != row->verdict || !strstr(f.message, row->message) || (row->classes && strncmp(f.classes, row->classes, strlen(row->classes)) != 0) ||
        (row->classes && row->classes[0] == 0 && f.classes[0] != 0) /* "" names none */)
        fail_msg("%s: %s [%s] %s; expected %s [%s] ...%s...", row->check, verdict_name(f.verdict), f.classes, f.message, verdict_name(row->verdict),
                 row->classes ? row->classes : "any", row->message);
    if (row->verdict == VERDICT_PASS && !isnan(f.figure))
        assert_true(judge_compare(f.figure, f.bound));
    synthetic_free(s);
}

// Checks that judge our own data can only pass or be BROKEN; those of the subject must fail on something.
static void every_check_can_fail(void **state)
{
    (void)state;
    for (int i = 0; check_list[i]; i++) {
        if (planned_by_probes(check_list[i]->name))
            continue; // test_probes.c
        bool passes = false, fails = false;
        for (int k = 0; k < ROWS; k++) {
            bool same = strcmp(rows[k].check, check_list[i]->name) == 0;
            passes |= same && rows[k].verdict == VERDICT_PASS;
            fails |= same && rows[k].verdict == (check_list[i]->catches[0] ? VERDICT_FAIL : VERDICT_BROKEN);
        }
        if (!passes || !fails)
            fail_msg("check %s: the table has no row that %s it", check_list[i]->name, passes ? "fails" : "passes");
        assert_true(check_list[i]->claim[0] && check_list[i]->source[0] && check_list[i]->blind[0]);
    }
}

// docs/method.md lists every check with its own words ('|' is escaped there).
static void the_catalogue_lists_every_check(void **state)
{
    (void)state;
    static char text[1 << 17], row[4096];
    FILE *file = fopen("docs/method.md", "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    for (int i = 0; check_list[i]; i++) {
        const struct check *c = check_list[i];
        const char *cells[] = {c->claim, c->source, c->catches[0] ? c->catches : "our own data", c->blind};
        size_t used = (size_t)snprintf(row, sizeof row, "| %d | `%s` |", c->number, c->name);
        for (int k = 0; k < 4; k++) {
            row[used++] = ' ';
            for (const char *p = cells[k]; *p && used + 8 < sizeof row; p++) {
                if (*p == '|')
                    row[used++] = '\\';
                row[used++] = *p;
            }
            used += (size_t)snprintf(row + used, sizeof row - used, " |");
        }
        if (!strstr(text, row))
            fail_msg("docs/method.md lacks the row\n%s", row);
    }
}

int main(void)
{
    struct CMUnitTest tests[ROWS + 2];
    static char names[ROWS][128];
    for (int k = 0; k < ROWS; k++) {
        snprintf(names[k], sizeof names[k], "%s %s (%d)", rows[k].check, verdict_name(rows[k].verdict), k);
        tests[k] = (struct CMUnitTest){names[k], row_holds, NULL, NULL, (void *)&rows[k]};
    }
    tests[ROWS] = (struct CMUnitTest)cmocka_unit_test(every_check_can_fail);
    tests[ROWS + 1] = (struct CMUnitTest)cmocka_unit_test(the_catalogue_lists_every_check);
    return cmocka_run_group_tests_name("checks", tests, NULL, NULL);
}
