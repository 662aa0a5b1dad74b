// Reads `shards` events into ranges by kind, rank and parameter, and says where elements lie. See holdings.h.
#include "harness/judge/holdings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const held_names[HELD_COUNT] = {"parameter", "gradient", "optimizer"};

const char *held_name(enum held of)
{
    return of < HELD_COUNT ? held_names[of] : "?";
}

enum held held_of(unsigned bit)
{
    return bit == OBSERVE_PARAM ? HELD_PARAMETER : bit == OBSERVE_GRAD || bit == OBSERVE_CLIPPED ? HELD_GRADIENT : HELD_OPTIMIZER;
}

static int by_offset(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

// One tensor's list of [offset, length].
static bool read_part(const struct fsdp_case *c, int p, json_t *list, const char *where, struct held_part *out, struct error *error)
{
    const struct case_parameter *parameter = &c->parameters[p];
    if (!json_is_array(list))
        return error_set(error, "%s, tensor %s: expected a list of [offset, length]", where, parameter->name);
    *out = (struct held_part){.ranges = calloc(json_array_size(list) + 1, sizeof *out->ranges)};
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) {
        json_t *offset = json_array_get(item, 0), *length = json_array_get(item, 1);
        if (!json_is_integer(offset) || !json_is_integer(length) || json_array_size(item) != 2)
            return error_set(error, "%s, tensor %s: entry %zu is not [offset, length]", where, parameter->name, i);
        struct range r = {json_integer_value(offset), json_integer_value(length)};
        if (r.offset < 0 || r.length < 0 || r.offset > parameter->count || r.length > parameter->count - r.offset)
            return error_set(error, "%s, tensor %s: range [%lld, %lld] lies outside its %lld elements", where, parameter->name,
                             (long long)r.offset, (long long)r.length, (long long)parameter->count);
        if (r.length > 0)
            out->ranges[out->count++] = r;
        out->total += r.length;
    }
    struct range *sorted = malloc((size_t)(out->count + 1) * sizeof *sorted);
    memcpy(sorted, out->ranges, (size_t)out->count * sizeof *sorted);
    qsort(sorted, (size_t)out->count, sizeof *sorted, by_offset);
    bool overlap = false;
    for (int k = 1; k < out->count; k++)
        overlap |= sorted[k - 1].offset + sorted[k - 1].length > sorted[k].offset;
    free(sorted);
    return !overlap || error_set(error, "%s, tensor %s: ranges overlap", where, parameter->name);
}

static bool same_part(const struct held_part *a, const struct held_part *b)
{
    return a->count == b->count && (a->count == 0 || memcmp(a->ranges, b->ranges, (size_t)a->count * sizeof *a->ranges) == 0);
}

static bool read_parts(const struct fsdp_case *c, json_t *parts, const char *where, struct held_part *out, struct error *error)
{
    const char *name;
    json_t *list;
    json_object_foreach(parts, name, list) {
        int p = case_find_parameter(c, name);
        if (p < 0)
            return error_set(error, "%s: no tensor is called '%s'", where, name);
        if (c->parameters[p].tied_to >= 0)
            return error_set(error, "%s: '%s' is tied, it is held under '%s'", where, name, c->parameters[c->parameters[p].tied_to].name);
        if (!read_part(c, p, list, where, &out[p], error))
            return false;
    }
    return true;
}

static void free_parts(struct held_part *parts, int count)
{
    for (int p = 0; parts && p < count; p++)
        free(parts[p].ranges);
    free(parts);
}

// A kind may be reported again (after the last step, with padding_max): the parts must not have changed.
static bool read_event(const struct fsdp_case *c, const struct event *event, int rank, struct holdings *h, struct error *error)
{
    const char *of = json_string_value(json_object_get(event->fields, "of"));
    char where[64];
    snprintf(where, sizeof where, "rank %d, shards of %.20s", rank, of ? of : "?");
    for (int k = 0; k < HELD_COUNT; k++) {
        if (!of || strcmp(of, held_names[k]) != 0)
            continue;
        struct held_rank *r = &h->by[k][rank];
        struct held_part *parts = calloc((size_t)c->parameter_count + 1, sizeof *parts);
        bool ok = read_parts(c, json_object_get(event->fields, "parts"), where, parts, error);
        for (int p = 0; ok && r->reported && p < c->parameter_count; p++)
            if (!same_part(&parts[p], &r->parts[p]))
                ok = error_set(error, "%s, tensor %s: a later event contradicts an earlier one", where, c->parameters[p].name);
        double padding = 0, largest;
        event_number(event, "padding", &padding);
        r->padding = (int64_t)padding;
        if (event_number(event, "padding_max", &largest)) {
            bool worse = !judge_finite(largest) || (!r->has_padding_max) || (judge_finite(r->padding_max) && largest > r->padding_max);
            r->padding_max = worse ? largest : r->padding_max;
            r->has_padding_max = true;
        }
        free_parts(r->parts, c->parameter_count);
        r->parts = parts;
        r->reported = true;
        return ok;
    }
    return error_set(error, "%s: expected parameter, gradient or optimizer", where);
}

bool holdings_load(const struct fsdp_case *c, const struct answer *answers, struct holdings *out, struct error *error)
{
    *out = (struct holdings){.ranks = c->world_size, .parameters = c->parameter_count};
    for (int k = 0; k < HELD_COUNT; k++)
        out->by[k] = calloc((size_t)c->world_size, sizeof *out->by[k]);
    const struct event *event;
    for (int rank = 0; rank < c->world_size; rank++)
        for (int n = 0; (event = answer_find(&answers[rank], EVENT_SHARDS, n)) != NULL; n++)
            if (!read_event(c, event, rank, out, error))
                return false;
    return true;
}

void holdings_free(struct holdings *h)
{
    for (int k = 0; k < HELD_COUNT; k++) {
        for (int rank = 0; h->by[k] && rank < h->ranks; rank++)
            free_parts(h->by[k][rank].parts, h->parameters);
        free(h->by[k]);
    }
    *h = (struct holdings){0};
}

const struct held_rank *holdings_rank(const struct evidence *e, enum held of, int rank)
{
    return e->holdings ? &e->holdings->by[of][rank] : NULL;
}

bool holdings_complete(const struct evidence *e, enum held of)
{
    for (int rank = 0; rank < e->world_size; rank++) {
        const struct held_rank *r = holdings_rank(e, of, rank);
        if (!r || !r->reported)
            return false;
    }
    return true;
}

bool holdings_must_shard(const struct fsdp_case *c, enum held of)
{
    enum strategy s = c->sharding.strategy;
    bool all = s == STRATEGY_FULL || s == STRATEGY_HYBRID;
    return c->sharding.shards > 1 && (all || (of == HELD_OPTIMIZER && s != STRATEGY_NONE) || (of == HELD_GRADIENT && s == STRATEGY_GRAD));
}

struct range holdings_chunk(const struct case_parameter *p, int s, int shards)
{
    int64_t rows = p->dims > 0 ? p->shape[0] : 1, row = rows > 0 ? p->count / rows : 0;
    struct range chunk = holdings_chunk_rows(rows, s, shards);
    return (struct range){chunk.offset * row, chunk.length * row};
}

struct range holdings_chunk_rows(int64_t rows, int s, int shards)
{
    int64_t chunk = (rows + shards - 1) / shards;
    int64_t first = chunk * s < rows ? chunk * s : rows, end = chunk * (s + 1) < rows ? chunk * (s + 1) : rows;
    return (struct range){first, end - first};
}

struct range holdings_extent(const struct held_part *part)
{
    int64_t first = part->count > 0 ? part->ranges[0].offset : 0, end = 0;
    for (int k = 0; k < part->count; k++) {
        first = part->ranges[k].offset < first ? part->ranges[k].offset : first;
        end = part->ranges[k].offset + part->ranges[k].length > end ? part->ranges[k].offset + part->ranges[k].length : end;
    }
    return (struct range){first, end - first};
}

struct block holdings_block(const struct evidence *e, enum held of, int rank, int parameter)
{
    const struct case_parameter *p = &e->c->parameters[parameter];
    int64_t rows = p->dims > 0 ? p->shape[0] : 1, row = rows > 0 ? p->count / rows : 0, total = 0, first = p->count, end = 0;
    if (e->c->sharding.tensor <= 1 && e->c->sharding.pipeline <= 1)
        return (struct block){0, rows, row};
    struct rank_place at = case_place(e->c, rank);
    for (int s = 0; s < e->c->sharding.shards; s++) {
        int peer = case_rank_at(e->c, at.stage, at.replica * e->c->sharding.shards + s, at.tensor);
        const struct held_part *part = &holdings_rank(e, of, peer)->parts[parameter];
        struct range extent = holdings_extent(part);
        if (part->total == 0)
            continue;
        total += part->total;
        first = extent.offset < first ? extent.offset : first;
        end = extent.offset + extent.length > end ? extent.offset + extent.length : end;
    }
    if (total == 0)
        return (struct block){0, 0, 0};
    int64_t top = first / row, height = (end - 1) / row + 1 - top;
    return (struct block){top, height, total / height};
}

// "0", "0-3", "1,3": the marked of n ranks.
static void list_ranks(const bool *marked, int n, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int r = 0; r < n; r++) {
        if (!marked[r] || (r > 0 && marked[r - 1]))
            continue;
        int last = r;
        while (last + 1 < n && marked[last + 1])
            last++;
        if (used + 24 < size)
            used += (size_t)(last > r ? snprintf(text + used, size - used, "%s%d-%d", used ? "," : "", r, last)
                                      : snprintf(text + used, size - used, "%s%d", used ? "," : "", r));
    }
}

static bool part_differs(const struct held_part *part, const bool *differs)
{
    for (int k = 0; k < part->count; k++)
        for (int64_t i = 0; i < part->ranges[k].length; i++)
            if (differs[part->ranges[k].offset + i])
                return true;
    return false;
}

void holdings_where(const struct evidence *e, enum held of, int parameter, const bool *differs, struct place *out)
{
    *out = (struct place){{0}, {0}, false, false, false};
    if (!holdings_complete(e, of))
        of = HELD_PARAMETER;
    if (!holdings_complete(e, of) || e->world_size < 2)
        return;
    bool *marked = calloc((size_t)e->world_size, sizeof *marked);
    int holders = 0, hit = 0, first = -1, last = -1, last_holder = -1, first_holder = -1;
    for (int r = 0; r < e->world_size; r++) {
        const struct held_part *part = &holdings_rank(e, of, r)->parts[parameter];
        bool holds = part->total > 0;
        marked[r] = holds && part_differs(part, differs);
        holders += holds;
        hit += marked[r];
        first_holder = holds && first_holder < 0 ? r : first_holder;
        last_holder = holds ? r : last_holder;
        first = marked[r] && first < 0 ? r : first;
        last = marked[r] ? r : last;
    }
    list_ranks(marked, e->world_size, out->ranks, sizeof out->ranks);
    out->everywhere = hit == holders;
    out->only_last = hit == 1 && holders > 1 && last == last_holder;
    out->only_first = hit == 1 && holders > 1 && first == first_holder;
    if (out->only_last)
        snprintf(out->text, sizeof out->text, "only in the last shard (rank %d of %d)", last, e->world_size);
    else if (hit == 1 && holders > 1)
        snprintf(out->text, sizeof out->text, "only in the shard of rank %d of %d", first, e->world_size);
    else if (out->everywhere && holders > 1)
        snprintf(out->text, sizeof out->text, "in every shard");
    else if (hit > 1)
        snprintf(out->text, sizeof out->text, "only in the shards of ranks %.40s of %d", out->ranks, e->world_size);
    free(marked);
}
