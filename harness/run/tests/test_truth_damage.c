// Truths of the cache that are damaged, each in its own way: they are told of and made again, and the verdict does not change.
//
// The program under test is build/fsdpmark; the worker is the bundled reference.
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "harness/cli/tests/command.h"
#include "harness/run/scratch.h"

static const double LIMIT_S = 60;
#ifdef __SANITIZE_ADDRESS__ // every start takes seconds: each damage to one file, each file in one way
enum { EVERY_PAIR = 0 };
#else
enum { EVERY_PAIR = 1 };
#endif
static char folder[] = "/tmp/fsdpmark.test.XXXXXX";
static struct command_result result;
static int truths; // in the cache

static int set_up(void **state)
{
    (void)state;
    if (!command_folder(folder))
        return -1;
    command_write(folder, "cases.yaml", "name: t\ntitle: small\nlayer: exact\nmodel: {kind: mlp, sizes: [4, 3]}\ndata: {recipe: exact, density: 0.7}\n"
                  "global_rows: 4\nmatrix: {ranks: [2], strategy: [full]}\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

static void run_and_expect(const char *truths_line)
{
    const char *const words[] = {"check", "--case", "cases.yaml", NULL};
    command_run(folder, words, LIMIT_S, &result);
    if (result.status != 0 || strstr(result.out, truths_line) == NULL)
        fail_msg("status %d, expected 0 and '%s'\n%s%s", result.status, truths_line, result.out, result.err);
}

// ---- damage to one file ----

static void flip(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    char byte;
    assert_true(fd >= 0);
    off_t at = lseek(fd, 0, SEEK_END) - 1;
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void cut(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size / 2), 0);
}

static void empty(const char *path) { assert_int_equal(truncate(path, 0), 0); }

static void lengthen(const char *path)
{
    FILE *file = fopen(path, "ae");
    assert_non_null(file);
    fputc('0', file);
    fclose(file);
}

static void remove_it(const char *path) { assert_int_equal(unlink(path), 0); }

static const struct { const char *name; void (*damage)(const char *path); } damages[] = {
    {"flip", flip}, {"cut", cut}, {"empty", empty}, {"lengthen", lengthen}, {"remove", remove_it},
};

// ---- to every file of the cache of that name ----

static const char *wanted;
static void (*damage)(const char *path);
static int damaged;

static int visit(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    if (type == FTW_F && (wanted == NULL || strcmp(path + walk->base, wanted) == 0)) {
        damaged++;
        if (damage != NULL) {
            // The owner of a file may write to it after this.
            chmod(path, 0644);
            damage(path);
        } else {
            assert_int_equal(info->st_mode & 0777, 0444);
        }
    }
    return 0;
}

static int visit_cache(const char *name, void (*how)(const char *path))
{
    char cache[256];
    snprintf(cache, sizeof cache, "%s/cache", folder);
    wanted = name;
    damage = how;
    damaged = 0;
    assert_int_equal(nftw(cache, visit, 16, FTW_PHYS), 0);
    return damaged;
}

static void damaged_files(void **state)
{
    (void)state;
    static const char *const files[] = {"init.safetensors", "data.safetensors", "truth.json", "s0.safetensors", "digests"};
    char computed[64], found[64];
    run_and_expect("truths: ");
    truths = visit_cache("truth.json", NULL);
    assert_true(truths > 0);
    snprintf(computed, sizeof computed, "truths: %d computed, 0 from the cache", truths);
    snprintf(found, sizeof found, "truths: 0 computed, %d from the cache", truths);
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        for (size_t d = 0; d < sizeof damages / sizeof *damages; d++) {
            if (!EVERY_PAIR && d != f)
                continue;
            assert_true(visit_cache(files[f], damages[d].damage) >= truths);
            run_and_expect(computed);
            assert_non_null(strstr(result.err, "a truth of the cache is damaged and made again: "));
            assert_non_null(strstr(result.err, files[f]));
        }
    run_and_expect(found);
    assert_null(strstr(result.err, "damaged"));
}

// The links of a job lead into the cache: a worker must not write through them by mistake.
static void read_only(void **state)
{
    (void)state;
    assert_true(visit_cache(NULL, NULL) > 4 * truths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_files), cmocka_unit_test(read_only)};
    alarm(300);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
