// See truth_cache.h.
#include "harness/run/truth_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/launch/interrupt.h"
#include "harness/launch/launch.h"
#include "harness/run/scratch.h"
#include "harness/run/truth_seal.h"

enum { MAKERS = 2, DEADLINE_S = 600 };

struct maker {
    pid_t pid;               // 0: free
    int item;                // index of the case
    int pipe;                // the child writes its error here
    double until_s;
    char folder[4096];       // unfinished
};

bool truth_cache_open(const char *folder, struct truth_cache *out, struct error *error)
{
    const char *own = folder != NULL ? folder : getenv("FSDPMARK_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    *out = (struct truth_cache){0};
    int n = own != NULL && own[0]    ? asprintf(&out->folder, "%s/truth", own)
            : xdg != NULL && xdg[0]  ? asprintf(&out->folder, "%s/fsdpmark/truth", xdg)
            : home != NULL && home[0] ? asprintf(&out->folder, "%s/.cache/fsdpmark/truth", home)
                                      : -1;
    if (n < 0)
        return error_set(error, "no folder for the truth cache: none of FSDPMARK_CACHE, XDG_CACHE_HOME and HOME is set");
    if (!scratch_folder(out->folder, error))
        return false;
    // The job folders link into the cache from elsewhere.
    char *absolute = realpath(out->folder, NULL);
    if (absolute == NULL)
        return error_set(error, "%s: %s", out->folder, strerror(errno));
    free(out->folder);
    out->folder = absolute;
    return true;
}

void truth_cache_close(struct truth_cache *c)
{
    if (c->loaded_key[0])
        truth_free(&c->loaded);
    free(c->folder);
    free(c->keys);
    *c = (struct truth_cache){0};
}

void truth_cache_path(const struct truth_cache *c, const struct fsdp_case *of, char *path, size_t size)
{
    char key[33];
    truth_key(of, key);
    snprintf(path, size, "%s/%s", c->folder, key);
}

// One that is there and damaged is told of; it is made again, and stays until then, since other runs may link to it.
static bool is_whole(const struct truth_cache *c, const struct fsdp_case *of)
{
    char path[4096], line[1200];
    struct error reason = {0};
    truth_cache_path(c, of, path, sizeof path);
    if (access(path, F_OK) != 0)
        return false;
    if (truth_seal_holds(path, &reason))
        return true;
    snprintf(line, sizeof line, "a truth of the cache is damaged and made again: %s", reason.text);
    if (c->tell != NULL)
        c->tell(NULL, line);
    return false;
}

// Puts a truth in its place, also where a damaged one is, which then lies where the new one was made. A whole one that another run
// has put there meanwhile is as good.
static bool put_in_place(const char *made, const char *path)
{
    struct error damage = {0};
    if (rename(made, path) == 0)
        return true;
    if (access(path, F_OK) == 0 && (truth_seal_holds(path, &damage) || renameat2(AT_FDCWD, made, AT_FDCWD, path, RENAME_EXCHANGE) == 0))
        return true;
    // Not every file system can exchange.
    scratch_remove(path);
    return rename(made, path) == 0;
}

// True the first time that a key is seen.
static bool count_key(struct truth_cache *c, const struct fsdp_case *of)
{
    char key[33];
    truth_key(of, key);
    for (int i = 0; i < c->counted; i++)
        if (strcmp(c->keys[i], key) == 0)
            return false;
    char(*grown)[33] = realloc(c->keys, sizeof *c->keys * (size_t)(c->counted + 1));
    if (grown == NULL)
        return false;
    c->keys = grown;
    memcpy(c->keys[c->counted++], key, sizeof key);
    return true;
}

static _Noreturn void make(const struct fsdp_case *of, const char *folder, int out, pid_t parent)
{
    struct error error = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); // the parent decides
    if (getppid() != parent)
        _exit(1);
    bool ok = scratch_folder(folder, &error) && truth_make(of, folder, &error) && truth_seal(folder, &error);
    if (!ok && error.text[0] == 0)
        error_set(&error, "the truth could not be made, without a reason");
    if (!ok)
        dprintf(out, "%s", error.text);
    _exit(ok ? 0 : 1);
}

static void start(struct truth_cache *c, struct maker *m, const struct fsdp_case *of, int item, double deadline_s, struct error *error)
{
    static int serial;
    int ends[2];
    pid_t self = getpid();
    snprintf(m->folder, sizeof m->folder, "%s/unfinished.%ld.%d", c->folder, (long)self, serial++);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        error_set(error, "cannot make a pipe: %s", strerror(errno));
        return;
    }
    fflush(NULL);
    m->pid = fork();
    if (m->pid == 0)
        make(of, m->folder, ends[1], self);
    close(ends[1]);
    m->pipe = ends[0];
    m->item = item;
    m->until_s = launch_now() + deadline_s;
    if (m->pid < 0) {
        error_set(error, "cannot start a process: %s", strerror(errno));
        close(ends[0]);
        m->pid = 0;
    }
}

static void finish(struct truth_cache *c, struct maker *m, const struct fsdp_case *of, int status, bool late, struct error *error)
{
    char path[4096], text[1000];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        truth_cache_path(c, of, path, sizeof path);
        if (!put_in_place(m->folder, path))
            error_set(error, "%s: cannot be renamed: %s", m->folder, strerror(errno));
        else
            c->made++;
    } else {
        ssize_t n = read(m->pipe, text, sizeof text - 1);
        text[n > 0 ? n : 0] = 0;
        if (late)
            error_set(error, "the truth was not made within its deadline");
        else if (n > 0)
            error_set(error, "%s", text);
        else
            error_set(error, "making the truth was ended by signal %d", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
    scratch_remove(m->folder);
    close(m->pipe);
    m->pid = 0;
}

static void poll_maker(struct truth_cache *c, struct maker *m, const struct fsdp_case *const *cases, struct error *errors)
{
    int status;
    bool late = launch_now() > m->until_s || interrupt_signal();
    if (late)
        kill(m->pid, SIGKILL);
    if (waitpid(m->pid, &status, late ? 0 : WNOHANG) == m->pid)
        finish(c, m, cases[m->item], status, late, &errors[m->item]);
}

// Keys of the cases, and for each the first case that has the same key.
static bool find_leaders(const struct fsdp_case *const *cases, int count, int *leader)
{
    char(*keys)[33] = calloc((size_t)count + 1, sizeof *keys);
    for (int i = 0; keys != NULL && i < count; i++) {
        truth_key(cases[i], keys[i]);
        for (leader[i] = 0; strcmp(keys[leader[i]], keys[i]) != 0; leader[i]++)
            continue;
    }
    free(keys);
    return keys != NULL;
}

// The next case whose truth must be made, or count.
static int next_missing(struct truth_cache *c, const struct fsdp_case *const *cases, int count, const int *leader, int i)
{
    for (; i < count; i++) {
        if (leader[i] != i)
            continue;
        bool first = count_key(c, cases[i]), whole = is_whole(c, cases[i]);
        c->found += first && whole;
        if (!whole)
            break;
    }
    return i;
}

void truth_cache_fill(struct truth_cache *c, const struct fsdp_case *const *cases, int count, double deadline_s, struct error *errors)
{
    struct maker makers[MAKERS] = {0};
    int *leader = calloc((size_t)count + 1, sizeof *leader);
    int limit = launch_cores() < MAKERS ? 1 : MAKERS;
    if (leader == NULL || !find_leaders(cases, count, leader)) {
        for (int i = 0; i < count; i++)
            error_set(&errors[i], "out of memory");
        free(leader);
        return;
    }
    for (int next = next_missing(c, cases, count, leader, 0), busy = 1; next < count || busy > 0; usleep(busy > 0 ? 1000 : 0)) {
        if (interrupt_signal())
            next = count;
        for (int i = 0; i < limit && next < count; i++)
            if (makers[i].pid == 0) {
                start(c, &makers[i], cases[next], next, deadline_s, &errors[next]);
                next = next_missing(c, cases, count, leader, next + 1);
            }
        busy = 0;
        for (int i = 0; i < MAKERS; i++)
            if (makers[i].pid != 0) {
                poll_maker(c, &makers[i], cases, errors);
                busy += makers[i].pid != 0;
            }
    }
    for (int i = 0; i < count; i++)
        if (errors[leader[i]].text[0] != 0 && leader[i] != i)
            error_set(&errors[i], "%s", errors[leader[i]].text);
    free(leader);
}

const struct truth *truth_cache_load(struct truth_cache *c, const struct fsdp_case *of, struct error *error)
{
    char key[33], path[4096];
    truth_key(of, key);
    if (strcmp(c->loaded_key, key) == 0)
        return &c->loaded;
    if (c->loaded_key[0])
        truth_free(&c->loaded);
    c->loaded_key[0] = 0;
    truth_cache_path(c, of, path, sizeof path);
    // A worker may have damaged what its job links to.
    truth_cache_fill(c, &of, 1, DEADLINE_S, error);
    if (error->text[0] != 0 || !truth_load(of, path, &c->loaded, error))
        return NULL;
    memcpy(c->loaded_key, key, sizeof key);
    return &c->loaded;
}
