// Runs gnuplot as a child with a deadline, its complaints kept for the report.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/report/figures.h"

enum { DEADLINE_MS = 60000, POLL_MS = 5, NOT_FOUND = 127 };

static void become_gnuplot(const char *folder, const char *script, const char *format, int log) {
    char setting[32];
    snprintf(setting, sizeof setting, "format='%s'", format);
    int null = open("/dev/null", O_RDONLY);
    if (chdir(folder) || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) _exit(126);
    execlp("gnuplot", "gnuplot", "-d", "-e", setting, script, (char *)NULL);
    _exit(errno == ENOENT ? NOT_FOUND : 126);
}

static bool wait_until_deadline(pid_t child, int *status) {
    for (int waited = 0; waited < DEADLINE_MS; waited += POLL_MS) {
        if (waitpid(child, status, WNOHANG) == child) return true;
        nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, status, 0);
    return false;
}

// The line of gnuplot's complaint that says what is wrong: the last that is not empty.
static void last_line(FILE *log, char *out, size_t size) {
    char line[256];
    *out = 0;
    rewind(log);
    while (fgets(line, sizeof line, log)) {
        line[strcspn(line, "\n")] = 0;
        if (line[strspn(line, " ^")]) snprintf(out, size, "%s", line + strspn(line, " "));
    }
}

bool gnuplot_run(const char *folder, const char *script, const char *format, char why[256]) {
    FILE *log = tmpfile();
    int status;
    if (!log) return snprintf(why, 256, "no temporary file for gnuplot: %s", strerror(errno)), false;
    fflush(NULL); // the child must not write what this process has buffered
    pid_t child = fork();
    if (!child) become_gnuplot(folder, script, format, fileno(log));
    bool ended = child > 0 && wait_until_deadline(child, &status);
    bool ok = ended && WIFEXITED(status) && !WEXITSTATUS(status);
    char complaint[200];
    last_line(log, complaint, sizeof complaint);
    fclose(log);
    if (child < 0) snprintf(why, 256, "cannot start gnuplot: %s", strerror(errno));
    else if (!ended) snprintf(why, 256, "gnuplot took more than %d s", DEADLINE_MS / 1000);
    else if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND) snprintf(why, 256, "gnuplot is not installed");
    else if (!ok) snprintf(why, 256, "gnuplot failed on %s: %s", script, complaint);
    return ok;
}
