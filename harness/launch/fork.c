// The launcher `fork`: the harness's side of a template (see template.h).
//
// A template serves as long as command and environment are those that it was made with: what a module reads at import cannot be changed
// by a later start. On a place with hosts to enter the template itself lives on the first of them: that brings it into the user namespace where there is
// one, and it ends with the place. Another place is another template. The environment of each rank goes into a file rank<R>.environ of the job folder, as in /proc/PID/environ.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/fabric/fabric.h"
#include "harness/launch/launchers.h"
#include "harness/launch/namespaces.h"
#include "harness/launch/template.h"

struct template {
    char *folder;
    double patience_s;
    int made;       // how many processes it has had; each has a log and an end of its own
    char **made_of; // command and environment
    pid_t keeper;   // -1 where none lives
    int channel;    // packets to and from it
};

struct template *template_new(const char *folder, double patience_s)
{
    struct template *t = calloc(1, sizeof *t);
    if (t == NULL || (t->folder = strdup(folder)) == NULL) {
        free(t);
        return NULL;
    }
    mkdir(folder, 0700);
    t->keeper = t->channel = -1;
    t->patience_s = patience_s;
    return t;
}

static void end(struct template *t)
{
    static const double patience_s = 5;
    if (t->channel >= 0)
        close(t->channel);
    // The end of the channel is the keeper's sign to end all.
    double until = launch_now() + patience_s;
    for (; t->keeper > 0 && waitpid(t->keeper, NULL, WNOHANG) == 0; usleep(500))
        if (launch_now() > until)
            kill(t->keeper, SIGKILL);
    environment_free(t->made_of);
    t->made_of = NULL;
    t->keeper = t->channel = -1;
}

void template_free(struct template *t)
{
    if (t == NULL)
        return;
    end(t);
    free(t->folder);
    free(t);
}

static const char *const *enter(const struct launch_plan *plan) { return plan->place != NULL ? fabric_place_enter(plan->place, 0) : NULL; }
static const char *const *of_place(const struct launch_plan *plan) { return plan->place != NULL ? fabric_place_environment(plan->place, 0) : NULL; }

static char **what_it_is_made_of(const struct launch_plan *plan)
{
    // The empty text cannot be in either list's place: an argument may be empty, an environment's pair has its sign.
    static const char *const border[] = {"", NULL};
    return argv_append(argv_append(argv_append(argv_append(argv_append(NULL, enter(plan)), plan->command), border), of_place(plan)), plan->environment);
}

static bool same(char *const *a, char *const *b)
{
    int i = 0;
    for (; a[i] != NULL && b[i] != NULL; i++)
        if (strcmp(a[i], b[i]) != 0)
            return false;
    return a[i] == b[i];
}

static bool is_alive(const struct template *t)
{
    char byte;
    // Nothing is expected here: a packet is none, the end of the channel is the end of the keeper.
    return t->channel >= 0 && recv(t->channel, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && (errno == EAGAIN || errno == EINTR);
}

static bool make_task(const struct template *t, const struct launch_plan *plan, struct keeper_task *task)
{
    char channel[64];
    snprintf(channel, sizeof channel, "FSDPMARK_TEMPLATE=%d", KEEPER_CHANNEL);
    const char *const pairs[] = {channel, NULL};
    const char *const *lists[] = {of_place(plan), plan->environment, pairs};
    *task = (struct keeper_task){argv_append(argv_append(NULL, enter(plan)), plan->command), environment_make(lists, 3), strdup(t->folder), NULL, NULL, 0};
    return task->argv != NULL && task->envp != NULL && task->folder != NULL && asprintf(&task->log, "%s/template%d.log", t->folder, t->made) > 0 &&
           asprintf(&task->end, "%s/template%d.end", t->folder, t->made) > 0;
}

static bool begin(struct template *t, const struct launch_plan *plan, struct error *error)
{
    struct keeper_task task = {0};
    int pair[2];
    t->made++;
    bool ok = make_task(t, plan, &task) || error_set(error, "out of memory");
    if (ok && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        ok = error_set(error, "cannot make a pair of sockets: %s", strerror(errno));
    if (ok) {
        fflush(NULL);
        pid_t harness = getpid();
        if ((t->keeper = fork()) == 0)
            template_keep(&task, t->patience_s, pair[1], harness);
        t->channel = pair[0];
        close(pair[1]);
        ok = t->keeper > 0 || error_set(error, "cannot start a process: %s", strerror(errno));
    }
    keeper_task_free(&task);
    if (!ok)
        end(t);
    return ok;
}

static bool write_environment(const struct launch_plan *plan, int rank, int port, struct error *error)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/rank%d.environ", plan->folder, rank);
    char **envp = launcher_environment(plan, rank, port);
    FILE *file = envp == NULL ? NULL : fopen(path, "we");
    bool ok = file != NULL;
    for (int i = 0; ok && envp[i] != NULL; i++)
        ok = fwrite(envp[i], strlen(envp[i]) + 1, 1, file) == 1;
    if (file != NULL)
        ok &= fclose(file) == 0;
    environment_free(envp);
    return ok || error_set(error, "%s: %s", path, strerror(errno));
}

static bool request(struct template *t, const struct launch_plan *plan)
{
    char packet[4300];
    int size = snprintf(packet, sizeof packet, "%s %d %s", namespaces_needed(plan) ? "enter" : "start", plan->ranks, plan->folder);
    return send(t->channel, packet, (size_t)size, MSG_NOSIGNAL) == size;
}

// The template's output lies beside that of the ranks, for who looks for the reason of a failure there.
static void link_log(const struct template *t, const char *folder)
{
    char from[4200], to[4200];
    snprintf(from, sizeof from, "%s/template%d.log", t->folder, t->made);
    snprintf(to, sizeof to, "%s/template.log", folder);
    int ignored = symlink(from, to);
    (void)ignored;
}

bool launcher_fork_start(const struct launch_plan *plan, struct launch *launch, struct error *error)
{
    struct template *t = plan->template;
    int port = launcher_free_port();
    bool enters = namespaces_needed(plan);
    if (plan->place != NULL && fabric_place_hosts(plan->place) > 1 && !enters)
        return error_set(error, "launcher 'fork': found %d machines, expected this one: a template cannot fork on others", fabric_place_hosts(plan->place));
    if (t == NULL)
        return error_set(error, "launcher 'fork': found no template in the plan of the start, expected one");
    if (port < 0)
        return error_set(error, "no free port on 127.0.0.1: %s", strerror(errno));
    for (int r = 0; r < plan->ranks; r++)
        if (!write_environment(plan, r, port, error) || (enters && !namespaces_write(plan, r, error)))
            return false;
    char **made_of = what_it_is_made_of(plan);
    if (made_of == NULL)
        return error_set(error, "out of memory");
    bool asked = is_alive(t) && same(t->made_of, made_of) && request(t, plan);
    launch->fresh = !asked;
    if (!asked) {
        end(t);
        asked = begin(t, plan, error) && (request(t, plan) || error_set(error, "the template's keeper cannot be asked: %s", strerror(errno)));
        t->made_of = made_of;
    } else {
        environment_free(made_of);
    }
    link_log(t, plan->folder);
    launch->template = t;
    launch->keeper = t->keeper;
    return asked;
}

void template_poll(struct launch *l)
{
    char packet[16];
    struct template *t = l->template;
    if (l->over)
        return;
    ssize_t size = t->channel < 0 ? 0 : recv(t->channel, packet, sizeof packet, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    l->over = true;
    l->lost = size <= 0;
    if (l->lost || packet[0] == 'g')
        end(t);
}

void template_stop(struct launch *l, double grace_s)
{
    char packet[32];
    int size = snprintf(packet, sizeof packet, "stop %d", (int)(grace_s * 10));
    ssize_t sent = send(l->template->channel, packet, (size_t)size, MSG_NOSIGNAL);
    (void)sent; // a keeper that is gone has nothing left to end
}
