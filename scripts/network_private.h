/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the network binding share.
 *
 *   network.c       the objects: network, tensor
 *   network_call.c  one call of an operator from Lua: its tensors, options, errors
 *   network_ops.c   the operators; a new one is one line in its table
 *   network_onnx.c  net:op(), the door to all others
 *
 * Errors are raised, which jumps: what these functions make is on the stack, Lua's or the graph's.
 * All raise "<script>:<line>: <operator>: <text>".
 */
#ifndef SCRIPTS_NETWORK_PRIVATE_H
#define SCRIPTS_NETWORK_PRIVATE_H

#include <lua.h>

#include "scripts/network.h"

/* Tensors that one operator reads; bytes of a name. */
enum { NET_MAX_TENSORS = 1024, NET_NAME = 64 };

/* Metatables in the registry; messages of Lua name the type by it. */
#define NET_TYPE "network"
#define NET_TENSOR "tensor"

struct net_call;

/*
 * An operator: its name in Lua, its builder, how many tensors it reads, its options separated by
 * blanks ("..." is the numbered part of the table). `onnx` is for builders that serve several.
 */
struct net_op {
    const char *name;
    int (*build)(struct net_call *c); /* returns the value */
    int min_x, max_x;
    const char *options, *onnx;
};

extern const struct net_op net_ops[]; /* the last has no name */

struct net_call {
    lua_State *L;
    struct network *net;
    const struct net_op *op;
    const int *x; /* values read */
    int nr_x;
    int options;      /* stack index of the table, 0 where there is none */
    const char *name; /* of the node */
};

/* ---- network.c ---- */

/* The network of a closure: its first upvalue. */
struct network *net_bound(lua_State *L);
void net_push_tensor(lua_State *L, int value);
/* A tensor, or a number as a new constant; -1 for anything else. */
int net_value(lua_State *L, struct network *n, int idx);
/* Refuses to let the network grow past any sensible size. */
void net_check_room(lua_State *L, const struct network *n);
/* A text for names of nodes: printable, without blanks; "" where it is none. */
void net_name(lua_State *L, int idx, char out[NET_NAME]);

/* ---- network_call.c ---- */

/* Upvalues: network, operator. */
int net_call_operator(lua_State *L);

/* Raises unless each key of the table at idx is in `known`, as in struct net_op. */
void net_check_keys(lua_State *L, int idx, const char *what, const char *known);
/* Whole numbers 1..n of the table at idx; returns n, at most `max`. */
int net_table_ints(lua_State *L, int idx, const char *what, int max, int64_t *out);

int call_raise(struct net_call *c, const char *fmt, ...);
const struct shape *call_shape(const struct net_call *c, int i);

/* Options. A missing one is `otherwise`; a wrong type or a number out of range raises. */
bool has_option(struct net_call *c, const char *key);
int64_t opt_int(struct net_call *c, const char *key, int64_t min, int64_t otherwise);
int64_t need_int(struct net_call *c, const char *key, int64_t min);
double opt_number(struct net_call *c, const char *key, double otherwise);
bool opt_bool(struct net_call *c, const char *key, bool otherwise);
/* Is the option this text? Any other text raises. */
bool opt_is_text(struct net_call *c, const char *key, const char *text);
/* A number for all, or a table of exactly `nr`. False where it is missing. */
bool opt_ints(struct net_call *c, const char *key, int nr, int64_t min, int64_t *out);
/* Length of an option that is a table, else 0. */
int opt_length(struct net_call *c, const char *key);
/* Like opt_int: a dimension counted from 1, or back from -1; as an index from 0. */
int opt_axis(struct net_call *c, const char *key, int rank, int otherwise);

/* Values and nodes. */
int new_weight(struct net_call *c, const char *suffix, int rank, const int64_t *dim);
int new_number(struct net_call *c, double v);
int new_node(struct net_call *c, const char *onnx, const int *in, int nr_in,
             const struct graph_attr *attr, int nr_attr);

/* ---- network_onnx.c ---- */

/* net:op(name, tensors, attributes, outputs). Upvalue: network. */
int net_onnx(lua_State *L);

#endif
