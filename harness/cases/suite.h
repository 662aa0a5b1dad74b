// What is asked: implementations (manifests), cases and profiles of suite/, expanded to fully specified cases.
//
// All YAML is read through one located tree (harness/protocol/document.h), so that every complaint names file and line.
#ifndef HARNESS_SUITE_H
#define HARNESS_SUITE_H

#include "harness/protocol/case.h"

struct string_list { int count; char **items; };

// suite/implementations/NAME/implementation.yaml
struct implementation {
    char *name, *title;           // of a variant: NAME:VARIANT
    char *variant;                // the one that was asked for, or NULL
    struct string_list variants;  // names of all that the manifest has
    char *folder;                 // of the manifest, absolute
    struct string_list command;   // argv; ${folder}, ${build}, ${python} are replaced
    struct string_list installed; // command that exits 0 where it can run here; its last output line says why not
    char *remedy;                 // what to do where it is not installed
    char *note;                   // what every verdict on it must be read with, or ""
    bool no_subject;              // not among --all-implementations: it tests the harness, or is an example
    struct string_list versions;  // command that prints "name version" lines
    struct string_list launchers; // of harness/launch/launchers.c, preferred first
    struct string_list environment; // "NAME=VALUE"
    // what it can do; a case outside is a SKIP with the reason, decided before any start
    struct string_list strategies, layouts, models, compute, reduce;
    struct string_list cannot;    // names of features: "offload", "freeze", "no_sync", "forward_backward", "save", "load",
                                  // "activation_checkpointing", "divergent_init", "clip_l1", "clip_linf", "loss_scale", "prefetch",
                                  // "no_reshard", "wrap_size", "wrap_pattern", "reuse", "unused", "momentum", "tied", "parameter_bf16",
                                  // "reshard_ranks"
    int min_ranks, max_ranks;
    int min_tensor, max_tensor, min_pipeline, max_pipeline;
    int option_count;
    struct case_option *options;  // given to the worker in case.json
};

struct planned_case {
    struct fsdp_case c;
    char *skip;      // reason, or NULL
    int gate;        // index of its unsharded N = 1 case in the list, -1 for a gate itself
    bool is_gate;
    int saver;       // index of the case that saves what this one loads, -1 where there is none
    bool is_saver;
    char *origin;    // FILE:LINE
};
// problem: why plan_make failed.
enum plan_problem { PLAN_FINE, PLAN_BAD, PLAN_NOTHING /* nothing of this implementation was selected */ };
// probes: bits of enum probe_id (harness/probes/record.h) that the profile asks for. marks: the marks of phases are recorded even without a probe.
struct plan { int count; struct planned_case *cases; enum plan_problem problem; unsigned probes; bool marks; char *counters; }; // counters: PAPI events, or NULL

struct selection {
    const char *suite;            // the suite folder
    const char *profile;          // name, or NULL
    const char *pattern;          // -k: globs or substrings of the id, commas between, or NULL
    const char *case_file;        // --case: a file outside, or NULL
    uint64_t seed;                // 0: as the files say
    double scale;                 // unused: 1
};

// A name of the suite's or the path of a manifest, each also with :VARIANT at its end.
bool implementation_read(const char *path_or_name, const char *suite, struct implementation *out, struct error *error);
void implementation_free(struct implementation *i);
// Expands cases for one implementation; order: gates, then the cases that save, then the rest, grouped by world size.
// Errors carry FILE:LINE. An empty plan is an error that says what the selection was.
bool plan_make(const struct selection *s, const struct implementation *i, struct plan *out, struct error *error);
void plan_free(struct plan *p);
// For `list`.
bool suite_list_implementations(const char *suite, struct string_list *out, struct error *error);
bool suite_list_profiles(const char *suite, struct string_list *names, struct string_list *titles, struct error *error);
bool suite_list_cases(const char *suite, struct string_list *names, struct string_list *titles, struct error *error);
bool suite_list_workloads(const char *suite, struct string_list *names, struct string_list *titles, struct error *error);
// The file of a workload: a path as it is (it holds a '/' or ends in .yaml), else that of the suite with this name. NULL: there is none.
char *suite_workload_file(const char *suite, const char *word, struct error *error);
void string_list_free(struct string_list *l);

#endif
