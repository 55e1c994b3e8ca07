/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups: which operators become one kernel.
 *
 * A group has a first operator of any kind and grows along operators on elements: it takes in the
 * readers of its result as long as one value leaves it. Usually that is the one reader of a result;
 * where a value is read twice (x * sigmoid(x)), readers are taken in on trial until all paths have
 * met again. Groups are grown from the last anchor to the first, so that an addition of two
 * branches joins the branch computed later; then operators on elements that are left form groups of
 * their own.
 *
 * A group has one result and every member leads to it. So a group that needs another's result
 * cannot be needed by it: execution in the order of the results' nodes is always possible.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/model/plan.h"

enum {
    MAX_TRIAL = 6,        /* operators taken in before paths have met */
    MAX_EXPRESSION = 160, /* size of the expression of an element: some operators repeat operands */
};

struct fuser {
    const struct graph *g;
    struct groups *gs;
    int block;
    int *first_use, *next_use, *use_node; /* lists of the readers of each value */
    int nr_made;
};

static bool is_work(const struct node *n)
{
    return n->live && !n->constant;
}

static void list_uses(struct fuser *f)
{
    const struct graph *g = f->g;
    int nr = 0, at = 0;
    for (int i = 0; i < g->nr_nodes; i++)
        nr += g->node[i]->nr_in;
    f->first_use = ARENA_ARRAY(&f->gs->arena, int, g->nr_values);
    f->next_use = ARENA_ARRAY(&f->gs->arena, int, nr + 1);
    f->use_node = ARENA_ARRAY(&f->gs->arena, int, nr + 1);
    for (int i = 0; i < g->nr_values; i++)
        f->first_use[i] = -1;
    for (int i = g->nr_nodes; i-- > 0;) {
        const struct node *n = g->node[i];
        for (int k = 0; is_work(n) && k < n->nr_in; k++, at++) {
            f->use_node[at] = i;
            f->next_use[at] = f->first_use[n->in[k]];
            f->first_use[n->in[k]] = at;
        }
    }
}

/* ---- one group while it grows ---- */

struct growth {
    struct group *group;
    int id, result;
    int trial[MAX_TRIAL], nr_trial;
    bool product; /* the anchor has an accumulator: padding lanes are zero in it */
};

static bool in_growth(const struct fuser *f, const struct growth *w, int node)
{
    if (f->gs->of_node[node] == w->id)
        return true;
    for (int i = 0; i < w->nr_trial; i++)
        if (w->trial[i] == node)
            return true;
    return false;
}

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/*
 * Size of the expression of an element with `extra` (or -1) taken in as well. What is read twice
 * counts twice, as it is written out twice: x * sigmoid(x) doubles at each turn.
 */
static double expression_size(const struct fuser *f, const struct growth *w, int extra)
{
    int node[KERNEL_OPS + MAX_TRIAL + 1], nr = 0;
    double size[KERNEL_OPS + MAX_TRIAL + 1] = {0};
    for (int i = 0; i < w->group->nr; i++)
        node[nr++] = w->group->node[i];
    for (int i = 0; i < w->nr_trial; i++)
        node[nr++] = w->trial[i];
    if (extra >= 0)
        node[nr++] = extra;
    qsort(node, (size_t)nr, sizeof *node, compare_ints);
    for (int i = 0; i < nr; i++) {
        const struct node *n = f->g->node[node[i]];
        size[i] = 1;
        for (int k = 0; k < n->nr_in && op_is_element(n->op.kind); k++) {
            double in = 1;
            for (int j = 0; j < i; j++)
                if (f->g->node[node[j]]->out == n->in[k])
                    in = size[j];
            size[i] += in * (k == 0 ? op_repeats(n->op.kind) : 1);
        }
    }
    return size[nr - 1];
}

/* Would a padding lane become infinite or no number? Not if the dividing operand is a constant. */
static bool risks_lanes(const struct fuser *f, const struct node *n)
{
    const struct shape *s = &f->g->value[n->out]->shape;
    double v;
    if (f->block == 1 || s->rank != 4 || s->dim[1] % f->block == 0 || op_keeps_lanes(n->op.kind))
        return false;
    if (op_divides(n->op.kind))
        return !f->g->value[n->in[1]]->is_const;
    if (n->op.kind == OP_POW)
        return !graph_const_scalar(f->g, n->in[1], &v) || v < 0;
    return true;
}

/* Operands of the operators so far: at least as many as come from outside. */
static int count_operands(const struct fuser *f, const struct growth *w)
{
    int nr = 0;
    for (int i = 0; i < w->group->nr; i++)
        nr += f->g->node[w->group->node[i]]->nr_in;
    for (int i = 0; i < w->nr_trial; i++)
        nr += f->g->node[w->trial[i]]->nr_in;
    return nr;
}

static bool may_join(const struct fuser *f, const struct growth *w, int node)
{
    const struct node *n = f->g->node[node];
    if (f->gs->of_node[node] >= 0 || !op_is_element(n->op.kind))
        return false;
    if (!shape_equal(&f->g->value[n->out]->shape, &f->g->value[w->result]->shape))
        return false;
    if (w->group->nr + w->nr_trial >= KERNEL_OPS || expression_size(f, w, node) > MAX_EXPRESSION)
        return false;
    if (count_operands(f, w) + n->nr_in > KERNEL_OPERANDS)
        return false;
    return !(w->product && risks_lanes(f, n));
}

/* The earliest reader of `v` outside the group, or -1. */
static int outside_reader(const struct fuser *f, const struct growth *w, int v)
{
    for (int u = f->first_use[v]; u >= 0; u = f->next_use[u])
        if (!in_growth(f, w, f->use_node[u]))
            return f->use_node[u];
    return -1;
}

/* Takes in one more reader on trial: of the result, or of what is on trial. */
static bool extend_trial(const struct fuser *f, struct growth *w)
{
    int best = -1;
    for (int i = -1; i < w->nr_trial; i++) {
        int v = i < 0 ? w->result : f->g->node[w->trial[i]]->out;
        int n = outside_reader(f, w, v);
        if (n >= 0 && (best < 0 || n < best))
            best = n;
    }
    if (best < 0 || w->nr_trial == MAX_TRIAL || !may_join(f, w, best))
        return false;
    w->trial[w->nr_trial++] = best;
    return true;
}

/* Does only the last taken in leave the group? */
static bool trial_is_closed(const struct fuser *f, const struct growth *w)
{
    for (int i = -1; i < w->nr_trial - 1; i++) {
        int v = i < 0 ? w->result : f->g->node[w->trial[i]]->out;
        if (f->g->value[v]->is_output || outside_reader(f, w, v) >= 0)
            return false;
    }
    return true;
}

static void commit(struct fuser *f, struct growth *w)
{
    for (int i = 0; i < w->nr_trial; i++) {
        f->gs->of_node[w->trial[i]] = w->id;
        w->group->node[w->group->nr++] = w->trial[i];
    }
    w->result = f->g->node[w->trial[w->nr_trial - 1]]->out;
    w->nr_trial = 0;
}

/*
 * An operator on elements may have a second operand that is such an operator's result too, read by
 * nobody else: it joins. Only among groups without an anchor, when all anchors have grown.
 */
static void pull_in(struct fuser *f, struct growth *w, int node)
{
    int todo[KERNEL_OPS], nr = 1;
    todo[0] = node;
    while (nr > 0) {
        const struct node *n = f->g->node[todo[--nr]];
        for (int k = 0; k < n->nr_in; k++) {
            const struct value *v = f->g->value[n->in[k]];
            if (v->node < 0 || v->nr_uses != 1 || v->is_output || !is_work(f->g->node[v->node]) ||
                !may_join(f, w, v->node) || nr == KERNEL_OPS)
                continue;
            f->gs->of_node[v->node] = w->id;
            w->group->node[w->group->nr++] = v->node;
            todo[nr++] = v->node;
        }
    }
}

static void grow(struct fuser *f, int node)
{
    struct group *group = &f->gs->group[f->nr_made];
    struct growth w = {.group = group, .id = f->nr_made++};
    const struct node *n = f->g->node[node];
    bool element = op_is_element(n->op.kind);
    group->node = ARENA_ARRAY(&f->gs->arena, int, KERNEL_OPS);
    group->node[group->nr++] = node;
    f->gs->of_node[node] = w.id;
    w.result = n->out;
    w.product = !element;
    if (element)
        pull_in(f, &w, node);
    bool open = n->op.kind != OP_CONCAT && n->op.kind != OP_RESHAPE;
    while (open && count_operands(f, &w) < KERNEL_OPERANDS - 2 * MAX_TRIAL) {
        do
            open = extend_trial(f, &w);
        while (open && !trial_is_closed(f, &w));
        if (!open)
            break;
        int last = w.trial[w.nr_trial - 1];
        commit(f, &w);
        if (element)
            pull_in(f, &w, last);
    }
    group->result = w.result;
    qsort(group->node, (size_t)group->nr, sizeof *group->node, compare_ints);
}

static int compare_groups(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return compare_ints(&x->result, &y->result);
}

void groups_make(struct groups *gs, const struct graph *g, int block)
{
    *gs = (struct groups){0};
    struct fuser f = {.g = g, .gs = gs, .block = block};
    gs->of_node = ARENA_ARRAY(&gs->arena, int, g->nr_nodes + 1);
    gs->group = ARENA_ARRAY(&gs->arena, struct group, g->nr_nodes + 1);
    for (int i = 0; i < g->nr_nodes; i++)
        gs->of_node[i] = -1;
    list_uses(&f);
    for (int i = g->nr_nodes; i-- > 0;)
        if (is_work(g->node[i]) && !op_is_element(g->node[i]->op.kind))
            grow(&f, i);
    for (int i = 0; i < g->nr_nodes; i++)
        if (is_work(g->node[i]) && op_is_element(g->node[i]->op.kind) && gs->of_node[i] < 0)
            grow(&f, i);
    gs->nr = f.nr_made;
    /* By the node of the result: value numbers follow node numbers. */
    qsort(gs->group, (size_t)gs->nr, sizeof *gs->group, compare_groups);
    for (int i = 0; i < gs->nr; i++)
        for (int k = 0; k < gs->group[i].nr; k++)
            gs->of_node[gs->group[i].node[k]] = i;
}

void groups_release(struct groups *gs)
{
    arena_release(&gs->arena);
}
