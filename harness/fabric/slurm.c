// The nodes of the Slurm job that this process is in, asked of Slurm, and the one step that shows that ranks can start on each of them.
//
// Names and addresses differ: a name is what srun takes, the address (NodeAddr) is where rank 0 listens. The topology address is set in
// tasks alone, so a step of one task a node tells it; that step also finds a node that does not see this program, before any case does.
// Source: salloc(1) and srun(1), output environment variables; scontrol(1); slurm.conf(5), NodeAddr; topology.conf(5).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/fabric/place.h"
#include "harness/launch/launch.h"
#include "harness/protocol/memory.h"

static const double TOOL_DEADLINE_S = 60, STEP_DEADLINE_S = 120;
enum { OUTPUT = 1 << 16 };

// What a tool printed, owned by the caller; NULL where it failed, with its last words.
static char *ask(const char *const *command, double deadline_s, struct error *error)
{
    char *text = memory_zeros(OUTPUT, 1);
    int status = 1;
    struct error own = {0};
    bool ran = launch_capture(command, NULL, "/", deadline_s, text, OUTPUT, &status, &own);
    if (ran && status == 0)
        return text;
    text[strcspn(text, "\n")] = 0;
    error_set(error, "%s %s: %s", command[0], command[1], ran ? text : own.text);
    free(text);
    return NULL;
}

// The words of a text, one after the other; NULL at the end.
static char *next_line(char **at)
{
    char *line = strsep(at, "\n");
    while (line != NULL && !line[0])
        line = strsep(at, "\n");
    return line;
}

static bool read_names(struct slurm_job *job, struct error *error)
{
    const char *list = getenv("SLURM_JOB_NODELIST");
    const char *const command[] = {"scontrol", "show", "hostnames", list, NULL};
    char *text = ask(command, TOOL_DEADLINE_S, error), *at = text;
    for (char *name; text != NULL && (name = next_line(&at)) != NULL;) {
        if (job->count == FABRIC_HOSTS_MOST)
            error_set(error, "SLURM_JOB_NODELIST: found more than %d nodes, expected %d at most", FABRIC_HOSTS_MOST, FABRIC_HOSTS_MOST);
        else
            snprintf(job->nodes[job->count++].name, sizeof job->nodes->name, "%s", name);
    }
    free(text);
    return error->text[0] == 0 && (job->count > 0 || error_set(error, "SLURM_JOB_NODELIST: found no node in %s", list));
}

// "NodeName=n0 ... NodeAddr=10.0.0.1 ...", of the first node: rank 0 is there.
static bool read_address(struct slurm_job *job, struct error *error)
{
    const char *const command[] = {"scontrol", "show", "node", job->nodes[0].name, "--oneliner", NULL};
    char *text = ask(command, TOOL_DEADLINE_S, error), *found = text != NULL ? strstr(text, " NodeAddr=") : NULL;
    if (found != NULL)
        snprintf(job->address, sizeof job->address, "%.*s", (int)strcspn(found + 10, " \n"), found + 10);
    free(text);
    return job->address[0] != 0 || error->text[0] != 0 ? error->text[0] == 0 : error_set(error, "scontrol show node %s: found no NodeAddr", job->nodes[0].name);
}

// Open MPI and others take ranks from PMIx; without it the cluster's own default holds.
static bool ask_pmix(struct slurm_job *job, struct error *error)
{
    static const char *const command[] = {"srun", "--mpi=list", NULL};
    char *text = ask(command, TOOL_DEADLINE_S, error), *at = text;
    for (char *line; text != NULL && (line = next_line(&at)) != NULL;)
        job->has_pmix |= strcmp(line + strspn(line, " \t"), "pmix") == 0;
    free(text);
    return error->text[0] == 0;
}

// "n0 top.s0.n0 there" of each node, in any order.
static bool take_node(struct slurm_job *job, const char *line)
{
    char name[64], topology[200], there[8];
    if (sscanf(line, "%63s %199s %7s", name, topology, there) != 3)
        return false;
    for (int n = 0; n < job->count; n++)
        if (strcmp(job->nodes[n].name, name) == 0) {
            snprintf(job->nodes[n].topology, sizeof job->nodes[n].topology, "%s", topology);
            job->nodes[n].seen = true;
            job->nodes[n].has_program = strcmp(there, "there") == 0;
            return true;
        }
    return false;
}

static bool try_step(struct slurm_job *job, const char *program, struct error *error)
{
    static const char script[] = "echo \"$SLURMD_NODENAME ${SLURM_TOPOLOGY_ADDR:--} $(test -x \"$0\" && echo there || echo missing)\"";
    char nodes[16], tasks[16];
    snprintf(nodes, sizeof nodes, "--nodes=%d", job->count);
    snprintf(tasks, sizeof tasks, "--ntasks=%d", job->count);
    const char *const command[] = {"srun", nodes, tasks, "--ntasks-per-node=1", "--overlap", "--mpi=none", "--input=none", "sh", "-c", script, program, NULL};
    char *text = ask(command, STEP_DEADLINE_S, error), *at = text;
    for (char *line; text != NULL && (line = next_line(&at)) != NULL;)
        take_node(job, line);
    free(text);
    for (int n = 0; n < job->count && error->text[0] == 0; n++)
        if (!job->nodes[n].seen)
            return error_set(error, "node %s: found no answer of a step of one task, expected one", job->nodes[n].name);
        else if (!job->nodes[n].has_program)
            return error_set(error, "node %s: found no %s, expected the program and the job folder below a path that all nodes share", job->nodes[n].name, program);
    return error->text[0] == 0;
}

char *slurm_unavailable(void)
{
    static const char *const command[] = {"sinfo", "--noheader", NULL};
    struct error error = {0};
    char *text = ask(command, TOOL_DEADLINE_S, &error);
    if (text == NULL)
        return memory_format("%s; remedy: a node of a Slurm cluster", error.text);
    free(text);
    const char *id = getenv("SLURM_JOB_ID"), *list = getenv("SLURM_JOB_NODELIST");
    return id != NULL && list != NULL ? NULL : memory_text("this is in no Slurm job; remedy: salloc -N 2 fsdpmark ..., or the batch script of docs/fabrics.md");
}

bool slurm_open(const char *program, struct slurm_job *out, struct error *error)
{
    *out = (struct slurm_job){0};
    return read_names(out, error) && read_address(out, error) && ask_pmix(out, error) && try_step(out, program, error);
}
