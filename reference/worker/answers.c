// Events and observation files. See answers.h.
#include "reference/worker/answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "version.h"
#include "reference/engine/observe.h"

enum { PATH_BYTES = 4096 };

static json_t *flag(bool value) { return json_string(value ? "true" : "false"); }

static json_t *number(int value) { return json_sprintf("%d", value); }

// What the engine was really set to, where it is open; what was asked where the case is not supported.
static json_t *configured(const struct fsdp_case *c, const struct engine *e, const char *backend)
{
    const struct sharding_spec *s = &c->sharding;
    json_t *o = json_object();
    json_object_set_new(o, "backend", json_string(backend));
    json_object_set_new(o, "strategy", json_string(strategy_name(s->strategy)));
    json_object_set_new(o, "mesh", json_sprintf("%dx%d", e ? e->mesh.replicas : s->replicas, e ? e->mesh.shards : s->shards));
    json_object_set_new(o, "layout", json_string(layout_name(e ? e->layout : s->layout)));
    json_object_set_new(o, "wrap", json_string(wrap_name(s->wrap)));
    json_object_set_new(o, "reshard_after_forward", flag(s->reshard_after_forward));
    json_object_set_new(o, "reshard_ranks", number(!e ? s->reshard_ranks : e->comm.near ? e->comm.near->size : 0));
    json_object_set_new(o, "prefetch_forward", number(s->prefetch_forward));
    json_object_set_new(o, "prefetch_backward", number(s->prefetch_backward));
    json_object_set_new(o, "offload", json_string(s->offload == OFFLOAD_CPU ? "cpu" : "none"));
    json_object_set_new(o, "activation_checkpointing", flag(s->activation_checkpointing));
    if (!e)
        return o;
    json_object_set_new(o, "units", number(e->unit_count));
    json_object_set_new(o, "parameter", json_string(dtype_name(e->parameter)));
    json_object_set_new(o, "compute", json_string(dtype_name(e->compute)));
    json_object_set_new(o, "reduce", json_string(dtype_name(e->c->precision.reduce)));
    json_object_set_new(o, "gradient", json_string(dtype_name(e->gradient)));
    json_object_set_new(o, "optimizer_state", json_string(dtype_name(e->state_type)));
    json_object_set_new(o, "clip_factor", json_string("limit / (norm + 1e-6)"));
    json_object_set_new(o, "divide", json_string("after the sum, in the reduce type"));
    return o;
}

bool answers_hello(struct answer_writer *w, const char *id, const struct fsdp_case *c, const struct engine *e,
                   const struct comm_world *world)
{
    return answer_event(w, "hello",
                        json_pack("{s:s,s:i,s:i,s:s,s:s,s:o}", "case", id, "rank", world->all.rank, "world_size", world->all.size, "implementation",
                                  "reference", "version", FSDPMARK_VERSION, "configured", c ? configured(c, e, world->backend->name) : json_object()));
}

static json_t *parts_of(const struct engine *e, const struct unit *u, int member, bool all)
{
    const struct layout *l = &u->layout;
    json_t *parts = json_array();
    if (all)
        json_array_append_new(parts, json_pack("[i,I]", 0, (json_int_t)e->c->parameters[u->members[member]].count));
    for (int i = l->first_piece[e->mesh.shard]; !all && i < l->first_piece[e->mesh.shard + 1]; i++)
        if (l->pieces[i].tensor == member)
            json_array_append_new(parts, json_pack("[I,I]", (json_int_t)l->pieces[i].offset, (json_int_t)l->pieces[i].length));
    return parts;
}

static bool answer_shards_of(struct answer_writer *w, const struct engine *e, const char *of, enum observe_bit kind)
{
    json_t *parts = json_object();
    int64_t padding = 0;
    bool all = observe_holds_all(e, kind);
    for (int i = 0; i < e->unit_count; i++) {
        const struct unit *u = &e->units[i];
        padding += layout_padding(&u->layout, e->mesh.shard);
        for (int m = 0; m < u->member_count; m++)
            json_object_set_new(parts, e->c->parameters[u->members[m]].name, parts_of(e, u, m, all));
    }
    return answer_event(w, "shards", json_pack("{s:s,s:o,s:I,s:o}", "of", of, "parts", parts, "padding", (json_int_t)padding,
                                               "padding_max", answer_number(observe_padding(e, kind))));
}

bool answers_shards(struct answer_writer *w, const struct engine *e)
{
    enum observe_bit state = e->c->optimizer.kind == OPTIMIZER_ADAMW ? OBSERVE_EXP_AVG : OBSERVE_MOMENTUM;
    return answer_shards_of(w, e, "parameter", OBSERVE_PARAM) && answer_shards_of(w, e, "gradient", OBSERVE_GRAD) &&
           answer_shards_of(w, e, "optimizer", state);
}

bool answers_memory(struct answer_writer *w, const struct engine *e)
{
    json_t *o = json_pack("{s:s}", "phase", "allocated"), *predicted = json_object(), *taken = json_object();
    for (int t = 0; t < ARENA_TAGS; t++) {
        const char *name = arena_tag_name((enum arena_tag)t);
        json_object_set_new(predicted, name, json_integer((json_int_t)(e->device.plan.bytes[t] + e->host.plan.bytes[t])));
        json_object_set_new(taken, name, json_integer((json_int_t)(e->device.taken.bytes[t] + e->host.taken.bytes[t])));
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    json_object_set_new(o, "predicted", predicted);
    json_object_set_new(o, "bytes", taken);
    json_object_set_new(o, "total", json_integer((json_int_t)(e->device.used + e->host.used)));
    json_object_set_new(o, "host", json_integer((json_int_t)e->host.used));
    json_object_set_new(o, "peak_resident", json_integer((json_int_t)usage.ru_maxrss * 1024)); // of the whole process so far
    json_object_set_new(o, "kernel_scratch", json_integer((json_int_t)kernels_scratch_bytes()));
    return answer_event(w, "memory", o);
}

bool answers_traffic(struct answer_writer *w, const struct engine *e)
{
    json_t *o = json_object();
    for (int k = 0; k < COMM_KINDS; k++) {
        const struct comm_count *c = &e->comm.counts[k];
        json_object_set_new(o, comm_kind_name((enum comm_kind)k),
                            json_pack("{s:I,s:I,s:I}", "count", (json_int_t)c->calls, "bytes", (json_int_t)c->bytes, "overlapped",
                                      (json_int_t)c->overlapped));
    }
    return answer_event(w, "traffic", o);
}

static bool write_set(struct answer_writer *w, const char *label, const char *suffix, const struct tensors *set, struct error *error)
{
    char path[PATH_BYTES];
    const char *file = path + snprintf(path, sizeof path, "%s/", w->out_folder);
    snprintf(path + (file - path), sizeof path - (size_t)(file - path), "%s%s.safetensors", label, suffix);
    return tensors_write(path, set, error) && answer_event(w, "observed", json_pack("{s:s,s:s}", "label", label, "file", file));
}

bool answers_observe(struct answer_writer *w, struct engine *e, const struct instruction *in, struct error *error)
{
    struct tensors local = {0}, full = {0};
    char suffix[32];
    snprintf(suffix, sizeof suffix, ".rank%d", e->rank);
    bool ok = !in->local || (observe_local(e, in->what, &local, error) && write_set(w, in->label, suffix, &local, error));
    ok = ok && observe_full(e, in->what, &full, error) && (e->rank != 0 || write_set(w, in->label, "", &full, error));
    tensors_free(&local);
    tensors_free(&full);
    return ok;
}
