// What workers are preloaded with: the recorder, the probes that the plan wants, and what their own environment preloads, in this order.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/protocol/tests/temporary.h"
#include "harness/run/engine.h"

static char folder[] = "/tmp/fsdpmark-test-probing-XXXXXX", program[128];

// A build of the recorder and two probes.
static int set_up(void **state)
{
    (void)state;
    static const char *const built[] = {"libfsdpmark-probe.so", "libfsdpmark-probe-heap.so", "libfsdpmark-probe-mpi.so"};
    char path[256];
    temporary_make(folder);
    snprintf(program, sizeof program, "%s/fsdpmark", folder);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, built[i]);
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    unsetenv("LD_PRELOAD");
    return 0;
}

// The value that a worker gets, of which every @ of `expected` is the folder; own: the manifest's environment.
static void expect(unsigned probes, const char *own, const char *expected)
{
    char text[1024] = "LD_PRELOAD=", *items[] = {(char *)(uintptr_t)own};
    struct error error = {0};
    struct run_settings settings = {.program = program};
    struct implementation implementation = {.environment = {own != NULL, items}};
    struct plan plan = {.probes = probes, .marks = true};
    struct engine e = {.settings = &settings, .implementation = &implementation, .plan = &plan, .error = &error};
    for (const char *p = expected; *p; p++)
        snprintf(text + strlen(text), sizeof text - strlen(text), *p == '@' ? "%s" : "%.1s", *p == '@' ? folder : p);
    const char **environment = probing_environment(&e, &error), *last = NULL;
    if (environment == NULL)
        fail_msg("%s", error.text);
    for (int i = 0; environment[i] != NULL; i++) // of two the later one counts
        last = strncmp(environment[i], "LD_PRELOAD=", 11) == 0 ? environment[i] : last;
    assert_string_equal(last, text);
    probing_environment_free(&e, environment);
}

static void own_libraries_stay(void **state)
{
    (void)state;
    enum { HEAP = 1 << PROBE_HEAP, MPI = 1 << PROBE_MPI };
    expect(0, NULL, "@/libfsdpmark-probe.so");
    expect(HEAP | MPI, NULL, "@/libfsdpmark-probe.so:@/libfsdpmark-probe-heap.so:@/libfsdpmark-probe-mpi.so");
    expect(HEAP, "LD_PRELOAD=/lib/libjemalloc.so:libx.so", "@/libfsdpmark-probe.so:@/libfsdpmark-probe-heap.so:/lib/libjemalloc.so:libx.so");
    setenv("LD_PRELOAD", "libcaller.so", 1);
    expect(HEAP, NULL, "@/libfsdpmark-probe.so:@/libfsdpmark-probe-heap.so:libcaller.so");
    expect(HEAP, "LD_PRELOAD=libown.so", "@/libfsdpmark-probe.so:@/libfsdpmark-probe-heap.so:libown.so"); // as without probes
    expect(HEAP, "LD_PRELOAD=", "@/libfsdpmark-probe.so:@/libfsdpmark-probe-heap.so");
    unsetenv("LD_PRELOAD");
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    char expected[256];
    struct error error = {0}, none = {0};
    assert_true(probing_built(program, 1u << PROBE_HEAP | 1u << PROBE_MPI, &error));
    assert_false(probing_built(program, 1u << PROBE_HEAP | 1u << PROBE_PAPI, &error));
    snprintf(expected, sizeof expected, "%s/libfsdpmark-probe-papi.so: No such file or directory: the probe was not built", folder);
    assert_string_equal(error.text, expected);
    assert_false(probing_built("/nowhere/fsdpmark", 0, &none));
    assert_string_equal(none.text, "found no libfsdpmark-probe.so beside /nowhere/fsdpmark, expected the probes there");
}

// The file of a rank that marks these two phases.
static void write_marks(const char *first, const char *second)
{
    char path[256];
    static union { struct probe_header header; char page[PROBE_HEADER_BYTES]; } h;
    struct probe_record marks[2] = {{.time_ns = 1, .kind = PROBE_MARK}, {.time_ns = 2, .kind = PROBE_MARK}};
    h.header = (struct probe_header){.magic = PROBE_MAGIC, .version = PROBE_VERSION, .capacity = 2, .next = 2, .room = 2, .probes = 1u << PROBE_HEAP};
    strcpy(marks[0].mark.phase, first);
    strcpy(marks[1].mark.phase, second);
    snprintf(path, sizeof path, "%s/probes.rank0", folder);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fwrite(&h, sizeof h, 1, file) == 1 && fwrite(marks, sizeof marks, 1, file) == 1 && fclose(file) == 0);
}

// A phase that nobody knows is said, and nothing of the case is judged by it.
static void unknown_phases_are_said(void **state)
{
    (void)state;
    struct plan plan = {.probes = 1u << PROBE_HEAP};
    struct case_state known = {0};
    struct engine e = {.plan = &plan, .state = &known};
    int index = 0;
    struct service s = {.engine = &e, .index = &index, .world_size = 1, .folder = folder};
    struct error error = {0};
    write_marks("case", "forward");
    probing_read(&s, 0, &error);
    assert_string_equal(error.text, "");
    assert_non_null(known.probes);
    assert_int_equal(known.probes[0].phase_count, 2);
    write_marks("case", "forward pass");
    probing_read(&s, 0, &error);
    assert_null(known.probes);
    assert_non_null(strstr(error.text, "rank 0 marks phase 'forward pass', expected case, "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(own_libraries_stay), cmocka_unit_test(what_is_missing_is_named), cmocka_unit_test(unknown_phases_are_said)};
    return cmocka_run_group_tests_name("what is preloaded", tests, set_up, NULL);
}
