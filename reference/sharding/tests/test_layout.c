// Every element is owned exactly once and found again, for both layouts and all S <= 64.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reference/sharding/layout.h"

enum { MAX_SHARDS = 64, TENSORS = 8 };

// d0 in {1, S-1, S, S+1, 2S-1}, a scalar, a large one, and an empty one.
static void make_tensors(int shards, struct layout_tensor *t)
{
    const struct layout_tensor all[TENSORS] = {{1, 1},      {1, 7},          {shards - 1, 3}, {shards, 2},
                                               {shards + 1, 5}, {2 * shards - 1, 1}, {3, 11},  {0, 4}};
    memcpy(t, all, sizeof all);
}

static int64_t elements(const struct layout_tensor *t) { return t->rows * t->row_count; }

static void check_every_element_once(const struct layout *l, const struct layout_tensor *t)
{
    for (int i = 0; i < l->tensor_count; i++) {
        unsigned char *seen = calloc((size_t)elements(&t[i]) + 1, 1);
        for (int s = 0; s < l->shards; s++)
            for (int p = l->first_piece[s]; p < l->first_piece[s + 1]; p++)
                for (int64_t e = 0; l->pieces[p].tensor == i && e < l->pieces[p].length; e++)
                    seen[l->pieces[p].offset + e]++;
        for (int64_t e = 0; e < elements(&t[i]); e++) {
            int64_t at = -1;
            int owner = layout_owner(l, i, e, &at);
            assert_int_equal(seen[e], 1);
            assert_in_range(owner, 0, l->shards - 1);
            assert_in_range(at, 0, l->counts[owner] - 1);
        }
        free(seen);
    }
}

// Pieces of a shard lie one after another; with the padding they are the shard.
static void check_shards_are_whole(const struct layout *l)
{
    int64_t start = 0;
    for (int s = 0; s < l->shards; s++) {
        int64_t at = 0;
        for (int p = l->first_piece[s]; p < l->first_piece[s + 1]; p++) {
            assert_int_equal(l->pieces[p].at, at);
            at += l->pieces[p].length;
        }
        assert_int_equal(at + layout_padding(l, s), l->counts[s]);
        assert_int_equal(l->starts[s], start);
        start += l->counts[s];
    }
    assert_int_equal(start, l->full_count);
}

static void check_per_parameter(const struct layout *l, const struct layout_tensor *t)
{
    assert_int_equal(l->full_count, l->data_count);
    for (int i = 0; i < l->tensor_count; i++)
        for (int64_t row = 0; row < t[i].rows; row++) {
            int64_t at, chunk = (t[i].rows + l->shards - 1) / l->shards;
            assert_int_equal(layout_owner(l, i, row * t[i].row_count, &at), row / chunk);
            assert_int_equal(layout_owner(l, i, (row + 1) * t[i].row_count - 1, &at), row / chunk);
        }
}

static void check_flat(const struct layout *l, const struct layout_tensor *t)
{
    int64_t part = (l->data_count + l->shards - 1) / l->shards;
    assert_int_equal(l->full_count, part * l->shards);
    for (int i = 0; i < l->tensor_count; i++)
        for (int64_t e = 0; e < elements(&t[i]); e++) {
            int64_t at, owner = layout_owner(l, i, e, &at);
            assert_int_equal(owner * part + at, l->tensor_offset[i] + e);
        }
}

// Does each element lie, in the shards one after another, where it lies in the full buffer?
static bool every_element_in_place(const struct layout *l, const struct layout_tensor *tensors)
{
    for (int t = 0; t < l->tensor_count; t++)
        for (int64_t k = 0; k < tensors[t].rows * tensors[t].row_count; k++) {
            int64_t at;
            int owner = layout_owner(l, t, k, &at);
            if (l->starts[owner] + at != l->tensor_offset[t] + k)
                return false;
        }
    return true;
}

static void test_all_shard_counts(void **state)
{
    (void)state;
    for (int shards = 1; shards <= MAX_SHARDS; shards++)
        for (int count = 0; count <= TENSORS; count++) {
            struct layout_tensor tensors[TENSORS];
            struct layout per_parameter, flat;
            make_tensors(shards, tensors);
            assert_true(layout_create(&per_parameter, SHARD_PER_PARAMETER, shards, count, tensors, NULL));
            assert_true(layout_create(&flat, SHARD_FLAT, shards, count, tensors, NULL));
            check_every_element_once(&per_parameter, tensors);
            check_every_element_once(&flat, tensors);
            check_shards_are_whole(&per_parameter);
            check_shards_are_whole(&flat);
            check_per_parameter(&per_parameter, tensors);
            check_flat(&flat, tensors);
            assert_true(layout_concatenation_is_full(&flat));
            assert_int_equal(layout_concatenation_is_full(&per_parameter), every_element_in_place(&per_parameter, tensors));
            layout_free(&per_parameter);
            layout_free(&flat);
        }
}

static void test_not_owned(void **state)
{
    (void)state;
    struct layout_tensor tensor = {4, 2};
    struct layout l;
    int64_t at;
    assert_true(layout_create(&l, SHARD_FLAT, 3, 1, &tensor, NULL));
    assert_int_equal(layout_owner(&l, 0, 8, &at), -1);
    assert_int_equal(layout_owner(&l, 1, 0, &at), -1);
    layout_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_shard_counts), cmocka_unit_test(test_not_owned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
