// What `advise` was asked, between its files.
#ifndef HARNESS_CLI_ADVISE_H
#define HARNESS_CLI_ADVISE_H

#include "harness/advise/advise.h"
#include "harness/cli/cli.h"

struct advise_options {
    // model
    const char *case_file, *workload, *pattern, *model, *precision, *layout;
    int64_t layers, dim, heads, kv_heads, ffn, vocab, context, rows, micros, prefetch;
    bool checkpointing, no_reshard;
    // machine
    const char *fabric, *from;
    int64_t ranks, hosts;
    const char *alpha, *bandwidth, *inner_alpha, *inner_bandwidth, *flops, *peak, *copy_rate, *update_rate, *exchange, *memory;
    double both_ways, contention;
    // output
    bool as_json;
    const char *suite, *store, *figures;
    // --validate
    bool validate;
    const char *rates;
    int64_t rounds;
};

// advise_options.c: which go together and the numbers they have, then the defaults of those not given.
bool advise_check_options(struct advise_options *o, struct error *error);
// advise_model.c: the case of the options: its model, precision, optimizer; owned by the caller (case_free).
bool advise_case(const struct cli *cli, const struct advise_options *o, struct fsdp_case *out, struct error *error);
// The case of the options' file, else the one of this short form.
bool advise_case_text(const struct cli *cli, const struct advise_options *o, const char *text, struct fsdp_case *out, struct error *error);
// advise_validate.c
int advise_validate(const struct cli *cli, const struct advise_options *o);
// advise_machine.c: defaults, overlaid by what was measured, overlaid by what the options give.
bool advise_machine(const struct cli *cli, const struct advise_options *o, struct advice_question *q, struct error *error);
// advise_measured.c: line, and with a fabric computing, of q->machine and q->spread; the source of the facts.
bool advise_measured(const struct cli *cli, const struct advise_options *o, const struct fsdp_case *c, struct advice_question *q, struct error *error);

#endif
