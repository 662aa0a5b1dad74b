// The tables of fields of a case and its parts, shared by the reader, the writer and the suite's own format.
#ifndef FSDPMARK_CASE_FIELDS_H
#define FSDPMARK_CASE_FIELDS_H

#include "harness/protocol/case.h"
#include "harness/protocol/fields.h"

extern const struct field case_fields[];       // of struct fsdp_case: case.json
extern const struct field instruction_field;   // of struct instruction, tagged by verb
extern const struct field *const instruction_fields[];

// Names by enum value, NULL at the end.
extern const char *const layer_names[], *const model_kind_names[], *const strategy_names[], *const layout_names[],
    *const wrap_names[], *const offload_names[], *const optimizer_names[], *const loss_scale_names[], *const loss_names[],
    *const clip_names[], *const verb_names[], *const observe_names[], *const norm_names[], *const position_names[],
    *const activation_names[], *const float_names[], *const recipe_names[];

// Frees what it owns.
void instruction_release(void *instruction);

// Reads a case from an open document, without the check for contradictions.
bool case_read_document(const struct document *d, struct fsdp_case *out, struct error *error);
// case_read that leaves the document open for the caller, where it succeeds.
bool case_read_kept(const char *path, struct fsdp_case *out, struct document *d, struct error *error);
// The first contradiction between fields: the dotted path of the field and what was found and expected.
// True where there is none.
bool case_consistent(const struct fsdp_case *c, char path[96], struct error *error);

#endif
