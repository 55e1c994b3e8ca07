/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: each stored element is the logical one its index says, padding is zero. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/rng.h"
#include "engine/tensor/layout.h"

/* Definition of the header, element by element. */
static float element_at(const struct layout *l, const float *logical, int64_t at)
{
    int64_t pos[LAYOUT_MAX_DIMS] = {0}, offset = 0;
    for (int i = l->nr_p; i-- > 0;) {
        pos[l->p[i].dim] += l->p[i].coef * (at % l->p[i].extent);
        at /= l->p[i].extent;
    }
    for (int i = 0; i < l->nr_l; i++) {
        if (pos[i] < 0 || pos[i] >= l->l[i])
            return 0;
        offset = offset * l->l[i] + pos[i];
    }
    return logical[offset];
}

static float *counting(int64_t n)
{
    float *v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)(i + 1);
    return v;
}

static void check(const struct layout *l, bool complete)
{
    int64_t n = layout_logical_size(l), m = layout_stored_size(l);
    float *logical = counting(n), *stored = malloc((size_t)m * sizeof *stored);
    float *again = calloc((size_t)n, sizeof *again);
    memset(stored, 0xff, (size_t)m * sizeof *stored);
    layout_pack(l, logical, stored);
    for (int64_t i = 0; i < m; i++) {
        float want = element_at(l, logical, i);
        assert_memory_equal(&stored[i], &want, sizeof want);
    }
    if (complete) {
        layout_unpack(l, stored, again);
        assert_memory_equal(again, logical, (size_t)n * sizeof *again);
    }
    free(again);
    free(stored);
    free(logical);
}

static void plain_is_a_copy(void **state)
{
    (void)state;
    struct layout l = layout_plain(4, (int64_t[]){2, 3, 4, 5});
    assert_true(layout_is_plain(&l));
    assert_int_equal(layout_stored_size(&l), 120);
    check(&l, true);
    l = layout_plain(0, NULL);
    assert_true(layout_is_plain(&l));
    assert_int_equal(layout_stored_size(&l), 1);
    check(&l, true);
}

static void blocked_pads_the_last_block(void **state)
{
    (void)state;
    static const int64_t dims[][4] = {
        {1, 16, 3, 3}, {2, 17, 3, 5}, {1, 3, 4, 4}, {3, 31, 1, 1}, {1, 48, 7, 1}};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
        for (int64_t block = 1; block <= 16; block *= 4)
            for (int dim = 0; dim < 4; dim++) {
                struct layout l = layout_blocked(4, dims[i], dim, block);
                assert_false(layout_is_plain(&l));
                check(&l, true);
            }
    struct layout l = layout_blocked(4, (int64_t[]){1, 17, 2, 2}, 1, 16);
    assert_int_equal(layout_stored_size(&l), 2 * 4 * 16);
}

/* What schedules do to weights: any order of any cuts, some overlapping, some reaching outside. */
static void any_layout_follows_its_definition(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 7);
    for (int round = 0; round < 300; round++) {
        struct layout l = {.nr_l = 1 + (int)rng_below(&r, 4)};
        for (int i = 0; i < l.nr_l; i++)
            l.l[i] = 1 + (int64_t)rng_below(&r, 9);
        l.nr_p = 1 + (int)rng_below(&r, 6);
        for (int i = 0; i < l.nr_p; i++) {
            l.p[i].extent = 1 + (int64_t)rng_below(&r, 5);
            l.p[i].coef = (int64_t)rng_below(&r, 9) - 3;
            l.p[i].dim = (int)rng_below(&r, (uint64_t)l.nr_l);
        }
        check(&l, false);
    }
}

static void weights_in_the_order_of_a_schedule(void **state)
{
    (void)state;
    /* [K,C,R,S] as K/8 C R S 8k */
    struct layout l = layout_plain(4, (int64_t[]){20, 6, 3, 3});
    l.p[0] = (struct layout_dim){3, 8, 0};
    l.p[4] = (struct layout_dim){8, 1, 0};
    l.nr_p = 5;
    check(&l, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_is_a_copy),
        cmocka_unit_test(blocked_pads_the_last_block),
        cmocka_unit_test(any_layout_follows_its_definition),
        cmocka_unit_test(weights_in_the_order_of_a_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
