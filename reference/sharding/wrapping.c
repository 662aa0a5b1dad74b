// Wrapping policies: from the blocks of the parameter table to units. The rules are told in wrapping.h.
#include "reference/sharding/wrapping.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

// A block of the table while units are being chosen.
struct block { const char *name; int64_t count; int unit; };

enum { UNIT_ROOT = -1 };

static int find_blocks(const struct fsdp_case *c, struct block *blocks)
{
    int count = 0;
    for (int i = 0; i < c->parameter_count; i++) {
        const struct case_parameter *p = &c->parameters[i];
        int b = 0;
        if (p->tied_to >= 0 || !p->unit[0])
            continue;
        while (b < count && strcmp(blocks[b].name, p->unit))
            b++;
        if (b == count)
            blocks[count++] = (struct block){.name = p->unit};
        blocks[b].count += p->count;
    }
    return count;
}

// Numbers the units from 0, the root left out; returns how many.
static int choose_units(const struct sharding_spec *s, struct block *blocks, int count)
{
    int units = 0;
    int64_t size = 0;
    for (int b = 0; b < count; b++) {
        bool wrapped = s->wrap == WRAP_BLOCK || (s->wrap == WRAP_PATTERN && !fnmatch(s->wrap_pattern, blocks[b].name, 0));
        blocks[b].unit = wrapped ? units++ : UNIT_ROOT;
        if (s->wrap != WRAP_SIZE)
            continue;
        blocks[b].unit = units;
        size += blocks[b].count;
        if (size >= s->wrap_min_parameters) {
            units++;
            size = 0;
        }
    }
    return units + (s->wrap == WRAP_SIZE && size > 0);
}

static int unit_of(const struct fsdp_case *c, const struct block *blocks, int count, int parameter)
{
    const struct case_parameter *p = &c->parameters[parameter];
    if (p->tied_to >= 0)
        p = &c->parameters[p->tied_to];
    for (int b = 0; b < count; b++)
        if (!strcmp(blocks[b].name, p->unit))
            return blocks[b].unit;
    return UNIT_ROOT;
}

static bool name_units(struct wrapping *w, const struct block *blocks, int count, int root)
{
    for (int u = 0; u < w->unit_count; u++) {
        const char *name = "";
        for (int b = count - 1; b >= 0; b--)
            if (blocks[b].unit + root == u && u >= root)
                name = blocks[b].name;
        w->names[u] = strdup(name);
        if (!w->names[u])
            return false;
    }
    return true;
}

static void list_members(struct wrapping *w, const struct fsdp_case *c)
{
    int used = 0;
    for (int u = 0; u < w->unit_count; u++) {
        w->first[u] = used;
        for (int i = 0; i < c->parameter_count; i++)
            if (w->unit_of[i] == u && c->parameters[i].tied_to < 0)
                w->members[used++] = i;
    }
    w->first[w->unit_count] = used;
}

bool wrapping_create(struct wrapping *w, const struct fsdp_case *c, struct error *error)
{
    size_t parameters = (size_t)c->parameter_count + 1;
    *w = (struct wrapping){0};
    struct block *blocks = calloc(parameters, sizeof *blocks);
    w->unit_of = calloc(parameters, sizeof *w->unit_of);
    w->members = calloc(parameters, sizeof *w->members);
    w->first = calloc(parameters + 1, sizeof *w->first);
    w->names = calloc(parameters, sizeof *w->names);
    bool ok = blocks && w->unit_of && w->members && w->first && w->names;
    if (ok) {
        int count = find_blocks(c, blocks), units = choose_units(&c->sharding, blocks, count), root = 0;
        for (int i = 0; i < c->parameter_count; i++) {
            w->unit_of[i] = unit_of(c, blocks, count, i);
            root |= w->unit_of[i] == UNIT_ROOT;
        }
        for (int i = 0; i < c->parameter_count; i++)
            w->unit_of[i] += root;
        w->unit_count = units + root;
        ok = name_units(w, blocks, count, root);
        list_members(w, c);
    }
    free(blocks);
    if (ok)
        return true;
    wrapping_free(w);
    return error_set(error, "no memory for the units of %d parameters", c->parameter_count);
}

void wrapping_free(struct wrapping *w)
{
    for (int u = 0; w->names && u < w->unit_count; u++)
        free(w->names[u]);
    free(w->names);
    free(w->unit_of);
    free(w->members);
    free(w->first);
    *w = (struct wrapping){0};
}
