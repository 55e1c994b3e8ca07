/* SPDX-License-Identifier: Apache-2.0 */
/* One constant after the other: its numbers, packed as the schedule of its kernel reads them, are
 * appended to the file; no more than one packed constant is in memory at a time. */
#include "backends/library_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"

enum { ALIGN_FLOATS = 16 };

struct writer {
    struct library *l;
    FILE *f;
    int64_t floats; /* written, without the head */
    uint64_t hash;
    int failed; /* errno */
};

static void append(struct writer *w, const float *data, int64_t n)
{
    w->hash = hash64(w->hash, data, (size_t)n * sizeof *data);
    if (!w->failed && fwrite(data, sizeof *data, (size_t)n, w->f) != (size_t)n)
        w->failed = errno ? errno : EIO;
    w->floats += n;
}

/* The logical elements of a constant; *own where the caller is to free them. */
static const float *logical_data(struct library *l, const struct task *t, int tensor, int value,
                                 float **own)
{
    *own = NULL;
    if (value >= 0)
        return graph_const_data(l->o->plan->graph, value, SIZE_MAX / 2, l->e);
    int64_t n = layout_logical_size(&t->wl.tensor[tensor].layout);
    *own = xmalloc((size_t)n * sizeof **own);
    task_fill(t, tensor, *own);
    return *own;
}

static int pack_one(struct writer *w, int task, const struct buffer *b, int value)
{
    const struct task *t = w->l->o->tasks->task[task];
    int64_t n = layout_stored_size(&b->layout);
    int64_t room = (n + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
    float *own, *stored;
    const float *data = logical_data(w->l, t, b->tensor, value, &own);
    if (!data)
        return ERR_NOMEM;
    stored = calloc((size_t)room, sizeof *stored);
    if (stored) {
        layout_pack(&b->layout, data, stored);
        append(w, stored, room);
    }
    free(stored);
    free(own);
    return stored ? 0
                  : err_set(w->l->e, ERR_NOMEM, "not enough memory for the weights of \"%s\"",
                            t->name);
}

/* The same constant for the same kernel is stored once. */
static struct packed *find_packed(struct library *l, int value, int task, int tensor)
{
    for (int i = 0; i < l->nr_packed; i++) {
        struct packed *p = &l->packed[i];
        if (p->value == value && p->task == task && p->tensor == tensor)
            return p;
    }
    return NULL;
}

static int pack_call(struct writer *w, int step)
{
    struct library *l = w->l;
    const struct plan_call *from = &l->o->plan->call[step];
    const struct artifact *a = &l->kernel[from->task];
    int rc = 0;
    for (int i = 0; i < a->nr_buffers && !rc; i++) {
        const struct buffer *b = &a->buf[i];
        if (b->role != BUF_CONST)
            continue;
        int value = from->operand[b->tensor];
        const struct packed *have = find_packed(l, value, from->task, b->tensor);
        int64_t offset = have ? have->offset : w->floats;
        if (!have) {
            GROW(l->packed, l->nr_packed, l->cap_packed);
            l->packed[l->nr_packed++] = (struct packed){value, from->task, b->tensor, offset};
            rc = pack_one(w, from->task, b, value);
        }
        l->call[step].buf[i] = (struct address){PLACE_WEIGHTS, 0, offset};
    }
    return rc;
}

/* Outputs that depend on no input are copied from the weights. */
static int pack_outputs(struct writer *w)
{
    struct graph *g = w->l->o->plan->graph;
    for (int k = 0; k < g->nr_outputs; k++) {
        if (!g->value[g->output[k]]->is_const)
            continue;
        const float *data = graph_const_data(g, g->output[k], SIZE_MAX / 2, w->l->e);
        if (!data)
            return ERR_NOMEM;
        w->l->output[k] = (struct address){PLACE_WEIGHTS, 0, w->floats};
        append(w, data, shape_size(&g->value[g->output[k]]->shape));
    }
    return 0;
}

static int pack_all(struct writer *w)
{
    static const float slack[2 * ALIGN_FLOATS];
    struct library *l = w->l;
    char head[WEIGHTS_HEAD] = {0};
    int rc = 0;
    if (fwrite(head, sizeof head, 1, w->f) != 1)
        w->failed = errno;
    for (int i = 0; i < l->o->plan->nr_calls && !rc && !w->failed; i++)
        rc = pack_call(w, i);
    rc = rc ? rc : pack_outputs(w);
    append(w, slack, 2 * ALIGN_FLOATS - w->floats % ALIGN_FLOATS);
    snprintf(l->weights_id, sizeof l->weights_id, "%016" PRIx64, w->hash);
    snprintf(head, sizeof head, "squall weights %s %.30s\n", l->weights_id, l->o->name);
    if (fseek(w->f, 0, SEEK_SET) || fwrite(head, sizeof head, 1, w->f) != 1)
        w->failed = errno;
    return rc;
}

int library_pack(struct library *l)
{
    char *path = library_path(l->work, LIBRARY_WEIGHTS, l->o->name);
    struct writer w = {.l = l, .f = fopen(path, "wb"), .hash = HASH64_INIT};
    int rc = 0;
    if (!w.f)
        w.failed = errno;
    else
        rc = pack_all(&w);
    if (w.f && fclose(w.f))
        w.failed = errno;
    if (w.failed)
        rc = err_set(l->e, ERR_IO, "cannot write the weights to \"%s\": %s", l->o->folder,
                     strerror(w.failed));
    l->r->weights_bytes = WEIGHTS_HEAD + w.floats * (int64_t)sizeof(float);
    l->r->weights_inside =
        l->o->weights == WEIGHTS_INSIDE ||
        (l->o->weights == WEIGHTS_BY_SIZE && l->r->weights_bytes <= LIBRARY_WEIGHTS_INSIDE);
    free(path);
    return rc;
}
