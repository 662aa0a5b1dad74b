// The program of a case: the standard one, or an explicit list with its shorthands. See docs/cases.md.
//
// A shorthand ("micro 0 1 false") becomes the mapping that it stands for and is then read by the same table as
// case.json, so that both are equally strict.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cases/draft.h"
#include "harness/protocol/memory.h"

enum { PROGRAM_MAX = 100000 }; // verbs

static struct instruction *add(struct fsdp_case *c, enum verb verb, int step)
{
    c->program = memory_grow(c->program, (size_t)c->program_length, sizeof *c->program);
    struct instruction *at = &c->program[c->program_length++];
    *at = (struct instruction){.verb = verb, .step = step};
    return at;
}

static void add_observe(struct draft *d, char *label, unsigned what)
{
    struct instruction *at = add(&d->c, VERB_OBSERVE, 0);
    at->label = label;
    at->what = what;
    at->local = d->observe_local;
}

static unsigned state_after_step(const struct optimizer_spec *o)
{
    if (o->kind == OPTIMIZER_ADAMW)
        return OBSERVE_PARAM | OBSERVE_EXP_AVG | OBSERVE_EXP_AVG_SQ;
    return OBSERVE_PARAM | (o->momentum > 0 ? OBSERVE_MOMENTUM : 0);
}

static void add_init(struct draft *d)
{
    add_observe(d, memory_text("init"), OBSERVE_PARAM);
}

static void add_micros(struct draft *d, int step)
{
    for (int m = 0; m < d->c.data.micros; m++) {
        struct instruction *at = add(&d->c, VERB_MICRO, step);
        at->micro = m;
        at->sync = !d->sync_last || m == d->c.data.micros - 1;
    }
}

void draft_train(struct draft *d, int step)
{
    struct fsdp_case *c = &d->c;
    add_micros(d, step);
    add_observe(d, memory_format("s%d.grad", step), OBSERVE_GRAD);
    if (c->clip != CLIP_OFF) {
        add(c, VERB_CLIP, step);
        add_observe(d, memory_format("s%d.clipped", step), OBSERVE_CLIPPED);
    }
    add(c, VERB_STEP, step);
    add_observe(d, memory_format("s%d", step), state_after_step(&c->optimizer));
    add(c, VERB_ZERO_GRAD, 0);
}

// "a,b" as a list of words.
static struct node *word_list(struct document *doc, int line, char *word)
{
    struct node *list = node_sequence(doc, line);
    char *save;
    for (char *name = strtok_r(word, ",", &save); name; name = strtok_r(NULL, ",", &save))
        node_append(list, NULL, node_scalar(doc, line, name));
    return list;
}

// Words to the mapping that they stand for: the verb, then its fields in the order of the protocol's table.
static struct node *from_words(struct document *doc, const struct node *item, struct error *error)
{
    struct node *mapping = node_mapping(doc, item->line);
    char *text = memory_text(item->text), *save;
    char *word = strtok_r(text, " \t", &save);
    const struct field *fields = NULL;
    bool known = false;
    for (int i = 0; word && verb_names[i]; i++)
        if (strcmp(word, verb_names[i]) == 0) {
            fields = instruction_fields[i];
            known = true;
        }
    if (!known) {
        char list[256];
        node_error(doc, item, error, "found verb '%.60s', expected one of init, train, steps, %s", word ? word : "", name_list(verb_names, list, sizeof list));
        free(text);
        return NULL;
    }
    node_append(mapping, "verb", node_scalar(doc, item->line, word ? word : ""));
    while ((word = strtok_r(NULL, " \t", &save))) {
        if (!fields || !fields->name) {
            node_error(doc, item, error, "found '%.100s' with a word too many: '%.60s', expected the verb and its fields", item->text, word);
            free(text);
            return NULL;
        }
        bool is_list = fields->kind == FIELD_FLAGS;
        node_append(mapping, fields->name, is_list ? word_list(doc, item->line, word) : node_scalar(doc, item->line, word));
        fields++;
    }
    free(text);
    return mapping;
}

// A copy of an object with `sync` and `local` added where its verb has them and it has not.
static struct node *with_defaults(struct document *doc, const struct node *item, bool local)
{
    struct node *full = node_mapping(doc, item->line);
    const struct node *verb = node_get(item, "verb");
    for (int i = 0; i < item->count; i++)
        node_append(full, item->keys[i], item->items[i]);
    for (int i = 0; verb && verb->kind == NODE_SCALAR && verb_names[i]; i++) {
        if (strcmp(verb->text, verb_names[i]) != 0)
            continue;
        const struct field *fields = instruction_fields[i];
        if (field_find(fields, "sync") && !node_get(item, "sync"))
            node_append(full, "sync", node_scalar(doc, item->line, "true"));
        if (field_find(fields, "local") && !node_get(item, "local"))
            node_append(full, "local", node_scalar(doc, item->line, local ? "true" : "false"));
    }
    return full;
}

static bool train_word(struct draft *d, const struct document *doc, const struct node *item, struct error *error)
{
    const struct node step = {.kind = NODE_SCALAR, .line = item->line, .text = item->text + strlen("train ")};
    int64_t k;
    if (!node_integer(&step, &k) || k < 0 || k >= d->c.data.steps)
        return node_error(doc, item, error, "found '%.60s', expected train and a step below %d", item->text, (int)d->c.data.steps);
    draft_train(d, (int)k);
    return true;
}

// "steps FIRST LAST": whole steps with nothing between them, for what is timed.
static bool steps_words(struct draft *d, const struct document *doc, const struct node *item, struct error *error)
{
    int first, last, end = 0;
    if (sscanf(item->text, "steps %d %d%n", &first, &last, &end) != 2 || item->text[end] != 0 || first < 0 || last < first || last >= d->c.data.steps)
        return node_error(doc, item, error, "found '%.60s', expected steps and a first and a last one below %d", item->text, (int)d->c.data.steps);
    for (int k = first; k <= last; k++) {
        add_micros(d, k);
        if (d->c.clip != CLIP_OFF)
            add(&d->c, VERB_CLIP, k);
        add(&d->c, VERB_STEP, k);
        add(&d->c, VERB_ZERO_GRAD, 0);
    }
    return true;
}

static bool add_item(struct draft *d, struct document *doc, int index, struct error *error)
{
    const struct node *item = d->program->items[index];
    bool words = item->kind == NODE_SCALAR;
    if (words && strcmp(item->text, "init") == 0) {
        add_init(d);
        return true;
    }
    if (words && strncmp(item->text, "train ", 6) == 0)
        return train_word(d, doc, item, error);
    if (words && strncmp(item->text, "steps ", 6) == 0)
        return steps_words(d, doc, item, error);
    const struct node *mapping = words ? from_words(doc, item, error) : item;
    if (!mapping)
        return false;
    struct reading r = {.document = doc, .error = error};
    snprintf(r.path, sizeof r.path, "program.%d.", index);
    struct instruction *at = add(&d->c, VERB_STOP, 0);
    if (mapping->kind == NODE_MAPPING)
        mapping = with_defaults(doc, mapping, d->observe_local);
    return field_read(&r, &instruction_field, mapping, at);
}

static void drop_local(struct fsdp_case *c)
{
    for (int i = 0; i < c->program_length; i++)
        c->program[i].local = false;
}

bool draft_program(struct draft *d, struct document *doc, const struct node *at, struct error *error)
{
    struct fsdp_case *c = &d->c;
    free(c->program);
    c->program = NULL;
    if (!d->program) {
        add_init(d);
        for (int k = 0; k < c->data.steps && c->program_length <= PROGRAM_MAX; k++)
            draft_train(d, k);
    }
    for (int i = 0; d->program && i < d->program->count && c->program_length <= PROGRAM_MAX; i++)
        if (!add_item(d, doc, i, error))
            return false;
    if (c->program_length > PROGRAM_MAX)
        return node_error(doc, at, error, "case '%.60s': found a program of more than %d verbs, expected fewer", d->name, PROGRAM_MAX);
    if (c->program[c->program_length - 1].verb != VERB_STOP)
        add(c, VERB_STOP, 0);
    if (c->world_size == 1)
        drop_local(c);
    return true;
}
