// What PyTorch's gloo sends, by the socket probe, on 2 and 3 ranks: all-gather, reduce-scatter, all-reduce and broadcast of 4 KiB to 6 MiB against
// the formulas of docs/probes.md ("What gloo sends"), to the byte. Skipped without build/venv.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/probes/tests/preloaded.h"

enum { CALLS = 4, SIZES = 4, MOST = 3, HEAD = 48 /* bytes of a message of gloo's own */, MIB = 1 << 20 };
static const int64_t sizes[SIZES] = {4096, 65536, MIB, 6 * MIB};

// A ring's segments, as gloo/allreduce.cc cuts them: at least two a rank, of at most 1 MiB, whole elements.
static int64_t all_reduce(int64_t whole, int n, int rank)
{
    int64_t count = (whole + MIB - 1) / MIB > 2 * n ? (whole + MIB - 1) / MIB : 2 * n;
    count = (count + n - 1) / n * n;
    int64_t segment = ((whole + count - 1) / count + 3) / 4 * 4, each = count / n, bytes = 0;
    for (int turn = 0; turn < 2; turn++) // reduce-scatter begins at the next rank's part, all-gather at this one's
        for (int64_t i = 0; i < count - each; i++) {
            int64_t at = ((rank + 1 - turn) * each + i) % count * segment, size = whole - at < segment ? whole - at : segment;
            if (size > 0)
                bytes += size + 3 * HEAD; // announced, headed, and one like it is asked for
        }
    return bytes;
}

static int64_t formula(int call, int64_t whole, int n, int rank)
{
    int children = 0;
    switch (call) {
    case 0: return (n - 1) * (whole / n) + 6 * HEAD * (n - 1);
    case 1: // as an all-reduce
    case 2: return all_reduce(whole, n, rank);
    default:
        for (int bit = 1; bit < n; bit *= 2)
            children += rank < bit && rank + bit < n;
        return children * (whole + 2 * HEAD) + (rank > 0) * HEAD;
    }
}

static int64_t sent(const struct probe_phase *p)
{
    int64_t bytes = 0;
    for (int t = 0; t < p->traffic_count; t++)
        if (p->traffic[t].kind == PROBE_SEND)
            bytes += p->traffic[t].bytes;
    return bytes;
}

static pid_t start(int rank, int ranks, const char *job)
{
    static char build[4096], loads[9000], number[8], of[8], rendezvous[4200];
    preloaded_build(build);
    snprintf(loads, sizeof loads, "%s/libfsdpmark-probe.so:%s/libfsdpmark-probe-socket.so", build, build);
    snprintf(number, sizeof number, "%d", rank);
    snprintf(of, sizeof of, "%d", ranks);
    snprintf(rendezvous, sizeof rendezvous, "%s/rendezvous", job);
    pid_t child = fork();
    if (child != 0)
        return child;
    alarm(240);
    setenv("RANK", number, 1);
    setenv("FSDPMARK_JOB", job, 1);
    setenv("FSDPMARK_PROBES", "socket", 1);
    setenv("GLOO_SOCKET_IFNAME", "lo", 1);
    setenv("LD_PRELOAD", loads, 1);
    execl("build/venv/bin/python", "build/venv/bin/python", "harness/probes/tests/gloo.py", number, of, rendezvous, (char *)NULL);
    _exit(127);
}

static void gloo(void **state)
{
    int n = *(const int *)*state, status = 0;
    const char *job = preloaded_job();
    pid_t ranks[MOST];
    bool fine = true;
    if (access("build/venv/bin/python", X_OK) != 0) {
        print_message("skipped: found no build/venv (make implementations)\n");
        skip();
    }
    for (int r = 0; r < n; r++)
        ranks[r] = start(r, n, job);
    for (int r = 0; r < n; r++)
        fine = waitpid(ranks[r], &status, 0) == ranks[r] && WIFEXITED(status) && WEXITSTATUS(status) == 0 && fine;
    assert_true(fine);
    for (int r = 0; r < n; r++) {
        struct probe_case c = preloaded_read(job, r, 0);
        int seen = 0;
        for (int p = 0; p < c.phase_count; p++) {
            const struct probe_phase *phase = &c.phases[p];
            if (strcmp(phase->name, "forward") != 0)
                continue;
            int64_t whole = sizes[phase->step / CALLS] / 4 / n * n * 4, expected = formula(phase->step % CALLS, whole, n, r);
            if (sent(phase) != expected)
                fail_msg("rank %d of %d, call %d, %lld bytes: gloo sent %lld bytes, expected %lld", r, n, phase->step % CALLS, (long long)whole,
                         (long long)sent(phase), (long long)expected);
            seen++;
        }
        assert_int_equal(seen, CALLS * SIZES);
        probe_case_free(&c);
    }
}

int main(void)
{
    static int two = 2, three = 3;
    const struct CMUnitTest tests[] = {{"gloo on 2 ranks", gloo, NULL, NULL, &two}, {"gloo on 3 ranks", gloo, NULL, NULL, &three}};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
