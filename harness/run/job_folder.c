// What the workers of one start read: job.json and one folder per case.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/protocol/job.h"
#include "harness/run/engine.h"
#include "harness/run/scratch.h"

char *job_case_folder(const struct service *s, int position)
{
    char *path;
    return asprintf(&path, "%s/%s", s->folder, s->engine->plan->cases[s->index[position]].c.id) < 0 ? NULL : path;
}

// The cache's file under the name that the protocol gives it; absent where the case has none.
static bool link_file(const char *truth, const char *folder, const char *name, struct error *error)
{
    char from[4096], to[4096];
    snprintf(from, sizeof from, "%s/%s", truth, name);
    snprintf(to, sizeof to, "%s/%s", folder, name);
    if (symlink(from, to) != 0)
        return error_set(error, "%s: %s", to, strerror(errno));
    return true;
}

// A start that was cut short may have left half a checkpoint.
static void remove_checkpoint(const struct fsdp_case *c)
{
    for (int i = 0; i < c->program_length && c->program[i].verb != VERB_LOAD; i++)
        if (c->program[i].verb == VERB_SAVE) {
            scratch_remove(c->checkpoint);
            return;
        }
}

char *job_kept_answers(const struct fsdp_case *saver)
{
    char *path;
    return asprintf(&path, "%s.out", saver->checkpoint) < 0 ? NULL : path;
}

void job_keep_answers(const struct service *s, int position)
{
    struct error error = {0};
    char from[4200], *to = job_kept_answers(&s->engine->plan->cases[s->index[position]].c), *folder = job_case_folder(s, position);
    snprintf(from, sizeof from, "%s/out", folder);
    scratch_remove(to);
    // Where this fails the cases that load are BROKEN: their evidence is missing.
    if (scratch_folder(to, &error))
        rename(from, to);
    free(folder);
    free(to);
}

static bool make_case(struct service *s, int position, struct error *error)
{
    const struct fsdp_case *c = &s->engine->plan->cases[s->index[position]].c;
    char truth[4096], path[4096];
    char *folder = job_case_folder(s, position);
    truth_cache_path(s->engine->cache, c, truth, sizeof truth);
    snprintf(path, sizeof path, "%s/out", folder);
    bool ok = scratch_folder(path, error);
    remove_checkpoint(c);
    snprintf(path, sizeof path, "%s/case.json", folder);
    ok = ok && case_write(c, path, error) && link_file(truth, folder, "init.safetensors", error) &&
         link_file(truth, folder, "data.safetensors", error) &&
         (!c->divergent_init || link_file(truth, folder, "init.other.safetensors", error));
    free(folder);
    return ok;
}

bool job_folder_make(struct service *s, struct error *error)
{
    const char **names = calloc((size_t)s->count, sizeof *names);
    bool ok = names != NULL && scratch_folder(s->folder, error);
    for (int i = 0; ok && i < s->count; i++) {
        names[i] = s->engine->plan->cases[s->index[i]].c.id;
        ok = make_case(s, i, error);
    }
    ok = ok && job_write(s->folder, s->world_size, names, s->count, error);
    free(names);
    return ok;
}
