// What `advise` was asked, between its files.
#ifndef HARNESS_CLI_ADVISE_H
#define HARNESS_CLI_ADVISE_H

#include "harness/advise/advise.h"
#include "harness/cli/cli.h"

struct advise_options {
    // model
    const char *case_file, *pattern, *model, *precision, *layout;
    int64_t layers, dim, heads, kv_heads, ffn, vocab, context, rows, micros, prefetch;
    bool checkpointing, no_reshard;
    // machine
    int64_t ranks, hosts;
    const char *alpha, *bandwidth, *inner_alpha, *inner_bandwidth, *flops, *peak, *copy_rate, *update_rate, *exchange, *memory;
    double both_ways, contention;
    // output
    bool as_json;
    const char *suite;
};

// advise_model.c: the case of the options: its model, precision, optimizer; owned by the caller (case_free).
bool advise_case(const struct cli *cli, const struct advise_options *o, struct fsdp_case *out, struct error *error);
// advise_machine.c: defaults, overlaid by what the options give.
bool advise_machine(const struct advise_options *o, struct advice_question *q, struct error *error);

#endif
