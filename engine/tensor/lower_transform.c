/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A nest that is a separable transform in two dimensions: out[i, j] = sum over r, s of
 * M[i, r] M[j, s] x[r, s], for every tile, whose other axes are the loops around it.
 *
 * A tile is done in two steps, with a buffer of its size between them that stays in the first
 * cache:
 *
 *     for s { z[., s] = M x[., s] }         a column at a time
 *     for i { out[i, .] = M z[i, .] }       a row at a time
 *
 * so that a step is a product of the small matrix and as many vectors as it has columns, and the
 * code is two such products, whatever the number of tiles. What must be asked of tiles at the edges
 * of an image is asked once a tile: those within take another branch, without conditions.
 */
#include "engine/tensor/lower_private.h"

#include <math.h>

/* The matrix by a vector. */

/* Sum of the terms whose sign in `take` is set. */
static const struct lp_expr *weighted_sum(struct lowering *L, const float *row, int cols, int in,
                                          uint32_t take)
{
    const struct lp_expr *sum = NULL;
    for (int c = 0; c < cols; c++) {
        if (row[c] == 0 || !(take >> c & 1))
            continue;
        struct lp_affine at = lp_affine_const(c);
        const struct lp_expr *x = lower_expr_load(L, in, &at);
        if (row[c] == -1 && sum)
            sum = lower_expr_arith(L, WL_SUB, sum, x);
        else {
            if (row[c] != 1)
                x = lower_expr_arith(L, WL_MUL, lower_expr_literal(L, row[c]), x);
            sum = sum ? lower_expr_arith(L, WL_ADD, sum, x) : x;
        }
    }
    return sum ? sum : lower_expr_literal(L, 0);
}

static struct lp_node *set_register(struct lowering *L, int reg, int64_t i,
                                    const struct lp_expr *value)
{
    struct lp_affine at = lp_affine_const(i);
    return lower_node_store(L, reg, &at, value);
}

static const struct lp_expr *get_register(struct lowering *L, int reg, int64_t i)
{
    struct lp_affine at = lp_affine_const(i);
    return lower_expr_load(L, reg, &at);
}

/* The columns in which two rows have equal numbers other than zero, and those in which one has the
 * other's negative. False where they differ in anything else. */
static bool rows_pair(const float *a, const float *b, int cols, uint32_t *same, uint32_t *opposite)
{
    *same = *opposite = 0;
    for (int c = 0; c < cols; c++) {
        if (fabsf(a[c]) != fabsf(b[c]))
            return false;
        if (a[c] != 0)
            *(a[c] == b[c] ? same : opposite) |= UINT32_C(1) << c;
    }
    return *same && *opposite;
}

/* out = M in, where rows come in pairs for the points p and -p: their even parts are equal, their
 * odd parts each other's negatives. */
static void multiply_by_rows(struct lowering *L, struct list *to, const float *matrix, int rows,
                             int cols, int in, int out, int part)
{
    bool done[TRANSFORM_MAX] = {false};
    for (int i = 0; i < rows; i++) {
        const float *row = matrix + i * cols;
        uint32_t even, odd;
        int k = i + 1;
        while (k < rows && (done[k] || !rows_pair(row, matrix + k * cols, cols, &even, &odd)))
            k++;
        if (done[i])
            continue;
        if (k == rows) {
            lower_list_add(to, set_register(L, out, i, weighted_sum(L, row, cols, in, UINT32_MAX)));
            continue;
        }
        lower_list_add(to, set_register(L, part, 0, weighted_sum(L, row, cols, in, even)));
        lower_list_add(to, set_register(L, part, 1, weighted_sum(L, row, cols, in, odd)));
        const struct lp_expr *e = get_register(L, part, 0), *o = get_register(L, part, 1);
        lower_list_add(to, set_register(L, out, i, lower_expr_arith(L, WL_ADD, e, o)));
        lower_list_add(to, set_register(L, out, k, lower_expr_arith(L, WL_SUB, e, o)));
        done[k] = true;
    }
}

static bool columns_pair(const float *matrix, int rows, int cols, int a, int b)
{
    bool same = false, opposite = false;
    for (int i = 0; i < rows; i++) {
        float x = matrix[i * cols + a], y = matrix[i * cols + b];
        if (fabsf(x) != fabsf(y))
            return false;
        same |= x != 0 && x == y;
        opposite |= x != 0 && x != y;
    }
    return same && opposite;
}

/* out = M in, where columns come in such pairs: in[a] + in[b] and in[a] - in[b] take their places,
 * in `in` itself, and `reduced` is the matrix by which these are multiplied. */
static void pair_columns(struct lowering *L, struct list *to, const float *matrix, int rows,
                         int cols, int in, int part, float *reduced)
{
    bool done[TRANSFORM_MAX] = {false};
    for (int i = 0; i < rows * cols; i++)
        reduced[i] = matrix[i];
    for (int a = 0; a < cols; a++)
        for (int b = a + 1; b < cols && !done[a]; b++) {
            if (done[b] || !columns_pair(matrix, rows, cols, a, b))
                continue;
            done[a] = done[b] = true;
            const struct lp_expr *x = get_register(L, in, a), *y = get_register(L, in, b);
            lower_list_add(to, set_register(L, part, 0, lower_expr_arith(L, WL_ADD, x, y)));
            lower_list_add(to, set_register(L, part, 1, lower_expr_arith(L, WL_SUB, x, y)));
            lower_list_add(to, set_register(L, in, a, get_register(L, part, 0)));
            lower_list_add(to, set_register(L, in, b, get_register(L, part, 1)));
            for (int i = 0; i < rows; i++) {
                float *row = reduced + i * cols;
                bool sum = row[a] == row[b];
                row[b] = sum ? 0 : row[a];
                row[a] = sum ? row[a] : 0;
            }
        }
}

static void multiply(struct lowering *L, struct list *to, const struct transform *t, int in,
                     int out, int part)
{
    float reduced[TRANSFORM_MAX * TRANSFORM_MAX];
    pair_columns(L, to, t->matrix, t->rows, t->cols, in, part, reduced);
    multiply_by_rows(L, to, reduced, t->rows, t->cols, in, out, part);
}

/* Tiles. */

static void fix_axis(struct lowering *L, int axis, int64_t value)
{
    L->axis[axis] = (struct axis_value){lp_affine_const(value), value, value};
}

static void loop_axis(struct lowering *L, int axis, int var, int64_t extent)
{
    L->axis[axis] = (struct axis_value){lp_affine_const(0), 0, extent - 1};
    lp_affine_term(&L->axis[axis].a, var, 1);
}

/* What one tile needs. */
struct tile {
    const struct transform *t;
    const struct wl_stage *s, *fin; /* fin: what is stored, `s` or its epilogue */
    int lanes, lane;                /* lane: variable, -1 where nothing is in vectors */
    int in, out, part;              /* registers: cols, rows, 2 */
    int z;                          /* scratch: [rows][cols][lanes] */
};

static struct lp_node *in_lanes(struct lowering *L, const struct tile *x, struct list l)
{
    return x->lane < 0 ? l.first : lower_node_for(L, LP_VECTOR, x->lane, x->lanes, l.first);
}

static struct lp_affine place_in_z(const struct tile *x, int64_t at, int var, int64_t step)
{
    struct lp_affine a = lp_affine_const(at * x->lanes);
    lp_affine_term(&a, var, step * x->lanes);
    if (x->lane >= 0)
        lp_affine_term(&a, x->lane, 1);
    return a;
}

/* z[., s] = M x[., s] for one s. */
static struct lp_node *column_step(struct lowering *L, const struct tile *x, int var)
{
    const struct transform *t = x->t;
    struct list l = lower_list_new();
    loop_axis(L, t->s, var, t->cols);
    for (int r = 0; r < t->cols; r++) {
        fix_axis(L, t->r, r);
        lower_list_add(&l, set_register(L, x->in, r, lower_convert(L, t->x, L->axis)));
    }
    multiply(L, &l, t, x->in, x->out, x->part);
    for (int i = 0; i < t->rows; i++) {
        struct lp_affine at = place_in_z(x, (int64_t)i * t->cols, var, 1);
        lower_list_add(&l, lower_node_store(L, x->z, &at, get_register(L, x->out, i)));
    }
    return in_lanes(L, x, l);
}

/* out[i, .] = M z[i, .] for one i. */
static struct lp_node *row_step(struct lowering *L, const struct tile *x, int var)
{
    const struct transform *t = x->t;
    struct list l = lower_list_new();
    loop_axis(L, t->i, var, t->rows);
    for (int s = 0; s < t->cols; s++) {
        struct lp_affine at = place_in_z(x, s, var, t->cols);
        lower_list_add(&l, set_register(L, x->in, s, lower_expr_load(L, x->z, &at)));
    }
    multiply(L, &l, t, x->in, x->out, x->part);
    int sources = L->nr_sources;
    for (int j = 0; j < t->rows; j++) {
        fix_axis(L, t->j, j);
        L->nr_sources = sources;
        if (x->fin != x->s)
            L->source[L->nr_sources++] = (struct source){.tensor = x->s->out,
                                                         .buf = x->out,
                                                         .kind = FROM_REGISTER,
                                                         .at = lp_affine_const(j)};
        const struct lp_expr *value =
            x->fin != x->s ? lower_convert(L, x->fin->body, L->axis) : get_register(L, x->out, j);
        lower_list_add(&l, lower_store_output(L, x->fin, value));
    }
    L->nr_sources = sources;
    return in_lanes(L, x, l);
}

typedef struct lp_node *step_fn(struct lowering *L, const struct tile *x, int var);

/* All of a tile's columns or rows: where its conditions all hold, without them. */
static struct lp_node *steps(struct lowering *L, const struct tile *x, step_fn *step, int extent)
{
    int inside = lower_new_var(L, "s", 0), edge = lower_new_var(L, "s", 1);
    if (L->failed)
        return NULL;
    struct lp_cond asked = {0};
    L->assumed = &asked;
    struct lp_node *fast = lower_node_for(L, LP_SERIAL, inside, extent, step(L, x, inside));
    L->assumed = NULL;
    if (!asked.nr)
        return fast;
    struct lp_node *other = lower_node_for(L, LP_SERIAL, edge, extent, step(L, x, edge));
    asked = lower_for_all(L, &asked, inside, extent);
    if (x->lane >= 0)
        asked = lower_for_all(L, &asked, x->lane, x->lanes);
    return lower_node_if(L, asked, fast, other);
}

struct lp_node *lower_transform(struct lowering *L)
{
    const struct nest_plan *n = L->n;
    struct tile x = {.t = &n->transform, .s = &L->w->stage[n->anchor], .lanes = 1, .lane = -1};
    x.fin = n->epilogue >= 0 ? &L->w->stage[n->epilogue] : x.s;
    int64_t extent[WL_MAX_AXES];
    int var[WL_MAX_AXES], vectors = -1;
    lower_begin_axes(L);
    for (int a = L->p->nr_outer; a < x.s->nr_spatial; a++) {
        extent[a] = a == x.t->i || a == x.t->j ? 1 : x.s->extent[a];
        var[a] = -1;
        if (extent[a] == 1)
            continue;
        if (a == n->vec) {
            x.lanes = lower_lanes_of(L, extent[a]);
            x.lane = lower_new_var(L, x.s->axis[a], L_LANE);
            extent[a] /= x.lanes;
            lp_affine_term(&L->axis[a].a, x.lane, 1);
            if (extent[a] == 1)
                continue;
            vectors = a;
        }
        var[a] = lower_new_var(L, x.s->axis[a], L_S0);
        lp_affine_term(&L->axis[a].a, var[a], a == vectors ? x.lanes : 1);
    }
    x.in = lower_new_buffer(L, "in", LP_REGISTER, x.t->cols);
    x.out = lower_new_buffer(L, "out", LP_REGISTER, x.t->rows);
    x.part = lower_new_buffer(L, "part", LP_REGISTER, 2);
    x.z = lower_new_buffer(L, "z", LP_SCRATCH, (int64_t)x.t->rows * x.t->cols * x.lanes);
    if (L->failed)
        return NULL;
    L->lp->buffer[x.z].per_thread = L->p->target.threads > 1;
    L->sh.lanes = x.lanes;
    L->lane_loop = -1;
    struct list l = lower_list_new();
    lower_list_add(&l, steps(L, &x, column_step, x.t->cols));
    lower_list_add(&l, steps(L, &x, row_step, x.t->rows));
    if (L->failed)
        return NULL;
    struct lp_node *body = l.first;
    if (vectors >= 0)
        body = lower_node_for(L, LP_SERIAL, var[vectors], extent[vectors], body);
    int nr = 0, outer[WL_MAX_AXES];
    int64_t trips[WL_MAX_AXES];
    for (int a = L->p->nr_outer; a < x.s->nr_spatial; a++)
        if (var[a] >= 0 && a != vectors) {
            outer[nr] = var[a];
            trips[nr++] = extent[a];
        }
    return lower_outer_loops(L, nr, outer, trips, body);
}
