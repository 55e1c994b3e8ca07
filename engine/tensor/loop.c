/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tensor/loop.h"

#include <assert.h>
#include <string.h>

void loop_program_release(struct loop_program *p)
{
    arena_release(&p->arena);
    p->nr_nests = p->nr_buffers = p->nr_vars = 0;
}

struct lp_affine lp_affine_const(int64_t base)
{
    return (struct lp_affine){.base = base};
}

void lp_affine_term(struct lp_affine *a, int var, int64_t coef)
{
    if (!coef)
        return;
    int i = 0;
    while (i < a->nr && a->t[i].var < var)
        i++;
    if (i < a->nr && a->t[i].var == var) {
        a->t[i].coef += coef;
        if (!a->t[i].coef) {
            memmove(&a->t[i], &a->t[i + 1], (size_t)(a->nr - i - 1) * sizeof a->t[0]);
            a->nr--;
        }
        return;
    }
    assert(a->nr < LP_MAX_TERMS);
    memmove(&a->t[i + 1], &a->t[i], (size_t)(a->nr - i) * sizeof a->t[0]);
    a->t[i] = (struct lp_term){var, coef};
    a->nr++;
}

struct lp_affine lp_affine_add(const struct lp_affine *a, const struct lp_affine *b)
{
    struct lp_affine sum = *a;
    sum.base += b->base;
    for (int i = 0; i < b->nr; i++)
        lp_affine_term(&sum, b->t[i].var, b->t[i].coef);
    return sum;
}

struct lp_affine lp_affine_scale(const struct lp_affine *a, int64_t by)
{
    struct lp_affine r = {.base = a->base * by};
    for (int i = 0; i < a->nr; i++)
        lp_affine_term(&r, a->t[i].var, a->t[i].coef * by);
    return r;
}

int64_t lp_affine_coef(const struct lp_affine *a, int var)
{
    for (int i = 0; i < a->nr; i++)
        if (a->t[i].var == var)
            return a->t[i].coef;
    return 0;
}

/* Printing. */

static void indent(struct strbuf *out, int depth)
{
    for (int i = 0; i < depth; i++)
        strbuf_adds(out, "  ");
}

static void print_affine(const struct loop_program *p, const struct lp_affine *a,
                         struct strbuf *out)
{
    const char *sep = "";
    for (int i = 0; i < a->nr; i++) {
        strbuf_addf(out, "%s%s", sep, p->var_name[a->t[i].var]);
        if (a->t[i].coef != 1)
            strbuf_addf(out, "*%lld", (long long)a->t[i].coef);
        sep = " + ";
    }
    if (a->base || !a->nr)
        strbuf_addf(out, "%s%lld", sep, (long long)a->base);
}

static void print_cond(const struct loop_program *p, const struct lp_cond *c, struct strbuf *out)
{
    for (int i = 0; i < c->nr; i++) {
        strbuf_addf(out, "%s%lld <= ", i ? " and " : "", (long long)c->r[i].lo);
        print_affine(p, &c->r[i].a, out);
        strbuf_addf(out, " < %lld", (long long)c->r[i].hi);
    }
}

static void print_expr(const struct loop_program *p, const struct lp_expr *e, struct strbuf *out)
{
    static const char *const name[] = {
#define OP_NAME(id, text, arity) text,
        WL_OP_LIST(OP_NAME)
#undef OP_NAME
    };
    switch (e->op) {
    case LP_LITERAL:
        strbuf_addf(out, "%g", (double)e->literal);
        break;
    case LP_LOAD:
        strbuf_addf(out, "%s[", p->buffer[e->buf].name);
        print_affine(p, &e->at, out);
        strbuf_adds(out, "]");
        break;
    case LP_PICK:
        strbuf_addf(out, "%s[", p->buffer[e->buf].name);
        print_affine(p, &e->at, out);
        strbuf_addf(out, " + %lld * ", (long long)e->step);
        print_expr(p, e->a, out);
        strbuf_adds(out, "]");
        break;
    case LP_ACROSS:
        strbuf_addf(out, "%s over lanes of ", name[e->arith]);
        print_expr(p, e->a, out);
        break;
    case LP_GUARD:
        strbuf_adds(out, "(");
        print_cond(p, &e->cond, out);
        strbuf_adds(out, " ? ");
        print_expr(p, e->a, out);
        strbuf_addf(out, " : %g)", (double)e->literal);
        break;
    case LP_ARITH:
        strbuf_addf(out, "%s(", name[e->arith]);
        print_expr(p, e->a, out);
        if (e->b) {
            strbuf_adds(out, ", ");
            print_expr(p, e->b, out);
        }
        strbuf_adds(out, ")");
        break;
    }
}

static void print_list(const struct loop_program *p, const struct lp_node *n, int depth,
                       struct strbuf *out)
{
    static const char *const kind[] = {"for", "unroll", "vector", "parallel"};
    for (; n; n = n->next) {
        indent(out, depth);
        switch (n->kind) {
        case LP_FOR:
            strbuf_adds(out, kind[n->loop]);
            for (int i = 0; i < n->nr_vars; i++)
                strbuf_addf(out, "%s %s < %lld", i ? "," : "", p->var_name[n->var[i]],
                            (long long)n->extent[i]);
            if (n->again)
                strbuf_addf(out, ", the last %lld loaded anew", (long long)n->again);
            strbuf_adds(out, "\n");
            print_list(p, n->body, depth + 1, out);
            break;
        case LP_IF:
            strbuf_adds(out, "if ");
            print_cond(p, &n->cond, out);
            strbuf_adds(out, "\n");
            print_list(p, n->body, depth + 1, out);
            if (n->other) {
                indent(out, depth);
                strbuf_adds(out, "else\n");
                print_list(p, n->other, depth + 1, out);
            }
            break;
        case LP_STORE:
            strbuf_addf(out, "%s[", p->buffer[n->buf].name);
            print_affine(p, &n->at, out);
            strbuf_adds(out, "] = ");
            print_expr(p, n->value, out);
            if (n->cond.nr) {
                strbuf_adds(out, " where ");
                print_cond(p, &n->cond, out);
            }
            if (n->hint.nr) {
                strbuf_adds(out, " in vain unless ");
                print_cond(p, &n->hint, out);
            }
            strbuf_adds(out, "\n");
            break;
        }
    }
}

void loop_program_print(const struct loop_program *p, struct strbuf *out)
{
    static const char *const scope[] = {"tensor", "scratch", "register"};
    for (int i = 0; i < p->nr_buffers; i++)
        strbuf_addf(out, "%s %s %lld%s%s\n", scope[p->buffer[i].scope], p->buffer[i].name,
                    (long long)p->buffer[i].size, p->buffer[i].packed ? " packed" : "",
                    p->buffer[i].per_thread ? " per thread" : "");
    for (int i = 0; i < p->nr_nests; i++) {
        strbuf_addf(out, "nest %s, %d lanes\n", p->nest[i].name, p->nest[i].lanes);
        print_list(p, p->nest[i].body, 1, out);
    }
}
