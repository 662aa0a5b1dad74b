// Writing a rank's event lines. See answer.h.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/answer.h"
#include "harness/protocol/fields.h"
#include "harness/protocol/memory.h"

bool answer_open(struct answer_writer *w, const char *case_folder, int rank, struct error *error)
{
    *w = (struct answer_writer){.rank = rank, .out_folder = memory_format("%s/out", case_folder)};
    char *path = memory_format("%s/rank%d.jsonl", w->out_folder, rank);
    w->file = fopen(path, "ae");
    if (!w->file) {
        error_set(error, "%s: cannot be opened: %s", path, strerror(errno));
        answer_close(w);
    }
    free(path);
    return w->file != NULL;
}

bool answer_event(struct answer_writer *w, const char *event, json_t *fields)
{
    json_t *line = json_pack("{s:s}", "event", event);
    if (fields)
        json_object_update(line, fields);
    json_decref(fields);
    bool fine = w->file && json_dumpf(line, w->file, JSON_COMPACT | JSON_REAL_PRECISION(17)) == 0 &&
                fputc('\n', w->file) != EOF && fflush(w->file) == 0;
    json_decref(line);
    return fine;
}

json_t *answer_number(double value)
{
    return json_number_or_name(value);
}

void answer_close(struct answer_writer *w)
{
    if (w->file)
        fclose(w->file);
    free(w->out_folder);
    *w = (struct answer_writer){0};
}
