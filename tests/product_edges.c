/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the interface of a compiled model promises: built by product.py against tinynet.
 *
 * Arrays of any alignment, with not a byte behind them; instances in several threads at a time; the
 * same bits from each; nothing written beside the output.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tinynet.h"

enum { IN = 3 * 32 * 32, OUT = 10, THREADS = 3, RUNS = 50 };

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "line %d: %s\n", __LINE__, #x);                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* An array of `nr` floats that ends where no memory is. */
static float *at_the_edge(size_t nr)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = nr * sizeof(float);
    size_t size = (bytes + 2 * page - 1) / page * page;
    char *p = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    CHECK(mprotect(p + size, page, PROT_NONE) == 0);
    return (float *)(void *)(p + size - bytes);
}

static void fill(float *x)
{
    for (int i = 0; i < IN; i++)
        x[i] = (float)(i * 7919 % 1000) / 500 - 1;
}

static void *run_often(void *wanted)
{
    char why[200];
    struct tinynet *m = tinynet_create(NULL, why, sizeof why);
    CHECK(m);
    float *x = at_the_edge(IN), *y = at_the_edge(OUT);
    const float *const in[] = {x};
    float *const out[] = {y};
    fill(x);
    for (int i = 0; i < RUNS; i++) {
        memset(y, 0xff, OUT * sizeof *y);
        y[-1] = 42;
        tinynet_run(m, in, out);
        CHECK(memcmp(y, wanted, OUT * sizeof *y) == 0);
        CHECK(y[-1] == 42);
    }
    tinynet_free(m);
    return NULL;
}

int main(void)
{
    struct tinynet *m = tinynet_create(NULL, NULL, 0);
    float x[IN], y[OUT], sum = 0;
    CHECK(m);
    CHECK(tinynet_threads(m, 1000) == TINYNET_THREADS);
    CHECK(tinynet_threads(m, -1) == 1);
    CHECK(tinynet_input[0].elements == IN && tinynet_output[0].elements == OUT);
    CHECK(tinynet_input[0].rank == 4 && tinynet_input[0].dim[3] == 32);
    fill(x);
    tinynet_run(m, (const float *[]){x}, (float *[]){y});
    for (int i = 0; i < OUT; i++)
        sum += y[i];
    CHECK(sum > 0.999f && sum < 1.001f); /* of a Softmax */
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&t[i], NULL, run_often, y) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    tinynet_free(m);
    tinynet_free(NULL);
    puts("ok");
    return 0;
}
