// fsdpmark: the command line. Finds the command; each has a file of its own, cmd_<name>.c.
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/cli/cli.h"
#include "harness/fabric/fabric.h"
#include "harness/launch/interrupt.h"
#include "harness/launch/launch.h"
#include "harness/protocol/document.h"
#include "harness/protocol/memory.h"
#include "version.h"

const struct command commands[] = {
    {"check", "Trains the suite's cases on implementations and judges every step. Exit status: 0 all PASS, 1 some FAIL, 2 unusable input, 3 BROKEN.",
     "[options]", cmd_check},
    {"list", "Lists what the suite has.", "[implementations|cases|checks|profiles|faults|fabrics|workloads] [options]", cmd_list},
    {"doctor", "Tells what this machine has and lacks, each with the reason and the remedy.", "[options]", cmd_doctor},
    {"selftest", "Runs every seeded fault and correct programs: each fault must be found, no false alarm raised.", "[options]", cmd_selftest},
    {"report", "Writes the report of a stored run: HTML, Markdown, CSV, JSON and figures.", "[RUN] [options]", cmd_report},
    {"expand", "Lists the fully specified cases of a selection, or writes them as case.json files.", "[options]", cmd_expand},
    {"random", "Writes a case file of random correct configurations, for check --case.", "[options]", cmd_random},
    {"show", "Prints the verdict table of a stored run; without RUN, lists the runs.", "[RUN] [options]", cmd_show},
    {"advise", "Tells which sharding strategy suits a model on an interconnect, and which bandwidth it needs.", "[options]", cmd_advise},
    {"fabric", "Tells which fabrics can be had here; with FABRIC, holds it up until Ctrl-C and tells how to enter its hosts.", "[FABRIC] [options]", cmd_fabric},
    {"bench", "Times training steps of implementations side by side, their numbers judged in the same run. Exit status: 0 all measured, 1 some WRONG, 2 unusable input, 3 BROKEN or nothing measured.",
     "[options]", cmd_bench},
    {"matrix", "Shows which implementation can do what: the newest verdicts of the store by capability.", "[options]", cmd_matrix},
    {"compare", "Compares two stored runs. Exit status: 0 nothing worse, 1 a regression beyond the threshold or a worse verdict, 2 unusable input, 3 nothing in common.",
     "RUN RUN [options]", cmd_compare},
    {"net", "Measures an interconnect: collectives of sharded training by size and form, alone, at once and beside computing, every buffer checked. "
            "Exit status: 1 wrong data, 3 nothing measured.", "[options]", cmd_net},
    {"export", "Writes everything of a stored run for other programs: CSV, JSON, and timelines as traces.", "[RUN] [options]", cmd_export},
    {0},
};

static void usage(FILE *out)
{
    fprintf(out, "usage: fsdpmark COMMAND [options]\n\nTests implementations of Fully Sharded Data Parallel training.\n\n");
    for (const struct command *c = commands; c->name != NULL; c++)
        fprintf(out, "  %-10s %s\n", c->name, c->summary);
    fprintf(out, "\nfsdpmark help COMMAND tells its options; fsdpmark --version the version.\n");
}

static const struct command *find(const char *name)
{
    for (const struct command *c = commands; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static int unknown(const char *word)
{
    const char *names[sizeof commands / sizeof *commands + 1]; // with "help" and the end
    int count = 0;
    for (const struct command *c = commands; c->name != NULL; c++)
        names[count++] = c->name;
    names[count++] = "help";
    names[count] = NULL;
    const char *near = nearest_name(word, names);
    fprintf(stderr, "fsdpmark: unknown %s '%s', %s%s\n", word[0] == '-' ? "option" : "command", word,
            near != NULL ? "nearest is " : "see fsdpmark --help", near != NULL ? near : "");
    return 2;
}

static char *join(int argc, char **argv)
{
    char *line = memory_text("fsdpmark");
    for (int i = 1; i < argc; i++) {
        char *longer = memory_format("%s %s", line, argv[i]);
        free(line);
        line = longer;
    }
    return line;
}

// Truths and judging run single-threaded kernels; the pool that OpenBLAS starts at load would only sit beside the workers.
static void one_blas_thread(void)
{
    void (*set)(int);
    void *symbol = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    memcpy(&set, &symbol, sizeof set);
    if (symbol != NULL)
        set(1);
}

static int run(const struct command *command, int argc, char **argv, int skip)
{
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = 0;
    char *line = join(argc, argv);
    struct cli cli = {program, line, command};
    cli_export_build(&cli);
    interrupt_install();
    one_blas_thread();
    int status = command->run(&cli, argc - skip, argv + skip);
    free(line);
    return status;
}

// A verdict table that a full disk swallowed is no success; a reader that has seen enough (`| head`) is none of our business.
static int finish(const char *name, int status)
{
    errno = 0;
    bool lost = fflush(stdout) != 0 || ferror(stdout);
    if (!lost || errno == EPIPE || cli_reader_is_gone())
        return status;
    fprintf(stderr, "fsdpmark %s: standard output: cannot be written: %s\n", name, errno != 0 ? strerror(errno) : "an earlier error");
    return status == 0 ? 2 : status;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "__rank") == 0)
        return launch_rank_main(argc - 1, argv + 1);
    if (argc > 1 && (strcmp(argv[1], "__enter") == 0 || strcmp(argv[1], "__agent") == 0))
        return fabric_enter_main(argc - 1, argv + 1);
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0) {
        printf("fsdpmark %s (%s)\n", FSDPMARK_VERSION, FSDPMARK_COMMIT);
        return 0;
    }
    bool help = strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
    if (help && argc == 2) {
        usage(stdout);
        return 0;
    }
    const struct command *command = find(help ? argv[2] : word);
    if (command == NULL)
        return unknown(help ? argv[2] : word);
    if (help) {
        char *ask[] = {argv[2], "--help", NULL};
        return run(command, 2, ask, 0);
    }
    return finish(command->name, run(command, argc, argv, 1));
}
