// Making a truth: data by the recipe, the serial run of the program with its observations, the certificate, the noise.
//
// Everything is computed before anything is written; truth.json is written last, and a folder without it is no truth.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/protocol/memory.h"
#include "reference/truth/certificate.h"
#include "reference/truth/recipe.h"
#include "reference/truth/record.h"

struct maker {
    const struct fsdp_case *c;
    struct truth *t;
    struct certificate certificate;
    bool certifying;
    int step;            // of the latest microbatch
    bool whole;          // the gradients are those of all microbatches of that step, each once
    int64_t micros_seen; // since zero_grad
};

// ---- observing ----

static void observe_arrays(struct truth_label *label, const struct serial *s, const char *what, double *const *arrays,
                           const bool *present)
{
    char name[300];
    for (int i = 0; i < s->c->parameter_count; i++) {
        const struct case_parameter *p = &s->c->parameters[i];
        snprintf(name, sizeof name, "%s/%s", what, p->name);
        if (p->tied_to < 0 && (present == NULL || present[i]))
            tensors_add(&label->tensors, name, DTYPE_F64, p->dims, p->shape, arrays[i], true);
    }
}

// Moments exist from a parameter's first update on.
static void observe_moments(struct truth_label *label, const struct serial *s, unsigned what)
{
    bool *updated = memory_zeros((size_t)s->c->parameter_count, sizeof *updated);
    for (int i = 0; i < s->c->parameter_count; i++)
        updated[i] = s->now.counts[i] > 0;
    if (what & OBSERVE_EXP_AVG)
        observe_arrays(label, s, "exp_avg", s->now.first, updated);
    if (what & OBSERVE_MOMENTUM)
        observe_arrays(label, s, "momentum", s->now.first, updated);
    if (what & OBSERVE_EXP_AVG_SQ)
        observe_arrays(label, s, "exp_avg_sq", s->now.second, updated);
    free(updated);
}

static bool observe_noise(struct maker *k, const struct serial *s, const char *label, struct error *error)
{
    struct truth_label parameters = {0};
    struct tensors noise;
    char name[600];
    observe_arrays(&parameters, s, "param", s->now.p, NULL);
    bool ok = truth_noise(k->c, &k->t->data, &parameters.tensors, "param", k->step, s->frozen, &noise, error);
    for (int i = 0; ok && i < noise.count; i++) {
        snprintf(name, sizeof name, "%s/%s", label, noise.items[i].name);
        tensors_add(&k->t->noise, name, DTYPE_F64, 1, (int64_t[]){3}, noise.items[i].data, true);
    }
    tensors_free(&noise);
    tensors_free(&parameters.tensors);
    return ok;
}

static bool observe(struct maker *k, const struct serial *s, const struct instruction *i, struct error *error)
{
    struct truth *t = k->t;
    t->labels = memory_grow(t->labels, (size_t)t->label_count, sizeof *t->labels);
    struct truth_label *label = &t->labels[t->label_count++];
    *label = (struct truth_label){.label = memory_text(i->label)};
    if (i->what & OBSERVE_PARAM)
        observe_arrays(label, s, "param", s->now.p, NULL);
    if (i->what & OBSERVE_GRAD)
        observe_arrays(label, s, "grad", s->g, s->has_gradient);
    if (i->what & OBSERVE_CLIPPED)
        observe_arrays(label, s, "clipped", s->g, s->has_gradient);
    observe_moments(label, s, i->what);
    bool noisy = k->c->layer == LAYER_CALIBRATED || strcmp(k->c->data.recipe, "gaussian") == 0;
    return !(i->what & OBSERVE_GRAD) || !noisy || !k->whole || k->micros_seen != k->c->data.micros ||
           observe_noise(k, s, i->label, error);
}

// ---- the run ----

static bool before(void *context, struct serial *s, const struct instruction *i, struct error *error)
{
    struct maker *k = context;
    switch (i->verb) {
    case VERB_MICRO:
    case VERB_BACKWARD:
        k->whole = k->micros_seen == 0 ? true : k->whole && i->step == k->step;
        k->step = i->step;
        k->micros_seen++;
        break;
    case VERB_ZERO_GRAD: k->micros_seen = 0; break;
    case VERB_OBSERVE:
        if (!observe(k, s, i, error))
            return false;
        break;
    default: break;
    }
    return !k->certifying || certificate_follow(&k->certificate, s, i, error);
}

static void take_certificate(struct maker *k)
{
    const struct certificate *f = &k->certificate;
    struct truth *t = k->t;
    t->exact_gradients = k->certifying && f->exact_gradients;
    t->exact = t->exact_gradients && f->exact_updates;
    t->certificate_bits = k->certifying ? log2(f->ratio) : NAN;
    t->smallest_gradient_share = k->certifying ? f->smallest_share : NAN;
    t->inexact = memory_text(k->certifying ? f->why : "a transformer or a model too large has no certificate");
}

static void take_losses(struct truth *t, struct serial *s)
{
    t->step_count = s->step_count;
    t->steps = s->steps;
    s->step_count = 0;
    s->steps = NULL;
    t->eval_count = s->eval_count;
    t->eval_losses = s->evals;
    s->evals = NULL;
}

// A recipe that promises exactness must have its certificate: exact and wide whole, integers for its gradients.
static bool promise_kept(const struct fsdp_case *c, const struct maker *k, struct error *error)
{
    const bool searched = strcmp(c->data.recipe, "exact") == 0 || strcmp(c->data.recipe, "wide") == 0;
    if ((searched || c->layer == LAYER_EXACT) && !k->t->exact)
        return error_set(error, "no exact data for this case: %s", k->t->inexact);
    if (strcmp(c->data.recipe, "integers") == 0 && !k->t->exact_gradients)
        return error_set(error, "no exact data for this case: %s", k->t->inexact);
    return !(searched || c->layer == LAYER_EXACT) || !k->certificate.vacuous || error_set(error, "no exact data for this case: %s", k->certificate.vacuous_why);
}

static bool run_program(const struct fsdp_case *c, struct truth *t, struct error *error)
{
    struct maker k = {.c = c, .t = t};
    struct serial s;
    k.certifying = certificate_open(&k.certificate, c, case_data_ranks(c), NULL);
    bool ok = serial_open(&s, c, &t->data, error) && serial_set_parameters(&s, &t->init, NULL, error);
    s.hook = before;
    s.context = &k;
    ok = ok && serial_run(&s, error);
    if (ok) {
        take_losses(t, &s);
        take_certificate(&k);
        ok = promise_kept(c, &k, error);
    }
    serial_close(&s);
    if (k.certifying)
        certificate_close(&k.certificate);
    return ok;
}

// ---- files ----

static bool read_given(const char *folder, struct truth *t, struct error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/init.safetensors", folder);
    if (!tensors_read(path, &t->init, error))
        return false;
    snprintf(path, sizeof path, "%s/data.safetensors", folder);
    return tensors_read(path, &t->data, error);
}

static bool write_set(const char *folder, const char *name, const struct tensors *set, struct error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
    return tensors_write(path, set, error);
}

static bool write_inputs(const struct fsdp_case *c, const struct truth *t, const char *folder, struct error *error)
{
    struct tensors other = {0};
    bool ok = strcmp(c->data.recipe, "given") == 0 ||
              (write_set(folder, "init", &t->init, error) && write_set(folder, "data", &t->data, error));
    if (ok && c->divergent_init) {
        recipe_other(c, &t->init, &other);
        ok = write_set(folder, "init.other", &other, error);
        tensors_free(&other);
    }
    return ok;
}

static bool make_folder(const char *path, struct error *error)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST || error_set(error, "%s: %s", path, strerror(errno));
}

static bool write_truth(const struct fsdp_case *c, const struct truth *t, const char *folder, struct error *error)
{
    char path[4096], labels[3900];
    snprintf(path, sizeof path, "%s/truth.json", folder);
    snprintf(labels, sizeof labels, "%s/truth", folder);
    if (!make_folder(folder, error) || (unlink(path) != 0 && errno != ENOENT))
        return error_set(error, "%s: %s", path, strerror(errno));
    if (!make_folder(labels, error) || !write_inputs(c, t, folder, error))
        return false;
    for (int i = 0; i < t->label_count; i++)
        if (!write_set(labels, t->labels[i].label, &t->labels[i].tensors, error))
            return false;
    return (t->noise.count == 0 || write_set(folder, "noise", &t->noise, error)) && record_write(c, t, folder, error);
}

static bool case_sound(const struct fsdp_case *c, const char *folder, struct error *error)
{
    if (strlen(folder) > 3500)
        return error_set(error, "%.100s...: the path is too long", folder);
    return c->data.recipe != NULL && c->data.steps >= 1 && c->data.micros >= 1 && c->global_rows >= case_data_ranks(c) && case_data_ranks(c) >= 1
               ? true
               : error_set(error, "case %s: no recipe, or steps, micros or rows below what the ranks need", c->id);
}

bool truth_make(const struct fsdp_case *c, const char *folder, struct error *error)
{
    struct truth t = {0};
    bool given = c->data.recipe != NULL && strcmp(c->data.recipe, "given") == 0;
    bool ok = case_sound(c, folder, error) &&
              (given ? read_given(folder, &t, error) : recipe_make(c, &t.init, &t.data, error)) &&
              distinct_check(c, &t.data, error) && run_program(c, &t, error) && write_truth(c, &t, folder, error);
    truth_free(&t);
    return ok;
}
