/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/tune/queue.h"

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void test_order_and_bounds(void **state)
{
    (void)state;
    struct queue *q = queue_new(sizeof(int), 3);
    /* Twice around the ring, so that the wrap is crossed. */
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            assert_true(queue_try_push(q, &i));
        int x = 9;
        assert_false(queue_try_push(q, &x));
        assert_int_equal(queue_length(q), 3);
        for (int i = 0; i < 2; i++) {
            assert_true(queue_try_pop(q, &x));
            assert_int_equal(x, i);
        }
        assert_true(queue_pop(q, &x, -1));
        assert_int_equal(x, 2);
        assert_false(queue_try_pop(q, &x));
    }
    queue_free(q);
}

static void test_pop_times_out(void **state)
{
    (void)state;
    struct queue *q = queue_new(sizeof(int), 1);
    int x;
    assert_false(queue_pop(q, &x, 1000000));
    queue_free(q);
}

static void test_close_drains_then_ends(void **state)
{
    (void)state;
    struct queue *q = queue_new(sizeof(int), 4);
    int x = 7;
    assert_true(queue_push(q, &x));
    queue_close(q);
    queue_close(q);
    assert_false(queue_push(q, &x));
    x = 0;
    assert_true(queue_pop(q, &x, -1));
    assert_int_equal(x, 7);
    assert_false(queue_pop(q, &x, -1));
    queue_free(q);
}

static void test_eventfd_coalesces(void **state)
{
    (void)state;
    struct queue *q = queue_new(sizeof(int), 4);
    int fd = queue_fd(q), x = 1;
    assert_false(readable(fd));
    queue_push(q, &x);
    queue_push(q, &x);
    assert_true(readable(fd));
    uint64_t n;
    assert_int_equal(read(fd, &n, sizeof n), sizeof n);
    assert_int_equal(n, 1);
    assert_false(readable(fd));
    while (queue_try_pop(q, &x))
        ;
    queue_push(q, &x);
    assert_true(readable(fd));
    assert_int_equal(read(fd, &n, sizeof n), sizeof n);
    queue_close(q);
    assert_true(readable(fd));
    queue_free(q);
}

enum { PRODUCERS = 4, EACH = 2000 };

static void *produce(void *arg)
{
    struct queue *q = arg;
    for (int i = 1; i <= EACH; i++)
        if (!queue_push(q, &i))
            return arg;
    return NULL;
}

static void test_many_producers_block_on_a_small_queue(void **state)
{
    (void)state;
    struct queue *q = queue_new(sizeof(int), 3);
    pthread_t t[PRODUCERS];
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, produce, q), 0);
    int64_t sum = 0;
    for (int i = 0; i < PRODUCERS * EACH; i++) {
        int x;
        assert_true(queue_pop(q, &x, -1));
        sum += x;
    }
    for (int i = 0; i < PRODUCERS; i++) {
        void *refused;
        pthread_join(t[i], &refused);
        assert_null(refused);
    }
    assert_int_equal(sum, (int64_t)PRODUCERS * EACH * (EACH + 1) / 2);
    queue_free(q);
}

static void test_close_releases_a_blocked_producer(void **state)
{
    (void)state;
    struct queue *q = queue_new(sizeof(int), 1);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, produce, q), 0);
    int x;
    assert_true(queue_pop(q, &x, -1));
    queue_close(q);
    void *refused;
    pthread_join(t, &refused);
    assert_non_null(refused);
    queue_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_bounds),
        cmocka_unit_test(test_pop_times_out),
        cmocka_unit_test(test_close_drains_then_ends),
        cmocka_unit_test(test_eventfd_coalesces),
        cmocka_unit_test(test_many_producers_block_on_a_small_queue),
        cmocka_unit_test(test_close_releases_a_blocked_producer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
