// The names in a host file, as mpirun reads it: one machine a line, what follows the name is mpirun's, # begins a comment.
// Source: mpirun(1), "Specifying Host Nodes".
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness/fabric/place.h"
#include "harness/protocol/memory.h"

int hostfile_read(const char *path, char *names[FABRIC_HOSTS_MOST], struct error *error)
{
    char line[1024];
    int count = 0, number = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        error_set(error, "%s: %s", path, strerror(errno));
    while (file != NULL && count >= 0 && fgets(line, sizeof line, file) != NULL) {
        number++;
        line[strcspn(line, "#\n")] = 0;
        char *name = line + strspn(line, " \t");
        name[strcspn(name, " \t")] = 0;
        if (!name[0])
            continue;
        if (count == FABRIC_HOSTS_MOST || strlen(name) > 60) {
            error_set(error, "%s:%d: found %s, expected %d machines at most, each with a name of 60 letters at most", path, number, name, FABRIC_HOSTS_MOST);
            break;
        }
        names[count++] = memory_text(name);
    }
    if (file != NULL)
        fclose(file);
    if (count == 0)
        error_set(error, "%s: found no machine, expected one a line", path);
    return count;
}
