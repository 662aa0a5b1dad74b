// A run with every kind of verdict on three implementations, and figures by tensor, the same every time.
#ifndef HARNESS_REPORT_TESTS_RICH_H
#define HARNESS_REPORT_TESTS_RICH_H

#include "harness/report/report.h"
#include "harness/store/tests/sample.h"

static inline json_t *rich_figures(const char *check, double worst, int tensors) {
    json_t *list = json_array();
    for (int i = 0; i < tensors; i++) {
        static const char *const parts[] = {"attention.query.weight", "attention.key.weight", "mlp.up.weight", "norm1.weight", "mlp.down.bias"};
        char name[64];
        snprintf(name, sizeof name, "blocks.%d.%s", i / 5, parts[i % 5]);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:f, s:f}", "check", check, "label", "s1.grad", "tensor", name, "figure",
                                              worst / (1 + i % 7 + i / 5), "bound", 8.0));
    }
    return list;
}

static inline void rich_case(struct store *s, int64_t run, const char *implementation, const char *family, const char *strategy, int ranks,
                             const struct result *results, int count, json_t *figures) {
    char id[128];
    snprintf(id, sizeof id, "%s.%s.n%d", family, strategy, ranks);
    struct case_record c = sample_case(implementation, id, family, strategy, ranks, results, count);
    c.figures = figures;
    if (figures) c.layer = "calibrated";
    if (count && results[0].finding.verdict == VERDICT_BROKEN) c.log_tail = "rank0: loading\nrank1: Traceback (most recent call last):\nrank1: KeyError: 'w'\n";
    sample_record(s, run, &c);
    json_decref(figures);
}

// Passing cases of every family, with what goes wrong or is left out named by implementation.
static inline void rich_implementation(struct store *s, int64_t run, const char *name, double noise, bool faulty, bool partial) {
    static const char *const strategies[] = {"none", "grad", "full"};
    static const int ranks[] = {1, 2, 3, 4, 8};
    sample_plan(s, run, name, 45);
    for (int t = 0; t < 3; t++)
        for (int n = 0; n < 5; n++) {
            double ratio = noise * (1 + t) * (1 + 0.3 * ranks[n]);
            struct result exact[] = {sample_result("step-bitwise", VERDICT_PASS, 0, 0, "elements", "all 84 elements of 4 tensors equal"),
                                     sample_result("sharding", VERDICT_PASS, NAN, NAN, "", "each rank held its chunk")};
            if (faulty && t == 2 && ranks[n] == 3)
                exact[0] = sample_result("step-bitwise", VERDICT_FAIL, 12, 0, "elements",
                                         "s0, layers.1.weight: 12 of 32 elements differ, first at (5, 2), in the shard of rank 2; fitted scalar "
                                         "0.333333 = 1/N, residual 2.1e-08: the gradient of the last shard is divided twice");
            rich_case(s, run, name, "exact-mlp", strategies[t], ranks[n], exact, 2, NULL);

            struct result policy[] = {sample_result("policy", VERDICT_PASS, 0, 0, "ulp", "mean")};
            if (partial && t == 2) policy[0] = sample_result("support", VERDICT_SKIP, NAN, NAN, "", "the implementation has no strategy full in layout flat");
            if (faulty && t == 0 && ranks[n] == 8) policy[0] = sample_result("answer", VERDICT_BROKEN, NAN, NAN, "", "the harness could not start rank 7: fork: Resource temporarily unavailable");
            rich_case(s, run, name, "witness-mean", strategies[t], ranks[n], policy, 1, NULL);

            if (faulty && t == 1 && ranks[n] == 8) ratio = 400;
            struct result calibrated[] = {sample_result("gradient", ratio <= 8 ? VERDICT_PASS : VERDICT_FAIL, ratio, 8, "ratio", "s1.grad, blocks.0.attention.query.weight"),
                                          sample_result("update", VERDICT_PASS, ratio / 50, 2, "ulp", "s1")};
            json_t *figures = rich_figures("gradient", ratio, 60), *more = rich_figures("update", ratio / 30, 60);
            json_array_extend(figures, more);
            json_decref(more);
            rich_case(s, run, name, "tiny-transformer", strategies[t], ranks[n], calibrated, 2, figures);
        }
}

static inline int64_t rich_run(struct store *s) {
    struct error error = {0};
    int64_t run = sample_begin(s, "fsdpmark check -i reference -i pytorch-fsdp2 -i deepspeed-zero3 -p core");
    rich_implementation(s, run, "reference", 0.05, false, false);
    rich_implementation(s, run, "pytorch-fsdp2", 0.4, true, false);
    rich_implementation(s, run, "deepspeed-zero3", 0.2, false, true);
    if (!store_end_run(s, run, 3, &error)) fail_msg("%s", error.text);
    return run;
}

#endif
