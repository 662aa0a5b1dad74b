// The words for the usual precisions. See docs/cases.md.
#include <stdio.h>
#include <string.h>

#include "harness/cases/precision.h"

#define UNSCALED LOSS_SCALE_NONE, 1, 2, 0.5, 2000
static const struct { const char *word; struct precision_spec spec; } words[] = {
    {"f32", {DTYPE_F32, DTYPE_F32, DTYPE_F32, DTYPE_F32, UNSCALED}},
    {"f64", {DTYPE_F64, DTYPE_F64, DTYPE_F64, DTYPE_F64, UNSCALED}},
    {"bf16", {DTYPE_F32, DTYPE_BF16, DTYPE_F32, DTYPE_F32, UNSCALED}},
    {"bf16-reduce", {DTYPE_F32, DTYPE_BF16, DTYPE_BF16, DTYPE_F32, UNSCALED}},
    {"bf16-pure", {DTYPE_BF16, DTYPE_BF16, DTYPE_BF16, DTYPE_BF16, UNSCALED}},
    {"f16", {DTYPE_F32, DTYPE_F16, DTYPE_F32, DTYPE_F32, LOSS_SCALE_DYNAMIC, 65536, 2, 0.5, 2000}},
};
enum { WORD_COUNT = sizeof words / sizeof *words };

static bool same(const struct precision_spec *a, const struct precision_spec *b)
{
    return a->parameter == b->parameter && a->compute == b->compute && a->reduce == b->reduce &&
           a->optimizer_state == b->optimizer_state && a->loss_scale == b->loss_scale &&
           (a->loss_scale == LOSS_SCALE_NONE || (a->scale_initial == b->scale_initial && a->scale_growth == b->scale_growth &&
                                                 a->scale_backoff == b->scale_backoff && a->scale_interval == b->scale_interval));
}

const char *precision_word(const struct precision_spec *p)
{
    for (int i = 0; i < WORD_COUNT; i++)
        if (same(p, &words[i].spec))
            return words[i].word;
    return "custom";
}

const char *const *precision_words(void)
{
    static const char *names[WORD_COUNT + 1];
    for (int i = 0; i < WORD_COUNT; i++)
        names[i] = words[i].word;
    return names;
}

bool precision_read(struct reading *r, const struct field *f, const struct node *node, void *draft)
{
    struct precision_spec *out = &((struct fsdp_case *)draft)->precision;
    char list[128], expected[192];
    if (node && node->kind == NODE_MAPPING)
        return field_read(r, field_find(case_fields, "precision"), node, draft);
    for (int i = 0; i < WORD_COUNT; i++) {
        if (node && node->kind == NODE_SCALAR && strcmp(node->text, words[i].word) == 0) {
            *out = words[i].spec;
            return true;
        }
    }
    snprintf(expected, sizeof expected, "a mapping or one of %s", name_list(precision_words(), list, sizeof list));
    return field_error(r, f, node, expected);
}
