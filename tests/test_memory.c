/* SPDX-License-Identifier: Apache-2.0 */
/* Placement in a shared block: nothing that lives together overlaps, and little is wasted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/base/rng.h"
#include "engine/model/memory.h"

static void check_apart(const struct memory_item *m, int nr, int64_t total, int64_t align)
{
    for (int i = 0; i < nr; i++) {
        assert_true(m[i].offset >= 0 && m[i].offset % align == 0);
        assert_true(m[i].offset + m[i].bytes <= total);
        for (int k = 0; k < i; k++) {
            int meet = m[i].first <= m[k].last && m[k].first <= m[i].last;
            assert_true(!meet || m[i].offset + m[i].bytes <= m[k].offset ||
                        m[k].offset + m[k].bytes <= m[i].offset);
        }
    }
}

static void a_chain_needs_two_of_its_arrays(void **state)
{
    (void)state;
    enum { N = 50 };
    struct memory_item m[N];
    for (int i = 0; i < N; i++)
        m[i] = (struct memory_item){.bytes = 1000, .first = i, .last = i + 1};
    int64_t total = memory_place(m, N, 64);
    check_apart(m, N, total, 64);
    assert_int_equal(total, 2 * 1024);
    assert_int_equal(memory_bound(m, N, 64), 2 * 1024);
}

static void a_small_array_takes_the_smallest_gap(void **state)
{
    (void)state;
    struct memory_item m[] = {
        {.bytes = 640, .first = 0, .last = 9}, {.bytes = 448, .first = 0, .last = 0},
        {.bytes = 320, .first = 0, .last = 9}, {.bytes = 192, .first = 0, .last = 0},
        {.bytes = 128, .first = 0, .last = 9}, {.bytes = 64, .first = 1, .last = 9},
    };
    int64_t total = memory_place(m, 6, 64);
    check_apart(m, 6, total, 64);
    assert_int_equal(total, memory_bound(m, 6, 64));
    assert_int_equal(m[5].offset, m[3].offset);
}

static void nothing_needs_nothing(void **state)
{
    (void)state;
    struct memory_item none = {.bytes = 0, .first = 0, .last = 0};
    assert_int_equal(memory_place(NULL, 0, 64), 0);
    assert_int_equal(memory_bound(NULL, 0, 64), 0);
    assert_int_equal(memory_place(&none, 1, 64), 0);
}

static void random_lives_stay_apart(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 11);
    double worst = 1;
    for (int round = 0; round < 300; round++) {
        struct memory_item m[80];
        int nr = 1 + (int)rng_below(&r, 80);
        for (int i = 0; i < nr; i++) {
            int first = (int)rng_below(&r, 60);
            m[i] = (struct memory_item){.bytes = (int64_t)rng_below(&r, 100000),
                                        .first = first,
                                        .last = first + (int)rng_below(&r, 8)};
        }
        int64_t total = memory_place(m, nr, 64), bound = memory_bound(m, nr, 64);
        check_apart(m, nr, total, 64);
        assert_true(total >= bound);
        double ratio = bound ? (double)total / (double)bound : 1;
        worst = ratio > worst ? ratio : worst;
    }
    print_message("at worst %.2f of the bound\n", worst);
    assert_true(worst < 1.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_needs_two_of_its_arrays),
        cmocka_unit_test(a_small_array_takes_the_smallest_gap),
        cmocka_unit_test(nothing_needs_nothing),
        cmocka_unit_test(random_lives_stay_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
