// The launcher srun on a real Slurm of two nodes: where ranks land and what they are told, how their ends come back, that nothing survives, and
// `check` from an allocation and as the batch script of docs/fabrics.md.
//
// Where Slurm cannot start every test is skipped with its reason.
#include "harness/launch/tests/place.h"

#include <jansson.h>

#include "harness/cli/tests/command.h"
#include "harness/fabric/fabric.h"
#include "harness/launch/tests/slurm.h"

static struct slurm slurm;
static char folder[] = "/tmp/fsdpmark-slurm-XXXXXX", allocation[32];
static struct fabric fabric;
static struct fabric_place *nodes;
static struct command_result result;

// ---- the cluster, and one allocation of both nodes ----

static void enter_allocation(void)
{
    setenv("SLURM_JOB_ID", allocation, 1);
    setenv("SLURM_JOB_NODELIST", "n[0-1]", 1);
}

// "salloc: Granted job allocation 7": the environment is then that of a shell in it.
static bool allocate(void)
{
    const char *const command[] = {"sh", "-c", "salloc --nodes=2 --no-shell 2>&1", NULL};
    const char *text = slurm_ask(command), *found = strstr(text, "Granted job allocation ");
    if (found == NULL || sscanf(found + 23, "%31[0-9]", allocation) != 1)
        return false;
    enter_allocation();
    return true;
}

static int begin(void **state)
{
    (void)state;
    char program[4096];
    struct error error = {0};
    if (!command_folder(folder) || !command_program(program))
        return -1;
    signal(SIGPIPE, SIG_IGN); // as the program does: a keeper may be gone before it is told to end
    bool up = slurm_start(&slurm);
    for (int again = 0; again < 2 && !up && slurm.daemons.keeper > 0; again++) { // another program may have taken a port that was free
        slurm_stop(&slurm);
        up = slurm_start(&slurm);
    }
    if (!up) {
        fprintf(stderr, "# skipped: %s\n", slurm.reason);
        return 0;
    }
    bool ok = allocate() && fabric_read("slurm", getenv("FSDPMARK_SUITE"), &fabric, &error) && fabric_open(&fabric, 0, program, &nodes, &error);
    if (!ok)
        fprintf(stderr, "# %s\n", error.text[0] ? error.text : "no allocation");
    return ok ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    fabric_close(nodes);
    fabric_free(&fabric);
    slurm_stop(&slurm);
    int left = slurm.conf[0] ? slurm_processes(&slurm) : 0;
    if (left > 0)
        fprintf(stderr, "# %d processes of Slurm are left\n", left);
    scratch_remove(slurm.folder);
    scratch_remove(folder);
    return left;
}

static bool is_missing(void)
{
    if (slurm.reason[0])
        print_message("# SKIP %s\n", slurm.reason);
    return slurm.reason[0];
}

// ---- the launcher ----

static void start_there(struct place *p, const char *script, int ranks, struct launch *l)
{
    char program[4096];
    struct error error = {0};
    const char *const command[] = {"sh", "-c", script, p->marker, NULL};
    command_program(program);
    struct launch_plan plan = {"srun", program, command, NULL, p->folder, ranks, NULL, nodes};
    if (!launch_start(&plan, l, &error))
        fail_msg("%s", error.text);
}

// Waits for the processes of a start; what srun said where it ended instead.
static void await_started(struct place *p, struct launch *l, int least)
{
    char path[128], text[1000] = "";
    for (double until = launch_now() + 2 * PATIENCE_S; survivors(p->marker) < least && !l->over && launch_now() < until; launch_poll(l))
        usleep(10000);
    snprintf(path, sizeof path, "%s/launcher.log", p->folder);
    FILE *file = survivors(p->marker) < least ? fopen(path, "re") : NULL;
    if (file != NULL) {
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
        fail_msg("%d processes, expected %d at least; srun: %s", survivors(p->marker), least, text);
    }
}

// 5 ranks of 2 nodes: r * 2 / 5.
static void ranks_are_spread(void **state)
{
    if (is_missing())
        skip();
    struct place *p = *state;
    struct launch l;
    start_there(p, "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $SLURMD_NODENAME $MASTER_ADDR $GLOO_SOCKET_IFNAME $NCCL_SOCKET_IFNAME $FSDPMARK_JOB; "
                   "test $MASTER_PORT -gt 1023 || echo no port", 5, &l);
    await_over(&l);
    for (int r = 0; r < 5; r++) {
        char expected[256];
        snprintf(expected, sizeof expected, "%d 5 %d %d n%d 127.0.0.1 lo lo %s\n", r, r < 3 ? r : r - 3, r < 3 ? 3 : 2, r >= 3, p->folder);
        assert_log(p, r, expected);
        assert_true(l.ends[r].ended);
        assert_int_equal(l.ends[r].status, 0);
    }
    launch_free(&l);
}

static void ends_come_back(void **state)
{
    if (is_missing())
        skip();
    struct launch l;
    char text[128];
    start_there(*state, "case $RANK in 0) exit 7;; 1) kill -SEGV $$;; esac", 3, &l);
    await_over(&l);
    assert_string_equal(rank_end_text(&l.ends[0], text, sizeof text), "exit status 7");
    assert_string_equal(rank_end_text(&l.ends[1], text, sizeof text), "signal 11 (Segmentation fault)");
    assert_string_equal(rank_end_text(&l.ends[2], text, sizeof text), "exit status 0");
    launch_free(&l);
}

// A worker and a child that ignore SIGTERM. One that has left the session would be lost: this cluster tracks by parents, not by cgroups.
static const char deaf[] = "trap '' TERM; (trap '' TERM; sleep 600; echo $0) & sleep 600; sleep 600";

static void a_stop_ends_all(void **state)
{
    if (is_missing())
        skip();
    struct place *p = *state;
    struct launch l;
    start_there(p, deaf, 2, &l);
    await_started(p, &l, 6);
    launch_stop(&l, 2);
    assert_true(l.over);
    await_survivors(p->marker, 0, 0);
    launch_free(&l);
}

// Slurm goes on with a step whose srun was killed: the ranks' parents end them.
static void a_killed_srun_leaves_none(void **state)
{
    if (is_missing())
        skip();
    struct place *p = *state;
    struct launch l;
    start_there(p, "sleep 600; echo", 2, &l);
    await_started(p, &l, 6); // sruns, ranks and their parents
    kill(l.keeper, SIGKILL);
    await_over(&l);
    scratch_remove(p->folder); // as the harness does where it has no answer
    await_survivors(p->marker, 0, 0);
    launch_free(&l);
}

static void a_killed_harness_leaves_none(void **state)
{
    if (is_missing())
        skip();
    struct place *p = *state;
    fflush(NULL);
    pid_t harness = fork();
    if (harness == 0) {
        struct launch l;
        start_there(p, deaf, 2, &l);
        for (;;)
            pause();
    }
    await_survivors(p->marker, 6, 20);
    kill(harness, SIGKILL);
    waitpid(harness, NULL, 0);
    await_survivors(p->marker, 0, 0);
}

static void only_on_its_fabric(void **state)
{
    struct place *p = *state;
    const char *const command[] = {"true", NULL};
    struct launch_plan plan = {"srun", "", command, NULL, p->folder, 1, NULL, NULL};
    struct launch l;
    struct error error = {0};
    assert_false(launch_start(&plan, &l, &error));
    assert_string_equal(error.text, "launcher srun: found fabric (none), expected slurm");
    launch_free(&l);
}

static void a_job_folder_that_is_not_there(void **state)
{
    char program[4096], line[400], *log = NULL;
    struct place *p = *state;
    command_program(program);
    assert_true(asprintf(&log, "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=1 '%s' __rank %s/none true 2>&1; echo $?",
                         program, p->base) > 0);
    FILE *pipe = popen(log, "r");
    assert_non_null(fgets(line, sizeof line, pipe));
    assert_non_null(strstr(line, "/none: No such file or directory; expected TMPDIR to name a folder that all machines share\n"));
    assert_non_null(fgets(line, sizeof line, pipe));
    assert_string_equal(line, "2\n");
    pclose(pipe);
    free(log);
}

// ---- check ----

static json_t *read_json(const char *name)
{
    char path[128];
    struct json_error_t error;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    json_t *j = json_load_file(path, 0, &error);
    if (j == NULL)
        fail_msg("%s: %s", path, error.text);
    return j;
}

static const char *text_at(json_t *j, const char *first, const char *second)
{
    const char *text = json_string_value(json_object_get(json_object_get(j, first), second));
    return text != NULL ? text : "";
}

// All cases PASS, and the run carries the job, its nodes and where they lie.
static void assert_stamped_run(const char *name)
{
    json_t *j = read_json(name), *environment = json_object_get(j, "environment"), *list = json_object_get(json_object_get(environment, "fabric"), "nodes");
    assert_string_equal(text_at(environment, "fabric", "name"), "slurm");
    assert_true(atoi(text_at(environment, "slurm", "job_id")) > 0);
    assert_string_equal(text_at(environment, "slurm", "nodelist"), "n[0-1]");
    assert_string_equal(text_at(environment, "slurm", "nodes"), "2");
    assert_string_equal(text_at(environment, "slurm", "cluster"), "test");
    assert_int_equal(json_array_size(list), 2);
    for (size_t n = 0; n < 2; n++) {
        char topology[32];
        snprintf(topology, sizeof topology, "top.s%zu.n%zu", n, n);
        assert_string_equal(json_string_value(json_object_get(json_array_get(list, n), "topology")), topology);
    }
    json_decref(j);
}

// Runs a line of a shell outside of the allocation, in the test's folder, with fsdpmark on the PATH; what it printed is result.out.
static int run_line(const char *line)
{
    char program[4096], *script;
    command_program(program);
    *strrchr(program, '/') = 0;
    if (asprintf(&script, "cd %s && PATH=%s:$PATH && export PATH && %s 2>&1", folder, program, line) < 0)
        return -1;
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_JOB_NODELIST");
    FILE *pipe = popen(script, "r");
    result.out[fread(result.out, 1, COMMAND_OUTPUT - 1, pipe)] = 0;
    int status = pclose(pipe);
    enter_allocation();
    free(script);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_in_an_allocation(void **state)
{
    (void)state;
    if (is_missing())
        skip();
    int status = run_line("timeout 280 salloc --nodes=2 fsdpmark check -p tiny -f slurm --json allocation.json");
    if (status != 0)
        fail_msg("exit status %d: %s", status, result.out);
    assert_non_null(strstr(result.out, "14 PASS, 0 FAIL, 0 SKIP, 0 BROKEN"));
    assert_stamped_run("allocation.json");
}

static void bench_in_an_allocation(void **state)
{
    (void)state;
    if (is_missing())
        skip();
    command_write(folder, "mini.yaml", "name: mini\ntitle: t\nlayer: calibrated\nmodel: {kind: mlp, sizes: [16, 24, 8]}\nglobal_rows: 8\nsteps: 9\n"
                                       "optimizer: {kind: sgd, lr: 0.25}\nprogram:\n  - init\n  - steps 0 7\n  - observe s7 param\n  - train 8\n"
                                       "matrix:\n  ranks: [2]\n  strategy: [none, full]\n");
    int status = run_line("timeout 280 salloc --nodes=2 fsdpmark bench -w mini.yaml -f slurm --rounds 2 --time 100 --json bench.json");
    if (status != 0)
        fail_msg("exit status %d: %s", status, result.out);
    json_t *j = read_json("bench.json"), *row = json_array_get(json_object_get(j, "rows"), 0);
    assert_string_equal(json_string_value(json_object_get(row, "verdict")), "PASS");
    assert_string_equal(json_string_value(json_object_get(row, "fabric")), "slurm");
    assert_int_equal(json_array_size(json_object_get(row, "launches")), 2);
    json_decref(j);
}

// The same MPI on both nodes, every buffer checked.
static void net_in_an_allocation(void **state)
{
    (void)state;
    if (is_missing())
        skip();
    int status = run_line("timeout 280 salloc --nodes=2 fsdpmark net -f slurm -n 2 -m sweep --sizes 8,64K --starts 1 --time 20 --json net.json");
    if (status != 0)
        fail_msg("exit status %d: %s", status, result.out);
    assert_non_null(strstr(result.out, "2 ranks on 2 hosts"));
    json_decref(read_json("net.json"));
}

// The script between the fences of the first code block of docs/fabrics.md that has "#SBATCH".
static void write_batch_script(void)
{
    static char text[1 << 18];
    FILE *file = fopen("docs/fabrics.md", "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    char *inside = strstr(text, "#SBATCH"), *stop = inside != NULL ? strstr(inside, "\n```") : NULL;
    assert_non_null(stop);
    stop[1] = 0;
    while (strncmp(inside, "\n```", 4) != 0 && inside > text)
        inside--;
    command_write(folder, "job.sh", strchr(inside + 1, '\n') + 1);
}

static void check_as_a_batch_script(void **state)
{
    (void)state;
    if (is_missing())
        skip();
    write_batch_script();
    int status = run_line("PROFILE=tiny timeout 280 sbatch --wait job.sh && mv fsdpmark-*.json batch.json && cat fsdpmark-*.log");
    if (status != 0)
        fail_msg("exit status %d: %s", status, result.out);
    assert_non_null(strstr(result.out, "14 PASS, 0 FAIL, 0 SKIP, 0 BROKEN"));
    assert_stamped_run("batch.json");
}

static void outside_of_a_job(void **state)
{
    (void)state;
    if (is_missing())
        skip();
    assert_int_equal(run_line("timeout 100 fsdpmark check -p tiny -f slurm --json none.json"), 3);
    json_t *j = read_json("none.json");
    char *text = json_dumps(j, 0);
    assert_non_null(strstr(text, "this is in no Slurm job; remedy: salloc -N 2"));
    free(text);
    json_decref(j);
}

static void without_slurm(void **state)
{
    (void)state;
    const char *words[] = {"check", "-p", "tiny", "-f", "slurm", "--json", "none.json", NULL};
    char *path = strdup(getenv("PATH"));
    setenv("PATH", "/nonexistent", 1);
    command_run(folder, words, 100, &result);
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(result.status, 3);
    json_t *j = read_json("none.json");
    char *text = json_dumps(j, 0);
    assert_non_null(strstr(text, "'sinfo' cannot be executed: No such file or directory; remedy: a node of a Slurm cluster"));
    free(text);
    json_decref(j);
}

// ---- the cluster itself ----

static void the_cluster_goes_with_a_killed_test(void **state)
{
    (void)state;
    if (is_missing())
        skip();
    struct slurm other = {.folder = "/tmp/fsdpmark.slurm.XXXXXX"};
    struct error error = {0};
    assert_non_null(mkdtemp(other.folder));
    snprintf(other.conf, sizeof other.conf, "SLURM_CONF=%s/slurm.conf", other.folder);
    fflush(NULL);
    pid_t test = fork();
    if (test == 0) {
        if (!slurm_begin(&other, &error))
            _exit(1);
        for (;;)
            pause();
    }
    double until = launch_now() + PATIENCE_S;
    while (slurm_processes(&other) < 4 && launch_now() < until) // munged, slurmctld, two slurmd
        usleep(20000);
    assert_true(slurm_processes(&other) >= 4);
    kill(test, SIGKILL);
    waitpid(test, NULL, 0);
    for (until = launch_now() + PATIENCE_S; slurm_processes(&other) > 0 && launch_now() < until;)
        usleep(20000);
    assert_int_equal(slurm_processes(&other), 0);
    scratch_remove(other.folder);
}

int main(void)
{
#define AT_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        AT_PLACE(ranks_are_spread),
        AT_PLACE(ends_come_back),
        AT_PLACE(a_stop_ends_all),
        AT_PLACE(a_killed_srun_leaves_none),
        AT_PLACE(a_killed_harness_leaves_none),
        AT_PLACE(only_on_its_fabric),
        AT_PLACE(a_job_folder_that_is_not_there),
        cmocka_unit_test(check_in_an_allocation),
        cmocka_unit_test(check_as_a_batch_script),
        cmocka_unit_test(bench_in_an_allocation),
        cmocka_unit_test(net_in_an_allocation),
        cmocka_unit_test(outside_of_a_job),
        cmocka_unit_test(without_slurm),
        cmocka_unit_test(the_cluster_goes_with_a_killed_test),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
