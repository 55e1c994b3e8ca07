/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WRITTEN, trees are a head and then each tree from its root, a node before what is left and then
 * what is right of it: a byte with the feature and a float, or NO_FEATURE and the value with which
 * the branch ends. Numbers lie as in memory, as the features of lessons do: a machine of the other
 * byte order finds another version. The checksum notices damage; against malice there is only that
 * whatever is read is trees.
 */
#include "engine/search/trees_nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/hash.h"

enum {
    FORMAT = 1,
    NO_FEATURE = 255,
    MOST_TREES = 1024,
    BLOCK = 16, /* rows that go down a tree together: enough to hide the latency of loads */
};
_Static_assert((int)FEATURES < (int)NO_FEATURE, "a feature is a byte");

struct head {
    uint32_t format, features, depth, nr;
    uint64_t check; /* of what follows */
};

/* All rows are below it, but those that are no numbers: no matter, both sides say the same. */
#define PASS ((struct tree_node){INFINITY, 0})

struct trees *trees_new(int nr)
{
    struct trees *t = xcalloc(1, sizeof *t);
    t->nr = nr;
    t->tree = xcalloc((size_t)nr, sizeof *t->tree);
    return t;
}

void trees_free(struct trees *t)
{
    if (!t)
        return;
    free(t->tree);
    free(t);
}

void tree_end(struct tree *t, int at, float value)
{
    if (at >= TREE_NODES) {
        t->leaf[at - TREE_NODES] = value;
        return;
    }
    t->node[at] = PASS;
    tree_end(t, 2 * at + 1, value);
    tree_end(t, 2 * at + 2, value);
}

/* Adds a tree's output for each of `nr` rows. */
static inline void descend(const struct tree *t, const float (*row)[FEATURES], int nr, float *sum)
{
    int at[BLOCK] = {0};
    for (int level = 0; level < TREE_DEPTH; level++)
        for (int r = 0; r < nr; r++) {
            const struct tree_node *n = &t->node[at[r]];
            at[r] = 2 * at[r] + 2 - (row[r][n->feature] < n->below);
        }
    for (int r = 0; r < nr; r++)
        sum[r] += t->leaf[at[r] - TREE_NODES];
}

void trees_predict(const struct trees *t, const float (*row)[FEATURES], const int *first,
                   int nr_packs, float *out)
{
    int nr = first[nr_packs], pack = 0;
    for (int i = 0; i < nr_packs; i++)
        out[i] = 0;
    for (int from = 0; from < nr; from += BLOCK) {
        float sum[BLOCK] = {0};
        int some = nr - from < BLOCK ? nr - from : BLOCK;
        for (int i = 0; i < t->nr; i++)
            if (some == BLOCK) /* unrolled */
                descend(&t->tree[i], row + from, BLOCK, sum);
            else
                descend(&t->tree[i], row + from, some, sum);
        for (int r = 0; r < some; r++) {
            while (from + r >= first[pack + 1])
                pack++;
            out[pack] += sum[r];
        }
    }
}

/* ---- written */

static bool is_pass(const struct tree_node *n)
{
    return n->below == INFINITY;
}

static void write_node(const struct tree *t, int at, struct strbuf *out)
{
    int leaf = at;
    while (leaf < TREE_NODES && is_pass(&t->node[leaf]))
        leaf = 2 * leaf + 1;
    bool ends = leaf >= TREE_NODES;
    strbuf_addc(out, (char)(unsigned char)(ends ? NO_FEATURE : t->node[at].feature));
    strbuf_add(out, ends ? &t->leaf[leaf - TREE_NODES] : &t->node[at].below, sizeof(float));
    if (ends)
        return;
    write_node(t, 2 * at + 1, out);
    write_node(t, 2 * at + 2, out);
}

void trees_write(const struct trees *t, struct strbuf *out)
{
    struct strbuf body = {0};
    for (int i = 0; i < t->nr; i++)
        write_node(&t->tree[i], 0, &body);
    struct head h = {FORMAT, FEATURES, TREE_DEPTH, (uint32_t)t->nr,
                     hash64(HASH64_INIT, strbuf_text(&body), body.len)};
    strbuf_add(out, &h, sizeof h);
    strbuf_add(out, strbuf_text(&body), body.len);
    strbuf_release(&body);
}

/* ---- read */

struct bytes {
    const unsigned char *at, *end;
};

static bool read_node(struct bytes *b, struct tree *t, int at)
{
    float value;
    if ((size_t)(b->end - b->at) < 1 + sizeof value)
        return false;
    int feature = *b->at++;
    memcpy(&value, b->at, sizeof value);
    b->at += sizeof value;
    if (!isfinite(value))
        return false;
    if (feature == NO_FEATURE) {
        tree_end(t, at, value);
        return true;
    }
    if (feature >= FEATURES || at >= TREE_NODES)
        return false;
    t->node[at] = (struct tree_node){value, feature};
    return read_node(b, t, 2 * at + 1) && read_node(b, t, 2 * at + 2);
}

static bool read_all(struct bytes *b, struct trees *t)
{
    for (int i = 0; i < t->nr; i++)
        if (!read_node(b, &t->tree[i], 0))
            return false;
    return b->at == b->end;
}

struct trees *trees_read(const void *bytes, size_t len, struct err *e)
{
    struct head h;
    if (len < sizeof h) {
        err_set(e, ERR_SESSION, "the trees are cut off");
        return NULL;
    }
    memcpy(&h, bytes, sizeof h);
    struct bytes b = {(const unsigned char *)bytes + sizeof h, (const unsigned char *)bytes + len};
    if (h.format != FORMAT || h.features != FEATURES || h.depth != TREE_DEPTH) {
        err_set(e, ERR_SESSION, "the trees are from another version of squall");
        return NULL;
    }
    struct trees *t = NULL;
    if (h.nr > 0 && h.nr <= MOST_TREES &&
        h.check == hash64(HASH64_INIT, b.at, (size_t)(b.end - b.at)))
        t = trees_new((int)h.nr);
    if (t && read_all(&b, t))
        return t;
    trees_free(t);
    err_set(e, ERR_SESSION, "the trees are damaged");
    return NULL;
}
