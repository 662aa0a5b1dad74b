// See session.h.
#include "harness/run/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/launch/interrupt.h"
#include "harness/launch/template.h"
#include "harness/protocol/case_fields.h"
#include "harness/protocol/memory.h"
#include "harness/run/engine.h"
#include "harness/run/scratch.h"

// Importing a Python framework on a cold disk takes its time.
static const double INSTALLED_DEADLINE_S = 120;
// The check whether it is installed has warmed the disk up.
static const double VERSIONS_DEADLINE_S = 20;

char *session_default_store(struct error *error)
{
    const char *own = getenv("FSDPMARK_STORE"), *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (own != NULL && own[0] != 0)
        return memory_text(own);
    char *folder = xdg != NULL && xdg[0] != 0     ? memory_format("%s/fsdpmark", xdg)
                   : home != NULL && home[0] != 0 ? memory_format("%s/.local/share/fsdpmark", home)
                                                  : NULL;
    if (folder == NULL || !scratch_folder(folder, error)) {
        // The first message stays.
        error_set(error, "no folder for the results: none of FSDPMARK_STORE, XDG_DATA_HOME and HOME is set");
        free(folder);
        return NULL;
    }
    char *path = memory_format("%s/results.db", folder);
    free(folder);
    return path;
}

static bool manifest_command(const struct implementation *i, const struct string_list *list, double deadline_s, char *text, size_t size,
                             int *status, struct error *error)
{
    const char **command = run_argv(list), **environment = run_argv(&i->environment);
    bool ran = launch_capture(command, environment, i->folder, deadline_s, text, size, status, error);
    free(command);
    free(environment);
    return ran;
}

static void last_line(char *text, char **line)
{
    for (size_t n = strlen(text); n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '); n--)
        text[n - 1] = 0;
    char *newline = strrchr(text, '\n');
    *line = newline != NULL ? newline + 1 : text;
}

bool session_installed(const struct implementation *i, struct error *error)
{
    char text[8192] = "", *line = text;
    struct error own = {0};
    int status = 0;
    if (i->installed.count == 0)
        return true;
    bool ran = manifest_command(i, &i->installed, INSTALLED_DEADLINE_S, text, sizeof text, &status, &own);
    if (ran && status == 0)
        return true;
    last_line(text, &line);
    return error_set(error, "implementation %s cannot run here: %s%s%s", i->name, !ran ? own.text : line[0] ? line : "its check failed",
                     i->remedy != NULL && i->remedy[0] != 0 ? "; remedy: " : "", i->remedy != NULL ? i->remedy : "");
}

json_t *session_versions(const struct implementation *i)
{
    char text[8192] = "", *state = NULL;
    struct error error = {0};
    int status = 0;
    json_t *out = json_object();
    if (i->versions.count == 0)
        return out;
    double began_s = launch_now();
    bool ran = manifest_command(i, &i->versions, VERSIONS_DEADLINE_S, text, sizeof text, &status, &error);
    if (!ran && launch_now() - began_s >= VERSIONS_DEADLINE_S) {
        fprintf(stderr, "fsdpmark: implementation %s: its versions are unknown: %s\n", i->name, error.text);
        json_object_set_new(out, i->name, json_string("unknown (timed out)"));
    }
    if (!ran || status != 0)
        return out;
    for (char *line = strtok_r(text, "\n", &state); line != NULL; line = strtok_r(NULL, "\n", &state)) {
        char *blank = strchr(line, ' ');
        if (blank == NULL)
            continue;
        *blank = 0;
        json_object_set_new(out, line, json_string(blank + 1));
    }
    return out;
}

static void tell(void *context, const char *line)
{
    (void)context;
    fprintf(stderr, "fsdpmark: %s\n", line);
}

// A FAIL that names fault classes tells more than one that does not, and of those the answer's own tells most.
static int telling(const struct result *r)
{
    bool named = r->finding.verdict == VERDICT_FAIL && r->finding.classes[0] != 0;
    return !named ? 0 : strcmp(r->check, "answer") == 0 ? 2 : 1;
}

static const char *headline(const struct run_verdict *v)
{
    const struct result *best = NULL;
    for (int i = 0; i < v->result_count; i++) {
        const struct result *r = &v->results[i];
        if (r->finding.verdict == v->verdict && (best == NULL || telling(r) > telling(best)))
            best = r;
    }
    return best != NULL ? best->finding.message : "";
}

// The waivers of a case's results, by store id, 0 where there is none. True where all that FAILs is waived.
static bool find_waivers(const struct session *s, const struct run_verdict *v, int64_t waivers[ENGINE_RESULTS])
{
    bool waived = v->verdict == VERDICT_FAIL;
    for (int i = 0; i < v->result_count; i++) {
        int place = waiving_find(&s->waiving, v->planned->c.id, &v->results[i]);
        waivers[i] = place >= 0 ? s->waiving.ids[place] : 0;
        waived &= v->results[i].finding.verdict != VERDICT_FAIL || waiving_holds(&s->waiving, place);
    }
    return waived;
}

// The manifest's note, then what the worker adds to it; owned by the caller.
static char *note_of(const struct session *s, const struct run_verdict *v)
{
    const char *own = s->note != NULL ? s->note : "", *said = v->note != NULL ? v->note : "";
    bool both = own[0] && said[0] && strcmp(own, said) != 0;
    return memory_format("%s%s%s", own, both ? "; " : "", both || !own[0] ? said : "");
}

static bool take(void *context, const struct run_verdict *v, struct error *error)
{
    struct session *s = context;
    const struct fsdp_case *c = &v->planned->c;
    json_t *object = fields_write(case_fields, c, c);
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
    int64_t waivers[ENGINE_RESULTS];
    char *note = note_of(s, v);
    struct case_record record = {
        .implementation = s->implementation, .case_id = c->id, .family = c->family, .layer = layer_name(c->layer),
        .model = model_kind_name(c->model.kind), .strategy = strategy_name(c->sharding.strategy),
        .layout = layout_name(c->sharding.layout), .compute = dtype_name(c->precision.compute), .world_size = c->world_size,
        .seed = c->seed, .case_json = text, .origin = v->planned->origin, .seconds = v->seconds,
        .judge_seconds = v->judge_seconds, .start = v->start, .result_count = v->result_count, .results = v->results,
        .log_tail = v->log_tail, .figures = v->figures, .probes = v->probes, .digest = v->digest, .truth_digest = v->truth_digest,
        .waivers = waivers, .note = note,
    };
    bool waived = find_waivers(s, v, waivers), ok = store_record_case(s->store, s->run, &record, error);
    json_decref(object);
    free(text);
    free(note);
    if (s->progress != NULL)
        progress_step(s->progress, c->id, v->verdict, waived, headline(v));
    return ok && (s->watcher == NULL || s->watcher(s->watcher_context, v, error));
}

bool session_open(struct session *s, const char *store, const struct run_settings *settings, const struct run_info *info, int64_t resume,
                  struct error *error)
{
    *s = (struct session){.settings = *settings, .run = resume, .began_s = launch_now()};
    s->scratch = scratch_make(settings->keep, error);
    s->settings.scratch = s->scratch;
    char *folder = memory_format("%s/template", s->scratch != NULL ? s->scratch : "");
    s->settings.template = s->scratch != NULL ? template_new(folder, settings->case_deadline_s / 2) : NULL;
    free(folder);
    s->settings.tell = tell;
    s->settings.context = s;
    bool opened = s->scratch != NULL && truth_cache_open(NULL, &s->cache, error);
    s->cache.tell = tell;
    return opened && store_open(store, false, &s->store, error) &&
           (resume != 0 || store_begin_run(s->store, info, &s->run, error));
}

bool session_run(struct session *s, const char *name, const struct implementation *i, struct plan *plan, const struct known_case *known, FILE *out,
                 struct error *error)
{
    json_t *versions = session_versions(i);
    int open = 0;
    for (int k = 0; k < plan->count; k++)
        open += known == NULL || known[k].verdict < 0;
    double began_s = launch_now();
    bool ok = store_set_plan(s->store, s->run, name, plan->count, versions, i->note, error) &&
              waiving_begin(&s->waiving, s->waivers, name, versions, plan, s->store, s->run, error);
    json_decref(versions);
    s->implementation = name;
    s->note = i->note;
    s->progress = out != NULL ? progress_open(out, name, open, isatty(fileno(out))) : NULL;
    ok = ok && run_cases(&s->settings, i, plan, known, &s->cache, take, &s->counts, error);
    if (s->progress != NULL)
        progress_close(s->progress);
    s->progress = NULL;
    waiving_end(&s->waiving);
    return store_add_seconds(s->store, s->run, name, launch_now() - began_s, error) && ok;
}

bool session_absent(struct session *s, const struct implementation *i, const char *reason, struct error *error)
{
    struct result result = {"installed", {0}};
    if (store_has_case(s->store, s->run, i->name, SESSION_ABSENT))
        return true;
    finding_skip(&result.finding, "%s", reason);
    json_t *none = json_object();
    struct case_record record = {.implementation = i->name, .case_id = SESSION_ABSENT, .family = SESSION_ABSENT, .layer = "", .model = "",
                                 .strategy = "", .layout = "", .compute = "", .origin = "", .seconds = NAN, .judge_seconds = NAN,
                                 .result_count = 1, .results = &result, .note = i->note};
    bool ok = store_set_plan(s->store, s->run, i->name, 1, none, i->note, error) && store_record_case(s->store, s->run, &record, error);
    json_decref(none);
    return ok;
}

void session_summary(const struct session *s, FILE *out)
{
    const struct run_counts *c = &s->counts;
    char starts[96] = "";
    if (c->first_starts > 0)
        snprintf(starts, sizeof starts, c->later_starts > 0 ? " (%.2f s to the first event, later ones %.2f s)" : " (%.2f s to the first event)",
                 c->first_start_s / c->first_starts, c->later_starts > 0 ? c->later_start_s / c->later_starts : 0.0);
    fprintf(out, "run %lld: %d cases in %.1f s; worker starts: %d%s; truths: %d computed, %d from the cache; "
                 "per judged case: %.2f ms of the harness, %.2f ms of the checks\n",
            (long long)s->run, c->cases, launch_now() - s->began_s, c->starts, starts, s->cache.made, s->cache.found,
            c->judged > 0 ? 1e3 * c->own_s / c->judged : 0.0, c->judged > 0 ? 1e3 * c->checks_s / c->judged : 0.0);
}

bool session_close(struct session *s, int status, FILE *out, struct error *error)
{
    bool ok = true;
    if (s->store != NULL && status >= 0)
        ok = store_end_run(s->store, s->run, status, error);
    if (s->store != NULL)
        store_close(s->store);
    truth_cache_close(&s->cache);
    template_free(s->settings.template);
    s->settings.template = NULL;
    if (s->scratch != NULL)
        scratch_end(s->scratch, s->settings.keep);
    if (s->scratch != NULL && s->settings.keep)
        fprintf(out, "kept: %s\n", s->scratch);
    free(s->scratch);
    s->scratch = NULL;
    return ok;
}
