/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which axis of a nest is in vectors.
 *
 * It is the last spatial axis, unless that makes a reduction gather what lies in a row along a
 * reduction axis: a row of a softmax, of a matrix times a vector, an image of a global average. There
 * the reduction axis is: each sum is a vector of partial sums, whose lanes are added up at the end.
 */
#include "engine/tensor/plan.h"

/* Elements that the load moves by along `axis`. */
static int64_t load_step(const struct workload *w, const struct wl_expr *load, int axis)
{
    const struct wl_tensor *t = &w->tensor[load->tensor];
    int64_t step = 0, stride = 1;
    for (int d = t->nr_dims - 1; d >= 0; d--) {
        step += load->idx[d].coef[axis] * stride;
        stride *= t->dim[d];
    }
    return step;
}

/* What the loads of an expression say to an axis. */
struct steps {
    bool contiguous; /* a load moves along it element by element */
    bool strided;    /* one moves in other steps, or not by a step at all */
};

static struct steps expr_steps(const struct nest_plan *n, const struct wl_expr *e, int axis,
                               bool constants)
{
    const struct workload *w = n->plan->w;
    const struct wl_stage *s = &w->stage[n->anchor];
    if (!e)
        return (struct steps){false, false};
    if (e->op == WL_PICK)
        return (struct steps){false, true};
    if (e->op == WL_LOAD) {
        int64_t step = load_step(w, e, axis);
        bool counts = constants || w->tensor[e->tensor].role != WL_CONST;
        /* windows: their rows are short, and overlap */
        bool plain = !e->guarded && load_is_separable(e, w->tensor[e->tensor].nr_dims,
                                                      s->nr_spatial + s->nr_reduce);
        return (struct steps){counts && step == 1 && plain,
                              counts && step != 0 && (step != 1 || !plain)};
    }
    struct steps a = expr_steps(n, e->a, axis, constants);
    struct steps b = expr_steps(n, e->b, axis, constants);
    return (struct steps){a.contiguous || b.contiguous, a.strided || b.strided};
}

void plan_lanes(struct nest_plan *n)
{
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    /* A packed copy, like a packed constant, is contiguous along any axis. */
    if (n->nr_packs || (n->vec >= 0 && !expr_steps(n, s->body, n->vec, false).strided))
        return;
    for (int a = s->nr_spatial + s->nr_reduce - 1; a >= s->nr_spatial; a--) {
        struct steps steps = expr_steps(n, s->body, a, true);
        if (2 * s->extent[a] < n->plan->target.lanes || !steps.contiguous || steps.strided)
            continue;
        n->across = a;
        n->vec = -1;
        return;
    }
}
