/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/model/kernel.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/model/make.h"
#include "engine/model/reference.h"

struct layout slot_layout(const struct slot *s)
{
    if (s->block > 1)
        return layout_blocked(s->shape.rank, s->shape.dim, 1, s->block);
    return layout_plain(s->shape.rank, s->shape.dim);
}

/* Is slot `s` read by an operator from number `from` on? */
static bool read_later(const struct kernel *k, int s, int from)
{
    for (int i = from; i < k->nr_ops; i++)
        for (int j = 0; j < k->op[i].nr_in; j++)
            if (k->op[i].in[j] == s)
                return true;
    return false;
}

void kernel_run(const struct kernel *k, float *const *array)
{
    float *have[KERNEL_SLOTS] = {0}, literal[KERNEL_SLOTS];
    bool own[KERNEL_SLOTS] = {false};
    for (int i = 0; i < k->nr_slots; i++) {
        literal[i] = k->slot[i].literal;
        have[i] = k->slot[i].role == SLOT_LITERAL ? &literal[i]
                  : k->slot[i].role == SLOT_INNER ? NULL
                                                  : array[i];
    }
    for (int i = 0; i < k->nr_ops; i++) {
        const struct kernel_op *o = &k->op[i];
        const struct shape *shape[KERNEL_INPUTS];
        const float *in[KERNEL_INPUTS];
        for (int j = 0; j < o->nr_in; j++) {
            shape[j] = &k->slot[o->in[j]].shape;
            in[j] = have[o->in[j]];
        }
        if (!have[o->out]) {
            have[o->out] = xmalloc((size_t)shape_size(&k->slot[o->out].shape) * sizeof(float));
            own[o->out] = true;
        }
        reference_op(&o->op, o->nr_in, shape, in, &k->slot[o->out].shape, have[o->out]);
        for (int s = 0; s < k->nr_slots; s++)
            if (own[s] && !read_later(k, s, i + 1)) {
                free(have[s]);
                own[s] = false;
            }
    }
}

struct context {
    struct kernel k;
    int tensor[KERNEL_SLOTS];
};

static void run_reference(const void *ctx, float *const *logical)
{
    const struct context *c = ctx;
    float *array[KERNEL_SLOTS] = {0};
    for (int i = 0; i < c->k.nr_slots; i++)
        if (c->tensor[i] >= 0)
            array[i] = logical[c->tensor[i]];
    kernel_run(&c->k, array);
}

struct task *kernel_task(const struct kernel *k, int *slot_tensor, struct err *e)
{
    struct task *t = xcalloc(1, sizeof *t);
    struct context *c = xcalloc(1, sizeof *c);
    c->k = *k;
    t->ctx = c;
    t->ctx_free = free;
    t->reference = run_reference;
    t->weight = 1;
    memcpy(t->where, k->where, sizeof t->where);
    kernel_name(k, t->name, sizeof t->name);
    make_workload(k, t, c->tensor);
    t->wl.flops = kernel_flops(k);
    if (workload_finish(&t->wl, e)) {
        err_prefix(e, "task \"%s\"", t->name);
        task_free(t);
        return NULL;
    }
    memcpy(slot_tensor, c->tensor, sizeof c->tensor);
    return t;
}
