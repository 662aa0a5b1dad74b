// Cases planned from YAML, and what a worker that shards as asked says of itself: hello, and who holds what.
//
// Common ground of the subjects that the checks are tested on: synthetic.h computes one, probed.h has one in the records of probes alone.
#ifndef SUITE_CHECKS_TESTS_PLANNED_H
#define SUITE_CHECKS_TESTS_PLANNED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/cases/suite.h"
#include "harness/judge/holdings.h"
#include "harness/protocol/tests/temporary.h"
#include "suite/checks/check.h"

static const char planned_manifest[] = "title: synthetic\ncommand: [\"/bin/true\"]\nranks: [1, 8]\ntensor: [1, 8]\npipeline: [1, 8]\ncompute: [f32, bf16, f16]\nreduce: [f32, bf16]\n";

static void planned_write(const char *folder, const char *name, const char *text, char path[128])
{
    snprintf(path, 128, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

// The plan of a case file, in a folder of its own.
static void planned_make(const char *yaml, char folder[64], struct implementation *implementation, struct plan *plan)
{
    char path[128];
    struct error error = {{0}};
    snprintf(folder, 64, "/tmp/fsdpmark-synthetic-XXXXXX");
    assert_non_null(temporary_make(folder));
    planned_write(folder, "implementation.yaml", planned_manifest, path);
    if (!implementation_read(path, "suite", implementation, &error))
        fail_msg("%s", error.text);
    planned_write(folder, "case.yaml", yaml, path);
    struct selection selection = {.suite = "suite", .case_file = path, .scale = 1};
    if (!plan_make(&selection, implementation, plan, &error))
        fail_msg("%s", error.text);
}

static void planned_free(const char *folder, struct implementation *implementation, struct plan *plan)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    plan_free(plan);
    implementation_free(implementation);
}

static const struct check *planned_check(const char *name)
{
    for (int i = 0; check_list[i]; i++)
        if (strcmp(check_list[i]->name, name) == 0)
            return check_list[i];
    fail_msg("no check '%s'", name);
    return NULL;
}

// Is the check judged from what probes saw? The rows of those are in test_probes.c, all others' in test_checks.c: a check has to have rows in one.
static __attribute__((unused)) bool planned_by_probes(const char *name) { return strncmp(name, "memory-", 7) == 0 || strncmp(name, "traffic-", 8) == 0; }

// ---- what a worker says ----

static void planned_hello(const struct fsdp_case *c, int rank, char *text, size_t size)
{
    const struct sharding_spec *h = &c->sharding;
    const struct precision_spec *p = &c->precision;
    snprintf(text, size, "{\"event\": \"hello\", \"case\": \"%s\", \"rank\": %d, \"world_size\": %d, \"implementation\": \"synthetic\", \"version\": \"1\", \"configured\": "
             "{\"strategy\": \"%s\", \"mesh\": \"%dx%d\", \"tensor\": \"%d\", \"pipeline\": \"%d\", \"compute\": \"%s\", \"reduce\": \"%s\"}}\n", c->id, rank, c->world_size,
             strategy_name(h->strategy), h->replicas, h->shards, h->tensor, h->pipeline, dtype_name(p->compute), dtype_name(p->reduce));
}

// ---- who holds what ----

static struct range planned_flat(const struct fsdp_case *c, int p, int shard)
{
    int64_t before = 0, whole = 0;
    for (int q = 0; q < c->parameter_count; q++) {
        bool counts = c->parameters[q].tied_to < 0 && strcmp(c->parameters[q].unit, c->parameters[p].unit) == 0;
        whole += counts ? c->parameters[q].count : 0;
        before += counts && q < p ? c->parameters[q].count : 0;
    }
    int64_t cut = (whole + c->sharding.shards - 1) / c->sharding.shards, first = cut * shard - before, end = first + cut;
    first = first < 0 ? 0 : first > c->parameters[p].count ? c->parameters[p].count : first;
    end = end < first ? first : end > c->parameters[p].count ? c->parameters[p].count : end;
    return (struct range){first, end - first};
}

// The stage of a parameter: units in the order of the table, evenly cut; the root with the first.
static int planned_stage(const struct fsdp_case *c, int p)
{
    int units = 0, mine = 0;
    for (int q = 0; q < c->parameter_count; q++) {
        if (!*c->parameters[q].unit || (q > 0 && strcmp(c->parameters[q].unit, c->parameters[q - 1].unit) == 0))
            continue;
        units++;
        mine = q <= p ? units - 1 : mine;
    }
    return *c->parameters[p].unit ? mine * c->sharding.pipeline / units : 0;
}

// With tensor or pipeline ranks: matrices of blocks are cut by columns between tensor coordinates, then sharded by chunks of rows.
static size_t planned_ranges(const struct fsdp_case *c, int p, int rank, bool sharded, char *text, size_t size)
{
    const struct case_parameter *parameter = &c->parameters[p];
    struct rank_place at = case_place(c, rank);
    int64_t rows = parameter->shape[0], row = parameter->count / rows, first = 0, end = row;
    struct range chunk = sharded ? holdings_chunk_rows(rows, at.shard, c->sharding.shards) : (struct range){0, rows};
    size_t used = 0;
    if (parameter->dims > 1 && *parameter->unit) {
        first = row * at.tensor / c->sharding.tensor;
        end = row * (at.tensor + 1) / c->sharding.tensor;
    }
    text[0] = 0;
    for (int64_t r = chunk.offset; r < chunk.offset + chunk.length && planned_stage(c, p) == at.stage; r++)
        used += (size_t)snprintf(text + used, size - used, "%s[%lld, %lld]", used ? ", " : "", (long long)(r * row + first), (long long)(end - first));
    return used;
}

static void planned_shards(const struct fsdp_case *c, int rank, enum held of, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "{\"event\": \"shards\", \"of\": \"%s\", \"parts\": {", held_name(of));
    bool first = true, flat = c->sharding.layout == SHARD_FLAT;
    int shard = case_place(c, rank).shard;
    int64_t held = 0, largest = 0;
    bool parallel = c->sharding.tensor > 1 || c->sharding.pipeline > 1;
    char ranges[4096];
    for (int p = 0; p < c->parameter_count; p++) {
        if (c->parameters[p].tied_to >= 0)
            continue;
        struct range r = !holdings_must_shard(c, of) ? (struct range){0, c->parameters[p].count}
                         : flat                         ? planned_flat(c, p, shard)
                                                        : holdings_chunk(&c->parameters[p], shard, c->sharding.shards);
        if (parallel) {
            planned_ranges(c, p, rank, holdings_must_shard(c, of), ranges, sizeof ranges);
            used += (size_t)snprintf(text + used, size - used, "%s\"%s\": [%s]", first ? "" : ", ", c->parameters[p].name, ranges);
            first = false;
            continue;
        }
        used += (size_t)snprintf(text + used, size - used, "%s\"%s\": [[%lld, %lld]]", first ? "" : ", ", c->parameters[p].name,
                                 (long long)r.offset, (long long)r.length);
        held += r.length;
        largest += flat && holdings_must_shard(c, of) ? planned_flat(c, p, 0).length : 0;
        first = false;
    }
    snprintf(text + used, size - used, "}, \"padding\": %lld, \"padding_max\": 0}\n", (long long)(flat && holdings_must_shard(c, of) && largest > held ? largest - held : 0));
}

#endif
