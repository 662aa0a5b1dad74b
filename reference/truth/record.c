// Writing and reading truth.json. See record.h. Non-finite numbers are the strings of docs/protocol.md.
#include "reference/truth/record.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/protocol/memory.h"

// ---- numbers ----

static json_t *from_number(double x)
{
    return isfinite(x) ? json_real(x) : json_string(isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
}

static bool to_number(const json_t *j, double *out)
{
    const char *text = json_string_value(j);
    *out = json_is_number(j)                             ? json_number_value(j)
           : text != NULL && strcmp(text, "inf") == 0    ? INFINITY
           : text != NULL && strcmp(text, "-inf") == 0   ? -INFINITY
                                                         : NAN;
    return json_is_number(j) || text != NULL;
}

static json_t *from_numbers(const double *x, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, from_number(x[i]));
    return list;
}

static bool to_numbers(const json_t *list, int *count, double **out)
{
    if (!json_is_array(list))
        return false;
    *count = (int)json_array_size(list);
    *out = memory_zeros((size_t)*count, sizeof **out);
    for (int i = 0; i < *count; i++)
        if (!to_number(json_array_get(list, (size_t)i), &(*out)[i]))
            return false;
    return true;
}

// ---- write ----

static json_t *from_steps(const struct truth *t)
{
    json_t *steps = json_array();
    for (int k = 0; k < t->step_count; k++) {
        const struct truth_step *s = &t->steps[k];
        json_array_append_new(steps, json_pack("{s:o, s:o, s:b, s:o}", "loss", from_number(s->loss), "norm",
                                               from_number(s->norm), "skipped", s->skipped, "micro_losses",
                                               from_numbers(s->micro_losses, s->micro_count)));
    }
    return steps;
}

static json_t *from_labels(const struct truth *t)
{
    json_t *labels = json_array();
    for (int i = 0; i < t->label_count; i++)
        json_array_append_new(labels, json_string(t->labels[i].label));
    return labels;
}

bool record_write(const struct fsdp_case *c, const struct truth *t, const char *folder, struct error *error)
{
    char key[33], path[4096], unfinished[4110];
    truth_key(c, key);
    json_t *j = json_pack("{s:i, s:s, s:b, s:b, s:o, s:o, s:s, s:o, s:o, s:o}", "version", TRUTH_VERSION, "key", key, "exact",
                          t->exact, "exact_gradients", t->exact_gradients, "certificate_bits", from_number(t->certificate_bits),
                          "smallest_gradient_share", from_number(t->smallest_gradient_share), "inexact", t->inexact,
                          "labels", from_labels(t), "steps", from_steps(t), "evals", from_numbers(t->eval_losses, t->eval_count));
    snprintf(path, sizeof path, "%s/truth.json", folder);
    snprintf(unfinished, sizeof unfinished, "%s.tmp", path);
    bool ok = j != NULL && json_dump_file(j, unfinished, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) == 0 && rename(unfinished, path) == 0;
    json_decref(j);
    return ok || error_set(error, "%s: cannot be written", path);
}

// ---- read ----

static bool read_step(const json_t *j, struct truth_step *s)
{
    s->skipped = json_is_true(json_object_get(j, "skipped"));
    return to_number(json_object_get(j, "loss"), &s->loss) && to_number(json_object_get(j, "norm"), &s->norm) &&
           to_numbers(json_object_get(j, "micro_losses"), &s->micro_count, &s->micro_losses);
}

static bool read_lists(const json_t *j, struct truth *t)
{
    const json_t *labels = json_object_get(j, "labels"), *steps = json_object_get(j, "steps");
    if (!json_is_array(labels) || !json_is_array(steps))
        return false;
    t->label_count = (int)json_array_size(labels);
    t->labels = memory_zeros((size_t)t->label_count, sizeof *t->labels);
    for (int i = 0; i < t->label_count; i++) {
        t->labels[i].label = memory_text(json_string_value(json_array_get(labels, (size_t)i)));
        if (t->labels[i].label == NULL)
            return false;
    }
    t->step_count = (int)json_array_size(steps);
    t->steps = memory_zeros((size_t)t->step_count, sizeof *t->steps);
    for (int k = 0; k < t->step_count; k++)
        if (!read_step(json_array_get(steps, (size_t)k), &t->steps[k]))
            return false;
    return to_numbers(json_object_get(j, "evals"), &t->eval_count, &t->eval_losses);
}

static bool read_record(const struct fsdp_case *c, const json_t *j, const char *path, struct truth *t, struct error *error)
{
    char key[33];
    const char *found = json_string_value(json_object_get(j, "key"));
    truth_key(c, key);
    if (found == NULL || strcmp(found, key) != 0)
        return error_set(error, "%s: the truth of key %.40s, expected %s: it was made for another case or version", path,
                         found == NULL ? "none" : found, key);
    t->exact = json_is_true(json_object_get(j, "exact"));
    t->exact_gradients = json_is_true(json_object_get(j, "exact_gradients"));
    t->inexact = memory_text(json_string_value(json_object_get(j, "inexact")));
    return (to_number(json_object_get(j, "certificate_bits"), &t->certificate_bits) &&
            to_number(json_object_get(j, "smallest_gradient_share"), &t->smallest_gradient_share) && t->inexact != NULL &&
            read_lists(j, t)) ||
           error_set(error, "%s: a field is missing or of the wrong type", path);
}

bool record_read(const struct fsdp_case *c, const char *folder, struct truth *t, struct error *error)
{
    char path[4096];
    json_error_t problem;
    snprintf(path, sizeof path, "%s/truth.json", folder);
    json_t *j = json_load_file(path, JSON_REJECT_DUPLICATES, &problem);
    if (j == NULL)
        return error_set(error, "%s:%d: %s", path, problem.line > 0 ? problem.line : 1, problem.text);
    bool ok = read_record(c, j, path, t, error);
    json_decref(j);
    return ok;
}
