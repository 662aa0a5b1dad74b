// Events and observation files. See answers.h.
#include "reference/worker/answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "harness/protocol/memory.h"
#include "reference/engine/observe.h"

static const char *flag(bool value) { return value ? "true" : "false"; }

// What the engine was really set to, where it is open; what was asked where the case is not supported.
bool answers_hello(fsdpmark *f, const struct fsdp_case *c, const struct engine *e, const struct comm_world *world)
{
    const struct sharding_spec *s = &c->sharding;
    const struct backend *b = world->backend;
    bool emulated = b->emulated && b->emulated();
    fsdpmark_configured(f, "backend", "%s", b->library ? b->library : b->name);
    fsdpmark_configured(f, "device", "%s", b->device_text ? b->device_text() : "cpu");
    if (emulated)
        fsdpmark_configured(f, "emulated", "true");
    fsdpmark_configured(f, "strategy", "%s", strategy_name(s->strategy));
    fsdpmark_configured(f, "mesh", "%dx%d", e ? e->mesh.replicas : s->replicas, e ? e->mesh.shards : s->shards);
    fsdpmark_configured(f, "layout", "%s", layout_name(e ? e->layout : s->layout));
    fsdpmark_configured(f, "wrap", "%s", wrap_name(s->wrap));
    fsdpmark_configured(f, "reshard_after_forward", "%s", flag(s->reshard_after_forward));
    fsdpmark_configured(f, "reshard_ranks", "%d", !e ? s->reshard_ranks : e->comm.near ? e->comm.near->size : 0);
    fsdpmark_configured(f, "prefetch_forward", "%d", s->prefetch_forward);
    fsdpmark_configured(f, "prefetch_backward", "%d", s->prefetch_backward);
    fsdpmark_configured(f, "offload", "%s", s->offload == OFFLOAD_CPU ? "cpu" : "none");
    fsdpmark_configured(f, "activation_checkpointing", "%s", flag(s->activation_checkpointing));
    if (e) {
        fsdpmark_configured(f, "units", "%d", e->unit_count);
        fsdpmark_configured(f, "parameter", "%s", dtype_name(e->parameter));
        fsdpmark_configured(f, "compute", "%s", dtype_name(e->compute));
        fsdpmark_configured(f, "reduce", "%s", dtype_name(e->c->precision.reduce));
        fsdpmark_configured(f, "gradient", "%s", dtype_name(e->gradient));
        fsdpmark_configured(f, "optimizer_state", "%s", dtype_name(e->state_type));
        fsdpmark_configured(f, "clip_factor", "limit / (norm + 1e-6)");
        fsdpmark_configured(f, "divide", "after the sum, in the reduce type");
    }
    return fsdpmark_hello(f, emulated ? "EMULATION of a GPU on the host: no result of a GPU" : NULL);
}

struct parts { struct fsdpmark_part *list; int count; };

static void add_part(struct parts *p, const struct engine *e, int parameter, int64_t offset, int64_t length)
{
    p->list = memory_grow(p->list, (size_t)p->count, sizeof *p->list);
    p->list[p->count++] = (struct fsdpmark_part){e->c->parameters[parameter].name, offset, length};
}

static void add_unit(struct parts *p, const struct engine *e, const struct unit *u, bool all)
{
    const struct layout *l = &u->layout;
    for (int m = 0; all && m < u->member_count; m++)
        add_part(p, e, u->members[m], 0, e->c->parameters[u->members[m]].count);
    for (int i = l->first_piece[e->mesh.shard]; !all && i < l->first_piece[e->mesh.shard + 1]; i++)
        add_part(p, e, u->members[l->pieces[i].tensor], l->pieces[i].offset, l->pieces[i].length);
}

static bool answer_shards_of(fsdpmark *f, const struct engine *e, const char *of, enum observe_bit kind)
{
    struct parts parts = {0};
    int64_t padding = 0;
    for (int i = 0; i < e->unit_count; i++) {
        padding += layout_padding(&e->units[i].layout, e->mesh.shard);
        add_unit(&parts, e, &e->units[i], observe_holds_all(e, kind));
    }
    bool fine = fsdpmark_shards(f, of, parts.list, parts.count, padding, observe_padding(e, kind));
    free(parts.list);
    return fine;
}

bool answers_shards(fsdpmark *f, const struct engine *e)
{
    enum observe_bit state = e->c->optimizer.kind == OPTIMIZER_ADAMW ? OBSERVE_EXP_AVG : OBSERVE_MOMENTUM;
    return answer_shards_of(f, e, "parameter", OBSERVE_PARAM) && answer_shards_of(f, e, "gradient", OBSERVE_GRAD) &&
           answer_shards_of(f, e, "optimizer", state);
}

enum { NAME_BYTES = 64, OTHERS = 4 };

bool answers_memory(fsdpmark *f, const struct engine *e)
{
    struct fsdpmark_figure figures[2 * ARENA_TAGS + OTHERS];
    char names[2 * ARENA_TAGS][NAME_BYTES];
    struct rusage usage;
    int n = 0;
    for (int t = 0; t < ARENA_TAGS; t++) {
        const char *tag = arena_tag_name((enum arena_tag)t);
        snprintf(names[n], NAME_BYTES, "predicted.%s", tag);
        figures[n] = (struct fsdpmark_figure){names[n], (double)(e->device.plan.bytes[t] + e->host.plan.bytes[t])};
        snprintf(names[++n], NAME_BYTES, "bytes.%s", tag);
        figures[n] = (struct fsdpmark_figure){names[n], (double)(e->device.taken.bytes[t] + e->host.taken.bytes[t])};
        n++;
    }
    getrusage(RUSAGE_SELF, &usage);
    figures[n++] = (struct fsdpmark_figure){"total", (double)(e->device.used + e->host.used)};
    figures[n++] = (struct fsdpmark_figure){"host", (double)e->host.used};
    figures[n++] = (struct fsdpmark_figure){"peak_resident", (double)usage.ru_maxrss * 1024}; // of the whole process so far
    figures[n++] = (struct fsdpmark_figure){"kernel_scratch", (double)kernels_scratch_bytes()};
    return fsdpmark_memory(f, "allocated", figures, n);
}

bool answers_traffic(fsdpmark *f, const struct engine *e, const struct overlap *o)
{
    enum { EXPOSED = 8 };
    struct fsdpmark_figure figures[3 * COMM_KINDS + EXPOSED];
    char names[3 * COMM_KINDS][NAME_BYTES];
    int n = 0;
    for (int k = 0; k < COMM_KINDS; k++) {
        const struct comm_count *c = &e->comm.counts[k];
        const struct { const char *name; double value; } told[] = {
            {"count", (double)c->calls}, {"bytes", (double)c->bytes}, {"overlapped", (double)c->overlapped}};
        for (int i = 0; i < 3; i++, n++) {
            snprintf(names[n], NAME_BYTES, "%s.%s", comm_kind_name((enum comm_kind)k), told[i].name);
            figures[n] = (struct fsdpmark_figure){names[n], told[i].value};
        }
    }
    const struct fsdpmark_figure exposed[EXPOSED] = {
        {"exposed.steps", o->steps},        {"exposed.step", o->step.value},   {"exposed.seconds", o->exposed.value},   {"exposed.low", o->exposed.low},
        {"exposed.high", o->exposed.high}, {"exposed.share", o->share.value}, {"exposed.share_low", o->share.low}, {"exposed.share_high", o->share.high}};
    for (int i = 0; o->steps > 0 && i < EXPOSED; i++)
        figures[n++] = exposed[i];
    return fsdpmark_traffic(f, figures, n);
}

// The engine names its tensors "<kind>/<parameter>".
static bool put_all(fsdpmark *f, const struct tensors *set, bool local)
{
    for (int i = 0; i < set->count; i++) {
        const struct tensor *t = &set->items[i];
        size_t size = strcspn(t->name, "/");
        unsigned bit = OBSERVE_PARAM;
        while (bit < OBSERVE_MOMENTUM && (strlen(observe_name((enum observe_bit)bit)) != size || strncmp(observe_name((enum observe_bit)bit), t->name, size)))
            bit *= 2;
        if (local ? !fsdpmark_put_local(f, bit, t->name + size + 1, (enum fsdpmark_dtype)t->dtype, t->count, t->data)
                  : !fsdpmark_put(f, bit, t->name + size + 1, (enum fsdpmark_dtype)t->dtype, t->data))
            return false;
    }
    return true;
}

bool answers_observe(fsdpmark *f, struct engine *e, const struct fsdpmark_instruction *in, struct error *error)
{
    struct tensors local = {0}, full = {0};
    bool ok = !in->local || (observe_local(e, in->what, &local, error) && put_all(f, &local, true));
    ok = ok && observe_full(e, in->what, &full, error) && put_all(f, &full, false) && fsdpmark_observed(f, in);
    tensors_free(&local);
    tensors_free(&full);
    return ok;
}
