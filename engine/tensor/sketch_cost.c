/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An estimate of the cycles of a nest, by what bounds it: arithmetic, chains of sums that wait for
 * each other, loads into registers, and what streams in from beyond each cache. What bounds it
 * counts whole, the rest in part, as they overlap only so far; the loops around come on top.
 *
 * The numbers begin with what processors of today can do (two operations of a vector a cycle), and
 * were then fitted to the order of measured trials, since an order is all that is asked of them.
 * What they absorb besides, as the cheapness of what the prefetchers bring, is the machine's.
 *
 * Those for 32 registers (AVX-512) come from 6,670 trials of 46 runs on 23 layers of five networks,
 * more than half of them drawn at random: .82 of the pairs of faster kernels are in order. Those
 * for 16 (AVX2) come from 8,300 trials on 79 layers, 3,600 of them drawn at random, 1,100 because
 * an earlier fit liked them: .87, and .86 of layers that were left out of the fit.
 *
 * They differ most in what a number costs that is wanted in all lanes, which AVX-512 loads within
 * the operation, and in values that find no register, of which AVX2 soon has some: for 32 registers
 * that is no part of the fit, and the fit for 16 is older than loading some of them anew.
 */
#include "engine/tensor/nest_view.h"

#include <math.h>

#ifndef COST_STORAGE /* tests/bench/fit.c changes them */
#define COST_STORAGE static const
#endif

struct cost {
    double ops;        /* a vector of one arithmetic operation */
    double latency;    /* of a sum that waits for the one before */
    double loads;      /* a vector into a register */
    double broadcasts; /* one number into all lanes */
    double spills;     /* a value without a register, in each step of the reduction */
    double l2;         /* a byte from beyond the first cache */
    double l3;         /* a byte from beyond the second */
    double overlap;    /* share of what is not the bound */
    double pass;       /* a step of the innermost loop */
    double tile;       /* a register tile begun and ended, */
    double sums;       /* and each vector of it */
    double copy;       /* a vector copied */
    double guard;      /* a condition that a load meets */
    double call;       /* exp and its like */
    double division;
};

COST_STORAGE struct cost of_32_registers = {
    .ops = 0.82,
    .latency = 3.5,
    .loads = 0.096,
    .broadcasts = 0.15,
    .l2 = 1 / 800.0,
    .l3 = 1 / 53.0,
    .overlap = 0.0036,
    .pass = 0.0008,
    .tile = 0.0014,
    .sums = 3.06,
    .copy = 3.85,
    .guard = 0.03,
    .call = 8.2,
    .division = 1.6,
};

COST_STORAGE struct cost of_16_registers = {
    .ops = 0.62,
    .latency = 3.1,
    .loads = 0.13,
    .broadcasts = 0.72,
    .spills = 10.5,
    .l2 = 1 / 71.0,
    .l3 = 1 / 13.5,
    .overlap = 0.022,
    .pass = 0.0176,
    .tile = 0.0067,
    .sums = 0.84,
    .copy = 11.9,
    .guard = 0.23,
    .call = 8.2,
    .division = 1.6,
};

static const struct cost *cost_on(const struct sketch_target *t)
{
    return t->registers < 32 ? &of_16_registers : &of_32_registers;
}

/* Of the loads in one pass over the register tile. */
static double load_cycles(const struct nest_view *v, const struct fbuffer *b, const struct cost *c)
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
    return nr * ((wide ? c->loads : c->broadcasts) + b->asked * c->guard);
}

/* Of the values of a step of the reduction that find no register. */
static double over_cycles(const struct nest_view *v, const struct cost *c)
{
    struct nest_tile t;
    nest_tile(v->n, &v->sh, &t);
    return (double)(t.over - t.again) * c->spills + (double)(t.again * (t.longest - 1)) * c->loads;
}

double estimate_anchor(const struct nest_view *v)
{
    const struct sketch_target *t = &v->n->plan->target;
    const struct cost *c = cost_on(t);
    const struct nest_shape *sh = &v->sh;
    double passes = nest_view_trips(v, CUT_TILE), steps = (double)sh->unrolled_trips;
    double vectors = passes * (double)sh->tile_vectors * steps;
    double chains = (double)sh->tile_vectors * (v->n->across >= 0 ? steps : 1);
    double loads = over_cycles(v, c) * steps;
    for (int i = 1; i < v->nr_buffers; i++)
        loads += load_cycles(v, &v->buffer[i], c);
    passes *= 1 - v->skipped;
    vectors *= 1 - v->skipped;
    double part[] = {
        vectors * (c->ops * fmax(v->ops, 1) + c->call * v->calls + c->division * v->divisions),
        v->s->nr_reduce ? vectors * c->latency / chains : 0,
        loads * passes,
        nest_view_traffic(v, 0.9 * (double)t->l1_bytes) * c->l2,
        nest_view_traffic(v, 0.8 * (double)t->l2_bytes) * c->l3,
    };
    double most = 0, sum = 0;
    for (int i = 0; i < 5; i++) {
        most = fmax(most, part[i]);
        sum += part[i];
    }
    double tile = c->tile + c->sums * (double)sh->tile_vectors;
    return most + c->overlap * (sum - most) + nest_view_trips(v, CUT_S2) * tile + passes * c->pass;
}

double estimate_copy(const struct nest_view *v, double points, double visits)
{
    const struct cost *c = cost_on(&v->n->plan->target);
    return points / fmax(v->sh.lanes, 1) * c->copy + visits * c->tile;
}

double estimate_transform(const struct sketch_target *t, const struct transform_work *w)
{
    const struct cost *c = cost_on(t);
    return c->ops * w->ops + c->loads * w->moved + w->steps * c->pass +
           w->bytes * (w->fits ? c->l2 : c->l3);
}
