// Serving a job. See serve.h and docs/protocol.md.
//
// The job is read and the answer written through libfsdpmark, as any other implementation does it; the engine works on the case and the
// tensors as the library holds them.
// An error ends the process at once, without MPI_Finalize: the other ranks would wait in it for this one, and the
// launcher ends them.
#include "reference/worker/serve.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/library/handle.h"
#include "reference/backends/choose.h"
#include "reference/engine/fault.h"
#include "reference/engine/publish.h"
#include "reference/worker/answers.h"
#include "reference/worker/program.h"

static const double default_deadline_s = 30;

void serve_threads(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    int threads = text ? atoi(text) : 1;
    kernels_set_threads(threads > 0 ? threads : 1);
}

double serve_deadline(void)
{
    const char *text = getenv("FSDPMARK_COLLECTIVE_SECONDS");
    double seconds = text ? atof(text) : 0;
    return seconds > 0 ? seconds : default_deadline_s;
}

bool serve_open(struct comm_world *world, int ranks, struct error *error)
{
    const struct backend *backend = NULL;
    return choose_backend(ranks, &backend, error) == CHOSEN && comm_world_open(world, backend, serve_deadline(), error);
}

// not_here: why none of the cases can be run on this machine, or NULL.
static bool train(fsdpmark *f, struct comm_world *world, const char *not_here, struct error *error)
{
    struct engine e;
    struct overlap overlap = {0};
    const struct fsdp_case *c = &f->c;
    const char *fault = case_option(c, "fault");
    const char *unsupported = not_here ? not_here : engine_unsupported(c);
    fault = fault ? fault : getenv("FSDPMARK_FAULT");
    fault_set(fault);
    if (fault && !FAULT_BUILD)
        unsupported = "a seeded fault was asked for, and this build carries none: use fsdp-reference-faulty";
    if (unsupported)
        return answers_hello(f, c, NULL, world) && fsdpmark_unsupported(f, "%s", unsupported);
    if (!engine_open(&e, c, world, &f->data, &f->init, error)) {
        answers_hello(f, c, NULL, world);
        return false;
    }
    publish_engine(&e);
    bool ok = answers_hello(f, c, &e, world) && answers_shards(f, &e) && program_run(f, &e, error) && answers_shards(f, &e) &&
              answers_memory(f, &e) && (!overlap_asked(c, world) || overlap_measure(c, world, &overlap, error)) &&
              answers_traffic(f, &e, &overlap) && comm_barrier(&e.comm, error) && fsdpmark_done(f);
    publish_engine(NULL);
    engine_close(&e);
    return ok;
}

static void serve_cases(fsdpmark *f, struct comm_world *world, const char *not_here)
{
    while (fsdpmark_next(f)) {
        struct error error = {""};
        if (!train(f, world, not_here, &error))
            fsdpmark_fail(f, "%s", error.text);
    }
}

static bool expect_place(const fsdpmark *f, const struct comm_world *world, struct error *error)
{
    bool same = world->all.size == fsdpmark_size(f) && world->all.rank == fsdpmark_rank(f);
    return same || error_set(error, "%s calls this rank %d of %d, expected what the environment says, rank %d of %d", world->backend->name,
                             world->all.rank, world->all.size, fsdpmark_rank(f), fsdpmark_size(f));
}

int serve_job(void)
{
    struct comm_world world;
    struct error error = {""};
    const struct backend *backend = NULL;
    fsdpmark *f = fsdpmark_open("reference", FSDPMARK_VERSION);
    if (!fsdpmark_error(f)) {
        serve_threads();
        publish_open();
        enum chosen chosen = choose_backend(fsdpmark_size(f), &backend, &error);
        struct error not_here = error;
        if (chosen == CHOSEN_NOT_HERE)
            backend = choose_host(fsdpmark_size(f));
        error.text[0] = 0;
        bool open = chosen != CHOSEN_BAD && comm_world_open(&world, backend, serve_deadline(), &error);
        if (chosen == CHOSEN_BAD)
            error = not_here;
        if (open && expect_place(f, &world, &error))
            serve_cases(f, &world, chosen == CHOSEN_NOT_HERE ? not_here.text : NULL);
        else
            fsdpmark_fail(f, "%s", error.text);
        if (open && !fsdpmark_error(f))
            comm_world_close(&world);
    }
    if (fsdpmark_error(f))
        fprintf(stderr, "%s\n", fsdpmark_error(f));
    return fsdpmark_close(f);
}
