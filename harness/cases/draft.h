// A case in the making: the suite's short form laid over defaults, before it is a struct fsdp_case.
//
// A draft starts from defaults; the mappings of a case file (defaults, case, one value of each axis) are laid
// over it in turn, each setting only the fields that it mentions; draft_finish derives the rest.
// The format is docs/cases.md.
#ifndef HARNESS_DRAFT_H
#define HARNESS_DRAFT_H

#include "harness/protocol/case_fields.h"

struct draft {
    struct fsdp_case c;          // first: the tables of case.json apply to a draft
    char *name, *title;
    char *variant;               // name of the variant chosen, or NULL
    int64_t rows_per_rank;       // 0 where global_rows is given
    bool sync_last;
    bool observe_local;
    bool mesh_all;               // mesh: all, which only a matrix can expand
    int save_ranks;              // of the case that saves what this one loads; 0: none
    int save_layout;             // enum save_layout
    const struct node *program;  // explicit program or NULL
};

// Layout of the case that saves.
enum save_layout { SAVE_LAYOUT_SAME, SAVE_LAYOUT_OTHER };
extern const char *const save_layout_names[];

enum draft_part { DRAFT_DEFAULTS, DRAFT_CASE, DRAFT_AXIS, DRAFT_VARIANT };

void draft_start(struct draft *d);
void draft_copy(struct draft *dst, const struct draft *src);
void draft_free(struct draft *d);

// Lays a mapping over the draft. Keys that only some parts have (name, title, matrix, exclude) are errors elsewhere.
bool draft_overlay(struct draft *d, const struct document *doc, const struct node *mapping, enum draft_part part, struct error *error);
// Fills what follows from other fields: mesh, rows, defaults by layer and kind, program, parameter table.
// doc gets the nodes of expanded shorthands; at locates complaints.
bool draft_finish(struct draft *d, struct document *doc, const struct node *at, struct error *error);
// Program: the explicit one or the standard one (program.c).
bool draft_program(struct draft *d, struct document *doc, const struct node *at, struct error *error);

// All of one step of the standard program, added to the end of the program.
void draft_train(struct draft *d, int step);

// Is this the name of a key, or a dotted path that begins with one? Sets the error otherwise.
bool draft_key_known(const struct document *doc, const struct node *at, int line, const char *key, struct error *error);
// The value that the draft really has under a key or dotted path, as JSON (new reference); NULL where there is none.
json_t *draft_value(const struct draft *d, const char *key);
// Does a value written in YAML (or, a list: any of its values) say the same as the JSON?
bool draft_value_matches(const struct node *written, const json_t *value);
// Do all keys of a mapping match the draft, leaving out the key `skip` (may be NULL)?
bool draft_matches(const struct draft *d, const struct node *mapping, const char *skip);

#endif
