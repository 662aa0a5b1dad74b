// What the files of `fsdpmark check` share: cmd_check.c (options), check_arguments.c (what a resumed run takes over), check_plan.c
// (which cases of whom), check_run.c (running, reporting).
#ifndef HARNESS_CHECK_H
#define HARNESS_CHECK_H

#include "harness/cli/cli.h"
#include "harness/fabric/fabric.h"

struct check_request {
    struct option_list implementations;
    bool all;                     // every implementation of the suite that is a subject
    const char *profile, *pattern, *case_file, *suite, *launcher, *waivers, *probes, *counters, *fabric_name, *hostfile, *agent;
    int64_t seed, random;
    double deadline_s, budget;
    bool ungated, no_waivers;
    struct fabric *fabric;        // what fabric_name names, or NULL
    // not part of what a resumed run takes over
    const char *json, *junit, *csv, *store;
    bool tap, keep, verbose;
    int64_t resume;
};

struct check_subject {
    struct implementation implementation;
    struct plan plan;
    struct known_case *known;     // by case, or NULL
    char *absent;                 // why it does not run here, or NULL; then there is no plan
};
struct check_subjects { int count; struct check_subject *items; };

json_t *check_arguments_write(const struct check_request *r);
// Texts are borrowed from the object. False where it has none of a check.
bool check_arguments_read(struct check_request *r, json_t *arguments);

// Reads manifests and expands cases. What was asked for by name must run here; of --all-implementations what cannot is absent.
bool check_plan(const struct check_request *r, struct check_subjects *out, struct error *error);
// Takes over what a stored run knows of them.
bool check_plan_known(const struct stored_run *run, struct check_subjects *subjects, struct error *error);
void check_plan_free(struct check_subjects *subjects);

// Runs them, stores and reports; the exit status.
int check_run(const struct cli *cli, const struct check_request *r, struct check_subjects *subjects, const struct waiver_list *waivers,
              const char *store);

#endif
