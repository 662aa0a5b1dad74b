// Reading a rank's event lines, strictly: docs/protocol.md's table of events as a table. See answer.h.
//
// A worker is a stranger's program: anything may be in its file. Each line is one JSON object of a known
// event with the fields of its row and no others; the first complaint names file and line.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/answer.h"
#include "harness/protocol/document.h"
#include "harness/protocol/memory.h"

enum { MAX_BYTES = 256 << 20 };
enum value_type { WHOLE, NUMBER, FLAG, TEXT, TEXTS, PARTS, NAMED_NUMBERS };
struct value_rule { const char *name; enum value_type type; bool optional; };
struct event_rule {
    const char *name;
    bool open; // further fields, all numbers, are allowed
    struct value_rule fields[8];
};

static const char *const type_texts[] = {
    [WHOLE] = "a whole number of at least 0", [NUMBER] = "a number, \"nan\", \"inf\" or \"-inf\"", [FLAG] = "true or false",
    [TEXT] = "a text", [TEXTS] = "an object of texts", [PARTS] = "an object of lists of [offset, length]",
    [NAMED_NUMBERS] = "an object of numbers",
};

static const struct event_rule event_rules[] = {
    [EVENT_HELLO] = {"hello", false, {{"case", TEXT, false}, {"rank", WHOLE, false}, {"world_size", WHOLE, false},
                     {"implementation", TEXT, false}, {"version", TEXT, false}, {"configured", TEXTS, false}, {"note", TEXT, true}}},
    [EVENT_UNSUPPORTED] = {"unsupported", false, {{"reason", TEXT, false}}},
    [EVENT_SHARDS] = {"shards", false, {{"of", TEXT, false}, {"parts", PARTS, false}, {"padding", WHOLE, false}, {"padding_max", NUMBER, true}}},
    [EVENT_MICRO] = {"micro", false, {{"step", WHOLE, false}, {"micro", WHOLE, false}, {"loss", NUMBER, false}, {"tokens", NUMBER, false},
                     {"seconds", NUMBER, false}}},
    [EVENT_EVAL] = {"eval", false, {{"step", WHOLE, false}, {"micro", WHOLE, false}, {"loss", NUMBER, false}}},
    [EVENT_CLIP] = {"clip", false, {{"step", WHOLE, false}, {"norm", NUMBER, false}}},
    [EVENT_STEP] = {"step", false, {{"step", WHOLE, false}, {"skipped", FLAG, false}, {"loss_scale", NUMBER, false}, {"seconds", NUMBER, false}}},
    [EVENT_OBSERVED] = {"observed", false, {{"label", TEXT, false}, {"file", TEXT, false}}},
    [EVENT_MEMORY] = {"memory", true, {{"phase", TEXT, false}}},
    [EVENT_TRAFFIC] = {"traffic", true, {{NULL, WHOLE, false}}},
    [EVENT_ERROR] = {"error", false, {{"message", TEXT, false}}},
    [EVENT_DONE] = {"done", false, {{NULL, WHOLE, false}}},
};
enum { EVENT_COUNT = sizeof event_rules / sizeof *event_rules };

struct reader {
    const char *where;
    int line;
    struct error *error;
};

static bool is_number(const json_t *value)
{
    const char *text = json_string_value(value);
    return json_is_number(value) || (text && (strcmp(text, "nan") == 0 || strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0));
}

static bool is_part_list(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *part = json_array_get(list, i), *offset = json_array_get(part, 0), *length = json_array_get(part, 1);
        if (json_array_size(part) != 2 || !json_is_integer(offset) || !json_is_integer(length))
            return false;
        json_int_t first = json_integer_value(offset), count = json_integer_value(length), end;
        if (first < 0 || count < 0 || __builtin_add_overflow(first, count, &end))
            return false;
    }
    return json_is_array(list);
}

// Is every member of an object of this kind?
static bool all_members(json_t *object, bool (*is)(const json_t *))
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
        if (!is(value))
            return false;
    return json_is_object(object);
}

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static bool has_type(json_t *value, enum value_type type)
{
    switch (type) {
    case WHOLE: return json_is_integer(value) && json_integer_value(value) >= 0;
    case NUMBER: return is_number(value);
    case FLAG: return json_is_boolean(value);
    case TEXT: return json_is_string(value);
    case TEXTS: return all_members(value, is_text);
    case PARTS: return all_members(value, is_part_list);
    case NAMED_NUMBERS: return all_members(value, is_number);
    }
    return false;
}

static bool wrong_type(struct reader *r, const struct event_rule *rule, const struct value_rule *f, const json_t *value)
{
    char *found = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    error_set(r->error, "%s:%d: event %s: %s: found %.60s, expected %s", r->where, r->line, rule->name, f->name, found ? found : "", type_texts[f->type]);
    free(found);
    return false;
}

static bool check_fields(struct reader *r, const struct event_rule *rule, json_t *object)
{
    const char *key, *names[10] = {"event"};
    char list[256];
    json_t *value;
    int count = 1;
    for (const struct value_rule *f = rule->fields; f->name; f++)
        names[count++] = f->name;
    for (const struct value_rule *f = rule->fields; f->name; f++) {
        value = json_object_get(object, f->name);
        if (!value && !f->optional)
            return error_set(r->error, "%s:%d: event %s: found no field '%s', expected %s", r->where, r->line, rule->name, f->name, type_texts[f->type]);
        if (value && !has_type(value, f->type))
            return wrong_type(r, rule, f, value);
    }
    json_object_foreach(object, key, value) {
        bool known = false;
        for (int i = 0; i < count; i++)
            known = known || strcmp(names[i], key) == 0;
        if (!known && !(rule->open && (is_number(value) || has_type(value, NAMED_NUMBERS))))
            return error_set(r->error, "%s:%d: event %s: found unknown field '%.60s', expected %s%s", r->where, r->line, rule->name, key,
                             name_list(names, list, sizeof list), rule->open ? " and numbers" : "");
    }
    return true;
}

static bool event_kind_of(struct reader *r, json_t *object, enum event_kind *kind)
{
    const char *name = json_string_value(json_object_get(object, "event")), *names[EVENT_COUNT + 1];
    char list[256];
    for (int i = 0; i < EVENT_COUNT; i++) {
        names[i] = event_rules[i].name;
        if (name && strcmp(name, names[i]) == 0) {
            *kind = (enum event_kind)i;
            return true;
        }
    }
    names[EVENT_COUNT] = NULL;
    return error_set(r->error, "%s:%d: found event '%.60s', expected one of %s", r->where, r->line, name ? name : "", name_list(names, list, sizeof list));
}

// hello must be for this case and rank, else the answer is somebody else's.
static bool check_hello(struct reader *r, const json_t *object, const char *case_id, int rank, int world_size)
{
    const char *name = json_string_value(json_object_get(object, "case"));
    json_int_t its_rank = json_integer_value(json_object_get(object, "rank")), size = json_integer_value(json_object_get(object, "world_size"));
    if (strcmp(name, case_id) != 0)
        return error_set(r->error, "%s:%d: found an answer for case '%.200s', expected case '%s'", r->where, r->line, name, case_id);
    if (its_rank != rank)
        return error_set(r->error, "%s:%d: found an answer of rank %lld, expected rank %d", r->where, r->line, (long long)its_rank, rank);
    if (size != world_size)
        return error_set(r->error, "%s:%d: found an answer of %lld ranks, expected %d", r->where, r->line, (long long)size, world_size);
    return true;
}

static bool take_line(struct reader *r, const char *text, size_t size, const char *case_id, int rank, int world_size, struct answer *out)
{
    json_error_t problem;
    enum event_kind kind = EVENT_DONE;
    json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem);
    bool fine;
    if (!object)
        return error_set(r->error, "%s:%d: found a line that is no JSON object: %s", r->where, r->line, problem.text);
    if (!json_is_object(object))
        fine = error_set(r->error, "%s:%d: found JSON that is no object, expected one event", r->where, r->line);
    else if (out->ended)
        fine = error_set(r->error, "%s:%d: found a line after '%s', expected the end", r->where, r->line, event_rules[out->end].name);
    else if (!event_kind_of(r, object, &kind) || !check_fields(r, &event_rules[kind], object))
        fine = false;
    else if ((kind == EVENT_HELLO) != (out->count == 0))
        fine = error_set(r->error, "%s:%d: found event %s, expected hello first and only first", r->where, r->line, event_rules[kind].name);
    else
        fine = kind != EVENT_HELLO || check_hello(r, object, case_id, rank, world_size);
    if (!fine) {
        json_decref(object);
        return false;
    }
    out->events = memory_grow(out->events, (size_t)out->count, sizeof *out->events);
    out->events[out->count++] = (struct event){kind, object, r->line};
    out->ended = kind == EVENT_UNSUPPORTED || kind == EVENT_ERROR || kind == EVENT_DONE;
    out->end = kind;
    return true;
}

bool answer_parse(const char *text, size_t size, const char *where, const char *case_id, int rank, int world_size,
                  struct answer *out, struct error *error)
{
    struct reader r = {where, 0, error};
    *out = (struct answer){.rank = rank};
    for (const char *end = text + size, *next; text < end && (next = memchr(text, '\n', (size_t)(end - text))); text = next + 1) {
        r.line++;
        if (!take_line(&r, text, (size_t)(next - text), case_id, rank, world_size, out)) {
            answer_free(out);
            return false;
        }
    }
    return true;
}

bool answer_read(const char *path, const char *case_id, int rank, int world_size, struct answer *out, struct error *error)
{
    size_t size;
    *out = (struct answer){.rank = rank};
    char *text = file_read(path, MAX_BYTES, &size, error);
    if (!text)
        return false;
    bool fine = answer_parse(text, size, path, case_id, rank, world_size, out, error);
    free(text);
    return fine;
}

void answer_free(struct answer *a)
{
    for (int i = 0; i < a->count; i++)
        json_decref(a->events[i].fields);
    free(a->events);
    *a = (struct answer){0};
}

const struct event *answer_find(const struct answer *a, enum event_kind kind, int nth)
{
    for (int i = 0; i < a->count; i++)
        if (a->events[i].kind == kind && nth-- == 0)
            return &a->events[i];
    return NULL;
}

bool event_number(const struct event *e, const char *field, double *out)
{
    const char *dot = strchr(field, '.');
    const json_t *object = dot == NULL ? e->fields : json_object_getn(e->fields, field, (size_t)(dot - field));
    const json_t *value = json_object_get(object, dot == NULL ? field : dot + 1);
    const char *text = json_string_value(value);
    if (!value || !is_number(value))
        return false;
    *out = !text ? json_number_value(value) : strcmp(text, "nan") == 0 ? NAN : *text == '-' ? -INFINITY : INFINITY;
    return true;
}
