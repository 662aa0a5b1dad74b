// What every command knows.
#ifndef HARNESS_CLI_H
#define HARNESS_CLI_H

#include "harness/cli/options.h"
#include "harness/fabric/fabric.h"
#include "harness/run/session.h"

struct cli {
    const char *program;       // absolute path of this program
    const char *command_line;  // as given, for the record
    const struct command *command;
};

extern const struct command commands[]; // name NULL at the end

int cmd_check(const struct cli *cli, int argc, char **argv);
int cmd_list(const struct cli *cli, int argc, char **argv);
int cmd_doctor(const struct cli *cli, int argc, char **argv);
int cmd_selftest(const struct cli *cli, int argc, char **argv);
int cmd_report(const struct cli *cli, int argc, char **argv);
int cmd_show(const struct cli *cli, int argc, char **argv);
int cmd_matrix(const struct cli *cli, int argc, char **argv);
int cmd_compare(const struct cli *cli, int argc, char **argv);
int cmd_export(const struct cli *cli, int argc, char **argv);
int cmd_random(const struct cli *cli, int argc, char **argv);
int cmd_advise(const struct cli *cli, int argc, char **argv);
int cmd_fabric(const struct cli *cli, int argc, char **argv);
int cmd_bench(const struct cli *cli, int argc, char **argv);
int cmd_expand(const struct cli *cli, int argc, char **argv);
int cmd_net(const struct cli *cli, int argc, char **argv);

// paths.c
// The suite folder: as given, $FSDPMARK_SUITE, ../suite or ../share/fsdpmark/suite beside the program's folder, for a build
// folder deeper in the checkout each parent's suite. NULL with one line of complaint. Owned by the caller.
char *cli_suite(const struct cli *cli, const char *given);
// The folder of the built programs (${build} of manifests is $FSDPMARK_BUILD, else this). Sets the variable where unset.
void cli_export_build(const struct cli *cli);
// The store's path: as given, or the default. NULL with one line of complaint.
char *cli_store(const struct cli *cli, const char *given);
// Loads a stored run by number or by "" for the newest; complains itself.
bool cli_load_run(const struct cli *cli, const char *store, const char *word, struct store **s, struct stored_run *run);
// Writes through a report function to a file, "-" being stdout; complains itself.
bool cli_write(const struct cli *cli, const char *path, bool (*report)(const struct stored_run *, FILE *), const struct stored_run *run);
// A report of another kind: opened, written by the caller, closed. cli_close complains where one of the three failed; file may be NULL.
FILE *cli_open(const char *path);
bool cli_close(const struct cli *cli, const char *path, FILE *file, bool written);
// Who reads standard output has seen enough (`| head`) and gone: what was not written is not missed. errno does not tell: the write that failed may be long past.
bool cli_reader_is_gone(void);
// writable.c: whether a report, or a folder of figures, can be written at the end (NULL: none is wanted; a report to "-" can), and whether the folder of
// temporary files (TMPDIR) can be used. They complain themselves, and leave nothing behind.
bool cli_can_write(const struct cli *cli, const char *option, const char *path);
bool cli_can_fill(const struct cli *cli, const char *option, const char *folder);
bool cli_can_work(const struct cli *cli);
// fabric.c: the fabric of the options. Complains itself. hosts: as --hosts has it, CLI_HOSTS_OWN where it was not given.
enum { CLI_HOSTS_OWN = -1 };
struct cli_fabric_request { const char *name, *suite, *hostfile, *agent; int64_t hosts; };
bool cli_fabric(const struct cli *cli, const struct cli_fabric_request *r, struct fabric *out);
// Says that it cannot be had; frees the reason. Returns 3.
int cli_skip(const struct fabric *f, char *reason, FILE *out);
// Where the table goes that a command prints besides: not where one of its reports (NULL: none) goes.
FILE *cli_news(const char *json, const char *csv);
bool cli_one_on_stdout(const struct cli *cli, const char *json, const char *csv); // complains itself
void cli_print_table(const struct stored_run *run, bool verbose, FILE *out);

#endif
