// fsdp-reference: the reference trainer as a worker of the protocol, the maker of truths, and a benchmark of its own step.
#include <stdio.h>
#include <string.h>

#include "harness/protocol/case.h"
#include "reference/backends/choose.h"
#include "reference/truth/truth.h"
#include "reference/worker/bench.h"
#include "reference/worker/overlap.h"
#include "reference/worker/serve.h"
#include "reference/worker/turns.h"
#include "version.h"

#ifdef __SANITIZE_ADDRESS__
// MPI_Finalize unloads components that leave memory behind, in modules that no suppression can name any more, and whose threads may
// still run, which the sanitizer's slower exit turns into a crash: here nothing is unloaded. Leaks of the engine are looked for in
// its own tests.
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return 1; }
int dlclose(void *module);
int dlclose(void *module)
{
    (void)module;
    return 0;
}
#endif

static int help(void)
{
    puts("fsdp-reference: the reference FSDP trainer\n"
         "\n"
         "  --worker            serve the cases of $FSDPMARK_JOB/job.json (docs/protocol.md); under mpirun for several ranks\n"
         "  --truth FOLDER...   make the truth of FOLDER/case.json into FOLDER\n"
         "  --bench CASE.json   time the steps of a case's model and sharding; one JSON line a step\n"
         "  --overlap CASE.json [STEPS]  time what of the communication of a step is not hidden (reference/worker/overlap.h)\n"
         "  --turns ROUNDS CASE.json...  time the steps of several cases in turns, with and without communication (reference/worker/turns.h)\n"
         "  --devices           what GPUs it can have; exit status 1: none, and why\n"
         "  --version, --help");
    return 0;
}

static int version(void)
{
    printf("fsdp-reference %s %s\n", FSDPMARK_VERSION, FSDPMARK_COMMIT);
    return 0;
}

static int devices(void)
{
    char text[1024];
    bool any = choose_devices(text, sizeof text);
    puts(text);
    return !any;
}

static bool make_truth(const char *folder, struct error *error)
{
    char path[4096];
    struct fsdp_case c;
    snprintf(path, sizeof path, "%s/case.json", folder);
    if (!case_read(path, &c, error))
        return false;
    bool ok = truth_make(&c, folder, error);
    case_free(&c);
    return ok;
}

static int truth(int count, char **folders)
{
    for (int i = 0; i < count; i++) {
        struct error error = {""};
        if (make_truth(folders[i], &error))
            continue;
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    if (!strcmp(verb, "--worker") && argc == 2)
        return serve_job();
    if (!strcmp(verb, "--truth") && argc > 2)
        return truth(argc - 2, argv + 2);
    if (!strcmp(verb, "--bench") && argc > 2)
        return bench_run(argc - 2, argv + 2);
    if (!strcmp(verb, "--overlap") && argc > 2)
        return overlap_run(argc - 2, argv + 2);
    if (!strcmp(verb, "--turns") && argc > 2)
        return turns_run(argc - 2, argv + 2);
    if (!strcmp(verb, "--version") && argc == 2)
        return version();
    if (!strcmp(verb, "--devices") && argc == 2)
        return devices();
    if (!strcmp(verb, "--help") && argc == 2)
        return help();
    fprintf(stderr, "fsdp-reference: found '%s', expected --worker, --truth FOLDER..., --bench CASE.json, --overlap CASE.json, --turns ROUNDS CASE.json..., --devices, --version or --help\n", verb);
    return 2;
}
