// The probe `papi`: counts PAPI's events in any worker and writes down at each mark what the phase that ends has counted.
//
// What: $FSDPMARK_COUNTERS, names with commas between (fsdpmark check --counters). A record PROBE_COUNTER an event and phase; for one
//       that is not available, PAPI's error instead of a value.
// How:  PAPI starts at the first mark, so that a forked rank has an own one. Events of a component form a set. Those of perf_event
//       belong to a thread each: where PAPI can attach, every thread that lives at the first mark has a set, which the threads that
//       it starts inherit; else the marking thread is counted alone, and the record says so.
// Why the domain: a context switch and many a page fault happen in the kernel, and PAPI's default counts none of that.
#include <dirent.h>
#include <papi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/probes/counter.h"
#include "harness/probes/recorder.h"

enum { THREADS_MAX = 256, GROUPS_MAX = 8 };

struct counter {
    char name[PAPI_MAX_STR_LEN];
    int code, reason;          // reason: PAPI's error, 0 where it counts
    enum probe_scope scope;
    int group, place;          // in its sets
    long long before;
};
struct group { int component, event_count, set_count, sets[THREADS_MAX]; };

static struct counter counters[COUNTERS_MAX];
static struct group groups[GROUPS_MAX];
static int counter_count, group_count;
static pid_t started_in;       // 0: not yet; a fork is no start of its own
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static unsigned long thread_id(void) { return (unsigned long)syscall(SYS_gettid); }

// ---- which events there are ----

// A name of a software-defined event that nobody has published would become a counter that PAPI waits for: it is looked for first.
static bool is_published(const char *name)
{
    int component = PAPI_get_component_index("sde"), code = PAPI_NATIVE_MASK;
    char other[PAPI_MAX_STR_LEN];
    for (int r = PAPI_enum_cmp_event(&code, PAPI_ENUM_FIRST, component); r == PAPI_OK; r = PAPI_enum_cmp_event(&code, PAPI_ENUM_EVENTS, component))
        if (PAPI_event_code_to_name(code, other) == PAPI_OK && strcmp(other, name) == 0)
            return true;
    return false;
}

static const PAPI_component_info_t *component_named(const char *prefix)
{
    int id = PAPI_get_component_index(prefix);
    return id >= 0 ? PAPI_get_component_info(id) : NULL;
}

// Events that happen in the kernel alone: where it may not be counted they would stay 0.
static bool is_kernels(const PAPI_event_info_t *info)
{
    return strstr(info->long_descr, "PERF_COUNT_SW_CONTEXT_SWITCHES") != NULL || strstr(info->long_descr, "PERF_COUNT_SW_CPU_MIGRATIONS") != NULL;
}

static enum probe_scope scope_of(const struct counter *c, const char *component, const PAPI_event_info_t *info)
{
    const struct counter_fact *fact = counter_fact(c->name);
    if (fact != NULL)
        return fact->scope;
    if (info->timescope == PAPI_TIMESCOPE_POINT)
        return PROBE_LEVEL;
    return strcmp(component, "perf_event") == 0 || strcmp(component, "sde") == 0 ? PROBE_OF_PROCESS : PROBE_OF_MACHINE;
}

static int group_of(int component)
{
    for (int g = 0; g < group_count; g++)
        if (groups[g].component == component)
            return g;
    if (group_count == GROUPS_MAX)
        return -1;
    groups[group_count] = (struct group){.component = component};
    return group_count++;
}

// Finds the event; PAPI's error where there is none.
static int find(struct counter *c)
{
    PAPI_event_info_t info;
    memset(&info, 0, sizeof info);
    if (strncmp(c->name, "sde:::", 6) == 0) {
        const PAPI_component_info_t *sde = component_named("sde");
        if (sde == NULL || sde->disabled != PAPI_OK)
            return sde == NULL ? PAPI_ENOCMP : sde->disabled;
        if (!is_published(c->name))
            return PAPI_ENOEVNT;
    }
    int error = PAPI_event_name_to_code(c->name, &c->code);
    if (error != PAPI_OK || (error = PAPI_get_event_info(c->code, &info)) != PAPI_OK)
        return error;
    int component = PAPI_get_event_component(c->code);
    const PAPI_component_info_t *about = PAPI_get_component_info(component);
    if (about == NULL || (c->group = group_of(component)) < 0)
        return PAPI_ENOCMP;
    c->scope = scope_of(c, about->name, &info);
    return is_kernels(&info) && !(about->available_domains & PAPI_DOM_KERNEL) ? PAPI_EINVAL_DOM : PAPI_OK;
}

// ---- sets ----

static bool is_of_threads(const struct group *g)
{
    const PAPI_component_info_t *about = PAPI_get_component_info(g->component);
    return about != NULL && strcmp(about->name, "perf_event") == 0;
}

// A set of the group's events that PAPI takes. thread: to attach to, 0: this one alone. Returns PAPI's error.
static int make_set(struct group *g, unsigned long thread, bool first)
{
    int set = PAPI_NULL, error = PAPI_create_eventset(&set), own = (int)(g - groups), place = 0;
    if (error != PAPI_OK || (error = PAPI_assign_eventset_component(set, g->component)) != PAPI_OK)
        return error;
    PAPI_option_t inherit = {.inherit = {.eventset = set, .inherit = PAPI_INHERIT_ALL}};
    if (thread != 0 && ((error = PAPI_attach(set, thread)) != PAPI_OK || (error = PAPI_set_opt(PAPI_INHERIT, &inherit)) != PAPI_OK))
        return error;
    for (int i = 0; i < counter_count; i++) {
        struct counter *c = &counters[i];
        if (c->group != own || c->reason != 0)
            continue;
        int refused = PAPI_add_event(set, c->code);
        if (refused != PAPI_OK && !first)
            return refused;
        c->reason = refused;
        c->place = refused == PAPI_OK ? place++ : -1;
    }
    if (place == 0)
        return PAPI_OK;
    if ((error = PAPI_start(set)) == PAPI_OK) {
        g->sets[g->set_count++] = set;
        g->event_count = place;
    }
    return error;
}

// After a moment, for one that is ending is there a little longer.
static bool lives(unsigned long thread)
{
    usleep(1000);
    return syscall(SYS_tgkill, getpid(), thread, 0) == 0;
}

// A set for each thread of the process. PAPI's error where it cannot attach to one that lives: a sum over the others would be no sum.
static int follow_threads(struct group *g)
{
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;
    int error = folder != NULL ? make_set(g, thread_id(), true) : PAPI_ESYS;
    while (error == PAPI_OK && (entry = readdir(folder)) != NULL) {
        unsigned long thread = strtoul(entry->d_name, NULL, 10);
        if (thread == 0 || thread == thread_id())
            continue;
        error = g->set_count < THREADS_MAX ? make_set(g, thread, false) : PAPI_ECOUNT;
        if (error != PAPI_OK && !lives(thread))
            error = PAPI_OK;
    }
    if (folder != NULL)
        closedir(folder);
    return error;
}

static void refuse(int group, int error)
{
    for (int i = 0; i < counter_count; i++)
        if (counters[i].group == group && counters[i].reason == 0)
            counters[i].reason = error;
}

static void start_group(struct group *g)
{
    bool of_threads = is_of_threads(g);
    int own = (int)(g - groups), error = PAPI_OK;
    if (of_threads)
        PAPI_set_cmp_domain(PAPI_DOM_USER | PAPI_DOM_KERNEL, g->component);
    if (of_threads && (error = follow_threads(g)) == PAPI_OK)
        return;
    if (g->set_count == 0) { // not even to itself
        error = make_set(g, 0, true);
        for (int i = 0; of_threads && i < counter_count; i++)
            if (counters[i].group == own)
                counters[i].scope = PROBE_OF_THREAD;
    }
    if (error != PAPI_OK)
        refuse(own, error);
}

// ---- reading ----

static void read_group(int g, long long sums[COUNTERS_MAX])
{
    memset(sums, 0, COUNTERS_MAX * sizeof *sums);
    for (int s = 0; s < groups[g].set_count; s++) {
        long long values[COUNTERS_MAX] = {0};
        int error = PAPI_read(groups[g].sets[s], values);
        for (int i = 0; i < groups[g].event_count; i++)
            sums[i] += values[i];
        for (int i = 0; error != PAPI_OK && i < counter_count; i++)
            if (counters[i].group == g && counters[i].reason == 0)
                counters[i].reason = error;
    }
}

static void record(struct counter *c, long long now)
{
    struct probe_record r = {.time_ns = probe_now(), .kind = PROBE_COUNTER, .op = (uint8_t)c->scope,
                             .type = c->reason != 0 ? PROBE_UNCOUNTED : PROBE_COUNTED};
    snprintf(r.counter.event, sizeof r.counter.event, "%s", counter_key(c->name));
    r.counter.value = c->reason != 0 ? c->reason : c->scope == PROBE_LEVEL ? now : now - c->before;
    c->before = now;
    probe_append(&r);
}

static void read_all(bool first)
{
    long long sums[GROUPS_MAX][COUNTERS_MAX];
    for (int g = 0; g < group_count; g++)
        read_group(g, sums[g]);
    for (int i = 0; i < counter_count; i++) {
        struct counter *c = &counters[i];
        long long now = c->reason == 0 ? sums[c->group][c->place] : 0;
        if (first)
            c->before = now;
        else
            record(c, now);
    }
}

static void start(const char *events)
{
    char *words = strdup(events), *rest = words, *word;
    int version = PAPI_library_init(PAPI_VER_CURRENT), error = version == PAPI_VER_CURRENT ? PAPI_thread_init(thread_id) : version < 0 ? version : PAPI_EINVAL;
    while (words != NULL && (word = strsep(&rest, ",")) != NULL && counter_count < COUNTERS_MAX) {
        struct counter *c = &counters[counter_count++];
        *c = (struct counter){.group = -1, .place = -1};
        snprintf(c->name, sizeof c->name, "%s", word);
        c->reason = error != PAPI_OK ? error : find(c);
    }
    for (int g = 0; g < group_count; g++)
        start_group(&groups[g]);
    free(words);
}

static void at_mark(const char *phase, int step)
{
    const char *events = getenv("FSDPMARK_COUNTERS");
    (void)phase;
    (void)step;
    if (events == NULL || (started_in != 0 && started_in != getpid()))
        return;
    pthread_mutex_lock(&turn);
    bool first = started_in == 0;
    started_in = getpid();
    if (first)
        start(events);
    read_all(first);
    pthread_mutex_unlock(&turn);
}

__attribute__((constructor)) static void load(void)
{
    probe_loaded(PROBE_PAPI);
    probe_at_mark(at_mark);
}
