// PAPI as the harness asks it. See counters.h.
#include "harness/probes/counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/probes/counter.h"
#include "harness/protocol/memory.h"

#ifdef FSDPMARK_PAPI
#include <papi.h>

// Software events of the kernel first: they need no hardware. Then the presets that most processors have, and the energy of the
// package as perf_event tells it; other energy is found by its component.
static const char *const usual[] = {"perf::TASK-CLOCK", "perf::PAGE-FAULTS", "perf::CONTEXT-SWITCHES", "perf::CPU-MIGRATIONS",
                                    "PAPI_TOT_CYC", "PAPI_TOT_INS", "PAPI_L2_TCM", "PAPI_FP_OPS", "rapl::RAPL_ENERGY_PKG"};
static const char *const energy[] = {"rapl", "powercap", "nvml", "rocm_smi", "cray_pm"};
enum { USUAL = sizeof usual / sizeof *usual, ENERGY = sizeof energy / sizeof *energy };

static bool ready(struct error *error)
{
    static bool tried, fine;
    if (!tried) {
        int version = PAPI_library_init(PAPI_VER_CURRENT);
        fine = version == PAPI_VER_CURRENT;
        tried = true;
        if (!fine)
            return error_set(error, "PAPI: %s", version < 0 ? PAPI_strerror(version) : "the library is not of the version that this was built with");
    }
    return fine || error_set(error, "PAPI: it did not start");
}

// The component whose name stands before ":::", NULL where there is none of that name.
static const PAPI_component_info_t *component_of(const char *event)
{
    const char *colons = strstr(event, ":::");
    for (int i = 0; colons != NULL && i < PAPI_num_components(); i++) {
        const PAPI_component_info_t *c = PAPI_get_component_info(i);
        size_t size = (size_t)(colons - event);
        if ((strncmp(c->name, event, size) == 0 && c->name[size] == 0) || (strncmp(c->short_name, event, size) == 0 && c->short_name[size] == 0))
            return c;
    }
    return NULL;
}

// "" where it can be counted in this process, else PAPI's reason.
static const char *try_event(const char *event)
{
    int code, set = PAPI_NULL, error = PAPI_event_name_to_code(event, &code);
    if (error == PAPI_OK)
        error = PAPI_create_eventset(&set);
    if (error == PAPI_OK) {
        error = PAPI_add_event(set, code);
        PAPI_cleanup_eventset(set);
        PAPI_destroy_eventset(&set);
    }
    return error == PAPI_OK ? "" : PAPI_strerror(error);
}

// ---- names ----

struct names { char *text; int count; };

static bool add(struct names *n, const char *event, struct error *error)
{
    char *rest = n->text;
    for (const char *at = rest; at != NULL && *at; at += strcspn(at, ","), at += *at == ',') {
        size_t size = strcspn(at, ",");
        char *other = memory_format("%.*s", (int)size, at);
        bool same = strcmp(other, event) == 0, clash = !same && strcmp(counter_key(other), counter_key(event)) == 0;
        free(other);
        if (clash)
            return error_set(error, "--counters: found '%s' beside one that ends in the same %d characters, expected one of them", event, COUNTER_NAME_BYTES - 1);
        if (same)
            return true;
    }
    if (n->count++ == COUNTERS_MAX)
        return error_set(error, "--counters: found more than %d events", COUNTERS_MAX);
    n->text = rest != NULL ? memory_format("%s,%s", rest, event) : memory_text(event);
    free(rest);
    return true;
}

static bool is_software_defined(const char *event)
{
    return counter_fact(event) != NULL || strncmp(event, "sde:::" SOFTWARE_EVENTS_OF "::", strlen("sde:::" SOFTWARE_EVENTS_OF "::")) != 0;
}

// A name that PAPI knows, or may know in the worker: software-defined events are the worker's, those of a component that is disabled
// here cannot be looked up, and both are told of when they turn out not to be there.
static bool expect_known(const char *event, struct error *error)
{
    int code, found = PAPI_OK;
    const PAPI_component_info_t *c = component_of(event);
    if (c != NULL && strcmp(c->name, "sde") == 0)
        return is_software_defined(event) || error_set(error, "--counters: found '%s', which the reference does not publish (docs/probes.md lists those)", event);
    if (event[0] != 0 && (found = PAPI_event_name_to_code(event, &code)) == PAPI_OK)
        return true;
    if (c != NULL && c->disabled != PAPI_OK)
        return true;
    return error_set(error, "--counters: found '%s', expected default or an event that PAPI knows (PAPI: %s)", event, event[0] ? PAPI_strerror(found) : "no name");
}

// Energy that components tell; events of one that is disabled are of no use, and have no names either.
static bool add_energy(struct names *n, struct error *error)
{
    bool ok = true;
    for (int i = 0; i < ENERGY; i++) {
        int id = PAPI_get_component_index(energy[i]), code = PAPI_NATIVE_MASK;
        char name[PAPI_MAX_STR_LEN];
        if (id < 0 || PAPI_get_component_info(id)->disabled != PAPI_OK)
            continue;
        for (int r = PAPI_enum_cmp_event(&code, PAPI_ENUM_FIRST, id); ok && r == PAPI_OK; r = PAPI_enum_cmp_event(&code, PAPI_ENUM_EVENTS, id))
            if (PAPI_event_code_to_name(code, name) == PAPI_OK && (strstr(name, "ENERGY") || strstr(name, "energy")) && n->count < COUNTERS_MAX)
                ok = add(n, name, error);
    }
    return ok;
}

static bool add_usual(struct names *n, struct error *error)
{
    bool ok = true;
    int code;
    for (int i = 0; ok && i < USUAL; i++)
        if (PAPI_event_name_to_code(usual[i], &code) == PAPI_OK) // some names are of other processors
            ok = add(n, usual[i], error);
    return ok && add_energy(n, error);
}

bool counters_resolve(const char *words, char **events, struct error *error)
{
    struct names n = {0};
    char *copy = memory_text(words), *rest = copy, *word;
    bool ok = ready(error);
    while (ok && (word = strsep(&rest, ",")) != NULL)
        ok = strcmp(word, "default") == 0 ? add_usual(&n, error) : expect_known(word, error) && add(&n, word, error);
    free(copy);
    *events = ok ? n.text : NULL;
    if (!ok)
        free(n.text);
    return ok;
}

// ---- what is to be said of them ----

void counters_reason(const char *event, int code, char *text, size_t size)
{
    struct error ignored = {0};
    const PAPI_component_info_t *c = ready(&ignored) ? component_of(event) : NULL;
    bool whole = c != NULL && c->disabled != PAPI_OK && c->disabled_reason[0] && (strcmp(c->name, "sde") != 0 || code == c->disabled);
    snprintf(text, size, "%s", whole ? c->disabled_reason : PAPI_strerror(code) != NULL ? PAPI_strerror(code) : "unknown error");
}

const char *counters_unit(const char *event)
{
    static PAPI_event_info_t info;
    struct error ignored = {0};
    int code;
    const struct counter_fact *fact = counter_fact(event);
    if (fact != NULL)
        return fact->unit;
    bool known = ready(&ignored) && strncmp(event, "sde:::", 6) != 0 && PAPI_event_name_to_code(event, &code) == PAPI_OK &&
                 PAPI_get_event_info(code, &info) == PAPI_OK;
    return known && info.units[0] ? info.units : "events";
}

void counters_thread_reason(char *text, size_t size)
{
    struct error error = {0};
    int set = PAPI_NULL, id, code = PAPI_OK;
    text[0] = 0;
    if (!ready(&error) || (id = PAPI_get_component_index("perf_event")) < 0)
        return;
    if (PAPI_create_eventset(&set) == PAPI_OK && PAPI_assign_eventset_component(set, id) == PAPI_OK)
        code = PAPI_attach(set, (unsigned long)getpid());
    if (code != PAPI_OK)
        snprintf(text, size, "PAPI_attach: %s", PAPI_strerror(code));
    PAPI_cleanup_eventset(set);
    PAPI_destroy_eventset(&set);
}

void counters_kernel_reason(char *text, size_t size)
{
    struct error error = {0};
    int id = ready(&error) ? PAPI_get_component_index("perf_event") : -1;
    bool refused = id >= 0 && !(PAPI_get_component_info(id)->available_domains & PAPI_DOM_KERNEL);
    snprintf(text, size, "%s", refused ? "perf_event offers no PAPI_DOM_KERNEL (/proc/sys/kernel/perf_event_paranoid)" : "");
}

// ---- components ----

static void list(char text[400], const char *event, const char *reason)
{
    size_t used = strlen(text);
    snprintf(text + used, 400 - used, "%s%s%s%s%s", used ? ", " : "", event, *reason ? " (" : "", reason, *reason ? ")" : "");
}

static void list_usual(struct counters_component *c, int id)
{
    int code;
    for (int i = 0; i < USUAL; i++) {
        if (PAPI_event_name_to_code(usual[i], &code) != PAPI_OK || PAPI_get_event_component(code) != id)
            continue;
        const char *reason = try_event(usual[i]);
        list(*reason ? c->refused : c->usable, usual[i], reason);
    }
}

int counters_components(void (*look)(void *context, const struct counters_component *c), void *context, char *why, size_t size)
{
    struct error error = {0};
    if (!ready(&error))
        return snprintf(why, size, "%s", error.text), 0;
    for (int i = 0; i < PAPI_num_components(); i++) {
        int code = PAPI_NATIVE_MASK;
        // Some components start when their events are asked for, and only then know whether they can.
        PAPI_enum_cmp_event(&code, PAPI_ENUM_FIRST, i);
        const PAPI_component_info_t *p = PAPI_get_component_info(i);
        struct counters_component c = {.name = p->name, .about = p->description, .events = p->num_native_events,
                                       .reason = p->disabled == PAPI_OK ? "" : p->disabled_reason[0] ? p->disabled_reason : PAPI_strerror(p->disabled)};
        if (p->disabled == PAPI_OK)
            list_usual(&c, i);
        look(context, &c);
    }
    return PAPI_num_components();
}

#else
static const char absent[] = "this build has no PAPI (package libpapi-dev, then make)";

bool counters_resolve(const char *words, char **events, struct error *error)
{
    (void)words;
    *events = NULL;
    return error_set(error, "--counters: %s", absent);
}
void counters_reason(const char *event, int code, char *text, size_t size)
{
    snprintf(text, size, "%s: error %d: %s", event, code, absent);
}
const char *counters_unit(const char *event)
{
    const struct counter_fact *fact = counter_fact(event);
    return fact != NULL ? fact->unit : "events";
}
void counters_thread_reason(char *text, size_t size) { snprintf(text, size, "%s", absent); }
void counters_kernel_reason(char *text, size_t size) { snprintf(text, size, "%s", absent); }
int counters_components(void (*look)(void *context, const struct counters_component *c), void *context, char *why, size_t size)
{
    (void)look;
    (void)context;
    return snprintf(why, size, "%s", absent), 0;
}
#endif
