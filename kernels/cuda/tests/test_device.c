/*
 * struct device's functions that are no row of the table, on the device against the host's, and the kernels where the table's budgets cannot see.
 *
 * Claims: what is rounded once has the host's bits, NaN and infinity and ties included, for every pair and triple of types; memory arrives as it was sent,
 *         also where it is larger than the ring that it is sent by; norms keep NaN; NULL, beta = 0 and first steps read nothing that they should not.
 */
#include "kernels/cuda/tests/on_device.h"

static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_BF16, DTYPE_F16, DTYPE_I32, DTYPE_I64};
enum { FLOATS = 4, ALL_TYPES = 6, COUNT = 1037 };

#define FOR_FLOATS(a) for (int a = 0; a < FLOATS; a++)

/* Numbers of all magnitudes, ties between 16-bit numbers, both zeros, infinities, NaN, subnormals, and integers beyond int32. */
static double number_at(int64_t i, uint64_t *seed)
{
    const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 0x1p-149, 0x1p-24, 0x1.8p-25, 0x1p-26, 65504, 65519.999, 65520, 0x1.01p0, 0x1.03p0, 0x1.010001p0,
                              0x1.0080000001p0, 0x1.ffp127, 0x1p-133, 0x1.002p0, 0x1.006p0, 3e9, -3e9, 0x1.8p62, -0x1p63, 0.5, 1.5, 2.5, -0.5};
    if (i < (int64_t)(sizeof special / sizeof *special))
        return special[i];
    return random_normal(seed) * exp2((double)(i % 61 - 30));
}

static void numbers(int64_t n, enum dtype type, void *to, uint64_t seed, bool tame)
{
    for (int64_t i = 0; i < n; i++)
        dtype_set(type, to, i, tame ? random_normal(&seed) : number_at(i, &seed));
}

/* Two arrays on host and device that begin alike. */
struct twin {
    enum dtype type;
    double host[COUNT], back[COUNT]; /* room for any type */
    char *device;
};

static void twin_new(struct twin *t, enum dtype type, uint64_t seed, bool tame)
{
    t->type = type;
    numbers(COUNT, type, t->host, seed, tame);
    t->device = to_device(t->host, sizeof t->host, 0);
}

/* A NaN's payload is nobody's promise. */
static void twin_check(struct twin *t, const char *what, enum dtype from)
{
    device_cuda.download(t->back, t->device, sizeof t->back);
    device_must_work();
    device_cuda.release(t->device);
    size_t size = dtype_size(t->type);
    for (int64_t i = 0; i < COUNT; i++)
        if (memcmp((char *)t->back + i * size, (char *)t->host + i * size, size) != 0 &&
            !(dtype_is_float(t->type) && isnan(dtype_get(t->type, t->back, i)) && isnan(dtype_get(t->type, t->host, i))))
            fail_msg("%s, %s and %s, element %d: %.17g, expected %.17g", what, dtype_name(from), dtype_name(t->type), (int)i, dtype_get(t->type, t->back, i),
                     dtype_get(t->type, t->host, i));
}

static void test_memory_arrives(void **state)
{
    (void)state;
    const size_t bytes = ((size_t)9 << 20) + 123;
    unsigned char *host = malloc(bytes), *back = malloc(bytes);
    assert_true(host != NULL && back != NULL);
    for (size_t i = 0; i < bytes; i++)
        host[i] = (unsigned char)(i * 2654435761u >> 11);
    unsigned char *first = device_cuda.allocate(bytes), *second = device_cuda.allocate(bytes);
    device_cuda.download(back, first, bytes);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(back[i], 0);
    device_cuda.upload(first, host, bytes);
    unsigned char kept = host[5];
    host[5] = (unsigned char)~kept; /* free to change at once */
    device_cuda.copy(second, first, bytes - 7);
    device_cuda.clear(second + 100, 50);
    device_cuda.download(back, second, bytes);
    host[5] = kept;
    memset(host + 100, 0, 50);
    memset(host + bytes - 7, 0, 7);
    assert_memory_equal(back, host, bytes);
    device_must_work();
    device_cuda.release(first);
    device_cuda.release(second);
    free(host);
    free(back);
}

static void test_cast_accumulate_fill(void **state)
{
    (void)state;
    struct twin from, to;
    for (int a = 0; a < ALL_TYPES; a++)
        for (int b = 0; b < ALL_TYPES; b++)
            for (int add = 0; add <= (a < FLOATS && b < FLOATS); add++) {
                twin_new(&from, types[a], 1, false);
                twin_new(&to, types[b], 2, false);
                (add ? device_cuda.accumulate : device_cuda.cast)(COUNT - 3, from.type, from.device, to.type, to.device);
                (add ? kernels_accumulate : kernels_cast)(COUNT - 3, from.type, from.host, to.type, to.host);
                twin_check(&to, add ? "accumulate" : "cast", from.type);
                device_cuda.release(from.device);
            }
    for (int a = 0; a < ALL_TYPES; a++) {
        twin_new(&to, types[a], 3, true);
        device_cuda.fill(COUNT - 5, to.type, to.device, -2.71828);
        kernels_fill(COUNT - 5, to.type, to.host, -2.71828);
        twin_check(&to, "fill", to.type);
    }
}

static void test_mean(void **state)
{
    (void)state;
    struct twin sum, to;
    FOR_FLOATS(a) FOR_FLOATS(b) for (int add = 0; add < 2; add++)
    {
        twin_new(&sum, types[a], 4, false);
        twin_new(&to, types[b], 5, false);
        device_cuda.mean(COUNT - 1, sum.type, sum.device, 3, 0.7, to.type, to.device, add);
        device_cpu.mean(COUNT - 1, sum.type, sum.host, 3, 0.7, to.type, to.host, add);
        twin_check(&to, add ? "mean, added" : "mean", sum.type);
        device_cuda.release(sum.device);
    }
}

enum optimizer { SGD, SGD_PLAIN, SGD_NESTEROV, ADAMW, OPTIMIZERS };

static void one_step(const struct device *d, enum optimizer which, struct optim_types t, int64_t step, void *p, const void *g, void *m, void *v)
{
    if (which == ADAMW)
        d->adamw(t, COUNT - 2, 0.01, 0.9, 0.95, 1e-8, 0.1, step, p, g, m, v);
    else
        d->sgd(t, COUNT - 2, 0.01, which == SGD_PLAIN ? 0 : 0.9, which == SGD_NESTEROV ? 0 : 0.1, which == SGD_PLAIN ? 0 : 0.1, which == SGD_NESTEROV, step, p, g,
               which == SGD_PLAIN ? NULL : m);
}

static void check_optimizer(enum optimizer which, struct optim_types types_of)
{
    static const char *const names[] = {"sgd", "sgd without momentum", "sgd, nesterov", "adamw"};
    struct twin p, g, m, v;
    for (int64_t step = 1; step < 3; step++) {
        twin_new(&p, types_of.p, 6, true);
        twin_new(&g, types_of.g, 7, true);
        twin_new(&m, types_of.s, 8, true);
        twin_new(&v, types_of.s, 9, true);
        for (int i = 0; i < COUNT; i++) /* a second moment; and on sgd's first step whatever memory held */
            dtype_set(v.type, v.host, i, fabs(dtype_get(v.type, v.host, i)));
        for (int i = 0; i < COUNT && step == 1 && which < ADAMW; i++)
            dtype_set(m.type, m.host, i, NAN);
        device_cuda.upload(v.device, v.host, sizeof v.host);
        device_cuda.upload(m.device, m.host, sizeof m.host);
        one_step(&device_cuda, which, types_of, step, p.device, g.device, m.device, v.device);
        one_step(&device_cpu, which, types_of, step, p.host, g.host, m.host, v.host);
        twin_check(&p, names[which], types_of.g);
        twin_check(&m, names[which], types_of.p);
        twin_check(&v, names[which], types_of.p);
        device_cuda.release(g.device);
    }
}

static void test_optimizers(void **state)
{
    (void)state;
    FOR_FLOATS(p) FOR_FLOATS(g) FOR_FLOATS(s) for (int which = 0; which < OPTIMIZERS; which++)
        check_optimizer(which, (struct optim_types){types[p], types[g], types[s]});
}

/* One bad value at each place: no remainder and no thread may lose it. */
static void test_norms(void **state)
{
    (void)state;
    enum { ARRAYS = 29 };
    const double bad[] = {NAN, INFINITY, -INFINITY};
    FOR_FLOATS(a) for (int b = 0; b < 3; b++)
    {
        char *device[ARRAYS];
        int64_t n[ARRAYS];
        double host[COUNT], out[ARRAYS], expected[ARRAYS];
        for (int i = 0; i < ARRAYS; i++) {
            n[i] = i == ARRAYS - 1 ? COUNT : i;
            kernels_fill(COUNT, types[a], host, -2);
            if (i > 0)
                dtype_set(types[a], host, (i * 7 + 3) % n[i], i % 3 ? bad[b] : -2);
            device[i] = to_device(host, (size_t)n[i] * dtype_size(types[a]), 0);
            expected[i] = i % 3 && i > 0;
        }
        for (int norm = 0; norm <= DEVICE_ALL_FINITE; norm++) {
            device_cuda.norms(norm, types[a], ARRAYS, (const void *const *)device, n, out);
            for (int i = 0; i < ARRAYS; i++) {
                double good = norm == DEVICE_NORM_L1 ? 2.0 * (double)n[i] : norm == DEVICE_NORM_L2_SQUARED ? 4.0 * (double)n[i] : norm == DEVICE_NORM_LINF ? 2 * (n[i] > 0) : 1;
                double want = expected[i] == 0 ? good : norm == DEVICE_ALL_FINITE ? 0 : isnan(bad[b]) ? NAN : INFINITY;
                if (!(out[i] == want || (isnan(out[i]) && isnan(want))))
                    fail_msg("norm %d, %s, %d elements: %g, expected %g", norm, dtype_name(types[a]), (int)n[i], out[i], want);
            }
        }
        for (int i = 0; i < ARRAYS; i++)
            device_cuda.release(device[i]);
    }
    device_must_work();
}

static void check_witness(enum dtype storage, int64_t rows, int64_t C)
{
    struct twin w, gradient, x, weights, sums, values;
    twin_new(&w, storage, 10, true);
    twin_new(&gradient, storage, 11, true);
    twin_new(&x, DTYPE_F32, 12, true);
    twin_new(&weights, DTYPE_F32, 13, true);
    twin_new(&sums, DTYPE_F64, 14, true);
    twin_new(&values, DTYPE_F64, 15, true);
    ((float *)weights.host)[1] = 0; /* passed over, whatever its row holds */
    for (int64_t c = 0; c < C && rows > 1; c++)
        ((float *)x.host)[C + c] = NAN;
    device_cuda.upload(weights.device, weights.host, sizeof weights.host);
    device_cuda.upload(x.device, x.host, sizeof x.host);
    device_cuda.add_weighted_rows(storage, rows, C, 0.3, (float *)weights.device, (float *)x.device, gradient.device);
    device_cpu.add_weighted_rows(storage, rows, C, 0.3, (float *)weights.host, (float *)x.host, gradient.host);
    twin_check(&gradient, "add_weighted_rows", DTYPE_F32);
    device_cuda.weighted_sum(COUNT - 4, (float *)weights.device, (double *)values.device, (double *)values.device + COUNT - 1);
    device_cpu.weighted_sum(COUNT - 4, (float *)weights.host, values.host, values.host + COUNT - 1);
    twin_check(&values, "weighted_sum", DTYPE_F32);
    device_cuda.row_products(storage, rows, C, w.device, (float *)x.device, (double *)sums.device);
    device_cpu.row_products(storage, rows, C, w.host, (float *)x.host, sums.host);
    device_cuda.download(sums.back, sums.device, sizeof sums.back);
    for (int64_t i = 0; i < COUNT; i++)
        if (!(i == 1 && rows > 1 && C > 0 ? isnan(sums.back[i]) : fabs(sums.back[i] - sums.host[i]) <= 1e-13 * (double)(C + 1)))
            fail_msg("row_products, %s, row %d: %.17g, expected %.17g", dtype_name(storage), (int)i, sums.back[i], sums.host[i]);
    device_must_work();
    device_cuda.release(w.device);
    device_cuda.release(x.device);
    device_cuda.release(weights.device);
    device_cuda.release(sums.device);
}

static void test_witness(void **state)
{
    (void)state;
    FOR_FLOATS(a)
    {
        check_witness(types[a], 3, 301);
        check_witness(types[a], 17, 5);
        check_witness(types[a], 1, 1);
        check_witness(types[a], 0, 7);
        check_witness(types[a], 4, 0);
    }
}

int main(void)
{
    kernels_set_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_arrives), cmocka_unit_test(test_cast_accumulate_fill), cmocka_unit_test(test_mean), cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_norms),          cmocka_unit_test(test_witness),
    };
    return cmocka_run_group_tests_name("kernels/cuda: device", tests, open_device, close_device);
}
