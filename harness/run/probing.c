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

static char *library_of(const char *folder, int probe) { return memory_format("%s/libfsdpmark-probe-%s.so", folder, probe_name((enum probe_id)probe)); }

bool probing_built(const char *program, unsigned probes, struct error *error)
{
    char *folder = probing_folder(program);
    bool built = folder != NULL || error_set(error, "found no libfsdpmark-probe.so beside %s, expected the probes there", program);
    for (int i = 0; built && i < PROBE_IDS; i++) {
        char *path = probes >> i & 1 ? library_of(folder, i) : NULL;
        if (path != NULL && access(path, R_OK) != 0)
            built = error_set(error, "%s: %s: the probe was not built", path, strerror(errno));
        free(path);
    }
    free(folder);
    return built;
}

// What would be preloaded without probes, by the manifest or the caller; NULL: nothing.
static const char *own_preload(const struct engine *e)
{
    static const char name[] = "LD_PRELOAD=";
    const struct string_list *own = &e->implementation->environment;
    for (int i = own->count; i-- > 0;)
        if (strncmp(own->items[i], name, sizeof name - 1) == 0)
            return own->items[i] + sizeof name - 1;
    return getenv("LD_PRELOAD");
}

static char *and_then(char *list, const char *library)
{
    char *longer = memory_format("%s:%s", list, library);
    free(list);
    return longer;
}

// "LD_PRELOAD=BASE:PROBE:...:OWN". The probes first: what calls go on to is then the implementation's own, be it an allocator or another tool.
static char *preload(const struct engine *e, struct error *error)
{
    if (!probing_built(e->settings->program, e->plan->probes, error))
        return NULL;
    char *folder = probing_folder(e->settings->program), *list = memory_format("LD_PRELOAD=%s/libfsdpmark-probe.so", folder);
    for (int i = 0; i < PROBE_IDS; i++) {
        char *path = e->plan->probes >> i & 1 ? library_of(folder, i) : NULL;
        list = path != NULL ? and_then(list, path) : list;
        free(path);
    }
    free(folder);
    const char *own = own_preload(e);
    return own != NULL && own[0] != 0 ? and_then(list, own) : list;
}

static bool records(const struct engine *e) { return e->plan->probes != 0 || e->plan->marks; }

bool probing_ready(const struct engine *e) { return !records(e) || probing_built(e->settings->program, e->plan->probes, e->error); }

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
        bool fine = probe_read(path, position, &state->probes[r], error) && probe_phases_known(&state->probes[r], error);
        free(path);
        if (fine)
            continue;
        forget(state, r + 1);
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
