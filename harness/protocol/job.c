// The job of a start: job.json and the environment of a rank. See job.h.
#include "harness/protocol/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/fields.h"
#include "harness/protocol/memory.h"

#define IN(type, member) .offset = offsetof(struct type, member)
static const struct field name_field = {"", FIELD_STRING, .offset = 0};
static void release_name(void *name)
{
    free(*(char **)name);
}
static const struct field job_fields[] = {
    {"protocol", FIELD_FIXED, .least = CASE_PROTOCOL},
    {"world_size", FIELD_INT, IN(job, world_size), .least = 1, .most = 65536},
    {"cases", FIELD_LIST, IN(job, cases), .count_offset = offsetof(struct job, case_count), .span = sizeof(char *),
     .element = &name_field, .release = release_name},
    {0},
};

static bool whole_variable(const char *name, int least, int most, int *out, struct error *error)
{
    const char *text = getenv(name);
    char *end = NULL;
    long value = text ? strtol(text, &end, 10) : 0;
    if (!text || end == text || *end || value < least || value > most)
        return error_set(error, "environment: %s: found '%.40s', expected a whole number from %d to %d", name, text ? text : "", least, most);
    *out = (int)value;
    return true;
}

// Who starts processes, and how each tells a process its place.
static const struct { const char *rank, *size, *local_rank; } starters[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK"}, // torchrun and the harness itself, so first: it may run inside the others
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
};

static bool read_place(struct job *out, struct error *error)
{
    size_t i = 0, count = sizeof starters / sizeof *starters;
    while (i < count && !getenv(starters[i].rank))
        i++;
    if (i == count)
        return error_set(error, "environment: found no RANK, expected it of the launcher (or Open MPI's OMPI_COMM_WORLD_RANK, or Slurm's SLURM_PROCID)");
    return whole_variable(starters[i].size, 1, 65536, &out->world_size, error) &&
           whole_variable(starters[i].rank, 0, out->world_size - 1, &out->rank, error) &&
           whole_variable(starters[i].local_rank, 0, out->world_size - 1, &out->local_rank, error);
}

static bool read_job(struct job *out, struct error *error)
{
    struct document d;
    char *path = memory_format("%s/job.json", out->folder);
    bool fine = document_read(path, &d, error);
    free(path);
    if (!fine)
        return false;
    struct reading r = {.document = &d, .error = error, .root = out};
    int world_size = out->world_size;
    fine = fields_read(&r, d.root, job_fields, out);
    if (fine && out->world_size != world_size)
        fine = node_error(&d, node_get(d.root, "world_size"), error, "found %d ranks, expected as many as were started, %d", out->world_size, world_size);
    document_free(&d);
    return fine;
}

bool job_from_environment(struct job *out, struct error *error)
{
    const char *folder = getenv("FSDPMARK_JOB");
    *out = (struct job){.folder = memory_text(folder)};
    bool fine = folder && *folder == '/';
    if (!fine)
        error_set(error, "environment: FSDPMARK_JOB: found '%.200s', expected the absolute path of the job's folder", folder ? folder : "");
    fine = fine && read_place(out, error) && read_job(out, error);
    if (!fine)
        job_free(out);
    return fine;
}

bool job_write(const char *folder, int world_size, const char *const *cases, int count, struct error *error)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_string(cases[i]));
    json_t *object = json_pack("{s:i,s:i,s:o}", "protocol", CASE_PROTOCOL, "world_size", world_size, "cases", list);
    char *path = memory_format("%s/job.json", folder), *part = memory_format("%s.tmp", path);
    bool fine = json_dump_file(object, part, JSON_INDENT(1)) == 0 && rename(part, path) == 0;
    if (!fine)
        error_set(error, "%s: cannot be written: %s", path, strerror(errno));
    free(part);
    free(path);
    json_decref(object);
    return fine;
}

void job_free(struct job *j)
{
    for (int i = 0; i < j->case_count; i++)
        free(j->cases[i]);
    free(j->cases);
    free(j->folder);
    *j = (struct job){0};
}
