// Serving a job. See serve.h and docs/protocol.md.
//
// An error ends the process at once, without MPI_Finalize: the other ranks would wait in it for this one, and the
// launcher ends them.
#include "reference/worker/serve.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/protocol/job.h"
#include "reference/engine/fault.h"
#include "reference/worker/answers.h"
#include "reference/worker/program.h"

enum { PATH_BYTES = 4096 };
static const double default_deadline_s = 30;

const struct backend *serve_backend(int ranks)
{
    bool under_mpi = getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE");
    return ranks == 1 && !under_mpi ? &backend_serial : &backend_mpi;
}

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

struct loaded { struct fsdp_case c; struct tensors data, init; };

static bool load_case(const struct job *j, const char *folder, struct loaded *l, struct error *error)
{
    char path[PATH_BYTES];
    *l = (struct loaded){0};
    snprintf(path, sizeof path, "%s/case.json", folder);
    if (!case_read(path, &l->c, error))
        return false;
    if (l->c.world_size != j->world_size)
        return error_set(error, "%s: found %d ranks, expected WORLD_SIZE, which is %d", path, l->c.world_size, j->world_size);
    snprintf(path, sizeof path, "%s/data.safetensors", folder);
    if (!tensors_read(path, &l->data, error))
        return false;
    snprintf(path, sizeof path, "%s/init%s.safetensors", folder, l->c.divergent_init && j->rank > 0 ? ".other" : "");
    return tensors_read(path, &l->init, error);
}

static void free_case(struct loaded *l)
{
    case_free(&l->c);
    tensors_free(&l->data);
    tensors_free(&l->init);
}

static bool train(struct loaded *l, struct comm_world *world, struct answer_writer *w, struct error *error)
{
    struct engine e;
    const char *fault = case_option(&l->c, "fault");
    const char *unsupported = engine_unsupported(&l->c);
    fault = fault ? fault : getenv("FSDPMARK_FAULT");
    fault_set(fault);
    if (fault && !FAULT_BUILD)
        unsupported = "a seeded fault was asked for, and this build carries none: use fsdp-reference-faulty";
    if (unsupported)
        return answers_hello(w, l->c.id, &l->c, NULL, world) &&
               answer_event(w, "unsupported", json_pack("{s:s}", "reason", unsupported));
    if (!engine_open(&e, &l->c, world, &l->data, &l->init, error)) {
        answers_hello(w, l->c.id, &l->c, NULL, world);
        return false;
    }
    bool ok = answers_hello(w, l->c.id, &l->c, &e, world) && answers_shards(w, &e) &&
              program_run(&e, w, error) && answers_shards(w, &e) && answers_memory(w, &e) && answers_traffic(w, &e) &&
              comm_barrier(&e.comm, error) && answer_event(w, "done", NULL);
    engine_close(&e);
    return ok || error_set(error, "the answer cannot be written");
}

static bool serve_case(const struct job *j, const char *id, struct comm_world *world)
{
    char folder[PATH_BYTES];
    struct loaded l;
    struct error error = {""};
    struct answer_writer w;
    snprintf(folder, sizeof folder, "%s/%s", j->folder, id);
    if (!answer_open(&w, folder, j->rank, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return false;
    }
    bool ok = load_case(j, folder, &l, &error);
    if (!ok)
        answers_hello(&w, id, NULL, NULL, world);
    ok = ok && train(&l, world, &w, &error);
    if (!ok) {
        fprintf(stderr, "%s: %s\n", id, error.text);
        answer_event(&w, "error", json_pack("{s:s}", "message", error.text));
    }
    answer_close(&w);
    free_case(&l);
    return ok;
}

int serve_job(void)
{
    struct job j;
    struct comm_world world;
    struct error error = {""};
    if (!job_from_environment(&j, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    serve_threads();
    const struct backend *backend = serve_backend(j.world_size);
    bool ok = comm_world_open(&world, backend, serve_deadline(), &error);
    if (ok && world.all.size != j.world_size)
        ok = error_set(&error, "%s has %d ranks, expected WORLD_SIZE, which is %d", backend->name, world.all.size, j.world_size);
    if (ok)
        j.rank = world.all.rank;
    else
        fprintf(stderr, "%s\n", error.text);
    for (int i = 0; ok && i < j.case_count; i++)
        ok = serve_case(&j, j.cases[i], &world);
    if (ok)
        comm_world_close(&world);
    job_free(&j);
    return !ok;
}
