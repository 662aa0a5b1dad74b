// The model that `advise` looks at: a case of a file, or one drawn up from sizes.
//
// Sizes become the short form of a case (docs/cases.md) and go through its reader, so that the same defaults and complaints hold.
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cases/expand.h"
#include "harness/cli/advise.h"
#include "harness/protocol/document.h"
#include "harness/protocol/memory.h"

struct search { const char *pattern; struct fsdp_case *out; bool found; };

static bool take(struct expanded *e, void *context, struct error *error)
{
    struct search *s = context;
    const struct draft *d = &e->draft;
    bool fits = s->pattern == NULL || fnmatch(s->pattern, d->c.id, 0) == 0 || strstr(d->c.id, s->pattern) != NULL;
    (void)error;
    if (fits && !s->found) {
        case_copy(s->out, &d->c);
        s->found = true;
    }
    expanded_free(e);
    return true;
}

static bool from_file(const struct cli *cli, const struct advise_options *o, struct fsdp_case *out, struct error *error)
{
    struct search s = {o->pattern, out, false};
    struct implementation reference = {0};
    char *suite = cli_suite(cli, o->suite);
    bool ok = suite != NULL ? implementation_read("reference", suite, &reference, error) : error_set(error, "no suite");
    char *file = !ok ? NULL : o->workload != NULL ? suite_workload_file(suite, o->workload, error) : memory_text(o->case_file);
    ok = file != NULL && expand_file(file, &reference, take, &s, error);
    if (ok && !s.found)
        ok = error_set(error, "%s: no case matches '%s'", file, o->pattern != NULL ? o->pattern : "*");
    implementation_free(&reference);
    free(suite);
    free(file);
    return ok;
}

// gpt: GPT-2's kind of layer; llama: Llama's. The default sizes are those of Llama 2 7B (Touvron et al. 2023, arXiv:2307.09288) and GPT-2 XL (Radford et al. 2019).
static const struct kind { const char *name, *words; int64_t layers, dim, heads, ffn, vocab, context; } kinds[] = {
    {"llama", "norm: rmsnorm, position: rope, activation: swiglu, bias: false", 32, 4096, 32, 11008, 32000, 4096},
    {"gpt", "norm: layernorm, position: learned, activation: gelu, bias: true, tied: true", 48, 1600, 25, 6400, 50257, 1024},
};

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (name == NULL || strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static long long chosen(int64_t given, int64_t else_) { return given > 0 ? given : else_; }

static char *short_form(const struct advise_options *o, const struct kind *k)
{
    int64_t heads = chosen(o->heads, k->heads);
    long long prefetch = o->prefetch >= 0 ? o->prefetch : 1;
    return memory_format("{name: advise, title: a model of these sizes, layer: measured, model: {kind: transformer, layers: %lld, dim: %lld, heads: %lld, kv_heads: %lld, ffn: %lld, "
                         "vocab: %lld, context: %lld, %s}, precision: %s, optimizer: {kind: adamw}, layout: %s, prefetch: {forward: %lld, backward: %lld}, micros: %lld, "
                         "rows_per_rank: 1, reshard_after_forward: %s, activation_checkpointing: %s}",
                         chosen(o->layers, k->layers), chosen(o->dim, k->dim), (long long)heads, chosen(o->kv_heads, heads), chosen(o->ffn, o->dim > 0 ? 4 * o->dim : k->ffn),
                         chosen(o->vocab, k->vocab), chosen(o->context, k->context), k->words, o->precision != NULL ? o->precision : "bf16", o->layout != NULL ? o->layout : "flat", prefetch, prefetch,
                         chosen(o->micros, 1), o->no_reshard ? "false" : "true", o->checkpointing ? "true" : "false");
}

static bool from_text(const char *text, struct fsdp_case *out, struct error *error)
{
    struct document doc;
    struct draft d;
    if (!document_parse(text, strlen(text), "the options", &doc, error))
        return false;
    draft_start(&d);
    bool ok = draft_overlay(&d, &doc, doc.root, DRAFT_CASE, error) && draft_finish(&d, &doc, doc.root, error);
    if (ok)
        case_copy(out, &d.c);
    draft_free(&d);
    document_free(&doc);
    return ok;
}

// "the options:1: model.kv_heads: found ..." is what the reader says of the short form; people gave --kv-heads.
static void name_option(struct error *error)
{
    static const char *const before[] = {"the options:1: ", "case 'advise': model: "}, *const keys[] = {"model.", "prefetch."};
    char *text = error->text;
    for (size_t i = 0; i < 2; i++)
        if (strncmp(text, before[i], strlen(before[i])) == 0)
            memmove(text, text + strlen(before[i]), strlen(text) - strlen(before[i]) + 1);
    struct error said = *error;
    for (size_t i = 0; i < 2; i++) {
        size_t key = strlen(keys[i]), end = strcspn(said.text, ":");
        if (strncmp(said.text, keys[i], key) != 0 || said.text[end] != ':')
            continue;
        for (char *c = said.text; c < said.text + end; c++)
            *c = *c == '_' ? '-' : *c;
        const char *name = i == 0 ? said.text + key : said.text; // prefetch.forward is --prefetch
        snprintf(text, sizeof error->text, "--%.*s%s", (int)(i == 0 ? end - key : key - 1), name, said.text + end);
    }
}

static bool from_sizes(const struct advise_options *o, struct fsdp_case *out, struct error *error)
{
    const struct kind *k = find_kind(o->model);
    if (k == NULL)
        return error_set(error, "--model: found '%s', expected llama or gpt", o->model);
    char *text = short_form(o, k);
    bool ok = from_text(text, out, error);
    if (!ok)
        name_option(error);
    free(text);
    return ok;
}

bool advise_case_text(const struct cli *cli, const struct advise_options *o, const char *text, struct fsdp_case *out, struct error *error)
{
    return o->case_file != NULL || o->workload != NULL ? from_file(cli, o, out, error) : from_text(text, out, error);
}

bool advise_case(const struct cli *cli, const struct advise_options *o, struct fsdp_case *out, struct error *error)
{
    return o->case_file != NULL || o->workload != NULL ? from_file(cli, o, out, error) : from_sizes(o, out, error);
}
