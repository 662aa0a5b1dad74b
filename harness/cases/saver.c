// See saver.h.
#include "harness/cases/saver.h"

#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"

static int find_verb(const struct fsdp_case *c, enum verb verb, int from)
{
    for (int i = from; i < c->program_length; i++)
        if (c->program[i].verb == verb)
            return i;
    return -1;
}

// The step that the run goes on with after the load; -1 where none follows.
static int next_step(const struct fsdp_case *c, int load)
{
    for (int i = load; i < c->program_length; i++)
        if (c->program[i].verb == VERB_MICRO || c->program[i].verb == VERB_FORWARD)
            return c->program[i].step;
    return -1;
}

static bool only_observes_before(const struct fsdp_case *c, int load)
{
    for (int i = 0; i < load; i++)
        if (c->program[i].verb != VERB_OBSERVE)
            return false;
    return true;
}

bool saver_asked(const struct draft *loader, const struct document *doc, const struct node *at, struct error *error)
{
    const struct fsdp_case *c = &loader->c;
    int load = find_verb(c, VERB_LOAD, 0), save = find_verb(c, VERB_SAVE, 0);
    bool alone = load >= 0 && (save < 0 || save > load);
    const struct node *key = node_get(at, "save_ranks") ? node_get(at, "save_ranks") : at;
    if (alone && !loader->save_ranks)
        return node_error(doc, at, error, "case '%.60s': found load before any save, expected save_ranks, the number of ranks of who saves",
                          loader->name);
    if (!loader->save_ranks)
        return loader->save_layout == SAVE_LAYOUT_SAME ||
               node_error(doc, at, error, "case '%.60s': found save_layout without save_ranks, expected both", loader->name);
    if (!alone || save >= 0 || !only_observes_before(c, load))
        return node_error(doc, key, error, "case '%.60s': found save_ranks, expected a program that begins with load, after observations at most, and does not save",
                          loader->name);
    if (next_step(c, load) < 1)
        return node_error(doc, key, error, "case '%.60s': found save_ranks, expected a first step after load of 1 or more: the steps before it are what is saved",
                          loader->name);
    if (loader->rows_per_rank || c->loss == LOSS_MEAN_OF_RANKS)
        return node_error(doc, key, error, "case '%.60s': found save_ranks, expected global_rows and a loss that do not depend on the ranks", loader->name);
    return loader->save_layout == SAVE_LAYOUT_SAME || c->sharding.layout != SHARD_ANY ||
           node_error(doc, key, error, "case '%.60s': found save_layout other, expected a layout that has another: per_parameter or flat", loader->name);
}

// A given mesh, and groups to reshard to, are those of the loader's ranks: the saver's are `auto` and all.
static void shard_as_saver(struct draft *s)
{
    struct sharding_spec *h = &s->c.sharding;
    s->c.world_size = s->save_ranks;
    s->mesh_all = false;
    h->replicas = h->shards = 0;
    h->reshard_ranks = 0;
    if (s->save_layout == SAVE_LAYOUT_OTHER && h->strategy != STRATEGY_NONE)
        h->layout = h->layout == SHARD_FLAT ? SHARD_PER_PARAMETER : SHARD_FLAT;
    s->save_ranks = 0;
    s->save_layout = SAVE_LAYOUT_SAME;
}

static void append(struct fsdp_case *c, struct instruction in)
{
    c->program = memory_grow(c->program, (size_t)c->program_length, sizeof *c->program);
    c->program[c->program_length++] = in;
}

// From the loader's program to the uninterrupted one: what `load` brings is trained and saved.
static void rewrite_program(struct draft *s)
{
    struct fsdp_case *c = &s->c;
    struct instruction *old = c->program;
    int length = c->program_length, load = find_verb(c, VERB_LOAD, 0), steps = next_step(c, load);
    c->program = NULL;
    c->program_length = 0;
    for (int i = 0; i < load; i++)
        append(c, old[i]);
    for (int k = 0; k < steps; k++)
        draft_train(s, k);
    for (int i = 0; c->world_size == 1 && i < c->program_length; i++)
        c->program[i].local = false;
    append(c, (struct instruction){.verb = VERB_SAVE});
    for (int i = load + 1; i < length; i++)
        append(c, old[i]);
    free(old[load].label);
    free(old[load].pattern);
    free(old);
}

bool saver_make(struct draft *saver, const struct draft *unfinished, struct document *doc, const struct node *at, struct error *error)
{
    draft_copy(saver, unfinished);
    shard_as_saver(saver);
    if (!draft_finish(saver, doc, at, error))
        return false;
    rewrite_program(saver);
    return true;
}
