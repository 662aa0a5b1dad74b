// Claim: what the worker configured is what the case asks for.
// Source: the contract of a verdict (docs/method.md): a requested mode is never silently downgraded.
// How: the strings of hello's `configured` against the case, field by field, on every rank. The strategy must be among them, and a tensor or
//     pipeline axis where the case has one; other fields count where the worker names them. A framework's own names (layout any) are not judged.
// Catches: Z19 (a precision policy that did not arrive), and any silent downgrade
// Blind to: a worker that says what was asked and does another thing; the shard sizes and figures of other checks see that
#include <stdio.h>
#include <string.h>

#include "suite/checks/check.h"

enum { FIELDS = 14 };
struct field { const char *name; char expected[32]; const char *classes; };

static const char *truth_word(bool b) { return b ? "true" : "false"; }

static void expect(struct field *f, const char *name, const char *value, const char *classes)
{
    *f = (struct field){.name = name, .classes = classes};
    snprintf(f->expected, sizeof f->expected, "%s", value);
}

static int expected_fields(const struct fsdp_case *c, struct field *f)
{
    const struct sharding_spec *s = &c->sharding;
    const struct precision_spec *p = &c->precision;
    char text[32];
    int n = 0;
    snprintf(text, sizeof text, "%dx%d", s->replicas, s->shards);
    expect(&f[n++], "strategy", strategy_name(s->strategy), "");
    expect(&f[n++], "mesh", text, "Z02");
    snprintf(text, sizeof text, "%d", s->tensor);
    expect(&f[n++], "tensor", text, "");
    snprintf(text, sizeof text, "%d", s->pipeline);
    expect(&f[n++], "pipeline", text, "");
    expect(&f[n++], "parameter", dtype_name(p->parameter), "Z19 Z20");
    expect(&f[n++], "compute", dtype_name(p->compute), "Z19");
    expect(&f[n++], "reduce", dtype_name(p->reduce), "Z19");
    expect(&f[n++], "optimizer_state", dtype_name(p->optimizer_state), "Z20");
    expect(&f[n++], "offload", s->offload == OFFLOAD_CPU ? "cpu" : "none", "");
    expect(&f[n++], "activation_checkpointing", truth_word(s->activation_checkpointing), "");
    if (s->layout != SHARD_ANY && s->strategy != STRATEGY_NONE)
        expect(&f[n++], "layout", layout_name(s->layout), "");
    if (s->strategy == STRATEGY_FULL || s->strategy == STRATEGY_HYBRID) {
        expect(&f[n++], "reshard_after_forward", truth_word(s->reshard_after_forward), "");
        snprintf(text, sizeof text, "%d", s->reshard_ranks);
        expect(&f[n++], "reshard_ranks", text, "");
        expect(&f[n++], "wrap", wrap_name(s->wrap), "");
    }
    return n;
}

static bool applies(const struct evidence *e) { (void)e; return true; }

static void judge(const struct evidence *e, struct finding *f)
{
    struct field fields[FIELDS];
    int count = expected_fields(e->c, fields), seen = 0;
    for (int r = 0; r < e->world_size; r++) {
        const struct event *hello = answer_find(&e->answers[r], EVENT_HELLO, 0);
        json_t *configured = hello ? json_object_get(hello->fields, "configured") : NULL;
        if (!json_is_string(json_object_get(configured, "strategy")))
            finding_fail(f, "", "rank %d does not say which strategy it configured", r);
        const struct { const char *name; int size; } axes[] = {{"tensor", e->c->sharding.tensor}, {"pipeline", e->c->sharding.pipeline}};
        for (int k = 0; k < 2; k++)
            if (axes[k].size > 1 && !json_is_string(json_object_get(configured, axes[k].name)))
                finding_fail(f, "", "rank %d does not say which %s it configured, the case asks for %d", r, axes[k].name, axes[k].size);
        for (int k = 0; k < count; k++) {
            const char *said = json_string_value(json_object_get(configured, fields[k].name));
            seen += said != NULL;
            if (said && strcmp(said, fields[k].expected) != 0)
                finding_fail(f, fields[k].classes, "rank %d configured %s = %s, the case asks for %s", r, fields[k].name, said, fields[k].expected);
        }
    }
    if (seen > 0)
        finding_pass(f, "%d configured values on %d ranks are as asked", seen, e->world_size);
}

const struct check check_configured_as_asked = {
    .name = "configured-as-asked", .number = 0, .claim = "hello.configured = the case, field by field, on every rank",
    .source = "docs/method.md, contract of a verdict", .catches = "Z19 Z20 Z02", .blind = "a worker that misreports itself",
    .applies = applies, .judge = judge};
