/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph: operators on values, as a reader of some format fills it.
 *
 * Values are numbers from 0, nodes are made in the order of their execution, so a value exists
 * before it is used and a graph cannot have cycles. A reader
 *
 *     struct graph *g = graph_new("net", 13);
 *     int x = graph_input(g, "x", 4, (int64_t[]){1, 3, 224, 224}, e);
 *     int w = graph_const_f32(g, "w", 4, (int64_t[]){64, 3, 7, 7}, NULL, e);
 *     struct graph_attr attr[] = {graph_ints("strides", (int64_t[]){2, 2}, 2)};
 *     int y;
 *     graph_node(g, &(struct graph_call){.op = "Conv", .name = "conv1", .in = (int[]){x, w},
 *                .nr_in = 2, .attr = attr, .nr_attr = 1, .out = &y, .nr_out = 1}, e);
 *     graph_output(g, y, e);
 *     graph_finish(g, e);
 *
 * passes operators by their ONNX name with ONNX attributes and the meaning of the graph's operator
 * set; shapes are inferred and constants folded at once, so an error is that of the call at hand.
 * graph_finish() removes what no output needs and folds scales into weights. Then model_tasks()
 * makes tasks of it.
 *
 * Functions that return a value number return a negative error code on failure. All memory belongs
 * to the graph, and what is passed in is copied, unless said otherwise. Not thread-safe.
 */
#ifndef ENGINE_MODEL_GRAPH_H
#define ENGINE_MODEL_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/model/op.h"

/*
 * Kernels compute with float32 alone. What varies and is of whole numbers (int32, int64) or truth
 * is held in float32, too: whole numbers are exact up to 2^24, which is enough for indices, shapes
 * and masks. GRAPH_OTHER: a type that no kernel computes with; only passed on.
 */
enum graph_type { GRAPH_F32, GRAPH_I64, GRAPH_BOOL, GRAPH_OTHER };

/*
 * A constant has either its elements in f32/i64, whatever its type, or is `fill` everywhere (never
 * stored: weights of 400 MB exist that are one number), or is computed by `node` from other
 * constants when asked for (graph_const_data), or is "any" value: a shape whose numbers do not
 * matter, as in a script.
 */
struct value {
    const char *name;
    enum graph_type type;
    const char *refused; /* "uint8": parameters may be of this type, operands not; or NULL */
    struct shape shape;
    bool is_const, is_fill, is_any;
    bool is_input, is_output;
    bool flows;    /* input or output that stays in the layout of the activations, not plain */
    bool is_scale; /* constant factor or variance: numbers made up for it are positive */
    bool has_range; /* low, high: of the elements, once somebody has asked (ops.c) */
    double low, high;
    bool owns, owns_i64; /* f32, i64 are freed with this value, not with one it is a view of */
    double fill;
    float *f32;
    int64_t *i64;
    int node;    /* that computes it, or -1 */
    int view_of; /* the constant whose elements it shows in another shape, or -1 */
    int nr_uses; /* by live nodes; valid after graph_finish() */
};

struct node {
    struct op op;
    const char *name; /* in the file; may be "" */
    int nr_in, *in, out;
    bool live;     /* an output depends on it; valid after graph_finish() */
    bool constant; /* all its inputs are: never part of a task */
};

struct graph {
    const char *name;
    int opset;
    int nr_values, cap_values, nr_nodes, cap_nodes;
    struct value **value;
    struct node **node;
    int nr_inputs, cap_inputs, *input;    /* values, in the order of graph_input() */
    int nr_outputs, cap_outputs, *output; /* in the order of graph_output() */
    int64_t nr_made; /* elements of constants that operators have made, as masks and tables */
    struct arena arena;
};

struct graph *graph_new(const char *name, int opset);
void graph_free(struct graph *g);

int graph_input(struct graph *g, const char *name, int rank, const int64_t *dim, struct err *e);
/* Of another type than float32. */
int graph_input_of(struct graph *g, const char *name, enum graph_type type, int rank,
                   const int64_t *dim, struct err *e);

/* Constants. `data` NULL: any values (weights of a script), for float32 only. */
int graph_const_f32(struct graph *g, const char *name, int rank, const int64_t *dim,
                    const float *data, struct err *e);
int graph_const_i64(struct graph *g, const char *name, int rank, const int64_t *dim,
                    const int64_t *data, struct err *e);
int graph_const_fill(struct graph *g, const char *name, enum graph_type type, int rank,
                     const int64_t *dim, double fill, struct err *e);

enum graph_attr_kind { ATTR_INT, ATTR_FLOAT, ATTR_STRING, ATTR_INTS, ATTR_FLOATS, ATTR_VALUE };

/* Attributes point to the caller's memory, which must last for the call. */
struct graph_attr {
    const char *name;
    enum graph_attr_kind kind;
    int64_t i;     /* ATTR_INT; ATTR_VALUE: number of a constant value */
    double f;      /* ATTR_FLOAT */
    const char *s; /* ATTR_STRING, not terminated */
    size_t nr;     /* length of s, ints or floats */
    const int64_t *ints;
    const float *floats;
};

struct graph_attr graph_int(const char *name, int64_t v);
struct graph_attr graph_float(const char *name, double v);
struct graph_attr graph_string(const char *name, const char *v);
struct graph_attr graph_ints(const char *name, const int64_t *v, size_t nr);

struct graph_call {
    const char *op;   /* "Conv" */
    const char *name; /* of the node, for messages and tasks; may be "" or NULL */
    const int *in;    /* values; -1 is an optional input left out */
    int nr_in;
    const struct graph_attr *attr;
    int nr_attr;
    int *out; /* gets the values; -1 where this reader cannot give that output */
    int nr_out;
    const char *const *out_name; /* names of the outputs for messages, or NULL */
};

/* Adds an operator. An unknown one is an error that lists the known ones. */
int graph_node(struct graph *g, const struct graph_call *call, struct err *e);

int graph_output(struct graph *g, int value, struct err *e);
int graph_finish(struct graph *g, struct err *e);

/* Names of all operators, separated by blanks. */
const char *graph_operators(void);

/* Is input `i` of the ONNX operator `op` no operand but a parameter, which must be a constant? */
bool graph_is_parameter(const char *op, int i);

/*
 * The elements of a constant as float32, computed at the first call and kept; NULL and a sentence
 * where it is no constant, has no values of its own, or needs more than `limit` bytes in all.
 */
const float *graph_const_data(struct graph *g, int value, size_t limit, struct err *e);

/* ---- for the files of this room ---- */

/* Adds a value, or a node with its output value; the shape must be valid (shape_size() >= 0). */
int graph_add_value(struct graph *g, const char *name, enum graph_type type,
                    const struct shape *shape);
int graph_add_node(struct graph *g, const struct op *op, const char *name, const int *in, int nr_in,
                   const struct shape *out);

/* A constant seen in another shape of as many elements: shares its elements. */
int graph_const_view(struct graph *g, int value, const struct shape *shape);

/* The one number of a constant of one element, or of a fill; false where there is none. */
bool graph_const_scalar(const struct graph *g, int value, double *v);

/* Recomputes liveness of nodes and use counts of values. */
void graph_mark_live(struct graph *g);

/* Folds scales and shifts by constants (algebra.c). */
void graph_simplify(struct graph *g);

#endif
