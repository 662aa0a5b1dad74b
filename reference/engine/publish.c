// The engine's counts as software-defined events. See publish.h.
#include "reference/engine/publish.h"

#include "harness/probes/record.h"
#include "harness/probes/software_events.h"

#ifdef FSDPMARK_SDE
#include <sde_lib.h>

// Values of engines that have closed, and the engine that is open.
struct counts { long long bytes_gathered, bytes_reduced, collectives, unsharded_bytes_live, steps; };
static struct counts past;
static const struct engine *now;

static long long unsharded(const struct engine *e)
{
    long long bytes = 0;
    for (int i = 0; i < e->unit_count; i++) {
        const struct unit *u = &e->units[i];
        long long count = u->layout.full_count;
        bytes += u->full ? count * (long long)dtype_size(e->compute) : 0;
        bytes += u->has_accumulated ? count * (long long)dtype_size(e->accumulation) : 0;
        bytes += u->full_gradient && !(u->has_accumulated && u->full_gradient == u->accumulated) ? count * (long long)dtype_size(e->compute) : 0;
    }
    return bytes;
}

static struct counts counts_now(void)
{
    struct counts c = past;
    if (!now)
        return c;
    const struct comm_count *k = now->comm.counts;
    c.bytes_gathered += k[COMM_ALL_GATHER].bytes + k[COMM_NEAR_GATHER].bytes;
    c.bytes_reduced += k[COMM_REDUCE_SCATTER].bytes + k[COMM_ALL_REDUCE].bytes;
    for (int i = 0; i < COMM_KINDS; i++)
        c.collectives += k[i].calls;
    c.unsharded_bytes_live = unsharded(now);
    c.steps += now->steps;
    return c;
}

// A callback an event.
#define READ(name, unit, scope, what) static long long read_##name(void *unused) { (void)unused; return counts_now().name; }
SOFTWARE_EVENTS(READ)

bool publish_open(void)
{
    papi_handle_t handle = papi_sde_init(SOFTWARE_EVENTS_OF);
    bool ok = handle != NULL;
#define REGISTER(name, unit, scope, what)                                                                                           \
    ok = ok && papi_sde_register_counter_cb(handle, #name, PAPI_SDE_RO | (scope == PROBE_LEVEL ? PAPI_SDE_INSTANT : PAPI_SDE_DELTA),   \
                                            PAPI_SDE_long_long, read_##name, NULL) == SDE_OK &&                                        \
         papi_sde_describe_counter(handle, #name, what " [" unit "]") == SDE_OK;
    SOFTWARE_EVENTS(REGISTER)
    return ok;
}

void publish_engine(const struct engine *e)
{
    past = counts_now();
    past.unsharded_bytes_live = 0;
    now = e;
}

#else
bool publish_open(void) { return false; }
void publish_engine(const struct engine *e) { (void)e; }
#endif
