// From stored samples to figures and words: times made by hand, so that every figure and every finding is known.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/net/output.h"
#include "harness/net/plan.h"

enum { SAMPLES = 15 }; // of five values, as many above the middle as below
static struct stored_serieses stored;

// A series whose samples lie within 1 % of `seconds`.
static struct stored_series *add(struct net_point point, const char *quantity, double seconds, double line_rate, int64_t errors)
{
    struct stored_series *items = realloc(stored.items, (size_t)(stored.count + 1) * sizeof *items);
    double *values = malloc(SAMPLES * sizeof *values);
    assert_non_null(items);
    assert_non_null(values);
    for (int i = 0; i < SAMPLES; i++)
        values[i] = seconds * (1 + 0.01 * (i % 5 - 2) / 2);
    stored.items = items;
    struct stored_series *x = &items[stored.count++];
    *x = (struct stored_series){.id = stored.count, .run = 1, .tool = "net", .fabric = "made", .subject = "mpi", .name = "x", .quantity = quantity,
                                .count = SAMPLES, .values = values};
    x->point = net_point_write(&point);
    json_object_set_new(x->point, "ranks", json_integer(4));
    json_object_set_new(x->point, "hosts", json_integer(4));
    json_object_set_new(x->point, "within", json_integer(2));
    x->facts = json_pack("{s:I, s:i}", "errors", (json_int_t)errors, "calls_per_sample", 1);
    if (errors > 0)
        json_object_set_new(x->facts, "first_error", json_string("rank 1, iteration 5: all-gather: element 3 is 1, expected 2"));
    if (line_rate > 0)
        json_object_set_new(x->facts, "line_rate", json_real(line_rate)), json_object_set_new(x->facts, "burst", json_real(0.01 * line_rate));
    return x;
}

static struct net_point point(enum net_measure m, enum net_op op, int64_t bytes)
{
    return (struct net_point){.measure = net_measure_names[m], .label = "", .call_count = 1, .calls = {{op, NET_WORLD, DTYPE_F32, bytes / 4, 0}}};
}

static void put(enum net_measure m, enum net_op op, int64_t bytes, double seconds) { add(point(m, op, bytes), "seconds", seconds, 0, 0); }

static void judge(struct net_rows *rows, struct net_findings *findings)
{
    struct error error = {0};
    const struct stored_series *items = stored.items;
    if (!net_rows_make(&stored, rows, &error))
        fail_msg("%s", error.text);
    assert_ptr_equal(rows->stored.items, items);
    net_consistency(rows, findings);
}

static void done(struct net_rows *rows)
{
    for (int i = 0; i < rows->stored.count; i++)
        free((void *)rows->stored.items[i].values);
    struct stored_series *items = rows->stored.items;
    net_rows_free(rows);
    free(items);
    stored = (struct stored_serieses){0};
}

static const char *text_of(const struct net_findings *f, const char *rule)
{
    for (int i = 0; i < f->count; i++)
        if (strcmp(f->items[i].rule, rule) == 0)
            return f->items[i].text;
    return "";
}

static void says(const struct net_findings *f, const char *rule, const char *text)
{
    if (strcmp(text_of(f, rule), text) != 0)
        fail_msg("%s: found \"%s\", expected \"%s\"", rule, text_of(f, rule), text);
}

// A fabric of 1 ms and 1 GB/s on the line that keeps every guideline.
static void sweep(double gather, double reduce, double all_reduce)
{
    for (int64_t bytes = 64 << 10; bytes <= 1 << 20; bytes *= 2) {
        double line = 1e-9 * (double)bytes * 0.75;
        put(NET_SWEEP, NET_ALL_GATHER, bytes, gather * (1e-3 + line));
        put(NET_SWEEP, NET_REDUCE_SCATTER, bytes, reduce * (1e-3 + line));
        put(NET_SWEEP, NET_ALL_REDUCE, bytes, all_reduce * (2e-3 + 2 * line));
    }
}

static void bandwidths(void **state)
{
    (void)state;
    struct net_rows rows;
    struct net_findings findings;
    add(point(NET_SWEEP, NET_ALL_GATHER, 1 << 20), "seconds", 0.1, 12.5e6, 0);
    judge(&rows, &findings);
    const struct net_row *r = &rows.items[0];
    assert_int_equal(rows.count, 1);
    assert_true(r->seconds.value == 0.1 && r->ranks == 4);
    assert_true(fabs(r->algbw - 10485760) < 1e-3);
    assert_true(fabs(r->busbw - 7864320) < 1e-3); // three quarters
    says(&findings, "line", "all-gather of 1M bytes reaches 62.9 % of the line rate");
    done(&rows);
}

static void a_good_fabric_breaks_no_rule(void **state)
{
    (void)state;
    struct net_rows rows;
    struct net_findings findings;
    struct net_fit fits[NET_FITS];
    sweep(1, 1, 1);
    put(NET_DIRECTIONS, NET_ONE_WAY, 1 << 20, 2e-3);
    put(NET_DIRECTIONS, NET_EXCHANGE, 1 << 20, 2.1e-3);
    judge(&rows, &findings);
    for (int i = 0; i < findings.count; i++)
        if (findings.items[i].violation)
            fail_msg("%s: %s", findings.items[i].rule, findings.items[i].text);
    assert_int_equal(net_fits(&rows, fits), 3);
    assert_true(fabs(fits[0].fit.alpha_s.value - 1e-3) < 2e-5);
    assert_true(fabs(1e9 * fits[0].fit.beta_s_per_byte.value - 1) < 0.05);
    assert_true(fits[0].points == 5 && fits[0].first == 64 << 10 && fits[0].last == 1 << 20);
    done(&rows);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    struct net_rows rows;
    struct net_findings findings;
    sweep(1, 1, 3);
    put(NET_SWEEP, NET_BROADCAST, 64 << 10, 9e-3);
    put(NET_SWEEP, NET_BROADCAST, 128 << 10, 1e-3);
    put(NET_SWEEP, NET_BROADCAST, 256 << 10, 5e-3);
    put(NET_DIRECTIONS, NET_ONE_WAY, 1 << 20, 2e-3);
    put(NET_DIRECTIONS, NET_EXCHANGE, 1 << 20, 4e-3);
    judge(&rows, &findings);
    assert_non_null(strstr(text_of(&findings, "halves"), "all-reduce takes 3.00 times reduce-scatter + all-gather at "));
    assert_non_null(strstr(text_of(&findings, "halves"), " bytes (of 5 sizes, 64K to 1M), which do the same"));
    says(&findings, "directions", "both directions at once reach half: 50 % of one direction at 1M bytes: sending and receiving wait for each other");
    says(&findings, "monotone", "broadcast takes 9.00 times what twice the size takes at 64K bytes");
    says(&findings, "merged", "one broadcast takes 2.50 times two of half the size at 256K bytes");
    done(&rows);
    sweep(2, 2, 1);
    judge(&rows, &findings);
    assert_non_null(strstr(text_of(&findings, "halves"), "reduce-scatter + all-gather take 2.00 times all-reduce at"));
    done(&rows);
}

// A line of 12.5 MB/s that lets 125000 bytes through at once, at ten times its rate.
static void bursts(int64_t last)
{
    for (int64_t bytes = 64; bytes <= last; bytes *= 2) {
        double line = 0.75 * (double)bytes, rate = line > 125000 ? 12.3e6 : 125e6;
        add(point(NET_SWEEP, NET_ALL_GATHER, bytes), "seconds", 1e-4 + line / rate, 12.5e6, 0);
    }
}

static void messages_that_ride_the_burst_tell_nothing_of_the_line(void **state)
{
    (void)state;
    struct net_rows rows;
    struct net_findings findings;
    struct net_fit fits[NET_FITS];
    char *text = NULL;
    size_t size = 0;
    bursts(4 << 20);
    judge(&rows, &findings);
    assert_int_equal(net_fits(&rows, fits), 1);
    // Beyond: 256K to 4M. Left out: 256 (12 % of the line) to 128K. 64 and 128 take less than a tenth of it.
    assert_true(fits[0].beyond == 5 && fits[0].points == 7 && fits[0].left_out == 10 && fits[0].fit.starts == 1);
    assert_true(fabs(net_fit_share(&fits[0]) - 12.3 / 12.5) < 0.01 && fabs(fits[0].fit.alpha_s.value - 1e-4) < 6e-6); // the short ones ride too, a little
    says(&findings, "fit", "");
    FILE *out = open_memstream(&text, &size);
    assert_true(net_table(&rows, &findings, out) && net_json(&rows, &findings, out));
    fclose(out);
    assert_non_null(strstr(text, " % of the line; 7 sizes, none further off than "));
    assert_non_null(strstr(text, "; intervals over samples, not over starts\n  Left out are messages that fit into the burst, 125000 bytes that the line lets through at once, "));
    assert_non_null(strstr(text, "\"left_out\": 10"));
    free(text);
    done(&rows);
    bursts(256 << 10);
    judge(&rows, &findings);
    assert_int_equal(net_fits(&rows, fits), 1);
    assert_true(fits[0].beyond == 1 && fits[0].points == 13 && fits[0].left_out == 0 && net_fit_share(&fits[0]) > 1);
    assert_memory_equal(text_of(&findings, "fit"), "fit above the line rate: ", 25);
    assert_non_null(strstr(text_of(&findings, "fit"), " % of it, of all-gather: the burst, 125000 bytes that the line lets through at once; 1 of 13 sizes are beyond it"));
    done(&rows);
}

// Large messages have few samples on a slow line. Where several starts have them, they count: without them the line would be fitted to what rides the burst.
static void few_samples_of_several_starts_tell_of_the_line(void **state)
{
    (void)state;
    struct net_rows rows;
    struct net_findings findings;
    struct net_fit fits[NET_FITS];
    struct { int count; const double *values; } launches[2 * 20];
    bursts(4 << 20);
    for (int i = 0; i < stored.count; i++) {
        struct stored_series *x = &stored.items[i];
        int each = json_integer_value(json_object_get(json_array_get(json_object_get(x->point, "calls"), 0), "count")) >= 1 << 18 ? 2 : 7;
        x->count = 2 * each;
        for (int k = 0; k < 2; k++)
            launches[2 * i + k].count = each, launches[2 * i + k].values = x->values + k * each;
        x->launch_count = 2;
        x->launches = (void *)&launches[2 * i];
    }
    judge(&rows, &findings);
    assert_int_equal(net_fits(&rows, fits), 1);
    assert_true(fits[0].beyond == 5 && fits[0].fit.starts == 2 && fits[0].fit.beta_s_per_byte.coverage == 0.95);
    for (int i = 0; i < rows.count; i++) // sizes beyond that only one start has: the line stays theirs, and no interval over starts is claimed
        rows.items[i].launches = fits[0].burst < rows.items[i].bus_bytes ? 1 : 2;
    assert_int_equal(net_fits(&rows, fits), 1);
    assert_true(fits[0].beyond == 5 && fits[0].fit.starts == 1 && fits[0].fit.beta_s_per_byte.coverage == 0 && net_fit_share(&fits[0]) < 1);
    done(&rows);
}

// Two starts that disagree: no interval of all samples together may be narrower than that.
static void starts_that_differ_widen_the_interval(void **state)
{
    (void)state;
    struct net_rows rows;
    struct net_findings findings;
    struct { int count; const double *values; } launches[2];
    struct stored_series *x = add(point(NET_SWEEP, NET_ALL_GATHER, 64 << 10), "seconds", 1e-3, 0, 0);
    double *values = (double *)x->values;
    for (int i = 10; i < SAMPLES; i++)
        values[i] *= 2;
    launches[0].count = 10, launches[0].values = values;
    launches[1].count = SAMPLES - 10, launches[1].values = values + 10;
    x->launch_count = 2;
    x->launches = (void *)launches;
    judge(&rows, &findings);
    assert_true(rows.items[0].seconds.high >= 2e-3 && rows.items[0].seconds.low < 1e-3);
    done(&rows);
}

// Five samples have no interval of 95 %: whatever they say proves nothing.
static void few_samples_show_nothing(void **state)
{
    (void)state;
    struct net_rows rows;
    struct net_findings findings;
    struct net_fit fits[NET_FITS];
    sweep(1, 1, 9);
    for (int i = 0; i < stored.count; i++)
        stored.items[i].count = 5;
    judge(&rows, &findings);
    assert_int_equal(findings.count, 0);
    assert_int_equal(net_fits(&rows, fits), 0);
    done(&rows);
}

static void forms_are_compared_with_the_plain_call(void **state)
{
    (void)state;
    struct net_rows rows;
    struct net_findings findings;
    struct net_point x = point(NET_FORMS, NET_ALL_GATHER, 1 << 20), off = point(NET_ALIGNMENT, NET_ALL_GATHER, 1 << 20);
    struct net_point odd = point(NET_ALIGNMENT, NET_ALL_GATHER, (1 << 20) + 16);
    add(x, "seconds", 1e-3, 0, 0);
    x.how = NET_NONBLOCKING;
    add(x, "seconds", 2e-3, 0, 0);
    x.how = NET_BLOCKING, x.in_place = true;
    add(x, "seconds", 1.01e-3, 0, 0);
    add(off, "seconds", 1e-3, 0, 0);
    off.offset = 4;
    add(off, "seconds", 1.5e-3, 0, 0);
    add(odd, "seconds", 1.4e-3, 0, 0);
    judge(&rows, &findings);
    says(&findings, "forms", "all-gather nonblocking takes 2.00 times the plain call, a byte on the line, at 1M bytes");
    int alignment = 0;
    for (int i = 0; i < findings.count; i++)
        alignment += strcmp(findings.items[i].rule, "alignment") == 0;
    assert_int_equal(alignment, 2);
    says(&findings, "alignment", "all-gather whose parts are 4 bytes above a multiple of 16 takes 1.40 times the one whose parts are multiples");
    assert_string_equal(findings.items[findings.count - 1].text, "all-gather with buffers 4 bytes off takes 1.50 times the aligned one");
    done(&rows);
}

static void two_at_once(void **state)
{
    (void)state;
    struct net_rows rows;
    struct net_findings findings;
    struct net_point gather = point(NET_TOGETHER, NET_ALL_GATHER, 1 << 20), reduce = point(NET_TOGETHER, NET_REDUCE_SCATTER, 1 << 20), both = gather;
    gather.how = reduce.how = both.how = NET_NONBLOCKING;
    both.call_count = 2;
    both.calls[1] = reduce.calls[0];
    add(gather, "seconds", 1e-3, 0, 0);
    add(reduce, "seconds", 2e-3, 0, 0);
    add(both, "seconds", 4e-3, 0, 0);
    both.calls[1].group = NET_TWIN;
    add(both, "seconds", 2.2e-3, 0, 0);
    judge(&rows, &findings);
    assert_int_equal(findings.count, 2);
    assert_string_equal(findings.items[0].text, "all-gather + reduce-scatter at once on one communicator take 1.33 times the one after the other, 2M bytes together");
    assert_true(findings.items[0].violation && !findings.items[1].violation);
    assert_string_equal(findings.items[1].text, "all-gather + reduce-scatter at once on two communicators, 2M bytes together: 1.10 times the longer of both alone, "
                                                "0.73 times their sum");
    assert_true(rows.items[2].bytes == 2 << 20 && rows.items[2].bus_bytes == 1.5 * (1 << 20));
    done(&rows);
}

static void what_was_hidden(void **state)
{
    (void)state;
    struct net_rows rows;
    struct net_findings findings;
    struct net_point x = point(NET_COMPUTE, NET_ALL_GATHER, 1 << 20);
    x.how = NET_NONBLOCKING;
    x.product = NET_PRODUCT;
    add(x, "seconds", 1.9e-3, 0, 0);
    add(x, "call alone seconds", 1e-3, 0, 0);
    add(x, "product alone seconds", 1e-3, 0, 0);
    add(x, "product beside seconds", 1.1e-3, 0, 0);
    add(x, "call beside seconds", 1.9e-3, 0, 0);
    judge(&rows, &findings);
    assert_int_equal(rows.count, 1);
    assert_true(fabs(rows.items[0].overlap.value - 0.1) < 1e-9);
    assert_true(fabs(rows.items[0].call_slowdown.value - 1.9) < 1e-9);
    assert_true(fabs(rows.items[0].product_slowdown.value - 1.1) < 1e-9);
    says(&findings, "overlap", "nonblocking all-gather of 1M bytes beside a product: 10 % of the shorter side is hidden: it moves on only inside MPI's calls");
    done(&rows);
}

static void links(const double seconds[4], const char *text)
{
    struct net_rows rows;
    struct net_findings findings;
    for (int r = 0; r < 4; r++) {
        struct net_point x = point(NET_LINKS, NET_LINK, 1 << 16);
        x.calls[0].root = r;
        add(x, "seconds", seconds[r], 0, 0);
    }
    judge(&rows, &findings);
    says(&findings, "links", text);
    done(&rows);
}

static void slow_hosts_and_slow_ways_are_told_apart(void **state)
{
    (void)state;
    links((const double[]){4e-3, 1e-3, 1e-3, 4e-3}, "rank 0 (host 0) is slow: the ways to and from it take up to 4.0 times the others");
    links((const double[]){1e-3, 4e-3, 4e-3, 1e-3}, "rank 2 (host 2) is slow: the ways to and from it take up to 4.0 times the others");
    links((const double[]){1e-3, 4e-3, 1e-3, 4e-3},
          "the ways between ranks 1 to 2, 3 to 0 take up to 4.0 times the others: the fabric has two tiers, or these links are slow");
    links((const double[]){1e-3, 1.1e-3, 1e-3, 1.2e-3}, "");
}

static void the_tables_say_it(void **state)
{
    (void)state;
    struct net_rows rows;
    struct net_findings findings;
    char *text = NULL;
    size_t size = 0;
    add(point(NET_SWEEP, NET_ALL_GATHER, 1 << 20), "seconds", 0.1, 12.5e6, 0);
    add(point(NET_SWEEP, NET_REDUCE_SCATTER, 1 << 20), "seconds", 0.08, 12.5e6, 7);
    judge(&rows, &findings);
    FILE *out = open_memstream(&text, &size);
    assert_true(net_table(&rows, &findings, out));
    fclose(out);
    assert_non_null(strstr(text, "   1048576      262144     float  none    100000.00 "));
    assert_non_null(strstr(text, "    0.010    0.0079   62.9        0  all-gather\n"));
    assert_non_null(strstr(text, "        7  reduce-scatter\n"));
    assert_non_null(strstr(text, "FAIL: 7 wrong elements: rank 1, iteration 5: all-gather: element 3 is 1, expected 2\n"));
    free(text);
    out = open_memstream(&text, &size);
    assert_true(net_json(&rows, &findings, out));
    fclose(out);
    json_t *root = json_loads(text, 0, NULL), *row = json_array_get(json_object_get(root, "rows"), 1);
    assert_int_equal(json_integer_value(json_object_get(root, "errors")), 7);
    assert_int_equal(json_integer_value(json_object_get(row, "size")), 1 << 20);
    assert_string_equal(json_string_value(json_object_get(row, "redop")), "sum");
    assert_true(json_is_null(json_object_get(row, "overlap")));
    assert_true(fabs(json_real_value(json_object_get(row, "percent_of_line")) - 78.64) < 0.01);
    json_decref(root);
    free(text);
    out = open_memstream(&text, &size);
    assert_true(net_csv(&rows, out));
    fclose(out);
    assert_memory_equal(text, "measure,name,form,ranks,", 24);
    assert_non_null(strstr(text, "\r\n\"sweep\",\"reduce-scatter\",\"\",4,4,1048576,262144,\"float\",\"sum\",\"blocking\",false,"));
    free(text);
    done(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bandwidths),
        cmocka_unit_test(a_good_fabric_breaks_no_rule),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(messages_that_ride_the_burst_tell_nothing_of_the_line),
        cmocka_unit_test(few_samples_of_several_starts_tell_of_the_line),
        cmocka_unit_test(starts_that_differ_widen_the_interval),
        cmocka_unit_test(few_samples_show_nothing),
        cmocka_unit_test(forms_are_compared_with_the_plain_call),
        cmocka_unit_test(two_at_once),
        cmocka_unit_test(what_was_hidden),
        cmocka_unit_test(slow_hosts_and_slow_ways_are_told_apart),
        cmocka_unit_test(the_tables_say_it),
    };
    return cmocka_run_group_tests_name("net rows", tests, NULL, NULL);
}
