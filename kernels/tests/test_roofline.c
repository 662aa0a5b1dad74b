// The roofline benchmark: parts of a roof, the files of its picture, and that gnuplot draws them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define main bench_main // it is a program
#include "kernels/bench/bench_roofline.c"
#undef main

static const struct kernel_row *row_named(const char *name)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (strcmp(kernel_rows[i].name, name) == 0)
            return &kernel_rows[i];
    return NULL;
}

// A row's place follows from its declared work: add does n flop on 3n elements of 4 bytes. Its part is of the lower of both roofs.
static void a_point_is_placed_by_its_work(void **state)
{
    (void)state;
    struct point p, q;
    struct roofs low = {.peak = 1e9, .cache = 1, .memory = 1}, high = {.peak = 1e-3, .cache = 1e9, .memory = 1e9};
    kernels_set_threads(1);
    assert_true(measure_point(row_named("add"), DTYPE_F32, &low, &p));
    assert_true(fabs(p.intensity - 1.0 / 12) < 1e-12 && p.gflops > 0);
    assert_true(fabs(p.part - p.gflops * 12) <= 1e-9 * p.part);
    assert_true(measure_point(row_named("add"), DTYPE_F32, &high, &q));
    assert_true(fabs(q.part - q.gflops / 1e-3) <= 1e-9 * q.part);
    assert_false(measure_point(row_named("all_finite"), DTYPE_F32, &low, &p)); // no flop
    assert_true(p.intensity < 1 && by_intensity(&p, &q) == 0);
}

static void roofs_are_measured(void **state)
{
    (void)state;
    assert_true(copy_bandwidth((size_t)1 << 20) > 0 && measure_matrix_peak(DTYPE_F32) > 0);
}

static bool draws(const char *folder)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        execlp("sh", "sh", "harness/bench/roofline.sh", folder, (char *)NULL);
        _exit(127);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void the_picture_names_every_kernel(void **state)
{
    (void)state;
    static char folder[] = "/tmp/fsdpmark.test.XXXXXX", text[1 << 20];
    const char *const files[] = {"roofline.dat", "roofline.head", "roofline.gp", "style.gp", "roofline.svg", "roofline.png"};
    struct roofs r = {.peak = 70, .cache = 40, .memory = 16};
    struct point points[] = {{"slow_one", 0.1, 2, 0.5}, {"fast_one", 40, 60, 0.857}};
    char path[4200];
    assert_non_null(mkdtemp(folder));
    assert_true(write_picture(folder, &r, points, 2, 3, DTYPE_F32));
    assert_true(draws(folder));
    snprintf(path, sizeof path, "%s/roofline.svg", folder);
    FILE *file = fopen(path, "r");
    size_t size = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    text[size] = 0;
    if (file != NULL)
        fclose(file);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
    if (file == NULL) // no gnuplot: the script says so, and make info
        skip();
    const char *const shown[] = {"slow_one", "fast_one", "3 kernels without flop are left out", "BLAS 70 GFLOP/s, copies in the cache 40.0 GB/s", "copies from memory 16.0 GB/s"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        assert_non_null(strstr(text, shown[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_point_is_placed_by_its_work), cmocka_unit_test(roofs_are_measured), cmocka_unit_test(the_picture_names_every_kernel)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
