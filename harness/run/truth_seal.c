// See truth_seal.h. The hash is XXH3's 128 bits (xxHash, Collet). Files are read, not mapped: one that is cut short meanwhile
// would end a process that has mapped it.
#include "harness/run/truth_seal.h"

#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

enum { HEX = 33, CHUNK = 1 << 16 };

static void hex_of(XXH128_hash_t hash, char hex[HEX])
{
    snprintf(hex, HEX, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64, (uint64_t)hash.low64);
}

static bool digest_file(const char *path, char hex[HEX], int64_t *bytes, struct error *error)
{
    FILE *file = fopen(path, "re");
    char *chunk = malloc(CHUNK);
    XXH3_state_t *state = XXH3_createState();
    bool ok = file != NULL && chunk != NULL && state != NULL && XXH3_128bits_reset(state) == XXH_OK;
    *bytes = 0;
    for (size_t n; ok && (n = fread(chunk, 1, CHUNK, file)) > 0; *bytes += (int64_t)n)
        XXH3_128bits_update(state, chunk, n);
    ok = ok && !ferror(file);
    if (ok)
        hex_of(XXH3_128bits_digest(state), hex);
    else
        error_set(error, "%s: cannot be read: %s", path, strerror(errno));
    XXH3_freeState(state);
    free(chunk);
    if (file != NULL)
        fclose(file);
    return ok;
}

static bool list_file(FTSENT *entry, size_t root, FILE *list, struct error *error)
{
    char hex[HEX];
    int64_t bytes;
    if (chmod(entry->fts_path, 0444) != 0)
        return error_set(error, "%s: cannot be made read-only: %s", entry->fts_path, strerror(errno));
    if (!digest_file(entry->fts_path, hex, &bytes, error))
        return false;
    fprintf(list, "%s %" PRId64 " %s\n", hex, bytes, entry->fts_path + root + 1);
    return true;
}

static bool write_seal(const char *folder, const char *lines, size_t size, struct error *error)
{
    char path[4096], hex[HEX];
    snprintf(path, sizeof path, "%s/" TRUTH_SEAL, folder);
    hex_of(XXH3_128bits(lines, size), hex);
    FILE *file = fopen(path, "we");
    bool ok = file != NULL && fprintf(file, "%s\n%s", hex, lines) > 0 && fchmod(fileno(file), 0444) == 0;
    if (file != NULL)
        ok &= fclose(file) == 0;
    return ok || error_set(error, "%s: cannot be written: %s", path, strerror(errno));
}

bool truth_seal(const char *folder, struct error *error)
{
    char *lines = NULL, *roots[] = {(char *)folder, NULL};
    size_t size = 0;
    FILE *list = open_memstream(&lines, &size);
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    bool ok = list != NULL && walk != NULL;
    for (FTSENT *entry; ok && (entry = fts_read(walk)) != NULL;)
        if (entry->fts_info == FTS_F)
            ok = list_file(entry, strlen(folder), list, error);
    if (walk != NULL)
        fts_close(walk);
    if (list != NULL)
        ok &= fclose(list) == 0;
    ok = ok ? write_seal(folder, lines, size, error) : error_set(error, "%s: cannot be sealed: %s", folder, strerror(errno));
    free(lines);
    return ok;
}

static bool line_holds(const char *folder, const char *line, struct error *error)
{
    char path[4096], name[3000], expected[HEX], found[HEX];
    int64_t bytes, size;
    if (sscanf(line, "%32s %" SCNd64 " %2999[^\n]", expected, &bytes, name) != 3)
        return error_set(error, "%s/" TRUTH_SEAL ": found '%.60s', expected 'DIGEST BYTES PATH'", folder, line);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!digest_file(path, found, &size, error))
        return false;
    if (size != bytes)
        return error_set(error, "%s: found %" PRId64 " bytes, expected %" PRId64, path, size, bytes);
    return strcmp(found, expected) == 0 || error_set(error, "%s: found digest %s, expected %s", path, found, expected);
}

// The seal's text, owned by the caller; NULL where there is none or it is none.
static char *read_seal(const char *folder, struct error *error)
{
    char path[4096], *text = NULL, hex[HEX];
    size_t room = 0;
    snprintf(path, sizeof path, "%s/" TRUTH_SEAL, folder);
    FILE *file = fopen(path, "re");
    ssize_t size = file == NULL ? -1 : getdelim(&text, &room, '\0', file);
    if (file != NULL)
        fclose(file);
    bool ok = size >= HEX && text[HEX - 1] == '\n';
    if (ok)
        hex_of(XXH3_128bits(text + HEX, (size_t)size - HEX), hex);
    if (ok && memcmp(text, hex, HEX - 1) == 0)
        return text;
    error_set(error, file == NULL ? "%s: not found, expected the digests of the truth's files" : "%s: found a damaged list of digests", path);
    free(text);
    return NULL;
}

bool truth_seal_holds(const char *folder, struct error *error)
{
    char *text = read_seal(folder, error), *at = text != NULL ? text + HEX : NULL;
    bool ok = at != NULL;
    while (ok && *at != 0) {
        ok = line_holds(folder, at, error);
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    free(text);
    return ok;
}
