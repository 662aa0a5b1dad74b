// Which line a point passes, on emulated clusters whose lines differ.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "harness/net/lines.h"

static const double MBIT = 1e6 / 8;
static struct fabric fabric;

static struct fabric_place *up(const char *name)
{
    struct error error = {0};
    struct fabric_place *place = NULL;
    if (!fabric_read(name, "suite", &fabric, &error))
        fail_msg("%s", error.text);
    char *reason = fabric_unavailable(&fabric);
    if (reason != NULL) {
        print_message("SKIP: %s\n", reason);
        free(reason);
        skip();
    }
    if (!fabric_open(&fabric, 0, "/proc/self/exe", &place, &error))
        fail_msg("%s", error.text);
    return place;
}

static void down(struct fabric_place *place)
{
    fabric_close(place);
    fabric_free(&fabric);
}

static struct net_point call(enum net_op op, enum net_group group, int root)
{
    return (struct net_point){.measure = "x", .label = "", .call_count = 1, .calls = {{op, group, DTYPE_F32, 1024, root}}};
}

static void passes(const struct fabric_place *place, int ranks, int within, struct net_point p, double mbit, double burst)
{
    struct net_line l = net_line_of(place, ranks, within, &p);
    if (l.rate != mbit * MBIT || l.burst != burst)
        fail_msg("%s: found %g Mbit/s and a burst of %g, expected %g and %g", net_op_names[p.calls[0].op], l.rate / MBIT, l.burst, mbit, burst);
}

static void two_tiers(void **state)
{
    (void)state;
    struct fabric_place *place = up("virtual-two-tier"); // hosts 0, 1 and 2, 3 at 200 Mbit/s, 50 between
    struct net_point both = call(NET_REDUCE_SCATTER, NET_WITHIN, 0);
    assert_true(net_line_of(place, 4, 2, NULL).rate == 50 * MBIT && net_line_of(place, 2, 0, NULL).rate == 50 * MBIT);
    passes(place, 4, 2, call(NET_ALL_GATHER, NET_WORLD, 0), 50, 65536);
    passes(place, 4, 2, call(NET_ALL_GATHER, NET_WITHIN, 0), 200, 250000);
    passes(place, 4, 2, call(NET_ALL_REDUCE, NET_BETWEEN, 0), 50, 65536);
    passes(place, 4, 2, call(NET_LINK, NET_WORLD, 0), 200, 250000);
    passes(place, 4, 2, call(NET_LINK, NET_WORLD, 1), 50, 65536);
    passes(place, 4, 2, call(NET_EXCHANGE, NET_WORLD, 0), 50, 65536);
    passes(place, 8, 2, call(NET_ALL_GATHER, NET_WITHIN, 0), 0, 0); // both of one host
    both.call_count = 2;
    both.calls[1] = call(NET_ALL_REDUCE, NET_BETWEEN, 0).calls[0];
    passes(place, 4, 2, both, 50, 65536);
    down(place);
}

static void slow_host(void **state)
{
    (void)state;
    struct fabric_place *place = up("virtual-slow-host"); // host 0 at 25 Mbit/s, the others at 100
    passes(place, 4, 2, call(NET_ALL_GATHER, NET_WORLD, 0), 25, 65536);
    passes(place, 4, 2, call(NET_LINK, NET_WORLD, 3), 25, 65536);
    passes(place, 4, 2, call(NET_LINK, NET_WORLD, 1), 100, 125000);
    down(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_tiers), cmocka_unit_test(slow_host)};
    return cmocka_run_group_tests_name("lines of a point", tests, NULL, NULL);
}
