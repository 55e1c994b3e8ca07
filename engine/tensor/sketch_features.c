/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features: what a cost model sees of a candidate.
 *
 * A row for every store of the program: the anchor of a nest, and each copy that it makes on its
 * way (a producer, a packed operand). They are what MetaSchedule's per-store features describe
 * (operations, loops, memory that is touched, reused and streamed), computed from the tile sizes
 * instead of from lowered code: some microseconds a candidate, where lowering takes a hundred.
 *
 * Words are those of nest_view.h.
 *
 * Counts and bytes are log2(x + 1), shares are plain.
 */
#include "engine/tensor/sketch_features.h"

#include <math.h>
#include <string.h>

#include "engine/tensor/nest_view.h"

enum { BUFFERS = 4 };

enum column {
    F_CYCLES = FEATURE_COST, /* estimated, */
    F_EXCESS,                /* and over the least that the arithmetic takes */
    F_IS_SUM,                /* what kind of store */
    F_IS_MAP,
    F_IS_PRODUCER,
    F_IS_PACK,
    F_OPS, /* arithmetic; of these divisions; calls of exp and its like */
    F_DIVISIONS,
    F_CALLS,
    F_POINTS, /* of the spatial axes, of the reduction */
    F_TERMS,
    F_LANES, /* the register tile */
    F_VECTORS,
    F_TILE,
    F_UNROLLED,
    F_BODY,
    F_LANE_USE,
    F_REGISTER_USE,
    F_ACROSS,
    F_TRIPS,                    /* of S0, S1, R0, S2, R1 */
    F_LAST_TRIPS = F_TRIPS + 5, /* of the innermost loop that is one */
    F_THREADS,
    F_BALANCE, /* work over threads times the longest thread's */
    F_CACHE,
    F_GUARDS,
    F_INLINED,
    F_SKIPPED,                    /* share of the work that is taps on padding and passed over */
    F_PLACE,                      /* of a copy */
    F_VISITS,                     /* how often it is made */
    F_SET,                        /* footprint of all buffers at each cut */
    F_L1_BYTES = F_SET + NR_CUTS, /* traffic of a cache of that size, and operations a byte of it */
    F_L2_BYTES,
    F_L1_OPS,
    F_L2_OPS,
    F_BUFFER, /* each, the output first, then the larger ones */
    B_CONST = 0,
    B_CONTIGUOUS,
    B_STRIDED,
    B_FOOTPRINT,                       /* at each cut */
    B_TRAFFIC = B_FOOTPRINT + NR_CUTS, /* at each cut but the first */
    B_NR = B_TRAFFIC + NR_CUTS - 1,
    F_NR = F_BUFFER + BUFFERS * B_NR,
};

_Static_assert((int)F_NR <= (int)FEATURES, "rows are too short");

static float lg(double x)
{
    return (float)log2(x + 1);
}

static void put_buffers(const struct nest_view *v, float *x)
{
    for (int i = 0; i < v->nr_buffers && i < BUFFERS; i++) {
        const struct fbuffer *b = &v->buffer[i];
        float *y = x + F_BUFFER + i * B_NR;
        int lane = v->n->vec >= 0 ? v->n->vec : v->n->across, last = b->t->nr_dims - 1;
        y[B_CONST] = b->t->role == WL_CONST;
        if (lane >= 0 && last >= 0 && b->moved_by >> lane & 1) {
            y[B_CONTIGUOUS] = b->idx[last].coef[lane] == 1;
            y[B_STRIDED] = !y[B_CONTIGUOUS];
        }
        for (int cut = CUT_ALL; cut < NR_CUTS; cut++)
            y[B_FOOTPRINT + cut] = lg(b->footprint[cut]);
        for (int cut = CUT_S0; cut < NR_CUTS; cut++)
            y[B_TRAFFIC + cut - 1] = lg(b->traffic[cut]);
    }
}

static void put_memory(const struct nest_view *v, double ops, float *x)
{
    const struct sketch_target *t = &v->n->plan->target;
    for (int cut = CUT_ALL; cut < NR_CUTS; cut++)
        x[F_SET + cut] = lg(v->set[cut]);
    double l1 = nest_view_traffic(v, (double)t->l1_bytes);
    double l2 = nest_view_traffic(v, (double)t->l2_bytes);
    x[F_L1_BYTES] = lg(l1);
    x[F_L2_BYTES] = lg(l2);
    x[F_L1_OPS] = lg(ops / l1);
    x[F_L2_OPS] = lg(ops / l2);
    put_buffers(v, x);
}

static void put_loops(const struct nest_view *v, float *x)
{
    for (int i = 0; i < 5; i++)
        x[F_TRIPS + i] = 1;
    for (int i = 0; i < v->nr_loops; i++)
        x[F_TRIPS + v->loop[i].cut - 1] *= (float)v->loop[i].trips;
    double outer = x[F_TRIPS], threads = v->n->plan->target.threads;
    for (int i = 0; i < 5; i++)
        x[F_TRIPS + i] = lg(x[F_TRIPS + i]);
    x[F_LAST_TRIPS] = v->nr_loops ? lg(v->loop[v->nr_loops - 1].trips) : 0;
    x[F_THREADS] = (float)threads;
    x[F_BALANCE] = (float)(outer / (ceil(outer / threads) * threads));
}

static void put_anchor(const struct nest_view *v, const struct candidate *c, float *x)
{
    const struct nest_plan *n = v->n;
    const struct wl_stage *s = v->s;
    const struct nest_shape *sh = &v->sh;
    double points = 1, terms = 1;
    for (int a = 0; a < s->nr_spatial + s->nr_reduce; a++)
        *(a < s->nr_spatial ? &points : &terms) *= (double)s->extent[a];
    double all = points * terms, ops = all * (v->ops + (s->nr_reduce > 0));
    x[s->nr_reduce ? F_IS_SUM : F_IS_MAP] = 1;
    x[F_OPS] = lg(ops);
    x[F_DIVISIONS] = lg(all * v->divisions);
    x[F_CALLS] = lg(all * v->calls);
    x[F_POINTS] = lg(points);
    x[F_TERMS] = lg(terms);
    x[F_LANES] = (float)sh->lanes;
    x[F_VECTORS] = (float)sh->vectors;
    x[F_TILE] = (float)sh->tile_vectors;
    x[F_UNROLLED] = lg((double)sh->unrolled_trips);
    x[F_BODY] = (float)((double)(sh->tile_vectors * sh->unrolled_trips) * fmax(v->ops, 1));
    if (n->vec >= 0)
        x[F_LANE_USE] = (float)sh->s[n->vec][3] / (float)(sh->vectors * sh->lanes);
    x[F_REGISTER_USE] = (float)sh->tile_vectors / (float)n->plan->target.registers;
    x[F_ACROSS] = n->across >= 0;
    x[F_CACHE] = n->cache_knob >= 0 && c->v[n->plan->sketch->knob[n->cache_knob].slot];
    x[F_GUARDS] = (float)v->guards;
    x[F_SKIPPED] = (float)v->skipped;
    put_loops(v, x);
    put_memory(v, ops, x);
    double cycles = estimate_anchor(v);
    x[F_CYCLES] = lg(cycles);
    x[F_EXCESS] = lg(cycles / fmax(ops / (4.0 * n->plan->target.lanes), 1));
}

/* A transform: its products, the loads and stores of both of its steps, and what comes from, and
 * goes to, beyond the cache that holds what a strip leaves to the next nest. */
static void put_transform(const struct nest_plan *n, float *x)
{
    const struct transform *t = &n->transform;
    const struct sketch_target *target = &n->plan->target;
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    double strips = 1, points = 1, lanes = 1, factors = 0;
    for (int a = 0; a < s->nr_spatial; a++)
        *(a < n->plan->nr_outer ? &strips : &points) *= (double)s->extent[a];
    while (lanes < target->lanes && lanes < (double)s->extent[n->vec])
        lanes *= 2;
    for (int i = 0; i < t->rows * t->cols; i++)
        factors += t->matrix[i] != 0;
    double tiles = strips * points / (t->rows * t->rows * lanes); /* vectors of them */
    double in = t->cols * t->cols, out = t->rows * t->rows, between = t->rows * t->cols;
    double ops = tiles * factors * (t->rows + t->cols);
    double moved = tiles * (in + 2 * between + out), bytes = 4 * lanes * tiles * (in + out);
    bool fits = bytes / strips < 0.8 * (double)target->l2_bytes;
    double cycles = estimate_transform(
        target, &(struct transform_work){ops, moved, tiles * (t->rows + t->cols), bytes, fits});
    x[F_IS_SUM] = 1;
    x[F_OPS] = lg(2 * lanes * ops);
    x[F_POINTS] = lg(strips * points);
    x[F_TERMS] = lg(in);
    x[F_LANES] = (float)lanes;
    x[F_TRIPS] = lg(strips);
    x[F_THREADS] = (float)target->threads;
    x[F_SET] = lg(bytes / strips);
    x[F_L2_BYTES] = lg(fits ? 0 : bytes);
    x[F_CYCLES] = lg(cycles);
    x[F_EXCESS] = lg(cycles / fmax(ops, 1));
}

/* A copy made inside the loops, or before them, of what `b` reads. */
static void put_copy(struct nest_view *v, const struct fbuffer *b, enum place place,
                     const struct wl_expr *body, float *x)
{
    enum cut cut = place == PLACE_S0   ? CUT_S0
                   : place == PLACE_S1 ? CUT_S1
                   : place == PLACE_R0 ? CUT_R0
                                       : CUT_ALL;
    double visits = cut == CUT_ALL ? 1 : nest_view_trips(v, cut);
    double points = visits * b->footprint[cut] / 4;
    v->ops = v->divisions = v->calls = v->guards = 0;
    nest_view_count_ops(v, body);
    x[F_OPS] = lg(points * fmax(v->ops, 1));
    x[F_DIVISIONS] = lg(points * v->divisions);
    x[F_CALLS] = lg(points * v->calls);
    x[F_GUARDS] = (float)v->guards;
    x[F_POINTS] = lg(points);
    x[F_PLACE] = (float)place;
    x[F_VISITS] = lg(visits);
    x[F_SET] = lg(b->footprint[cut]);
    /* vectors loaded and stored */
    x[F_CYCLES] = lg(estimate_copy(v, points, visits));
    x[F_THREADS] = (float)v->n->plan->target.threads;
}

static int put_copies(struct nest_view *v, const struct candidate *c, float *anchor,
                      float (*row)[FEATURES], int room)
{
    const struct nest_plan *n = v->n;
    const struct workload *w = n->plan->w;
    int nr = 0;
    for (int i = 0; i < n->nr_producers; i++) {
        const struct wl_stage *s = &w->stage[n->producer[i].stage];
        enum place place = knob_place(n->plan, n->producer[i].knob, c);
        const struct fbuffer *b = nest_view_buffer(v, s->out);
        anchor[F_INLINED] += place == PLACE_INLINE;
        if (place == PLACE_INLINE || !b || nr == room)
            continue;
        row[nr][F_IS_PRODUCER] = 1;
        put_copy(v, b, place, s->body, row[nr++]);
    }
    for (int i = 0; i < n->nr_packs; i++) {
        enum place place = knob_place(n->plan, n->pack[i].knob, c);
        const struct fbuffer *b = nest_view_buffer(v, n->pack[i].tensor);
        if (place == PLACE_INLINE || !b || nr == room)
            continue;
        row[nr][F_IS_PACK] = 1;
        put_copy(v, b, place, NULL, row[nr++]);
    }
    return nr;
}

int sketch_features(const struct sketch *k, const struct candidate *c, float (*row)[FEATURES])
{
    const struct plan *p = k->user;
    int nr = 0;
    memset(row, 0, FEATURE_ROWS * sizeof *row);
    for (int i = 0; i < p->nr_nests && nr < FEATURE_ROWS; i++) {
        struct nest_view v;
        if (p->nest[i].transform.matrix) {
            put_transform(&p->nest[i], row[nr++]);
            continue;
        }
        nest_view_init(&v, &p->nest[i], c);
        float *anchor = row[nr++];
        put_anchor(&v, c, anchor);
        nr += put_copies(&v, c, anchor, row + nr, FEATURE_ROWS - nr);
    }
    return nr;
}
