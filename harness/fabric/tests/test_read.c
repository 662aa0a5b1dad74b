// Reading fabrics: what the suite has, and one clear line for each mistake.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/fabric/fabric.h"

static void suite_is_readable(void **state)
{
    (void)state;
    struct string_list names = {0}, titles = {0};
    struct error error = {0};
    if (!fabric_list("suite", &names, &titles, &error))
        fail_msg("%s", error.text);
    assert_true(names.count >= 14);
    for (int i = 0; i < names.count; i++)
        assert_true(titles.items[i][0] != 0);
    string_list_free(&names);
    string_list_free(&titles);
}

static void virtual_values(void **state)
{
    (void)state;
    struct fabric f;
    struct error error = {0};
    assert_true(fabric_read("virtual-two-tier", "suite", &f, &error));
    assert_string_equal(f.name, "virtual-two-tier");
    assert_int_equal(f.kind, FABRIC_VIRTUAL);
    assert_int_equal(f.hosts, 4);
    assert_int_equal(f.group, 2);
    assert_true(f.rate_bits == 200e6 && f.between_rate_bits == 50e6);
    assert_int_equal(f.slow_host, -1);
    assert_true(f.burst_bytes == 0 && f.limit_bytes == 4 << 20);
    fabric_free(&f);
    assert_true(fabric_read("virtual-slow-host", "suite", &f, &error));
    assert_int_equal(f.slow_host, 0);
    assert_true(f.slow_rate_bits == 25e6 && f.rate_bits == 100e6);
    fabric_free(&f);
    assert_true(fabric_read("nccl-socket", "suite", &f, &error));
    assert_string_equal(f.environment[0], "NCCL_P2P_DISABLE=1");
    fabric_free(&f);
}

// A file and what must be said of it after "PATH:".
static const struct { const char *text, *said; } mistakes[] = {
    {"kind: shm\n", "1: found no title, expected {title, kind, ...}"},
    {"title: x\n", "1: found no kind, expected {title, kind, ...}"},
    {"- a\n", "1: fabric: found a list of 1, expected a mapping {title, kind, ...}"},
    {"title: x\nkind: tokenring\n", "2: kind: found 'tokenring', expected shm, loopback, virtual, hosts, slurm, nccl or ucx"},
    {"title: x\nkind: shm\nrate: 100mbit\n", "3: rate: found '100mbit', expected it in a fabric of the kind virtual alone"},
    {"title: x\nkind: shm\nhostfile: a\n", "3: hostfile: found 'a', expected it in a fabric of the kind hosts alone"},
    {"title: x\nkind: virtual\nrate: 100mbit\n", "1: found no hosts, expected it in a fabric of the kind virtual"},
    {"title: x\nkind: virtual\nhosts: 2\n", "1: found no rate, expected it in a fabric of the kind virtual"},
    {"title: x\nkind: virtual\nhosts: 2\nrate: 100mb\n", "4: rate: found '100mb', expected a rate from 100kbit to 100gbit (kbit, mbit or gbit a second)"},
    {"title: x\nkind: virtual\nhosts: 2\nrate: nanmbit\n", "4: rate: found 'nanmbit', expected a rate from 100kbit to 100gbit (kbit, mbit or gbit a second)"},
    {"title: x\nkind: virtual\nhosts: 2\nrate: 0mbit\n", "4: rate: found '0mbit', expected a rate from 100kbit to 100gbit (kbit, mbit or gbit a second)"},
    {"title: x\nkind: virtual\nhosts: 2\nrate: -5mbit\n", "4: rate: found '-5mbit', expected a rate from 100kbit to 100gbit (kbit, mbit or gbit a second)"},
    {"title: x\nkind: virtual\nhosts: 2\nrate: mbit\n", "4: rate: found 'mbit', expected a rate from 100kbit to 100gbit (kbit, mbit or gbit a second)"},
    {"title: x\nkind: virtual\nhosts: 65\nrate: 1gbit\n", "3: hosts: found '65', expected a whole number from 1 to 64"},
    {"title: x\nkind: virtual\nhosts: 2\nrate: 1gbit\nburst: 64kb\n", "5: burst: found '64kb', expected a size from 16KiB to 1024MiB"},
    {"title: x\nkind: virtual\nhosts: 2\nrate: 1gbit\nburst: 5KiB\n", "5: burst: found '5KiB', expected a size from 16KiB to 1024MiB"},
    {"title: x\nkind: virtual\nhosts: 2\nrate: 1gbit\nlimit: 2KiB\n", "5: limit: found '2KiB', expected a size from 64KiB to 1024MiB"},
    {"title: x\nkind: virtual\nhosts: 2\nrate: 1gbit\nslow: {host: 2, rate: 1mbit}\n", "5: slow: host: found '2', expected less than the number of hosts"},
    {"title: x\nkind: virtual\nhosts: 2\nrate: 1gbit\nslow: 1\n", "5: slow: found '1', expected {host: NUMBER, rate: RATE}"},
    {"title: x\nkind: virtual\nhosts: 2\nrate: 1gbit\ntiers: {group: 3, between: 1mbit}\n", "5: tiers: group: found '3', expected the number of hosts at most"},
    {"title: x\nkind: virtual\nhosts: 2\nrate: 1gbit\ntiers: {group: 1}\n", "5: tiers: found a mapping, expected {group: HOSTS, between: RATE}"},
    {"title: x\nkind: shm\nmca: [pml]\n", "3: mca: found a list of 1, expected a mapping {NAME: VALUE} of 24 at most"},
    {"title: x\nkind: shm\nmca: {pml: [a]}\n", "3: mca: found a list of 1, expected a text as value"},
    {"title: x\nkind: shm\nagent: a\n", "3: agent: found 'a', expected it in a fabric of the kind hosts alone"},
    {"title: x\nkind: shm\nmac: {}\n", "3: found unknown field 'mac' (did you mean 'mca'?), expected one of title, kind, mca, environment, hostfile, agent, hosts, rate, slow, tiers, burst or limit"},
};

static void mistakes_are_told(void **state)
{
    (void)state;
    char path[] = "/tmp/fsdpmark.test.XXXXXX.yaml", expected[1200];
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct fabric f;
        struct error error = {0};
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, mistakes[i].text, strlen(mistakes[i].text), 0), strlen(mistakes[i].text));
        assert_false(fabric_read(path, "suite", &f, &error));
        snprintf(expected, sizeof expected, "%s:%s", path, mistakes[i].said);
        assert_string_equal(error.text, expected);
    }
    close(fd);
    unlink(path);
}

static void unknown_name(void **state)
{
    (void)state;
    struct fabric f;
    struct error error = {0};
    assert_false(fabric_read("virtual-100", "suite", &f, &error));
    assert_non_null(strstr(error.text, "found no fabric 'virtual-100' in suite/fabrics, expected hosts, nccl"));
    error = (struct error){0};
    assert_false(fabric_read("/nowhere/f.yaml", "suite", &f, &error));
    assert_string_equal(error.text, "/nowhere/f.yaml: No such file or directory, expected a readable file");
}

static void launchers_are_refused(void **state)
{
    (void)state;
    struct fabric shm = {.kind = FABRIC_SHM}, virtual = {.kind = FABRIC_VIRTUAL}, loopback = {.kind = FABRIC_LOOPBACK};
    assert_null(fabric_refuses(&shm, "mpirun"));
    assert_non_null(fabric_refuses(&shm, "local"));
    assert_null(fabric_refuses(&virtual, "mpirun"));
    assert_null(fabric_refuses(&virtual, "local"));
    assert_null(fabric_refuses(&virtual, "fork"));
    assert_non_null(fabric_refuses(&virtual, "srun"));
    assert_null(fabric_refuses(&loopback, "fork"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suite_is_readable), cmocka_unit_test(virtual_values), cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(unknown_name), cmocka_unit_test(launchers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
