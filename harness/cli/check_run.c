// Runs what check_plan planned, and reports what became of it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/cli/check.h"
#include "harness/launch/interrupt.h"
#include "harness/protocol/memory.h"
#include "harness/run/stamp.h"

static bool write_reports(const struct cli *cli, const struct check_request *r, const struct stored_run *run)
{
    bool ok = true;
    if (r->json != NULL)
        ok &= cli_write(cli, r->json, report_json, run);
    if (r->junit != NULL)
        ok &= cli_write(cli, r->junit, report_junit, run);
    if (r->csv != NULL)
        ok &= cli_write(cli, r->csv, report_csv, run);
    if (r->tap)
        ok &= cli_write(cli, "-", report_tap, run);
    return ok;
}

// With --tap, or a report on stdout, the table and all news go to stderr.
static FILE *news(const struct check_request *r)
{
    const char *paths[] = {r->json, r->junit, r->csv};
    for (int i = 0; i < 3; i++)
        if (paths[i] != NULL && strcmp(paths[i], "-") == 0)
            return stderr;
    return r->tap ? stderr : stdout;
}

// The run as reports shall show it: ended, with its status, where it was not cut short.
static bool load_ended(struct session *s, bool cut_short, struct stored_run *run, struct error *error)
{
    if (!store_load_run(s->store, s->run, run, error))
        return false;
    if (cut_short)
        return true;
    int status = report_exit_status(run);
    stored_run_free(run);
    return store_end_run(s->store, s->run, status, error) && store_load_run(s->store, s->run, run, error);
}

static int finish(const struct cli *cli, const struct check_request *r, struct session *s, const char *store, struct error *error)
{
    FILE *out = news(r);
    struct stored_run run;
    int status = 3, caught = interrupt_signal();
    bool failed = error->text[0] != 0;
    if (failed)
        options_bad(cli->command, "%s", error->text);
    struct error own = {0};
    if (load_ended(s, caught || failed, &run, &own)) {
        status = failed ? 3 : report_exit_status(&run);
        cli_print_table(&run, r->verbose, out);
        if (!write_reports(cli, r, &run))
            status = 2;
        stored_run_free(&run);
    } else {
        options_bad(cli->command, "%s", own.text);
    }
    session_summary(s, out);
    if (caught || failed)
        fprintf(stderr, "fsdpmark check: %s; what was judged is kept, the rest goes on with: fsdpmark check --resume %lld --store %s\n",
                caught ? "interrupted" : "ended early", (long long)s->run, store);
    if (!session_close(s, caught || failed ? -1 : status, stderr, &own))
        options_bad(cli->command, "%s", own.text);
    return caught ? 128 + caught : status;
}

// A fabric that cannot be had here is a SKIP of all that was asked for.
static void skip_all(struct check_subjects *subjects, const struct fabric *fabric, const char *reason)
{
    for (int i = 0; i < subjects->count; i++)
        if (subjects->items[i].absent == NULL)
            subjects->items[i].absent = memory_format("fabric %s cannot be had here: %s", fabric->name, reason);
}

// So is a case that the machines of the fabric have no room for.
static void skip_crowded(struct check_subjects *subjects, const struct fabric_place *place)
{
    for (int i = 0; i < subjects->count; i++)
        for (int c = 0; c < subjects->items[i].plan.count; c++) {
            struct planned_case *planned = &subjects->items[i].plan.cases[c];
            if (planned->skip == NULL)
                planned->skip = fabric_place_crowded(place, planned->c.world_size);
        }
}

// False: nothing can run. *place stays NULL where there is none to be had, or none was asked for.
static bool open_place(const struct cli *cli, const struct check_request *r, struct check_subjects *subjects, struct fabric_place **place,
                       struct error *error)
{
    *place = NULL;
    char *reason = r->fabric != NULL ? fabric_unavailable(r->fabric) : NULL;
    if (reason != NULL)
        skip_all(subjects, r->fabric, reason);
    bool ok = r->fabric == NULL || reason != NULL || fabric_open(r->fabric, 0, cli->program, place, error);
    if (ok && *place != NULL)
        skip_crowded(subjects, *place);
    free(reason);
    return ok;
}

static int run_on(const struct cli *cli, const struct check_request *r, struct check_subjects *subjects, const struct waiver_list *waivers,
                  const char *store, const struct fabric_place *place)
{
    struct error error = {0};
    struct session session;
    struct run_settings settings = {
        .program = cli->program, .launcher = r->launcher, .start_deadline_s = 3 * r->deadline_s, .case_deadline_s = r->deadline_s,
        .truth_deadline_s = 600, .budget = r->budget, .keep = r->keep, .gated = !r->ungated, .place = place,
    };
    json_t *environment = stamp_make((uint64_t)r->seed);
    json_object_set_new(environment, "arguments", check_arguments_write(r));
    if (place != NULL)
        json_object_set_new(environment, "fabric", fabric_stamp(place));
    struct run_info info = {cli->command_line, r->profile, r->pattern, (uint64_t)r->seed, environment};
    bool ok = session_open(&session, store, &settings, &info, r->resume, &error);
    json_decref(environment);
    if (!ok) {
        options_bad(cli->command, "%s", error.text);
        session_close(&session, -1, stderr, &error);
        return 2;
    }
    session.waivers = waivers;
    FILE *progress = isatty(2) || news(r) == stderr ? stderr : stdout;
    for (int i = 0; ok && i < subjects->count && !interrupt_signal(); i++) {
        struct check_subject *s = &subjects->items[i];
        ok = s->absent != NULL ? session_absent(&session, &s->implementation, s->absent, &error)
                               : session_run(&session, s->implementation.name, &s->implementation, &s->plan, s->known, progress, &error);
    }
    return finish(cli, r, &session, store, &error);
}

int check_run(const struct cli *cli, const struct check_request *r, struct check_subjects *subjects, const struct waiver_list *waivers,
              const char *store)
{
    struct error error = {0};
    struct fabric_place *place;
    if (!open_place(cli, r, subjects, &place, &error)) {
        int caught = interrupt_signal();
        options_bad(cli->command, "%s", error.text);
        return caught ? 128 + caught : 3;
    }
    int status = run_on(cli, r, subjects, waivers, store, place);
    fabric_close(place);
    return status;
}
