/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tensor/nest_view.h"

#include <math.h>

void nest_view_count_ops(struct nest_view *v, const struct wl_expr *e)
{
    if (!e)
        return;
    v->guards += e->op == WL_LOAD && e->guarded;
    if (e->op != WL_LITERAL && e->op != WL_LOAD) {
        v->ops++;
        v->divisions += e->op == WL_DIV || e->op == WL_SQRT;
        v->calls += e->op == WL_EXP || e->op == WL_LOG || e->op == WL_TANH || e->op == WL_ERF ||
                    e->op == WL_POW || e->op == WL_SIN || e->op == WL_COS;
    }
    nest_view_count_ops(v, e->a);
    nest_view_count_ops(v, e->b);
}

/* Values of f = base + sum of coef * axis over all points that lie in 0 .. dim - 1: their share. f
 * has few axes, each with few values. */
static double share_inside(const struct wl_stage *s, const struct affine *f, int axis,
                           int64_t value, int64_t dim)
{
    while (axis < s->nr_spatial + s->nr_reduce && !f->coef[axis])
        axis++;
    if (axis == s->nr_spatial + s->nr_reduce)
        return value >= 0 && value < dim;
    double sum = 0;
    for (int64_t i = 0; i < s->extent[axis]; i++)
        sum += share_inside(s, f, axis + 1, value + f->coef[axis] * i, dim);
    return sum / (double)s->extent[axis];
}

struct fbuffer *nest_view_buffer(struct nest_view *v, int tensor)
{
    for (int i = 0; i < v->nr_buffers; i++)
        if (v->buffer[i].t == &v->n->plan->w->tensor[tensor])
            return &v->buffer[i];
    return NULL;
}

/* The share of taps that are skipped; and what still asks where the image itself is read. */
static void measure_taps(struct nest_view *v, const struct candidate *c)
{
    const struct nest_plan *n = v->n;
    int asked = 0;
    if (!n->nr_taps)
        return;
    bool skip = n->skip_knob >= 0 && knob_value(&n->plan->sketch->knob[n->skip_knob], c);
    double done = 1;
    for (int i = 0; i < n->nr_taps; i++) {
        const struct tap *t = &n->tap[i];
        enum tap_kind kind = skip ? tap_kind(n, &v->sh, c, t) : TAP_ASKED;
        if (kind == TAP_ASKED)
            asked += nest_pads_inline(n, c);
        else
            done *= share_inside(v->s, &t->at, 0, t->at.base, t->extent);
    }
    v->skipped = 1 - done;
    v->guards += asked;
    if (asked) {
        const struct workload *w = n->plan->w;
        struct fbuffer *b = nest_view_buffer(v, w->stage[n->producer[n->padded].stage].out);
        if (b)
            b->asked += asked;
    }
}

static void add_buffer(struct nest_view *v, int tensor, const struct affine *idx, int asked)
{
    if (v->nr_buffers == 1 + BUFFER_LOADS)
        return;
    struct fbuffer *b = &v->buffer[v->nr_buffers++];
    *b = (struct fbuffer){.t = &v->n->plan->w->tensor[tensor], .idx = idx, .asked = asked};
    for (int d = 0; d < b->t->nr_dims; d++)
        for (int a = 0; a < v->s->nr_spatial + v->s->nr_reduce; a++) {
            if (!idx[d].coef[a])
                continue;
            b->moved_by |= UINT32_C(1) << a;
            if (b->nr_terms < (int)(sizeof b->term / sizeof *b->term))
                b->term[b->nr_terms++] = (struct fterm){d, a, fabs((double)idx[d].coef[a])};
        }
}

static void add_loads(struct nest_view *v, const struct wl_expr *e)
{
    if (!e)
        return;
    if (e->op == WL_LOAD || e->op == WL_PICK)
        add_buffer(v, e->tensor, e->idx, e->op == WL_LOAD && e->guarded);
    add_loads(v, e->a);
    add_loads(v, e->b);
}

static void add_loop(struct nest_view *v, int axis, int64_t trips, enum cut cut)
{
    if (trips > 1)
        v->loop[v->nr_loops++] = (struct floop){axis, (double)trips, cut};
}

/* The loops outside of the register tile, outermost first. */
static void add_loops(struct nest_view *v, const struct candidate *c)
{
    const struct nest_plan *n = v->n;
    const struct wl_stage *s = v->s;
    int order[WL_MAX_AXES], nr = s->nr_spatial;
    nest_order(n, c, order);
    for (int a = 0; a < n->plan->nr_outer; a++)
        add_loop(v, a, s->extent[a], CUT_S0);
    for (int level = 0; level < 2; level++)
        for (int i = 0; i < nr; i++)
            add_loop(v, order[i], v->sh.s[order[i]][level], level ? CUT_S1 : CUT_S0);
    for (int i = 0; i < s->nr_reduce; i++)
        add_loop(v, nr + i, v->sh.r[i][0], CUT_R0);
    for (int i = 0; i < nr; i++)
        add_loop(v, order[i], v->sh.s[order[i]][2], CUT_S2);
    for (int i = 0; i < s->nr_reduce; i++) {
        int64_t trips = nr + i == n->across ? v->sh.vectors : v->sh.r[i][1];
        add_loop(v, nr + i, trips / v->sh.unrolled[i], CUT_TILE);
    }
}

/* Extents inside each cut: from the register tile outwards. */
static void measure_axes(struct nest_view *v)
{
    const struct wl_stage *s = v->s;
    for (int a = 0; a < s->nr_spatial + s->nr_reduce; a++)
        for (int cut = CUT_ALL; cut < NR_CUTS; cut++) {
            int r = a - s->nr_spatial;
            v->inner[cut][a] = r < 0               ? (double)v->sh.s[a][3]
                               : a == v->n->across ? (double)(v->sh.unrolled[r] * v->sh.lanes)
                                                   : (double)v->sh.unrolled[r];
        }
    for (int i = 0; i < v->nr_loops; i++)
        for (int cut = CUT_ALL; cut < (int)v->loop[i].cut; cut++)
            v->inner[cut][v->loop[i].axis] *= v->loop[i].trips;
}

/* What the loops inside a cut touch of `b`, and around them the loop `with`, -1 for none. */
static double footprint(const struct nest_view *v, const struct fbuffer *b, enum cut cut, int with)
{
    double bytes = 4;
    for (int i = 0; i < b->nr_terms;) {
        int d = b->term[i].dim;
        double extent = 1;
        for (; i < b->nr_terms && b->term[i].dim == d; i++) {
            int a = b->term[i].axis;
            double inner = v->inner[cut][a];
            if (with >= 0 && v->loop[with].axis == a)
                inner *= v->loop[with].trips;
            extent += b->term[i].coef * (inner - 1);
        }
        double dim = (double)b->t->dim[d];
        bytes *= extent < dim ? extent : dim;
    }
    return bytes;
}

/* Of the steps of the innermost loop that moves the buffer, only what is new comes in. */
static void measure_buffer(const struct nest_view *v, struct fbuffer *b)
{
    for (int cut = CUT_ALL; cut < NR_CUTS; cut++)
        b->footprint[cut] = footprint(v, b, cut, -1);
    for (int cut = CUT_S0; cut < NR_CUTS; cut++) {
        double trips = 1, outside = 1;
        int last = -1;
        for (int i = 0; i < v->nr_loops && (int)v->loop[i].cut <= cut; i++) {
            if (b->moved_by >> v->loop[i].axis & 1) {
                outside = trips;
                last = i;
            }
            trips *= v->loop[i].trips;
        }
        b->traffic[cut] = footprint(v, b, cut, last) * outside;
    }
}

static int larger_first(const struct fbuffer *a, const struct fbuffer *b)
{
    return a->footprint[CUT_ALL] < b->footprint[CUT_ALL];
}

void nest_view_init(struct nest_view *v, const struct nest_plan *n, const struct candidate *c)
{
    *v = (struct nest_view){.n = n, .s = &n->plan->w->stage[n->anchor]};
    nest_shape(n, c, &v->sh);
    add_loops(v, c);
    measure_axes(v);
    add_buffer(v, v->s->out, v->s->out_idx, 0);
    add_loads(v, v->s->body);
    for (int i = 0; i < v->nr_buffers; i++) {
        measure_buffer(v, &v->buffer[i]);
        for (int cut = CUT_ALL; cut < NR_CUTS; cut++)
            v->set[cut] += v->buffer[i].footprint[cut];
    }
    for (int i = 2; i < v->nr_buffers; i++)
        for (int j = i; j > 1 && larger_first(&v->buffer[j - 1], &v->buffer[j]); j--) {
            struct fbuffer t = v->buffer[j];
            v->buffer[j] = v->buffer[j - 1];
            v->buffer[j - 1] = t;
        }
    nest_view_count_ops(v, v->s->body);
    measure_taps(v, c);
}

double nest_view_trips(const struct nest_view *v, enum cut cut)
{
    double trips = 1;
    for (int i = 0; i < v->nr_loops && v->loop[i].cut <= cut; i++)
        trips *= v->loop[i].trips;
    return trips;
}

double nest_view_traffic(const struct nest_view *v, double size)
{
    int cut = CUT_ALL;
    while (cut < CUT_TILE && v->set[cut] > size)
        cut++;
    double bytes = 0;
    for (int i = 0; i < v->nr_buffers; i++)
        bytes += cut == CUT_ALL ? v->buffer[i].footprint[CUT_ALL] : v->buffer[i].traffic[cut];
    return bytes;
}
