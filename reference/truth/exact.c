// The exact recipes of an mlp: search for small integers whose training never rounds, on any number of ranks.
//
// exact: weights, inputs and residuals in {-1, 0, 1}; wide: inputs up to +-255 and residuals up to +-7, one step, so
// that gradients carry more bits than bf16 has. The target of each step is the truth's output at that step plus the
// residual: targets fixed from the first weights would leave nothing usable after a few steps.
//
// The data may not depend on N, because runs on other rank counts must reach the same parameters. So a draw counts only
// if the certificate holds, and every rank and microbatch contributes to every parameter, at all N of a list; the first
// list with a success is taken. Step by step: weights are drawn, the program is run, and at the first use of a step's
// data up to TRIES draws of them are tried against the certificate; the best one stays (score), and of ATTEMPTS initial
// weights the one with the largest share over the program.
//
// Numbers grow with every step and every call: three steps of three calls or two of four fit into float32, one or two
// of two calls into 16 bits.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"
#include "reference/truth/certificate.h"
#include "reference/truth/recipe.h"

enum { ATTEMPTS = 32, TRIES = 100, ENOUGH_DRAWS = 5, ENOUGH_RUNS = 2, HOPELESS = 6, MOST_RANKS = 8 };

static const int rank_lists[][MOST_RANKS + 1] = {
    {1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 5, 6, 8}, {1, 2, 3, 4, 8}, {1, 2, 3, 4}, {1, 2, 4, 8}, {1, 2, 4}, {1, 2}, {1}};

struct search {
    const struct fsdp_case *c;
    struct tensors *init, *data;
    bool wide;
    const int *ranks;                          // the list, ended by 0
    struct certificate certificates[MOST_RANKS];
    int count;
    struct random random;
    bool *made;                                // by step
    char why[256];                             // of the latest refusal
};

// ---- one step's data ----

static int64_t draw(struct random *r, double density, int64_t magnitude)
{
    if (random_uniform(r) >= density)
        return 0;
    int64_t value = random_integer(r, 1, magnitude);
    return random_bits(r) >> 63 ? value : -value;
}

// The step's part of a tensor of the data.
static float *step_part(const struct search *s, const char *name, int step, int64_t *count)
{
    const struct tensor *t = tensors_find(s->data, name);
    *count = t->count / s->c->data.steps;
    return (float *)t->data + step * *count;
}

static void draw_inputs(struct search *s, int step)
{
    const double density = s->c->data.density > 0 ? s->c->data.density : 0.6;
    int64_t count;
    float *input = step_part(s, "input", step, &count);
    for (int64_t i = 0; i < count; i++)
        input[i] = (float)draw(&s->random, density, s->wide ? 255 : 1);
}

// Targets of the step: predictions at the run's present parameters, plus residuals.
static bool set_targets(struct search *s, struct serial *run, int step, double density, struct error *error)
{
    const struct fsdp_case *c = s->c;
    const int64_t columns = c->model.sizes[c->model.size_count - 1];
    const struct model_arrays arrays = {(const void *const *)run->now.p, NULL};
    int64_t count, first, end;
    float *target = step_part(s, "target", step, &count);
    for (int m = 0; m < c->data.micros; m++)
        for (int rank = 0; rank < case_data_ranks(c); rank++) {
            struct model_batch batch;
            double loss;
            case_rows(c, rank, case_data_ranks(c), &first, &end);
            if (!model_batch_at(c, s->data, step, m, first, end, run->x, &batch, error))
                return false;
            model_pass_forward(&run->pass, &batch, &arrays, &loss);
            const double *y = model_pass_prediction(&run->pass);
            for (int64_t i = 0; i < (end - first) * columns; i++)
                target[(m * c->global_rows + first) * columns + i] = (float)(y[i] + (double)draw(&s->random, density, s->wide ? 7 : 1));
        }
    return true;
}

// Every weight matrix has a gradient element that 8 bits do not hold.
static bool is_wide(const struct search *s, const struct serial *run)
{
    for (int p = 0; p < s->c->parameter_count; p++) {
        bool found = !run->used[p] || s->c->parameters[p].dims < 2;
        for (int64_t e = 0; !found && e < s->c->parameters[p].count; e++)
            found = bf16_to_f32(bf16_from_f64(run->g[p][e])) != run->g[p][e];
        if (!found)
            return false;
    }
    return true;
}

static bool refuse(struct search *s, const char *why)
{
    snprintf(s->why, sizeof s->why, "%s", why);
    return false;
}

static bool certified(struct search *s, const struct certificate *k)
{
    if (!k->exact_gradients || !k->exact_updates)
        return refuse(s, k->why);
    return !k->vacuous || refuse(s, k->vacuous_why);
}

// How good a draw is, -INFINITY for one that is refused: the share of non-zero gradient, and bits left for later steps
// (a bit counts as much as a twentieth of the share; a share of 0.4 is enough). Works on a run of its own.
static double score(struct search *s, struct serial *run, int step, struct error *error)
{
    double quality = -INFINITY, loss;
    bool good = true;
    for (int p = 0; p < s->c->parameter_count; p++)
        memset(run->g[p], 0, (size_t)s->c->parameters[p].count * sizeof **run->g);
    for (int m = 0; good && m < s->c->data.micros; m++)
        good = serial_micro(run, step, m, true, &loss, error);
    for (int i = s->count - 1; good && i >= 0; i--) { // many ranks first: they refuse most
        struct certificate k;
        good = certificate_open(&k, s->c, s->ranks[i], error);
        for (int m = 0; good && m < s->c->data.micros; m++)
            good = certificate_micro(&k, run, step, m, error) && certified(s, &k);
        if (good) {
            certificate_gradients(&k, run, run->g);
            certificate_update(&k, run);
            quality = fmin(k.smallest_share, 0.4) - 0.05 * log2(k.ratio);
            good = certified(s, &k);
        }
        certificate_close(&k);
    }
    if (good && s->wide && !is_wide(s, run))
        good = refuse(s, "no element of some gradient needs more than 8 bits");
    return good ? quality : -INFINITY;
}

// A run beside the given one: its parameters and frozen flags, gradients of its own.
static bool trial_open(const struct search *s, const struct serial *from, struct serial *trial, struct error *error)
{
    if (!serial_open(trial, s->c, s->data, error))
        return false;
    for (int p = 0; p < s->c->parameter_count; p++) {
        memcpy(trial->now.p[p], from->now.p[p], (size_t)s->c->parameters[p].count * sizeof(double));
        trial->frozen[p] = from->frozen[p];
    }
    return true;
}

static void keep_step(struct search *s, int step, float **kept, bool restore)
{
    const char *const names[] = {"input", "target"};
    for (int i = 0; i < 2; i++) {
        int64_t count;
        float *part = step_part(s, names[i], step, &count);
        if (kept[i] == NULL)
            kept[i] = memory_zeros((size_t)count, sizeof(float));
        memcpy(restore ? part : kept[i], restore ? kept[i] : part, (size_t)count * sizeof(float));
    }
}

// False without an error where no draw is good.
static bool make_step(struct search *s, struct serial *run, int step, struct error *error)
{
    static const double densities[] = {0.75, 0.5, 0.3}; // of residuals: fewer keep weights small, more reach every rank
    struct serial trial;
    float *kept[2] = {NULL, NULL};
    double best = -INFINITY;
    bool ok = trial_open(s, run, &trial, error);
    for (int try = 0, good = 0; ok && try < TRIES && good < ENOUGH_DRAWS; try++) {
        draw_inputs(s, step);
        ok = set_targets(s, &trial, step, densities[try % 3], error);
        struct error alike = {""};
        bool distinct = ok && (distinct_step(s->c, s->data, step, &alike) || refuse(s, alike.text));
        double quality = distinct ? score(s, &trial, step, error) : -INFINITY;
        good += isfinite(quality);
        if (quality > best) {
            best = quality;
            keep_step(s, step, kept, false);
        }
    }
    if (isfinite(best))
        keep_step(s, step, kept, true);
    free(kept[0]);
    free(kept[1]);
    serial_close(&trial);
    s->made[step] = true;
    return ok && isfinite(best);
}

// ---- a run ----

static bool follow(void *context, struct serial *run, const struct instruction *i, struct error *error)
{
    struct search *s = context;
    bool uses = i->verb == VERB_MICRO || i->verb == VERB_FORWARD || i->verb == VERB_EVAL;
    if (uses && !s->made[i->step] && !make_step(s, run, i->step, error))
        return false;
    for (int k = 0; k < s->count; k++)
        if (!certificate_follow(&s->certificates[k], run, i, error) || !certified(s, &s->certificates[k]))
            return false;
    return true;
}

static void draw_weights(struct search *s)
{
    for (int i = 0; i < s->init->count; i++)
        for (int64_t e = 0; e < s->init->items[i].count; e++)
            ((float *)s->init->items[i].data)[e] = (float)draw(&s->random, 2.0 / 3, 1);
}

// Certificates of the whole program at all N of the list. Returns the smallest share, -1 where something is not exact.
static double attempt(struct search *s, int *steps_made, struct error *error)
{
    struct serial run;
    double share = 1;
    bool ok = serial_open(&run, s->c, s->data, error);
    memset(s->made, 0, (size_t)s->c->data.steps * sizeof *s->made);
    for (s->count = 0; ok && s->ranks[s->count] != 0 && s->ranks[s->count] <= s->c->global_rows; s->count++)
        ok = certificate_open(&s->certificates[s->count], s->c, s->ranks[s->count], error);
    draw_weights(s);
    run.hook = follow;
    run.context = s;
    ok = ok && serial_set_parameters(&run, s->init, NULL, error) && serial_run(&run, error);
    for (int step = 0; ok && step < s->c->data.steps; step++)
        ok = s->made[step] || make_step(s, &run, step, error); // data that the program leaves out
    for (*steps_made = 0; *steps_made < s->c->data.steps && s->made[*steps_made];)
        ++*steps_made;
    for (int k = 0; k < s->count; k++) {
        share = fmin(share, s->certificates[k].smallest_share);
        certificate_close(&s->certificates[k]);
    }
    serial_close(&run);
    return ok ? share : -1;
}

// Copies the values of one set into another of the same names.
static void copy_set(struct tensors *to, const struct tensors *from)
{
    for (int i = 0; i < from->count; i++) {
        struct tensor *t = tensors_find(to, from->items[i].name);
        if (t != NULL)
            memcpy(t->data, from->items[i].data, (size_t)t->count * dtype_size(t->dtype));
        else
            tensors_add(to, from->items[i].name, from->items[i].dtype, from->items[i].dims, from->items[i].shape,
                        from->items[i].data, true);
    }
}

static bool search_list(struct search *s, int list, struct error *error)
{
    struct tensors best_init = {0}, best_data = {0};
    double best = -1;
    int deepest = 0;
    for (int a = 0, good = 0; a < ATTEMPTS && good < ENOUGH_RUNS && error->text[0] == 0; a++) {
        int steps_made;
        s->random = random_stream(s->c->seed, s->c->data.recipe, (uint64_t)(list * ATTEMPTS + a));
        double share = attempt(s, &steps_made, error);
        deepest = steps_made > deepest ? steps_made : deepest;
        good += share > 0;
        if (share > best && share > 0) {
            best = share;
            copy_set(&best_init, s->init);
            copy_set(&best_data, s->data);
        }
        if (a + 1 >= HOPELESS && good == 0 && deepest < 2)
            break; // not even the first step
    }
    copy_set(s->init, &best_init);
    copy_set(s->data, &best_data);
    tensors_free(&best_init);
    tensors_free(&best_data);
    return best > 0;
}

static bool in_list(const int *list, int n)
{
    for (; *list != 0; list++)
        if (*list == n)
            return true;
    return false;
}

static bool recipe_fits(const struct fsdp_case *c, bool wide, struct error *error)
{
    if (c->model.kind != MODEL_MLP)
        return error_set(error, "recipe %s with model %s, expected an mlp", c->data.recipe, model_kind_name(c->model.kind));
    if (certificate_inexact_optimizer(c) != NULL)
        return error_set(error, "no exact data for this case: the update is %s: it rounds", certificate_inexact_optimizer(c));
    if (wide && c->data.steps != 1)
        return error_set(error, "recipe wide with %lld steps, expected 1", (long long)c->data.steps);
    return case_data_ranks(c) <= MOST_RANKS ||
           error_set(error, "recipe %s on %d ranks, expected at most %d", c->data.recipe, case_data_ranks(c), MOST_RANKS);
}

bool exact_make(const struct fsdp_case *c, struct tensors *init, struct tensors *data, struct error *error)
{
    struct error own = {""};
    struct search s = {.c = c, .init = init, .data = data, .wide = strcmp(c->data.recipe, "wide") == 0};
    if (!recipe_fits(c, s.wide, error))
        return false;
    s.made = memory_zeros((size_t)c->data.steps, sizeof *s.made);
    bool found = false;
    size_t list = 0;
    for (; !found && own.text[0] == 0 && list < sizeof rank_lists / sizeof *rank_lists; list++) {
        s.ranks = rank_lists[list];
        found = search_list(&s, (int)list, &own);
    }
    free(s.made);
    if (own.text[0] != 0)
        return error_set(error, "%s", own.text);
    if (!found)
        return error_set(error, "no exact data for this case: %s", s.why);
    return in_list(s.ranks, case_data_ranks(c)) ||
           error_set(error, "no exact data for %d ranks, only for smaller or even numbers: %s", case_data_ranks(c), s.why);
}
