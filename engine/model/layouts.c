/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: in which stored form each value flows, and the calls that follow from it.
 *
 * With a channel block b > 1 values [N,C,H,W] with C > 4 flow as NCHWbc where their operator can
 * work on blocks: convolutions (grouped ones only if blocks do not straddle groups), pooling, LRN
 * of whole blocks, operators on elements, concatenations whose parts are whole blocks. Everything
 * else is plain. A value wanted in the other form is converted by a call of its own, once; where
 * both forms are the same bytes (1x1 images) nothing is done. Where that costs more than it gains
 * groups can be told to flow plain all the same (regions.h).
 *
 * Padding lanes of a block hold whatever the operators make of zeros: finite numbers, which
 * weights that are zero there make harmless (see fuse.c: risks_lanes).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/plan.h"
#include "engine/model/regions.h"

/* More distinct kernels than any network has; bounds what a hostile file costs. */
enum { MAX_TASKS = 10000 };

/* A network's first convolution reads its few channels plain: a block of them would be padding. */
enum { FEW_CHANNELS = 4 };

struct flow {
    struct plan *p;
    struct graph *g;
    struct groups gs;
    int block;
    bool place; /* may concatenations be where their parts are written? */
    struct task_list *tasks;
    struct err *e;
    int (*buffer)[2]; /* of each value: plain and blocked form, -1 where not there */
    int *native;      /* block in which each value is computed */
    bool *plain;      /* of each group: whatever it could, it works on plain arrays */
};

/* ---- calls ---- */

/* `group`: that it computes, or -1. */
static int add_call(struct flow *f, const struct kernel *k, int group)
{
    int tensor[KERNEL_SLOTS];
    if (f->tasks->nr >= MAX_TASKS)
        return err_set(f->e, ERR_LIMIT, "graph \"%s\" has more than %d distinct kernels",
                       f->g->name, MAX_TASKS);
    struct task *t = kernel_task(k, tensor, f->e);
    if (!t)
        return f->e ? f->e->code : ERR_INPUT;
    struct plan *p = f->p;
    GROW(p->call, p->nr_calls, p->cap_calls);
    struct plan_call *c = &p->call[p->nr_calls++];
    for (int i = 0; i < WL_MAX_TENSORS; i++)
        c->operand[i] = -1;
    for (int i = 0; i < k->nr_slots; i++) {
        const struct slot *s = &k->slot[i];
        if (tensor[i] >= 0)
            c->operand[tensor[i]] =
                s->role == SLOT_CONST ? s->value : f->buffer[s->value][s->block > 1];
    }
    c->task = task_list_place(f->tasks, t);
    c->group = group;
    return 0;
}

static int add_buffer(struct flow *f, int value, int block, int same_as)
{
    struct plan *p = f->p;
    struct slot s = {.shape = f->g->value[value]->shape, .block = block};
    GROW(p->buffer, p->nr_buffers, p->cap_buffers);
    p->buffer[p->nr_buffers] =
        (struct plan_buffer){value, block, slot_layout(&s), same_as, 0, false};
    f->buffer[value][block > 1] = p->nr_buffers;
    return p->nr_buffers++;
}

/* ---- the other form of a value ---- */

/* Leaves out dimensions of one element, and joins blocks of a dimension that follow each other. */
static void squeeze(struct layout *l)
{
    int nr = 0;
    for (int i = 0; i < l->nr_p; i++) {
        struct layout_dim *last = nr ? &l->p[nr - 1] : NULL, *d = &l->p[i];
        if (d->extent == 1)
            continue;
        if (last && last->dim == d->dim && last->coef == d->coef * d->extent) {
            last->extent *= d->extent;
            last->coef = d->coef;
        } else {
            l->p[nr++] = *d;
        }
    }
    l->nr_p = nr;
}

/* Are two stored arrays of one logical array the same bytes? */
static bool same_bytes(struct layout a, struct layout b)
{
    bool same = layout_stored_size(&a) == layout_logical_size(&a) &&
                layout_stored_size(&b) == layout_logical_size(&b);
    squeeze(&a);
    squeeze(&b);
    same = same && a.nr_p == b.nr_p;
    for (int i = 0; same && i < a.nr_p; i++)
        same = a.p[i].dim == b.p[i].dim && a.p[i].extent == b.p[i].extent &&
               a.p[i].coef == b.p[i].coef;
    return same;
}

static void node_where(const struct flow *f, int value, char *out, size_t size)
{
    const struct value *v = f->g->value[value];
    const char *name = v->node >= 0 ? f->g->node[v->node]->name : v->name;
    snprintf(out, size, "%.*s", (int)size - 1, *name ? name : v->name);
}

static int convert(struct flow *f, int value, int block)
{
    int from = f->buffer[value][block == 1], to = add_buffer(f, value, block, -1);
    struct plan_buffer *have = &f->p->buffer[from], *want = &f->p->buffer[to];
    if (same_bytes(have->layout, want->layout)) {
        want->same_as = from;
        return 0;
    }
    struct kernel k = {.nr_slots = 2, .nr_ops = 1};
    const struct shape *s = &f->g->value[value]->shape;
    k.slot[0] =
        (struct slot){.role = SLOT_INPUT, .shape = *s, .block = have->block, .value = value};
    k.slot[1] = (struct slot){.role = SLOT_OUTPUT, .shape = *s, .block = block, .value = value};
    k.op[0] = (struct kernel_op){.op.kind = OP_RELAYOUT, .nr_in = 1, .in = {0}, .out = 1};
    node_where(f, value, k.where, sizeof k.where);
    return add_call(f, &k, -1);
}

static int need_form(struct flow *f, int value, int block)
{
    return f->buffer[value][block > 1] >= 0 ? 0 : convert(f, value, block);
}

/* ---- which form ---- */

static bool can_block(const struct flow *f, const struct shape *s)
{
    return f->block > 1 && s->rank == 4 && s->dim[1] > FEW_CHANNELS;
}

/* The form in which a value is to be had for nothing, blocks preferred. */
static int native_of(const struct flow *f, int value)
{
    if (f->g->value[value]->is_const)
        return 1;
    return f->buffer[value][1] >= 0 ? f->block : f->native[value];
}

/* Blocks of output and of input x. */
struct choice {
    int out, x;
};

static struct choice choose_conv(const struct flow *f, const struct node *n)
{
    const struct shape *xs = &f->g->value[n->in[0]]->shape, *ws = &f->g->value[n->in[1]]->shape;
    const struct shape *ys = &f->g->value[n->out]->shape;
    struct choice plain = {1, 1}, both = {f->block, f->block};
    bool in = can_block(f, xs) && !f->g->value[n->in[0]]->is_const, out = can_block(f, ys);
    if (n->op.groups == 1)
        return (struct choice){out ? f->block : 1, in ? f->block : 1};
    if (!in || !out)
        return plain;
    int64_t per_in = ws->dim[1], per_out = ws->dim[0] / n->op.groups;
    bool depthwise = per_in == 1 && per_out == 1;
    return depthwise || (per_in % f->block == 0 && per_out % f->block == 0) ? both : plain;
}

static struct choice choose_concat(const struct flow *f, const struct node *n)
{
    struct choice plain = {1, 1}, both = {f->block, f->block};
    bool any = false;
    if (!can_block(f, &f->g->value[n->out]->shape))
        return plain;
    for (int i = 0; i < n->nr_in; i++) {
        const struct value *v = f->g->value[n->in[i]];
        if (v->is_const || v->shape.rank != 4)
            return plain;
        if (n->op.axis == 1 && i + 1 < n->nr_in && v->shape.dim[1] % f->block)
            return plain;
        any |= native_of(f, n->in[i]) > 1;
    }
    return any ? both : plain;
}

static struct choice choose_move(const struct flow *f, const struct node *n)
{
    struct choice plain = {1, 1}, same = {native_of(f, n->in[0]), native_of(f, n->in[0])};
    const struct shape *xs = &f->g->value[n->in[0]]->shape, *ys = &f->g->value[n->out]->shape;
    switch (n->op.kind) {
    case OP_POOL:
        return same;
    case OP_REDUCE:
        return n->op.axes & 3u ? plain : same;
    case OP_LRN: /* windows of channels cross blocks; they may not meet lanes of padding */
        return xs->dim[1] % f->block == 0 && n->op.size <= xs->dim[1] ? same : plain;
    case OP_GATHER: /* along space; the channel that is 1 of an output's is no block */
        return n->op.axis >= 2 && xs->rank == 4 && (n->op.each || ys->rank == 4) &&
                       xs->dim[1] == ys->dim[1]
                   ? same
                   : plain;
    case OP_PAD:
    case OP_SLICE:
        return n->op.at[1] == 0 && xs->dim[1] == ys->dim[1] &&
                       (n->op.kind == OP_PAD || n->op.step[1] == 1)
                   ? same
                   : plain;
    default:
        return plain;
    }
}

/* Operators on elements follow an operand that flows in blocks, if lanes of padding stay finite. */
static struct choice choose_elements(const struct flow *f, const struct group *gr)
{
    const struct shape *s = &f->g->value[gr->result]->shape;
    bool any = false, safe = true;
    for (int i = 0; i < gr->nr; i++) {
        const struct node *n = f->g->node[gr->node[i]];
        safe &= op_keeps_lanes(n->op.kind);
        for (int k = 0; k < n->nr_in; k++) {
            const struct value *v = f->g->value[n->in[k]];
            bool outside = v->node < 0 || f->gs.of_node[v->node] != f->gs.of_node[gr->node[0]];
            any |= outside && native_of(f, n->in[k]) > 1 && shape_equal(&v->shape, s);
        }
    }
    int block = any && can_block(f, s) && (safe || s->dim[1] % f->block == 0) ? f->block : 1;
    return (struct choice){block, block};
}

static struct choice choose(const struct flow *f, const struct group *gr)
{
    const struct node *n = f->g->node[gr->node[0]];
    if (op_is_element(n->op.kind))
        return choose_elements(f, gr);
    if (n->op.kind == OP_CONV)
        return choose_conv(f, n);
    if (n->op.kind == OP_CONCAT)
        return choose_concat(f, n);
    return choose_move(f, n);
}

/* ---- kernels of groups ---- */

static int add_slot(struct kernel *k, enum slot_role role, const struct value *v, int value,
                    int block)
{
    for (int i = 0; i < k->nr_slots; i++)
        if (k->slot[i].value == value && k->slot[i].role == role && k->slot[i].block == block)
            return i;
    if (k->nr_slots == KERNEL_SLOTS)
        return -1;
    k->slot[k->nr_slots] =
        (struct slot){.role = role, .shape = v->shape, .block = block, .value = value};
    return k->nr_slots++;
}

/* Form in which operand `i` of node `n` is read. */
static int wanted_block(const struct flow *f, const struct node *n, int i, struct choice c,
                        const struct shape *domain)
{
    const struct shape *s = &f->g->value[n->in[i]]->shape;
    if (op_is_element(n->op.kind))
        return c.out > 1 && s->rank == 4 && s->dim[1] == domain->dim[1] ? c.out : 1;
    return i == 0 || n->op.kind == OP_CONCAT ? c.x : 1;
}

static int operand_slot(struct flow *f, struct kernel *k, const struct node *n, int i,
                        struct choice c, const struct shape *domain, int *slot)
{
    int value = n->in[i];
    const struct value *v = f->g->value[value];
    double number;
    if (!v->is_const) {
        int block = wanted_block(f, n, i, c, domain), rc = need_form(f, value, block);
        *slot = add_slot(k, SLOT_INPUT, v, value, block);
        return rc;
    }
    if (op_is_element(n->op.kind) && shape_size(&v->shape) == 1 &&
        graph_const_scalar(f->g, value, &number)) {
        *slot = add_slot(k, SLOT_LITERAL, v, value, 1);
        if (*slot >= 0)
            k->slot[*slot].literal = (float)number;
        return 0;
    }
    *slot = add_slot(k, SLOT_CONST, v, value, 1);
    return 0;
}

/* x + acc is acc + x, so that equal kernels are one task: what the group computes stands first. */
static void sort_operands(const struct kernel *k, struct kernel_op *o)
{
    bool commutes = o->op.kind == OP_ADD || o->op.kind == OP_MUL || o->op.kind == OP_MAX ||
                    o->op.kind == OP_MIN;
    if (commutes && o->in[0] >= 0 && o->in[1] >= 0 && k->slot[o->in[0]].role != SLOT_INNER &&
        k->slot[o->in[1]].role == SLOT_INNER) {
        int swap = o->in[0];
        o->in[0] = o->in[1];
        o->in[1] = swap;
    }
}

static int group_kernel(struct flow *f, const struct group *gr, struct choice c, struct kernel *k)
{
    const struct shape *domain = &f->g->value[gr->result]->shape;
    int inner[KERNEL_OPS], rc = 0;
    for (int i = 0; i < gr->nr && !rc; i++) {
        const struct node *n = f->g->node[gr->node[i]];
        struct kernel_op *o = &k->op[k->nr_ops++];
        o->op = n->op;
        o->nr_in = n->nr_in;
        for (int j = 0; j < n->nr_in && !rc; j++) {
            int slot = -1;
            for (int b = 0; b < i; b++)
                if (f->g->node[gr->node[b]]->out == n->in[j])
                    slot = inner[b];
            if (slot < 0)
                rc = operand_slot(f, k, n, j, c, domain, &slot);
            if (!rc && slot < 0)
                rc = err_set(f->e, ERR_LIMIT, "node \"%s\" starts a group of too many operands",
                             f->g->node[gr->node[0]]->name);
            o->in[j] = slot;
        }
        sort_operands(k, o);
        bool last = n->out == gr->result;
        if (!rc)
            o->out = inner[i] =
                add_slot(k, last ? SLOT_OUTPUT : SLOT_INNER, f->g->value[n->out], n->out, c.out);
    }
    return rc;
}

/*
 * Parts of a concatenation that follow each other in memory need no copy: their kernels write where
 * the whole will be. So it is along the first stored dimension that is longer than 1, if each part
 * has memory of its own that lies nowhere else yet and that no caller provides.
 */
static bool can_place(const struct flow *f, const struct node *n, struct choice c)
{
    const struct shape *s = &f->g->value[n->out]->shape;
    for (int i = 0; i < n->op.axis; i++)
        if (s->dim[i] != 1)
            return false;
    for (int i = 0; i < n->nr_in; i++) {
        int b = f->buffer[n->in[i]][c.x > 1];
        if (b < 0)
            return false;
        const struct plan_buffer *part = &f->p->buffer[plan_memory(f->p, b)];
        if (part->same_as >= 0 || part->is_outside)
            return false;
        for (int k = 0; k < i; k++)
            if (plan_memory(f->p, f->buffer[n->in[k]][c.x > 1]) == plan_memory(f->p, b))
                return false;
    }
    return true;
}

static void place_parts(struct flow *f, const struct node *n, struct choice c)
{
    int whole = add_buffer(f, n->out, c.out, -1);
    int64_t offset = 0;
    for (int i = 0; i < n->nr_in; i++) {
        int b = f->buffer[n->in[i]][c.x > 1];
        struct plan_buffer *part = &f->p->buffer[plan_memory(f->p, b)];
        part->same_as = whole;
        part->offset = offset;
        offset += layout_stored_size(&f->p->buffer[b].layout);
    }
    f->native[n->out] = c.out;
}

static int emit_group(struct flow *f, int i)
{
    const struct group *gr = &f->gs.group[i];
    const struct node *n = f->g->node[gr->node[0]];
    if (n->op.kind == OP_RESHAPE) {
        int rc = need_form(f, n->in[0], 1);
        f->native[n->out] = 1;
        add_buffer(f, n->out, 1, f->buffer[n->in[0]][0]);
        return rc;
    }
    struct choice c = f->plain[i] ? (struct choice){1, 1} : choose(f, gr);
    if (n->op.kind == OP_CONCAT && f->place && can_place(f, n, c)) {
        place_parts(f, n, c);
        return 0;
    }
    struct kernel *k = xcalloc(1, sizeof *k);
    int rc = group_kernel(f, gr, c, k);
    if (!rc) {
        node_where(f, n->out, k->where, sizeof k->where);
        f->native[gr->result] = c.out;
        add_buffer(f, gr->result, c.out, -1);
        rc = add_call(f, k, i);
    }
    free(k);
    return rc;
}

int plan_build(struct plan *p, struct graph *g, const struct model_options *o,
               struct task_list *tasks, struct err *e)
{
    struct flow f = {.p = p,
                     .g = g,
                     .block = o->block > 1 ? o->block : 1,
                     .tasks = tasks,
                     .e = e,
                     .place = !o->copy_concat};
    int rc = 0;
    p->graph = g;
    groups_make(&f.gs, g, f.block);
    f.buffer = arena_alloc(&f.gs.arena, (size_t)g->nr_values * sizeof *f.buffer);
    f.native = ARENA_ARRAY(&f.gs.arena, int, g->nr_values);
    f.plain = ARENA_ARRAY(&f.gs.arena, bool, f.gs.nr + 1);
    memset(f.plain, 0, (size_t)f.gs.nr + 1);
    p->nr_groups = f.gs.nr;
    if (o->plain)
        rc = regions_read(o->plain, f.gs.nr, f.plain, e);
    for (int i = 0; i < g->nr_values; i++) {
        f.buffer[i][0] = f.buffer[i][1] = -1;
        f.native[i] = 1;
        const struct value *v = g->value[i];
        if (!v->is_input)
            continue;
        f.native[i] = v->flows && can_block(&f, &v->shape) ? f.block : 1;
        int b = add_buffer(&f, i, f.native[i], -1);
        p->buffer[b].is_outside = true;
    }
    for (int i = 0; i < f.gs.nr && !rc; i++)
        rc = emit_group(&f, i);
    for (int i = 0; i < g->nr_values && !rc; i++) {
        const struct value *v = g->value[i];
        if (v->is_output && !v->is_const)
            rc = need_form(&f, i, v->flows ? f.native[i] : 1);
    }
    groups_release(&f.gs);
    return rc;
}

void plan_release(struct plan *p)
{
    free(p->buffer);
    free(p->call);
    *p = (struct plan){0};
}

int plan_memory(const struct plan *p, int b)
{
    while (p->buffer[b].same_as >= 0 && !p->buffer[b].offset &&
           layout_stored_size(&p->buffer[b].layout) ==
               layout_stored_size(&p->buffer[p->buffer[b].same_as].layout))
        b = p->buffer[b].same_as;
    return b;
}

int plan_output(const struct plan *p, int v)
{
    bool flows = p->graph->value[v]->flows;
    int b = p->nr_buffers;
    while (b-- > 0 && (p->buffer[b].value != v || (!flows && p->buffer[b].block > 1)))
        ;
    return b;
}

struct layout plan_outside(const struct plan *p, bool output, int k)
{
    int v = output ? p->graph->output[k] : p->graph->input[k];
    int b = output ? plan_output(p, v) : p->nr_buffers - 1;
    while (!output && b >= 0 && (p->buffer[b].value != v || !p->buffer[b].is_outside))
        b--;
    struct slot plain = {.shape = p->graph->value[v]->shape, .block = 1};
    return b >= 0 ? p->buffer[b].layout : slot_layout(&plain);
}

int plan_root(const struct plan *p, int b, int64_t *offset)
{
    *offset = 0;
    for (; p->buffer[b].same_as >= 0; b = p->buffer[b].same_as)
        *offset += p->buffer[b].offset;
    return b;
}

int model_tasks_from_graph(struct graph *g, const struct model_options *o, struct task_list *out,
                           struct err *e)
{
    struct plan p = {0};
    int rc = plan_build(&p, g, o, out, e);
    if (!out->name[0])
        snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, g->name);
    plan_release(&p);
    return rc;
}
