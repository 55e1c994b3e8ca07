/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, conditions, loads, arithmetic and stores. */
#include "backends/llvm/emit_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backends/llvm/emit_math.h"
#include "engine/base/arena.h"

LLVMTypeRef emit_value_type(const struct emitter *m)
{
    return m->in_vector ? LLVMVectorType(m->f32, (unsigned)m->lanes) : m->f32;
}

static LLVMValueRef const_i64(const struct emitter *m, int64_t v)
{
    return LLVMConstInt(m->i64, (unsigned long long)v, true);
}

static LLVMValueRef const_splat(const struct emitter *m, LLVMValueRef c)
{
    LLVMValueRef v[64];
    assert(m->lanes <= 64);
    for (int i = 0; i < m->lanes; i++)
        v[i] = c;
    return LLVMConstVector(v, (unsigned)m->lanes);
}

LLVMValueRef emit_splat(struct emitter *m, LLVMValueRef scalar)
{
    if (LLVMIsConstant(scalar))
        return const_splat(m, scalar);
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), (unsigned)m->lanes);
    LLVMValueRef one = LLVMBuildInsertElement(m->b, LLVMGetPoison(type), scalar,
                                              LLVMConstInt(m->i32, 0, false), "");
    LLVMTypeRef index = LLVMVectorType(m->i32, (unsigned)m->lanes);
    return LLVMBuildShuffleVector(m->b, one, LLVMGetPoison(type), LLVMConstNull(index), "");
}

/* Addresses. */

/* An affine form split into what is known now and what is not. */
struct split {
    int64_t constant, step; /* step: coefficient of the lane */
    int nr;
    struct lp_term term[LP_MAX_TERMS]; /* serial variables, outermost loop first */
};

static struct split split_affine(const struct emitter *m, const struct lp_affine *a)
{
    struct split s = {.constant = a->base};
    for (int i = 0; i < a->nr; i++) {
        const struct var_state *v = &m->var[a->t[i].var];
        switch (v->kind) {
        case VAR_CONST:
            s.constant += v->constant * a->t[i].coef;
            break;
        case VAR_LANE:
            s.step += a->t[i].coef;
            break;
        case VAR_VALUE: {
            int at = s.nr++;
            while (at > 0 && m->var[s.term[at - 1].var].depth > v->depth) {
                s.term[at] = s.term[at - 1];
                at--;
            }
            s.term[at] = a->t[i];
            break;
        }
        case VAR_NONE:
            assert(!"loop variable outside of its loop");
        }
    }
    return s;
}

/* Positions the builder where a value that depends on the loop at `depth` belongs: at the end of
 * the block that dominates its body, which is the current block or has its terminator already. */
static void move_to_depth(struct emitter *m, int depth)
{
    LLVMBasicBlockRef block = m->entry[depth];
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    if (end)
        LLVMPositionBuilderBefore(m->b, end);
    else
        LLVMPositionBuilderAtEnd(m->b, block);
}

static LLVMValueRef add_step(struct emitter *m, LLVMValueRef from, LLVMValueRef by)
{
    return LLVMTypeOf(from) == m->ptr ? LLVMBuildInBoundsGEP2(m->b, m->f32, from, &by, 1, "")
                                      : LLVMBuildNSWAdd(m->b, from, by, "");
}

/*
 * from + coef * var: a pointer to floats, or an i64 when `from` is one. Emitted once a loop.
 *
 * A pointer is kept from one iteration to the next and moved on by coef; LLVM's own pass for that
 * finds nothing better and took a quarter of a build. An index is needed in a comparison only, and
 * made there: kept, it would be one more value that wants a register through the whole body.
 */
static LLVMValueRef hoist(struct emitter *m, LLVMValueRef from, struct lp_term t)
{
    for (int i = m->nr_hoisted - 1; i >= 0; i--)
        if (m->hoisted[i].from == from && m->hoisted[i].var == t.var &&
            m->hoisted[i].coef == t.coef)
            return m->hoisted[i].value;
    const struct var_state *v = &m->var[t.var];
    LLVMBasicBlockRef here = LLVMGetInsertBlock(m->b);
    bool steps = v->counts && LLVMTypeOf(from) == m->ptr;
    LLVMValueRef value;
    if (steps) {
        LLVMPositionBuilderBefore(m->b, LLVMGetFirstInstruction(m->entry[v->depth]));
        value = LLVMBuildPhi(m->b, m->ptr, "");
        LLVMAddIncoming(value, &from, &m->before[v->depth], 1);
    } else {
        move_to_depth(m, v->depth);
        LLVMValueRef by =
            t.coef == 1 ? v->value : LLVMBuildNSWMul(m->b, v->value, const_i64(m, t.coef), "");
        value = add_step(m, from, by);
    }
    LLVMPositionBuilderAtEnd(m->b, here);
    GROW(m->hoisted, m->nr_hoisted, m->cap_hoisted);
    m->hoisted[m->nr_hoisted++] = (struct hoisted){from, value, t.var, v->depth, t.coef, steps};
    return value;
}

void emit_steps(struct emitter *m)
{
    int kept = 0;
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(m->b);
    for (int i = 0; i < m->nr_hoisted; i++) {
        const struct hoisted *h = &m->hoisted[i];
        if (h->depth < m->depth) {
            m->hoisted[kept++] = *h;
        } else if (h->steps) {
            LLVMValueRef next = add_step(m, h->value, const_i64(m, h->coef));
            LLVMAddIncoming(h->value, &next, &latch, 1);
        }
    }
    m->nr_hoisted = kept;
}

static LLVMValueRef hoist_terms(struct emitter *m, LLVMValueRef from, const struct split *s)
{
    for (int i = 0; i < s->nr; i++)
        from = hoist(m, from, s->term[i]);
    return from;
}

static LLVMValueRef offset_pointer(struct emitter *m, LLVMValueRef pointer, int64_t offset)
{
    if (!offset)
        return pointer;
    LLVMValueRef by = const_i64(m, offset);
    return LLVMBuildInBoundsGEP2(m->b, m->f32, pointer, &by, 1, "");
}

/* Conditions. */

static LLVMValueRef lane_steps(const struct emitter *m, int64_t step)
{
    LLVMValueRef v[64];
    for (int i = 0; i < m->lanes; i++)
        v[i] = const_i64(m, step * i);
    return LLVMConstVector(v, (unsigned)m->lanes);
}

static struct truth truth_const(bool yes)
{
    return (struct truth){.kind = TRUTH_CONST, .yes = yes};
}

static LLVMValueRef truth_lanes(struct emitter *m, struct truth t)
{
    if (t.kind == TRUTH_LANES)
        return t.value;
    return emit_splat(m, t.kind == TRUTH_SCALAR ? t.value : LLVMConstInt(m->i1, t.yes, false));
}

/* A row and a column condition meet once for every element of a window, in several positions of it. */
static LLVMValueRef join(struct emitter *m, LLVMValueRef a, LLVMValueRef b)
{
    for (int i = m->nr_joined - 1; i >= 0; i--)
        if (m->joined[i].a == a && m->joined[i].b == b)
            return m->joined[i].value;
    LLVMValueRef value = LLVMBuildAnd(m->b, a, b, "");
    m->ops++;
    if (m->nr_joined < EMIT_MAX_ASKED)
        m->joined[m->nr_joined++] = (struct joined){a, b, value};
    return value;
}

static struct truth truth_and(struct emitter *m, struct truth a, struct truth b)
{
    if (a.kind == TRUTH_CONST)
        return a.yes ? b : a;
    if (b.kind == TRUTH_CONST)
        return b.yes ? a : b;
    if (a.kind == TRUTH_SCALAR && b.kind == TRUTH_SCALAR)
        return (struct truth){TRUTH_SCALAR, false, join(m, a.value, b.value)};
    return (struct truth){TRUTH_LANES, false,
                          LLVMBuildAnd(m->b, truth_lanes(m, a), truth_lanes(m, b), "")};
}

/* lo <= constant + step * lane < hi, for every lane. */
static struct truth truth_of_lanes(struct emitter *m, int64_t constant, int64_t step, int64_t lo,
                                   int64_t hi)
{
    LLVMValueRef v[64];
    int nr = 0;
    for (int i = 0; i < m->lanes; i++) {
        int64_t x = constant + step * i;
        bool yes = x >= lo && x < hi;
        nr += yes;
        v[i] = LLVMConstInt(m->i1, yes, false);
    }
    if (nr == 0 || nr == m->lanes)
        return truth_const(nr != 0);
    return (struct truth){TRUTH_LANES, false, LLVMConstVector(v, (unsigned)m->lanes)};
}

static struct truth truth_of_range(struct emitter *m, const struct lp_range *r)
{
    struct split s = split_affine(m, &r->a);
    if (!s.nr && (!s.step || !m->in_vector))
        return truth_const(s.constant >= r->lo && s.constant < r->hi);
    if (!s.nr)
        return truth_of_lanes(m, s.constant, s.step, r->lo, r->hi);
    LLVMValueRef base = hoist_terms(m, const_i64(m, 0), &s), x = base;
    bool scalar = !s.step || !m->in_vector;
    /* The rows of a window are asked about for every column. */
    for (int i = m->nr_asked - 1; scalar && i >= 0; i--)
        if (m->asked[i].base == base && m->asked[i].lo == r->lo - s.constant &&
            m->asked[i].hi == r->hi - s.constant)
            return (struct truth){TRUTH_SCALAR, false, m->asked[i].value};
    x = LLVMBuildAdd(m->b, x, const_i64(m, s.constant - r->lo), "");
    LLVMValueRef width = const_i64(m, r->hi - r->lo);
    m->ops += 2;
    if (scalar) {
        LLVMValueRef yes = LLVMBuildICmp(m->b, LLVMIntULT, x, width, "");
        if (m->nr_asked < EMIT_MAX_ASKED)
            m->asked[m->nr_asked++] =
                (struct asked_range){base, yes, r->lo - s.constant, r->hi - s.constant};
        return (struct truth){TRUTH_SCALAR, false, yes};
    }
    x = LLVMBuildAdd(m->b, emit_splat(m, x), lane_steps(m, s.step), "");
    return (struct truth){TRUTH_LANES, false,
                          LLVMBuildICmp(m->b, LLVMIntULT, x, const_splat(m, width), "")};
}

struct truth emit_truth(struct emitter *m, const struct lp_cond *c)
{
    struct truth t = truth_const(true);
    for (int i = 0; i < c->nr; i++)
        t = truth_and(m, t, truth_of_range(m, &c->r[i]));
    return t;
}

/* Loads. */

void emit_forget_loads(struct emitter *m)
{
    m->nr_loaded = m->nr_asked = m->nr_joined = 0;
}

LLVMValueRef emit_intrinsic(struct emitter *m, const char *name, LLVMTypeRef *overload,
                            unsigned nr_overload, LLVMValueRef *args, unsigned nr_args)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef fn = LLVMGetIntrinsicDeclaration(m->mod, id, overload, nr_overload);
    LLVMTypeRef type = LLVMIntrinsicGetType(m->ctx, id, overload, nr_overload);
    return LLVMBuildCall2(m->b, type, fn, args, nr_args, "");
}

static LLVMValueRef lane_pointers(struct emitter *m, LLVMValueRef pointer, int64_t step)
{
    LLVMValueRef steps = lane_steps(m, step);
    return LLVMBuildInBoundsGEP2(m->b, m->f32, pointer, &steps, 1, "");
}

static LLVMValueRef all_lanes(struct emitter *m)
{
    return const_splat(m, LLVMConstInt(m->i1, 1, false));
}

static LLVMValueRef gather_from(struct emitter *m, LLVMValueRef pointers, LLVMValueRef mask)
{
    LLVMTypeRef vec = emit_value_type(m), ptrs = LLVMVectorType(m->ptr, (unsigned)m->lanes);
    LLVMTypeRef overload[] = {vec, ptrs};
    LLVMValueRef args[] = {pointers, LLVMConstInt(m->i32, 4, false), mask, LLVMConstNull(vec)};
    m->ops += m->lanes;
    return emit_intrinsic(m, "llvm.masked.gather", overload, 2, args, 4);
}

static LLVMValueRef gather(struct emitter *m, LLVMValueRef pointer, int64_t step, LLVMValueRef mask)
{
    return gather_from(m, lane_pointers(m, pointer, step), mask);
}

static LLVMValueRef plain_load(struct emitter *m, LLVMTypeRef type, LLVMValueRef pointer)
{
    LLVMValueRef v = LLVMBuildLoad2(m->b, type, pointer, "");
    LLVMSetAlignment(v, 4);
    return v;
}

static LLVMValueRef load_at(struct emitter *m, LLVMValueRef pointer, int64_t step,
                            struct truth guard)
{
    /* A mask that is known has lanes that hold: what they all load may be loaded. */
    if (guard.kind == TRUTH_LANES && !step && LLVMIsConstant(guard.value))
        guard = truth_const(true);
    if (guard.kind == TRUTH_LANES) {
        if (step != 1)
            return gather(m, pointer, step, guard.value);
        LLVMTypeRef overload[] = {emit_value_type(m), m->ptr};
        LLVMValueRef args[] = {pointer, LLVMConstInt(m->i32, 4, false), guard.value,
                               LLVMConstNull(overload[0])};
        return emit_intrinsic(m, "llvm.masked.load", overload, 2, args, 4);
    }
    if (m->in_vector && step != 0 && step != 1) {
        LLVMValueRef mask = guard.kind == TRUTH_SCALAR ? emit_splat(m, guard.value) : all_lanes(m);
        return gather(m, pointer, step, mask);
    }
    if (guard.kind == TRUTH_SCALAR)
        pointer = LLVMBuildSelect(m->b, guard.value, pointer, m->zeros, "");
    if (!m->in_vector)
        return plain_load(m, m->f32, pointer);
    if (step == 1)
        return plain_load(m, emit_value_type(m), pointer);
    return emit_splat(m, plain_load(m, m->f32, pointer));
}

/* Is this one of the loads for whose values there is no register (lp_node.again)? */
static bool is_loaded_again(const struct emitter *m, const struct lp_affine *at)
{
    for (int i = 0; i < at->nr; i++)
        if (m->var[at->t[i].var].again)
            return true;
    return false;
}

static LLVMValueRef emit_load(struct emitter *m, int buf, const struct lp_affine *at)
{
    struct split s = split_affine(m, at);
    if (m->reg[buf]) {
        assert(!s.nr && !s.step);
        LLVMValueRef v = m->reg[buf][s.constant];
        return v ? v : LLVMGetPoison(emit_value_type(m));
    }
    LLVMValueRef base = hoist_terms(m, m->buf[buf], &s);
    struct truth guard = truth_const(true);
    for (int i = 0; i < m->nr_guards; i++)
        guard = truth_and(m, guard, m->guard[i]);
    /* Guards over lanes are made anew each time: such loads are not found again. */
    LLVMValueRef under = guard.kind == TRUTH_CONST ? NULL : guard.value;
    bool again = m->in_vector && s.step == 1 && is_loaded_again(m, at);
    for (int i = m->nr_loaded - 1; i >= 0 && !again; i--) {
        const struct loaded_value *l = &m->loaded[i];
        if (l->buf == buf && l->pointer == base && l->offset == s.constant && l->step == s.step &&
            l->guard == under && l->is_vector == m->in_vector)
            return l->value;
    }
    LLVMValueRef v = load_at(m, offset_pointer(m, base, s.constant), s.step, guard);
    m->ops++;
    if (again) {
        if (LLVMIsALoadInst(v))
            LLVMSetVolatile(v, true); /* else LLVM makes one of those that are equal */
        return v;
    }
    GROW(m->loaded, m->nr_loaded, m->cap_loaded);
    m->loaded[m->nr_loaded++] =
        (struct loaded_value){buf, base, v, under, s.constant, s.step, m->in_vector};
    return v;
}

/* Is the value another in each lane? */
static bool varies(const struct emitter *m, const struct lp_expr *e)
{
    if (!e || !m->in_vector || e->op == LP_LITERAL)
        return false;
    if (e->op == LP_LOAD)
        return m->reg[e->buf] || split_affine(m, &e->at).step != 0;
    return e->op != LP_ARITH || varies(m, e->a) || varies(m, e->b);
}

/* A number as an index: cut to its range while it is a float, so that no number can be a wrong one. */
static LLVMValueRef picked_index(struct emitter *m, const struct lp_expr *e)
{
    LLVMValueRef x = emit_expr(m, e->a), zero = LLVMConstNull(LLVMTypeOf(x));
    LLVMTypeRef type = m->in_vector ? LLVMVectorType(m->i64, (unsigned)m->lanes) : m->i64;
    LLVMValueRef last = LLVMConstReal(m->f32, (double)(e->count - 1));
    if (m->in_vector)
        last = const_splat(m, last);
    x = LLVMBuildSelect(m->b, LLVMBuildFCmp(m->b, LLVMRealOGT, x, zero, ""), x, zero, "");
    x = LLVMBuildSelect(m->b, LLVMBuildFCmp(m->b, LLVMRealOLT, x, last, ""), x, last, "");
    x = LLVMBuildFPToSI(m->b, x, type, "");
    m->ops += 3;
    if (!m->in_vector || varies(m, e->a))
        return x;
    return LLVMBuildExtractElement(m->b, x, LLVMConstInt(m->i32, 0, false), "");
}

static LLVMValueRef emit_pick(struct emitter *m, const struct lp_expr *e)
{
    LLVMValueRef i = picked_index(m, e), step = const_i64(m, e->step);
    struct split s = split_affine(m, &e->at);
    LLVMValueRef pointer = offset_pointer(m, hoist_terms(m, m->buf[e->buf], &s), s.constant);
    struct truth guard = truth_const(true);
    for (int k = 0; k < m->nr_guards; k++)
        guard = truth_and(m, guard, m->guard[k]);
    m->ops += 3;
    if (LLVMTypeOf(i) == m->i64) {
        i = LLVMBuildNSWMul(m->b, i, step, "");
        return load_at(m, LLVMBuildInBoundsGEP2(m->b, m->f32, pointer, &i, 1, ""), s.step, guard);
    }
    i = LLVMBuildNSWMul(m->b, i, const_splat(m, step), "");
    i = LLVMBuildNSWAdd(m->b, i, lane_steps(m, s.step), "");
    return gather_from(m, LLVMBuildInBoundsGEP2(m->b, m->f32, pointer, &i, 1, ""),
                       truth_lanes(m, guard));
}

/* Arithmetic. */

static LLVMValueRef literal(struct emitter *m, float v)
{
    LLVMValueRef c = LLVMConstReal(m->f32, (double)v);
    return m->in_vector ? const_splat(m, c) : c;
}

static LLVMValueRef unary_intrinsic(struct emitter *m, const char *name, LLVMValueRef x)
{
    LLVMTypeRef type = emit_value_type(m);
    return emit_intrinsic(m, name, &type, 1, &x, 1);
}

static LLVMValueRef pick(struct emitter *m, LLVMRealPredicate p, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildSelect(m->b, LLVMBuildFCmp(m->b, p, a, b, ""), a, b, "");
}

/* `x` where it holds, else 0. */
static LLVMValueRef where(struct emitter *m, LLVMValueRef holds, LLVMValueRef x)
{
    return LLVMBuildSelect(m->b, holds, x, LLVMConstNull(LLVMTypeOf(x)), "");
}

static LLVMValueRef multiply_add(struct emitter *m, const struct lp_expr *mul,
                                 const struct lp_expr *plus)
{
    LLVMTypeRef type = emit_value_type(m);
    LLVMValueRef a = emit_expr(m, mul->a), b = emit_expr(m, mul->b), c = emit_expr(m, plus);
    LLVMValueRef args[] = {a, b, c};
    m->ops++;
    return emit_intrinsic(m, "llvm.fmuladd", &type, 1, args, 3);
}

static bool is_multiply(const struct lp_expr *e)
{
    return e->op == LP_ARITH && e->arith == WL_MUL;
}

static LLVMValueRef arith(struct emitter *m, const struct lp_expr *e)
{
    if (e->arith == WL_ADD && is_multiply(e->b))
        return multiply_add(m, e->b, e->a);
    if (e->arith == WL_ADD && is_multiply(e->a))
        return multiply_add(m, e->a, e->b);
    LLVMValueRef a = emit_expr(m, e->a), b = e->b ? emit_expr(m, e->b) : NULL;
    m->ops++;
    switch (e->arith) {
    case WL_ADD:
        return LLVMBuildFAdd(m->b, a, b, "");
    case WL_SUB:
        return LLVMBuildFSub(m->b, a, b, "");
    case WL_MUL:
        return LLVMBuildFMul(m->b, a, b, "");
    case WL_DIV:
        return LLVMBuildFDiv(m->b, a, b, "");
    /* Compare and select, as the machine's own min and max do: llvm.maxnum adds NaN handling. */
    case WL_MAX:
        return pick(m, LLVMRealOGT, a, b);
    case WL_MIN:
        return pick(m, LLVMRealOLT, a, b);
    case WL_POW:
        return e->b->op == LP_LITERAL ? emit_pow_constant(m, a, e->b->literal) : emit_pow(m, a, b);
    case WL_NEG:
        return LLVMBuildFNeg(m->b, a, "");
    case WL_ABS:
        return unary_intrinsic(m, "llvm.fabs", a);
    case WL_EXP:
        return emit_exp(m, a);
    case WL_LOG:
        return emit_log(m, a);
    case WL_SQRT:
        return unary_intrinsic(m, "llvm.sqrt", a);
    case WL_TANH:
        return emit_tanh(m, a);
    case WL_ERF:
        return emit_erf(m, a);
    case WL_FLOOR:
        return unary_intrinsic(m, "llvm.floor", a);
    case WL_ROUND:
        return unary_intrinsic(m, "llvm.nearbyint", a);
    case WL_SIN:
        return unary_intrinsic(m, "llvm.sin", a);
    case WL_COS:
        return unary_intrinsic(m, "llvm.cos", a);
    case WL_LESS:
        return where(m, LLVMBuildFCmp(m->b, LLVMRealOLT, a, b, ""), literal(m, 1));
    case WL_EQUAL:
        return where(m, LLVMBuildFCmp(m->b, LLVMRealOEQ, a, b, ""), literal(m, 1));
    case WL_KEEP:
        return where(m, LLVMBuildFCmp(m->b, LLVMRealONE, a, literal(m, 0), ""), b);
    default:
        assert(!"no arithmetic operator");
        return a;
    }
}

static LLVMValueRef guarded(struct emitter *m, const struct lp_expr *e)
{
    struct truth t = emit_truth(m, &e->cond);
    if (t.kind == TRUTH_CONST)
        return t.yes ? emit_expr(m, e->a) : literal(m, e->literal);
    assert(m->nr_guards < 8);
    m->guard[m->nr_guards++] = t;
    LLVMValueRef v = emit_expr(m, e->a);
    m->nr_guards--;
    m->ops++;
    /* Guarded loads are zero where the condition fails. */
    if (e->a->op == LP_LOAD && e->literal == 0)
        return v;
    return LLVMBuildSelect(m->b, t.value, v, literal(m, e->literal), "");
}

static LLVMValueRef some_lanes(struct emitter *m, LLVMValueRef v, int from, int nr)
{
    LLVMValueRef lane[64];
    for (int i = 0; i < nr; i++)
        lane[i] = LLVMConstInt(m->i32, (unsigned)(from + i), false);
    return LLVMBuildShuffleVector(m->b, v, LLVMGetPoison(LLVMTypeOf(v)),
                                  LLVMConstVector(lane, (unsigned)nr), "");
}

/* Halves of a vector combined, until one lane is left. */
static LLVMValueRef across(struct emitter *m, const struct lp_expr *e)
{
    m->in_vector = true;
    LLVMValueRef v = emit_expr(m, e->a);
    m->in_vector = false;
    for (int half = m->lanes / 2; half; half /= 2) {
        LLVMValueRef a = some_lanes(m, v, 0, half), b = some_lanes(m, v, half, half);
        v = e->arith == WL_ADD   ? LLVMBuildFAdd(m->b, a, b, "")
            : e->arith == WL_MUL ? LLVMBuildFMul(m->b, a, b, "")
                                 : pick(m, e->arith == WL_MAX ? LLVMRealOGT : LLVMRealOLT, a, b);
        m->ops += 2;
    }
    return LLVMBuildExtractElement(m->b, v, LLVMConstInt(m->i32, 0, false), "");
}

LLVMValueRef emit_expr(struct emitter *m, const struct lp_expr *e)
{
    switch (e->op) {
    case LP_LITERAL:
        return literal(m, e->literal);
    case LP_PICK:
        return emit_pick(m, e);
    case LP_LOAD:
        return emit_load(m, e->buf, &e->at);
    case LP_GUARD:
        return guarded(m, e);
    case LP_ACROSS:
        return across(m, e);
    case LP_ARITH:
        break;
    }
    return arith(m, e);
}

/* Stores. */

static void store_lanes(struct emitter *m, LLVMValueRef v, LLVMValueRef pointer, int64_t step,
                        struct truth where)
{
    LLVMValueRef align = LLVMConstInt(m->i32, 4, false);
    LLVMTypeRef vec = emit_value_type(m);
    if (where.kind == TRUTH_SCALAR)
        where = (struct truth){TRUTH_LANES, false, emit_splat(m, where.value)};
    if (step == 1 && where.kind != TRUTH_LANES) {
        LLVMSetAlignment(LLVMBuildStore(m->b, v, pointer), 4);
    } else if (step == 1) {
        LLVMTypeRef overload[] = {vec, m->ptr};
        LLVMValueRef args[] = {v, pointer, align, where.value};
        emit_intrinsic(m, "llvm.masked.store", overload, 2, args, 4);
    } else {
        LLVMTypeRef overload[] = {vec, LLVMVectorType(m->ptr, (unsigned)m->lanes)};
        LLVMValueRef mask = where.kind == TRUTH_LANES ? where.value : all_lanes(m);
        LLVMValueRef args[] = {v, lane_pointers(m, pointer, step), align, mask};
        m->ops += m->lanes;
        emit_intrinsic(m, "llvm.masked.scatter", overload, 2, args, 4);
    }
}

/* Is it known that one of the ranges does not hold? */
static bool known_not_to_hold(const struct emitter *m, const struct lp_cond *c)
{
    for (int i = 0; i < c->nr; i++) {
        struct split s = split_affine(m, &c->r[i].a);
        if (!s.nr && !s.step && (s.constant < c->r[i].lo || s.constant >= c->r[i].hi))
            return true;
    }
    return false;
}

void emit_store(struct emitter *m, const struct lp_node *n)
{
    if (known_not_to_hold(m, &n->hint))
        return;
    struct truth where = emit_truth(m, &n->cond);
    if (where.kind == TRUTH_CONST && !where.yes)
        return;
    /* Without lanes there is nothing to mask: lowering puts such stores under an LP_IF. */
    assert(m->in_vector || where.kind != TRUTH_SCALAR);
    LLVMValueRef v = emit_expr(m, n->value);
    struct split s = split_affine(m, &n->at);
    if (m->reg[n->buf]) {
        assert(!s.nr && !s.step && s.constant < m->p->buffer[n->buf].size);
        m->reg[n->buf][s.constant] = v;
        return;
    }
    m->ops++;
    LLVMValueRef pointer = offset_pointer(m, hoist_terms(m, m->buf[n->buf], &s), s.constant);
    if (m->in_vector)
        store_lanes(m, v, pointer, s.step, where);
    else
        LLVMSetAlignment(LLVMBuildStore(m->b, v, pointer), 4);
    /* Buffers never overlap, so only what was loaded from this one is stale. */
    int kept = 0;
    for (int i = 0; i < m->nr_loaded; i++)
        if (m->loaded[i].buf != n->buf)
            m->loaded[kept++] = m->loaded[i];
    m->nr_loaded = kept;
}
