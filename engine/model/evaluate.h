/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluate: a whole graph by its definition, operator by operator, on plain arrays.
 *
 * What a compiled model is compared with. It uses the reference of the operators and nothing of
 * groups, layouts, tasks and schedules.
 */
#ifndef ENGINE_MODEL_EVALUATE_H
#define ENGINE_MODEL_EVALUATE_H

#include "engine/model/graph.h"

/*
 * Numbers for constants that have none of their own: the weights of scripts and named workloads;
 * with `fills` also weights that are one number everywhere, as in ONNX files whose weights were
 * taken out. The rule, after which other programs can make the same ones:
 *
 *   h    = FNV-1a, 32 bits, of the constant's name; of a script's of "name#number"
 *   x    = h + i * 0x9e3779b1, then MurmurHash3's finaliser          i: index of the element
 *   w[i] = lo + (hi - lo) * (x >> 8) / 2^24
 *   two or more dimensions   hi = sqrt(6 / (elements / extent 0)), lo = -hi
 *   scales and variances     0.5 .. 1.5
 *   other vectors            -0.1 .. 0.1
 *
 * Fills of one element stay: operators may have been made of the number. Call it after
 * plan_build(), which may make tasks of what is known and what is not.
 */
void graph_seed(struct graph *g, bool fills);

/* The generator alone: `n` elements of the array `name` from lo to hi. */
void seed_floats(const char *name, double lo, double hi, int64_t n, float *out);

/* Runs the graph, finished and with numbers for all constants. `inputs`, `outputs`: logical arrays
 * in the order of the graph's lists. */
int graph_evaluate(struct graph *g, const float *const *inputs, float *const *outputs,
                   struct err *e);

#endif
