// case.json to struct fsdp_case. See case.h; what is a field is in case_fields.c.
#include <string.h>

#include "harness/protocol/case_fields.h"

static void count_elements(struct fsdp_case *out)
{
    for (int i = 0; i < out->parameter_count; i++) {
        struct case_parameter *p = &out->parameters[i];
        p->count = 1;
        for (int k = 0; k < p->dims; k++)
            p->count *= p->shape[k];
    }
}

bool case_read_document(const struct document *d, struct fsdp_case *out, struct error *error)
{
    struct reading r = {.document = d, .error = error, .root = out};
    *out = (struct fsdp_case){0};
    if (!fields_read(&r, d->root, case_fields, out)) {
        case_free(out);
        return false;
    }
    count_elements(out);
    return true;
}

bool case_read_kept(const char *path, struct fsdp_case *out, struct document *d, struct error *error)
{
    *out = (struct fsdp_case){0};
    if (!document_read(path, d, error))
        return false;
    bool fine = case_read_document(d, out, error);
    struct error problem = {""};
    char field[96];
    if (fine && !case_consistent(out, field, &problem)) {
        fine = node_error(d, node_at(d->root, field), error, "%s: %s", field, problem.text);
        case_free(out);
    }
    if (!fine)
        document_free(d);
    return fine;
}

bool case_read(const char *path, struct fsdp_case *out, struct error *error)
{
    struct document d;
    bool fine = case_read_kept(path, out, &d, error);
    if (fine)
        document_free(&d);
    return fine;
}

bool case_read_stored(const char *text, struct fsdp_case *out)
{
    struct document d;
    struct error error = {""};
    *out = (struct fsdp_case){0};
    if (!text || !document_parse(text, strlen(text), "case.json", &d, &error))
        return false;
    struct reading r = {.document = &d, .error = &error, .root = out, .partial = true};
    bool fine = fields_read(&r, d.root, case_fields, out) && out->id;
    document_free(&d);
    if (fine)
        count_elements(out);
    else
        case_free(out);
    return fine;
}
