// Which options of `advise` go together, and the numbers that they may have: one line for each mistake.
//
// What: there are four kinds of question. A machine as given; `--fabric`, measured now; `--from`, of a stored run; `--validate`, on emulated clusters of its own. An option that a kind of
//       question has no use for is refused: it would be passed over in silence.
// How:  numbers that were not given are -1 before the check, so that an explicit 0 is not taken for the default.
#include <string.h>

#include "harness/advise/turns.h"
#include "harness/cases/precision.h"
#include "harness/cli/advise.h"
#include "harness/protocol/case_fields.h"
#include "harness/protocol/document.h"

enum { GIVEN = 1, FABRIC = 2, STORED = 4, VALIDATE = 8, MODEL = GIVEN | FABRIC | STORED };
enum { MOST_RANKS = 1 << 20, MOST_MEASURED = 64, MOST_ROWS = 1 << 20 };
static const double CONTENTION_MOST = 100, BOTH_WAYS_LEAST = 0.1, BOTH_WAYS_MOST = 10;

struct rule { const char *name; bool given; unsigned kinds; bool of_case; /* what a case of a file answers already */ };
enum { RULES = 40 };

static int rules(const struct advise_options *o, struct rule out[RULES])
{
    const struct rule all[] = {
        {"ranks", o->ranks >= 0, MODEL, false}, {"hosts", o->hosts >= 0, GIVEN | FABRIC, false}, {"model", o->model != NULL, MODEL, true}, {"layers", o->layers >= 0, MODEL, true},
        {"dim", o->dim >= 0, MODEL, true}, {"heads", o->heads >= 0, MODEL, true}, {"kv-heads", o->kv_heads >= 0, MODEL, true}, {"ffn", o->ffn >= 0, MODEL, true},
        {"vocab", o->vocab >= 0, MODEL, true}, {"context", o->context >= 0, MODEL, true}, {"rows", o->rows >= 0, MODEL, false}, {"micros", o->micros >= 0, MODEL, true},
        {"precision", o->precision != NULL, MODEL, true}, {"layout", o->layout != NULL, MODEL, true}, {"prefetch", o->prefetch >= 0, MODEL, true}, {"checkpointing", o->checkpointing, MODEL, true},
        {"no-reshard", o->no_reshard, MODEL, true}, {"memory", o->memory != NULL, MODEL, false}, {"alpha", o->alpha != NULL, MODEL, false}, {"bandwidth", o->bandwidth != NULL, MODEL, false},
        {"inner-alpha", o->inner_alpha != NULL, MODEL, false}, {"inner-bandwidth", o->inner_bandwidth != NULL, MODEL, false}, {"exchange", o->exchange != NULL, MODEL, false},
        {"both-ways", o->both_ways > 0, MODEL, false}, {"contention", o->contention > 0, MODEL, false}, {"flops", o->flops != NULL, MODEL, false}, {"peak", o->peak != NULL, MODEL, false},
        {"copy-rate", o->copy_rate != NULL, MODEL, false}, {"update-rate", o->update_rate != NULL, MODEL, false}, {"rates", o->rates != NULL, VALIDATE, false},
        {"rounds", o->rounds >= 0, VALIDATE, false}};
    _Static_assert(sizeof all / sizeof *all <= RULES, "room for all");
    memcpy(out, all, sizeof all);
    return sizeof all / sizeof *all;
}

static bool kind_of(const struct advise_options *o, unsigned *kind, const char **name, struct error *error)
{
    const struct { const char *name; bool given; unsigned kind; } all[] = {{"fabric", o->fabric != NULL, FABRIC}, {"from", o->from != NULL, STORED}, {"validate", o->validate, VALIDATE}};
    *kind = GIVEN;
    *name = NULL;
    for (int i = 2; i >= 0; i--) {
        if (all[i].given && *name != NULL)
            return error_set(error, "--%s: found with --%s, expected one of them", *name, all[i].name);
        if (all[i].given) {
            *kind = all[i].kind;
            *name = all[i].name;
        }
    }
    return true;
}

static bool check_company(const struct advise_options *o, struct error *error)
{
    struct rule r[RULES];
    const char *with, *file = o->workload != NULL ? "workload" : "case";
    unsigned kind;
    int count = rules(o, r);
    bool of_file = o->case_file != NULL || o->workload != NULL;
    if (!kind_of(o, &kind, &with, error))
        return false;
    for (int i = 0; i < count; i++) {
        if (r[i].given && !(r[i].kinds & kind) && r[i].kinds == VALIDATE)
            return error_set(error, "--%s: found without --validate, expected with it", r[i].name);
        if (r[i].given && !(r[i].kinds & kind))
            return error_set(error, "--%s: found with --%s, which has its own, expected one of them", r[i].name, with);
        if (r[i].given && r[i].of_case && of_file)
            return error_set(error, "--%s: found with --%s, whose case says it, expected one of them", r[i].name, file);
    }
    if (o->workload != NULL && o->case_file != NULL)
        return error_set(error, "--workload: found with --case, expected one of them");
    return of_file || o->pattern == NULL || error_set(error, "--pattern: found without --case or --workload, expected with one of them");
}

static bool check_count(const char *name, int64_t value, int64_t most, struct error *error)
{
    if (value == 0)
        return error_set(error, "--%s: found 0, expected at least 1", name);
    return value <= most || error_set(error, "--%s: found %lld, expected at most %lld", name, (long long)value, (long long)most);
}

static bool check_counts(const struct advise_options *o, struct error *error)
{
    const struct { const char *name; int64_t value, most; } all[] = {
        {"ranks", o->ranks, MOST_RANKS}, {"hosts", o->hosts, MOST_RANKS}, {"layers", o->layers, INT32_MAX}, {"dim", o->dim, INT32_MAX}, {"heads", o->heads, INT32_MAX},
        {"kv-heads", o->kv_heads, INT32_MAX}, {"ffn", o->ffn, INT32_MAX}, {"vocab", o->vocab, INT32_MAX}, {"context", o->context, INT32_MAX}, {"rows", o->rows, MOST_ROWS},
        {"micros", o->micros, INT32_MAX}, {"rounds", o->rounds, TURNS_ROUNDS}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!check_count(all[i].name, all[i].value, all[i].most, error))
            return false;
    if (o->fabric != NULL && o->ranks >= 0 && (o->ranks < 2 || o->ranks > MOST_MEASURED))
        return error_set(error, "--ranks: found %lld, expected 2 to %d where they are measured", (long long)o->ranks, MOST_MEASURED);
    if (o->contention > 0 && (o->contention < 1 || o->contention > CONTENTION_MOST))
        return error_set(error, "--contention: found %g, expected 1 (none) to %g", o->contention, CONTENTION_MOST);
    return o->both_ways <= 0 || (o->both_ways >= BOTH_WAYS_LEAST && o->both_ways <= BOTH_WAYS_MOST) ||
           error_set(error, "--both-ways: found %g, expected %g to %g", o->both_ways, BOTH_WAYS_LEAST, BOTH_WAYS_MOST);
}

static bool check_word(const char *name, const char *value, const char *const *words, struct error *error)
{
    char list[200];
    for (int i = 0; value != NULL && words[i] != NULL; i++)
        if (strcmp(value, words[i]) == 0)
            return true;
    return value == NULL || error_set(error, "--%s: found '%s', expected %s", name, value, name_list(words, list, sizeof list));
}

static int64_t unless(int64_t given, int64_t else_) { return given >= 0 ? given : else_; }

static void set_defaults(struct advise_options *o)
{
    int64_t *const counts[] = {&o->hosts, &o->layers, &o->dim, &o->heads, &o->kv_heads, &o->ffn, &o->vocab, &o->context, &o->rows, &o->micros};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        *counts[i] = unless(*counts[i], 0);
    o->ranks = unless(o->ranks, 8);
    o->rounds = unless(o->rounds, 6);
    o->rates = o->rates != NULL ? o->rates : "25,50,100,200";
}

bool advise_check_options(struct advise_options *o, struct error *error)
{
    static const char *const layouts[] = {"flat", "per_parameter", NULL};
    if (!check_company(o, error) || !check_counts(o, error) || !check_word("precision", o->precision, precision_words(), error) || !check_word("layout", o->layout, layouts, error))
        return false;
    if (o->from != NULL && (*o->from == 0 || strlen(o->from) > 18 || o->from[strspn(o->from, "0123456789")] != 0))
        return error_set(error, "--from: found '%s', expected the number of a run, 0 for the newest of net", o->from);
    set_defaults(o);
    return true;
}
