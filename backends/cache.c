/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cache.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/base/arena.h"

/* A session works on a handful of tasks at a time, and compares a candidate with few others. */
enum { MAX_TASKS = 4, MAX_KERNELS = 16, MAX_CONSTANTS = 64, MAX_BUFFERS = 32 };

static const size_t max_task_bytes = (size_t)1 << 30;
static const size_t max_constant_bytes = (size_t)512 << 20;
static const size_t max_buffer_bytes = (size_t)256 << 20;

struct constant {
    uint64_t task;
    int tensor;
    struct layout layout;
    struct region region;
    uint64_t used;
};

struct buffer_slot {
    struct region region;
    uint64_t used;
};

struct cache {
    const struct backend *backend;
    struct loader *loader;
    uint64_t now; /* number of the request; what has used == now is in use */
    int nr_tasks, nr_kernels;
    int nr_constants, cap_constants;
    int nr_buffers, cap_buffers;
    /* pointers that callers hold stay valid when these arrays move */
    struct cached_task *task[MAX_TASKS + 1];
    struct cached_kernel *kernel[MAX_KERNELS + DEVICE_MAX_KERNELS];
    struct constant **constant;
    struct buffer_slot **buffer;
};

struct cache *cache_new(const struct backend *b, struct loader *l)
{
    struct cache *c = xcalloc(1, sizeof *c);
    c->backend = b;
    c->loader = l;
    return c;
}

void cache_begin(struct cache *c)
{
    c->now++;
}

static void drop_task(struct cache *c, int i)
{
    struct cached_task *t = c->task[i];
    c->task[i] = c->task[--c->nr_tasks];
    for (int k = 0; k < WL_MAX_TENSORS; k++)
        region_release(&t->input[k]);
    free(t->unpacked);
    if (t->head)
        munmap((void *)t->head, (size_t)t->head->bytes);
    free(t);
}

static void drop_kernel(struct cache *c, int i)
{
    struct cached_kernel *k = c->kernel[i];
    c->kernel[i] = c->kernel[--c->nr_kernels];
    if (k->code.call)
        c->backend->unload(c->loader, &k->code);
    artifact_release(&k->artifact);
    free(k->blob);
    free(k);
}

static void drop_constant(struct cache *c, int i)
{
    region_release(&c->constant[i]->region);
    free(c->constant[i]);
    c->constant[i] = c->constant[--c->nr_constants];
}

static void drop_buffer(struct cache *c, int i)
{
    region_release(&c->buffer[i]->region);
    free(c->buffer[i]);
    c->buffer[i] = c->buffer[--c->nr_buffers];
}

void cache_free(struct cache *c)
{
    if (!c)
        return;
    while (c->nr_tasks)
        drop_task(c, 0);
    while (c->nr_kernels)
        drop_kernel(c, 0);
    while (c->nr_constants)
        drop_constant(c, 0);
    while (c->nr_buffers)
        drop_buffer(c, 0);
    free(c->constant);
    free(c->buffer);
    free(c);
}

/* The one of an array of pointers to structs with a member `used` that is not in use and was not
 * for longest; -1 where all are in use. */
#define OLDEST(array, nr, now, out)                                                                \
    do {                                                                                           \
        (out) = -1;                                                                                \
        for (int i_ = 0; i_ < (nr); i_++)                                                          \
            if ((array)[i_]->used != (now) &&                                                      \
                ((out) < 0 || (array)[i_]->used < (array)[(out)]->used))                           \
                (out) = i_;                                                                        \
    } while (0)

static void make_room_for_task(struct cache *c)
{
    for (;;) {
        size_t bytes = 0;
        for (int i = 0; i < c->nr_tasks; i++)
            bytes += c->task[i]->bytes;
        int old;
        OLDEST(c->task, c->nr_tasks, c->now, old);
        if ((c->nr_tasks < MAX_TASKS && bytes <= max_task_bytes) || old < 0)
            return;
        drop_task(c, old);
    }
}

static bool copy_inputs(struct cached_task *t)
{
    for (int i = 0; i < t->head->nr_tensors; i++) {
        const struct operand *o = &t->head->tensor[i];
        if (o->role != WL_INPUT)
            continue;
        if (!region_init(&t->input[i], (size_t)o->bytes))
            return false;
        memcpy(t->input[i].data, operands_data(t->head, i), (size_t)o->bytes);
        region_protect(&t->input[i]);
        t->bytes += t->input[i].occupied;
    }
    return true;
}

static bool take_expected(struct cached_task *t)
{
    int out = t->head->output;
    const struct layout *l = &t->head->tensor[out].layout;
    t->nr_want = layout_logical_size(l);
    t->want = operands_data(t->head, out);
    t->stored = layout_stored_size(l) == t->nr_want ? t->want : NULL;
    if (!layout_is_plain(l)) {
        size_t bytes = (size_t)t->nr_want * sizeof *t->unpacked;
        t->unpacked = malloc(bytes);
        if (!t->unpacked)
            return false;
        layout_unpack(l, t->want, t->unpacked);
        t->want = t->unpacked;
        t->bytes += bytes;
    }
    t->tolerance = tolerance_of(t->want, NULL, t->nr_want, t->head->reduce_length);
    return true;
}

struct cached_task *cache_task(struct cache *c, uint64_t id, int fd, struct err *e)
{
    for (int i = 0; i < c->nr_tasks; i++)
        if (c->task[i]->head->id == id) {
            c->task[i]->used = c->now;
            return c->task[i];
        }
    make_room_for_task(c);
    const struct operands_head *head = operands_map(fd, e);
    if (!head)
        return NULL;
    struct cached_task *t = xcalloc(1, sizeof *t);
    t->head = head;
    t->used = c->now;
    t->bytes = (size_t)head->bytes;
    c->task[c->nr_tasks++] = t;
    if (head->id != id) {
        err_set(e, ERR_INPUT, "the operands are not those of the request");
    } else if (!copy_inputs(t) || !take_expected(t)) {
        err_set(e, ERR_NOMEM, "not enough memory for operands of %zu MB", t->bytes >> 20);
    } else {
        return t;
    }
    drop_task(c, c->nr_tasks - 1);
    return NULL;
}

struct cached_kernel *cache_kernel(struct cache *c, const void *blob, size_t len, struct err *e)
{
    for (int i = 0; i < c->nr_kernels; i++) {
        struct cached_kernel *k = c->kernel[i];
        if (k->blob_bytes == len && !memcmp(k->blob, blob, len)) {
            k->used = c->now;
            return k;
        }
    }
    int old = 0;
    while (c->nr_kernels >= MAX_KERNELS && old >= 0) {
        OLDEST(c->kernel, c->nr_kernels, c->now, old);
        if (old >= 0)
            drop_kernel(c, old);
    }
    struct cached_kernel *k = xcalloc(1, sizeof *k);
    k->used = c->now;
    c->kernel[c->nr_kernels++] = k;
    if (artifact_decode(blob, len, &k->artifact, e) ||
        c->backend->load(c->loader, &k->artifact, &k->code, e)) {
        k->code.call = NULL;
        drop_kernel(c, c->nr_kernels - 1);
        return NULL;
    }
    k->blob = xmalloc(len);
    memcpy(k->blob, blob, len);
    k->blob_bytes = len;
    return k;
}

static void make_room_for_constant(struct cache *c, size_t extra)
{
    for (;;) {
        size_t bytes = extra;
        for (int i = 0; i < c->nr_constants; i++)
            bytes += c->constant[i]->region.occupied;
        int old;
        OLDEST(c->constant, c->nr_constants, c->now, old);
        if ((c->nr_constants < MAX_CONSTANTS && bytes <= max_constant_bytes) || old < 0)
            return;
        drop_constant(c, old);
    }
}

const struct region *cache_constant(struct cache *c, const struct cached_task *t, int tensor,
                                    const struct layout *layout)
{
    for (int i = 0; i < c->nr_constants; i++) {
        struct constant *k = c->constant[i];
        if (k->task == t->head->id && k->tensor == tensor && layout_equal(&k->layout, layout)) {
            k->used = c->now;
            return &k->region;
        }
    }
    /* Candidates differ in how they pack what is transformed, but not in that. */
    const float *logical = operands_data(t->head, tensor);
    const struct region *from = NULL;
    struct layout first, rest;
    if (layout_split_transform(layout, &first, &rest) &&
        !(from = cache_constant(c, t, tensor, &first)))
        return NULL;
    size_t bytes = (size_t)layout_stored_size(layout) * sizeof(float);
    make_room_for_constant(c, bytes);
    struct constant *k = xcalloc(1, sizeof *k);
    if (!region_init(&k->region, bytes)) {
        free(k);
        return NULL;
    }
    layout_pack(from ? &rest : layout, from ? (const float *)from->data : logical,
                (float *)k->region.data);
    region_protect(&k->region);
    k->task = t->head->id;
    k->tensor = tensor;
    k->layout = *layout;
    k->used = c->now;
    GROW(c->constant, c->nr_constants, c->cap_constants);
    c->constant[c->nr_constants++] = k;
    return &k->region;
}

static void make_room_for_buffer(struct cache *c, size_t extra)
{
    for (;;) {
        size_t bytes = extra;
        for (int i = 0; i < c->nr_buffers; i++)
            bytes += c->buffer[i]->region.occupied;
        int old;
        OLDEST(c->buffer, c->nr_buffers, c->now, old);
        if ((c->nr_buffers < MAX_BUFFERS && bytes <= max_buffer_bytes) || old < 0)
            return;
        drop_buffer(c, old);
    }
}

struct region *cache_buffer(struct cache *c, size_t bytes)
{
    for (int i = 0; i < c->nr_buffers; i++) {
        struct buffer_slot *b = c->buffer[i];
        if (b->used != c->now && b->region.bytes == bytes) {
            b->used = c->now;
            region_mend(&b->region); /* the last kernel may have written there */
            return &b->region;
        }
    }
    make_room_for_buffer(c, bytes);
    struct buffer_slot *b = xcalloc(1, sizeof *b);
    if (!region_init(&b->region, bytes)) {
        free(b);
        return NULL;
    }
    b->used = c->now;
    GROW(c->buffer, c->nr_buffers, c->cap_buffers);
    c->buffer[c->nr_buffers++] = b;
    return &b->region;
}
