// See samples.h.
#include "harness/net/samples.h"

#include <stdlib.h>
#include <string.h>

#include "harness/net/lines.h"
#include "harness/protocol/memory.h"

void net_samples_open(struct net_samples *s, const struct net_settings *settings, const struct net_plan *plan)
{
    *s = (struct net_samples){settings, plan, memory_zeros((size_t)plan->count, sizeof *s->points)};
}

void net_samples_close(struct net_samples *s)
{
    for (int i = 0; i < s->plan->count; i++)
        free(s->points[i].first);
    free(s->points);
}

static FILE *open_lines(const char *folder)
{
    char *path = memory_format("%s/samples.jsonl", folder);
    FILE *file = fopen(path, "re");
    free(path);
    return file;
}

int net_samples_points(const char *folder, int count)
{
    char *line = NULL, *seen = memory_zeros((size_t)count, 1);
    size_t size = 0;
    int point, points = 0;
    FILE *file = open_lines(folder);
    while (file != NULL && getline(&line, &size, file) > 0)
        if (sscanf(line, "{\"point\": %d,", &point) == 1 && point >= 0 && point < count && !seen[point]) {
            seen[point] = 1;
            points++;
        }
    if (file != NULL)
        fclose(file);
    free(line);
    free(seen);
    return points;
}

// ---- into the store ----
static json_t *stored_point(const struct net_samples *s, const struct net_point *p)
{
    const struct net_settings *o = s->settings;
    json_t *point = net_point_write(p);
    int64_t bytes = 0;
    for (int i = 0; i < p->call_count; i++)
        bytes += p->calls[i].count * (int64_t)dtype_size(p->calls[i].type);
    json_object_set_new(point, "ranks", json_integer(o->ranks));
    json_object_set_new(point, "hosts", json_integer(fabric_place_hosts(o->place)));
    json_object_set_new(point, "within", json_integer(o->within));
    json_object_set_new(point, "bytes", json_integer((json_int_t)bytes));
    json_object_set_new(point, "dtype", json_string(dtype_name(p->calls[0].type)));
    return point;
}

static bool series_of(struct net_samples *s, int index, enum net_series which, int64_t *id, struct error *error)
{
    const struct net_settings *o = s->settings;
    char name[64], *quantity = which == NET_SECONDS ? memory_text("seconds") : memory_format("%s seconds", net_series_names[which]);
    *id = s->points[index].ids[which];
    bool ok = true;
    if (*id == 0) {
        json_t *point = stored_point(s, &s->plan->points[index]);
        const struct series series = {.tool = "net", .fabric = fabric_place_fabric(o->place)->name, .subject = "mpi",
                                      .name = net_point_name(&s->plan->points[index], name), .quantity = quantity, .point = point};
        ok = store_add_series(o->store, o->run, &series, id, error);
        s->points[index].ids[which] = *id;
        json_decref(point);
    }
    free(quantity);
    return ok;
}

static bool add_values(struct net_samples *s, int index, enum net_series which, int launch, json_t *list, struct error *error)
{
    int64_t id;
    size_t n = json_array_size(list);
    if (n == 0)
        return true;
    double *values = memory_zeros(n, sizeof *values);
    for (size_t i = 0; i < n; i++)
        values[i] = json_number_value(json_array_get(list, i));
    bool ok = series_of(s, index, which, &id, error) && store_add_samples(s->settings->store, id, launch, (int)n, values, error);
    free(values);
    return ok;
}

static bool take_line(struct net_samples *s, json_t *line, int launch, struct error *error)
{
    json_int_t index = json_integer_value(json_object_get(line, "point"));
    if (!json_is_object(line) || index < 0 || index >= s->plan->count)
        return error_set(error, "samples.jsonl: found a line about no point of the plan");
    struct net_sampled *p = &s->points[index];
    const char *first = json_string_value(json_object_get(line, "first"));
    p->errors += json_integer_value(json_object_get(line, "errors"));
    p->calls += json_integer_value(json_object_get(line, "calls"));
    p->group = (int)json_integer_value(json_object_get(line, "group"));
    p->slices = (int)json_integer_value(json_object_get(line, "slices"));
    if (p->first == NULL && first != NULL && first[0] != 0)
        p->first = memory_text(first);
    for (int i = 0; i < NET_SERIES; i++)
        if (!add_values(s, (int)index, (enum net_series)i, launch, json_object_get(line, net_series_names[i]), error))
            return false;
    return true;
}

bool net_samples_take(struct net_samples *s, const char *folder, int launch, struct error *error)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_lines(folder);
    bool ok = true;
    for (ssize_t n; ok && file != NULL && (n = getline(&text, &size, file)) > 0;) {
        json_error_t where;
        json_t *line = text[n - 1] == '\n' ? json_loads(text, 0, &where) : NULL;
        if (text[n - 1] != '\n')
            break; // the program ended while it wrote
        ok = line != NULL ? take_line(s, line, launch, error) : error_set(error, "samples.jsonl: %s", where.text);
        json_decref(line);
    }
    if (file != NULL)
        fclose(file);
    free(text);
    return ok;
}

bool net_samples_finish(struct net_samples *s, struct error *error)
{
    bool ok = true;
    for (int i = 0; ok && i < s->plan->count; i++) {
        const struct net_sampled *p = &s->points[i];
        json_t *facts = json_pack("{s:I, s:I, s:i, s:i}", "errors", (json_int_t)p->errors, "calls", (json_int_t)p->calls, "calls_per_sample", p->group,
                                  "product_slices", p->slices);
        if (p->first != NULL)
            json_object_set_new(facts, "first_error", json_string(p->first));
        struct net_line line = net_line_of(s->settings->place, s->settings->ranks, s->settings->within, &s->plan->points[i]);
        if (line.rate > 0) {
            json_object_set_new(facts, "line_rate", json_real(line.rate));
            json_object_set_new(facts, "burst", json_real(line.burst));
        }
        for (int k = 0; ok && k < NET_SERIES; k++)
            ok = p->ids[k] == 0 || store_set_series_facts(s->settings->store, p->ids[k], facts, error);
        json_decref(facts);
    }
    return ok;
}
