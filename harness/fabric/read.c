// Reading suite/fabrics/NAME.yaml. Keys: docs/fabrics.md.
//
// Rates are bits per second in powers of ten and sizes bytes in powers of two, each with its unit written out, since `100mb` means
// four things to four tools.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/cases/strings.h"
#include "harness/fabric/fabric.h"
#include "harness/protocol/document.h"
#include "harness/protocol/fields.h"
#include "harness/protocol/memory.h"

// Of tbf, where the file does not say.
static const long LIMIT_BYTES = 4 << 20;
static const double RATE_LEAST = 1e5, RATE_MOST = 1e11;

static const char *const kinds[] = {"shm", "loopback", "virtual", "hosts", "slurm", "nccl", "ucx", NULL};

struct unit { const char *name; double factor; };
static const struct unit rates[] = {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {0}};
static const struct unit sizes[] = {{"KiB", 1 << 10}, {"MiB", 1 << 20}, {0}};

struct reader { struct reading r; struct fabric *out; };
// One key of the file. Virtual: of the virtual fabric alone.
struct key { const char *name; bool is_virtual; bool (*read)(struct reader *, const struct node *); };

static bool complain(struct reader *r, const struct node *node, const char *key, const char *expected)
{
    char found[120];
    return node_error(r->r.document, node, r->r.error, "%s: found %s, expected %s", key, node_describe(node, found, sizeof found), expected);
}

static bool read_measure(struct reader *r, const struct node *node, const char *key, const struct unit *units, double least, double most,
                         const char *expected, double *out)
{
    char *end = NULL;
    double number = node->kind == NODE_SCALAR ? strtod(node->text, &end) : 0;
    for (const struct unit *u = units; node->kind == NODE_SCALAR && end > node->text && u->name != NULL; u++)
        if (strcmp(end, u->name) == 0 && number * u->factor >= least && number * u->factor <= most) {
            *out = number * u->factor;
            return true;
        }
    return complain(r, node, key, expected);
}

static bool read_rate(struct reader *r, const struct node *node, const char *key, double *out)
{
    return read_measure(r, node, key, rates, RATE_LEAST, RATE_MOST, "a rate from 100kbit to 100gbit (kbit, mbit or gbit a second)", out);
}

// A packet that is larger than the bucket, or than the room in front of it, never passes: frames have 9000 bytes, and a host hands over up to 64 KiB at once.
static bool read_size(struct reader *r, const struct node *node, const char *key, long least, long *out)
{
    double bytes = 0;
    char expected[64];
    snprintf(expected, sizeof expected, "a size from %ldKiB to 1024MiB", least >> 10);
    bool ok = read_measure(r, node, key, sizes, (double)least, 1 << 30, expected, &bytes);
    *out = (long)bytes;
    return ok;
}

static bool read_count(struct reader *r, const struct node *node, const char *key, int least, int most, int *out)
{
    char expected[64];
    int64_t value;
    snprintf(expected, sizeof expected, "a whole number from %d to %d", least, most);
    if (!node_integer(node, &value) || value < least || value > most)
        return complain(r, node, key, expected);
    *out = (int)value;
    return true;
}

static bool read_text(struct reader *r, const struct node *node, const char *key, char **out)
{
    if (node->kind != NODE_SCALAR || !node->text[0])
        return complain(r, node, key, "a text");
    *out = memory_text(node->text);
    return true;
}

// {NAME: VALUE, ...} to "NAME=VALUE" texts.
static bool read_pairs(struct reader *r, const struct node *node, const char *key, char **out)
{
    if (node->kind != NODE_MAPPING || node->count > FABRIC_WORDS)
        return complain(r, node, key, "a mapping {NAME: VALUE} of 24 at most");
    for (int i = 0; i < node->count; i++) {
        if (node->items[i]->kind != NODE_SCALAR)
            return complain(r, node->items[i], key, "a text as value");
        out[i] = memory_format("%s=%s", node->keys[i], node->items[i]->text);
    }
    return true;
}

// A mapping of exactly two keys.
static bool read_two(struct reader *r, const struct node *node, const char *key, const char *first, const char *second, const char *expected)
{
    bool ok = node->kind == NODE_MAPPING && node->count == 2 && node_get(node, first) != NULL && node_get(node, second) != NULL;
    return ok || complain(r, node, key, expected);
}

static bool read_title(struct reader *r, const struct node *n) { return read_text(r, n, "title", &r->out->title); }
static bool read_hostfile(struct reader *r, const struct node *n) { return read_text(r, n, "hostfile", &r->out->hostfile); }
static bool read_agent(struct reader *r, const struct node *n) { return read_text(r, n, "agent", &r->out->agent); }
static bool read_hosts(struct reader *r, const struct node *n) { return read_count(r, n, "hosts", 1, FABRIC_HOSTS_MOST, &r->out->hosts); }
static bool read_line_rate(struct reader *r, const struct node *n) { return read_rate(r, n, "rate", &r->out->rate_bits); }
static bool read_burst(struct reader *r, const struct node *n) { return read_size(r, n, "burst", 16 << 10, &r->out->burst_bytes); }
static bool read_limit(struct reader *r, const struct node *n) { return read_size(r, n, "limit", 64 << 10, &r->out->limit_bytes); }
static bool read_mca(struct reader *r, const struct node *n) { return read_pairs(r, n, "mca", r->out->mca); }
static bool read_environment(struct reader *r, const struct node *n) { return read_pairs(r, n, "environment", r->out->environment); }

static bool read_slow(struct reader *r, const struct node *n)
{
    return read_two(r, n, "slow", "host", "rate", "{host: NUMBER, rate: RATE}") &&
           read_count(r, node_get(n, "host"), "slow: host", 0, FABRIC_HOSTS_MOST - 1, &r->out->slow_host) &&
           read_rate(r, node_get(n, "rate"), "slow: rate", &r->out->slow_rate_bits);
}

static bool read_tiers(struct reader *r, const struct node *n)
{
    return read_two(r, n, "tiers", "group", "between", "{group: HOSTS, between: RATE}") &&
           read_count(r, node_get(n, "group"), "tiers: group", 1, FABRIC_HOSTS_MOST, &r->out->group) &&
           read_rate(r, node_get(n, "between"), "tiers: between", &r->out->between_rate_bits);
}

static bool read_kind(struct reader *r, const struct node *n)
{
    char expected[120];
    for (int k = 0; n->kind == NODE_SCALAR && k < FABRIC_KINDS; k++)
        if (strcmp(n->text, kinds[k]) == 0) {
            r->out->kind = (enum fabric_kind)k;
            return true;
        }
    return complain(r, n, "kind", name_list(kinds, expected, sizeof expected));
}

static const struct key keys[] = {
    {"title", false, read_title}, {"kind", false, read_kind}, {"mca", false, read_mca}, {"environment", false, read_environment},
    {"hostfile", false, read_hostfile}, {"agent", false, read_agent}, {"hosts", true, read_hosts}, {"rate", true, read_line_rate}, {"slow", true, read_slow},
    {"tiers", true, read_tiers}, {"burst", true, read_burst}, {"limit", true, read_limit},
};
enum { KEYS = sizeof keys / sizeof *keys };

static const struct key *find_key(const char *name)
{
    for (int i = 0; i < KEYS; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

// What no key alone can be blamed for.
static bool check_whole(struct reader *r, const struct node *root)
{
    const struct fabric *f = r->out;
    if (f->title == NULL || node_get(root, "kind") == NULL)
        return node_error(r->r.document, root, r->r.error, "found no %s, expected {title, kind, ...}", f->title == NULL ? "title" : "kind");
    for (int i = 0; i < root->count; i++)
        if (f->kind != FABRIC_VIRTUAL && find_key(root->keys[i])->is_virtual)
            return complain(r, root->items[i], root->keys[i], "it in a fabric of the kind virtual alone");
    if (f->hostfile != NULL && f->kind != FABRIC_HOSTS)
        return complain(r, node_get(root, "hostfile"), "hostfile", "it in a fabric of the kind hosts alone");
    if (f->agent != NULL && f->kind != FABRIC_HOSTS)
        return complain(r, node_get(root, "agent"), "agent", "it in a fabric of the kind hosts alone");
    if (f->kind != FABRIC_VIRTUAL)
        return true;
    if (f->hosts == 0 || f->rate_bits == 0)
        return node_error(r->r.document, root, r->r.error, "found no %s, expected it in a fabric of the kind virtual", f->hosts == 0 ? "hosts" : "rate");
    if (f->slow_host >= f->hosts)
        return complain(r, node_get(node_get(root, "slow"), "host"), "slow: host", "less than the number of hosts");
    if (f->group > f->hosts)
        return complain(r, node_get(node_get(root, "tiers"), "group"), "tiers: group", "the number of hosts at most");
    return true;
}

static bool read_root(struct reader *r, const struct node *root)
{
    const char *names[KEYS + 1] = {0};
    for (int i = 0; i < KEYS; i++)
        names[i] = keys[i].name;
    if (root == NULL || root->kind != NODE_MAPPING)
        return complain(r, root, "fabric", "a mapping {title, kind, ...}");
    for (int i = 0; i < root->count; i++) {
        const struct key *key = find_key(root->keys[i]);
        if (key == NULL)
            return field_unknown(&r->r, root, root->key_lines[i], root->keys[i], names);
        if (!key->read(r, root->items[i]))
            return false;
    }
    return check_whole(r, root);
}

static bool no_such_fabric(const char *suite, const char *name, struct error *error)
{
    struct string_list known = {0}, titles = {0};
    char list[512];
    if (!fabric_list(suite, &known, &titles, error))
        return false;
    const char **names = string_list_names(&known);
    error_set(error, "found no fabric '%.100s' in %.400s/fabrics, expected %s", name, suite, name_list(names, list, sizeof list));
    free(names);
    string_list_free(&known);
    string_list_free(&titles);
    return false;
}

bool fabric_read(const char *name_or_path, const char *suite, struct fabric *out, struct error *error)
{
    size_t length = strlen(name_or_path);
    bool is_path = strchr(name_or_path, '/') != NULL || (length > 5 && strcmp(name_or_path + length - 5, ".yaml") == 0);
    char *path = is_path ? memory_text(name_or_path) : memory_format("%s/fabrics/%s.yaml", suite, name_or_path);
    struct document document = {0};
    *out = (struct fabric){.slow_host = -1, .limit_bytes = LIMIT_BYTES};
    struct reader reader = {.r = {.document = &document, .error = error}, .out = out};
    bool ok = is_path || access(path, F_OK) == 0 ? document_read(path, &document, error) && read_root(&reader, document.root)
                                                 : no_such_fabric(suite, name_or_path, error);
    if (ok) {
        const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path, *dot = strrchr(name, '.');
        out->name = memory_format("%.*s", (int)(dot != NULL ? dot - name : (long)strlen(name)), name);
        out->origin = memory_format("%s:%d", path, document.root->line);
    } else {
        fabric_free(out);
    }
    document_free(&document);
    free(path);
    return ok;
}

bool fabric_list(const char *suite, struct string_list *names, struct string_list *titles, struct error *error)
{
    struct string_list files = {0};
    char *folder = memory_format("%s/fabrics", suite);
    bool ok = folder_list(folder, ".yaml", &files, error);
    for (int i = 0; ok && i < files.count; i++) {
        struct fabric f;
        if ((ok = fabric_read(files.items[i], suite, &f, error))) {
            string_list_add(names, f.name);
            string_list_add(titles, f.title);
            fabric_free(&f);
        }
    }
    string_list_free(&files);
    free(folder);
    return ok;
}

void fabric_free(struct fabric *f)
{
    for (int i = 0; i < FABRIC_WORDS; i++) {
        free(f->mca[i]);
        free(f->environment[i]);
    }
    free(f->name);
    free(f->title);
    free(f->origin);
    free(f->hostfile);
    free(f->agent);
    *f = (struct fabric){.slow_host = -1};
}
