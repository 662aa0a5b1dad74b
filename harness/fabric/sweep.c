// What is left of places whose holder was killed: processes that had entered, each known by a mark in its environment.
//
// Nothing else can be left: namespaces have no names and end with the last process in them (place.h).
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/fabric/place.h"
#include "harness/protocol/memory.h"

enum { ENVIRONMENT_MOST = 1 << 20, PLACES_MOST = 256 };

// The place that a process has entered, or "".
static void place_of(const char *pid, char *text, char id[PLACE_ID])
{
    static const char variable[] = PLACE_VARIABLE "=";
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
    FILE *file = fopen(path, "re");
    size_t size = file == NULL ? 0 : fread(text, 1, ENVIRONMENT_MOST - 1, file);
    if (file != NULL)
        fclose(file);
    text[size] = 0;
    id[0] = 0;
    for (const char *pair = text; pair < text + size; pair += strlen(pair) + 1)
        if (strncmp(pair, variable, sizeof variable - 1) == 0)
            snprintf(id, PLACE_ID, "%s", pair + sizeof variable - 1);
}

// One look at all processes. Kills those of the place, or of places that nobody holds; true where there was one.
static bool kill_once(const char *asked, char *text, char (*seen)[PLACE_ID], int *count)
{
    DIR *folder = opendir("/proc");
    bool any = false;
    pid_t holder;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char id[PLACE_ID];
        if (!isdigit((unsigned char)entry->d_name[0]) || atoi(entry->d_name) == getpid())
            continue;
        place_of(entry->d_name, text, id);
        if (!id[0] || (asked != NULL ? strcmp(id, asked) != 0 : place_lives(id, &holder)) || kill(atoi(entry->d_name), SIGKILL) != 0)
            continue;
        any = true;
        int k = 0;
        while (k < *count && strcmp(seen[k], id) != 0)
            k++;
        if (k == *count && k < PLACES_MOST)
            memcpy(seen[(*count)++], id, PLACE_ID);
    }
    if (folder != NULL)
        closedir(folder);
    return any;
}

int place_clear(const char *id)
{
    static const int looks = 100;
    char *text = memory_zeros(ENVIRONMENT_MOST, 1), (*seen)[PLACE_ID] = memory_zeros(PLACES_MOST, PLACE_ID);
    int count = 0;
    // Again, since one may have forked between the look and the signal; one that is dying has no environment any more.
    for (int i = 0; i < looks && kill_once(id, text, seen, &count); i++)
        usleep(10000);
    free(text);
    free(seen);
    return count;
}

int fabric_sweep(void)
{
    return place_clear(NULL);
}
