/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features: what a cost model sees of a candidate.
 *
 * A row for every store of the program: the anchor of a nest, and each copy that it makes on its
 * way (a producer, a packed operand). They are what MetaSchedule's per-store features describe
 * (operations, loops, memory that is touched, reused and streamed), computed from the tile sizes
 * instead of from lowered code: some microseconds a candidate, where lowering takes a hundred.
 *
 * Words. A *cut* is a level of the loops: what is inside it runs as one. The *footprint* of a
 * buffer at a cut is what the loops inside touch of it. Its *traffic* at a cut are the bytes that
 * enter a cache which holds just what is inside: the footprint with the innermost loop outside that
 * moves the buffer, whose steps may overlap, times the trips of the loops around that one. Where no
 * cut is named, a number is of a whole call.
 *
 * Counts and bytes are log2(x + 1), shares are plain.
 */
#include "engine/tensor/sketch_features.h"

#include <math.h>
#include <string.h>

#include "engine/tensor/plan.h"

/* whole nest, inside S0, S1, R0, S2, R1: the register tile */
enum cut { CUT_ALL, CUT_S0, CUT_S1, CUT_R0, CUT_S2, CUT_TILE, NR_CUTS };

enum { BUFFERS = 4, BUFFER_LOADS = 8 };

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

struct floop {
    int axis;
    double trips;
    enum cut cut; /* the innermost cut that it is outside of */
};

struct fbuffer {
    const struct wl_tensor *t;
    const struct affine *idx;
    uint32_t moved_by; /* axes */
    int asked;         /* conditions that a load meets */
    int nr_terms;      /* of its indices, those of a dimension one after the other */
    struct fterm {
        int dim, axis;
        double coef;
    } term[LAYOUT_MAX_DIMS * 2];
    double footprint[NR_CUTS], traffic[NR_CUTS];
};

struct view {
    const struct nest_plan *n;
    const struct wl_stage *s;
    struct nest_shape sh;
    int nr_loops, nr_buffers;
    struct floop loop[WL_MAX_AXES * 5];
    double inner[NR_CUTS][WL_MAX_AXES]; /* extent of an axis inside a cut */
    struct fbuffer buffer[1 + BUFFER_LOADS];
    double set[NR_CUTS]; /* footprint of all buffers */
    double ops, divisions, calls, guards;
    double skipped; /* share of the taps */
};

static float lg(double x)
{
    return (float)log2(x + 1);
}

/* Counts what an expression does at one point. */
static void count_ops(struct view *v, const struct wl_expr *e)
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
    count_ops(v, e->a);
    count_ops(v, e->b);
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

static struct fbuffer *find_buffer(struct view *v, int tensor)
{
    for (int i = 0; i < v->nr_buffers; i++)
        if (v->buffer[i].t == &v->n->plan->w->tensor[tensor])
            return &v->buffer[i];
    return NULL;
}

/* The share of taps that are skipped; and what still asks where the image itself is read. */
static void measure_taps(struct view *v, const struct candidate *c)
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
        struct fbuffer *b = find_buffer(v, w->stage[n->producer[n->padded].stage].out);
        if (b)
            b->asked += asked;
    }
}

static void add_buffer(struct view *v, int tensor, const struct affine *idx, int asked)
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

static void add_loads(struct view *v, const struct wl_expr *e)
{
    if (!e)
        return;
    if (e->op == WL_LOAD || e->op == WL_PICK)
        add_buffer(v, e->tensor, e->idx, e->op == WL_LOAD && e->guarded);
    add_loads(v, e->a);
    add_loads(v, e->b);
}

static void add_loop(struct view *v, int axis, int64_t trips, enum cut cut)
{
    if (trips > 1)
        v->loop[v->nr_loops++] = (struct floop){axis, (double)trips, cut};
}

/* The loops outside of the register tile, outermost first. */
static void add_loops(struct view *v, const struct candidate *c)
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
static void measure_axes(struct view *v)
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
static double footprint(const struct view *v, const struct fbuffer *b, enum cut cut, int with)
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
static void measure_buffer(const struct view *v, struct fbuffer *b)
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

static void view_init(struct view *v, const struct nest_plan *n, const struct candidate *c)
{
    *v = (struct view){.n = n, .s = &n->plan->w->stage[n->anchor]};
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
    count_ops(v, v->s->body);
    measure_taps(v, c);
}

static double trips_outside(const struct view *v, enum cut cut)
{
    double trips = 1;
    for (int i = 0; i < v->nr_loops && v->loop[i].cut <= cut; i++)
        trips *= v->loop[i].trips;
    return trips;
}

static void put_buffers(const struct view *v, float *x)
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

/* Traffic of a cache that holds `size` bytes: at the outermost cut whose buffers fit. */
static double cache_traffic(const struct view *v, double size)
{
    int cut = CUT_ALL;
    while (cut < CUT_TILE && v->set[cut] > size)
        cut++;
    double bytes = 0;
    for (int i = 0; i < v->nr_buffers; i++)
        bytes += cut == CUT_ALL ? v->buffer[i].footprint[CUT_ALL] : v->buffer[i].traffic[cut];
    return bytes;
}

static void put_memory(const struct view *v, double ops, float *x)
{
    const struct sketch_target *t = &v->n->plan->target;
    for (int cut = CUT_ALL; cut < NR_CUTS; cut++)
        x[F_SET + cut] = lg(v->set[cut]);
    double l1 = cache_traffic(v, (double)t->l1_bytes);
    double l2 = cache_traffic(v, (double)t->l2_bytes);
    x[F_L1_BYTES] = lg(l1);
    x[F_L2_BYTES] = lg(l2);
    x[F_L1_OPS] = lg(ops / l1);
    x[F_L2_OPS] = lg(ops / l2);
    put_buffers(v, x);
}

static void put_loops(const struct view *v, float *x)
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

/*
 * An estimate of the cycles of a nest, by what bounds it: arithmetic, chains of sums that wait for
 * each other, loads into registers, and what streams in from beyond each cache. What bounds it
 * counts whole, the rest in part, as they overlap only so far; the loops around come on top.
 *
 * The numbers begin with what processors of today can do (two operations of a vector a cycle), and
 * were then fitted to the order of measured trials, 6,670 of 46 runs on 23 layers of five networks,
 * more than half of them drawn at random: .82 of the pairs of faster kernels are in order. What
 * they absorb besides, as the cheapness of what the prefetchers bring, is the machine's.
 */
static const struct {
    double ops, latency, loads, broadcasts, l2, l3, overlap, pass, tile, sums, copy, guard, call,
        division;
} cost = {
    .ops = 0.82,        /* a vector of one arithmetic operation */
    .latency = 3.5,     /* of a sum that waits for the one before */
    .loads = 0.096,     /* a vector into a register */
    .broadcasts = 0.15, /* one number into all lanes */
    .l2 = 1 / 800.0,    /* a byte from beyond the first cache */
    .l3 = 1 / 53.0,     /* a byte from beyond the second */
    .overlap = 0.0036,  /* share of what is not the bound */
    .pass = 0.0008,     /* a step of the innermost loop */
    .tile = 0.0014,     /* a register tile begun and ended, */
    .sums = 3.06,       /* and each vector of it */
    .copy = 3.85,       /* a vector copied */
    .guard = 0.03,      /* a condition that a load meets */
    .call = 8.2,        /* exp and its like */
    .division = 1.6,
};

/* Cycles of the loads in one pass over the register tile. */
static double load_cycles(const struct view *v, const struct fbuffer *b)
{
    double nr = 1;
    int lane = v->n->vec >= 0 ? v->n->vec : v->n->across, last = b->t->nr_dims - 1;
    bool wide = lane >= 0 && (b->moved_by >> lane & 1);
    for (int a = 0; a < v->s->nr_spatial + v->s->nr_reduce; a++) {
        if (!(b->moved_by >> a & 1))
            continue;
        double inner = v->inner[CUT_TILE][a];
        bool contiguous = a == lane && last >= 0 && b->idx[last].coef[lane] == 1;
        nr *= contiguous ? ceil(inner / v->sh.lanes) : inner;
    }
    return nr * ((wide ? cost.loads : cost.broadcasts) + b->asked * cost.guard);
}

static double anchor_cycles(const struct view *v)
{
    const struct sketch_target *t = &v->n->plan->target;
    const struct nest_shape *sh = &v->sh;
    double passes = trips_outside(v, CUT_TILE), steps = (double)sh->unrolled_trips;
    double vectors = passes * (double)sh->tile_vectors * steps;
    double chains = (double)sh->tile_vectors * (v->n->across >= 0 ? steps : 1), loads = 0;
    for (int i = 1; i < v->nr_buffers; i++)
        loads += load_cycles(v, &v->buffer[i]);
    passes *= 1 - v->skipped;
    vectors *= 1 - v->skipped;
    double part[] = {
        vectors *
            (cost.ops * fmax(v->ops, 1) + cost.call * v->calls + cost.division * v->divisions),
        v->s->nr_reduce ? vectors * cost.latency / chains : 0,
        loads * passes,
        cache_traffic(v, 0.9 * (double)t->l1_bytes) * cost.l2,
        cache_traffic(v, 0.8 * (double)t->l2_bytes) * cost.l3,
    };
    double most = 0, sum = 0;
    for (int i = 0; i < 5; i++) {
        most = fmax(most, part[i]);
        sum += part[i];
    }
    double tile = cost.tile + cost.sums * (double)sh->tile_vectors;
    return most + cost.overlap * (sum - most) + trips_outside(v, CUT_S2) * tile +
           passes * cost.pass;
}

static void put_anchor(const struct view *v, const struct candidate *c, float *x)
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
    double cycles = anchor_cycles(v);
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
    double cycles = cost.ops * ops + cost.loads * moved + tiles * (t->rows + t->cols) * cost.pass +
                    bytes * (fits ? cost.l2 : cost.l3);
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
    x[F_EXCESS] = lg(cycles / fmax(cost.ops * ops, 1));
}

/* A copy made inside the loops, or before them, of what `b` reads. */
static void put_copy(struct view *v, const struct fbuffer *b, enum place place,
                     const struct wl_expr *body, float *x)
{
    enum cut cut = place == PLACE_S0   ? CUT_S0
                   : place == PLACE_S1 ? CUT_S1
                   : place == PLACE_R0 ? CUT_R0
                                       : CUT_ALL;
    double visits = cut == CUT_ALL ? 1 : trips_outside(v, cut);
    double points = visits * b->footprint[cut] / 4;
    v->ops = v->divisions = v->calls = v->guards = 0;
    count_ops(v, body);
    x[F_OPS] = lg(points * fmax(v->ops, 1));
    x[F_DIVISIONS] = lg(points * v->divisions);
    x[F_CALLS] = lg(points * v->calls);
    x[F_GUARDS] = (float)v->guards;
    x[F_POINTS] = lg(points);
    x[F_PLACE] = (float)place;
    x[F_VISITS] = lg(visits);
    x[F_SET] = lg(b->footprint[cut]);
    /* vectors loaded and stored */
    x[F_CYCLES] = lg(points / fmax(v->sh.lanes, 1) * cost.copy + visits * cost.tile);
    x[F_THREADS] = (float)v->n->plan->target.threads;
}

static int put_copies(struct view *v, const struct candidate *c, float *anchor,
                      float (*row)[FEATURES], int room)
{
    const struct nest_plan *n = v->n;
    const struct workload *w = n->plan->w;
    int nr = 0;
    for (int i = 0; i < n->nr_producers; i++) {
        const struct wl_stage *s = &w->stage[n->producer[i].stage];
        enum place place = knob_place(n->plan, n->producer[i].knob, c);
        const struct fbuffer *b = find_buffer(v, s->out);
        anchor[F_INLINED] += place == PLACE_INLINE;
        if (place == PLACE_INLINE || !b || nr == room)
            continue;
        row[nr][F_IS_PRODUCER] = 1;
        put_copy(v, b, place, s->body, row[nr++]);
    }
    for (int i = 0; i < n->nr_packs; i++) {
        enum place place = knob_place(n->plan, n->pack[i].knob, c);
        const struct fbuffer *b = find_buffer(v, n->pack[i].tensor);
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
        struct view v;
        if (p->nest[i].transform.matrix) {
            put_transform(&p->nest[i], row[nr++]);
            continue;
        }
        view_init(&v, &p->nest[i], c);
        float *anchor = row[nr++];
        put_anchor(&v, c, anchor);
        nr += put_copies(&v, c, anchor, row + nr, FEATURE_ROWS - nr);
    }
    return nr;
}
