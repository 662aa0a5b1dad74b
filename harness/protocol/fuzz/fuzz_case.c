// libFuzzer target: any bytes as a document, as case.json, as a case file and as a manifest's tree.
//
// A case that is read must be copied, written and freed without a fault, and what is written must be read back
// and found as consistent as before.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cases/expand.h"
#include "harness/protocol/case_fields.h"
#include "harness/protocol/document.h"

static void read_as_case(const struct document *d)
{
    struct error error = {""};
    struct fsdp_case c, copy;
    char path[96];
    if (!case_read_document(d, &c, &error))
        return;
    bool fine = case_consistent(&c, path, &error);
    for (int r = 0; fine && r < c.world_size && r < 64; r++) {
        struct rank_place at = case_place(&c, r);
        if (case_rank_at(&c, at.stage, at.data, at.tensor) != r || at.replica * c.sharding.shards + at.shard != at.data)
            abort(); // every rank of a consistent case has a place of its own
    }
    case_copy(&copy, &c);
    json_t *object = fields_write(case_fields, &copy, &copy);
    char *text = json_dumps(object, JSON_REAL_PRECISION(17));
    struct document again;
    struct fsdp_case back;
    struct error problem = {""}, ignored = {""};
    if (!text || !document_parse(text, strlen(text), "again", &again, &problem) || !case_read_document(&again, &back, &problem))
        abort(); // what was written must be read back
    if (case_consistent(&back, path, &ignored) != fine)
        abort();
    case_free(&back);
    document_free(&again);
    free(text);
    json_decref(object);
    case_free(&copy);
    case_free(&c);
}

static bool drop(struct expanded *e, void *context, struct error *error)
{
    int *left = context;
    expanded_free(e);
    return --*left > 0 || error_set(error, "enough");
}

static void read_as_case_file(struct document *d)
{
    static char *layouts[] = {"per_parameter", "flat"};
    const struct implementation i = {.layouts = {2, layouts}};
    struct error error = {""};
    int left = 20; // combinations that one input may cost
    expand_document(d, &i, drop, &left, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct error error = {""};
    struct document d;
    if (!document_parse((const char *)bytes, size, "fuzz", &d, &error)) {
        if (!error.text[0])
            abort(); // every refusal says why
        return 0;
    }
    read_as_case(&d);
    read_as_case_file(&d);
    document_free(&d);
    return 0;
}
