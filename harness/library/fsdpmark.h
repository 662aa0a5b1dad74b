/*
 * libfsdpmark: what a worker in C or C++ needs to be judged by fsdpmark. See fsdpmark(3).
 *
 * What: reads the job and its cases, and writes the answer, of docs/protocol.md. It trains nothing.
 * How:  one handle per process. Once a call has failed, the handle keeps the first message: all later calls do
 *       nothing and return false, NULL or 0, so that a worker may look at fsdpmark_error() once, at the end. A failure in a
 *       case is told to the harness too. Nothing is printed, nothing ends the process. Not thread-safe.
 *
 *     fsdpmark *f = fsdpmark_open("mine", "1.0");
 *     while (fsdpmark_next(f))
 *         train(f);    // fsdpmark_configured, _hello, _shards, the verbs of _instruction_at, _done
 *     if (fsdpmark_error(f))
 *         fprintf(stderr, "%s\n", fsdpmark_error(f));
 *     return fsdpmark_close(f);
 *
 * Stable: functions and fields are added, never changed or taken away, within one major version. The library makes
 * every struct but fsdpmark_part and fsdpmark_figure; these two stay as they are.
 */
#ifndef FSDPMARK_H
#define FSDPMARK_H

#include <stdbool.h>
#include <stdint.h>

#define FSDPMARK_VERSION "0.1.0"
#define FSDPMARK_VERSION_NUMBER 100 /* 10000 major + 100 minor + patch */

#if defined(__GNUC__)
#define FSDPMARK_API __attribute__((visibility("default")))
#define FSDPMARK_FORMAT(text, first) __attribute__((format(printf, text, first)))
#else
#define FSDPMARK_API
#define FSDPMARK_FORMAT(text, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the job: one start of one rank ---- */

typedef struct fsdpmark fsdpmark;

/* Version of the library that runs, as FSDPMARK_VERSION is that of the header. */
FSDPMARK_API const char *fsdpmark_version(void);

/* Reads $FSDPMARK_JOB/job.json; rank and size as torchrun, Open MPI or Slurm name them, the first that is there. Both texts
 * are copied and go into every hello. Never NULL; what failed, fsdpmark_error() tells. */
FSDPMARK_API fsdpmark *fsdpmark_open(const char *implementation, const char *version);

/* Frees the handle and all that it gave. Exit status for main: 0 all served, 1 a case failed, 2 unusable job. */
FSDPMARK_API int fsdpmark_close(fsdpmark *f);

/* The first failure in one line, "FILE: what was found, what was expected", or NULL. */
FSDPMARK_API const char *fsdpmark_error(const fsdpmark *f);

FSDPMARK_API int fsdpmark_rank(const fsdpmark *f);
FSDPMARK_API int fsdpmark_size(const fsdpmark *f);
FSDPMARK_API int fsdpmark_local_rank(const fsdpmark *f);

/* Opens the next case; false after the last one, or where something failed. The case before must have been ended. */
FSDPMARK_API bool fsdpmark_next(fsdpmark *f);

/* ---- the case ---- */

/* A field of case.json by its dotted path, list elements by number: "id", "sharding.strategy", "model.sizes.0". A field that is
 * not there or is of another kind is a failure. */
FSDPMARK_API const char *fsdpmark_text(fsdpmark *f, const char *path);
FSDPMARK_API int64_t fsdpmark_integer(fsdpmark *f, const char *path);
FSDPMARK_API double fsdpmark_number(fsdpmark *f, const char *path);
FSDPMARK_API bool fsdpmark_flag(fsdpmark *f, const char *path);

/* Is the text at this path this one? */
FSDPMARK_API bool fsdpmark_is(fsdpmark *f, const char *path, const char *text);

/* Elements of a list or fields of an object; 1 for a text, number or flag; 0 for null or where nothing is there (no failure). */
FSDPMARK_API int fsdpmark_length(fsdpmark *f, const char *path);

struct fsdpmark_parameter {
    const char *name;
    int dims;
    int64_t shape[8];
    int64_t count;       /* product of shape */
    const char *unit;    /* block that it belongs to, "" for the root */
    const char *tied_to; /* earlier parameter whose storage it shares, or NULL */
    bool decay;
};

/* Row i of the table of parameters; NULL past the end. */
FSDPMARK_API const struct fsdpmark_parameter *fsdpmark_parameter_at(fsdpmark *f, int i);

enum fsdpmark_verb {
    FSDPMARK_MICRO, FSDPMARK_FORWARD, FSDPMARK_BACKWARD, FSDPMARK_EVAL, FSDPMARK_CLIP, FSDPMARK_STEP, FSDPMARK_ZERO_GRAD,
    FSDPMARK_FREEZE, FSDPMARK_UNFREEZE, FSDPMARK_SAVE, FSDPMARK_LOAD, FSDPMARK_OBSERVE
};

/* What an observation asks for: bits. */
enum fsdpmark_what {
    FSDPMARK_PARAM = 1, FSDPMARK_GRAD = 2, FSDPMARK_CLIPPED = 4, FSDPMARK_EXP_AVG = 8, FSDPMARK_EXP_AVG_SQ = 16, FSDPMARK_MOMENTUM = 32
};

/* Fields that the verb does not have are 0, false or NULL. */
struct fsdpmark_instruction {
    enum fsdpmark_verb verb;
    int step, micro, slot;
    bool sync;           /* micro, backward: communicate gradients */
    const char *pattern; /* freeze, unfreeze: a glob */
    const char *label;   /* observe */
    unsigned what;       /* observe: enum fsdpmark_what */
    bool local;          /* observe: this rank's own part too */
};

/* Instruction i of the program; NULL where it ends. */
FSDPMARK_API const struct fsdpmark_instruction *fsdpmark_instruction_at(fsdpmark *f, int i);

enum fsdpmark_dtype { FSDPMARK_F32, FSDPMARK_F64, FSDPMARK_BF16, FSDPMARK_F16, FSDPMARK_I32, FSDPMARK_I64 };

struct fsdpmark_tensor {
    const char *name;
    enum fsdpmark_dtype dtype;
    int dims;
    int64_t shape[8];
    int64_t count;    /* elements */
    const void *data; /* row-major, aligned to its type, until the next case */
};

/* What this rank starts from: F32, by name of the parameter. */
FSDPMARK_API const struct fsdpmark_tensor *fsdpmark_init(fsdpmark *f, const char *parameter);

/* The whole data: (steps, micros, G, ...); "input", "target", "weight", "tokens", "targets", "x/<parameter>". */
FSDPMARK_API const struct fsdpmark_tensor *fsdpmark_data(fsdpmark *f, const char *name);

/* This rank's rows of one microbatch of it: (rows, ...). Valid until the next call with this name. */
FSDPMARK_API const struct fsdpmark_tensor *fsdpmark_batch(fsdpmark *f, const char *name, int step, int micro);

/* This rank's rows of the global batch: [first, end). */
FSDPMARK_API bool fsdpmark_rows(fsdpmark *f, int64_t *first, int64_t *end);

/* What to multiply this rank's sum(weight * loss) with, so that the mean over data ranks of the gradients is right. The loss to
 * report is that product over the number of data ranks, which is that of all ranks unless a case has tensor or pipeline ranks. 0 where
 * all weights are 0. */
FSDPMARK_API double fsdpmark_loss_factor(fsdpmark *f, int step, int micro);

/* ---- the answer, in this order: configured, hello, shards, the program's events, shards again, done ---- */

/* One thing that was really configured, in the case's words: "strategy" is required; "mesh" ("1x2"), "layout", "reduce", ... */
FSDPMARK_API bool fsdpmark_configured(fsdpmark *f, const char *name, const char *format, ...) FSDPMARK_FORMAT(3, 4);

/* Says hello with what was configured. note: a remark, or NULL. */
FSDPMARK_API bool fsdpmark_hello(fsdpmark *f, const char *note);

/* Ends the case: it asks for what this implementation cannot do. On every rank, before any training. Says hello if nobody has. */
FSDPMARK_API bool fsdpmark_unsupported(fsdpmark *f, const char *format, ...) FSDPMARK_FORMAT(2, 3);

struct fsdpmark_part {
    const char *parameter;
    int64_t offset, length; /* in elements of the whole tensor */
};

/* What this rank holds between steps. of: "parameter", "gradient" or "optimizer". padding: elements held beyond; padding_max: the
 * largest absolute value in them, negative where nobody looked. */
FSDPMARK_API bool fsdpmark_shards(fsdpmark *f, const char *of, const struct fsdpmark_part *parts, int count, int64_t padding,
                                  double padding_max);

/* loss: this rank's share of the global loss. tokens: tokens or rows that it was taken over. */
FSDPMARK_API bool fsdpmark_micro(fsdpmark *f, int step, int micro, double loss, double tokens, double seconds);
FSDPMARK_API bool fsdpmark_eval(fsdpmark *f, int step, int micro, double loss);
FSDPMARK_API bool fsdpmark_clip(fsdpmark *f, int step, double norm);
FSDPMARK_API bool fsdpmark_step(fsdpmark *f, int step, bool skipped, double loss_scale, double seconds);

/* One tensor of the observation to come; copied. what: one bit. put: the whole tensor, in the shape of the table; ranks other than
 * 0 need not gather it, what they put is dropped. put_local: this rank's part, the ranges of its shards one after the other. Leave
 * out gradients and states that do not exist. */
FSDPMARK_API bool fsdpmark_put(fsdpmark *f, unsigned what, const char *parameter, enum fsdpmark_dtype dtype, const void *data);
FSDPMARK_API bool fsdpmark_put_local(fsdpmark *f, unsigned what, const char *parameter, enum fsdpmark_dtype dtype, int64_t count,
                                     const void *data);

/* Writes what was put and says so. in: the observe instruction. Every rank calls it. */
FSDPMARK_API bool fsdpmark_observed(fsdpmark *f, const struct fsdpmark_instruction *in);

struct fsdpmark_figure {
    const char *name; /* "total", or within a group: "all_gather.bytes" */
    double value;
};

/* Optional: bytes by tag, counts and bytes by collective. */
FSDPMARK_API bool fsdpmark_memory(fsdpmark *f, const char *phase, const struct fsdpmark_figure *figures, int count);
FSDPMARK_API bool fsdpmark_traffic(fsdpmark *f, const struct fsdpmark_figure *figures, int count);

/* Calls fsdpmark_mark(phase, step) where a preloaded probe has that symbol. */
FSDPMARK_API void fsdpmark_phase(fsdpmark *f, const char *phase, int step);

/* Ends the case with an error; always false. End the process with fsdpmark_close(): the harness ends the other ranks. */
FSDPMARK_API bool fsdpmark_fail(fsdpmark *f, const char *format, ...) FSDPMARK_FORMAT(2, 3);

/* Ends the case. */
FSDPMARK_API bool fsdpmark_done(fsdpmark *f);

#ifdef __cplusplus
}
#endif

#endif
