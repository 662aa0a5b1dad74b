// Probes of a run: what loads them into the workers, and what they saw.
//
// A probe is build/libfsdpmark-probe-NAME.so, or lib/fsdpmark/ of an installation, over libfsdpmark-probe.so beside it (docs/probes.md).
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/judge/memory_seen.h"
#include "harness/protocol/memory.h"
#include "harness/probes/stored.h"
#include "harness/run/engine.h"

char *probing_folder(const char *program)
{
    static const char *const places[] = {"", "/../lib/fsdpmark"};
    const char *slash = strrchr(program, '/');
    int size = slash != NULL ? (int)(slash - program) : 0;
    for (int i = 0; i < 2; i++) {
        char *folder = memory_format("%.*s%s", size, program, places[i]), *path = memory_format("%s/libfsdpmark-probe.so", folder);
        bool there = access(path, R_OK) == 0;
        free(path);
        if (there)
            return folder;
        free(folder);
    }
    return NULL;
}

// "LD_PRELOAD=BASE:PROBE:..."
static char *preload(const struct engine *e, struct error *error)
{
    char *folder = probing_folder(e->settings->program), *text = folder != NULL ? memory_format("LD_PRELOAD=%s/libfsdpmark-probe.so", folder) : NULL;
    if (folder == NULL)
        error_set(error, "found no libfsdpmark-probe.so beside %s, expected the probes there", e->settings->program);
    for (int i = 0; text != NULL && i < PROBE_IDS; i++) {
        if (!(e->plan->probes >> i & 1))
            continue;
        char *path = memory_format("%s/libfsdpmark-probe-%s.so", folder, probe_name((enum probe_id)i)), *longer = NULL;
        if (access(path, R_OK) == 0)
            longer = memory_format("%s:%s", text, path);
        else
            error_set(error, "%s: %s: the probe was not built", path, strerror(errno));
        free(path);
        free(text);
        text = longer;
    }
    free(folder);
    return text;
}

static bool records(const struct engine *e) { return e->plan->probes != 0 || e->plan->marks; }

const char **probing_environment(const struct engine *e, struct error *error)
{
    const struct string_list *own = &e->implementation->environment;
    const char **out = memory_zeros((size_t)own->count + 6, sizeof *out);
    char names[64], *loads = NULL;
    for (int i = 0; i < own->count; i++)
        out[i] = own->items[i];
    if (!records(e))
        return out;
    probe_set_text(e->plan->probes, names);
    if ((loads = preload(e, error)) == NULL) {
        free(out);
        return NULL;
    }
    out[own->count] = loads;
    out[own->count + 1] = memory_format("FSDPMARK_PROBES=%s", names);
    int at = own->count + 2;
#ifdef __SANITIZE_ADDRESS__
    // The sanitizer wants to be loaded first, but stands where the probes' calls go to, and so works as well behind them.
    const char *given = getenv("ASAN_OPTIONS");
    out[at++] = memory_format("ASAN_OPTIONS=%s:verify_asan_link_order=0", given != NULL ? given : "");
#endif
    if (e->plan->counters != NULL)
        out[at++] = memory_format("FSDPMARK_COUNTERS=%s", e->plan->counters);
    // An interpreter's own arenas come by the mebibyte, and hide when its objects come and go.
    if (e->plan->probes >> PROBE_HEAP & 1)
        out[at] = memory_text("PYTHONMALLOC=malloc");
    return out;
}

void probing_environment_free(const struct engine *e, const char **environment)
{
    for (int i = e->implementation->environment.count; environment[i] != NULL; i++)
        free((char *)(uintptr_t)environment[i]);
    free(environment);
}

static void forget(struct case_state *state, int ranks)
{
    for (int r = 0; state->probes != NULL && r < ranks; r++)
        probe_case_free(&state->probes[r]);
    free(state->probes);
    free(state->claims);
    state->probes = NULL;
    state->claims = NULL;
}

void probing_read(struct service *s, int position, struct error *error)
{
    struct case_state *state = &s->engine->state[s->index[position]];
    if (!records(s->engine))
        return;
    forget(state, s->world_size);
    state->probes = memory_zeros((size_t)s->world_size, sizeof *state->probes);
    for (int r = 0; r < s->world_size; r++) {
        char *path = memory_format("%s/probes.rank%d", s->folder, r);
        bool fine = probe_read(path, position, &state->probes[r], error);
        free(path);
        if (fine)
            continue;
        forget(state, r);
        return;
    }
}

json_t *probing_stored(const struct service *s, int position)
{
    const struct probe_case *seen = s->engine->state[s->index[position]].probes;
    if (seen == NULL)
        return NULL;
    char **paths = memory_zeros((size_t)s->world_size, sizeof *paths);
    for (int r = 0; r < s->world_size; r++)
        paths[r] = memory_format("%s/probes.rank%d", s->folder, r);
    json_t *stored = probe_store(seen, s->world_size, (const char *const *)paths);
    for (int r = 0; r < s->world_size; r++)
        free(paths[r]);
    free(paths);
    return stored;
}

void probing_claims(struct engine *e, int index, const struct answer *answers)
{
    struct case_state *state = &e->state[index];
    int ranks = e->plan->cases[index].c.world_size;
    free(state->claims);
    state->claims = state->probes == NULL ? NULL : memory_zeros((size_t)ranks, sizeof *state->claims);
    for (int r = 0; state->claims != NULL && r < ranks; r++)
        state->claims[r] = memory_claim_of(&answers[r]);
}

struct probed_case *probing_others(const struct engine *e, int index, int *count)
{
    struct probed_case *out = memory_zeros((size_t)e->plan->count, sizeof *out);
    *count = 0;
    for (int i = 0; i < e->plan->count; i++)
        if (i != index && e->state[i].probes != NULL)
            out[(*count)++] = (struct probed_case){&e->plan->cases[i].c, e->state[i].probes, e->state[i].claims};
    return out;
}

void probing_free(struct engine *e)
{
    for (int i = 0; i < e->plan->count; i++)
        forget(&e->state[i], e->plan->cases[i].c.world_size);
}
