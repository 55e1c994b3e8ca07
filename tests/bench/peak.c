/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cores can do at most: independent fused multiply-adds on registers. An FMA takes 4
 * cycles and two start each cycle, so 8 sums must be on their way; 12 leave room for a slower pipe,
 * and fit 16 registers: with more of them some compilers spill, although AVX-512 has 32. The sums
 * tend to 1, so they neither overflow nor become denormal. And how fast they read what no cache
 * holds.
 */
#include "tests/bench/bench.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { STEPS = 1 << 14 };

static volatile float a_source = 0.999F, b_source = 0.001F, sink;

#define TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

__attribute__((target("avx512f"))) static void fma_512(void *ctx)
{
    (void)ctx;
    __m512 a = _mm512_set1_ps(a_source), b = _mm512_set1_ps(b_source);
#define SUM(i) __m512 s##i = _mm512_set1_ps((float)(i)*0.01F);
#define STEP(i) s##i = _mm512_fmadd_ps(s##i, a, b);
#define TOTAL(i) total = _mm512_add_ps(total, s##i);
    TWELVE(SUM)
    for (int n = 0; n < STEPS; n++) {
        TWELVE(STEP)
    }
    __m512 total = _mm512_setzero_ps();
    TWELVE(TOTAL)
    sink = _mm512_cvtss_f32(total);
#undef SUM
#undef STEP
#undef TOTAL
}

__attribute__((target("avx2,fma"))) static void fma_256(void *ctx)
{
    (void)ctx;
    __m256 a = _mm256_set1_ps(a_source), b = _mm256_set1_ps(b_source);
#define SUM(i) __m256 s##i = _mm256_set1_ps((float)(i)*0.01F);
#define STEP(i) s##i = _mm256_fmadd_ps(s##i, a, b);
#define TOTAL(i) total = _mm256_add_ps(total, s##i);
    TWELVE(SUM)
    for (int n = 0; n < STEPS; n++) {
        TWELVE(STEP)
    }
    __m256 total = _mm256_setzero_ps();
    TWELVE(TOTAL)
    sink = _mm256_cvtss_f32(total);
#undef SUM
#undef STEP
#undef TOTAL
}

/* Each core reads a region of its own. */
struct memory {
    const struct cores *cores;
    float *data;
    atomic_uint ticket;
};
enum { REGION = 24 << 20 }; /* floats, 96 MiB: more than last caches hold */

__attribute__((target("avx2"))) static void read_region(void *ctx)
{
    struct memory *m = ctx;
    unsigned core = atomic_fetch_add(&m->ticket, 1) % (unsigned)m->cores->nr;
    const float *x = m->data + (size_t)core * REGION;
    __m256 sum[8];
    for (int i = 0; i < 8; i++)
        sum[i] = _mm256_setzero_ps();
    for (size_t at = 0; at < REGION; at += 64)
        for (size_t i = 0; i < 8; i++)
            sum[i] = _mm256_add_ps(sum[i], _mm256_load_ps(x + at + 8 * i));
    for (int i = 1; i < 8; i++)
        sum[0] = _mm256_add_ps(sum[0], sum[i]);
    sink = _mm256_cvtss_f32(sum[0]);
}

static void read_all(void *ctx)
{
    cores_call(((struct memory *)ctx)->cores, read_region, ctx);
}

static void memory_free(void *ctx)
{
    struct memory *m = ctx;
    free(m->data);
    free(m);
}

void memory_enter(struct layer *l)
{
    bool streams = l->kind == LAYER_DEPTHWISE || (l->kind == LAYER_DENSE && l->m == 1);
    if (!streams || !__builtin_cpu_supports("avx2"))
        return;
    size_t bytes = (size_t)l->cores->nr * REGION * sizeof(float);
    struct memory *m = xcalloc(1, sizeof *m);
    m->cores = l->cores;
    m->data = aligned_alloc(64, bytes);
    if (!m->data) {
        free(m);
        return;
    }
    memset(m->data, 0, bytes);
    struct entrant *en = layer_entrant(l, "memory", ENTRANT_MEMORY);
    en->call = read_all;
    en->ctx = m;
    en->free = memory_free;
    en->flops = (double)bytes;
}

static const struct {
    const char *name;
    void (*call)(void *ctx);
    double flops; /* lanes x sums x 2 x steps */
} loops[] = {
    {"AVX-512 FMA", fma_512, 16.0 * 12 * 2 * STEPS},
    {"AVX2 FMA", fma_256, 8.0 * 12 * 2 * STEPS},
};

static int chosen(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return 0;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 1 : -1;
}

static void call(void *ctx)
{
    cores_call(ctx, loops[chosen()].call, NULL);
}

void peak_enter(struct layer *l)
{
    int i = chosen();
    if (i < 0)
        return;
    struct entrant *en = layer_entrant(l, "peak", ENTRANT_PEAK);
    en->call = call;
    en->ctx = (void *)l->cores;
    en->flops = loops[i].flops * l->cores->nr;
}

const char *peak_name(void)
{
    return chosen() < 0 ? NULL : loops[chosen()].name;
}

#else

void peak_enter(struct layer *l)
{
    (void)l;
}

void memory_enter(struct layer *l)
{
    (void)l;
}

const char *peak_name(void)
{
    return NULL;
}

#endif
