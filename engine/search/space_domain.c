/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/space_domain.h"

#include <assert.h>

int factorise(int64_t n, struct prime_power out[MAX_PRIMES])
{
    int nr = 0;
    for (int64_t p = 2; p * p <= n; p++) {
        if (n % p)
            continue;
        out[nr] = (struct prime_power){(int32_t)p, 0};
        for (; n % p == 0; n /= p)
            out[nr].e++;
        nr++;
    }
    if (n > 1)
        out[nr++] = (struct prime_power){(int32_t)n, 1};
    return nr;
}

int64_t mul_cap(int64_t a, int64_t b, int64_t cap)
{
    if (a == 0 || b == 0)
        return 0;
    return a > cap / b ? cap : a * b;
}

static bool inner_fits(const struct knob *k, const int32_t *v)
{
    return k->max_inner == 0 || v[k->nr_slots - 1] <= k->max_inner;
}

static bool is_permutation(const int32_t *v, int n)
{
    bool had[CAND_MAX_SLOTS] = {false};
    for (int i = 0; i < n; i++) {
        if (v[i] < 0 || v[i] >= n || had[v[i]])
            return false;
        had[v[i]] = true;
    }
    return true;
}

static bool is_split(const struct knob *k, const int32_t *v)
{
    int64_t product = 1;
    for (int i = 0; i < k->nr_slots; i++) {
        if (v[i] < 1 || product > k->extent)
            return false;
        product *= v[i];
    }
    return product == k->extent && inner_fits(k, v);
}

bool domain_contains(const struct knob *k, const int32_t *v)
{
    switch (k->kind) {
    case KNOB_SPLIT:
        return is_split(k, v);
    case KNOB_ORDINAL:
    case KNOB_CHOICE:
        return v[0] >= 0 && v[0] < k->nr_values;
    case KNOB_FLAG:
        return v[0] == 0 || v[0] == 1;
    case KNOB_PERMUTATION:
        return is_permutation(v, k->nr_values);
    }
    return false;
}

/* The smallest divisor of n above d, in at most sqrt(n) steps; 0 where d >= n. */
static int32_t divisor_after(int32_t n, int32_t d)
{
    if (d >= n)
        return 0;
    int64_t t = (int64_t)d + 1;
    for (; t * t <= n; t++) {
        if (n % t == 0)
            return (int32_t)t;
    }
    /* Only divisors above the square root are left: their complements, from the largest down. */
    for (int64_t e = n / t; e > 1; e--) {
        if (n % e == 0)
            return (int32_t)(n / e);
    }
    return n;
}

static bool split_step(const struct knob *k, int32_t *v)
{
    int last = k->nr_slots - 1;
    int32_t rest = v[last];
    for (int l = last - 1; l >= 0; l--) {
        rest *= v[l];
        int32_t d = divisor_after(rest, v[l]);
        if (d) {
            v[l] = d;
            for (int i = l + 1; i < last; i++)
                v[i] = 1;
            v[last] = rest / d;
            return true;
        }
    }
    for (int i = 0; i < last; i++)
        v[i] = 1;
    v[last] = (int32_t)k->extent;
    return false;
}

static bool split_next(const struct knob *k, int32_t *v)
{
    bool more = split_step(k, v);
    while (!inner_fits(k, v))
        more &= split_step(k, v);
    return more;
}

static bool permutation_next(int32_t *v, int n)
{
    int i = n - 2;
    while (i >= 0 && v[i] > v[i + 1])
        i--;
    for (int a = i + 1, b = n - 1; a < b; a++, b--) {
        int32_t t = v[a];
        v[a] = v[b];
        v[b] = t;
    }
    if (i < 0)
        return false;
    int j = i + 1;
    while (v[j] < v[i])
        j++;
    int32_t t = v[i];
    v[i] = v[j];
    v[j] = t;
    return true;
}

void domain_first(const struct knob *k, int32_t *v)
{
    switch (k->kind) {
    case KNOB_SPLIT:
        for (int i = 0; i < k->nr_slots; i++)
            v[i] = 1;
        v[k->nr_slots - 1] = (int32_t)k->extent;
        if (!inner_fits(k, v))
            split_next(k, v);
        break;
    case KNOB_PERMUTATION:
        for (int i = 0; i < k->nr_slots; i++)
            v[i] = i;
        break;
    case KNOB_ORDINAL:
    case KNOB_CHOICE:
    case KNOB_FLAG:
        v[0] = 0;
        break;
    }
}

bool domain_next(const struct knob *k, int32_t *v)
{
    if (k->kind == KNOB_SPLIT)
        return split_next(k, v);
    if (k->kind == KNOB_PERMUTATION)
        return permutation_next(v, k->nr_slots);
    v[0] = (v[0] + 1) % (k->kind == KNOB_FLAG ? 2 : k->nr_values);
    return v[0] != 0;
}

/*
 * Distributes the e copies of a prime over the levels, every distribution equally likely: stars and
 * bars, the bars drawn without replacement.
 */
static void spread(struct rng *r, int32_t p, int e, int32_t *v, int levels)
{
    int bars = levels - 1, level = 0;
    for (int left = e + bars; left > 0; left--) {
        if ((int)rng_below(r, (uint64_t)left) < bars) {
            bars--;
            level++;
        } else {
            v[level] *= p;
        }
    }
}

static void split_draw(const struct knob *k, struct rng *r, int32_t *v)
{
    struct prime_power f[MAX_PRIMES];
    int nr = factorise(k->extent, f);
    for (int tries = 0; tries < 32; tries++) {
        for (int i = 0; i < k->nr_slots; i++)
            v[i] = 1;
        for (int i = 0; i < nr; i++)
            spread(r, f[i].p, f[i].e, v, k->nr_slots);
        if (inner_fits(k, v))
            return;
    }
    /* A tight max_inner: a legal tile all the same. */
    v[0] *= v[k->nr_slots - 1];
    v[k->nr_slots - 1] = 1;
}

void domain_draw(const struct knob *k, struct rng *r, int32_t *v)
{
    switch (k->kind) {
    case KNOB_SPLIT:
        split_draw(k, r, v);
        break;
    case KNOB_ORDINAL:
    case KNOB_CHOICE:
        v[0] = (int32_t)rng_below(r, (uint64_t)k->nr_values);
        break;
    case KNOB_FLAG:
        v[0] = (int32_t)rng_below(r, 2);
        break;
    case KNOB_PERMUTATION:
        for (int i = 0; i < k->nr_slots; i++) {
            int j = (int)rng_below(r, (uint64_t)i + 1);
            v[i] = v[j];
            v[j] = i;
        }
        break;
    }
}

/* Ordered factorisations of n into `levels` factors: a product of binomials over its primes. */
static int64_t factorisations(int64_t n, int levels, int64_t cap)
{
    if (levels == 0)
        return n == 1;
    struct prime_power f[MAX_PRIMES];
    int nr = factorise(n, f);
    int64_t total = 1;
    for (int i = 0; i < nr; i++) {
        int64_t choose = 1; /* C(e + levels - 1, levels - 1): far below 2^63 */
        for (int j = 1; j < levels; j++)
            choose = choose * (f[i].e + j) / j;
        total = mul_cap(total, choose, cap);
    }
    return total;
}

int64_t domain_size(const struct knob *k, int64_t cap)
{
    assert(cap > 0);
    int64_t n = 1;
    switch (k->kind) {
    case KNOB_SPLIT:
        if (k->max_inner == 0 || k->max_inner >= k->extent)
            return factorisations(k->extent, k->nr_slots, cap);
        n = 0;
        for (int64_t inner = 1; inner <= k->max_inner && n < cap; inner++) {
            if (k->extent % inner == 0)
                n += factorisations(k->extent / inner, k->nr_slots - 1, cap);
        }
        break;
    case KNOB_ORDINAL:
    case KNOB_CHOICE:
        n = k->nr_values;
        break;
    case KNOB_FLAG:
        n = 2;
        break;
    case KNOB_PERMUTATION:
        for (int i = 2; i <= k->nr_values; i++)
            n = mul_cap(n, i, cap);
        break;
    }
    return n < cap ? n : cap;
}
