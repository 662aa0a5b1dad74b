// Asking the located tree: nodes by key and path, scalars as values, names near a misspelt one.
// See document.h.
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol/document.h"

struct node *node_get(const struct node *node, const char *key)
{
    if (!node || node->kind != NODE_MAPPING)
        return NULL;
    for (int i = 0; i < node->count; i++)
        if (strcmp(node->keys[i], key) == 0)
            return node->items[i];
    return NULL;
}

static const struct node *child_at(const struct node *node, const char *name)
{
    if (node->kind == NODE_MAPPING)
        return node_get(node, name);
    char *end;
    long index = strtol(name, &end, 10);
    return node->kind == NODE_SEQUENCE && *name && !*end && index >= 0 && index < node->count ? node->items[index] : NULL;
}

const struct node *node_at(const struct node *root, const char *path)
{
    char rest[256];
    snprintf(rest, sizeof rest, "%s", path);
    char *save;
    for (char *name = strtok_r(rest, ".", &save); name; name = strtok_r(NULL, ".", &save)) {
        const struct node *child = child_at(root, name);
        if (!child)
            break;
        root = child;
    }
    return root;
}

bool node_is_null(const struct node *node)
{
    return !node || (node->kind == NODE_SCALAR && !node->quoted &&
                     (!*node->text || strcmp(node->text, "null") == 0 || strcmp(node->text, "~") == 0));
}

const char *node_describe(const struct node *node, char *buffer, size_t size)
{
    if (!node || (node->kind == NODE_SCALAR && !node->quoted && !*node->text))
        return "nothing";
    if (node->kind == NODE_SCALAR)
        snprintf(buffer, size, strlen(node->text) > 60 ? "'%.60s...'" : "'%s'", node->text);
    else if (node->kind == NODE_SEQUENCE)
        snprintf(buffer, size, "a list of %d", node->count);
    else
        return "a mapping";
    return buffer;
}

bool node_error(const struct document *d, const struct node *node, struct error *error, const char *format, ...)
{
    char text[sizeof error->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_set(error, "%s:%d: %s", d->where, node ? node->line : 1, text);
}

static bool is_plain(const struct node *node)
{
    return node && node->kind == NODE_SCALAR && !node->quoted && *node->text;
}

bool node_integer(const struct node *node, int64_t *out)
{
    if (!is_plain(node) || !strchr("-0123456789", *node->text))
        return false;
    char *end;
    errno = 0;
    *out = strtoll(node->text, &end, 10);
    return !*end && !errno;
}

static bool special_number(const char *text, double *out)
{
    const struct { const char *text; double value; } specials[] = {
        {"nan", NAN}, {".nan", NAN}, {"inf", INFINITY}, {".inf", INFINITY}, {"-inf", -INFINITY}, {"-.inf", -INFINITY},
    };
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        if (strcmp(text, specials[i].text) == 0) {
            *out = specials[i].value;
            return true;
        }
    return false;
}

bool node_number(const struct node *node, double *out)
{
    if (!node || node->kind != NODE_SCALAR)
        return false;
    if (special_number(node->text, out))
        return true;
    if (!is_plain(node) || !strchr("-+.0123456789", *node->text))
        return false;
    char *end;
    *out = strtod(node->text, &end);
    return !*end && isfinite(*out);
}

bool node_flag(const struct node *node, bool *out)
{
    if (!is_plain(node))
        return false;
    *out = strcmp(node->text, "true") == 0;
    return *out || strcmp(node->text, "false") == 0;
}

// Levenshtein's distance of two short words; words longer than the row are far from everything.
static int edit_distance(const char *a, const char *b)
{
    int row[64], width = (int)strlen(b);
    if (width >= 64 || strlen(a) >= 64)
        return 64;
    for (int j = 0; j <= width; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= width; j++) {
            int replace = diagonal + (a[i - 1] != b[j - 1]), shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < shift ? replace : shift;
        }
    }
    return row[width];
}

const char *nearest_name(const char *text, const char *const *candidates)
{
    const char *best = NULL;
    int least = (int)strlen(text) / 3 + 1;
    for (; *candidates; candidates++) {
        int distance = edit_distance(text, *candidates);
        if (distance <= least && (!best || distance < least)) {
            best = *candidates;
            least = distance;
        }
    }
    return best;
}

const char *name_list(const char *const *names, char *buffer, size_t size)
{
    size_t used = 0;
    buffer[0] = 0;
    for (int i = 0; names[i] && used < size; i++) {
        const char *separator = i == 0 ? "" : names[i + 1] ? ", " : " or ";
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", separator, names[i]);
    }
    return buffer;
}
