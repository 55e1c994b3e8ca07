/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/check_kernels.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/hash.h"
#include "engine/base/rng.h"

enum {
    ALIGN = 64,
    BEHIND = 256, /* marked bytes behind each buffer; kernels may read the first 64 */
    MARK = 0x5a,
    MAX_DRAWS = 20, /* of schedules that the backend finds invalid */
};

int kernels_open(struct kernels *k, const struct backend *b, const struct target *t, uint64_t seed,
                 struct err *e)
{
    *k = (struct kernels){.backend = b, .target = t, .seed = seed};
    if ((k->builder = b->builder_new(t, e)) && (k->loader = b->loader_new(e)))
        return 0;
    kernels_close(k);
    return e->code;
}

void kernels_close(struct kernels *k)
{
    if (k->loader)
        k->backend->loader_free(k->loader);
    if (k->builder)
        k->backend->builder_free(k->builder);
    k->loader = NULL;
    k->builder = NULL;
}

void kernels_run(void *ctx, int run)
{
    ((struct kernels *)ctx)->run = run;
}

/* Builds the task with the schedule of the run. */
static int build(struct kernels *k, const struct task *task, const struct space *space,
                 struct artifact *out, struct err *e)
{
    struct candidate c = space->sketch[0]->start;
    if (k->run == 0)
        return k->backend->build(k->builder, task, space, &c, out, e);
    struct rng r;
    rng_seed(&r, hash64(HASH64_INIT, task->wl.id, strlen(task->wl.id)) ^ (k->seed * 1000003) ^
                     (uint64_t)k->run);
    for (int i = 0;; i++) {
        if (!space_sample(space, -1, &r, &c))
            return err_set(e, ERR_BACKEND, "task \"%s\" has no schedule to draw", task->name);
        struct err own = ERR_INIT;
        int rc = k->backend->build(k->builder, task, space, &c, out, &own);
        bool invalid = rc == ERR_UNSUPPORTED || rc == ERR_LIMIT;
        if (!rc || !invalid || i == MAX_DRAWS) {
            if (rc)
                err_set(e, rc, "%s", own.msg);
            return rc;
        }
    }
}

/* ---- the call ---- */

static size_t buffer_bytes(const struct buffer *b)
{
    size_t bytes =
        b->role == BUF_SCRATCH ? (size_t)b->bytes : (size_t)layout_stored_size(&b->layout) * 4;
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static void *make_buffer(const struct buffer *b, const struct task *task, float *const *stored)
{
    size_t bytes = buffer_bytes(b),
           exact = b->role == BUF_SCRATCH ? bytes : (size_t)layout_stored_size(&b->layout) * 4;
    char *p = aligned_alloc(ALIGN, bytes + BEHIND);
    if (!p)
        return NULL;
    memset(p, b->role == BUF_SCRATCH ? 0 : MARK, bytes);
    memset(p + exact, MARK, bytes + BEHIND - exact);
    if (b->role == BUF_CONST)
        layout_pack(&b->layout, stored[b->tensor], (float *)(void *)p);
    else if (b->role == BUF_INPUT)
        memcpy(p, stored[b->tensor],
               (size_t)layout_stored_size(&task->wl.tensor[b->tensor].layout) * 4);
    return p;
}

/* What may not have changed. */
static int check_buffer(const struct buffer *b, const char *p, float *const *stored, struct err *e)
{
    size_t exact =
        b->role == BUF_SCRATCH ? (size_t)b->bytes : (size_t)layout_stored_size(&b->layout) * 4;
    for (size_t i = buffer_bytes(b); i < buffer_bytes(b) + BEHIND; i++)
        if (p[i] != MARK)
            return err_set(e, ERR_BACKEND, "the kernel wrote behind a buffer");
    if (b->role == BUF_INPUT && memcmp(p, stored[b->tensor], exact) != 0)
        return err_set(e, ERR_BACKEND, "the kernel wrote to its input");
    return 0;
}

static int call(struct kernels *k, const struct task *task, const struct artifact *a,
                float *const *stored, struct err *e)
{
    struct loaded loaded;
    void *buf[ARTIFACT_MAX_BUFFERS] = {0};
    int rc = k->backend->load(k->loader, a, &loaded, e);
    if (rc)
        return rc;
    for (int i = 0; i < a->nr_buffers && !rc; i++)
        if (!(buf[i] = make_buffer(&a->buf[i], task, stored)))
            rc = err_set(e, ERR_NOMEM, "not enough memory for a buffer");
    if (!rc)
        loaded.call(buf);
    for (int i = 0; i < a->nr_buffers && !rc; i++)
        rc = check_buffer(&a->buf[i], buf[i], stored, e);
    for (int i = 0; i < a->nr_buffers && !rc; i++)
        if (a->buf[i].role == BUF_OUTPUT)
            memcpy(stored[a->buf[i].tensor], buf[i],
                   (size_t)layout_stored_size(&a->buf[i].layout) * 4);
    for (int i = 0; i < a->nr_buffers; i++)
        free(buf[i]);
    k->backend->unload(k->loader, &loaded);
    return rc;
}

int kernels_call(void *ctx, const struct task *task, float *const *stored, struct err *e)
{
    struct kernels *k = ctx;
    struct space space;
    struct artifact a = {0};
    space_init(&space);
    int rc = k->backend->space(k->target, task, &space, e);
    rc = rc ? rc : build(k, task, &space, &a, e);
    rc = rc ? rc : call(k, task, &a, stored, e);
    if (rc)
        err_prefix(e, "task \"%s\"", task->name);
    artifact_release(&a);
    space_release(&space);
    return rc;
}
