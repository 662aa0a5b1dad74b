// Malformed case files, profiles and manifests: each with its exact message.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/cases/suite.h"
#include "harness/protocol/memory.h"

#define DATA "harness/cases/tests/data"

static char folder[] = "/tmp/fsdpmark-suite-XXXXXX";
static struct implementation full;
static int wrong;

// Writes a text to a file of the test's own suite folder.
static char *write_file(const char *name, const char *text)
{
    char *path = memory_format("%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

// The message with the test's folder left out wherever it stands.
static const char *without_folder(struct error *error)
{
    for (char *at; (at = strstr(error->text, folder));)
        memmove(at, at + strlen(folder) + 1, strlen(at + strlen(folder)));
    return error->text;
}

static void expect(const char *what, bool fine, struct error *error, const char *message)
{
    if (!fine && strcmp(without_folder(error), message) == 0)
        return;
    print_error("%s\n  said     %s\n  expected %s\n", what, fine ? "(no complaint)" : error->text, message);
    wrong++;
}

#define HEAD "name: a\ntitle: t\nlayer: exact\nmodel: {kind: mlp, sizes: [4, 4]}\n"
static const struct { const char *text, *message; } bad_cases[] = {
    {"nothing", "c.yaml:1: found no mapping, expected {defaults, cases} or one case"},
    {"[]\n", "c.yaml:1: found no mapping, expected {defaults, cases} or one case"},
    {"cases: []\n", "c.yaml:1: cases: found no case, expected a list of cases"},
    {"cases: [1]\n", "c.yaml:1: found no mapping, expected a case {name, title, ...}"},
    {"defaults: {}\n", "c.yaml:1: cases: found no case, expected a list of cases"},
    {"cases: [{name: a}]\nmore: 1\n", "c.yaml:2: found unknown field 'more', expected one of defaults or cases"},
    {"title: t\nlayer: exact\nmodel: {kind: mlp, sizes: [4, 4]}\n", "c.yaml:1: found name '', expected letters, digits, '_', '-'"},
    {"name: a b\ntitle: t\nlayer: exact\nmodel: {kind: mlp, sizes: [4, 4]}\n", "c.yaml:1: found name 'a b', expected letters, digits, '_', '-'"},
    {"name: a\nlayer: exact\nmodel: {kind: mlp, sizes: [4, 4]}\n", "c.yaml:1: case 'a': found no title, expected one line"},
    {"name: a\ntitle: t\nmodel: {kind: mlp, sizes: [4, 4]}\n", "c.yaml:1: case 'a': found no layer, expected exact, witness, calibrated or measured"},
    {"name: a\ntitle: t\nlayer: exact\n", "c.yaml:1: case 'a': found no model, expected one with its kind"},
    {"name: a\ntitle: t\nlayer: exact\nmodel: {sizes: [4, 4]}\n", "c.yaml:4: model.kind: found nothing, expected this field"},
    {"name: a\ntitle: t\nlayer: exact\nmodel: {kind: cnn}\n", "c.yaml:4: model.kind: found 'cnn', expected one of witness, mlp or transformer"},
    {"name: a\ntitle: t\nlayer: exact\nmodel: {kind: transformer, heads: 5}\n", "c.yaml:4: case 'a': model: dim 32 is no multiple of heads 5"},
    {"defaults:\n  name: b\ncases:\n  - {name: a, title: t, layer: exact, model: {kind: mlp, sizes: [4, 4]}}\n", "c.yaml:2: found unknown field 'name', expected one of layer, seed, model, sharding, optimizer, clip, loss, divergent_init, ranks, rows_per_rank, global_rows, steps, micros, sync, mesh, precision, data, observe_local, save_ranks, save_layout, program, strategy, tensor, pipeline, layout, reshard_after_forward, reshard_ranks, wrap, prefetch, offload or activation_checkpointing"},
    {HEAD "step: 3\n", "c.yaml:5: found unknown field 'step' (did you mean 'steps'?), expected one of name, title, matrix, exclude, layer, seed, model, sharding, optimizer, clip, loss, divergent_init, ranks, rows_per_rank, global_rows, steps, micros, sync, mesh, precision, data, observe_local, save_ranks, save_layout, program, strategy, tensor, pipeline, layout, reshard_after_forward, reshard_ranks, wrap, prefetch, offload or activation_checkpointing"},
    {HEAD "steps: three\n", "c.yaml:5: steps: found 'three', expected a whole number from 1 to 100000"},
    {HEAD "steps: 0\n", "c.yaml:5: steps: found '0', expected a whole number from 1 to 100000"},
    {HEAD "steps: 100000\nmicros: 10000\n", "c.yaml:1: case 'a': found a program of more than 100000 verbs, expected fewer"},
    {HEAD "ranks: 100\n", "c.yaml:5: ranks: found '100', expected a whole number from 1 to 64"},
    {HEAD "ranks: [1, 2]\n", "c.yaml:5: ranks: found a list of 2, expected a whole number from 1 to 64"},
    {HEAD "sync: always\n", "c.yaml:5: sync: found 'always', expected one of all or last"},
    {HEAD "mesh: square\n", "c.yaml:5: mesh: found 'square', expected auto, all or [R, S]"},
    {HEAD "mesh: all\n", "c.yaml:5: found mesh all outside a matrix, expected auto or [R, S]"},
    {HEAD "strategy: hybrid\nranks: 4\nmesh: [2, 3]\n", "c.yaml:1: a.hybrid-2x3.n4: sharding.mesh: found mesh 2 x 3 for 4 ranks, expected a product of 4"},
    {HEAD "tensor: 2\nranks: 3\n", "c.yaml:1: a.full.n3.t2: sharding.tensor: found tensor 2 and pipeline 1 for 3 ranks, expected a product that divides 3"},
    {HEAD "pipeline: 2\nranks: 3\n", "c.yaml:1: a.full.n3.p2: sharding.pipeline: found tensor 1 and pipeline 2 for 3 ranks, expected a product that divides 3"},
    {HEAD "tensor: 65536\npipeline: 65536\n", "c.yaml:1: a.full.n2.t65536.p65536: sharding.tensor: found tensor 65536 and pipeline 65536 for 2 ranks, expected a product that divides 2"},
    {HEAD "tensor: two\n", "c.yaml:5: tensor: found 'two', expected a whole number from 1 to 65536"},
    {HEAD "pipeline: [1, 2]\n", "c.yaml:5: pipeline: found a list of 2, expected a whole number from 1 to 65536"},
    {HEAD "matrix: {tensor: [2], ranks: [1, 3]}\n", "c.yaml:1: found no combination left by matrix and exclude, expected at least one"},
    {HEAD "strategy: zero3\n", "c.yaml:5: strategy: found 'zero3', expected one of none, optimizer, grad, full or hybrid"},
    {HEAD "precision: fp8\n", "c.yaml:5: precision: found 'fp8', expected a mapping or one of f32, f64, bf16, bf16-reduce, bf16-pure or f16"},
    {HEAD "precision: {compute: fp8}\n", "c.yaml:5: precision.compute: found 'fp8', expected one of f32, f64, bf16 or f16"},
    {HEAD "optimizer: {kind: adam}\n", "c.yaml:5: optimizer.kind: found 'adam', expected one of sgd or adamw"},
    {HEAD "optimizer: {kind: sgd, eps: 1}\n", "c.yaml:5: found unknown field 'optimizer.eps', expected one of kind, lr, momentum, weight_decay or no_decay"},
    {HEAD "data: random\n", "c.yaml:5: a.full.n2: data.recipe: found 'random', expected one of exact, wide, gaussian, values, integers or given"},
    {HEAD "data: {recipe: values, values: [1]}\n", "c.yaml:5: a.full.n2: data.recipe: found values with model mlp, expected model witness"},
    {HEAD "rows_per_rank: 2\nglobal_rows: 4\n", "c.yaml:5: found rows_per_rank and global_rows, expected one of them"},
    {HEAD "global_rows: 1\n", "c.yaml:5: a.full.n2: global_rows: found 1 rows for 2 ranks, expected at least one row a rank"},
    {HEAD "clip: {norm: 3, limit: 1}\n", "c.yaml:5: clip.norm: found '3', expected one of 1, 2 or inf"},
    {HEAD "clip: {norm: 2}\n", "c.yaml:5: a.full.n2: clip.limit: found no limit, expected a number above 0"},
    {HEAD "id: x\n", "c.yaml:5: found unknown field 'id', expected one of name, title, matrix, exclude, layer, seed, model, sharding, optimizer, clip, loss, divergent_init, ranks, rows_per_rank, global_rows, steps, micros, sync, mesh, precision, data, observe_local, save_ranks, save_layout, program, strategy, tensor, pipeline, layout, reshard_after_forward, reshard_ranks, wrap, prefetch, offload or activation_checkpointing"},
    {HEAD "matrix: {}\n", "c.yaml:5: found no axis in matrix, expected {AXIS: [VALUE, ...], ...}"},
    {HEAD "matrix: [ranks]\n", "c.yaml:5: found no axis in matrix, expected {AXIS: [VALUE, ...], ...}"},
    {HEAD "matrix:\n  ranks: []\n", "c.yaml:6: found an empty list for axis 'ranks', expected at least one value"},
    {HEAD "matrix:\n  rank: [1, 2]\n", "c.yaml:6: found unknown field 'rank' (did you mean 'ranks'?), expected one of variant, layer, seed, model, sharding, optimizer, clip, loss, divergent_init, ranks, rows_per_rank, global_rows, steps, micros, sync, mesh, precision, data, observe_local, save_ranks, save_layout, program, strategy, tensor, pipeline, layout, reshard_after_forward, reshard_ranks, wrap, prefetch, offload or activation_checkpointing"},
    {HEAD "matrix:\n  ranks: [1, two]\n", "c.yaml:6: ranks: found 'two', expected a whole number from 1 to 64"},
    {HEAD "matrix:\n  sharding.wrap.polcy: [root]\n", "c.yaml:6: found unknown field 'sharding.wrap.polcy' (did you mean 'policy'?), expected one of policy, min_parameters or pattern"},
    {HEAD "matrix:\n  ranks: [1, 1]\n", "c.yaml:1: found id 'a.full.n1' a second time, expected each id once (first at c.yaml:1)"},
    {HEAD "matrix:\n  variant: [fast]\n", "c.yaml:6: found a variant without a name, expected {name: WORD, KEY: VALUE, ...}"},
    {HEAD "matrix:\n  variant: [{name: fast, speed: 2}]\n", "c.yaml:6: found unknown field 'speed' (did you mean 'seed'?), expected one of name, layer, seed, model, sharding, optimizer, clip, loss, divergent_init, ranks, rows_per_rank, global_rows, steps, micros, sync, mesh, precision, data, observe_local, save_ranks, save_layout, program, strategy, tensor, pipeline, layout, reshard_after_forward, reshard_ranks, wrap, prefetch, offload or activation_checkpointing"},
    {HEAD "matrix:\n  seed: [1,2,3,4,5,6,7,8,9,10,11]\n  optimizer.lr: [1,2,3,4,5,6,7,8,9,10,11]\n  steps: [1,2,3,4,5,6,7,8,9,10,11]\n"
          "  micros: [1,2,3,4,5,6,7,8,9,10,11]\n  ranks: [1, 2]\n", "c.yaml:6: found a matrix of more than 20000 combinations, expected fewer"},
    {HEAD "matrix: {ranks: [1, 2]}\nexclude: {ranks: 1}\n", "c.yaml:6: exclude: found no list, expected a list of mappings"},
    {HEAD "matrix: {ranks: [1, 2]}\nexclude: [ranks]\n", "c.yaml:6: exclude: found no mapping, expected {AXIS: VALUE, ...}"},
    {HEAD "matrix: {ranks: [1, 2]}\nexclude:\n  - {rank: 1}\n", "c.yaml:7: found unknown field 'rank' (did you mean 'ranks'?), expected one of variant, layer, seed, model, sharding, optimizer, clip, loss, divergent_init, ranks, rows_per_rank, global_rows, steps, micros, sync, mesh, precision, data, observe_local, save_ranks, save_layout, program, strategy, tensor, pipeline, layout, reshard_after_forward, reshard_ranks, wrap, prefetch, offload or activation_checkpointing"},
    {HEAD "matrix: {ranks: [1, 2]}\nexclude:\n  - {ranks: [1, 2]}\n", "c.yaml:1: found no combination left by matrix and exclude, expected at least one"},
    {HEAD "program: []\n", "c.yaml:5: program: found a list of 0, expected a list of verbs"},
    {HEAD "program:\n  - init\n  - trian 0\n", "c.yaml:7: found verb 'trian', expected one of init, train, steps, micro, forward, backward, eval, clip, step, zero_grad, freeze, unfreeze, save, load, observe or stop"},
    {HEAD "program:\n  - train 1\n", "c.yaml:6: found 'train 1', expected train and a step below 1"},
    {HEAD "program:\n  - micro 0\n", "c.yaml:6: program.0.micro: found nothing, expected this field"},
    {HEAD "program:\n  - micro 0 0 true 1\n", "c.yaml:6: found 'micro 0 0 true 1' with a word too many: '1', expected the verb and its fields"},
    {HEAD "program:\n  - micro 0 1\n", "c.yaml:6: a.full.n2: program.0.micro: found microbatch 1, expected less than the data's 1"},
    {HEAD "program:\n  - {verb: step, stp: 0}\n", "c.yaml:6: found unknown field 'program.0.stp' (did you mean 'step'?), expected one of verb or step"},
    {HEAD "program:\n  - observe s0 params\n", "c.yaml:6: program.0.what: found 'params', expected one of param, grad, clipped, exp_avg, exp_avg_sq or momentum"},
    {HEAD "program:\n  - stop\n  - step 0\n", "c.yaml:7: a.full.n2: program.1.verb: found step after stop, expected nothing"},
    {HEAD "program:\n  - [1]\n", "c.yaml:6: program.0: found a list of 1, expected a mapping"},
    {HEAD "program: [load, train 0]\n", "c.yaml:1: case 'a': found load before any save, expected save_ranks, the number of ranks of who saves"},
    {HEAD "save_layout: other\n", "c.yaml:1: case 'a': found save_layout without save_ranks, expected both"},
    {HEAD "save_layout: flat\n", "c.yaml:5: save_layout: found 'flat', expected one of same or other"},
    {HEAD "save_ranks: 0\n", "c.yaml:5: save_ranks: found '0', expected a whole number from 1 to 64"},
    {HEAD "save_ranks: 4\n", "c.yaml:5: case 'a': found save_ranks, expected a program that begins with load, after observations at most, and does not save"},
    {HEAD "steps: 2\nsave_ranks: 4\nprogram: [train 0, load, train 1]\n", "c.yaml:6: case 'a': found save_ranks, expected a program that begins with load, after observations at most, and does not save"},
    {HEAD "steps: 2\nsave_ranks: 4\nprogram: [init, load, train 1, save]\n", "c.yaml:6: case 'a': found save_ranks, expected a program that begins with load, after observations at most, and does not save"},
    {HEAD "save_ranks: 4\nglobal_rows: 4\nprogram: [init, load, train 0]\n", "c.yaml:5: case 'a': found save_ranks, expected a first step after load of 1 or more: the steps before it are what is saved"},
    {HEAD "steps: 2\nsave_ranks: 4\nprogram: [init, load, train 1]\n", "c.yaml:6: case 'a': found save_ranks, expected global_rows and a loss that do not depend on the ranks"},
    {HEAD "steps: 2\nsave_ranks: 4\nglobal_rows: 4\nsave_layout: other\nprogram: [init, load, train 1]\n", "c.yaml:6: case 'a': found save_layout other, expected a layout that has another: per_parameter or flat"},
    {HEAD "steps: 2\nsave_ranks: 4\nglobal_rows: 3\nprogram: [init, load, train 1]\n", "c.yaml:7: save.a.full.n4: global_rows: found 3 rows for 4 ranks, expected at least one row a rank"},
    {HEAD "steps: 2\nsave_ranks: 4\nglobal_rows: 4\nprogram: [init, load, observe s0 param, train 1]\n", "c.yaml:8: save.a.full.n4: program.7.label: found 's0' a second time, expected each label once"},
    {"cases:\n  - {name: a, title: t, layer: exact, model: {kind: mlp, sizes: [4, 4]}}\n"
     "  - {name: a, title: t, layer: exact, model: {kind: mlp, sizes: [4, 4]}}\n", "c.yaml:3: found id 'a.full.n2' a second time, expected each id once (first at c.yaml:2)"},
};

static void case_files_are_refused(void **state)
{
    (void)state;
    wrong = 0;
    for (size_t i = 0; i < sizeof bad_cases / sizeof *bad_cases; i++) {
        char *path = write_file("c.yaml", bad_cases[i].text);
        const struct selection s = {.suite = DATA, .case_file = path};
        struct error error = {""};
        struct plan plan;
        bool fine = plan_make(&s, &full, &plan, &error);
        if (fine)
            plan_free(&plan);
        expect(bad_cases[i].text, fine, &error, bad_cases[i].message);
        free(path);
    }
    assert_int_equal(wrong, 0);
}

static const struct { const char *text, *message; } bad_manifests[] = {
    {"title: t\n", "m.yaml:1: command: found nothing, expected this field"},
    {"command: [a]\n", "m.yaml:1: title: found nothing, expected this field"},
    {"title: t\ncommand: a\n", "m.yaml:2: command: found 'a', expected a list"},
    {"title: t\ncommand: []\n", "m.yaml:2: command: found an empty list, expected a program and its arguments"},
    {"title: t\ncommand: [a]\nstrategy: [full]\n", "m.yaml:3: found unknown field 'strategy' (did you mean 'strategies'?), expected one of name, title, command, installed, remedy, note, subject, versions, launchers, environment, ranks, tensor, pipeline, strategies, layouts, models, compute, reduce, cannot, options or variants"},
    {"title: t\ncommand: [a]\nstrategies: [full, zero3]\n", "m.yaml:3: strategies: found 'zero3', expected one of none, optimizer, grad, full or hybrid"},
    {"title: t\ncommand: [a]\nlayouts: [any]\n", "m.yaml:3: layouts: found 'any', expected one of per_parameter or flat"},
    {"title: t\ncommand: [a]\nlaunchers: [slurm]\n", "m.yaml:3: launchers: found 'slurm', expected one of fork, local, mpirun or srun"},
    {"title: t\ncommand: [a]\ncompute: bf16\n", "m.yaml:3: compute: found 'bf16', expected a list of words"},
    {"title: t\ncommand: [a]\ncannot: [ofload]\n", "m.yaml:3: cannot: found 'ofload', expected one of offload, freeze, no_sync, forward_backward, save, load, activation_checkpointing, divergent_init, clip_l1, clip_linf, loss_scale, prefetch, no_reshard, wrap_size, wrap_pattern, reuse, unused, momentum, tied, parameter_bf16 or reshard_ranks"},
    {"title: t\ncommand: [a]\nsubject: maybe\n", "m.yaml:3: subject: found 'maybe', expected true or false"},
    {"title: t\ncommand: [a]\nranks: 4\n", "m.yaml:3: ranks: found '4', expected a list of two whole numbers"},
    {"title: t\ncommand: [a]\nranks: [4, 2]\n", "m.yaml:3: ranks: found 4 to 2, expected the lower number first"},
    {"title: t\ncommand: [a]\ntensor: 2\n", "m.yaml:3: tensor: found '2', expected a list of two whole numbers"},
    {"title: t\ncommand: [a]\ntensor: [0, 2]\n", "m.yaml:3: tensor: found '0', expected a whole number from 1 to 65536"},
    {"title: t\ncommand: [a]\npipeline: [4, 2]\n", "m.yaml:3: pipeline: found 4 to 2, expected the lower number first"},
    {"title: t\ncommand: [a]\nranks: [0, 2]\n", "m.yaml:3: ranks: found '0', expected a whole number from 1 to 65536"},
    {"title: t\ncommand: [\"${home}/a\"]\n", "m.yaml:2: command: found '${home}/a', expected ${folder}, ${suite}, ${build}, ${python} or ${python:ENV}"},
    {"title: t\ncommand: [\"${build\"]\n", "m.yaml:2: command: found '${build', expected ${folder}, ${suite}, ${build}, ${python} or ${python:ENV}"},
    {"title: t\ncommand: [a]\nenvironment: [PATH]\n", "m.yaml:3: environment: found 'PATH', expected NAME=VALUE"},
    {"title: t\ncommand: [a]\nenvironment: {PATH: [a]}\n", "m.yaml:3: environment: found a list of 1, expected a text"},
    {"title: t\ncommand: [a]\noptions: [a]\n", "m.yaml:3: options: found a list of 1, expected a mapping of texts"},
    {"title: t\ncommand: [\"${python:}\"]\n", "m.yaml:2: command: found '${python:}', expected ${folder}, ${suite}, ${build}, ${python} or ${python:ENV}"},
    {"title: t\ncommand: [a]\nvariants: [a]\n", "m.yaml:3: variants: found a list of 1, expected a mapping of names to what each changes"},
    {"title: t\ncommand: [a]\nvariants:\n  B:\n    ranks: [1, 2]\n", "m.yaml:4: variants: found the name 'B', expected letters a-z, digits and -"},
    {"title: t\ncommand: [a]\nvariants: {b: {ranks: 2}}\n", "m.yaml:3: ranks: found '2', expected a list of two whole numbers"},
    {"title: t\ncommand: [a]\nvariants: {b: {name: c}}\n", "m.yaml:3: variants: found 'name' in a variant, expected keys that it may change"},
};

static void manifests_are_refused(void **state)
{
    (void)state;
    wrong = 0;
    for (size_t i = 0; i < sizeof bad_manifests / sizeof *bad_manifests; i++) {
        char *path = write_file("m.yaml", bad_manifests[i].text);
        struct error error = {""};
        struct implementation impl;
        bool fine = implementation_read(path, DATA, &impl, &error);
        if (fine)
            implementation_free(&impl);
        expect(bad_manifests[i].text, fine, &error, bad_manifests[i].message);
        free(path);
    }
    assert_int_equal(wrong, 0);
}

static const struct { const char *text, *message; } bad_profiles[] = {
    {"[]\n", "profiles/p.yaml:1: found no mapping, expected {title, probes, cases}"},
    {"title: t\n", "profiles/p.yaml:1: cases: found no entry, expected a list of {pattern: GLOB, ...}"},
    {"cases: [{pattern: a}]\n", "profiles/p.yaml:1: title: found no text, expected one line"},
    {"title: t\ncases: [a]\n", "profiles/p.yaml:2: cases: found no pattern, expected {pattern: GLOB, AXIS: VALUES, ...}"},
    {"title: t\ncases: [{ranks: 1}]\n", "profiles/p.yaml:2: cases: found no pattern, expected {pattern: GLOB, AXIS: VALUES, ...}"},
    {"title: t\ncases: [{pattern: a, rank: 1}]\n", "profiles/p.yaml:2: found unknown field 'rank' (did you mean 'ranks'?), expected one of variant, layer, seed, model, sharding, optimizer, clip, loss, divergent_init, ranks, rows_per_rank, global_rows, steps, micros, sync, mesh, precision, data, observe_local, save_ranks, save_layout, program, strategy, tensor, pipeline, layout, reshard_after_forward, reshard_ranks, wrap, prefetch, offload or activation_checkpointing"},
    {"title: t\ncases: [{pattern: a}]\ncase: 1\n", "profiles/p.yaml:3: found unknown field 'case' (did you mean 'cases'?), expected one of title, probes or cases"},
    {"title: t\ncases:\n  - {pattern: a}\n  - {pattern: b*}\n", "profiles/p.yaml:4: found pattern 'b*', which selects no case, expected one that does"},
    {"title: t\ncases:\n  - {pattern: a, ranks: 3}\n", "profiles/p.yaml:3: found pattern 'a', which selects no case at these values, expected one that does"},
};

static void profiles_are_refused(void **state)
{
    (void)state;
    char *cases = memory_format("%s/cases", folder), *profiles = memory_format("%s/profiles", folder);
    mkdir(cases, 0700);
    mkdir(profiles, 0700);
    free(write_file("cases/c.yaml", HEAD));
    wrong = 0;
    for (size_t i = 0; i < sizeof bad_profiles / sizeof *bad_profiles; i++) {
        free(write_file("profiles/p.yaml", bad_profiles[i].text));
        const struct selection s = {.suite = folder, .profile = "p"};
        struct error error = {""};
        struct plan plan;
        bool fine = plan_make(&s, &full, &plan, &error);
        if (fine)
            plan_free(&plan);
        expect(bad_profiles[i].text, fine, &error, bad_profiles[i].message);
    }
    free(cases);
    free(profiles);
    assert_int_equal(wrong, 0);
}

static const struct { const char *profile, *pattern, *suite, *case_file, *message; } bad_selections[] = {
    {"tiny", NULL, DATA, NULL, "found no profile 'tiny' in harness/cases/tests/data/profiles, expected small"},
    {NULL, "nothing-like-it", DATA, NULL, "found no case that matches 'nothing-like-it' among 53 of harness/cases/tests/data/cases, expected at least one"},
    {"small", "n64", DATA, NULL, "found no case of profile 'small' that matches 'n64' among 53 of harness/cases/tests/data/cases, expected at least one"},
    {NULL, NULL, "/nowhere", NULL, "/nowhere/cases: No such file or directory, expected a folder"},
    {NULL, NULL, DATA, "/nowhere/c.yaml", "/nowhere/c.yaml: No such file or directory, expected a readable file"},
};

static void selections_are_refused(void **state)
{
    (void)state;
    wrong = 0;
    for (size_t i = 0; i < sizeof bad_selections / sizeof *bad_selections; i++) {
        const struct selection s = {.suite = bad_selections[i].suite, .profile = bad_selections[i].profile,
                                    .pattern = bad_selections[i].pattern, .case_file = bad_selections[i].case_file};
        struct error error = {""};
        struct plan plan;
        bool fine = plan_make(&s, &full, &plan, &error);
        if (fine)
            plan_free(&plan);
        expect("selection", fine, &error, bad_selections[i].message);
    }
    assert_int_equal(wrong, 0);
}

static void unknown_implementations_are_named(void **state)
{
    (void)state;
    struct error error = {""}, missing = {""};
    struct implementation impl;
    assert_false(implementation_read("ful", DATA, &impl, &error));
    assert_string_equal(error.text, "found no implementation 'ful' in " DATA "/implementations, expected full or the path of a manifest; did you mean 'full'?");
    assert_false(implementation_read("/nowhere/m.yaml", DATA, &impl, &missing));
    assert_string_equal(missing.text, "/nowhere/m.yaml: No such file or directory, expected a readable file");
}

static void unknown_variants_are_named(void **state)
{
    (void)state;
    char *path = write_file("v.yaml", "title: t\ncommand: [a]\nvariants:\n  flat: {layouts: [flat]}\n  state: {}\n");
    char *bare = write_file("b.yaml", "title: t\ncommand: [a]\n"), *near = memory_format("%s:flag", path), *none = memory_format("%s:flat", bare);
    struct error error = {""}, no_variants = {""};
    struct implementation impl;
    assert_false(implementation_read(near, DATA, &impl, &error));
    assert_non_null(strstr(error.text, "v.yaml:4: found no variant 'flag', expected flat or state; did you mean 'flat'?"));
    assert_false(implementation_read(none, DATA, &impl, &no_variants));
    assert_non_null(strstr(no_variants.text, "b.yaml:1: found no variant 'flat', expected none: the manifest has no variants"));
    free(path), free(bare), free(near), free(none);
}

static int start(void **state)
{
    (void)state;
    struct error error = {""};
    return mkdtemp(folder) && implementation_read("full", DATA, &full, &error) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    char *command = memory_format("rm -rf '%s'", folder);
    int status = system(command);
    free(command);
    implementation_free(&full);
    return status;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_files_are_refused), cmocka_unit_test(manifests_are_refused), cmocka_unit_test(profiles_are_refused),
        cmocka_unit_test(selections_are_refused), cmocka_unit_test(unknown_implementations_are_named),
        cmocka_unit_test(unknown_variants_are_named),
    };
    return cmocka_run_group_tests(tests, start, end);
}
