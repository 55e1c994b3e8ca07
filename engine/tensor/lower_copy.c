/* SPDX-License-Identifier: Apache-2.0 */
/* What is stored in the order in which it is read: packed constants, copies, producers. */
#include "engine/tensor/lower_private.h"

#include <stdio.h>

/* Constants in reading order. */

/* Logical index of a load of a constant, for packing: every loop that moves it is a stored
 * dimension, in nest order. False where a loop moves two dimensions at once. */
static bool pack_layout(struct lowering *L, const struct wl_expr *load, struct layout *out,
                        struct lp_affine *at)
{
    const struct wl_tensor *t = &L->w->tensor[load->tensor];
    const struct wl_stage *s = &L->w->stage[L->n->anchor];
    int nr_axes = s->nr_spatial + s->nr_reduce;
    *out = t->layout;
    out->nr_p = 0;
    int64_t stride = 1;
    *at = lp_affine_const(0);
    for (int d = 0; d < t->nr_dims; d++)
        if (load->idx[d].base)
            return false;
    struct layout_dim dims[LAYOUT_MAX_STORED];
    int nr = 0;
    for (int i = L->nr_loops - 1; i >= 0; i--) {
        const struct loop_var *v = &L->loop[i];
        int dim = -1;
        for (int d = 0; d < t->nr_dims; d++)
            if (v->axis < nr_axes && load->idx[d].coef[v->axis]) {
                if (dim >= 0)
                    return false;
                dim = d;
            }
        if (dim < 0)
            continue;
        if (nr == LAYOUT_MAX_STORED)
            return false;
        dims[nr++] = (struct layout_dim){v->extent, load->idx[dim].coef[v->axis] * v->stride, dim};
        lp_affine_term(at, v->var, stride);
        stride *= v->extent;
    }
    for (int i = 0; i < nr; i++)
        out->p[out->nr_p++] = dims[nr - 1 - i];
    return nr > 0;
}

/* How often all stages of the workload load `tensor`. */
static int count_loads(const struct workload *w, int tensor)
{
    int nr = 0;
    for (int s = 0; s < w->nr_stages; s++)
        expr_find_load(w->stage[s].body, tensor, &nr);
    return nr;
}

void lower_pack_constants(struct lowering *L, const struct wl_expr *body)
{
    for (int t = 0; t < L->w->nr_tensors; t++) {
        if (L->w->tensor[t].role != WL_CONST || lower_find_source(L, t))
            continue;
        int nr = 0;
        const struct wl_expr *load = expr_find_load(body, t, &nr);
        if (!load || count_loads(L->w, t) != 1 || (load->guarded && load->pad != 0))
            continue;
        struct source *src = &L->source[L->nr_sources];
        *src = (struct source){.tensor = t, .kind = FROM_LOOPS};
        struct layout layout;
        if (!pack_layout(L, load, &layout, &src->at))
            continue;
        src->buf = lower_tensor_buffer(L, t);
        struct lp_buffer *b = &L->lp->buffer[src->buf];
        b->packed = true;
        b->layout = layout;
        b->size = layout_stored_size(&layout);
        if (t == L->p->derived)
            lower_transform_layout(L, &b->layout);
        L->nr_sources++;
    }
}

/* Copies: producers and packed operands at a level of the loops. */

static enum level place_level(enum place p)
{
    return p == PLACE_S0 ? L_S0 : p == PLACE_S1 ? L_S1 : L_R0;
}

/* The values of the axes at the start of what is inside `place`. */
static void outer_axes(const struct lowering *L, enum place place, struct axis_value *out)
{
    const struct wl_stage *s = &L->w->stage[L->n->anchor];
    for (int a = 0; a < s->nr_spatial + s->nr_reduce; a++)
        out[a] = (struct axis_value){lp_affine_const(0), 0,
                                     L->n->extent[a] - nest_inner_extent(L->n, &L->sh, a, place)};
    for (int i = 0; i < L->nr_loops; i++)
        if (L->loop[i].level <= place_level(place))
            lp_affine_term(&out[L->loop[i].axis].a, L->loop[i].var, L->loop[i].stride);
}

/* A copy in the order of the loops: the same loops, with variables of their own. */
static struct lp_node *fill_in_loop_order(struct lowering *L, const struct wl_expr *load,
                                          enum place place, struct source *src)
{
    const struct wl_tensor *t = &L->w->tensor[load->tensor];
    struct axis_value axis[WL_MAX_AXES];
    outer_axes(L, place, axis);
    struct lp_affine to = {0};
    int64_t stride = 1;
    int nr = 0, kind[MAX_LOOPS], var[MAX_LOOPS];
    int64_t extent[MAX_LOOPS];
    src->at = lp_affine_const(0);
    for (int i = L->nr_loops - 1; i >= 0; i--) {
        const struct loop_var *v = &L->loop[i];
        bool used = false;
        for (int d = 0; d < t->nr_dims; d++)
            used |= load->idx[d].coef[v->axis] != 0;
        if (!used || v->level <= place_level(place))
            continue;
        int copy = lower_new_var(L, "p", L->lp->nr_vars);
        if (L->failed)
            return NULL;
        lp_affine_term(&axis[v->axis].a, copy, v->stride);
        axis[v->axis].hi += v->stride * (v->extent - 1);
        lp_affine_term(&to, copy, stride);
        lp_affine_term(&src->at, v->var, stride);
        stride *= v->extent;
        kind[nr] = v->level == L_LANE ? LP_VECTOR : LP_SERIAL;
        extent[nr] = v->extent;
        var[nr++] = copy;
    }
    L->lp->buffer[src->buf].size = stride;
    /* Lanes that overhang may leave the tensor: the copy asks, where the last loads do not. */
    struct axis_value idx[LAYOUT_MAX_DIMS];
    for (int d = 0; d < t->nr_dims; d++)
        idx[d] = lower_value_of(&load->idx[d], axis);
    const struct lp_expr *x = lower_guard(L, lower_convert_load(L, load, axis), t, idx, 0);
    struct lp_node *n = lower_node_store(L, src->buf, &to, x);
    for (int i = 0; i < nr; i++)
        n = lower_node_for(L, (enum lp_loop)kind[i], var[i], extent[i], n);
    return n;
}

/* A producer, computed for the box that is touched, in the order of its tensor. */
static struct lp_node *fill_box(struct lowering *L, const struct wl_expr *load, int stage,
                                enum place place, struct source *src)
{
    const struct wl_tensor *t = &L->w->tensor[load->tensor];
    struct axis_value axis[WL_MAX_AXES], at[LAYOUT_MAX_DIMS];
    outer_axes(L, place, axis);
    struct lp_affine to = {0};
    int64_t stride = 1, extent[LAYOUT_MAX_DIMS];
    int var[LAYOUT_MAX_DIMS], lanes = 1;
    for (int d = t->nr_dims - 1; d >= 0; d--) {
        at[d] = lower_value_of(&load->idx[d], axis);
        src->origin[d] = at[d].a;
        extent[d] = nest_box_extent(L->n, &L->sh, &load->idx[d], place);
        if (extent[d] > t->dim[d])
            extent[d] = t->dim[d];
        src->stride[d] = stride;
        var[d] = lower_new_var(L, "b", L->lp->nr_vars);
        if (L->failed)
            return NULL;
        lp_affine_term(&at[d].a, var[d], 1);
        at[d].hi += extent[d] - 1;
        lp_affine_term(&to, var[d], stride);
        stride *= extent[d];
    }
    L->lp->buffer[src->buf].size = stride;
    int last = t->nr_dims - 1, lane = -1;
    int64_t rows = extent[last];
    if (L->sh.lanes > 1 && rows > 1) {
        /* The last dimension in vectors: rows are filled in order, so that the lanes overhanging
         * one row are overwritten by the next; the last one overhangs the buffer. */
        lanes = L->sh.lanes;
        lane = lower_new_var(L, "b", L->lp->nr_vars);
        rows = (rows + lanes - 1) / lanes;
        struct lp_affine *parts[] = {&at[last].a, &to};
        for (int i = 0; i < 2; i++) {
            lp_affine_term(parts[i], var[last], lanes - 1);
            lp_affine_term(parts[i], lane, 1);
        }
        at[last].hi += lanes;
        L->lp->buffer[src->buf].size += lanes;
    }
    struct lp_node *n =
        lower_node_store(L, src->buf, &to, lower_convert(L, L->w->stage[stage].body, at));
    if (lane >= 0)
        n = lower_node_for(L, LP_VECTOR, lane, lanes, n);
    for (int d = t->nr_dims - 1; d >= 0; d--)
        n = lower_node_for(L, LP_SERIAL, var[d], d == last ? rows : extent[d], n);
    return n;
}

/* The copies whose knob says `place`. */
struct lp_node *lower_fills_at(struct lowering *L, enum place place)
{
    const struct nest_plan *n = L->n;
    const struct wl_expr *body = L->w->stage[n->anchor].body;
    struct list out = lower_list_new();
    for (int i = 0; i < n->nr_producers + n->nr_packs; i++) {
        bool is_pack = i >= n->nr_producers;
        int stage = is_pack ? -1 : n->producer[i].stage;
        int tensor = is_pack ? n->pack[i - n->nr_producers].tensor : L->w->stage[stage].out;
        int knob = is_pack ? n->pack[i - n->nr_producers].knob : n->producer[i].knob;
        if (knob_place(L->p, knob, L->c) != place)
            continue;
        int nr = 0;
        const struct wl_expr *load = expr_find_load(body, tensor, &nr);
        struct source src = {.tensor = tensor, .kind = is_pack ? FROM_LOOPS : FROM_TENSOR};
        char name[WL_NAME + 8];
        snprintf(name, sizeof name, "%s.copy", L->w->tensor[tensor].name);
        src.buf = lower_new_buffer(L, name, LP_SCRATCH, 0);
        L->lp->buffer[src.buf].per_thread = L->p->target.threads > 1;
        lower_list_add(&out, is_pack ? fill_in_loop_order(L, load, place, &src)
                                     : fill_box(L, load, stage, place, &src));
        if (L->failed)
            return NULL;
        L->source[L->nr_sources++] = src;
    }
    return out.first;
}

/* A stage in a nest of its own, element by element: producers placed before the anchor. */
void lower_root_producer(struct lowering *L, int stage)
{
    const struct wl_stage *s = &L->w->stage[stage];
    const struct wl_tensor *t = &L->w->tensor[s->out];
    struct axis_value axis[WL_MAX_AXES] = {0};
    struct lp_affine to = {0};
    int buf = lower_tensor_buffer(L, s->out), var[WL_MAX_AXES], last = s->nr_spatial - 1, lane = -1;
    int64_t stride = 1, extent[WL_MAX_AXES];
    int lanes = 1;
    for (int a = last; a >= 0; a--) {
        extent[a] = s->extent[a];
        var[a] = lower_new_var(L, s->axis[a], 0);
        axis[a] = (struct axis_value){lp_affine_const(0), 0, extent[a] - 1};
        int64_t by = 1;
        if (a == last && extent[a] > 1) {
            lanes = extent[a] < L->p->target.lanes ? 1 : L->p->target.lanes;
            while (lanes < extent[a] && lanes < L->p->target.lanes)
                lanes *= 2;
            lane = lower_new_var(L, s->axis[a], 9);
            extent[a] = (extent[a] + lanes - 1) / lanes;
            by = lanes;
            lp_affine_term(&axis[a].a, lane, 1);
            axis[a].hi = extent[a] * lanes - 1;
            lp_affine_term(&to, lane, 1);
        }
        lp_affine_term(&axis[a].a, var[a], by);
        lp_affine_term(&to, var[a], stride * by);
        stride *= t->dim[a];
    }
    if (L->failed)
        return;
    L->lp->buffer[buf].size += lanes;
    struct lp_node *n = lower_node_store(L, buf, &to, lower_convert(L, s->body, axis));
    /* Lanes that overhang a row are overwritten by the next one, unless another thread has done it. */
    if (L->p->target.threads > 1 && s->extent[last] % lanes)
        lower_ask(L, &n->cond, (struct lp_range){axis[last].a, 0, s->extent[last]});
    if (lane >= 0)
        n = lower_node_for(L, LP_VECTOR, lane, lanes, n);
    n = lower_node_for(L, LP_SERIAL, var[last], extent[last], n);
    n = lower_outer_loops(L, last, var, extent, n);
    struct lp_nest *out = &L->lp->nest[L->lp->nr_nests++];
    snprintf(out->name, sizeof out->name, "%s", s->name);
    out->lanes = lanes;
    out->body = n;
}
