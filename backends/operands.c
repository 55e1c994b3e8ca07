/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/operands.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/arena.h"

static const uint64_t operands_magic = UINT64_C(0x0131706f6c617571);

enum { ALIGN = 64 };

/* Tells operands apart in the runner's cache. */
static atomic_uint_fast64_t last_id;

/* Says where each tensor lies; the total is in h->bytes. */
static void plan(const struct task *t, struct operands_head *h)
{
    const struct workload *w = &t->wl;
    h->magic = operands_magic;
    h->reduce_length = t->reduce_length;
    h->nr_tensors = w->nr_tensors;
    h->output = workload_output(w);
    h->bytes = (sizeof *h + ALIGN - 1) / ALIGN * ALIGN;
    for (int i = 0; i < w->nr_tensors; i++) {
        struct operand *o = &h->tensor[i];
        o->role = w->tensor[i].role;
        o->layout = w->tensor[i].layout;
        o->offset = h->bytes;
        if (o->role == WL_TEMP)
            continue;
        if (o->role == WL_CONST)
            o->layout = layout_plain(o->layout.nr_l, o->layout.l);
        o->bytes = layout_stored_size(&o->layout) * (int64_t)sizeof(float);
        h->bytes += (o->bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
}

static int fill_stored(const struct task *t, int i, const struct operand *o, float *stored,
                       struct err *e)
{
    if (layout_is_plain(&o->layout)) {
        task_fill(t, i, stored);
        return 0;
    }
    float *logical = malloc((size_t)layout_logical_size(&o->layout) * sizeof *logical);
    if (!logical)
        return err_set(e, ERR_NOMEM, "not enough memory for the operands of \"%s\"", t->name);
    task_fill(t, i, logical);
    layout_pack(&o->layout, logical, stored);
    free(logical);
    return 0;
}

static int fill(const struct task *t, char *map, struct err *e)
{
    const struct operands_head *h = (const struct operands_head *)map;
    for (int i = 0; i < h->nr_tensors; i++) {
        const struct operand *o = &h->tensor[i];
        float *stored = (float *)(map + o->offset);
        if (o->role == WL_INPUT || o->role == WL_CONST) {
            int rc = fill_stored(t, i, o, stored, e);
            if (rc)
                return rc;
        }
    }
    float *want = task_expected(t, e);
    if (!want)
        return ERR_NOMEM;
    memcpy(map + h->tensor[h->output].offset, want, (size_t)h->tensor[h->output].bytes);
    free(want);
    return 0;
}

/* A memfd of `bytes` that is really there: a write to it later cannot fail for want of memory. */
static int make_memfd(int64_t bytes, struct err *e)
{
    int fd = memfd_create("squall-operands", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return err_set(e, ERR_IO, "cannot make shared memory: %s", strerror(errno));
    int rc;
    do {
        rc = fallocate(fd, 0, 0, bytes);
    } while (rc < 0 && errno == EINTR);
    if (rc < 0) {
        err_set(e, ERR_NOMEM, "cannot make %" PRId64 " MB of shared memory: %s", bytes >> 20,
                strerror(errno));
        close(fd);
        return ERR_NOMEM;
    }
    return fd;
}

struct operands *operands_new(const struct task *t, struct err *e)
{
    struct operands_head *h = xcalloc(1, sizeof *h);
    struct operands *o = NULL;
    plan(t, h);
    h->id = atomic_fetch_add(&last_id, 1) + 1;

    int fd = make_memfd(h->bytes, e);
    if (fd < 0)
        goto out;
    char *map = mmap(NULL, (size_t)h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        err_set(e, ERR_NOMEM, "cannot map the operands of \"%s\": %s", t->name, strerror(errno));
        goto out;
    }
    memcpy(map, h, sizeof *h);
    int rc = fill(t, map, e);
    munmap(map, (size_t)h->bytes);
    if (rc)
        goto out;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0) {
        err_set(e, ERR_IO, "cannot seal shared memory: %s", strerror(errno));
        goto out;
    }
    o = xcalloc(1, sizeof *o);
    o->id = h->id;
    o->fd = fd;
    fd = -1;
out:
    if (fd >= 0)
        close(fd);
    free(h);
    return o;
}

void operands_free(struct operands *o)
{
    if (!o)
        return;
    close(o->fd);
    free(o);
}

const struct operands_head *operands_map(int fd, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(struct operands_head)) {
        err_set(e, ERR_INPUT, "what came with the request are no operands");
        return NULL;
    }
    size_t size = (size_t)st.st_size;
    const struct operands_head *h = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (h == MAP_FAILED) {
        err_set(e, ERR_NOMEM, "cannot map %zu MB of operands: %s", size >> 20, strerror(errno));
        return NULL;
    }
    if (h->magic != operands_magic || h->bytes != (int64_t)size) {
        munmap((void *)h, size);
        err_set(e, ERR_INPUT, "what came with the request are no operands");
        return NULL;
    }
    return h;
}
