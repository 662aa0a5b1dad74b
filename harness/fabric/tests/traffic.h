// Plain TCP between hosts of a place: the rate as a program without MPI sees it.
//
// The test program starts itself in the hosts: `SELF sink PORT BEGIN SECONDS` takes bytes and prints their rate from BEGIN (CLOCK_MONOTONIC) on,
// `SELF source ADDRESS PORT` sends until nobody listens any more. All flows are measured over the same time; what flows before it fills buckets and
// windows.
#ifndef HARNESS_FABRIC_TESTS_TRAFFIC_H
#define HARNESS_FABRIC_TESTS_TRAFFIC_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/fabric/fabric.h"
#include "harness/launch/keeper.h"

enum { TRAFFIC_BLOCK = 1 << 16 };
static const double TRAFFIC_WARM_S = 1.5, TRAFFIC_LIMIT_S = 20;

static int traffic_sink(int port, double begin_s, double seconds)
{
    static char block[TRAFFIC_BLOCK];
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&any, sizeof any) != 0 || listen(listener, 1) != 0)
        return 1;
    int fd = accept(listener, NULL, NULL);
    double first_s = launch_now(), now_s = first_s, bytes = 0;
    for (ssize_t n; now_s < begin_s + seconds && (n = read(fd, block, sizeof block)) > 0; now_s = launch_now())
        bytes += now_s > begin_s ? (double)n : 0;
    printf("%.3f\n", bytes * 8e-6 / (now_s - begin_s));
    return first_s < begin_s ? 0 : 1;
}

static int traffic_source(const char *address, int port)
{
    static char block[TRAFFIC_BLOCK];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, address, &to.sin_addr);
    for (double until_s = launch_now() + TRAFFIC_LIMIT_S; launch_now() < until_s; usleep(20000)) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) {
            while (send(fd, block, sizeof block, MSG_NOSIGNAL) > 0)
                continue;
            return 0;
        }
        close(fd);
    }
    return 1;
}

// main of the test program calls it first; -1: no such mode was asked for.
static int traffic_main(int argc, char **argv)
{
    alarm(argc > 1 ? 60 : 0);
    if (argc == 5 && strcmp(argv[1], "sink") == 0)
        return traffic_sink(atoi(argv[2]), atof(argv[3]), atof(argv[4]));
    if (argc == 4 && strcmp(argv[1], "source") == 0)
        return traffic_source(argv[2], atoi(argv[3]));
    return -1;
}

// Starts a command in a host; *output: where its standard output can be read, unless NULL.
static pid_t traffic_start(const struct fabric_place *p, int host, const char *const *command, FILE **output)
{
    int ends[2] = {-1, -1};
    if (output != NULL && pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    char **argv = argv_append(argv_append(NULL, fabric_place_enter(p, host)), command);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (output != NULL)
            dup2(ends[1], 1);
        execv(argv[0], argv);
        _exit(127);
    }
    environment_free(argv);
    if (output != NULL) {
        close(ends[1]);
        *output = fdopen(ends[0], "re");
    }
    return pid;
}

// Mbit/s of each of the flows, all at once.
struct flow { int from, to; double mbit; };
static inline bool traffic_measure(const struct fabric_place *p, struct flow *flows, int count, double seconds)
{
    static int port = 20000;
    char self[4096], number[16], begin[32], length[16];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    pid_t pids[16];
    FILE *outputs[8];
    bool ok = count <= 8;
    self[n > 0 ? n : 0] = 0;
    snprintf(begin, sizeof begin, "%.6f", launch_now() + TRAFFIC_WARM_S);
    snprintf(length, sizeof length, "%g", seconds);
    for (int i = 0; ok && i < count; i++) {
        snprintf(number, sizeof number, "%d", port++);
        const char *const sink[] = {self, "sink", number, begin, length, NULL};
        const char *const source[] = {self, "source", fabric_place_address(p, flows[i].to), number, NULL};
        pids[2 * i] = traffic_start(p, flows[i].to, sink, &outputs[i]);
        pids[2 * i + 1] = traffic_start(p, flows[i].from, source, NULL);
    }
    for (int i = 0; ok && i < count; i++) {
        ok = fscanf(outputs[i], "%lf", &flows[i].mbit) == 1;
        fclose(outputs[i]);
        for (int k = 0; k < 2; k++) {
            int status;
            ok = waitpid(pids[2 * i + k], &status, 0) == pids[2 * i + k] && status == 0 && ok;
        }
    }
    return ok;
}

#endif
