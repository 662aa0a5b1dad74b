// Builds the verdict matrix. See overview.h.
#include "harness/report/overview.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/memory.h"

static enum verdict verdict_of(const struct stored_case *c) {
    bool passed = false;
    for (int i = 0; i < c->result_count; i++) passed |= c->results[i].verdict == VERDICT_PASS;
    return c->verdict == VERDICT_SKIP && passed ? VERDICT_PASS : c->verdict;
}

static int compare_names(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static bool take_names(struct overview *m, const char *const *names, struct error *error) {
    struct names found = {0};
    bool ok = true;
    for (int i = 0; i < m->run->case_count; i++) names_add(&found, m->run->cases[i].implementation);
    const char **sorted = memory_copy(found.items, (size_t)found.count, sizeof *sorted);
    if (sorted) qsort(sorted, (size_t)found.count, sizeof *sorted, compare_names);
    for (int i = 0; !names && i < found.count; i++) names_add(&m->implementations, sorted[i]);
    for (int i = 0; ok && names && names[i]; i++) {
        ok = names_find(&found, names[i]) >= 0 || error_set(error, "implementation %s: found no verdict on it in the store", names[i]);
        names_add(&m->implementations, names[i]);
    }
    free(sorted);
    names_free(&found);
    return ok && (m->implementations.count > 0 || error_set(error, "the store holds no verdict (`fsdpmark check` records them)"));
}

// The smaller is read and run sooner.
static int compare_sizes(const struct overview_case *a, const struct overview_case *b) {
    int64_t sizes[2][3] = {{a->spec.world_size, 0, a->spec.program_length}, {b->spec.world_size, 0, b->spec.program_length}};
    for (int i = 0; i < a->spec.parameter_count; i++) sizes[0][1] += a->spec.parameters[i].count;
    for (int i = 0; i < b->spec.parameter_count; i++) sizes[1][1] += b->spec.parameters[i].count;
    for (int i = 0; i < 3; i++)
        if (sizes[0][i] != sizes[1][i]) return sizes[0][i] < sizes[1][i] ? -1 : 1;
    return strcmp(a->spec.id, b->spec.id);
}

// For the cell: BROKEN, FAIL, FAIL that is waived, PASS, SKIP.
static int severity(const struct overview_case *k) {
    static const int order[VERDICT_COUNT] = {[VERDICT_SKIP] = 0, [VERDICT_PASS] = 1, [VERDICT_FAIL] = 3, [VERDICT_BROKEN] = 4};
    return k->c->waived ? 2 : order[k->verdict];
}

static void add_to(struct overview_cell *cell, struct overview_case *k) {
    int difference = cell->deciding ? severity(k) - severity(cell->deciding) : 1;
    cell->cases++;
    cell->tally.of[k->verdict]++;
    cell->tally.waived += k->c->waived;
    if (difference > 0 || (!difference && compare_sizes(k, cell->deciding) < 0)) {
        cell->deciding = k;
        cell->verdict = k->verdict;
    }
}

static void find_rows(struct overview *m) {
    m->rows = memory_zeros((size_t)capability_count() + 1, sizeof *m->rows);
    for (int k = 0; k < capability_count(); k++) {
        int cases = 0;
        for (int i = 0; i < m->implementations.count; i++) cases += overview_at(m, k, i)->cases;
        if (cases) m->rows[m->row_count++] = k;
    }
}

char *overview_unasked(const struct overview *m) {
    char *text = memory_text("");
    for (int k = 0, at = 0; k < capability_count(); k++) {
        bool shown = at < m->row_count && m->rows[at] == k;
        at += shown;
        if (shown) continue;
        char *longer = memory_format("%s%s%s: %s", text, *text ? "; " : "", capabilities[k].group, capabilities[k].title);
        free(text);
        text = longer;
    }
    return text;
}

static void number_notes(struct overview *m) {
    int cells = capability_count() * m->implementations.count;
    m->notes = memory_zeros((size_t)cells + 1, sizeof *m->notes);
    for (int i = 0; i < m->implementations.count; i++)
        for (int k = 0; k < capability_count(); k++) {
            struct overview_case *deciding = overview_at(m, k, i)->deciding;
            if (!deciding || deciding->number || verdict_severity(deciding->verdict) < verdict_severity(VERDICT_FAIL)) continue;
            m->notes[m->note_count++] = deciding;
            deciding->number = m->note_count;
        }
}

bool overview_make(const struct stored_run *newest, const char *const *names, struct overview *m, struct error *error) {
    *m = (struct overview){.run = newest};
    m->cases = memory_zeros((size_t)newest->case_count + 1, sizeof *m->cases);
    if (!take_names(m, names, error)) return overview_free(m), false;
    m->cells = memory_zeros((size_t)(capability_count() * m->implementations.count), sizeof *m->cells);
    for (int i = 0; i < newest->case_count; i++) {
        const struct stored_case *c = &newest->cases[i];
        struct overview_case *k = &m->cases[m->case_count];
        int column = names_find(&m->implementations, c->implementation);
        if (column < 0 || !c->case_json || !strncmp(c->case_id, "gate.", 5)) continue;
        if (!case_read_stored(c->case_json, &k->spec)) {
            m->unreadable++;
            continue;
        }
        k->c = c;
        k->verdict = verdict_of(c);
        m->case_count++;
        for (int row = 0; row < capability_count(); row++)
            if (capabilities[row].has(&k->spec)) add_to(overview_at(m, row, column), k);
    }
    find_rows(m);
    number_notes(m);
    return true;
}

void overview_free(struct overview *m) {
    for (int i = 0; i < m->case_count; i++) case_free(&m->cases[i].spec);
    free(m->cases);
    free(m->cells);
    free(m->notes);
    free(m->rows);
    names_free(&m->implementations);
    *m = (struct overview){0};
}

struct overview_cell *overview_at(const struct overview *m, int capability, int implementation) {
    return &m->cells[capability * m->implementations.count + implementation];
}

const char *overview_class(const struct overview_cell *cell) {
    static const char *const names[VERDICT_COUNT] = {
        [VERDICT_PASS] = "pass", [VERDICT_FAIL] = "fail", [VERDICT_SKIP] = "skip", [VERDICT_BROKEN] = "broken"};
    return !cell->cases ? "none" : cell->deciding->c->waived ? "waived" : names[cell->verdict];
}

const char *overview_text(const struct overview_cell *cell, char buffer[64]) {
    *buffer = 0;
    if (!cell->cases) return buffer;
    bool waived = cell->deciding->c->waived;
    int judged = cell->cases - cell->tally.of[VERDICT_SKIP], worst = cell->tally.of[cell->verdict];
    int n = snprintf(buffer, 64, "%s %d", waived ? "waived" : verdict_name(cell->verdict), worst);
    if (cell->verdict != VERDICT_SKIP && worst < judged) snprintf(buffer + n, 64 - (size_t)n, "/%d", judged);
    return buffer;
}

static int telling(const struct stored_result *r) { return 4 * !r->waived + 2 * (*r->classes != 0) + !isnan(r->figure); }

const struct stored_result *overview_result(const struct overview_case *k) {
    const struct stored_result *best = NULL;
    for (int i = 0; i < k->c->result_count; i++) {
        const struct stored_result *r = &k->c->results[i];
        if (r->verdict == k->verdict && (!best || telling(r) > telling(best))) best = r;
    }
    return best;
}

// ---- how to see it again ----

static void put_argument(FILE *out, const char *option, const char *value) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=+-";
    fprintf(out, " %s ", option);
    if (*value && !value[strspn(value, plain)]) {
        fputs(value, out);
        return;
    }
    fputc('\'', out);
    for (; *value; value++)
        if (*value == '\'') fputs("'\\''", out);
        else fputc(*value, out);
    fputc('\'', out);
}

// Of several paths nobody can tell which manifest had that name; one alone is it.
static const char *subject_of(json_t *arguments, const char *name) {
    json_t *list = json_object_get(arguments, "implementations");
    const char *only = json_array_size(list) == 1 ? json_string_value(json_array_get(list, 0)) : NULL;
    return only && strchr(only, '/') ? only : name;
}

char *overview_command(const struct overview *m, const struct overview_case *k) {
    char *text = NULL, run[32];
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) abort();
    snprintf(run, sizeof run, "%lld", (long long)k->c->run);
    json_t *a = json_object_get(json_object_get(m->run->environment, run), "arguments");
    const char *file = json_string_value(json_object_get(a, "case_file"));
    int64_t random = json_integer_value(json_object_get(a, "random")), seed = json_integer_value(json_object_get(a, "seed"));
    fputs("fsdpmark check", out);
    put_argument(out, "-i", subject_of(a, k->c->implementation));
    if (file) put_argument(out, "--case", file);
    if (random) fprintf(out, " --random %lld", (long long)random);
    if (seed) fprintf(out, " --seed %lld", (long long)seed);
    if (json_is_true(json_object_get(a, "no_gate"))) fputs(" --no-gate", out);
    put_argument(out, "-k", k->c->case_id);
    fclose(out);
    return text;
}

char *overview_versions(const struct overview *m, int implementation) {
    char *text = NULL;
    size_t bytes;
    const char *name, *before = "";
    json_t *value;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) abort();
    json_object_foreach(json_object_get(json_object_get(m->run->implementations, m->implementations.items[implementation]), "versions"), name, value) {
        fprintf(out, "%s%s %s", before, name, json_string_value(value) ? json_string_value(value) : "?");
        before = ", ";
    }
    fclose(out);
    return text;
}

char *overview_note(const struct overview *m, int implementation) {
    const char *name = m->implementations.items[implementation];
    struct names seen = {0};
    char *text = memory_text("");
    for (int i = 0; i < m->run->case_count; i++) {
        const struct stored_case *c = &m->run->cases[i];
        if (strcmp(c->implementation, name) || !c->note || !*c->note || names_find(&seen, c->note) >= 0) continue;
        char *longer = memory_format("%s%s%s", text, *text ? "; " : "", c->note);
        names_add(&seen, c->note);
        free(text);
        text = longer;
    }
    names_free(&seen);
    return text;
}
