// Live bytes by phase, and their lines over P. See memory_seen.h.
#include "harness/judge/memory_seen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judge/alike.h"
#include "harness/judge/holdings.h"
#include "harness/judge/program.h"
#include "harness/protocol/memory.h"

// Steps until memory has settled: the first makes the optimizer's states, the second is where a framework may lay out its buffers anew, knowing the order of use.
enum { SERIES = 64, SETTLED = 2 };

// ---- what was seen ----

static const unsigned memory_bits = 1u << PROBE_HEAP | 1u << PROBE_CUDA;

bool memory_applies(const struct evidence *e)
{
    const struct sharding_spec *s = &e->c->sharding;
    bool asked = (e->probe_error != NULL && (e->probes_asked == 0 || e->probes_asked & memory_bits)) || (e->probes != NULL && e->probes[0].probes & memory_bits);
    bool gate = strncmp(e->c->id, "gate.", 5) == 0; // one rank for all cases that differ in rows alone: its sizes are no line
    return asked && !gate && s->tensor == 1 && s->pipeline == 1 && program_count(e->c, VERB_STEP) > SETTLED && memory_parameters(e->c) >= MEMORY_LEAST_PARAMETERS;
}

const char *memory_probes(const struct evidence *e)
{
    static const char *const names[] = {"", "heap", "cuda", "heap and cuda"};
    unsigned set = e->probes == NULL ? 0 : e->probes[0].probes;
    return names[(set >> PROBE_HEAP & 1) + 2 * (set >> PROBE_CUDA & 1)];
}

const char *memory_classes(const struct fsdp_case *c)
{
    bool frozen = program_count(c, VERB_FREEZE) > 0, recomputed = c->sharding.activation_checkpointing;
    return frozen && recomputed ? "Z27 Z13 Z30" : frozen ? "Z27 Z13" : recomputed ? "Z27 Z30" : "Z27";
}

// The last optimizer step of the program was marked.
static bool ends(const struct fsdp_case *c, const struct probe_case *p)
{
    int last = -1;
    for (int i = 0; i < c->program_length; i++)
        last = c->program[i].verb == VERB_STEP ? c->program[i].step : last;
    bool marked = last < 0;
    for (int i = 0; i < p->phase_count; i++)
        marked |= p->phases[i].step == last && strcmp(p->phases[i].name, "step") == 0;
    return marked;
}

bool memory_usable(const struct evidence *e, struct finding *f)
{
    if (e->probe_error != NULL || e->probes == NULL) {
        finding_broken(f, "nothing was seen: %s", e->probe_error != NULL ? e->probe_error : "no records");
        return false;
    }
    for (int r = 0; r < e->world_size; r++) {
        const struct probe_case *p = &e->probes[r];
        if (!(p->probes & memory_bits))
            finding_broken(f, "rank %d: no probe of memory was loaded (%lld records lost)", r, (long long)p->lost);
        else if (p->lost > 0)
            finding_broken(f, "rank %d: %lld records were lost for want of room", r, (long long)p->lost);
        else if (p->untracked > 0)
            finding_skip(f, "rank %d may hold memory by %s, which no probe counts", r, p->untracked_call);
        else if (!ends(e->c, p))
            finding_broken(f, "rank %d: its records end before the last optimizer step", r);
        else
            continue;
        snprintf(f->ranks, sizeof f->ranks, "%d", r);
        return false;
    }
    return true;
}

struct memory_claim memory_claim_of(const struct answer *a)
{
    struct memory_claim out = {0};
    const struct event *event;
    for (int i = 0; (event = answer_find(a, EVENT_MEMORY, i)) != NULL; i++) {
        const char *phase = json_string_value(json_object_get(event->fields, "phase")), *tag;
        json_t *bytes = json_object_get(event->fields, "bytes"), *value;
        if (phase == NULL || strcmp(phase, "allocated") != 0 || !json_is_object(bytes))
            continue;
        out = (struct memory_claim){.told = true};
        json_object_foreach(bytes, tag, value) {
            bool rests = strcmp(tag, "PARAM") == 0 || strcmp(tag, "GRAD") == 0 || strcmp(tag, "OPTIM") == 0;
            *(rests ? &out.rest : &out.working) += json_number_value(value);
        }
    }
    return out;
}

static double live_end(const struct probe_phase *p) { return (double)(p->heap.end + p->map.end + p->device.end); }

// The peaks of the three kinds need not be at one moment: their sum is an upper bound, and exact where one kind holds the tensors.
static double live_peak(const struct probe_phase *p) { return (double)(p->heap.peak + p->map.peak + p->device.peak); }

// The step of the first optimizer step: its phases make the states.
static int first_step(const struct probe_case *p)
{
    for (int i = 0; i < p->phase_count; i++)
        if (strcmp(p->phases[i].name, "step") == 0)
            return p->phases[i].step;
    return -1;
}

// Of all phases of that name in the step: the largest peak of all its microbatches, or what the last of them leaves.
static double live_of_step(const struct probe_case *p, const char *name, int step, bool rest)
{
    double most = -INFINITY;
    for (int i = 0; i < p->phase_count; i++)
        if (p->phases[i].step == step && strcmp(p->phases[i].name, name) == 0)
            most = rest ? live_end(&p->phases[i]) : fmax(most, live_peak(&p->phases[i]));
    return most;
}

bool memory_live(const struct probe_case *p, const struct memory_claim *claim, enum memory_phase phase, double *bytes, struct error *error)
{
    bool rest = phase == MEMORY_REST;
    const char *name = rest ? "step" : memory_phase_name(phase);
    int first = first_step(p), seen = 0;
    *bytes = INFINITY;
    for (int i = 0; i < p->phase_count; i++) {
        const struct probe_phase *at = &p->phases[i];
        if (strcmp(at->name, name) != 0 || at->step < first + SETTLED)
            continue;
        seen++;
        *bytes = fmin(*bytes, live_of_step(p, name, at->step, rest));
    }
    if (rest && claim != NULL && claim->told)
        *bytes -= claim->working;
    return seen > 0 || error_set(error, "rank %d: no phase '%s' after step %d was marked", p->rank, name, first + SETTLED - 1);
}

// ---- cases that belong together ----

static bool same_name(const struct fsdp_case *a, const struct fsdp_case *b)
{
    size_t size = strcspn(a->id, ".");
    return strncmp(a->id, b->id, size + 1) == 0;
}

// All but the number of layers, of ranks, and of rows, which follow from these.
static bool same_setting(const struct fsdp_case *a, const struct fsdp_case *b) { return same_name(a, b) && alike_setting(a, b); }

// e's own case first, then those of the run before it.
static bool case_at(const struct evidence *e, int i, const struct memory_claim *own, struct probed_case *out)
{
    if (i > e->probed_count)
        return false;
    *out = i == 0 ? (struct probed_case){e->c, e->probes, own} : e->probed[i - 1];
    return true;
}

static int sizes(const struct evidence *e, const struct fsdp_case *c, const struct memory_claim *own, struct probed_case *out)
{
    struct probed_case at;
    int count = 0;
    for (int i = 0; count < SERIES && case_at(e, i, own, &at); i++)
        if (same_setting(c, at.c) && alike_mesh(c, at.c))
            out[count++] = at;
    return count;
}

static int different_sizes(const struct probed_case *cases, int count)
{
    int different = 0;
    for (int i = 0; i < count; i++) {
        bool fresh = true;
        for (int k = 0; k < i; k++)
            fresh &= memory_parameters(cases[i].c) != memory_parameters(cases[k].c);
        different += fresh;
    }
    return different;
}

int memory_size_count(const struct evidence *e, const struct fsdp_case *c)
{
    struct probed_case cases[SERIES];
    return different_sizes(cases, sizes(e, c, NULL, cases));
}

int memory_meshes(const struct evidence *e, const struct fsdp_case **out, int capacity)
{
    struct probed_case at;
    int count = 0;
    for (int i = 0; case_at(e, i, NULL, &at); i++) {
        bool fresh = same_setting(e->c, at.c) && memory_size_count(e, at.c) >= MEMORY_SIZES;
        for (int k = 0; fresh && k < count; k++)
            fresh = !alike_mesh(out[k], at.c);
        if (fresh && count < capacity)
            out[count++] = at.c;
    }
    return count;
}

bool memory_has_line(const struct evidence *e)
{
    return memory_applies(e) && (e->probes == NULL || memory_size_count(e, e->c) >= MEMORY_SIZES);
}

// ---- lines ----

static bool whole(const struct probed_case *at, int rank) { return probe_memory_whole(&at->probes[rank]) && ends(at->c, &at->probes[rank]); }

static bool rank_line(const struct probed_case *cases, int count, int rank, enum memory_phase phase, struct slope *out, struct error *error)
{
    double x[SERIES], y[SERIES];
    for (int i = 0; i < count; i++) {
        const struct memory_claim *claim = cases[i].claims != NULL ? &cases[i].claims[rank] : NULL;
        x[i] = memory_parameters(cases[i].c);
        if (!whole(&cases[i], rank))
            return error_set(error, "rank %d: its records of %s are not whole", rank, cases[i].c->id);
        if (!memory_live(&cases[i].probes[rank], claim, phase, &y[i], error))
            return false;
    }
    return slope_fit(count, x, y, out) || error_set(error, "rank %d: %d points have no line", rank, count);
}

bool memory_rank_line(const struct evidence *e, const struct fsdp_case *c, int rank, enum memory_phase phase, struct slope *out, struct error *error)
{
    struct memory_claim *own = memory_zeros((size_t)e->world_size, sizeof *own);
    struct probed_case cases[SERIES];
    for (int r = 0; r < e->world_size; r++)
        own[r] = memory_claim_of(&e->answers[r]);
    int count = sizes(e, c, own, cases), different = different_sizes(cases, count);
    bool fits = different >= MEMORY_SIZES || error_set(error, "%d parameter counts of this case so far, a line needs %d", different, MEMORY_SIZES);
    fits = fits && rank_line(cases, count, rank, phase, out, error);
    free(own);
    return fits;
}

bool memory_line(const struct evidence *e, const struct fsdp_case *c, enum memory_phase phase, struct memory_line *out, struct error *error)
{
    struct slope fit;
    for (int r = 0; r < c->world_size; r++) {
        if (!memory_rank_line(e, c, r, phase, &fit, error))
            return false;
        if (r == 0 || judge_worse(fit.slope, out->fit.slope) == fit.slope)
            *out = (struct memory_line){fit, r};
    }
    return true;
}

int memory_claim_line(const struct evidence *e, int rank, struct slope *out)
{
    struct memory_claim none = {0}, own = memory_claim_of(&e->answers[rank]);
    struct probed_case cases[SERIES];
    struct error ignored = {""};
    double x[SERIES], y[SERIES];
    int count = sizes(e, e->c, NULL, cases);
    for (int i = 0; i < count; i++) {
        const struct memory_claim *claim = i == 0 ? &own : cases[i].claims != NULL ? &cases[i].claims[rank] : &none;
        x[i] = claim->rest + claim->working;
        if (!claim->told || !whole(&cases[i], rank) || !memory_live(&cases[i].probes[rank], &none, MEMORY_REST, &y[i], &ignored))
            return 0;
    }
    return slope_fit(count, x, y, out) ? different_sizes(cases, count) : 0;
}

bool memory_whole_parameters(const struct evidence *e)
{
    for (int r = 0; r < e->world_size; r++) {
        const struct held_rank *held = holdings_rank(e, HELD_PARAMETER, r);
        for (int p = 0; held != NULL && p < e->c->parameter_count; p++)
            if (e->c->parameters[p].tied_to < 0 && held->parts[p].total < e->c->parameters[p].count)
                return false;
        if (held == NULL)
            return false;
    }
    return true;
}
