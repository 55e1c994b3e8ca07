/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/artifact.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"

/* Both ends are the same program on the same machine, so numbers travel as they lie in memory; the
 * magic number would come out reversed on a machine of the other byte order. */
static const uint32_t artifact_magic = 0x31415153; /* "SQA1" */

/* More than any array a workload may have: 2^40 elements of 4 bytes. */
static const int64_t max_elements = INT64_C(1) << 40;

/* A step times an extent, or times the logical size, stays below this: 24 of them can be added. */
static const int64_t max_reach = INT64_C(1) << 58;

void artifact_release(struct artifact *a)
{
    free(a->code);
    memset(a, 0, sizeof *a);
}

static void put_i32(struct strbuf *out, int32_t v)
{
    strbuf_add(out, &v, sizeof v);
}

static void put_i64(struct strbuf *out, int64_t v)
{
    strbuf_add(out, &v, sizeof v);
}

static void put_layout(struct strbuf *out, const struct layout *l)
{
    put_i32(out, l->nr_l);
    put_i32(out, l->nr_p);
    put_i32(out, (int32_t)l->transform);
    for (int i = 0; i < l->nr_l; i++)
        put_i64(out, l->l[i]);
    for (int i = 0; i < l->nr_p; i++) {
        put_i64(out, l->p[i].extent);
        put_i64(out, l->p[i].coef);
        put_i32(out, l->p[i].dim);
    }
}

void artifact_encode(const struct artifact *a, struct strbuf *out)
{
    strbuf_add(out, &artifact_magic, sizeof artifact_magic);
    strbuf_add(out, a->backend, sizeof a->backend);
    strbuf_add(out, a->entry, sizeof a->entry);
    put_i32(out, a->threads);
    put_i32(out, a->nr_buffers);
    for (int i = 0; i < a->nr_buffers; i++) {
        put_i32(out, (int32_t)a->buf[i].role);
        put_i32(out, a->buf[i].tensor);
        put_i64(out, a->buf[i].bytes);
        put_layout(out, &a->buf[i].layout);
    }
    put_i64(out, (int64_t)a->code_bytes);
    if (a->code_bytes)
        strbuf_add(out, a->code, a->code_bytes);
}

/* What is left to decode; a read past the end marks it broken and yields zeros. */
struct cursor {
    const char *at;
    size_t left;
    bool broken;
};

static void take(struct cursor *c, void *out, size_t len)
{
    if (c->broken || len > c->left) {
        c->broken = true;
        memset(out, 0, len);
        return;
    }
    memcpy(out, c->at, len);
    c->at += len;
    c->left -= len;
}

static int32_t take_i32(struct cursor *c)
{
    int32_t v;
    take(c, &v, sizeof v);
    return v;
}

static int64_t take_i64(struct cursor *c)
{
    int64_t v;
    take(c, &v, sizeof v);
    return v;
}

static void take_text(struct cursor *c, char *out, size_t size)
{
    take(c, out, size);
    if (!memchr(out, '\0', size))
        c->broken = true;
}

/* Multiplies `n` by an extent; the blob is broken where either goes out of range. */
static int64_t take_extent(struct cursor *c, int64_t *n)
{
    int64_t extent = take_i64(c);
    if (extent < 1 || extent > max_elements / *n) {
        c->broken = true;
        return 1;
    }
    *n *= extent;
    return extent;
}

static void take_layout(struct cursor *c, struct layout *l)
{
    l->nr_l = take_i32(c);
    l->nr_p = take_i32(c);
    int32_t transform = take_i32(c);
    if (l->nr_l < 0 || l->nr_l > LAYOUT_MAX_DIMS || l->nr_p < 0 || l->nr_p > LAYOUT_MAX_STORED) {
        *l = (struct layout){0};
        c->broken = true;
        return;
    }
    int64_t logical = 1, stored = 1;
    for (int i = 0; i < l->nr_l; i++)
        l->l[i] = take_extent(c, &logical);
    l->transform = (enum layout_transform)transform;
    if (transform != LAYOUT_AS_IS &&
        ((transform != LAYOUT_WINOGRAD_2 && transform != LAYOUT_WINOGRAD_4) || l->nr_l != 4 ||
         l->l[2] != 3 || l->l[3] != 3))
        c->broken = true;
    for (int i = 0; i < l->nr_p; i++) {
        struct layout_dim *p = &l->p[i];
        p->extent = take_extent(c, &stored);
        p->coef = take_i64(c);
        p->dim = take_i32(c);
        int64_t most = max_reach / (p->extent > logical ? p->extent : logical);
        if (p->dim < 0 || p->dim >= l->nr_l || p->coef > most || p->coef < -most)
            c->broken = true;
    }
}

static void take_buffer(struct cursor *c, struct buffer *b)
{
    int32_t role = take_i32(c);
    b->tensor = take_i32(c);
    b->bytes = take_i64(c);
    take_layout(c, &b->layout);
    if (role < BUF_INPUT || role > BUF_SCRATCH || b->tensor < -1 || b->tensor >= WL_MAX_TENSORS ||
        b->bytes < 0 || b->bytes / 4 > max_elements)
        c->broken = true;
    else
        b->role = (enum buffer_role)role;
}

int artifact_decode(const void *data, size_t len, struct artifact *a, struct err *e)
{
    struct cursor c = {.at = data, .left = len};
    memset(a, 0, sizeof *a);

    uint32_t magic;
    take(&c, &magic, sizeof magic);
    if (magic != artifact_magic)
        return err_set(e, ERR_INPUT, "%zu bytes that are no built kernel", len);
    take_text(&c, a->backend, sizeof a->backend);
    take_text(&c, a->entry, sizeof a->entry);
    a->threads = take_i32(&c);
    a->nr_buffers = take_i32(&c);
    if (a->nr_buffers < 0 || a->nr_buffers > ARTIFACT_MAX_BUFFERS)
        c.broken = true;
    for (int i = 0; !c.broken && i < a->nr_buffers; i++)
        take_buffer(&c, &a->buf[i]);

    int64_t code_bytes = take_i64(&c);
    if (c.broken || code_bytes < 0 || (uint64_t)code_bytes != c.left) {
        artifact_release(a);
        return err_set(e, ERR_INPUT, "built kernel of %zu bytes is damaged", len);
    }
    a->code_bytes = (size_t)code_bytes;
    a->code = xmalloc(a->code_bytes ? a->code_bytes : 1);
    take(&c, a->code, a->code_bytes);
    return 0;
}
