/* The rows of kernels/table.h as data. See rows.h. */
#include "kernels/rows.h"

#define LOCAL_DIM(name) int64_t name = setting->name; (void)name;
#define LOCAL_SCALAR(name)
#define LOCAL_FLAG(name)
#define LOCAL_IN(name)
#define LOCAL_OUT(name)
#define LOCAL_UPD(name)
#define LOCAL_STAT_IN(name)
#define LOCAL_STAT_OUT(name)
#define LOCAL_TOKENS(name)
#define LOCAL_WEIGHTS(name)
#define LOCAL_TARGETS(name)
#define LOCAL_RESULT(name)
#define LOCAL(kind, name, extent, touched) LOCAL_##kind(name)

#define VALUE_DIM(name) setting->name
#define VALUE_SCALAR(name) setting->name
#define VALUE_FLAG(name) setting->name
#define VALUE_IN(name) arrays[at_##name]
#define VALUE_OUT(name) arrays[at_##name]
#define VALUE_UPD(name) arrays[at_##name]
#define VALUE_STAT_IN(name) arrays[at_##name]
#define VALUE_STAT_OUT(name) arrays[at_##name]
#define VALUE_TOKENS(name) arrays[at_##name]
#define VALUE_WEIGHTS(name) arrays[at_##name]
#define VALUE_TARGETS(name) arrays[at_##name]
#define VALUE_RESULT(name) arrays[at_##name]
#define VALUE(kind, name, extent, touched) VALUE_##kind(name)
#define COMMA_VALUE(kind, name, extent, touched) , VALUE_##kind(name)

#define RETURN_void(call) call; return 0
#define RETURN_double(call) return call
#define RETURN_bool(call) return call

#define INDEX(kind, name, extent, touched) at_##name,
#define EXTENT(kind, name, extent, touched) extent,
#define TOUCHED(kind, name, extent, touched) touched,
#define DESCRIPTION(kind, name, extent, touched) {KERNEL_##kind, #name, #extent},

#define ROW_FUNCTIONS(returns, name, formula, flop_, budget_, source)                                          \
    static const struct kernel_argument arguments_##name[] = {KERNEL_ARGS_##name(DESCRIPTION, DESCRIPTION)};   \
    static void work_##name(const struct kernel_setting *setting, struct kernel_work *work)                    \
    {                                                                                                          \
        KERNEL_ARGS_##name(LOCAL, LOCAL)                                                                       \
        *work = (struct kernel_work){{KERNEL_ARGS_##name(EXTENT, EXTENT)},                                     \
                                     {KERNEL_ARGS_##name(TOUCHED, TOUCHED)}, (double)(flop_), (double)(budget_)}; \
    }                                                                                                          \
    static double call_##name(const struct kernel_set *set, const struct kernel_setting *setting,              \
                              void *const *arrays)                                                             \
    {                                                                                                          \
        enum { KERNEL_ARGS_##name(INDEX, INDEX) };                                                             \
        RETURN_##returns(set->name(KERNEL_ARGS_##name(VALUE, COMMA_VALUE)));                                   \
    }
KERNEL_TABLE(ROW_FUNCTIONS)

#define ROW(returns, name, formula, flop, budget, source)                                                     \
    {#name, #returns, formula, #flop, #budget, source, sizeof arguments_##name / sizeof *arguments_##name,    \
     arguments_##name, work_##name, call_##name},
const struct kernel_row kernel_rows[] = {KERNEL_TABLE(ROW)};
const int kernel_row_count = sizeof kernel_rows / sizeof *kernel_rows;

int kernel_kind_reads(enum kernel_kind kind)
{
    switch (kind) {
    case KERNEL_IN: case KERNEL_UPD: case KERNEL_STAT_IN:
    case KERNEL_TOKENS: case KERNEL_WEIGHTS: case KERNEL_TARGETS: return 1;
    default: return 0;
    }
}

int kernel_kind_writes(enum kernel_kind kind)
{
    switch (kind) {
    case KERNEL_OUT: case KERNEL_UPD: case KERNEL_STAT_OUT: case KERNEL_RESULT: return 1;
    default: return 0;
    }
}

enum dtype kernel_kind_dtype(enum kernel_kind kind, enum dtype storage)
{
    switch (kind) {
    case KERNEL_STAT_IN: case KERNEL_STAT_OUT: return kernels_acc_dtype(storage);
    case KERNEL_TOKENS: return DTYPE_I32;
    case KERNEL_WEIGHTS: case KERNEL_RESULT: return DTYPE_F64;
    case KERNEL_TARGETS: return DTYPE_F32;
    default: return storage;
    }
}

double kernel_row_bytes(const struct kernel_row *row, const struct kernel_setting *setting, enum dtype storage)
{
    struct kernel_work work;
    double bytes = 0;
    row->work(setting, &work);
    for (int i = 0; i < row->argument_count; i++) {
        enum kernel_kind kind = row->arguments[i].kind;
        int moves = kernel_kind_reads(kind) + kernel_kind_writes(kind);
        bytes += (double)work.touched[i] * moves * (double)dtype_size(kernel_kind_dtype(kind, storage));
    }
    return bytes;
}
