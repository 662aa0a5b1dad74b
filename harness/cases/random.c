// Random correct configurations: what a user might ask for and nobody thought of.
//
// A false alarm is a check that fails a correct program, so the cases must be ones whose right
// answer is known: exact data (bitwise) or real-valued transformers (calibrated). They are written as
// an ordinary case file, so that one that fails is kept, edited and run again like any other. Every
// choice is a draw from one stream (splitmix64: Steele, Lea, Flood, OOPSLA 2014), in a fixed order.
#include "harness/cases/random.h"

#include <inttypes.h>
#include <stdbool.h>

struct stream { uint64_t state; };

static uint64_t draw(struct stream *s)
{
    uint64_t z = s->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// Uniform in [low, high].
static int between(struct stream *s, int low, int high)
{
    return low + (int)(draw(s) % (uint64_t)(high - low + 1));
}

static bool chance(struct stream *s, int percent)
{
    return between(s, 1, 100) <= percent;
}

static const char *pick(struct stream *s, int count, const char *const *words)
{
    return words[between(s, 0, count - 1)];
}
#define PICK(s, ...) pick(s, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[]){__VA_ARGS__})

static int divisor(struct stream *s, int n)
{
    int d;
    do
        d = between(s, 1, n);
    while (n % d != 0);
    return d;
}

// One draw a call: C leaves the order of arguments open, and the order of draws is the text.
static void number(FILE *out, const char *before, int value)
{
    fprintf(out, "%s%d", before, value);
}

static void word(FILE *out, const char *before, const char *value)
{
    fprintf(out, "%s%s", before, value);
}

static void write_sharding(struct stream *s, FILE *out, int ranks)
{
    const char *strategy = PICK(s, "none", "optimizer", "grad", "full", "full", "hybrid");
    fprintf(out, "    ranks: %d\n    strategy: %s\n", ranks, strategy);
    word(out, "    layout: ", PICK(s, "per_parameter", "flat"));
    int replicas = divisor(s, ranks);
    if (strategy[0] == 'h')
        fprintf(out, "\n    mesh: [%d, %d]", replicas, ranks / replicas);
    const char *policy = PICK(s, "block", "block", "root", "size", "pattern");
    fprintf(out, "\n    wrap: {policy: %s", policy);
    int smallest = between(s, 1, 400);
    if (policy[0] == 's')
        fprintf(out, ", min_parameters: %d", smallest);
    if (policy[0] == 'p')
        fprintf(out, ", pattern: \"*1\"");
    bool reshard = chance(s, 70);
    fprintf(out, "}\n    reshard_after_forward: %s\n", reshard ? "true" : "false");
    int forward = between(s, 0, 2), backward = between(s, 0, 2);
    fprintf(out, "    prefetch: {forward: %d, backward: %d}\n", forward, backward);
    // No draw of its own: what else a seed gives does not depend on it.
    int shards = strategy[0] == 'h' ? ranks / replicas : strategy[0] == 'f' ? ranks : 1, half = forward == backward && reshard ? shards / 2 : 0;
    fprintf(out, "    reshard_ranks: %d\n", half > 1 && shards % 2 == 0 ? half : 0);
    fprintf(out, "    activation_checkpointing: %s\n", chance(s, 30) ? "true" : "false");
}

// Exact data: small integers, SGD with a power-of-two rate; the right answer is bitwise.
static void write_mlp(struct stream *s, FILE *out, int ranks)
{
    bool bf16 = chance(s, 25);
    int layers = between(s, 1, ranks > 4 ? 2 : 3); // deep and on many ranks the search for exact data may find none
    fprintf(out, "    layer: exact\n    model: {kind: mlp, sizes: [");
    int width = between(s, 7, 12); // narrow inputs of small integers would repeat from row to row
    bool square = layers == 3 && chance(s, 50);
    for (int i = 0; i <= layers; i++) {
        fprintf(out, "%s%d", i ? ", " : "", width);
        if (!(square && i == 1))
            width = between(s, i + 1 < layers ? 4 : 3, 9); // of a narrow layer a rank may see only dead units, or residuals that cancel
    }
    // Sizes 1 and 2 are equal where square: layer 1 can then be called twice.
    word(out, "], bias: ", chance(s, 70) ? "true" : "false");
    word(out, "", square ? ", calls: [0, 1, 1, 2]" : "");
    fprintf(out, ", unused: %d}\n", chance(s, 20) ? 1 : 0);
    bool one_step = bf16 || square || layers == 3;
    number(out, "    steps: ", one_step ? 1 : between(s, 1, 2));
    number(out, "\n    micros: ", bf16 ? 1 : between(s, 1, 3));
    word(out, "\n    sync: ", PICK(s, "all", "last"));
    word(out, "\n    precision: ", bf16 ? "bf16" : "f32");
    word(out, "\n    optimizer: {kind: sgd, lr: ", PICK(s, "0.5", "0.25", "0.125"));
    number(out, "}\n    global_rows: ", ranks * between(s, 3, 4));
    fputc('\n', out);
}

// Rates so large that a step changes the next gradient by more than its noise: else a stale parameter could not be seen.
static void write_optimizer(struct stream *s, FILE *out, bool coarse)
{
    bool adamw = chance(s, 60) || coarse;
    word(out, "    optimizer: {kind: ", !adamw ? "sgd, lr: 0.5, momentum: " : coarse ? "adamw, lr: 0.03" : "adamw, lr: 0.003");
    word(out, "", adamw ? "" : PICK(s, "0", "0.9"));
    word(out, ", weight_decay: ", PICK(s, "0", "0.01", "0.1"));
    word(out, ", no_decay: ", PICK(s, "true", "false"));
    fputs("}\n", out);
}

static void write_switches(struct stream *s, FILE *out)
{
    word(out, ", norm: ", PICK(s, "layernorm", "rmsnorm"));
    word(out, ", position: ", PICK(s, "learned", "rope"));
    word(out, ", activation: ", PICK(s, "gelu", "swiglu"));
    word(out, ", bias: ", PICK(s, "true", "false"));
    word(out, ", tied: ", PICK(s, "true", "false"));
    fputs("}\n", out);
}

// Real-valued data: judged against the measured noise of plain data parallelism.
static void write_transformer(struct stream *s, FILE *out, int ranks)
{
    int kv = between(s, 1, 2), heads = kv * between(s, 1, 2), dim = heads * 2 * between(s, 2, 4);
    dim = dim < 8 ? 8 : dim; // a norm over two or four values is no well-posed problem
    number(out, "    layer: calibrated\n    model: {kind: transformer, layers: ", between(s, 1, 3));
    fprintf(out, ", dim: %d, heads: %d, kv_heads: %d", dim, heads, kv);
    number(out, ", ffn: ", between(s, dim, 3 * dim));
    number(out, ", vocab: ", between(s, 11, 47));
    number(out, ", context: ", between(s, 3, 9));
    write_switches(s, out);
    word(out, "    data: {recipe: gaussian, std: 0.1, uneven_tokens: ", chance(s, 30) ? "true" : "false");
    number(out, "}\n    steps: ", between(s, 1, 3));
    number(out, "\n    micros: ", between(s, 1, 3));
    word(out, "\n    sync: ", PICK(s, "all", "last"));
    bool coarse = chance(s, 50);
    word(out, "\n    precision: ", !coarse ? "f32" : PICK(s, "bf16", "bf16-reduce"));
    fputc('\n', out);
    write_optimizer(s, out, coarse);
    if (chance(s, 40))
        word(out, "    clip: ", PICK(s, "{norm: \"1\", limit: 20}\n", "{norm: \"2\", limit: 0.3}\n", "{norm: \"inf\", limit: 0.1}\n",
                                   "{norm: \"2\", limit: 1000}\n"));
    word(out, "    loss: ", PICK(s, "mean_of_tokens", "mean_of_tokens", "mean_of_ranks"));
    number(out, "\n    global_rows: ", ranks * between(s, 1, 2));
    fputc('\n', out);
}

void random_cases_write(FILE *out, int count, uint64_t seed, int max_ranks)
{
    fprintf(out, "# %d random correct configurations, seed %" PRIu64 ", at most %d ranks.\ncases:\n", count, seed, max_ranks);
    for (int i = 0; i < count; i++) {
        struct stream s = {seed * 0x100000001b3u + (uint64_t)i};
        draw(&s);
        int ranks = between(&s, 1, max_ranks);
        if (ranks > 6 && ranks % 2) // reciprocals of 7 round: see docs/method.md
            ranks = 6;
        fprintf(out, "  - name: random-%" PRIu64 "-%d\n    title: Drawn configuration %d of seed %" PRIu64, seed, i, i, seed);
        number(out, "\n    seed: ", between(&s, 1, 1000000));
        fputc('\n', out);
        if (chance(&s, 50))
            write_mlp(&s, out, ranks);
        else
            write_transformer(&s, out, ranks);
        write_sharding(&s, out, ranks);
    }
}
