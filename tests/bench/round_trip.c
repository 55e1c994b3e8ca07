/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a word takes from one core to another and back.
 *
 * Virtual cores move: the host may put two of them into one domain of the last cache or into two,
 * for seconds to minutes. Kernels of two threads are then up to a half slower or faster, and nothing
 * in the guest says so, except this time: 0.13 us in one domain, 0.48 us in two, on one machine.
 * Figures of several threads are told with it, and compared only among equals.
 *
 * Needs no other file, so that a script can compile it on its own.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

/* The declaration is in bench.h, which programs of C include. */
double round_trip_ns(int cpu_a, int cpu_b);

enum { TRIPS = 4000, BATCHES = 5 };

struct court {
    _Alignas(128) atomic_int ball;  /* odd: the other side's turn */
    _Alignas(128) atomic_int ready; /* of the other side: 1, or -1 where it could not be pinned */
    int cpu;
};

static int pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void *other_side(void *arg)
{
    struct court *c = arg;
    bool pinned = pin(c->cpu) == 0;
    atomic_store(&c->ready, pinned ? 1 : -1);
    if (!pinned)
        return NULL;
    for (int turn = 1; turn <= 2 * TRIPS * BATCHES; turn += 2) {
        while (atomic_load_explicit(&c->ball, memory_order_acquire) != turn)
            ;
        atomic_store_explicit(&c->ball, turn + 1, memory_order_release);
    }
    return NULL;
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double batch_ns(struct court *c, int batch)
{
    double start = now_ns();
    for (int i = 0; i < TRIPS; i++) {
        int turn = 2 * (batch * TRIPS + i);
        while (atomic_load_explicit(&c->ball, memory_order_acquire) != turn)
            ;
        atomic_store_explicit(&c->ball, turn + 1, memory_order_release);
    }
    return (now_ns() - start) / TRIPS;
}

/* Mean of the quickest of some batches of trips, in nanoseconds; -1 where it cannot be measured.
 * The affinity of the caller is as before afterwards. */
double round_trip_ns(int cpu_a, int cpu_b)
{
    struct court c = {.cpu = cpu_b};
    cpu_set_t before;
    pthread_t thread;
    double best = -1;
    if (pthread_getaffinity_np(pthread_self(), sizeof before, &before) || pin(cpu_a))
        return -1;
    if (pthread_create(&thread, NULL, other_side, &c) == 0) {
        while (!atomic_load(&c.ready))
            ;
        for (int i = 0; i < BATCHES && atomic_load(&c.ready) > 0; i++) {
            double ns = batch_ns(&c, i);
            best = best < 0 || ns < best ? ns : best;
        }
        pthread_join(thread, NULL);
    }
    pthread_setaffinity_np(pthread_self(), sizeof before, &before);
    return best;
}
