/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop program: what a candidate becomes, and what every code generator reads.
 *
 * A program is a list of nests that run one after the other. A nest is a tree of loops, stores and
 * ifs over loop variables, which are numbered in the whole program. All memory accesses are affine
 * in the loop variables, as element offsets into buffers.
 *
 *   loops      serial; unrolled (the variable is a constant in every copy of the body); vector (one
 *              at most on a path: the variable is the lane); parallel (the outermost loop of a nest;
 *              has several variables, the first one slowest, iterated as one)
 *   buffers    tensors of the workload, scratch memory (one copy a thread if it is written under a
 *              parallel loop), and registers: a register buffer's offset counts *vectors*, and only
 *              unrolled variables may occur in it. A generator keeps them in registers, also across
 *              serial loops: this is what carries the accumulators of a reduction.
 *   guards     a condition is a list of ranges lo <= offset < hi of affine forms, all of which hold
 *
 * Built by lower.c in an arena, immutable afterwards.
 */
#ifndef ENGINE_TENSOR_LOOP_H
#define ENGINE_TENSOR_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/strbuf.h"
#include "engine/tensor/layout.h"
#include "engine/tensor/workload.h"

enum { LP_MAX_TERMS = 24, LP_MAX_BUFFERS = 96, LP_MAX_VARS = 400, LP_MAX_PARALLEL = 12 };

struct lp_term {
    int var;
    int64_t coef;
};

struct lp_affine {
    int64_t base;
    int nr;
    struct lp_term t[LP_MAX_TERMS]; /* distinct variables, in order of var; no zero coefficients */
};

struct lp_range {
    struct lp_affine a;
    int64_t lo, hi;
};

struct lp_cond {
    int nr;
    struct lp_range r[LAYOUT_MAX_DIMS];
};

enum lp_op { LP_LITERAL, LP_LOAD, LP_GUARD, LP_ARITH, LP_PICK, LP_ACROSS };

struct lp_expr {
    enum lp_op op;
    float literal;         /* LP_LITERAL; the value outside of an LP_GUARD */
    int buf;               /* LP_LOAD */
    struct lp_affine at;
    int64_t step, count;   /* LP_PICK: the element `step` * i behind buf[at], i being `a` cut to
                              [0, count) */
                           /* LP_ACROSS: outside of the vector loop, `arith` over all `count` lanes
                              of `a`, an expression of registers */
    struct lp_cond cond;   /* LP_GUARD: a where it holds, literal where not; nothing in a is read
                              where it does not hold */
    enum wl_op arith;      /* LP_ARITH: an operator of workload.h on a and b */
    const struct lp_expr *a, *b;
};

enum lp_kind { LP_FOR, LP_STORE, LP_IF };
enum lp_loop { LP_SERIAL, LP_UNROLL, LP_VECTOR, LP_PARALLEL };

struct lp_node {
    enum lp_kind kind;
    struct lp_node *next; /* in the list of its parent */

    enum lp_loop loop;    /* LP_FOR */
    int nr_vars;          /* 1 except for parallel loops */
    int var[LP_MAX_PARALLEL];
    int64_t extent[LP_MAX_PARALLEL];
    int64_t again;        /* LP_UNROLL: so many of the last steps load vectors anew for each use, as
                             there is no register to keep them in; for a generator, it means no
                             other result */

    struct lp_cond cond;  /* LP_IF; LP_STORE: store only where it holds */
    struct lp_cond hint;  /* LP_STORE: where it does not hold the store changes nothing; a generator
                             leaves out what it knows to be so */

    int buf;              /* LP_STORE */
    struct lp_affine at;
    const struct lp_expr *value;

    struct lp_node *body, *other; /* LP_FOR body; LP_IF then and else; first of a list */
};

enum lp_scope { LP_TENSOR, LP_SCRATCH, LP_REGISTER };

struct lp_buffer {
    char name[WL_NAME + 8];
    enum lp_scope scope;
    int tensor;             /* LP_TENSOR: of the workload */
    bool packed;            /* a constant in the order of `layout`, not of the tensor */
    bool per_thread;        /* scratch written under a parallel loop */
    bool written;
    int64_t size;           /* elements (of one thread); registers: vectors */
    struct layout layout;
};

struct lp_nest {
    char name[WL_NAME];
    int lanes;              /* extent of its vector loop; 1 without */
    struct lp_node *body;
};

struct loop_program {
    int nr_buffers, nr_vars, nr_nests;
    struct lp_buffer buffer[LP_MAX_BUFFERS];
    char var_name[LP_MAX_VARS][16];
    struct lp_nest nest[WL_MAX_STAGES * 2];
    int threads;
    struct arena arena;
};

void loop_program_release(struct loop_program *p);

struct lp_affine lp_affine_const(int64_t base);
struct lp_affine lp_affine_add(const struct lp_affine *a, const struct lp_affine *b);
struct lp_affine lp_affine_scale(const struct lp_affine *a, int64_t by);
void lp_affine_term(struct lp_affine *a, int var, int64_t coef);
int64_t lp_affine_coef(const struct lp_affine *a, int var);

/* The program as text, for people and tests. */
void loop_program_print(const struct loop_program *p, struct strbuf *out);

/*
 * Runs the program, element by element, on float32 arrays: buf[i] for buffer i (tensors and
 * scratch; NULL for registers, which it keeps itself). For tests of lowering without a code
 * generator; parallel loops run in order.
 */
void loop_program_interpret(const struct loop_program *p, float *const *buf);

#endif
