// A fabric's file again, with other options of Open MPI: what a candidate is measured on. As JSON, which YAML holds. See settings.h.
#include <stdlib.h>
#include <string.h>

#include "harness/advise/settings.h"
#include "harness/protocol/memory.h"

static json_t *text_of(double value, const char *unit)
{
    char *text = memory_format("%.12g%s", value, unit);
    json_t *out = json_string(text);
    free(text);
    return out;
}

static json_t *rate(double bits) { return text_of(bits / 1e3, "kbit"); }
static json_t *size(long bytes) { return text_of((double)bytes / 1024, "KiB"); }

static json_t *pairs(char *const *list)
{
    json_t *out = json_object();
    for (; *list != NULL; list++) {
        char *name = memory_format("%.*s", (int)strcspn(*list, "="), *list);
        json_object_set_new(out, name, json_string(*list + strlen(name) + 1));
        free(name);
    }
    return out;
}

static void put_virtual(const struct fabric *f, json_t *out)
{
    json_object_update_new(out, json_pack("{s:i, s:o, s:o}", "hosts", f->hosts, "rate", rate(f->rate_bits), "limit", size(f->limit_bytes)));
    if (f->burst_bytes > 0)
        json_object_set_new(out, "burst", size(f->burst_bytes));
    if (f->slow_host >= 0)
        json_object_set_new(out, "slow", json_pack("{s:i, s:o}", "host", f->slow_host, "rate", rate(f->slow_rate_bits)));
    if (f->group > 0)
        json_object_set_new(out, "tiers", json_pack("{s:i, s:o}", "group", f->group, "between", rate(f->between_rate_bits)));
}

bool settings_write(const struct fabric *f, char *const *mca, const char *path, struct error *error)
{
    static const char *const kinds[FABRIC_KINDS] = {[FABRIC_SHM] = "shm", [FABRIC_LOOPBACK] = "loopback", [FABRIC_VIRTUAL] = "virtual", [FABRIC_HOSTS] = "hosts",
                                                    [FABRIC_SLURM] = "slurm", [FABRIC_NCCL] = "nccl", [FABRIC_UCX] = "ucx"};
    json_t *out = json_pack("{s:s, s:s, s:o, s:o}", "title", f->title, "kind", kinds[f->kind], "mca", pairs(mca), "environment", pairs(f->environment));
    if (f->kind == FABRIC_VIRTUAL)
        put_virtual(f, out);
    if (f->hostfile != NULL)
        json_object_set_new(out, "hostfile", json_string(f->hostfile));
    if (f->agent != NULL)
        json_object_set_new(out, "agent", json_string(f->agent));
    bool ok = json_dump_file(out, path, JSON_INDENT(1)) == 0 || error_set(error, "%s: cannot be written", path);
    json_decref(out);
    return ok;
}
