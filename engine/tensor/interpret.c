/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreter of loop programs: what a program means, without a code generator. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "engine/tensor/loop.h"

struct machine {
    const struct loop_program *p;
    float *const *buf;
    float *reg[LP_MAX_BUFFERS]; /* size * lanes elements */
    int64_t var[LP_MAX_VARS];
    int lanes;
    int64_t lane;               /* value of the vector variable, 0 outside */
};

static int64_t eval_affine(const struct machine *m, const struct lp_affine *a)
{
    int64_t v = a->base;
    for (int i = 0; i < a->nr; i++)
        v += a->t[i].coef * m->var[a->t[i].var];
    return v;
}

static bool eval_cond(const struct machine *m, const struct lp_cond *c)
{
    for (int i = 0; i < c->nr; i++) {
        int64_t v = eval_affine(m, &c->r[i].a);
        if (v < c->r[i].lo || v >= c->r[i].hi)
            return false;
    }
    return true;
}

static float *element(struct machine *m, int buf, const struct lp_affine *at)
{
    int64_t i = eval_affine(m, at);
    if (m->p->buffer[buf].scope == LP_REGISTER)
        return &m->reg[buf][i * m->lanes + m->lane];
    return &m->buf[buf][i];
}

static float eval_expr(struct machine *m, const struct lp_expr *e);
static float eval_arith(enum wl_op op, float a, float b);

static float eval_across(struct machine *m, const struct lp_expr *e)
{
    float v = eval_expr(m, e->a);
    for (m->lane = 1; m->lane < e->count; m->lane++)
        v = eval_arith(e->arith, v, eval_expr(m, e->a));
    m->lane = 0;
    return v;
}

static float eval_expr(struct machine *m, const struct lp_expr *e)
{
    switch (e->op) {
    case LP_LITERAL:
        return e->literal;
    case LP_LOAD:
        return *element(m, e->buf, &e->at);
    case LP_PICK: {
        float want = eval_expr(m, e->a);
        int64_t last = e->count - 1;
        int64_t i = !(want > 0) ? 0 : want > (float)last ? last : (int64_t)want;
        return element(m, e->buf, &e->at)[i * e->step];
    }
    case LP_GUARD:
        return eval_cond(m, &e->cond) ? eval_expr(m, e->a) : e->literal;
    case LP_ACROSS:
        return eval_across(m, e);
    case LP_ARITH:
        break;
    }
    float a = eval_expr(m, e->a), b = e->b ? eval_expr(m, e->b) : 0;
    return eval_arith(e->arith, a, b);
}

static float eval_arith(enum wl_op op, float a, float b)
{
    switch (op) {
    case WL_ADD:
        return a + b;
    case WL_SUB:
        return a - b;
    case WL_MUL:
        return a * b;
    case WL_DIV:
        return a / b;
    case WL_MAX:
        return a > b ? a : b;
    case WL_MIN:
        return a < b ? a : b;
    case WL_POW:
        return powf(a, b);
    case WL_NEG:
        return -a;
    case WL_ABS:
        return fabsf(a);
    case WL_EXP:
        return expf(a);
    case WL_LOG:
        return logf(a);
    case WL_SQRT:
        return sqrtf(a);
    case WL_TANH:
        return tanhf(a);
    case WL_ERF:
        return erff(a);
    case WL_FLOOR:
        return floorf(a);
    case WL_ROUND:
        return nearbyintf(a);
    case WL_SIN:
        return sinf(a);
    case WL_COS:
        return cosf(a);
    case WL_LESS:
        return a < b;
    case WL_EQUAL:
        return a <= b && a >= b;
    case WL_KEEP:
        return a < 0 || a > 0 ? b : 0;
    default:
        assert(!"no arithmetic operator");
        return 0;
    }
}

static void run_list(struct machine *m, const struct lp_node *n);

static void run_loop(struct machine *m, const struct lp_node *n, int depth)
{
    if (depth == n->nr_vars) {
        run_list(m, n->body);
        return;
    }
    for (int64_t i = 0; i < n->extent[depth]; i++) {
        m->var[n->var[depth]] = i;
        if (n->loop == LP_VECTOR)
            m->lane = i;
        run_loop(m, n, depth + 1);
    }
    m->var[n->var[depth]] = 0;
    if (n->loop == LP_VECTOR)
        m->lane = 0;
}

static void run_list(struct machine *m, const struct lp_node *n)
{
    for (; n; n = n->next) {
        switch (n->kind) {
        case LP_FOR:
            run_loop(m, n, 0);
            break;
        case LP_IF:
            run_list(m, eval_cond(m, &n->cond) ? n->body : n->other);
            break;
        case LP_STORE:
            if (eval_cond(m, &n->cond) && eval_cond(m, &n->hint)) {
                float v = eval_expr(m, n->value);
                *element(m, n->buf, &n->at) = v;
            }
            break;
        }
    }
}

void loop_program_interpret(const struct loop_program *p, float *const *buf)
{
    struct machine m = {.p = p, .buf = buf, .lanes = 1};
    for (int i = 0; i < p->nr_nests; i++)
        if (p->nest[i].lanes > m.lanes)
            m.lanes = p->nest[i].lanes;
    for (int i = 0; i < p->nr_buffers; i++)
        if (p->buffer[i].scope == LP_REGISTER)
            m.reg[i] = xcalloc((size_t)(p->buffer[i].size * m.lanes), sizeof(float));
    for (int i = 0; i < p->nr_nests; i++)
        run_list(&m, p->nest[i].body);
    for (int i = 0; i < p->nr_buffers; i++)
        free(m.reg[i]);
}
