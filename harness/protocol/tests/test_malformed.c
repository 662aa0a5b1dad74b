// Malformed case.json, safetensors, answers and documents: each with its exact message.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/answer.h"
#include "harness/protocol/case_fields.h"
#include "harness/protocol/document.h"
#include "harness/protocol/memory.h"
#include "harness/protocol/tensors.h"
#include "harness/protocol/tests/sample.h"

static int wrong;

// All rows of a table are tried before the test fails, so that one run shows every change.
static void expect(const char *what, bool fine, const struct error *error, const char *message)
{
    if (!fine && strcmp(error->text, message) == 0)
        return;
    print_error("%s\n  said     %s\n  expected %s\n", what, fine ? "(no complaint)" : error->text, message);
    wrong++;
}

// ---- case.json: text to find in the sample, what takes its place, the message ----
struct spoilt { const char *find, *instead, *message; };
static const struct spoilt spoilt_cases[] = {
    {"\"protocol\": 1", "\"protocol\": 2", "1: protocol: found '2', expected 1"},
    {"\"protocol\": 1, ", "", "1: protocol: found nothing, expected this field"},
    {"\"layer\"", "\"layr\"", "2: found unknown field 'layr' (did you mean 'layer'?), expected one of protocol, id, family, layer, world_size, global_rows, seed, model, parameters, sharding, precision, optimizer, clip, loss, divergent_init, data, program, checkpoint or options"},
    {"\"exact\"", "\"exacter\"", "2: layer: found 'exacter', expected one of exact, witness, calibrated or measured"},
    {"\"world_size\": 2", "\"world_size\": \"2\"", "2: world_size: found '2', expected a whole number from 1 to 65536"},
    {"\"world_size\": 2", "\"world_size\": 0", "2: world_size: found '0', expected a whole number from 1 to 65536"},
    {"\"world_size\": 2", "\"world_size\": 3", "7: sharding.mesh: found mesh 1 x 2 for 3 ranks, expected a product of 3"},
    {"\"global_rows\": 4", "\"global_rows\": 1", "2: global_rows: found 1 rows for 2 ranks, expected at least one row a rank"},
    {"\"global_rows\": 4", "\"global_rows\": 4.5", "2: global_rows: found '4.5', expected a whole number from 1 to 1048576"},
    {"\"seed\": 7", "\"seed\": -1", "2: seed: found '-1', expected a whole number of at least 0"},
    {"\"seed\": 7", "\"seed\": 9223372036854775808", "2: seed: found '9223372036854775808', expected a whole number of at least 0"},
    {"mlp.full.n2", "../x", "1: id: found '../x', expected up to 200 letters, digits, '.', '_', '-', no '.' in front"},
    {"\"kind\": \"mlp\", ", "", "3: model.kind: found nothing, expected this field"},
    {"[6, 8, 4]", "[6]", "3: model.sizes: found 1 sizes, expected at least 2"},
    {"[6, 8, 4]", "[6, 0, 4]", "3: model.sizes.1: found '0', expected a whole number from 1 to 1048576"},
    {"[0, 1]", "[0, 2]", "3: model.calls: found layer 2, expected one of 0 to 1"},
    {"[0, 1]", "[1, 0]", "3: model.calls: found layer 1 with 8 inputs after one with 6 outputs, expected equal sizes"},
    {"[0, 1]", "[0]", "3: model.calls: found 8 outputs of the last call, expected 4, the last of sizes"},
    {"\"bias\": false", "\"bias\": 0", "3: model.bias: found '0', expected true or false"},
    {"\"unused\": 0", "\"unsed\": 0", "3: found unknown field 'model.unsed' (did you mean 'unused'?), expected one of kind, sizes, bias, calls or unused"},
    {"\"shape\": [8, 6]", "\"shape\": []", "5: parameters.0.shape: found a list of 0, expected a list of 1 to 4 sizes"},
    {"\"shape\": [8, 6]", "\"shape\": [1099511627776, 1099511627776]", "5: parameters.0.shape: found '1099511627776', expected a tensor of at most 2^40 elements"},
    {"\"tied_to\": null", "\"tied_to\": \"layers.1.weight\"", "5: parameters.0.tied_to: found 'layers.1.weight', expected null or the name of an earlier parameter"},
    {"\"layers.1.weight\"", "\"layers.0.weight\"", "4: parameters: found 'layers.0.weight' twice, expected each name once"},
    {"\"unit\": \"layers.1\", \"tied_to\": null", "\"unit\": \"layers.1\", \"tied_to\": \"layers.0.weight\"", "6: parameters.1.shape: found another shape than that of 'layers.0.weight', expected the same for tied parameters"},
    {"\"mesh\": [1, 2]", "\"mesh\": [2, 1]", "7: sharding.mesh: found mesh 2 x 1 with strategy full, expected 1 x 2"},
    {"\"mesh\": [1, 2]", "\"mesh\": [1, 2, 1]", "7: sharding.mesh: found a list of 3, expected a list of two whole numbers"},
    {"\"tensor\": 1", "\"tensor\": 0", "7: sharding.tensor: found '0', expected a whole number from 1 to 65536"},
    {"\"tensor\": 1", "\"tensor\": 1.5", "7: sharding.tensor: found '1.5', expected a whole number from 1 to 65536"},
    {"\"tensor\": 1, ", "", "7: sharding.tensor: found nothing, expected this field"},
    {"\"tensor\": 1", "\"tensor\": 3", "7: sharding.tensor: found tensor 3 and pipeline 1 for 2 ranks, expected a product that divides 2"},
    {"\"tensor\": 1", "\"tensor\": 65536", "7: sharding.tensor: found tensor 65536 and pipeline 1 for 2 ranks, expected a product that divides 2"},
    {"\"tensor\": 1", "\"tensor\": 2", "7: sharding.mesh: found mesh 1 x 2 for 1 ranks, expected a product of 1"},
    {"\"pipeline\": 1", "\"pipeline\": \"2\"", "7: sharding.pipeline: found '2', expected a whole number from 1 to 65536"},
    {"\"pipeline\": 1", "\"pipeline\": 65537", "7: sharding.pipeline: found '65537', expected a whole number from 1 to 65536"},
    {"\"pipeline\": 1", "\"pipeline\": 4", "7: sharding.pipeline: found tensor 1 and pipeline 4 for 2 ranks, expected a product that divides 2"},
    {"\"tensor\": 1, \"pipeline\": 1", "\"tensor\": 65536, \"pipeline\": 65536", "7: sharding.tensor: found tensor 65536 and pipeline 65536 for 2 ranks, expected a product that divides 2"},
    {"\"reshard_ranks\": 0", "\"reshard_ranks\": -1", "7: sharding.reshard_ranks: found '-1', expected a whole number from 0 to 1048576"},
    {"\"reshard_ranks\": 0", "\"reshard_ranks\": 2", "7: sharding.reshard_ranks: found groups of 2 of 2 shards, expected 0, or a divisor above 1 and below 2"},
    {"\"reshard_after_forward\": true, \"reshard_ranks\": 0", "\"reshard_after_forward\": false, \"reshard_ranks\": 2",
     "7: sharding.reshard_ranks: found 2 with reshard_after_forward false, expected 0, or reshard_after_forward true"},
    {"\"strategy\": \"full\", \"mesh\": [1, 2], \"tensor\": 1, \"pipeline\": 1, \"layout\": \"flat\", \"reshard_after_forward\": true, \"reshard_ranks\": 0",
     "\"strategy\": \"grad\", \"mesh\": [1, 2], \"tensor\": 1, \"pipeline\": 1, \"layout\": \"flat\", \"reshard_after_forward\": true, \"reshard_ranks\": 2",
     "7: sharding.reshard_ranks: found 2 with strategy grad, expected 0, or strategy full or hybrid"},
    {"\"policy\": \"block\"", "\"policy\": \"size\"", "8: sharding.wrap.min_parameters: found 0 with policy size, expected at least 1"},
    {"\"policy\": \"block\"", "\"policy\": \"blocks\"", "8: sharding.wrap.policy: found 'blocks', expected one of block, root, size or pattern"},
    {"\"wrap\": {", "\"wrap\": {\"depth\": 1, ", "8: found unknown field 'sharding.wrap.depth', expected one of policy, min_parameters or pattern"},
    {"\"prefetch\": {\"forward\": 0,", "\"prefetch\": {", "8: sharding.prefetch.forward: found nothing, expected this field"},
    {"\"compute\": \"f32\"", "\"compute\": \"i32\"", "10: precision.compute: found 'i32', expected one of f32, f64, bf16 or f16"},
    {"\"backoff\": 0.5", "\"backoff\": 0", "11: precision.loss_scale.backoff: found '0', expected a number above 0, at most 1"},
    {"\"lr\": 0.5", "\"lr\": \"inf\"", "12: optimizer.lr: found 'inf', expected a finite number"},
    {"\"lr\": 0.5", "\"lr\": -1", "12: optimizer.lr: found '-1', expected a number of at least 0"},
    {"\"momentum\": 0", "\"beta1\": 0", "12: found unknown field 'optimizer.beta1', expected one of kind, lr, momentum, weight_decay or no_decay"},
    {"\"clip\": null", "\"clip\": {\"norm\": 2}", "13: clip.limit: found nothing, expected this field"},
    {"\"clip\": null", "\"clip\": {\"norm\": \"off\", \"limit\": 1}", "13: clip.norm: found 'off', expected one of 1, 2 or inf"},
    {"\"loss\": \"sum\"", "\"loss\": \"mean\"", "13: loss: found 'mean', expected one of sum, mean_of_tokens or mean_of_ranks"},
    {"\"recipe\": \"exact\"", "\"recipe\": \"exactly\"", "14: data.recipe: found 'exactly', expected one of exact, wide, gaussian, values, integers or given"},
    {"\"recipe\": \"exact\"", "\"recipe\": \"values\"", "14: data.recipe: found values with model mlp, expected model witness"},
    {"\"density\": 0.6", "\"density\": 1.5", "14: data.density: found '1.5', expected a number above 0, at most 1"},
    {"\"what\": [\"param\"]", "\"what\": [\"params\"]", "17: program.0.what: found 'params', expected one of param, grad, clipped, exp_avg, exp_avg_sq or momentum"},
    {"\"what\": [\"param\"]", "\"what\": []", "17: program.0.what: found a list of 0, expected a list of names"},
    {"\"what\": [\"param\"]", "\"what\": [\"momentum\"]", "17: program.0.what: found momentum, expected it with sgd and a momentum above 0 only"},
    {"\"what\": [\"param\"]", "\"what\": [\"exp_avg\"]", "17: program.0.what: found exp_avg or exp_avg_sq with sgd, expected them with adamw only"},
    {"\"what\": [\"param\"]", "\"what\": [\"clipped\"]", "17: program.0.what: found clipped in a case without clip, expected a limit there"},
    {"\"label\": \"s0\"", "\"label\": \"init\"", "20: program.3.label: found 'init' a second time, expected each label once"},
    {"\"label\": \"s0\"", "\"label\": \"a/b\"", "20: program.3.label: found 'a/b', expected letters, digits, '.', '_', '-', no '.' in front"},
    {"{\"verb\": \"step\", \"step\": 0}", "{\"verb\": \"step\", \"step\": 2}", "19: program.2.step: found step 2, expected less than the data's 2 steps"},
    {"{\"verb\": \"step\", \"step\": 0}", "{\"verb\": \"clip\", \"step\": 0}", "19: program.2.verb: found clip in a case without clip, expected a norm and a limit there"},
    {"{\"verb\": \"step\", \"step\": 0}", "{\"verb\": \"forward\", \"step\": 0, \"micro\": 1, \"slot\": 0}", "19: program.2.micro: found microbatch 1, expected less than the data's 1"},
    {"{\"verb\": \"step\", \"step\": 0}", "{\"verb\": \"backward\", \"slot\": 0, \"sync\": true}", "19: program.2.slot: found slot 0 empty, expected a forward into it first"},
    {"{\"verb\": \"step\", \"step\": 0}", "{\"verb\": \"freeze\", \"pattern\": \"blocks.*\"}", "19: program.2.pattern: found 'blocks.*', expected a glob that matches a parameter"},
    {"{\"verb\": \"step\", \"step\": 0}", "{\"verb\": \"stop\"}", "20: program.3.verb: found observe after stop, expected nothing"},
    {"{\"verb\": \"step\", \"step\": 0}", "{\"verb\": \"step\"}", "19: program.2.step: found nothing, expected this field"},
    {"{\"verb\": \"step\", \"step\": 0}", "{\"verb\": \"step\", \"step\": 0, \"micro\": 0}", "19: found unknown field 'program.2.micro', expected one of verb or step"},
    {"{\"verb\": \"step\", \"step\": 0}", "\"step\"", "19: program.2: found 'step', expected a mapping"},
    {"/tmp/c", "c", "22: checkpoint: found 'c', expected an absolute path"},
    {"{\"fault\": \"none\"}", "{\"fault\": [1]}", "22: options.fault: found a list of 1, expected a text"},
    {"\"options\": {\"fault\": \"none\"}}", "", "23: found broken YAML or JSON: did not find expected node content while parsing a flow node"},
};

static char *spoil(const struct spoilt *s)
{
    const char *at = strstr(sample_case, s->find);
    if (!at)
        fail_msg("the sample has no '%s'", s->find);
    return memory_format("%.*s%s%s", (int)(at - sample_case), sample_case, s->instead, at + strlen(s->find));
}

static bool read_case_text(const char *text, struct error *error)
{
    char path[] = "/tmp/fsdpmark-case-XXXXXX";
    int file = mkstemp(path);
    FILE *out = fdopen(file, "w");
    fputs(text, out);
    fclose(out);
    struct fsdp_case c;
    bool fine = case_read(path, &c, error);
    if (fine)
        case_free(&c);
    remove(path);
    if (strncmp(error->text, path, strlen(path)) == 0)
        memmove(error->text, error->text + strlen(path) + 1, strlen(error->text + strlen(path)));
    return fine;
}

static void sample_is_sound(void **state)
{
    (void)state;
    struct error error = {""};
    if (!read_case_text(sample_case, &error))
        fail_msg("%s", error.text);
}

static void cases_are_refused(void **state)
{
    (void)state;
    wrong = 0;
    for (size_t i = 0; i < sizeof spoilt_cases / sizeof *spoilt_cases; i++) {
        struct error error = {""};
        char *text = spoil(&spoilt_cases[i]);
        bool fine = read_case_text(text, &error);
        expect(spoilt_cases[i].instead, fine, &error, spoilt_cases[i].message);
        free(text);
    }
    assert_int_equal(wrong, 0);
}

// ---- safetensors: header, bytes after it, length claimed (-1: the header's), the message ----
static const struct { const char *header; int bytes; long claimed; const char *message; } spoilt_tensors[] = {
    {"{}", 0, 3, "t: found a header length of 3, expected at most 2"},
    {"{}", 0, 1L << 40, "t: found a header length of 1099511627776, expected at most 2"},
    {"{", 0, -1, "t: found a header that is no JSON: string or '}' expected near end of file"},
    {"[]", 0, -1, "t: found no object as header, expected tensors by name"},
    {"{\"a\":1}", 0, -1, "t: tensor 'a': found no object, expected dtype, shape and data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, -1, "t: found a header that is no JSON: duplicate object key near '\"a\"'"},
    {"{\"a\":{\"dtype\":\"F8\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, -1, "t: tensor 'a': found dtype 'F8', expected one of F32, F64, BF16, F16, I32 or I64"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, -1, "t: tensor 'a': found no shape, expected a list of at most 8 sizes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, -1, "t: tensor 'a': found a size that is no whole number of at least 0 in shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, -1, "t: tensor 'a': found a size that is no whole number of at least 0 in shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, -1, "t: tensor 'a': found a shape of more elements than a file can hold"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, -1, "t: tensor 'a': found no shape, expected a list of at most 8 sizes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, -1, "t: tensor 'a': found no data_offsets, expected two whole numbers"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, -1, "t: tensor 'a': found data_offsets 4 to 0, expected a range within 4 bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, -1, "t: tensor 'a': found data_offsets 0 to 8, expected a range within 4 bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, -1, "t: tensor 'a': found 4 bytes, expected 8 for its shape and dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8, -1, "t: tensor 'b': found bytes from 0, expected them from 4 (overlap)"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, -1, "t: tensor 'a': found bytes from 4, expected them from 0 (gap)"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 6, -1, "t: found 2 bytes after the last tensor, expected none"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"stride\":[1]}}", 4, -1, "t: tensor 'a': found unknown field 'stride', expected dtype, shape and data_offsets"},
    {"{\"__metadata__\":{\"a\":1}}", 0, -1, "t: found no object of texts as __metadata__, expected one"},
};

static void tensors_are_refused(void **state)
{
    (void)state;
    wrong = 0;
    for (size_t i = 0; i < sizeof spoilt_tensors / sizeof *spoilt_tensors; i++) {
        struct error error = {""};
        struct tensors set;
        size_t length = strlen(spoilt_tensors[i].header), size = 8 + length + (size_t)spoilt_tensors[i].bytes;
        unsigned char *file = memory_zeros(size, 1);
        uint64_t prefix = htole64(spoilt_tensors[i].claimed < 0 ? length : (uint64_t)spoilt_tensors[i].claimed);
        memcpy(file, &prefix, 8);
        memcpy(file + 8, spoilt_tensors[i].header, length);
        bool fine = tensors_parse(file, size, "t", &set, &error);
        if (fine)
            tensors_free(&set);
        expect(spoilt_tensors[i].header, fine, &error, spoilt_tensors[i].message);
        free(file);
    }
    assert_int_equal(wrong, 0);
}

static void short_files_are_refused(void **state)
{
    (void)state;
    struct error error = {""}, missing = {""};
    struct tensors set;
    assert_false(tensors_parse("abc", 3, "t", &set, &error));
    assert_string_equal(error.text, "t: found 3 bytes, expected at least 8 (the header's length)");
    assert_false(tensors_read("/nowhere/t", &set, &missing));
    assert_string_equal(missing.text, "/nowhere/t: No such file or directory, expected a safetensors file");
}

// ---- answers: lines, the message ----
#define HELLO "{\"event\":\"hello\",\"case\":\"c\",\"rank\":1,\"world_size\":2,\"implementation\":\"i\",\"version\":\"1\",\"configured\":{}}\n"
static const struct { const char *lines, *message; } spoilt_answers[] = {
    {"nonsense\n", "r:1: found a line that is no JSON object: '[' or '{' expected near 'nonsense'"},
    {"[1]\n", "r:1: found JSON that is no object, expected one event"},
    {"{\"event\":\"done\"}\n", "r:1: found event done, expected hello first and only first"},
    {"{\"event\":\"hallo\"}\n", "r:1: found event 'hallo', expected one of hello, unsupported, shards, micro, eval, clip, step, observed, memory, traffic, error or done"},
    {"{\"evnt\":\"hello\"}\n", "r:1: found event '', expected one of hello, unsupported, shards, micro, eval, clip, step, observed, memory, traffic, error or done"},
    {"{\"event\":\"hello\",\"case\":\"c\"}\n", "r:1: event hello: found no field 'rank', expected a whole number of at least 0"},
    {"{\"event\":\"hello\",\"case\":\"other\",\"rank\":1,\"world_size\":2,\"implementation\":\"i\",\"version\":\"1\",\"configured\":{}}\n", "r:1: found an answer for case 'other', expected case 'c'"},
    {"{\"event\":\"hello\",\"case\":\"c\",\"rank\":0,\"world_size\":2,\"implementation\":\"i\",\"version\":\"1\",\"configured\":{}}\n", "r:1: found an answer of rank 0, expected rank 1"},
    {"{\"event\":\"hello\",\"case\":\"c\",\"rank\":1,\"world_size\":4,\"implementation\":\"i\",\"version\":\"1\",\"configured\":{}}\n", "r:1: found an answer of 4 ranks, expected 2"},
    {"{\"event\":\"hello\",\"case\":\"c\",\"rank\":1,\"world_size\":2,\"implementation\":\"i\",\"version\":\"1\",\"configured\":{\"n\":1}}\n", "r:1: event hello: configured: found {\"n\":1}, expected an object of texts"},
    {HELLO HELLO, "r:2: found event hello, expected hello first and only first"},
    {HELLO "{\"event\":\"micro\",\"step\":0,\"micro\":0,\"loss\":\"NaN\",\"tokens\":1,\"seconds\":0}\n", "r:2: event micro: loss: found \"NaN\", expected a number, \"nan\", \"inf\" or \"-inf\""},
    {HELLO "{\"event\":\"micro\",\"step\":-1,\"micro\":0,\"loss\":1,\"tokens\":1,\"seconds\":0}\n", "r:2: event micro: step: found -1, expected a whole number of at least 0"},
    {HELLO "{\"event\":\"micro\",\"step\":0,\"micro\":0,\"loss\":NaN,\"tokens\":1,\"seconds\":0}\n", "r:2: found a line that is no JSON object: invalid token near 'NaN'"},
    {HELLO "{\"event\":\"step\",\"step\":0,\"skipped\":0,\"loss_scale\":1,\"seconds\":0}\n", "r:2: event step: skipped: found 0, expected true or false"},
    {HELLO "{\"event\":\"shards\",\"of\":\"parameter\",\"parts\":{\"w\":[[0]]},\"padding\":0}\n", "r:2: event shards: parts: found {\"w\":[[0]]}, expected an object of lists of [offset, length]"},
    {HELLO "{\"event\":\"shards\",\"of\":\"parameter\",\"parts\":{\"w\":[[0,-1]]},\"padding\":0}\n", "r:2: event shards: parts: found {\"w\":[[0,-1]]}, expected an object of lists of [offset, length]"},
    {HELLO "{\"event\":\"shards\",\"of\":\"parameter\",\"parts\":{},\"padding\":0,\"paddding_max\":0}\n", "r:2: event shards: found unknown field 'paddding_max', expected event, of, parts, padding or padding_max"},
    {HELLO "{\"event\":\"memory\",\"phase\":\"step\",\"PARAM\":\"many\"}\n", "r:2: event memory: found unknown field 'PARAM', expected event or phase and numbers"},
    {HELLO "{\"event\":\"clip\",\"step\":0,\"norm\":1,\"norm\":2}\n", "r:2: found a line that is no JSON object: duplicate object key near '\"norm\"'"},
    {HELLO "{\"event\":\"done\"}\n\n", "r:3: found a line that is no JSON object: '[' or '{' expected near end of file"},
    {HELLO "{\"event\":\"done\"}\n{\"event\":\"clip\",\"step\":0,\"norm\":1}\n", "r:3: found a line after 'done', expected the end"},
    {HELLO "{\"event\":\"error\",\"message\":\"a\"}\n{\"event\":\"done\"}\n", "r:3: found a line after 'error', expected the end"},
};

static void answers_are_refused(void **state)
{
    (void)state;
    wrong = 0;
    for (size_t i = 0; i < sizeof spoilt_answers / sizeof *spoilt_answers; i++) {
        struct error error = {""};
        struct answer a;
        bool fine = answer_parse(spoilt_answers[i].lines, strlen(spoilt_answers[i].lines), "r", "c", 1, 2, &a, &error);
        if (fine)
            answer_free(&a);
        expect(spoilt_answers[i].lines, fine, &error, spoilt_answers[i].message);
    }
    assert_int_equal(wrong, 0);
}

// ---- documents ----
static const struct { const char *text, *message; } spoilt_documents[] = {
    {"", "d:1: found an empty document, expected a mapping"},
    {"a: 1\nb: 2\na: 3\n", "d:3: found 'a' a second time, expected each key once (first at line 1)"},
    {"a: [1, 2\n", "d:2: found broken YAML or JSON: did not find expected ',' or ']' while parsing a flow sequence"},
    {"a: b: c\n", "d:1: found broken YAML or JSON: mapping values are not allowed in this context"},
    {"a: *x\n", "d:1: found alias '*x', expected an anchor '&x' before it"},
    {"a: &x [1, *x]\n", "d:1: found alias '*x' inside its own anchor, expected one before it"},
    {"{[1]: 2}\n", "d:1: found a list or mapping as a key, expected a word"},
    {"a: 1\n---\nb: 2\n", "d:2: found a second document, expected one in the file"},
    {"a: \"x\\0y\"\n", "d:1: found a NUL character in a text, expected none"},
    {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "d:1: found more than 32 levels of nesting, expected fewer"},
    {"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
     "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n",
     "d:5: found a document of more than 1000000 nodes (aliases counted each time), expected a smaller one"},
};

static void documents_are_refused(void **state)
{
    (void)state;
    wrong = 0;
    for (size_t i = 0; i < sizeof spoilt_documents / sizeof *spoilt_documents; i++) {
        struct error error = {""};
        struct document d;
        const char *text = spoilt_documents[i].text;
        bool fine = document_parse(text, strlen(text), "d", &d, &error);
        if (fine)
            document_free(&d);
        expect(text, fine, &error, spoilt_documents[i].message);
    }
    assert_int_equal(wrong, 0);
}

static void messages_are_one_line(void **state)
{
    (void)state;
    struct error error = {""};
    assert_false(error_set(&error, "a\nb\tc\x1b[1m"));
    assert_string_equal(error.text, "a?b?c?[1m");
    assert_false(error_set(&error, "second"));
    assert_string_equal(error.text, "a?b?c?[1m");
    assert_false(error_set(NULL, "nobody listens"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_is_sound), cmocka_unit_test(cases_are_refused), cmocka_unit_test(tensors_are_refused),
        cmocka_unit_test(short_files_are_refused), cmocka_unit_test(answers_are_refused), cmocka_unit_test(documents_are_refused),
        cmocka_unit_test(messages_are_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
