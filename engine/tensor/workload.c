/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tensor/workload.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/strbuf.h"

/* Beyond this an array cannot be real, and products of extents still fit in 64 bits. */
#define MAX_ELEMENTS (INT64_C(1) << 40)

/* Deeper expressions come from no operator; the limit bounds the recursions below. */
enum { MAX_DEPTH = 200 };

/* A picked index is a float32: whole numbers are exact up to here. */
enum { MAX_PICKED = 1 << 24 };

static const char *const op_text[] = {
#define WL_OP_TEXT(name, text, arity) text,
    WL_OP_LIST(WL_OP_TEXT)
#undef WL_OP_TEXT
};

static const int op_arity[] = {
#define WL_OP_ARITY(name, text, arity) arity,
    WL_OP_LIST(WL_OP_ARITY)
#undef WL_OP_ARITY
};

static const char *const role_text[] = {"input", "const", "temp", "output"};
static const char *const combine_text[] = {"none", "sum", "max", "min", "prod"};

static void copy_name(char *out, size_t size, const char *name)
{
    snprintf(out, size, "%s", name);
}

void workload_init(struct workload *w, const char *name)
{
    memset(w, 0, sizeof *w);
    copy_name(w->name, sizeof w->name, name);
}

void workload_release(struct workload *w)
{
    free(w->text);
    w->text = NULL;
    arena_release(&w->arena);
    w->nr_tensors = w->nr_stages = 0;
}

/* Too many of something: counts grow past the limits, which workload_finish() reports; the last
 * slot is overwritten meanwhile. */
int workload_tensor(struct workload *w, const char *name, enum wl_role role,
                    const struct layout *layout)
{
    int nr = w->nr_tensors < WL_MAX_TENSORS ? w->nr_tensors : WL_MAX_TENSORS - 1;
    w->nr_tensors++;
    struct wl_tensor *t = &w->tensor[nr];
    memset(t, 0, sizeof *t);
    copy_name(t->name, sizeof t->name, name);
    t->role = role;
    t->layout = *layout;
    assert(layout->nr_p <= LAYOUT_MAX_DIMS);
    t->nr_dims = layout->nr_p;
    for (int i = 0; i < layout->nr_p; i++)
        t->dim[i] = layout->p[i].extent;
    return nr;
}

int workload_stage(struct workload *w, const char *name, int out, enum wl_combine combine)
{
    int nr = w->nr_stages < WL_MAX_STAGES ? w->nr_stages : WL_MAX_STAGES - 1;
    w->nr_stages++;
    struct wl_stage *s = &w->stage[nr];
    memset(s, 0, sizeof *s);
    copy_name(s->name, sizeof s->name, name);
    s->out = out;
    s->combine = combine;
    for (int i = 0; i < w->tensor[out].nr_dims; i++)
        s->out_idx[i] = affine_axis(i, 1);
    return nr;
}

int workload_axis(struct workload *w, int stage, const char *name, int64_t extent, bool reduce)
{
    struct wl_stage *s = &w->stage[stage];
    int nr = s->nr_spatial + s->nr_reduce;
    assert(nr < WL_MAX_AXES);
    assert(reduce || s->nr_reduce == 0);
    copy_name(s->axis[nr], sizeof s->axis[nr], name);
    s->extent[nr] = extent;
    if (reduce)
        s->nr_reduce++;
    else
        s->nr_spatial++;
    return nr;
}

const struct wl_expr *wl_literal(struct workload *w, float value)
{
    struct wl_expr *x = ARENA_NEW(&w->arena, struct wl_expr);
    x->op = WL_LITERAL;
    x->literal = value;
    return x;
}

const struct wl_expr *wl_table(struct workload *w, const float *table, int nr, struct affine idx)
{
    struct wl_expr *x = ARENA_NEW(&w->arena, struct wl_expr);
    x->op = WL_TABLE;
    x->table = table;
    x->nr_table = nr;
    x->idx[0] = idx;
    return x;
}

static struct wl_expr *load(struct workload *w, int tensor, const struct affine *idx)
{
    struct wl_expr *x = ARENA_NEW(&w->arena, struct wl_expr);
    x->op = WL_LOAD;
    x->tensor = tensor;
    for (int i = 0; i < w->tensor[tensor].nr_dims; i++)
        x->idx[i] = idx[i];
    return x;
}

const struct wl_expr *wl_load(struct workload *w, int tensor, const struct affine *idx)
{
    return load(w, tensor, idx);
}

const struct wl_expr *wl_load_guarded(struct workload *w, int tensor, const struct affine *idx,
                                      float pad)
{
    struct wl_expr *x = load(w, tensor, idx);
    x->guarded = true;
    x->pad = pad;
    return x;
}

const struct wl_expr *wl_pick(struct workload *w, int tensor, const struct affine *idx, int dim,
                              const struct wl_expr *at)
{
    struct wl_expr *x = load(w, tensor, idx);
    x->op = WL_PICK;
    x->dim = dim;
    x->idx[dim] = affine_const(0);
    x->a = at;
    return x;
}

const struct wl_expr *wl_unary(struct workload *w, enum wl_op op, const struct wl_expr *a)
{
    assert(op_arity[op] == 1);
    struct wl_expr *x = ARENA_NEW(&w->arena, struct wl_expr);
    x->op = op;
    x->a = a;
    return x;
}

const struct wl_expr *wl_binary(struct workload *w, enum wl_op op, const struct wl_expr *a,
                                const struct wl_expr *b)
{
    assert(op_arity[op] == 2);
    struct wl_expr *x = ARENA_NEW(&w->arena, struct wl_expr);
    x->op = op;
    x->a = a;
    x->b = b;
    return x;
}

struct affine affine_const(int64_t base)
{
    return (struct affine){.base = base};
}

struct affine affine_axis(int axis, int64_t coef)
{
    struct affine a = {0};
    a.coef[axis] = coef;
    return a;
}

struct affine affine_add(struct affine a, struct affine b)
{
    a.base += b.base;
    for (int i = 0; i < WL_MAX_AXES; i++)
        a.coef[i] += b.coef[i];
    return a;
}

/* ---- checks ---- */

/* Smallest and largest value of `a` over the axes of `s`. False where a coefficient is absurd. */
static bool affine_range(const struct wl_stage *s, const struct affine *a, int64_t *low,
                         int64_t *high)
{
    int nr = s->nr_spatial + s->nr_reduce;
    *low = *high = a->base;
    if (a->base > MAX_ELEMENTS || a->base < -MAX_ELEMENTS)
        return false;
    for (int i = 0; i < WL_MAX_AXES; i++) {
        if (!a->coef[i])
            continue;
        int64_t reach;
        if (i >= nr || __builtin_mul_overflow(a->coef[i], s->extent[i] - 1, &reach) ||
            reach > MAX_ELEMENTS || reach < -MAX_ELEMENTS)
            return false;
        if (reach < 0)
            *low += reach;
        else
            *high += reach;
    }
    return true;
}

static int check_load(const struct workload *w, const struct wl_stage *s, const struct wl_expr *x,
                      const bool *filled, struct err *e)
{
    if (x->tensor < 0 || x->tensor >= w->nr_tensors)
        return err_set(e, ERR_INPUT,
                       "stage \"%s\" of workload \"%s\" loads tensor %d, which it has not", s->name,
                       w->name, x->tensor);
    const struct wl_tensor *t = &w->tensor[x->tensor];
    if (!filled[x->tensor] || x->tensor == s->out)
        return err_set(e, ERR_INPUT,
                       "stage \"%s\" of workload \"%s\" loads \"%s\" before it is filled", s->name,
                       w->name, t->name);
    for (int i = 0; i < t->nr_dims; i++) {
        int64_t low, high;
        if (!affine_range(s, &x->idx[i], &low, &high))
            return err_set(
                e, ERR_INPUT,
                "stage \"%s\" of workload \"%s\": index %d of \"%s\" is out of all bounds", s->name,
                w->name, i, t->name);
        if (!x->guarded && (low < 0 || high >= t->dim[i]))
            return err_set(e, ERR_INPUT,
                           "stage \"%s\" of workload \"%s\": index %d of \"%s\" runs from %lld to "
                           "%lld outside its extent %lld, guard the load",
                           s->name, w->name, i, t->name, (long long)low, (long long)high,
                           (long long)t->dim[i]);
    }
    return 0;
}

static int check_expr(const struct workload *w, const struct wl_stage *s, const struct wl_expr *x,
                      const bool *filled, int depth, struct err *e)
{
    if (!x || depth > MAX_DEPTH)
        return err_set(e, ERR_INPUT, "the body of stage \"%s\" of workload \"%s\" is %s", s->name,
                       w->name, x ? "nested too deeply" : "missing");
    if (x->op == WL_LOAD)
        return check_load(w, s, x, filled, e);
    int rc = 0;
    if (x->op == WL_PICK) {
        const struct wl_tensor *t = &w->tensor[x->tensor];
        if ((t->role != WL_INPUT && t->role != WL_CONST) || x->dim < 0 || x->dim >= t->nr_dims ||
            t->dim[x->dim] > MAX_PICKED)
            return err_set(e, ERR_LIMIT,
                           "stage \"%s\" of workload \"%s\" picks from \"%s\", which is no input "
                           "or has more than %d elements there",
                           s->name, w->name, t->name, MAX_PICKED);
        rc = check_load(w, s, x, filled, e);
    }
    if (!rc && op_arity[x->op] > 0)
        rc = check_expr(w, s, x->a, filled, depth + 1, e);
    if (!rc && op_arity[x->op] > 1)
        rc = check_expr(w, s, x->b, filled, depth + 1, e);
    return rc;
}

/*
 * Do different points of the spatial axes fill different elements? In the linear address of the
 * element each axis has one coefficient; sorted by size, each must exceed what all smaller ones
 * reach together. That is sufficient, and necessary for the boxes that operators fill.
 */
static bool out_is_injective(const struct wl_stage *s, const struct wl_tensor *t)
{
    int64_t step[WL_MAX_AXES], extent[WL_MAX_AXES];
    int nr = 0;
    for (int a = 0; a < s->nr_spatial; a++) {
        if (s->extent[a] == 1)
            continue;
        int64_t linear = 0, stride = 1;
        for (int i = t->nr_dims; i-- > 0;) {
            linear += s->out_idx[i].coef[a] * stride;
            stride *= t->dim[i];
        }
        linear = linear < 0 ? -linear : linear;
        int k = nr++;
        for (; k > 0 && step[k - 1] > linear; k--) {
            step[k] = step[k - 1];
            extent[k] = extent[k - 1];
        }
        step[k] = linear;
        extent[k] = s->extent[a];
    }
    int64_t reach = 0;
    for (int k = 0; k < nr; k++) {
        if (step[k] <= reach)
            return false;
        reach += step[k] * (extent[k] - 1);
    }
    return true;
}

static int check_out(const struct workload *w, const struct wl_stage *s, struct err *e)
{
    const struct wl_tensor *t = &w->tensor[s->out];
    if (t->role != WL_TEMP && t->role != WL_OUTPUT)
        return err_set(e, ERR_INPUT, "stage \"%s\" of workload \"%s\" fills \"%s\", which is an %s",
                       s->name, w->name, t->name, role_text[t->role]);
    for (int i = 0; i < t->nr_dims; i++) {
        int64_t low, high;
        bool ok = affine_range(s, &s->out_idx[i], &low, &high) && low >= 0 && high < t->dim[i];
        for (int a = s->nr_spatial; ok && a < WL_MAX_AXES; a++)
            ok = !s->out_idx[i].coef[a];
        if (!ok)
            return err_set(e, ERR_INPUT,
                           "stage \"%s\" of workload \"%s\" fills outside dimension %d of \"%s\"",
                           s->name, w->name, i, t->name);
    }
    if (!out_is_injective(s, t))
        return err_set(e, ERR_INPUT,
                       "stage \"%s\" of workload \"%s\" fills elements of \"%s\" more than once",
                       s->name, w->name, t->name);
    return 0;
}

/* Extents positive, product below the limit; *points gets the number of spatial points. */
static int check_axes(const struct workload *w, const struct wl_stage *s, int64_t *points,
                      struct err *e)
{
    int64_t all = 1;
    *points = 1;
    for (int i = 0; i < s->nr_spatial + s->nr_reduce; i++) {
        if (s->extent[i] < 1)
            return err_set(e, ERR_INPUT,
                           "axis \"%s\" of stage \"%s\" of workload \"%s\" has extent %lld",
                           s->axis[i], s->name, w->name, (long long)s->extent[i]);
        if (i < s->nr_spatial &&
            (__builtin_mul_overflow(*points, s->extent[i], points) || *points >= MAX_ELEMENTS))
            return err_set(e, ERR_LIMIT, "stage \"%s\" of workload \"%s\" has too many elements",
                           s->name, w->name);
        if (__builtin_mul_overflow(all, s->extent[i], &all))
            return err_set(e, ERR_LIMIT, "stage \"%s\" of workload \"%s\" has too many iterations",
                           s->name, w->name);
    }
    if ((s->combine == WL_NONE) != (s->nr_reduce == 0))
        return err_set(
            e, ERR_INPUT,
            "stage \"%s\" of workload \"%s\" must combine exactly when it has reduction axes",
            s->name, w->name);
    return 0;
}

static int check_tensors(const struct workload *w, struct err *e)
{
    int outputs = 0;
    for (int i = 0; i < w->nr_tensors; i++) {
        const struct wl_tensor *t = &w->tensor[i];
        int64_t n = 1;
        for (int k = 0; k < t->nr_dims; k++)
            if (t->dim[k] < 1 || __builtin_mul_overflow(n, t->dim[k], &n) || n >= MAX_ELEMENTS)
                return err_set(e, ERR_LIMIT, "tensor \"%s\" of workload \"%s\" is %s", t->name,
                               w->name, t->dim[k] < 1 ? "empty" : "too large");
        if (t->role == WL_CONST && !layout_is_plain(&t->layout))
            return err_set(e, ERR_INPUT,
                           "constant \"%s\" of workload \"%s\" is not in plain layout", t->name,
                           w->name);
        outputs += t->role == WL_OUTPUT;
    }
    if (outputs != 1)
        return err_set(e, ERR_INPUT, "workload \"%s\" has %d outputs, it must have one", w->name,
                       outputs);
    return 0;
}

static int check_stages(const struct workload *w, struct err *e)
{
    bool filled[WL_MAX_TENSORS];
    int64_t points[WL_MAX_TENSORS] = {0};
    for (int i = 0; i < w->nr_tensors; i++)
        filled[i] = w->tensor[i].role == WL_INPUT || w->tensor[i].role == WL_CONST;
    for (int i = 0; i < w->nr_stages; i++) {
        const struct wl_stage *s = &w->stage[i];
        int64_t nr;
        int rc = check_axes(w, s, &nr, e);
        if (!rc)
            rc = check_out(w, s, e);
        if (!rc)
            rc = check_expr(w, s, s->body, filled, 0, e);
        if (rc)
            return rc;
        points[s->out] += nr;
        filled[s->out] = true;
    }
    for (int i = 0; i < w->nr_tensors; i++) {
        const struct wl_tensor *t = &w->tensor[i];
        if ((t->role == WL_TEMP || t->role == WL_OUTPUT) &&
            points[i] < layout_stored_size(&t->layout))
            return err_set(e, ERR_INPUT, "no stage of workload \"%s\" fills all of \"%s\"", w->name,
                           t->name);
    }
    return 0;
}

/* ---- canonical text ---- */

static void text_affine(struct strbuf *sb, const struct wl_stage *s, const struct affine *a)
{
    bool any = false;
    for (int i = 0; i < s->nr_spatial + s->nr_reduce; i++) {
        if (!a->coef[i])
            continue;
        if (any && a->coef[i] > 0)
            strbuf_addc(sb, '+');
        if (a->coef[i] == -1)
            strbuf_addc(sb, '-');
        else if (a->coef[i] != 1)
            strbuf_addf(sb, "%lld*", (long long)a->coef[i]);
        strbuf_adds(sb, s->axis[i]);
        any = true;
    }
    if (a->base || !any)
        strbuf_addf(sb, any ? "%+lld" : "%lld", (long long)a->base);
}

static void text_index(struct strbuf *sb, const struct wl_stage *s, const struct wl_tensor *t,
                       const struct affine *idx)
{
    strbuf_addf(sb, "%s[", t->name);
    for (int i = 0; i < t->nr_dims; i++) {
        if (i)
            strbuf_addc(sb, ',');
        text_affine(sb, s, &idx[i]);
    }
    strbuf_addc(sb, ']');
}

static void text_expr(struct strbuf *sb, const struct workload *w, const struct wl_stage *s,
                      const struct wl_expr *x)
{
    if (x->op == WL_LITERAL) {
        strbuf_addf(sb, "%.9g", (double)x->literal);
    } else if (x->op == WL_LOAD) {
        text_index(sb, s, &w->tensor[x->tensor], x->idx);
        if (x->guarded)
            strbuf_addf(sb, "?%.9g", (double)x->pad);
    } else if (x->op == WL_TABLE) {
        strbuf_adds(sb, "table");
        for (int i = 0; i < x->nr_table; i++)
            strbuf_addf(sb, "%c%.9g", i ? ',' : '{', (double)x->table[i]);
        strbuf_adds(sb, "}[");
        text_affine(sb, s, &x->idx[0]);
        strbuf_addc(sb, ']');
    } else {
        strbuf_addf(sb, "%s(", op_text[x->op]);
        if (x->op == WL_PICK) {
            text_index(sb, s, &w->tensor[x->tensor], x->idx);
            strbuf_addf(sb, ", %d, ", x->dim);
        }
        text_expr(sb, w, s, x->a);
        if (op_arity[x->op] > 1) {
            strbuf_adds(sb, ", ");
            text_expr(sb, w, s, x->b);
        }
        strbuf_addc(sb, ')');
    }
}

static void text_tensor(struct strbuf *sb, const struct wl_tensor *t)
{
    strbuf_addf(sb, "%s %s [", role_text[t->role], t->name);
    for (int i = 0; i < t->layout.nr_l; i++)
        strbuf_addf(sb, "%s%lld", i ? "," : "", (long long)t->layout.l[i]);
    strbuf_addc(sb, ']');
    if (!layout_is_plain(&t->layout)) {
        strbuf_adds(sb, " stored ");
        for (int i = 0; i < t->layout.nr_p; i++) {
            const struct layout_dim *p = &t->layout.p[i];
            strbuf_addf(sb, "{%lld,d%d,%lld}", (long long)p->extent, p->dim, (long long)p->coef);
        }
    }
    strbuf_addc(sb, '\n');
}

static void text_stage(struct strbuf *sb, const struct workload *w, const struct wl_stage *s)
{
    strbuf_addf(sb, "stage %s [", s->name);
    for (int i = 0; i < s->nr_spatial + s->nr_reduce; i++)
        strbuf_addf(sb, "%s%s:%lld",
                    i == s->nr_spatial ? " | "
                    : i                ? ", "
                                       : "",
                    s->axis[i], (long long)s->extent[i]);
    strbuf_adds(sb, "] ");
    text_index(sb, s, &w->tensor[s->out], s->out_idx);
    strbuf_addf(sb, " %s ", s->combine == WL_NONE ? "=" : combine_text[s->combine]);
    text_expr(sb, w, s, s->body);
    strbuf_addc(sb, '\n');
}

static void make_text(struct workload *w)
{
    struct strbuf sb = {0};
    strbuf_addf(&sb, "workload %s\n", w->name);
    for (int i = 0; i < w->nr_tensors; i++)
        text_tensor(&sb, &w->tensor[i]);
    for (int i = 0; i < w->nr_stages; i++)
        text_stage(&sb, w, &w->stage[i]);
    free(w->text);
    w->text = strbuf_detach(&sb);
    uint64_t h = hash64(HASH64_INIT, w->text, strlen(w->text));
    snprintf(w->id, sizeof w->id, "%016llx", (unsigned long long)h);
}

int workload_finish(struct workload *w, struct err *e)
{
    if (w->nr_tensors > WL_MAX_TENSORS || w->nr_stages > WL_MAX_STAGES) {
        int rc =
            err_set(e, ERR_LIMIT,
                    "workload \"%s\" is too large: %d tensors (at most %d), %d stages (at most %d)",
                    w->name, w->nr_tensors, WL_MAX_TENSORS, w->nr_stages, WL_MAX_STAGES);
        w->nr_tensors = w->nr_stages = 0;
        return rc;
    }
    int rc = check_tensors(w, e);
    if (!rc)
        rc = check_stages(w, e);
    if (!rc)
        make_text(w);
    return rc;
}

int64_t workload_bytes(const struct workload *w)
{
    int64_t n = 0;
    for (int i = 0; i < w->nr_tensors; i++)
        if (w->tensor[i].role != WL_TEMP)
            n += layout_stored_size(&w->tensor[i].layout);
    return n * (int64_t)sizeof(float);
}

int workload_output(const struct workload *w)
{
    for (int i = 0; i < w->nr_tensors; i++)
        if (w->tensor[i].role == WL_OUTPUT)
            return i;
    return -1;
}

/* ---- interpreter ---- */

struct interpreter {
    const struct workload *w;
    const struct wl_stage *s;
    float *const *stored;
    int64_t at[WL_MAX_AXES];
};

static int64_t eval_affine(const struct interpreter *in, const struct affine *a)
{
    int64_t v = a->base;
    for (int i = 0; i < in->s->nr_spatial + in->s->nr_reduce; i++)
        v += a->coef[i] * in->at[i];
    return v;
}

static double eval_load(const struct interpreter *in, const struct wl_expr *x)
{
    const struct wl_tensor *t = &in->w->tensor[x->tensor];
    int64_t at = 0;
    for (int i = 0; i < t->nr_dims; i++) {
        int64_t k = eval_affine(in, &x->idx[i]);
        if (k < 0 || k >= t->dim[i])
            return (double)x->pad;
        at = at * t->dim[i] + k;
    }
    return (double)in->stored[x->tensor][at];
}

static double eval(const struct interpreter *in, const struct wl_expr *x);

static double eval_pick(const struct interpreter *in, const struct wl_expr *x)
{
    const struct wl_tensor *t = &in->w->tensor[x->tensor];
    double want = eval(in, x->a);
    int64_t last = t->dim[x->dim] - 1, at = 0;
    int64_t picked = !(want > 0) ? 0 : want > (double)last ? last : (int64_t)want;
    for (int i = 0; i < t->nr_dims; i++)
        at = at * t->dim[i] + (i == x->dim ? picked : eval_affine(in, &x->idx[i]));
    return (double)in->stored[x->tensor][at];
}

static double eval(const struct interpreter *in, const struct wl_expr *x)
{
    if (x->op == WL_PICK)
        return eval_pick(in, x);
    if (x->op == WL_LITERAL)
        return (double)x->literal;
    if (x->op == WL_LOAD)
        return eval_load(in, x);
    if (x->op == WL_TABLE)
        return (double)x->table[eval_affine(in, &x->idx[0])];
    double a = eval(in, x->a), b = op_arity[x->op] > 1 ? eval(in, x->b) : 0;
    switch (x->op) {
    case WL_ADD:
        return a + b;
    case WL_SUB:
        return a - b;
    case WL_MUL:
        return a * b;
    case WL_DIV:
        return a / b;
    case WL_MAX:
        return fmax(a, b);
    case WL_MIN:
        return fmin(a, b);
    case WL_POW:
        return pow(a, b);
    case WL_NEG:
        return -a;
    case WL_ABS:
        return fabs(a);
    case WL_EXP:
        return exp(a);
    case WL_LOG:
        return log(a);
    case WL_SQRT:
        return sqrt(a);
    case WL_TANH:
        return tanh(a);
    case WL_ERF:
        return erf(a);
    case WL_FLOOR:
        return floor(a);
    case WL_ROUND:
        return nearbyint(a);
    case WL_SIN:
        return sin(a);
    case WL_COS:
        return cos(a);
    case WL_LESS:
        return a < b;
    case WL_EQUAL:
        return a <= b && a >= b;
    case WL_KEEP:
        return a < 0 || a > 0 ? b : 0;
    default:
        return 0;
    }
}

static double combine(enum wl_combine how, double a, double b)
{
    switch (how) {
    case WL_SUM:
        return a + b;
    case WL_MAXIMUM:
        return fmax(a, b);
    case WL_MINIMUM:
        return fmin(a, b);
    case WL_PRODUCT:
        return a * b;
    default:
        return b;
    }
}

float wl_neutral(enum wl_combine how)
{
    switch (how) {
    case WL_MAXIMUM:
        return -INFINITY;
    case WL_MINIMUM:
        return INFINITY;
    case WL_PRODUCT:
        return 1;
    default:
        return 0;
    }
}

/* Next point of axes [from, to); false after the last. */
static bool advance(struct interpreter *in, int from, int to)
{
    for (int i = to; i-- > from;) {
        if (++in->at[i] < in->s->extent[i])
            return true;
        in->at[i] = 0;
    }
    return false;
}

static void interpret_stage(struct interpreter *in)
{
    const struct wl_stage *s = in->s;
    const struct wl_tensor *t = &in->w->tensor[s->out];
    int nr = s->nr_spatial + s->nr_reduce;
    memset(in->at, 0, sizeof in->at);
    do {
        double v = wl_neutral(s->combine);
        do
            v = combine(s->combine, v, eval(in, s->body));
        while (advance(in, s->nr_spatial, nr));
        int64_t at = 0;
        for (int i = 0; i < t->nr_dims; i++)
            at = at * t->dim[i] + eval_affine(in, &s->out_idx[i]);
        in->stored[s->out][at] = (float)v;
    } while (advance(in, 0, s->nr_spatial));
}

void workload_interpret(const struct workload *w, float *const *stored)
{
    struct interpreter in = {.w = w, .stored = stored};
    for (int i = 0; i < w->nr_stages; i++) {
        in.s = &w->stage[i];
        interpret_stage(&in);
    }
}
