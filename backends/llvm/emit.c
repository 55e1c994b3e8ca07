/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, loops and ifs. */
#include "backends/llvm/emit.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/llvm/emit_internal.h"
#include "engine/base/arena.h"

int64_t emit_thread_stride(const struct lp_buffer *b)
{
    return (b->size + 15) / 16 * 16 + 16;
}

static void emit_list(struct emitter *m, const struct lp_node *n);

/* Which register buffers does this list write? */
static void find_written(const struct emitter *m, const struct lp_node *n, bool *written)
{
    for (; n; n = n->next) {
        if (n->kind == LP_STORE && m->p->buffer[n->buf].scope == LP_REGISTER)
            written[n->buf] = true;
        find_written(m, n->body, written);
        find_written(m, n->other, written);
    }
}

static LLVMTypeRef register_type(const struct emitter *m)
{
    return m->lanes > 1 ? LLVMVectorType(m->f32, (unsigned)m->lanes) : m->f32;
}

static LLVMValueRef value_or_poison(const struct emitter *m, LLVMValueRef v)
{
    return v ? v : LLVMGetPoison(register_type(m));
}

/* Phis of all register values that a loop changes; kept in `phi`, buffer after buffer. */
static LLVMValueRef *begin_phis(struct emitter *m, const bool *written, LLVMBasicBlockRef from)
{
    int64_t nr = 0;
    for (int i = 0; i < m->p->nr_buffers; i++)
        nr += written[i] ? m->p->buffer[i].size : 0;
    LLVMValueRef *phi = xcalloc((size_t)nr, sizeof *phi), *next = phi;
    for (int i = 0; i < m->p->nr_buffers; i++)
        for (int64_t k = 0; written[i] && k < m->p->buffer[i].size; k++) {
            LLVMValueRef in = value_or_poison(m, m->reg[i][k]);
            *next = LLVMBuildPhi(m->b, register_type(m), "");
            LLVMAddIncoming(*next, &in, &from, 1);
            m->reg[i][k] = *next++;
        }
    return phi;
}

static void end_phis(struct emitter *m, const bool *written, LLVMValueRef *phi,
                     LLVMBasicBlockRef from)
{
    LLVMValueRef *next = phi;
    for (int i = 0; i < m->p->nr_buffers; i++)
        for (int64_t k = 0; written[i] && k < m->p->buffer[i].size; k++) {
            LLVMValueRef in = value_or_poison(m, m->reg[i][k]);
            LLVMAddIncoming(*next++, &in, &from, 1);
        }
    free(phi);
}

/* i = lo; do { body } while (++i < hi). Trip counts are at least one. */
static LLVMValueRef begin_loop(struct emitter *m, LLVMValueRef lo, LLVMBasicBlockRef *body)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(m->b);
    *body = LLVMAppendBasicBlockInContext(m->ctx, m->fn, "loop");
    LLVMBuildBr(m->b, *body);
    LLVMPositionBuilderAtEnd(m->b, *body);
    LLVMValueRef i = LLVMBuildPhi(m->b, m->i64, "");
    LLVMAddIncoming(i, &lo, &before, 1);
    m->depth++;
    assert(m->depth < EMIT_MAX_DEPTH);
    m->before[m->depth] = before;
    m->entry[m->depth] = *body;
    emit_forget_loads(m);
    return i;
}

static void end_loop(struct emitter *m, LLVMValueRef i, LLVMValueRef hi, LLVMBasicBlockRef body)
{
    emit_steps(m);
    LLVMValueRef next = LLVMBuildNSWAdd(m->b, i, LLVMConstInt(m->i64, 1, false), "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(m->b);
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(m->ctx, m->fn, "after");
    LLVMBuildCondBr(m->b, LLVMBuildICmp(m->b, LLVMIntSLT, next, hi, ""), body, after);
    LLVMAddIncoming(i, &next, &latch, 1);
    LLVMPositionBuilderAtEnd(m->b, after);
    m->depth--;
    /* What comes now is dominated by `after`, and by what dominated the loop. Values hoisted to an
     * outer loop still go to that loop's own entry. */
    emit_forget_loads(m);
}

static void emit_serial(struct emitter *m, const struct lp_node *n)
{
    bool written[LP_MAX_BUFFERS] = {false};
    find_written(m, n->body, written);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(m->b), body;
    LLVMValueRef i = begin_loop(m, LLVMConstInt(m->i64, 0, false), &body);
    LLVMValueRef *phi = begin_phis(m, written, before);
    m->var[n->var[0]] = (struct var_state){
        .kind = VAR_VALUE, .value = i, .depth = m->depth, .counts = true};
    emit_list(m, n->body);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(m->b);
    end_loop(m, i, LLVMConstInt(m->i64, (unsigned long long)n->extent[0], false), body);
    end_phis(m, written, phi, latch);
    m->var[n->var[0]].kind = VAR_NONE;
}

static void emit_unrolled(struct emitter *m, const struct lp_node *n)
{
    for (int64_t i = 0; i < n->extent[0] && !m->too_large; i++) {
        m->var[n->var[0]] = (struct var_state){
            .kind = VAR_CONST, .constant = i, .again = i >= n->extent[0] - n->again};
        emit_list(m, n->body);
        m->too_large |= m->ops > EMIT_MAX_OPS;
    }
    m->var[n->var[0]].kind = VAR_NONE;
}

static void emit_vector(struct emitter *m, const struct lp_node *n)
{
    m->var[n->var[0]] = (struct var_state){.kind = VAR_LANE};
    m->in_vector = true;
    int64_t lanes = n->extent[0];
    int nest_lanes = m->lanes;
    m->lanes = (int)lanes;
    emit_list(m, n->body);
    m->lanes = nest_lanes;
    m->in_vector = false;
    m->var[n->var[0]].kind = VAR_NONE;
}

/* One loop over lo .. hi, from which the variables are divided out, the last one fastest. */
static void emit_parallel(struct emitter *m, const struct lp_node *n)
{
    LLVMValueRef lo = LLVMGetParam(m->fn, LLVMCountParams(m->fn) - 3);
    LLVMValueRef hi = LLVMGetParam(m->fn, LLVMCountParams(m->fn) - 2);
    LLVMBasicBlockRef body;
    LLVMValueRef i = begin_loop(m, lo, &body), rest = i;
    for (int k = n->nr_vars - 1; k >= 0; k--) {
        LLVMValueRef extent = LLVMConstInt(m->i64, (unsigned long long)n->extent[k], false);
        LLVMValueRef v = k ? LLVMBuildURem(m->b, rest, extent, "") : rest;
        if (k)
            rest = LLVMBuildUDiv(m->b, rest, extent, "");
        m->var[n->var[k]] = (struct var_state){.kind = VAR_VALUE, .value = v, .depth = m->depth};
    }
    emit_list(m, n->body);
    end_loop(m, i, hi, body);
    for (int k = 0; k < n->nr_vars; k++)
        m->var[n->var[k]].kind = VAR_NONE;
}

static void emit_for(struct emitter *m, const struct lp_node *n)
{
    if (n->loop == LP_PARALLEL)
        emit_parallel(m, n);
    else if (n->loop == LP_VECTOR)
        emit_vector(m, n);
    else if (n->loop == LP_UNROLL || n->extent[0] == 1)
        emit_unrolled(m, n);
    else
        emit_serial(m, n);
}

/* The two branches of an if end with different register values: phis join them. */
static void emit_if(struct emitter *m, const struct lp_node *n)
{
    struct truth t = emit_truth(m, &n->cond);
    if (t.kind == TRUTH_CONST) {
        emit_list(m, t.yes ? n->body : n->other);
        return;
    }
    assert(t.kind == TRUTH_SCALAR);
    bool written[LP_MAX_BUFFERS] = {false};
    find_written(m, n->body, written);
    find_written(m, n->other, written);
    LLVMBasicBlockRef block[3];
    const char *const name[] = {"then", "else", "join"};
    for (int i = 0; i < 3; i++)
        block[i] = LLVMAppendBasicBlockInContext(m->ctx, m->fn, name[i]);
    LLVMBuildCondBr(m->b, t.value, block[0], block[1]);
    LLVMBasicBlockRef end[2];
    LLVMValueRef *result[2][LP_MAX_BUFFERS] = {{NULL}}, *saved[LP_MAX_BUFFERS] = {NULL};
    for (int i = 0; i < m->p->nr_buffers; i++)
        if (written[i])
            saved[i] = m->reg[i];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < m->p->nr_buffers; i++)
            if (written[i]) {
                size_t bytes = (size_t)m->p->buffer[i].size * sizeof(LLVMValueRef);
                result[k][i] = m->reg[i] = xmalloc(bytes);
                memcpy(m->reg[i], saved[i], bytes);
            }
        LLVMPositionBuilderAtEnd(m->b, block[k]);
        emit_forget_loads(m);
        emit_list(m, k ? n->other : n->body);
        end[k] = LLVMGetInsertBlock(m->b);
        LLVMBuildBr(m->b, block[2]);
    }
    LLVMPositionBuilderAtEnd(m->b, block[2]);
    emit_forget_loads(m);
    for (int i = 0; i < m->p->nr_buffers; i++) {
        if (!written[i])
            continue;
        m->reg[i] = saved[i];
        for (int64_t s = 0; s < m->p->buffer[i].size; s++) {
            LLVMValueRef in[2] = {value_or_poison(m, result[0][i][s]),
                                  value_or_poison(m, result[1][i][s])};
            if (in[0] == in[1]) {
                m->reg[i][s] = in[0];
                continue;
            }
            m->reg[i][s] = LLVMBuildPhi(m->b, register_type(m), "");
            LLVMAddIncoming(m->reg[i][s], in, end, 2);
        }
        free(result[0][i]);
        free(result[1][i]);
    }
}

static void emit_list(struct emitter *m, const struct lp_node *n)
{
    for (; n && !m->too_large; n = n->next) {
        switch (n->kind) {
        case LP_FOR:
            emit_for(m, n);
            break;
        case LP_IF:
            emit_if(m, n);
            break;
        case LP_STORE:
            emit_store(m, n);
            break;
        }
    }
}

/* Functions. */

static void add_text_attribute(struct emitter *m, LLVMValueRef fn, const char *key,
                               const char *value)
{
    LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(m->ctx, key, (unsigned)strlen(key), value,
                                                      (unsigned)strlen(value)));
}

static void add_attribute(struct emitter *m, LLVMValueRef fn, LLVMAttributeIndex at,
                          const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(fn, at, LLVMCreateEnumAttribute(m->ctx, kind, 0));
}

static LLVMValueRef add_function(struct emitter *m, const char *name, LLVMTypeRef type)
{
    LLVMValueRef fn = LLVMAddFunction(m->mod, name, type);
    add_text_attribute(m, fn, "target-cpu", m->target->cpu);
    add_text_attribute(m, fn, "target-features", m->target->features);
    /* Without these LLVM splits 512-bit vectors on machines where it thinks them slow. */
    char bits[16];
    snprintf(bits, sizeof bits, "%d", m->target->lanes * 32);
    add_text_attribute(m, fn, "prefer-vector-width", bits);
    add_text_attribute(m, fn, "min-legal-vector-width", bits);
    add_attribute(m, fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "nounwind");
    return fn;
}

static LLVMTypeRef nest_type(struct emitter *m, const struct emit_args *args)
{
    LLVMTypeRef param[LP_MAX_BUFFERS + 3];
    int nr = 0;
    for (int i = 0; i < args->nr; i++)
        param[nr++] = m->ptr;
    for (int i = 0; i < 3; i++)
        param[nr++] = m->i64;
    return LLVMFunctionType(m->void_, param, (unsigned)nr, false);
}

static void emit_nest(struct emitter *m, int index, const struct emit_args *args)
{
    const struct lp_nest *nest = &m->p->nest[index];
    char name[32];
    snprintf(name, sizeof name, "nest_%d", index);
    m->fn = add_function(m, name, nest_type(m, args));
    LLVMSetLinkage(m->fn, LLVMInternalLinkage);
    LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(m->ctx, m->fn, "");
    LLVMPositionBuilderAtEnd(m->b, start);
    m->lanes = nest->lanes;
    m->in_vector = false;
    m->depth = 0;
    m->entry[0] = start;
    m->nr_hoisted = m->nr_loaded = m->nr_guards = 0;
    LLVMValueRef thread = LLVMGetParam(m->fn, (unsigned)args->nr + 2);
    for (int i = 0; i < args->nr; i++) {
        const struct lp_buffer *b = &m->p->buffer[args->buffer[i]];
        LLVMValueRef pointer = LLVMGetParam(m->fn, (unsigned)i);
        add_attribute(m, m->fn, (LLVMAttributeIndex)(i + 1), "noalias");
        if (b->per_thread) {
            LLVMValueRef by = LLVMBuildMul(
                m->b, thread,
                LLVMConstInt(m->i64, (unsigned long long)emit_thread_stride(b), false), "");
            pointer = LLVMBuildInBoundsGEP2(m->b, m->f32, pointer, &by, 1, "");
        }
        m->buf[args->buffer[i]] = pointer;
    }
    for (int i = 0; i < m->p->nr_buffers; i++)
        if (m->reg[i])
            memset(m->reg[i], 0, (size_t)m->p->buffer[i].size * sizeof *m->reg[i]);
    emit_list(m, nest->body);
    LLVMBuildRetVoid(m->b);
}

static const struct lp_node *parallel_loop(const struct lp_nest *n)
{
    return n->body && n->body->kind == LP_FOR && n->body->loop == LP_PARALLEL ? n->body : NULL;
}

static void call_nest(struct emitter *m, int index, const struct emit_args *args,
                      LLVMValueRef pointers, LLVMValueRef lo, LLVMValueRef hi,
                      LLVMValueRef thread)
{
    char name[32];
    snprintf(name, sizeof name, "nest_%d", index);
    LLVMValueRef value[LP_MAX_BUFFERS + 3];
    int nr = 0;
    for (; nr < args->nr; nr++) {
        LLVMValueRef at = LLVMConstInt(m->i64, (unsigned)nr, false);
        LLVMValueRef slot = LLVMBuildInBoundsGEP2(m->b, m->ptr, pointers, &at, 1, "");
        value[nr] = LLVMBuildLoad2(m->b, m->ptr, slot, "");
    }
    value[nr++] = lo;
    value[nr++] = hi;
    value[nr++] = thread;
    LLVMBuildCall2(m->b, nest_type(m, args), LLVMGetNamedFunction(m->mod, name), value,
                   (unsigned)nr, "");
}

static LLVMValueRef runtime_function(struct emitter *m, const char *name, LLVMTypeRef type)
{
    LLVMValueRef fn = LLVMGetNamedFunction(m->mod, name);
    return fn ? fn : LLVMAddFunction(m->mod, name, type);
}

static LLVMValueRef thread_count(struct emitter *m, const char *what)
{
    LLVMTypeRef type = LLVMFunctionType(m->i32, NULL, 0, false);
    LLVMValueRef n = LLVMBuildCall2(m->b, type, runtime_function(m, what, type), NULL, 0, "");
    return LLVMBuildZExt(m->b, n, m->i64, "");
}

/* A thread's share of a parallel nest: equal parts of the iterations, in order. */
static LLVMValueRef emit_part(struct emitter *m, int index, const struct emit_args *args,
                              int64_t trips)
{
    char name[32];
    snprintf(name, sizeof name, "part_%d", index);
    m->fn = add_function(m, name, LLVMFunctionType(m->void_, &m->ptr, 1, false));
    LLVMSetLinkage(m->fn, LLVMInternalLinkage);
    LLVMPositionBuilderAtEnd(m->b, LLVMAppendBasicBlockInContext(m->ctx, m->fn, ""));
    LLVMValueRef me = thread_count(m, "omp_get_thread_num");
    LLVMValueRef all = thread_count(m, "omp_get_num_threads");
    LLVMValueRef n = LLVMConstInt(m->i64, (unsigned long long)trips, false);
    LLVMValueRef one = LLVMConstInt(m->i64, 1, false);
    LLVMValueRef lo = LLVMBuildUDiv(m->b, LLVMBuildMul(m->b, n, me, ""), all, "");
    LLVMValueRef hi = LLVMBuildUDiv(
        m->b, LLVMBuildMul(m->b, n, LLVMBuildAdd(m->b, me, one, ""), ""), all, "");
    LLVMBasicBlockRef some = LLVMAppendBasicBlockInContext(m->ctx, m->fn, "some");
    LLVMBasicBlockRef out = LLVMAppendBasicBlockInContext(m->ctx, m->fn, "out");
    LLVMBuildCondBr(m->b, LLVMBuildICmp(m->b, LLVMIntULT, lo, hi, ""), some, out);
    LLVMPositionBuilderAtEnd(m->b, some);
    call_nest(m, index, args, LLVMGetParam(m->fn, 0), lo, hi, me);
    LLVMBuildBr(m->b, out);
    LLVMPositionBuilderAtEnd(m->b, out);
    LLVMBuildRetVoid(m->b);
    return m->fn;
}

static void emit_kernel(struct emitter *m, const struct emit_args *args)
{
    LLVMValueRef part[WL_MAX_STAGES * 2] = {NULL};
    for (int i = 0; i < m->p->nr_nests; i++) {
        const struct lp_node *loop = parallel_loop(&m->p->nest[i]);
        int64_t trips = 1;
        for (int k = 0; loop && k < loop->nr_vars; k++)
            trips *= loop->extent[k];
        if (loop)
            part[i] = emit_part(m, i, args, trips);
    }
    const char *entry = m->target->library_entry;
    m->fn = add_function(m, entry ? entry : EMIT_ENTRY,
                         LLVMFunctionType(m->void_, &m->ptr, 1, false));
    if (entry)
        LLVMSetVisibility(m->fn, LLVMHiddenVisibility);
    LLVMPositionBuilderAtEnd(m->b, LLVMAppendBasicBlockInContext(m->ctx, m->fn, ""));
    LLVMValueRef pointers = LLVMGetParam(m->fn, 0), zero = LLVMConstInt(m->i64, 0, false);
    LLVMTypeRef param[] = {m->ptr, m->ptr, m->i32, m->i32};
    LLVMTypeRef gomp = LLVMFunctionType(m->void_, param, 4, false);
    for (int i = 0; i < m->p->nr_nests; i++) {
        if (!part[i]) {
            call_nest(m, i, args, pointers, zero, zero, zero);
            continue;
        }
        LLVMValueRef value[] = {part[i], pointers,
                                LLVMConstInt(m->i32, entry ? 0 : (unsigned)m->p->threads, false),
                                LLVMConstInt(m->i32, 0, false)};
        LLVMBuildCall2(m->b, gomp, runtime_function(m, "GOMP_parallel", gomp), value, 4, "");
    }
    LLVMBuildRetVoid(m->b);
}

static void add_zeros(struct emitter *m)
{
    LLVMTypeRef type = LLVMArrayType2(m->f32, (uint64_t)m->target->lanes);
    m->zeros = LLVMAddGlobal(m->mod, type, "zeros");
    LLVMSetInitializer(m->zeros, LLVMConstNull(type));
    LLVMSetGlobalConstant(m->zeros, true);
    LLVMSetLinkage(m->zeros, LLVMInternalLinkage);
    LLVMSetAlignment(m->zeros, 64);
}

int emit_program(LLVMModuleRef mod, const struct loop_program *p, const struct emit_target *t,
                 struct emit_args *args, struct err *e)
{
    LLVMContextRef ctx = LLVMGetModuleContext(mod);
    struct emitter *m = xcalloc(1, sizeof *m);
    *m = (struct emitter){
        .p = p, .target = t, .ctx = ctx, .mod = mod, .b = LLVMCreateBuilderInContext(ctx),
        .f32 = LLVMFloatTypeInContext(ctx), .i1 = LLVMInt1TypeInContext(ctx),
        .i32 = LLVMInt32TypeInContext(ctx), .i64 = LLVMInt64TypeInContext(ctx),
        .ptr = LLVMPointerTypeInContext(ctx, 0), .void_ = LLVMVoidTypeInContext(ctx)};
    args->nr = 0;
    for (int i = 0; i < p->nr_buffers; i++) {
        if (p->buffer[i].scope == LP_REGISTER)
            m->reg[i] = xcalloc((size_t)p->buffer[i].size, sizeof *m->reg[i]);
        else
            args->buffer[args->nr++] = i;
    }
    add_zeros(m);
    for (int i = 0; i < p->nr_nests && !m->too_large; i++)
        emit_nest(m, i, args);
    if (!m->too_large)
        emit_kernel(m, args);
    int rc = m->too_large ? err_set(e, ERR_LIMIT, "more than %d instructions", EMIT_MAX_OPS) : 0;
    for (int i = 0; i < p->nr_buffers; i++)
        free(m->reg[i]);
    free(m->hoisted);
    free(m->loaded);
    LLVMDisposeBuilder(m->b);
    free(m);
    return rc;
}
