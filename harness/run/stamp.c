// See stamp.h. Sources: uname(2), /proc/cpuinfo, sysconf(3), the libraries' own version functions.
#include "harness/run/stamp.h"

#include <dlfcn.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <yaml.h>

#include "harness/launch/launch.h"
#include "harness/protocol/memory.h"
#include "version.h"

static const double TOOL_DEADLINE_S = 10;

char *stamp_first_line(const char *const *command)
{
    char text[512];
    int status;
    struct error error = {0};
    if (!launch_capture(command, NULL, "/", TOOL_DEADLINE_S, text, sizeof text, &status, &error) || status != 0)
        return NULL;
    text[strcspn(text, "\n")] = 0;
    return text[0] != 0 ? memory_text(text) : NULL;
}

char *stamp_cpu(void)
{
    char line[512], *found = NULL;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && found == NULL && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        line[strcspn(line, "\n")] = 0;
        if (colon != NULL && strncmp(line, "model name", 10) == 0)
            found = memory_text(colon + 1 + strspn(colon + 1, " "));
    }
    if (file != NULL)
        fclose(file);
    return found;
}

const char *stamp_openblas(void)
{
    char *(*config)(void);
    // ISO C has no conversion from an object pointer to a function pointer.
    void *symbol = dlsym(RTLD_DEFAULT, "openblas_get_config");
    memcpy(&config, &symbol, sizeof config);
    return symbol != NULL ? config() : NULL;
}

static void set_text(json_t *object, const char *name, const char *value)
{
    json_object_set_new(object, name, value != NULL ? json_string(value) : json_null());
}

static json_t *libraries(void)
{
    static const char *const mpirun[] = {"mpirun", "--version", NULL};
    json_t *out = json_object();
    char *mpi = stamp_first_line(mpirun);
    set_text(out, "openblas", stamp_openblas());
    set_text(out, "jansson", JANSSON_VERSION);
    set_text(out, "libyaml", yaml_get_version_string());
    set_text(out, "sqlite", sqlite3_libversion());
    set_text(out, "mpirun", mpi);
    free(mpi);
    return out;
}

// The job of Slurm that this is in; nothing where it is in none. Source: sbatch(1), output environment variables.
static json_t *slurm(void)
{
    static const char *const facts[][2] = {
        {"job_id", "SLURM_JOB_ID"}, {"cluster", "SLURM_CLUSTER_NAME"}, {"partition", "SLURM_JOB_PARTITION"}, {"nodes", "SLURM_JOB_NUM_NODES"},
        {"nodelist", "SLURM_JOB_NODELIST"}, {"topology", "SLURM_TOPOLOGY_ADDR"},
    };
    json_t *out = getenv("SLURM_JOB_ID") != NULL ? json_object() : NULL;
    for (size_t i = 0; out != NULL && i < sizeof facts / sizeof *facts; i++)
        set_text(out, facts[i][0], getenv(facts[i][1]));
    return out;
}

json_t *stamp_make(uint64_t seed)
{
    struct utsname u;
    json_t *out = json_object();
    char *cpu = stamp_cpu(), *kernel = NULL;
    if (uname(&u) == 0) {
        kernel = memory_format("%s %s %s", u.sysname, u.release, u.machine);
        set_text(out, "host", u.nodename);
    }
    set_text(out, "kernel", kernel);
    set_text(out, "cpu", cpu);
    json_object_set_new(out, "cores", json_integer(launch_cores()));
    json_object_set_new(out, "memory_bytes", json_integer((json_int_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)));
    set_text(out, "compiler", "gcc " __VERSION__);
    set_text(out, "version", FSDPMARK_VERSION);
    set_text(out, "commit", FSDPMARK_COMMIT);
    json_object_set_new(out, "seed", json_integer((json_int_t)seed));
    json_object_set_new(out, "libraries", libraries());
    json_t *job = slurm();
    if (job != NULL)
        json_object_set_new(out, "slurm", job);
    free(cpu);
    free(kernel);
    return out;
}
