// Folders of tests that are gone when the test program ends, also where a test failed before it came to remove its own.
#ifndef HARNESS_PROTOCOL_TESTS_TEMPORARY_H
#define HARNESS_PROTOCOL_TESTS_TEMPORARY_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct { char *path; pid_t owner; } temporary[256];
static int temporary_count;

static int temporary_remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    remove(path);
    return 0;
}

// A forked child that ends by exit() leaves its parent's folders alone.
static void __attribute__((destructor)) temporary_remove_all(void)
{
    for (int i = 0; i < temporary_count; i++) {
        if (temporary[i].path != NULL && temporary[i].owner == getpid())
            nftw(temporary[i].path, temporary_remove_one, 16, FTW_DEPTH | FTW_PHYS);
        free(temporary[i].path);
    }
    temporary_count = 0;
}

// mkdtemp(3), remembered. A list that is full forgets its older half, which tests have long removed.
static inline char *temporary_make(char *template)
{
    enum { ROOM = sizeof temporary / sizeof *temporary };
    if (temporary_count == ROOM) {
        for (int i = 0; i < ROOM / 2; i++)
            free(temporary[i].path);
        memmove(temporary, temporary + ROOM / 2, ROOM / 2 * sizeof *temporary);
        temporary_count = ROOM / 2;
    }
    char *made = mkdtemp(template);
    if (made != NULL) {
        temporary[temporary_count].path = strdup(made);
        temporary[temporary_count++].owner = getpid();
    }
    return made;
}

#endif
