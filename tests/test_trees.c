/* SPDX-License-Identifier: Apache-2.0 */
/* Trees: what they say, and that nothing but trees is ever read. */
#include "engine/search/trees_nodes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/hash.h"
#include "engine/base/rng.h"

/* As they are written. */
struct head {
    uint32_t format, features, depth, nr;
    uint64_t check;
};

static int below(struct rng *r, int n)
{
    return (int)(rng_unit(r) * n);
}

static void grow_branch(struct tree *t, int at, struct rng *r)
{
    if (at >= TREE_NODES || below(r, 5) == 0) {
        tree_end(t, at, (float)(rng_unit(r) - 0.5));
        return;
    }
    t->node[at] = (struct tree_node){(float)below(r, 8), below(r, FEATURES)};
    grow_branch(t, 2 * at + 1, r);
    grow_branch(t, 2 * at + 2, r);
}

static struct trees *random_trees(int nr, uint64_t seed)
{
    struct trees *t = trees_new(nr);
    struct rng r;
    rng_seed(&r, seed);
    for (int i = 0; i < nr; i++)
        grow_branch(&t->tree[i], 0, &r);
    return t;
}

enum { PACKS = 50, MAX_ROWS = PACKS * FEATURE_ROWS };

struct packs {
    int first[PACKS + 1];
    float row[MAX_ROWS][FEATURES];
};

static struct packs *random_packs(uint64_t seed)
{
    struct packs *p = calloc(1, sizeof *p);
    struct rng r;
    rng_seed(&r, seed);
    for (int i = 0; i < PACKS; i++)
        p->first[i + 1] = p->first[i] + below(&r, FEATURE_ROWS + 1); /* none, too */
    for (int i = 0; i < p->first[PACKS]; i++)
        for (int k = 0; k < FEATURES; k++)
            p->row[i][k] = (float)below(&r, 8); /* thresholds among them */
    return p;
}

static float ask(const struct tree *t, const float *row)
{
    int at = 0;
    while (at < TREE_NODES)
        at = 2 * at + (row[t->node[at].feature] < t->node[at].below ? 1 : 2);
    return t->leaf[at - TREE_NODES];
}

static void packs_are_the_sums_of_their_rows(void **state)
{
    (void)state;
    struct trees *t = random_trees(48, 1);
    struct packs *p = random_packs(2);
    float got[PACKS];
    trees_predict(t, (const float(*)[FEATURES])p->row, p->first, PACKS, got);
    for (int i = 0; i < PACKS; i++) {
        float want = 0;
        for (int r = p->first[i]; r < p->first[i + 1]; r++) {
            float sum = 0;
            for (int k = 0; k < t->nr; k++)
                sum += ask(&t->tree[k], p->row[r]);
            want += sum;
        }
        assert_memory_equal(&got[i], &want, sizeof want);
        float alone;
        trees_predict(t, (const float(*)[FEATURES])p->row + p->first[i],
                      (int[]){0, p->first[i + 1] - p->first[i]}, 1, &alone);
        assert_memory_equal(&alone, &want, sizeof want);
    }
    trees_free(t);
    free(p);
}

/* 1 where the feature is below 3, else 2: the branch ends at once, above the leaves. */
static void a_row_at_the_threshold_goes_right(void **state)
{
    (void)state;
    struct trees *t = trees_new(1);
    t->tree[0].node[0] = (struct tree_node){3, 7};
    tree_end(&t->tree[0], 1, 1);
    tree_end(&t->tree[0], 2, 2);
    float row[4][FEATURES] = {{0}}, out[4];
    row[0][7] = nextafterf(3, 0);
    row[1][7] = 3;
    row[2][7] = -1e30f;
    row[3][7] = INFINITY;
    trees_predict(t, (const float(*)[FEATURES])row, (int[]){0, 1, 2, 3, 4}, 4, out);
    assert_memory_equal(out, ((float[]){1, 2, 1, 2}), sizeof out);
    trees_free(t);
}

static struct strbuf written(int nr, uint64_t seed)
{
    struct trees *t = random_trees(nr, seed);
    struct strbuf sb = {0};
    trees_write(t, &sb);
    trees_free(t);
    return sb;
}

static void what_is_read_is_what_was_written(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    for (int nr = 1; nr <= 64; nr += 21) {
        struct trees *t = random_trees(nr, (uint64_t)nr);
        struct strbuf once = {0}, twice = {0};
        trees_write(t, &once);
        struct trees *u = trees_read(once.buf, once.len, &e);
        assert_non_null(u);
        trees_write(u, &twice);
        assert_int_equal(once.len, twice.len);
        assert_memory_equal(once.buf, twice.buf, once.len);
        struct packs *p = random_packs(5);
        float a[PACKS], b[PACKS];
        trees_predict(t, (const float(*)[FEATURES])p->row, p->first, PACKS, a);
        trees_predict(u, (const float(*)[FEATURES])p->row, p->first, PACKS, b);
        assert_memory_equal(a, b, sizeof a);
        free(p);
        trees_free(t);
        trees_free(u);
        strbuf_release(&once);
        strbuf_release(&twice);
    }
}

static void assert_refused(const char *bytes, size_t len, const char *why)
{
    struct err e = ERR_INIT;
    char *copy = malloc(len ? len : 1); /* its end is the end of the memory, for sanitizers */
    memcpy(copy, bytes, len);
    assert_null(trees_read(copy, len, &e));
    assert_true(e.code < 0);
    assert_non_null(strstr(e.msg, why));
    free(copy);
}

static void damage_is_noticed(void **state)
{
    (void)state;
    struct strbuf sb = written(3, 9);
    for (size_t len = 0; len < sb.len; len++)
        assert_refused(sb.buf, len, "");
    for (size_t bit = 0; bit < 8 * sb.len; bit++) {
        sb.buf[bit / 8] = (char)(sb.buf[bit / 8] ^ 1 << bit % 8);
        assert_refused(sb.buf, sb.len, "");
        sb.buf[bit / 8] = (char)(sb.buf[bit / 8] ^ 1 << bit % 8);
    }
    strbuf_addc(&sb, 0);
    assert_refused(sb.buf, sb.len, "damaged");
    strbuf_release(&sb);
}

/* Bytes with a checksum that is right, as somebody who means harm would write them. */
static void seal(struct strbuf *sb, uint32_t nr)
{
    struct head h = {1, FEATURES, TREE_DEPTH, nr,
                     hash64(HASH64_INIT, sb->buf + sizeof h, sb->len - sizeof h)};
    memcpy(sb->buf, &h, sizeof h);
}

static void add_node(struct strbuf *sb, int feature, float value)
{
    strbuf_addc(sb, (char)feature);
    strbuf_add(sb, &value, sizeof value);
}

static struct strbuf began(void)
{
    struct strbuf sb = {0};
    strbuf_add(&sb, &(struct head){0}, sizeof(struct head));
    return sb;
}

static void assert_hostile(struct strbuf *sb, uint32_t nr)
{
    seal(sb, nr);
    assert_refused(sb->buf, sb->len, "damaged");
    strbuf_release(sb);
}

static void what_is_no_tree_is_refused(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        struct strbuf leaf = began(), split = began();
        add_node(&leaf, 255, bad[i]);
        assert_hostile(&leaf, 1);
        add_node(&split, 0, bad[i]);
        add_node(&split, 255, 1);
        add_node(&split, 255, 2);
        assert_hostile(&split, 1);
    }
    for (int feature = FEATURES; feature < 255; feature += 50) {
        struct strbuf sb = began();
        add_node(&sb, feature, 1);
        add_node(&sb, 255, 1);
        add_node(&sb, 255, 2);
        assert_hostile(&sb, 1);
    }
    struct strbuf deep = began();
    for (int i = 0; i <= TREE_DEPTH; i++)
        add_node(&deep, 0, 1);
    for (int i = 0; i <= TREE_DEPTH + 1; i++)
        add_node(&deep, 255, 1);
    assert_hostile(&deep, 1);
    static const uint32_t counts[] = {0, 2, 1024, 1025, INT32_MAX, UINT32_MAX};
    for (int i = 0; i < 6; i++) {
        struct strbuf sb = began();
        add_node(&sb, 255, 1);
        assert_hostile(&sb, counts[i]);
    }
}

static void other_versions_are_told_from_damage(void **state)
{
    (void)state;
    struct strbuf sb = written(2, 4);
    for (size_t field = 0; field < 3; field++) {
        struct head h;
        memcpy(&h, sb.buf, sizeof h);
        uint32_t *v[] = {&h.format, &h.features, &h.depth};
        ++*v[field];
        struct strbuf other = {0};
        strbuf_add(&other, sb.buf, sb.len);
        memcpy(other.buf, &h, sizeof h);
        assert_refused(other.buf, other.len, "another version");
        strbuf_release(&other);
    }
    strbuf_release(&sb);
}

/* Whatever bytes with a right checksum: trees, or refused. */
static void noise_is_refused_or_trees(void **state)
{
    (void)state;
    struct rng r;
    struct packs *p = random_packs(3);
    rng_seed(&r, 11);
    int nr_read = 0;
    for (int i = 0; i < 3000; i++) {
        struct strbuf sb = written(1 + below(&r, 2), (uint64_t)i);
        for (int k = below(&r, 4); k > 0; k--)
            sb.buf[sizeof(struct head) + (size_t)below(&r, (int)(sb.len - sizeof(struct head)))] =
                (char)below(&r, 256);
        seal(&sb, (uint32_t)(1 + below(&r, 2)));
        struct err e = ERR_INIT;
        float out[PACKS];
        struct trees *t = trees_read(sb.buf, sb.len, &e);
        nr_read += t != NULL;
        if (t)
            trees_predict(t, (const float(*)[FEATURES])p->row, p->first, PACKS, out);
        else
            assert_true(e.code < 0);
        trees_free(t);
        strbuf_release(&sb);
    }
    assert_in_range(nr_read, 1, 2999);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_are_the_sums_of_their_rows),
        cmocka_unit_test(a_row_at_the_threshold_goes_right),
        cmocka_unit_test(what_is_read_is_what_was_written),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(what_is_no_tree_is_refused),
        cmocka_unit_test(other_versions_are_told_from_damage),
        cmocka_unit_test(noise_is_refused_or_trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
