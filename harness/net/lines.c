// See lines.h.
#include "harness/net/lines.h"

#include <stddef.h>

#include "harness/fabric/place.h"

static void pass(struct net_line *l, const struct fabric_place *place, int ranks, int from, int to)
{
    double rate = fabric_place_way(place, fabric_place_host(place, from, ranks), fabric_place_host(place, to, ranks));
    if (rate > 0 && (l->rate == 0 || rate / 8 < l->rate))
        *l = (struct net_line){rate / 8, (double)topology_burst(fabric_place_fabric(place), rate)};
}

// Whom a rank sends to, in a ring of its group.
static int next(const struct net_call *c, int ranks, int within, int rank)
{
    if (c != NULL && (c->op == NET_ONE_WAY || c->op == NET_EXCHANGE))
        return (rank + ranks / 2) % ranks;
    if (c != NULL && c->group == NET_WITHIN)
        return rank / within * within + (rank + 1) % within;
    return (rank + (c != NULL && c->group == NET_BETWEEN ? within : 1)) % ranks;
}

static void pass_all(struct net_line *l, const struct fabric_place *place, int ranks, int within, const struct net_call *c)
{
    for (int r = 0; r < ranks; r++)
        if (c == NULL || c->op != NET_LINK || r == c->root)
            pass(l, place, ranks, r, next(c, ranks, within, r));
}

struct net_line net_line_of(const struct fabric_place *place, int ranks, int within, const struct net_point *point)
{
    struct net_line l = {0};
    if (point == NULL)
        pass_all(&l, place, ranks, within, NULL);
    for (int i = 0; point != NULL && i < point->call_count; i++)
        pass_all(&l, place, ranks, within, &point->calls[i]);
    return l;
}
