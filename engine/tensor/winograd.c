/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tensor/winograd.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/*
 * The matrices follow from the points at which polynomials are evaluated, by the Toom-Cook algorithm;
 * the last point is infinity. For m = 4 the usual 0, 1, -1, 2, -2 is not the best choice: with the
 * points below the largest error over a 64-channel layer is a quarter of it, and since transforms are
 * tables here, their coefficients need not be small integers. (Measured with float32 sums of uniform
 * operands; 0, +-2/3, +-4/3 and 0, +-11/16, +-3/2 come close, but are not exact in binary.)
 */
static const double points2[] = {0, 1, -1};
static const double points4[] = {0, 0.75, -0.75, 1.5, -1.5};

struct matrices {
    double bt[WINOGRAD_MAX_A][WINOGRAD_MAX_A], g[WINOGRAD_MAX_A][3];
    double at[WINOGRAD_MAX_A - 2][WINOGRAD_MAX_A];
};

/* Coefficients of the product of (x - p) over all points but `skip`. */
static void product(const double *point, int nr, int skip, double *coef)
{
    memset(coef, 0, sizeof *coef * (size_t)(nr + 1));
    coef[0] = 1;
    for (int i = 0; i < nr; i++) {
        if (i == skip)
            continue;
        for (int k = nr; k > 0; k--)
            coef[k] = coef[k - 1] - point[i] * coef[k];
        coef[0] *= -point[i];
    }
}

static void make_matrices(int m, struct matrices *out)
{
    const double *point = m == 2 ? points2 : points4;
    int a = m + 2, nr = a - 1;
    *out = (struct matrices){0};
    for (int i = 0; i < nr; i++) {
        double scale = 1, power = 1;
        for (int j = 0; j < nr; j++)
            scale *= j == i ? 1 : point[i] - point[j];
        for (int k = 0; k < m || k < 3; k++, power *= point[i]) {
            if (k < m)
                out->at[k][i] = power;
            if (k < 3)
                out->g[i][k] = power / scale;
        }
        product(point, nr, i, out->bt[i]);
    }
    out->at[m - 1][nr] = 1;
    out->g[nr][2] = 1;
    product(point, nr, -1, out->bt[nr]);
}

static float input2[4 * 4], input4[6 * 6], output2[2 * 4], output4[4 * 6];

static void copy_matrix(double (*from)[WINOGRAD_MAX_A], int rows, int cols, float *out)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++)
            *out++ = (float)from[i][j];
}

static void fill_tables_once(void)
{
    for (int m = 2; m <= 4; m += 2) {
        struct matrices x;
        make_matrices(m, &x);
        copy_matrix(x.bt, m + 2, m + 2, m == 2 ? input2 : input4);
        copy_matrix(x.at, m, m + 2, m == 2 ? output2 : output4);
    }
}

static void fill_tables(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_tables_once);
}

const float *winograd_input_table(int m)
{
    fill_tables();
    return m == 2 ? input2 : input4;
}

const float *winograd_output_table(int m)
{
    fill_tables();
    return m == 2 ? output2 : output4;
}

void winograd_weights(int m, int64_t k, int64_t c, const float *weights, float *out)
{
    /* A row of the result at a time for some weights: there are 36 of them, far apart. */
    enum { AT_ONCE = 64 };
    int a = m + 2;
    struct matrices x;
    make_matrices(m, &x);
    for (int64_t i = 0; i < k * c; i += AT_ONCE) {
        int nr = k * c - i < AT_ONCE ? (int)(k * c - i) : AT_ONCE;
        double w[9][AT_ONCE] = {{0}}, half[3][AT_ONCE];
        for (int j = 0; j < nr; j++)
            for (int t = 0; t < 9; t++)
                w[t][j] = (double)weights[(i + j) * 9 + t];
        for (int r = 0; r < a; r++) {
            for (int s = 0; s < 3; s++)
                for (int j = 0; j < AT_ONCE; j++)
                    half[s][j] =
                        x.g[r][0] * w[s][j] + x.g[r][1] * w[3 + s][j] + x.g[r][2] * w[6 + s][j];
            for (int s = 0; s < a; s++) {
                float *to = out + (r * a + s) * k * c + i;
                for (int j = 0; j < nr; j++)
                    to[j] = (float)(half[0][j] * x.g[s][0] + half[1][j] * x.g[s][1] +
                                    half[2][j] * x.g[s][2]);
            }
        }
    }
}

/* Recognising a convolution by its indices. */

struct conv {
    int stage, epilogue; /* -1: none */
    int pad;             /* stage whose output it reads, -1: an input as it is */
    const struct wl_expr *x, *w;
    int n, k, y, x_, ki, c, r, s, ci; /* axes */
    int64_t block;
};

/* The only axis of `f`, which has coefficient `coef`; -1 for anything else. */
static int single_axis(const struct affine *f, int64_t coef)
{
    int found = -1;
    if (f->base)
        return -1;
    for (int a = 0; a < WL_MAX_AXES; a++)
        if (f->coef[a]) {
            if (found >= 0 || f->coef[a] != coef)
                return -1;
            found = a;
        }
    return found;
}

/* f = block * outer + inner, or with a block of one, outer alone (inner -1). */
static bool blocked_axes(const struct affine *f, int64_t block, int *outer_, int *inner)
{
    *outer_ = *inner = -1;
    if (f->base)
        return false;
    for (int a = 0; a < WL_MAX_AXES; a++) {
        if (!f->coef[a])
            continue;
        if (f->coef[a] == block && *outer_ < 0)
            *outer_ = a;
        else if (f->coef[a] == 1 && *inner < 0)
            *inner = a;
        else
            return false;
    }
    return *outer_ >= 0 && *inner >= 0;
}

/* f = a + b for the given b; gives a. */
static int other_axis(const struct affine *f, int b)
{
    struct affine rest = *f;
    if (rest.coef[b] != 1)
        return -1;
    rest.coef[b] = 0;
    return single_axis(&rest, 1);
}

static bool match_indices(const struct workload *w, const struct wl_stage *s, struct conv *c)
{
    const struct wl_tensor *xt = &w->tensor[c->x->tensor], *wt = &w->tensor[c->w->tensor];
    if (xt->nr_dims != 5 || wt->nr_dims != 4 || wt->dim[2] != 3 || wt->dim[3] != 3 ||
        c->x->guarded)
        return false;
    c->block = xt->dim[4];
    if (c->block < 2 || !blocked_axes(&c->w->idx[0], c->block, &c->k, &c->ki) ||
        !blocked_axes(&c->w->idx[1], c->block, &c->c, &c->ci))
        return false;
    c->r = single_axis(&c->w->idx[2], 1);
    c->s = single_axis(&c->w->idx[3], 1);
    if (c->r < 0 || c->s < 0 || s->extent[c->r] != 3 || s->extent[c->s] != 3)
        return false;
    c->n = single_axis(&c->x->idx[0], 1);
    c->y = other_axis(&c->x->idx[2], c->r);
    c->x_ = other_axis(&c->x->idx[3], c->s);
    if (c->y < 0 || c->x_ < 0 || single_axis(&c->x->idx[1], 1) != c->c ||
        single_axis(&c->x->idx[4], 1) != c->ci)
        return false;
    const int out[] = {c->n, c->k, c->y, c->x_, c->ki};
    for (int d = 0; d < 5; d++)
        if (out[d] != d || single_axis(&s->out_idx[d], 1) != d)
            return false;
    return s->nr_spatial == 5 && s->nr_reduce == 4 && w->tensor[s->out].nr_dims == 5;
}

static int stage_that_fills(const struct workload *w, int tensor)
{
    for (int i = 0; i < w->nr_stages; i++)
        if (w->stage[i].out == tensor)
            return i;
    return -1;
}

static bool find_conv(const struct workload *w, struct conv *c)
{
    /* pad, convolution, epilogue: the first and the last may be missing; nothing else. */
    *c = (struct conv){.stage = -1, .epilogue = -1, .pad = -1};
    for (int i = 0; i < w->nr_stages; i++)
        if (w->stage[i].nr_reduce) {
            if (c->stage >= 0)
                return false;
            c->stage = i;
        }
    if (c->stage < 0)
        return false;
    const struct wl_stage *s = &w->stage[c->stage];
    const struct wl_expr *body = s->body;
    if (s->combine != WL_SUM || body->op != WL_MUL || body->a->op != WL_LOAD ||
        body->b->op != WL_LOAD)
        return false;
    bool swapped = w->tensor[body->a->tensor].role == WL_CONST;
    c->x = swapped ? body->b : body->a;
    c->w = swapped ? body->a : body->b;
    if (w->tensor[c->w->tensor].role != WL_CONST || !match_indices(w, s, c))
        return false;
    c->pad = stage_that_fills(w, c->x->tensor);
    if (c->stage != w->nr_stages - 1)
        c->epilogue = c->stage + 1;
    int used = 1 + (c->pad >= 0) + (c->epilogue >= 0);
    return used == w->nr_stages && (c->pad < 0 || c->pad == 0);
}

/* Building the derived workload. */

/* `e` with its axes replaced by affine forms of other axes; loads become guarded, since tiles may
 * overhang. */
static const struct wl_expr *substitute(struct workload *w, const struct wl_expr *e,
                                        const struct affine *axis, int old_temp, int new_temp,
                                        const struct affine *temp_idx)
{
    struct wl_expr *x = ARENA_NEW(&w->arena, struct wl_expr);
    *x = *e;
    if (e->a)
        x->a = substitute(w, e->a, axis, old_temp, new_temp, temp_idx);
    if (e->b)
        x->b = substitute(w, e->b, axis, old_temp, new_temp, temp_idx);
    if (e->op != WL_LOAD)
        return x;
    if (e->tensor == old_temp) {
        x->tensor = new_temp;
        memcpy(x->idx, temp_idx, sizeof x->idx);
        return x;
    }
    x->guarded = true;
    for (int d = 0; d < LAYOUT_MAX_DIMS; d++) {
        x->idx[d] = affine_const(e->idx[d].base);
        for (int a = 0; a < WL_MAX_AXES; a++)
            if (e->idx[d].coef[a]) {
                struct affine term = axis[a];
                term.base *= e->idx[d].coef[a];
                for (int i = 0; i < WL_MAX_AXES; i++)
                    term.coef[i] *= e->idx[d].coef[a];
                x->idx[d] = affine_add(x->idx[d], term);
            }
    }
    return x;
}

/* Sizes of the derived workload. The first three axes of every stage but `pad` are the strips: of
 * images, of rows of tiles, of columns of tiles; the rest is inside a strip. */
struct shape {
    int m, a;
    int64_t block, k, c;
    int64_t strips[3], tiles[3]; /* strips, and tiles of one: images, rows, columns */
    int64_t padded[3];           /* images, rows, columns of the padded input */
};

enum { STRIP_N, STRIP_Y, STRIP_X, NR_STRIP_AXES };

static void add_strip_axes(const struct shape *p, struct workload *out, int stage)
{
    static const char *const name[] = {"sn", "sy", "sx"};
    for (int i = 0; i < NR_STRIP_AXES; i++)
        workload_axis(out, stage, name[i], p->strips[i], false);
}

/* The image (step 1), or the row or column of elements (step m), where the tile `axis` of a strip
 * begins. */
static struct affine of_tile(const struct shape *p, int strip, int axis)
{
    int64_t step = strip == STRIP_N ? 1 : p->m;
    return affine_add(affine_axis(strip, p->tiles[strip] * step), affine_axis(axis, step));
}

/* Number of a tile in its strip. */
static struct affine tile_number(const struct shape *p, int n, int ty, int tx)
{
    return affine_add(affine_axis(n, p->tiles[STRIP_Y] * p->tiles[STRIP_X]),
                      affine_add(affine_axis(ty, p->tiles[STRIP_X]), affine_axis(tx, 1)));
}

/* In two dimensions: matrix[i, r] * (matrix[j, s] * x). */
static const struct wl_expr *transform_of(struct workload *out, const float *matrix, int rows,
                                          int cols, int i, int j, int r, int s,
                                          const struct wl_expr *x)
{
    struct affine row = affine_add(affine_axis(i, cols), affine_axis(r, 1));
    struct affine col = affine_add(affine_axis(j, cols), affine_axis(s, 1));
    x = wl_binary(out, WL_MUL, wl_table(out, matrix, rows * cols, col), x);
    return wl_binary(out, WL_MUL, wl_table(out, matrix, rows * cols, row), x);
}

static int64_t tiles_of_strip(const struct shape *p)
{
    return p->tiles[STRIP_N] * p->tiles[STRIP_Y] * p->tiles[STRIP_X];
}

static int add_padded_input(const struct workload *w, const struct conv *c,
                            const struct shape *p, struct workload *out)
{
    struct layout l = layout_plain(
        5, (int64_t[]){p->padded[0], p->c, p->padded[1], p->padded[2], p->block});
    int padded = workload_tensor(out, "pad", WL_TEMP, &l);
    int s = workload_stage(out, "pad", padded, WL_NONE);
    static const char *const name[] = {"n", "c", "y", "x", "ci"};
    struct affine id[LAYOUT_MAX_DIMS] = {{0}};
    for (int d = 0; d < 5; d++)
        id[d] = affine_axis(workload_axis(out, s, name[d], l.l[d], false), 1);
    /* Past the end of the rows that were padded before there is nothing but zeros. */
    if (c->pad >= 0)
        out->stage[s].body =
            substitute(out, w->stage[c->pad].body, id, -1, -1, NULL);
    else
        out->stage[s].body = wl_load_guarded(out, c->x->tensor, id, 0);
    return padded;
}

/* v[i a + j, c, t, ci] = sum over r, s of B[i, r] B[j, s] padded[n, c, y + r, x + s, ci] */
static int add_input_transform(const struct shape *p, int padded, struct workload *out)
{
    struct layout l =
        layout_plain(4, (int64_t[]){(int64_t)p->a * p->a, p->c, tiles_of_strip(p), p->block});
    int v = workload_tensor(out, "v", WL_TEMP, &l);
    int st = workload_stage(out, "vin", v, WL_SUM);
    add_strip_axes(p, out, st);
    int n = workload_axis(out, st, "n", p->tiles[STRIP_N], false);
    int c = workload_axis(out, st, "c", p->c, false);
    int ty = workload_axis(out, st, "ty", p->tiles[STRIP_Y], false);
    int tx = workload_axis(out, st, "tx", p->tiles[STRIP_X], false);
    int i = workload_axis(out, st, "i", p->a, false), j = workload_axis(out, st, "j", p->a, false);
    int ci = workload_axis(out, st, "ci", p->block, false);
    int r = workload_axis(out, st, "r", p->a, true), s = workload_axis(out, st, "s", p->a, true);
    struct affine to[LAYOUT_MAX_DIMS] = {affine_add(affine_axis(i, p->a), affine_axis(j, 1)),
                                         affine_axis(c, 1), tile_number(p, n, ty, tx),
                                         affine_axis(ci, 1)};
    struct affine from[LAYOUT_MAX_DIMS] = {
        of_tile(p, STRIP_N, n), affine_axis(c, 1),
        affine_add(of_tile(p, STRIP_Y, ty), affine_axis(r, 1)),
        affine_add(of_tile(p, STRIP_X, tx), affine_axis(s, 1)), affine_axis(ci, 1)};
    memcpy(out->stage[st].out_idx, to, sizeof to);
    out->stage[st].body = transform_of(out, winograd_input_table(p->m), p->a, p->a, i, j, r, s,
                                       wl_load(out, padded, from));
    return v;
}

/* q[xi, k, t, ki] = sum over c, ci of v[xi, c, t, ci] u[xi, k b + ki, c b + ci] */
static int add_products(const struct shape *p, int v, int u, struct workload *out)
{
    struct layout l =
        layout_plain(4, (int64_t[]){(int64_t)p->a * p->a, p->k, tiles_of_strip(p), p->block});
    int q = workload_tensor(out, "q", WL_TEMP, &l);
    int st = workload_stage(out, "mul", q, WL_SUM);
    add_strip_axes(p, out, st);
    static const char *const name[] = {"xi", "k", "t", "ki"};
    int axis[4];
    struct affine to[LAYOUT_MAX_DIMS] = {{0}};
    for (int d = 0; d < 4; d++) {
        axis[d] = workload_axis(out, st, name[d], l.l[d], false);
        to[d] = affine_axis(axis[d], 1);
    }
    int c = workload_axis(out, st, "c", p->c, true);
    int ci = workload_axis(out, st, "ci", p->block, true);
    struct affine x[LAYOUT_MAX_DIMS] = {affine_axis(axis[0], 1), affine_axis(c, 1),
                                        affine_axis(axis[2], 1), affine_axis(ci, 1)};
    struct affine w[LAYOUT_MAX_DIMS] = {
        affine_axis(axis[0], 1), affine_add(affine_axis(axis[1], p->block), affine_axis(axis[3], 1)),
        affine_add(affine_axis(c, p->block), affine_axis(ci, 1))};
    memcpy(out->stage[st].out_idx, to, sizeof to);
    out->stage[st].body =
        wl_binary(out, WL_MUL, wl_load(out, v, x), wl_load_guarded(out, u, w, 0));
    return q;
}

/* y[n, k, y + p, x + q, ki] = epilogue(sum over i, j of A[p, i] A[q, j] q[i a + j, k, t, ki]) */
static void add_output_transform(const struct workload *w, const struct conv *c,
                                 const struct shape *p, int q, struct workload *out)
{
    int last = c->epilogue >= 0 ? c->epilogue : c->stage, y = w->stage[last].out, to = y;
    struct layout l = layout_plain(
        7, (int64_t[]){p->tiles[STRIP_N], p->k, p->tiles[STRIP_Y], p->tiles[STRIP_X], p->m, p->m,
                       p->block});
    if (c->epilogue >= 0)
        to = workload_tensor(out, "tile", WL_TEMP, &l);
    static const char *const name[] = {"n", "k", "ty", "tx", "p", "q", "ki"};
    enum { N, K, TY, TX, P, Q, KI };
    int st = workload_stage(out, "vout", to, WL_SUM), axis[7];
    struct affine id[LAYOUT_MAX_DIMS] = {{0}};
    add_strip_axes(p, out, st);
    for (int d = 0; d < 7; d++) {
        axis[d] = workload_axis(out, st, name[d], l.l[d], false);
        id[d] = affine_axis(axis[d], 1);
    }
    int i = workload_axis(out, st, "i", p->a, true), j = workload_axis(out, st, "j", p->a, true);
    struct affine from[LAYOUT_MAX_DIMS] = {affine_add(affine_axis(i, p->a), affine_axis(j, 1)),
                                           id[K], tile_number(p, axis[N], axis[TY], axis[TX]),
                                           id[KI]};
    out->stage[st].body = transform_of(out, winograd_output_table(p->m), p->m, p->a, axis[P],
                                       axis[Q], i, j, wl_load(out, q, from));
    struct affine place[LAYOUT_MAX_DIMS] = {
        of_tile(p, STRIP_N, axis[N]), id[K], affine_add(of_tile(p, STRIP_Y, axis[TY]), id[P]),
        affine_add(of_tile(p, STRIP_X, axis[TX]), id[Q]), id[KI]};
    int final = st;
    if (c->epilogue >= 0) {
        memcpy(out->stage[st].out_idx, id, sizeof id);
        final = workload_stage(out, w->stage[c->epilogue].name, y, WL_NONE);
        add_strip_axes(p, out, final);
        for (int d = 0; d < 7; d++)
            workload_axis(out, final, name[d], l.l[d], false);
        out->stage[final].body = substitute(out, w->stage[c->epilogue].body, place,
                                            w->stage[c->stage].out, to, id);
    }
    memcpy(out->stage[final].out_idx, place, sizeof place);
}

bool winograd_tiles(const struct workload *w, int m, struct winograd_tiles *out)
{
    struct conv c;
    if (!find_conv(w, &c) || w->nr_tensors + 8 > WL_MAX_TENSORS)
        return false;
    const struct wl_stage *s = &w->stage[c.stage];
    *out = (struct winograd_tiles){.images = s->extent[c.n],
                                   .rows = (s->extent[c.y] + m - 1) / m,
                                   .cols = (s->extent[c.x_] + m - 1) / m,
                                   .channels_in = s->extent[c.c] * c.block,
                                   .channels_out = s->extent[c.k] * c.block};
    return true;
}

void winograd_workload(const struct workload *w, int m, const struct winograd_strip *strip,
                       struct workload *out, int *weights, int *from)
{
    struct conv c;
    struct winograd_tiles t;
    bool found = find_conv(w, &c) && winograd_tiles(w, m, &t);
    assert(found);
    (void)found;
    struct shape p = {.m = m, .a = m + 2, .block = c.block, .k = t.channels_out / c.block,
                      .c = t.channels_in / c.block,
                      .tiles = {strip->images, strip->rows, strip->cols}};
    int64_t all[] = {t.images, t.rows, t.cols};
    for (int i = 0; i < NR_STRIP_AXES; i++) {
        p.strips[i] = (all[i] + p.tiles[i] - 1) / p.tiles[i];
        p.padded[i] = p.strips[i] * p.tiles[i] * (i ? m : 1) + (i ? 2 : 0);
    }
    workload_init(out, w->name);
    out->nr_tensors = w->nr_tensors;
    memcpy(out->tensor, w->tensor, sizeof out->tensor);
    const struct wl_tensor *wt = &w->tensor[c.w->tensor];
    struct layout ul = layout_plain(3, (int64_t[]){(int64_t)p.a * p.a, wt->dim[0], wt->dim[1]});
    int u = workload_tensor(out, "u", WL_CONST, &ul);
    int padded = add_padded_input(w, &c, &p, out);
    int v = add_input_transform(&p, padded, out);
    int q = add_products(&p, v, u, out);
    add_output_transform(w, &c, &p, q, out);
    *weights = u;
    *from = c.w->tensor;
}
