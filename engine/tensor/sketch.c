/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a workload to its sketch: first the plan (which stages share a nest), then the knobs of each
 * nest, then the constraints of the hardware, then the untuned default.
 */
#include "engine/tensor/sketch.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "engine/tensor/sketch_features.h"
#include "engine/tensor/plan.h"
#include "engine/tensor/winograd.h"

/* Of fewer tiles together each weight would be read for too little. */
enum { MIN_STRIP_TILES = 8 };

/* Scratch of one producer or cache inside the loops, bytes: four times a large L2. */
#define MAX_SCRATCH_BYTES (INT64_C(8) << 20)

/* Plan. */

const struct wl_expr *expr_find_load(const struct wl_expr *e, int tensor, int *nr)
{
    if (!e)
        return NULL;
    if (e->op == WL_LOAD) {
        if (e->tensor != tensor)
            return NULL;
        ++*nr;
        return e;
    }
    const struct wl_expr *a = expr_find_load(e->a, tensor, nr);
    const struct wl_expr *b = expr_find_load(e->b, tensor, nr);
    return a ? a : b;
}

static bool reads(const struct wl_stage *s, int tensor)
{
    int nr = 0;
    return expr_find_load(s->body, tensor, &nr) != NULL;
}

static bool is_identity(const struct affine *idx, int nr_dims, int nr_axes)
{
    for (int d = 0; d < nr_dims; d++) {
        if (idx[d].base || d >= nr_axes)
            return false;
        for (int a = 0; a < WL_MAX_AXES; a++)
            if (idx[d].coef[a] != (a == d))
                return false;
    }
    return nr_dims == nr_axes;
}

/* All loads of `tensor` in `e` are unguarded and at `idx`. */
static bool loads_at(const struct wl_expr *e, int tensor, const struct affine *idx)
{
    if (!e)
        return true;
    if (e->op == WL_LOAD)
        return e->tensor != tensor ||
               (!e->guarded && memcmp(e->idx, idx, LAYOUT_MAX_DIMS * sizeof *idx) == 0);
    return loads_at(e->a, tensor, idx) && loads_at(e->b, tensor, idx);
}

/* The only later stage that reads what stage `s` fills, -1 for none or several. Writers that share
 * a tensor have no single reader either: their parts cannot be told apart. */
static int only_reader(const struct workload *w, int s)
{
    int tensor = w->stage[s].out, reader = -1;
    if (w->tensor[tensor].role != WL_TEMP)
        return -1;
    for (int i = 0; i < w->nr_stages; i++) {
        if (i != s && w->stage[i].out == tensor)
            return -1;
        if (!reads(&w->stage[i], tensor))
            continue;
        if (reader >= 0)
            return -1;
        reader = i;
    }
    return reader;
}

static bool is_epilogue_of(const struct workload *w, int s, int anchor)
{
    const struct wl_stage *e = &w->stage[s], *a = &w->stage[anchor];
    if (e->nr_reduce || !a->nr_reduce || e->nr_spatial != a->nr_spatial)
        return false;
    if (memcmp(e->extent, a->extent, sizeof e->extent[0] * (size_t)e->nr_spatial) != 0)
        return false;
    return loads_at(e->body, a->out, a->out_idx);
}

/* stage -> what becomes of it: an own nest, the epilogue or a producer of `reader`. */
enum fate { FATE_NEST, FATE_EPILOGUE, FATE_PRODUCER };

static void find_fates(const struct workload *w, enum fate *fate, int *reader)
{
    for (int s = 0; s < w->nr_stages; s++)
        fate[s] = FATE_NEST;
    for (int s = 0; s < w->nr_stages; s++) {
        const struct wl_stage *st = &w->stage[s];
        int r = reader[s] = only_reader(w, s);
        if (r < 0)
            continue;
        if (st->nr_reduce && is_epilogue_of(w, r, s))
            fate[r] = FATE_EPILOGUE;
        else if (!st->nr_reduce && fate[s] == FATE_NEST &&
                 is_identity(st->out_idx, w->tensor[st->out].nr_dims, st->nr_spatial))
            fate[s] = FATE_PRODUCER;
    }
}

/* The nest that a producer ends in: its reader's, or the reader's reader's. -1 for none. */
static int nest_of_stage(const struct plan *p, int stage)
{
    for (int i = 0; i < p->nr_nests; i++) {
        const struct nest_plan *n = &p->nest[i];
        if (n->anchor == stage || n->epilogue == stage)
            return i;
        for (int k = 0; k < n->nr_producers; k++)
            if (n->producer[k].stage == stage)
                return i;
    }
    return -1;
}

static void plan_nests(struct plan *p)
{
    const struct workload *w = p->w;
    enum fate fate[WL_MAX_STAGES];
    int reader[WL_MAX_STAGES];
    find_fates(w, fate, reader);
    for (int s = 0; s < w->nr_stages; s++) {
        if (fate[s] != FATE_NEST)
            continue;
        struct nest_plan *n = &p->nest[p->nr_nests++];
        *n = (struct nest_plan){.anchor = s, .epilogue = -1, .vec = -1, .across = -1,
                                .plan = p,
                                .order_knob = -1, .unroll_knob = -1, .cache_knob = -1,
                                .skip_knob = -1};
        for (int a = 0; a < WL_MAX_AXES; a++)
            n->tile_knob[a] = -1;
        if (w->stage[s].nr_reduce && reader[s] >= 0 && fate[reader[s]] == FATE_EPILOGUE)
            n->epilogue = reader[s];
        for (int a = w->stage[s].nr_spatial - 1; a >= 0 && n->vec < 0; a--)
            if (w->stage[s].extent[a] > 1)
                n->vec = a;
    }
    /* Later stages first: a producer's reader has its nest already. */
    for (int s = w->nr_stages - 1; s >= 0; s--) {
        if (fate[s] != FATE_PRODUCER)
            continue;
        int i = nest_of_stage(p, reader[s]);
        assert(i >= 0);
        struct nest_plan *n = &p->nest[i];
        assert(n->nr_producers < PLAN_MAX_PRODUCERS);
        n->producer[n->nr_producers++] = (struct producer){s, -1};
    }
}

/* matrix[i, r] by axes: false for anything else than a table in this order. */
static bool match_matrix(const struct wl_stage *s, const struct wl_expr *e, int *row, int *col)
{
    if (e->op != WL_TABLE || e->idx[0].base)
        return false;
    *row = *col = -1;
    for (int a = 0; a < s->nr_spatial + s->nr_reduce; a++)
        if (e->idx[0].coef[a])
            *(a < s->nr_spatial ? row : col) = a;
    return *row >= 0 && *col >= 0 && s->extent[*row] <= TRANSFORM_MAX &&
           s->extent[*col] <= TRANSFORM_MAX && e->idx[0].coef[*col] == 1 &&
           e->idx[0].coef[*row] == s->extent[*col];
}

/* A sum over a matrix by a matrix by something else is done as a transform. */
static void plan_transform(struct nest_plan *n)
{
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    const struct wl_expr *e = s->body;
    struct transform t = {0};
    if (s->combine != WL_SUM || s->nr_reduce != 2 || e->op != WL_MUL || e->b->op != WL_MUL ||
        !match_matrix(s, e->a, &t.i, &t.r) || !match_matrix(s, e->b->a, &t.j, &t.s) ||
        e->a->table != e->b->a->table)
        return;
    t.matrix = e->a->table;
    t.rows = (int)s->extent[t.i];
    t.cols = (int)s->extent[t.r];
    t.x = e->b->b;
    n->transform = t;
}

/* Variable operands that are worth a packed copy: read once by a reduction, and again for every
 * point of some spatial axis. */
static void plan_packs(struct nest_plan *n)
{
    const struct workload *w = n->plan->w;
    const struct wl_stage *s = &w->stage[n->anchor];
    if (!s->nr_reduce)
        return;
    for (int t = 0; t < w->nr_tensors && n->nr_packs < PLAN_MAX_PACKS; t++) {
        int nr = 0;
        const struct wl_expr *load = expr_find_load(s->body, t, &nr);
        if (w->tensor[t].role != WL_INPUT || nr != 1 || load->guarded)
            continue;
        bool reused = false, reduced = false;
        for (int a = 0; a < s->nr_spatial + s->nr_reduce; a++) {
            bool used = false;
            for (int d = 0; d < w->tensor[t].nr_dims; d++)
                used |= load->idx[d].coef[a] != 0;
            reused |= a < s->nr_spatial && !used && s->extent[a] > 1;
            reduced |= a >= s->nr_spatial && used;
        }
        if (reused && reduced &&
            load_is_separable(load, w->tensor[t].nr_dims, s->nr_spatial + s->nr_reduce))
            n->pack[n->nr_packs++] = (struct pack_plan){t, -1};
    }
}

bool load_is_separable(const struct wl_expr *load, int nr_dims, int nr_axes)
{
    int axis_used[WL_MAX_AXES] = {0};
    for (int d = 0; d < nr_dims; d++) {
        int axes = 0;
        for (int a = 0; a < nr_axes; a++)
            if (load->idx[d].coef[a]) {
                axes++;
                if (axis_used[a]++)
                    return false;
            }
        if (axes > 1)
            return false;
    }
    return true;
}

/* Shape of a nest under a candidate. */

static int64_t largest_divisor(int64_t n, int64_t limit)
{
    for (int64_t d = limit < n ? limit : n; d > 1; d--)
        if (n % d == 0)
            return d;
    return 1;
}

static int pow2_at_least(int64_t n)
{
    int p = 1;
    while (p < n)
        p *= 2;
    return p;
}

enum place knob_place(const struct plan *p, int knob, const struct candidate *c)
{
    return knob < 0 ? PLACE_INLINE : (enum place)knob_value(&p->sketch->knob[knob], c);
}

void nest_shape(const struct nest_plan *n, const struct candidate *c, struct nest_shape *out)
{
    const struct sketch *k = n->plan->sketch;
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    *out = (struct nest_shape){.lanes = 1, .vectors = 1, .tile_vectors = 1, .r0_trips = 1,
                               .unrolled_trips = 1};
    for (int a = 0; a < s->nr_spatial; a++)
        for (int l = 0; l < 4; l++)
            out->s[a][l] = n->whole[a] && l == 3 ? s->extent[a]
                           : n->tile_knob[a] < 0 ? 1
                                                 : knob_factor(&k->knob[n->tile_knob[a]], c, l);
    if (n->vec >= 0) {
        int64_t inner = out->s[n->vec][3];
        int fit = pow2_at_least(inner);
        out->lanes = fit < n->plan->target.lanes ? fit : n->plan->target.lanes;
        out->vectors = (inner + out->lanes - 1) / out->lanes;
    } else if (n->across >= 0) {
        int fit = pow2_at_least(s->extent[n->across]);
        out->lanes = fit < n->plan->target.lanes ? fit : n->plan->target.lanes;
        out->vectors = s->extent[n->across] / out->lanes;
    }
    for (int a = 0; a < s->nr_spatial; a++)
        out->tile_vectors *= a == n->vec ? out->vectors : out->s[a][3];
    int64_t budget = n->unroll_knob < 0 ? 1 : knob_value(&k->knob[n->unroll_knob], c);
    for (int i = s->nr_reduce - 1; i >= 0; i--) {
        int knob = n->tile_knob[s->nr_spatial + i];
        for (int l = 0; l < 2; l++)
            out->r[i][l] = knob >= 0 ? knob_factor(&k->knob[knob], c, l)
                           : l       ? s->extent[s->nr_spatial + i]
                                     : 1;
        out->r0_trips *= out->r[i][0];
        int64_t trips = s->nr_spatial + i == n->across ? out->vectors : out->r[i][1];
        out->unrolled[i] = largest_divisor(trips, budget);
        budget = out->unrolled[i] < trips ? 1 : budget / out->unrolled[i];
        out->unrolled_trips *= out->unrolled[i];
    }
}

void nest_order(const struct nest_plan *n, const struct candidate *c, int order[WL_MAX_AXES])
{
    for (int a = 0; a < n->plan->w->stage[n->anchor].nr_spatial; a++)
        order[a] = a;
    if (n->order_knob < 0)
        return;
    const int32_t *v = c->v + n->plan->sketch->knob[n->order_knob].slot;
    for (int i = 0; i < n->nr_order; i++)
        order[n->order_axis[i]] = n->order_axis[v[i]];
}

int64_t nest_inner_extent(const struct nest_plan *n, const struct nest_shape *sh, int a,
                          enum place place)
{
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    if (a >= s->nr_spatial) {
        const int64_t *r = sh->r[a - s->nr_spatial];
        return place >= PLACE_R0 ? r[1] : r[0] * r[1];
    }
    const int64_t *f = sh->s[a];
    int64_t inner = f[2] * f[3];
    if (place < PLACE_S1)
        inner *= f[1];
    if (place < PLACE_S0)
        inner *= f[0];
    return inner;
}

int64_t nest_box_extent(const struct nest_plan *n, const struct nest_shape *sh,
                        const struct affine *idx, enum place place)
{
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    int64_t extent = 1;
    for (int a = 0; a < s->nr_spatial + s->nr_reduce; a++) {
        int64_t coef = idx->coef[a] < 0 ? -idx->coef[a] : idx->coef[a];
        extent += coef * (nest_inner_extent(n, sh, a, place) - 1);
    }
    return extent;
}

/* Constraints. Each is a pure function of the shape. */

/* Share of the lanes that do useful work when `tile` elements are done in vectors. */
static double lane_use(int64_t tile, int lanes)
{
    int64_t vectors = (tile + lanes - 1) / lanes;
    return (double)tile / (double)(vectors * lanes);
}

/* The register tile of the vector axis for the default: of the divisors that take at most eight
 * vectors the one that wastes fewest lanes, the smallest of equals. */
static int64_t best_lanes_tile(int64_t extent, const struct sketch_target *t)
{
    int64_t best = 1;
    for (int64_t d = 2; d <= extent && d <= INT64_C(8) * t->lanes; d++)
        if (extent % d == 0 && lane_use(d, t->lanes) > lane_use(best, t->lanes) + 1e-9)
            best = d;
    return best;
}

/* What the vector axis is tiled over: its extent, or that rounded up to whole vectors where no
 * divisor comes near them (a prime). */
static int64_t vec_extent(int64_t extent, const struct sketch_target *t)
{
    int64_t whole = (extent + t->lanes - 1) / t->lanes * t->lanes;
    if (extent <= t->lanes)
        return extent;
    double tiled = lane_use(best_lanes_tile(extent, t), t->lanes);
    return tiled < 0.75 * (double)extent / (double)whole ? whole : extent;
}

static int64_t least_lanes(int64_t extent, const struct sketch_target *t)
{
    int64_t half = (extent < t->lanes ? extent : t->lanes) / 2;
    int64_t have = best_lanes_tile(extent, t);
    return half < 1 ? 1 : half < have ? half : have;
}

static int expr_ops(const struct wl_expr *e)
{
    if (!e || e->op == WL_LITERAL || e->op == WL_LOAD)
        return 0;
    return 1 + expr_ops(e->a) + expr_ops(e->b);
}

static bool ok_registers(const void *ctx, const struct candidate *c)
{
    const struct nest_plan *n = ctx;
    struct nest_shape sh;
    nest_shape(n, c, &sh);
    int64_t sums = sh.tile_vectors * (n->across >= 0 ? sh.unrolled_trips : 1);
    return sums <= n->plan->target.registers;
}

static bool ok_body(const void *ctx, const struct candidate *c)
{
    const struct nest_plan *n = ctx;
    struct nest_shape sh;
    nest_shape(n, c, &sh);
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    int ops = expr_ops(s->body) > 0 ? expr_ops(s->body) : 1;
    return sh.tile_vectors * sh.unrolled_trips * ops <= MAX_BODY_OPS;
}

/* Half-empty vectors waste what no other knob can win back. */
static bool ok_lanes(const void *ctx, const struct candidate *c)
{
    const struct nest_plan *n = ctx;
    int64_t inner = knob_factor(&n->plan->sketch->knob[n->tile_knob[n->vec]], c, 3);
    return inner >= least_lanes(n->extent[n->vec], &n->plan->target);
}

static bool ok_cache(const void *ctx, const struct candidate *c)
{
    const struct nest_plan *n = ctx;
    struct nest_shape sh;
    nest_shape(n, c, &sh);
    return sh.r0_trips > 1 || !knob_value(&n->plan->sketch->knob[n->cache_knob], c);
}

/* Bytes of the copy that knob `knob` places inside the loops, of a tensor read by `load`. */
static int64_t copy_bytes(const struct nest_plan *n, const struct candidate *c, int tensor,
                          int knob)
{
    enum place place = knob_place(n->plan, knob, c);
    if (place < PLACE_S0)
        return 0;
    struct nest_shape sh;
    nest_shape(n, c, &sh);
    int nr = 0;
    const struct wl_expr *load =
        expr_find_load(n->plan->w->stage[n->anchor].body, tensor, &nr);
    int64_t size = 4;
    for (int d = 0; load && d < n->plan->w->tensor[tensor].nr_dims; d++)
        size *= nest_box_extent(n, &sh, &load->idx[d], place);
    return size;
}

static bool ok_scratch(const void *ctx, const struct candidate *c)
{
    const struct nest_plan *n = ctx;
    const struct workload *w = n->plan->w;
    for (int i = 0; i < n->nr_producers; i++)
        if (copy_bytes(n, c, w->stage[n->producer[i].stage].out, n->producer[i].knob) >
            MAX_SCRATCH_BYTES)
            return false;
    for (int i = 0; i < n->nr_packs; i++)
        if (copy_bytes(n, c, n->pack[i].tensor, n->pack[i].knob) > MAX_SCRATCH_BYTES)
            return false;
    return true;
}

/* Knobs. */

static void knob_text(char out[32], const struct plan *p, const struct nest_plan *n,
                      const char *what, const char *which)
{
    if (p->nr_nests > 1)
        snprintf(out, 32, "%.9s.%s%.14s", p->w->stage[n->anchor].name, what, which);
    else
        snprintf(out, 32, "%s%.24s", what, which);
}

/* Places of a copy: 0 is in the loads; a packed copy before the nest would be a second tensor. */
static const int64_t all_places[] = {PLACE_INLINE, PLACE_ROOT, PLACE_S0, PLACE_S1, PLACE_R0};
static const int64_t pack_places[] = {PLACE_INLINE, PLACE_S0, PLACE_S1, PLACE_R0};
static const int64_t unroll_steps[] = {1, 2, 4, 8, 16, 32, 64};

/* A producer may sit at a level when the anchor reads it once, unguarded, by itself. */
static bool is_placeable(const struct nest_plan *n, int stage)
{
    const struct workload *w = n->plan->w;
    int nr = 0;
    const struct wl_expr *load =
        expr_find_load(w->stage[n->anchor].body, w->stage[stage].out, &nr);
    return w->stage[n->anchor].nr_reduce && nr == 1 && !load->guarded;
}

static uint64_t bit(int knob)
{
    return knob < 0 ? 0 : UINT64_C(1) << knob;
}

static void add_knobs(struct plan *p, struct nest_plan *n, struct space *sp, struct sketch *k)
{
    const struct workload *w = p->w;
    const struct wl_stage *s = &w->stage[n->anchor];
    char name[32];
    int nr = s->nr_spatial + s->nr_reduce;
    for (int a = 0; a < nr; a++) {
        n->extent[a] = a == n->vec ? vec_extent(s->extent[a], &p->target) : s->extent[a];
        if (n->extent[a] <= 1 || a < n->plan->nr_outer || n->whole[a] || (n->across >= 0 && a >= s->nr_spatial))
            continue;
        knob_text(name, p, n, "tile_", s->axis[a]);
        n->tile_knob[a] =
            sketch_split(sp, k, name, n->extent[a], a < s->nr_spatial ? 4 : 2, 0);
        if (a < s->nr_spatial && !(a == n->vec && s->extent[a] <= p->target.lanes))
            n->order_axis[n->nr_order++] = a;
    }
    if (n->nr_order > 1) {
        knob_text(name, p, n, "order", "");
        n->order_knob = sketch_permutation(sp, k, name, n->nr_order);
    }
    bool loops = n->across >= 0; /* in the reduction, of which there is something to decide */
    for (int a = s->nr_spatial; a < nr; a++)
        loops |= n->tile_knob[a] >= 0;
    if (loops) {
        knob_text(name, p, n, "unroll", "");
        n->unroll_knob = sketch_ordinal(sp, k, name, 7, unroll_steps);
    }
    if (loops && n->across < 0) {
        knob_text(name, p, n, "write_cache", "");
        n->cache_knob = sketch_flag(sp, k, name);
    }
    for (int i = 0; i < n->nr_producers; i++)
        if (is_placeable(n, n->producer[i].stage)) {
            knob_text(name, p, n, "at_", w->stage[n->producer[i].stage].name);
            n->producer[i].knob = sketch_choice(sp, k, name, 5, all_places);
        }
    if (n->across < 0 && n->nr_taps) {
        knob_text(name, p, n, "skip_padding", "");
        n->skip_knob = sketch_flag(sp, k, name);
    }
    for (int i = 0; i < n->nr_packs; i++) {
        knob_text(name, p, n, "pack_", w->tensor[n->pack[i].tensor].name);
        n->pack[i].knob = sketch_choice(sp, k, name, 4, pack_places);
    }
}

static void add_constraints(struct nest_plan *n, struct space *sp, struct sketch *k)
{
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    uint64_t spatial = 0, reduce = bit(n->unroll_knob), copies = 0;
    for (int a = 0; a < s->nr_spatial; a++)
        spatial |= bit(n->tile_knob[a]);
    for (int a = s->nr_spatial; a < s->nr_spatial + s->nr_reduce; a++)
        reduce |= bit(n->tile_knob[a]);
    for (int i = 0; i < n->nr_producers; i++)
        copies |= bit(n->producer[i].knob);
    for (int i = 0; i < n->nr_packs; i++)
        copies |= bit(n->pack[i].knob);
    if (n->vec >= 0 && n->tile_knob[n->vec] >= 0)
        sketch_constraint(sp, k, "vectors are filled", bit(n->tile_knob[n->vec]), ok_lanes, n);
    sketch_constraint(sp, k, "register tile fits", n->across >= 0 ? spatial | reduce : spatial,
                      ok_registers, n);
    sketch_constraint(sp, k, "unrolled body is small", spatial | reduce, ok_body, n);
    if (n->cache_knob >= 0)
        sketch_constraint(sp, k, "write cache has partial sums to hold",
                          reduce | bit(n->cache_knob), ok_cache, n);
    if (copies)
        sketch_constraint(sp, k, "copies fit the cache", spatial | reduce | copies, ok_scratch, n);
}

/* The untuned default: a register tile that takes up to half of the registers, everything else in the outer loops,
 * no reduction loop cut, producers computed beforehand. */
static void set_split(const struct sketch *k, int knob, struct candidate *c, int64_t inner)
{
    if (knob < 0)
        return;
    const struct knob *kn = &k->knob[knob];
    for (int l = 0; l < kn->nr_slots; l++)
        c->v[kn->slot + l] = 1;
    c->v[kn->slot] = (int32_t)(kn->extent / inner);
    c->v[kn->slot + kn->nr_slots - 1] = (int32_t)inner;
}

static void set_default(const struct nest_plan *n, const struct sketch *k, struct candidate *c)
{
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    int64_t tile = 1, sums = n->plan->target.registers / 2;
    for (int a = s->nr_spatial - 1; a >= n->plan->nr_outer; a--) {
        int64_t inner = 1;
        if (a == n->vec) {
            inner = best_lanes_tile(n->extent[a], &n->plan->target);
            tile *= (inner + n->plan->target.lanes - 1) / n->plan->target.lanes;
        } else if ((a < n->vec || n->across >= 0) && s->nr_reduce && tile < sums) {
            inner = largest_divisor(s->extent[a], sums / tile);
            tile *= inner;
        }
        set_split(k, n->tile_knob[a], c, inner);
    }
    for (int a = s->nr_spatial; a < s->nr_spatial + s->nr_reduce; a++)
        set_split(k, n->tile_knob[a], c, s->extent[a]);
    if (n->order_knob >= 0)
        for (int i = 0; i < n->nr_order; i++)
            c->v[k->knob[n->order_knob].slot + i] = i;
    if (n->unroll_knob >= 0)
        c->v[k->knob[n->unroll_knob].slot] = 0;
    /* Sums that do not wait for each other: of several rows or, where these are few, of parts. */
    for (int i = 0; n->across >= 0 && tile << (i + 1) <= sums && i < 3; i++)
        c->v[k->knob[n->unroll_knob].slot] = i + 1;
    for (int i = 0; i < n->nr_producers; i++)
        if (n->producer[i].knob >= 0)
            c->v[k->knob[n->producer[i].knob].slot] = 1; /* PLACE_ROOT */
}

/* Adds the sketch of `w`; a sketch without a valid default is left out. */
static bool add_sketch(const char *name, const struct workload *w,
                       const struct sketch_target *target, struct space *out, struct plan *p,
                       const char **why)
{
    struct sketch *k = space_sketch(out, name);
    p->w = w;
    p->space = out;
    p->sketch = k;
    p->target = *target;
    plan_nests(p);
    k->user = p;
    k->features = sketch_features;
    k->twins = sketch_twins;
    for (int i = 0; i < p->nr_nests; i++) {
        plan_transform(&p->nest[i]);
        if (p->nest[i].transform.matrix)
            continue;
        plan_packs(&p->nest[i]);
        plan_lanes(&p->nest[i]);
        plan_taps(&p->nest[i]);
        /* What is kept of a strip is in vectors of whole blocks. */
        if (p->nr_outer && p->nest[i].vec >= 0)
            p->nest[i].whole[p->nest[i].vec] = true;
        add_knobs(p, &p->nest[i], out, k);
    }
    k->start = (struct candidate){.sketch = out->nr_sketches - 1, .nr = k->nr_slots};
    for (int i = 0; i < p->nr_nests; i++) {
        if (p->nest[i].transform.matrix)
            continue;
        add_constraints(&p->nest[i], out, k);
        set_default(&p->nest[i], k, &k->start);
    }
    if (candidate_valid(out, &k->start, why))
        return true;
    out->nr_sketches--;
    return false;
}

/* What a strip's tiles take between the transforms: inputs and products of all channels. */
static int64_t tile_bytes(const struct winograd_tiles *t, int m)
{
    return 4 * (int64_t)(m + 2) * (m + 2) * (t->channels_in + t->channels_out);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* `all` in as few parts of at most `most` as there can be, as equal as they can be. */
static int64_t equal_part(int64_t all, int64_t most)
{
    return ceil_div(all, ceil_div(all, most));
}

/* Rows of tiles, or parts of one row, that take at most `bytes`. False where that is all of them, or
 * too few to be worth it. */
static bool strip_within(const struct winograd_tiles *t, int m, int64_t bytes,
                         struct winograd_strip *out)
{
    int64_t most = bytes / tile_bytes(t, m);
    if (most < MIN_STRIP_TILES || most >= t->images * t->rows * t->cols)
        return false;
    *out = (struct winograd_strip){1, 1, t->cols};
    if (most >= t->cols)
        out->rows = equal_part(t->rows, most / t->cols);
    else
        out->cols = equal_part(t->cols, most);
    return true;
}

static void add_winograd(const struct workload *w, const struct sketch_target *target, int m,
                         const struct winograd_strip *strip, const char *name, struct space *out)
{
    struct workload *derived = ARENA_NEW(&out->arena, struct workload);
    struct plan *p = ARENA_NEW(&out->arena, struct plan);
    winograd_workload(w, m, strip, derived, &p->derived, &p->from);
    p->transform = m == 2 ? LAYOUT_WINOGRAD_2 : LAYOUT_WINOGRAD_4;
    p->nr_outer = WINOGRAD_STRIP_AXES;
    const char *why = NULL;
    add_sketch(name, derived, target, out, p, &why);
    /* What the space holds of it lives as long as the space. */
    arena_adopt(&out->arena, &derived->arena);
}

/* The whole image at once, which reads each weight once; and in strips whose transforms stay in the
 * second cache, with room for the weights that pass. */
static void add_winograd_sketches(const struct workload *w, const struct sketch_target *target,
                                  int m, struct space *out)
{
    struct winograd_tiles t;
    struct winograd_strip strip;
    if (!winograd_tiles(w, m, &t))
        return;
    add_winograd(w, target, m, &(struct winograd_strip){t.images, t.rows, t.cols},
                 m == 2 ? "winograd2" : "winograd4", out);
    if (strip_within(&t, m, target->l2_bytes * 5 / 8, &strip))
        add_winograd(w, target, m, &strip, m == 2 ? "winograd2-strips" : "winograd4-strips", out);
}

int sketches_of(const struct workload *w, const struct sketch_target *target, struct space *out,
                struct err *e)
{
    struct plan *p = ARENA_NEW(&out->arena, struct plan);
    p->derived = p->from = -1;
    const char *why = NULL;
    if (!add_sketch("tiled", w, target, out, p, &why))
        return err_set(e, ERR_UNSUPPORTED, "workload \"%s\" has no valid default schedule: %s",
                       w->name, why ? why : "a knob is outside its values");
    add_winograd_sketches(w, target, 4, out);
    add_winograd_sketches(w, target, 2, out);
    return 0;
}
