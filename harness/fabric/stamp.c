// What is stamped on a run of the fabric that it ran over.
#include "harness/fabric/place.h"

static json_t *list_of(char *const *words)
{
    json_t *out = json_array();
    for (; *words != NULL; words++)
        json_array_append_new(out, json_string(*words));
    return out;
}

// Machines that have a name of their own.
static json_t *nodes(const struct fabric_place *p)
{
    json_t *out = json_array();
    for (int h = 0; h < fabric_place_hosts(p); h++) {
        const char *topology = fabric_place_topology(p, h);
        json_t *node = json_pack("{ss}", "name", fabric_place_name(p, h));
        if (topology != NULL)
            json_object_set_new(node, "topology", json_string(topology));
        json_array_append_new(out, node);
    }
    return out;
}

json_t *fabric_stamp(const struct fabric_place *p)
{
    const struct fabric *f = fabric_place_fabric(p);
    json_t *out = json_pack("{ss ss so so}", "name", f->name, "title", f->title, "mca", list_of(f->mca), "environment", list_of(f->environment));
    if (fabric_place_name(p, 0) != NULL)
        json_object_set_new(out, "nodes", nodes(p));
    if (f->kind != FABRIC_VIRTUAL)
        return out;
    json_t *virtual = json_pack("{si sf si si}", "hosts", fabric_place_hosts(p), "rate_bits", f->rate_bits, "burst_bytes", (int)topology_burst(f, f->rate_bits),
                                "limit_bytes", (int)f->limit_bytes);
    if (f->slow_host >= 0)
        json_object_update_new(virtual, json_pack("{si sf}", "slow_host", f->slow_host, "slow_rate_bits", f->slow_rate_bits));
    if (f->group > 0)
        json_object_update_new(virtual, json_pack("{si sf}", "group", f->group, "between_rate_bits", f->between_rate_bits));
    json_object_update_new(out, virtual);
    return out;
}
