// What is compared, field by field. See alike.h.
#include "harness/judge/alike.h"

#include <string.h>

static bool same_text(const char *a, const char *b) { return a == NULL ? b == NULL : b != NULL && strcmp(a, b) == 0; }

static bool same_options(const struct fsdp_case *a, const struct fsdp_case *b)
{
    for (int i = 0; i < a->option_count; i++)
        if (!same_text(a->options[i].value, case_option(b, a->options[i].name)))
            return false;
    return a->option_count == b->option_count;
}

static bool same_program(const struct fsdp_case *a, const struct fsdp_case *b)
{
    bool same = a->program_length == b->program_length;
    for (int i = 0; same && i < a->program_length; i++)
        same = a->program[i].verb == b->program[i].verb && a->program[i].sync == b->program[i].sync;
    return same;
}

static bool same_sharding(const struct sharding_spec *s, const struct sharding_spec *t)
{
    return s->strategy == t->strategy && s->layout == t->layout && s->wrap == t->wrap && s->reshard_after_forward == t->reshard_after_forward &&
           s->reshard_ranks == t->reshard_ranks && s->prefetch_forward == t->prefetch_forward && s->prefetch_backward == t->prefetch_backward &&
           s->offload == t->offload && s->activation_checkpointing == t->activation_checkpointing && s->tensor == t->tensor && s->pipeline == t->pipeline;
}

static bool same_precision(const struct precision_spec *p, const struct precision_spec *q)
{
    return p->parameter == q->parameter && p->compute == q->compute && p->reduce == q->reduce && p->optimizer_state == q->optimizer_state;
}

bool alike_setting(const struct fsdp_case *a, const struct fsdp_case *b)
{
    return a->model.kind == b->model.kind && same_sharding(&a->sharding, &b->sharding) && same_precision(&a->precision, &b->precision) &&
           a->optimizer.kind == b->optimizer.kind && (a->optimizer.momentum != 0) == (b->optimizer.momentum != 0) && a->clip == b->clip &&
           same_options(a, b) && same_program(a, b);
}

bool alike_mesh(const struct fsdp_case *a, const struct fsdp_case *b)
{
    return a->world_size == b->world_size && a->sharding.replicas == b->sharding.replicas && a->sharding.shards == b->sharding.shards;
}
