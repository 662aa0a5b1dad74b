// fsdpmark doctor: what this machine has and lacks, why that matters, and what to do.
//
// A table of probes; each says what it found or why it found nothing. Nothing is installed, changed or sent.
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/advise/settings.h"
#include "harness/cli/cli.h"
#include "harness/fabric/fabric.h"
#include "harness/launch/interrupt.h"
#include "harness/launch/launch.h"
#include "harness/probes/counters.h"
#include "harness/probes/summary.h"
#include "harness/protocol/memory.h"
#include "harness/run/run.h"
#include "harness/run/stamp.h"

static const double TOOL_DEADLINE_S = 60;

// Returns whether it is there; text: what was found, or the reason why not. Both are short.
typedef bool probe(char *text, size_t size);

static bool first_line(const char *const *command, char *text, size_t size)
{
    char output[4096];
    int status = 0;
    struct error error = {0};
    if (!launch_capture(command, NULL, "/", TOOL_DEADLINE_S, output, sizeof output, &status, &error)) {
        snprintf(text, size, "%.200s", error.text);
        return false;
    }
    output[strcspn(output, "\n")] = 0;
    snprintf(text, size, "%.200s%s", output, status != 0 ? " (it failed)" : "");
    return status == 0;
}

static bool library(const char *name, char *text, size_t size)
{
    void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    snprintf(text, size, "%s", handle != NULL ? name : dlerror());
    if (handle != NULL)
        dlclose(handle);
    return handle != NULL;
}

static bool probe_cpu(char *text, size_t size)
{
    char *model = stamp_cpu();
    snprintf(text, size, "%d cores, %s", launch_cores(), model != NULL ? model : "unknown model");
    free(model);
    return launch_cores() >= 2;
}

static bool probe_memory(char *text, size_t size)
{
    double gib = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / (1 << 30);
    snprintf(text, size, "%.1f GiB", gib);
    return gib >= 4;
}

static bool probe_disk(char *text, size_t size)
{
    const char *folder = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    struct statvfs s;
    if (statvfs(folder, &s) != 0) {
        snprintf(text, size, "%s cannot be looked at", folder);
        return false;
    }
    double gib = (double)s.f_bavail * (double)s.f_frsize / (1 << 30);
    snprintf(text, size, "%.1f GiB free in %s", gib, folder);
    return gib >= 1 && access(folder, W_OK) == 0;
}

static bool probe_mpi(char *text, size_t size)
{
    static const char *const command[] = {"mpirun", "--version", NULL};
    return first_line(command, text, size);
}

static bool probe_blas(char *text, size_t size)
{
    const char *config = stamp_openblas();
    snprintf(text, size, "%s", config != NULL ? config : "the BLAS of this build is not OpenBLAS");
    return config != NULL;
}

static bool probe_papi(char *text, size_t size)
{
    return library("libpapi.so", text, size) || library("libpapi.so.7.0", text, size) || library("libpapi.so.6.0", text, size);
}

static bool probe_gnuplot(char *text, size_t size)
{
    static const char *const command[] = {"gnuplot", "--version", NULL};
    return first_line(command, text, size);
}

static bool probe_gpu(char *text, size_t size)
{
    static const char *const command[] = {"nvidia-smi", "-L", NULL};
    return first_line(command, text, size);
}

static bool probe_cuda(char *text, size_t size)
{
    return library("libcuda.so.1", text, size);
}

static bool probe_nvcc(char *text, size_t size)
{
    static const char *const command[] = {"sh", "-c", "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc) --version | sed -n 's/.*release \\([0-9.]*\\).*/nvcc \\1/p' | grep .", NULL};
    bool has = first_line(command, text, size);
    if (!has)
        snprintf(text, size, "found no nvcc");
    return has;
}

static bool probe_nccl(char *text, size_t size)
{
    return library("libnccl.so.2", text, size);
}

static bool probe_namespaces(char *text, size_t size)
{
    pid_t pid = fork();
    int status = 1;
    if (pid == 0)
        _exit(unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) == 0 ? 0 : 1);
    bool ok = pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    snprintf(text, size, ok ? "network namespaces can be made" : "the kernel or container refuses a network namespace");
    return ok;
}

// tbf wakes up by a timer: without high resolution that is a tick of the kernel.
static bool probe_timers(char *text, size_t size)
{
    struct timespec t = {0};
    clock_getres(CLOCK_MONOTONIC, &t);
    snprintf(text, size, "resolution %g us", 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec);
    return t.tv_sec == 0 && t.tv_nsec < 1000000;
}

static bool probe_store(char *text, size_t size)
{
    struct error error = {0};
    char *path = session_default_store(&error);
    snprintf(text, size, "%s", path != NULL ? path : error.text);
    free(path);
    return path != NULL;
}

static const struct row {
    const char *name;
    bool required;
    probe *look;
    const char *without;  // what is not possible without it
    const char *remedy;
} rows[] = {
    {"cores", false, probe_cpu, "ranks share one core: timings mean nothing", "a machine with 2 cores or more"},
    {"memory", false, probe_memory, "larger cases and 8 PyTorch ranks do not fit", "4 GiB or more"},
    {"disk", true, probe_disk, "job folders need room", "set TMPDIR to a folder with 1 GiB free"},
    {"results", true, probe_store, "results cannot be stored by default", "set FSDPMARK_STORE or give --store"},
    {"Open MPI", true, probe_mpi, "the launcher mpirun, and the reference at more than one rank, cannot run", "make setup (package openmpi-bin)"},
    {"OpenBLAS", false, probe_blas, "figures of speed are not comparable", "make setup (package libopenblas-dev)"},
    {"gnuplot", false, probe_gnuplot, "reports have no figures", "make setup (package gnuplot-nox)"},
    {"PAPI", false, probe_papi, "no hardware counters", "make setup (package libpapi-dev)"},
    {"GPU", false, probe_gpu, "nothing runs on CUDA", "a machine with an NVIDIA GPU and its driver"},
    {"CUDA driver", false, probe_cuda, "nothing runs on CUDA", "install the driver of the GPU"},
    {"CUDA toolkit", false, probe_nvcc, "make builds nothing for GPUs", "put nvcc into PATH or /usr/local/cuda/bin"},
    {"NCCL", false, probe_nccl, "no collectives between GPUs outside PyTorch", "install libnccl2"},
    {"timers", false, probe_timers, "packets of emulated fabrics leave in steps of a tick: short messages wait for it", "a kernel with high-resolution timers"},
    {"namespaces", false, probe_namespaces, "emulated fabrics need a network namespace per rank", "run as root, or allow user namespaces"},
};

// One line of the answer: kept for JSON, printed for people.
static void say(json_t *list, bool as_json, const char *name, bool has, bool required, const char *found, const char *without, const char *remedy)
{
    json_array_append_new(list, json_pack("{ss sb sb ss ss* ss*}", "name", name, "has", has, "required", required, "found", found,
                                          "without", has ? NULL : without, "remedy", has ? NULL : remedy));
    if (as_json)
        return;
    printf("%-20s %-8s %s\n", name, has ? "has" : required ? "MISSING" : "lacks", found);
    if (!has)
        printf("%29s without it: %s; remedy: %s\n", "", without, remedy);
}

// What the versions command printed, on one line.
static void versions_line(const struct implementation *i, char *text, size_t size)
{
    json_t *versions = session_versions(i), *value;
    const char *name;
    text[0] = 0;
    json_object_foreach(versions, name, value)
        if (json_is_string(value)) {
            size_t used = strlen(text);
            snprintf(text + used, size - used, "%s%s %s", used ? ", " : "", name, json_string_value(value));
        }
    if (!text[0])
        snprintf(text, size, "ready");
    json_decref(versions);
}

// Each implementation of the suite, by the command of its manifest that tells whether it can run here.
static bool look_at_implementations(const struct cli *cli, const char *suite, json_t *list, bool as_json)
{
    struct string_list names = {0};
    struct error error = {0};
    bool ok = suite_list_implementations(suite, &names, &error);
    for (int k = 0; ok && k < names.count && interrupt_signal() == 0; k++) {
        struct implementation i;
        if (!(ok = implementation_read(names.items[k], suite, &i, &error)))
            break;
        char text[300] = "", without[200];
        struct error why = {0};
        bool has = session_installed(&i, &why);
        if (interrupt_signal() != 0) { // what was asked did not answer: it is not known to be missing
            implementation_free(&i);
            break;
        }
        if (has)
            versions_line(&i, text, sizeof text);
        else
            snprintf(text, sizeof text, "%.290s", why.text);
        char *remedy = strstr(text, "; remedy: "); // it has a place of its own here
        if (remedy != NULL)
            *remedy = 0;
        snprintf(without, sizeof without, "%.150s is not judged", i.title);
        say(list, as_json, i.name, has, false, text, without, i.remedy[0] ? i.remedy : "make it run by its manifest");
        implementation_free(&i);
    }
    if (!ok)
        options_bad(cli->command, "%s", error.text);
    string_list_free(&names);
    return ok;
}

// What ranks can talk over here; of what can be had, what Open MPI is told on it, since its own choice may be a worse one (docs/fabrics.md).
static bool look_at_fabrics(const struct cli *cli, const char *suite, json_t *list, bool as_json)
{
    struct string_list names = {0}, titles = {0};
    struct error error = {0};
    struct fabric f;
    bool ok = fabric_list(suite, &names, &titles, &error);
    for (int i = 0; ok && i < names.count && (ok = fabric_read(names.items[i], suite, &f, &error)); i++) {
        char name[64], text[720];
        char *reason = fabric_unavailable(&f), *remedy = reason != NULL ? strstr(reason, "; remedy: ") : NULL;
        int used = snprintf(text, sizeof text, "%.200s", reason == NULL ? f.title : reason);
        for (char **m = f.mca; reason == NULL && *m != NULL && used < 500; m++)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s%.80s", m == f.mca ? "; Open MPI: " : " ", *m);
        if (reason == NULL && settings_tcp(f.mca))
            snprintf(text + used, sizeof text - (size_t)used, "; advise -f %.50s measures whether others are better", f.name);
        if (remedy != NULL)
            text[remedy - reason < 200 ? remedy - reason : 200] = 0;
        snprintf(name, sizeof name, "fabric %.50s", f.name);
        say(list, as_json, name, reason == NULL, false, text, "nothing is judged or measured on it", remedy != NULL ? remedy + strlen("; remedy: ") : "what the reason asks for");
        free(reason);
        fabric_free(&f);
    }
    if (!ok)
        options_bad(cli->command, "%s", error.text);
    string_list_free(&names);
    string_list_free(&titles);
    return ok;
}

// ---- PAPI ----

struct papi_look { json_t *list; bool as_json; };

// A component of PAPI: what it counts here, or its own reason.
static void look_at_component(void *context, const struct counters_component *c)
{
    struct papi_look *l = context;
    char name[64], text[1200];
    bool has = c->reason[0] == 0;
    snprintf(name, sizeof name, "PAPI %.50s", c->name);
    snprintf(text, sizeof text, "%.300s", c->reason);
    if (has)
        snprintf(text, sizeof text, "%d events%s%s%s%s", c->events, c->usable[0] ? "; counts " : "", c->usable, c->refused[0] ? "; refuses " : "", c->refused);
    if (strcmp(c->name, "sde") == 0)
        say(l->list, l->as_json, name, true, false, "software-defined events are looked for in each worker; the reference publishes some", "", "");
    else
        say(l->list, l->as_json, name, has, false, text, c->about, "what the reason asks for");
}

static bool is_energy(const char *name)
{
    return strcmp(name, "rapl") == 0 || strcmp(name, "powercap") == 0 || strcmp(name, "nvml") == 0;
}

static void look_for_energy(void *context, const struct counters_component *c)
{
    if (is_energy(c->name))
        snprintf(context, 300, "%s%.250s", c->reason[0] ? "" : "+", c->reason[0] ? c->reason : c->name);
    else if (strstr(c->usable, "RAPL_ENERGY") != NULL)
        snprintf(context, 300, "+%s", c->name);
}

static void look_at_papi(json_t *list, bool as_json)
{
    char why[300], text[300], energy[300] = "-this PAPI has no component rapl, powercap or nvml, and perf_event tells no energy here";
    struct papi_look l = {list, as_json};
    if (counters_components(look_at_component, &l, why, sizeof why) == 0) {
        say(list, as_json, "PAPI components", false, false, why, "check --counters refuses", "make setup (package libpapi-dev), then make");
        return;
    }
    counters_components(look_for_energy, energy, why, sizeof why);
    say(list, as_json, "PAPI energy", energy[0] == '+', false, energy[0] == '+' || energy[0] == '-' ? energy + 1 : energy, "no energy in check --counters",
        "a PAPI that was built with one of them, and the right to read it");
    counters_thread_reason(text, sizeof text);
    say(list, as_json, "PAPI threads", text[0] == 0, false, text[0] ? text : "every thread of a worker is counted", "the thread that sets the marks is counted alone",
        "a machine with hardware counters: PAPI tries one before it attaches");
    counters_kernel_reason(text, sizeof text);
    say(list, as_json, "PAPI kernel", text[0] == 0, false, text[0] ? text : "what the kernel does for a worker is counted in it",
        "user mode is counted alone, context switches not at all", "root, or /proc/sys/kernel/perf_event_paranoid at 1 or less");
}

// The program that runs on GPUs: whether it was built, and what it says of the devices here.
static void look_at_cuda(json_t *list, bool as_json)
{
    const char *folder = getenv("FSDPMARK_BUILD");
    char *program = memory_format("%s/fsdp-reference-cuda", folder != NULL ? folder : "."), text[300] = "";
    const char *const command[] = {program, "--devices", NULL};
    bool built = access(program, X_OK) == 0, has = built && first_line(command, text, sizeof text);
    if (!built)
        snprintf(text, sizeof text, "fsdp-reference-cuda was not built: make info says why");
    else if (!has)
        text[strlen(text) - strlen(" (it failed)") * (strstr(text, " (it failed)") != NULL)] = 0; // it says itself why
    say(list, as_json, "CUDA of the reference", has, false, text, "the reference computes on the CPU alone", built ? "a GPU, and a driver for the toolkit of this build" : "make CUDA=1");
    free(program);
}

// The preloaded libraries (docs/probes.md), those that were built.
static void look_at_probes(const struct cli *cli, json_t *list, bool as_json)
{
    char *folder = probing_folder(cli->program);
    for (int i = 0; i < PROBE_IDS; i++) {
        const char *probe = probe_name((enum probe_id)i);
        char *name = memory_format("probe %s", probe), *file = memory_format("%s/libfsdpmark-probe-%s.so", folder != NULL ? folder : ".", probe);
        bool has = folder != NULL && access(file, R_OK) == 0;
        say(list, as_json, name, has, false, has ? file : "its library was not built", "check --probes refuses its name",
            i == PROBE_PAPI ? "make setup (package libpapi-dev), then make" : "make, or make install");
        free(name);
        free(file);
    }
    free(folder);
}

int cmd_doctor(const struct cli *cli, int argc, char **argv)
{
    bool as_json = false;
    const char *given = NULL;
    int words, lacking = 0;
    const struct option table[] = {{"json", 0, OPTION_FLAG, &as_json, NULL, "as JSON"},
                                   {"suite", 0, OPTION_TEXT, &given, "FOLDER", "the suite; default $FSDPMARK_SUITE, or the one beside the program"}, {0}};
    enum options_result parsed = options_parse(cli->command, table, argc, argv, NULL, 0, &words);
    if (parsed != OPTIONS_RUN)
        return parsed == OPTIONS_HELP ? 0 : 2;
    char *suite = cli_can_work(cli) ? cli_suite(cli, given) : NULL; // else each program that is asked would seem to be missing
    if (suite == NULL)
        return 2;
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        char text[300] = "";
        bool has = r->look(text, sizeof text);
        lacking += r->required && !has;
        say(list, as_json, r->name, has, r->required, text, r->without, r->remedy);
    }
    look_at_cuda(list, as_json);
    look_at_probes(cli, list, as_json);
    look_at_papi(list, as_json);
    bool ok = look_at_fabrics(cli, suite, list, as_json) && look_at_implementations(cli, suite, list, as_json);
    int signal = interrupt_signal();
    if (signal != 0)
        fprintf(stderr, "fsdpmark doctor: interrupted: the rest was not looked at\n");
    if (as_json && ok) {
        json_dumpf(list, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(list);
    free(suite);
    return signal != 0 ? 128 + signal : !ok ? 2 : lacking > 0 ? 1 : 0;
}
