/* SPDX-License-Identifier: Apache-2.0 */
#include "scripts/network.h"

#include <stdio.h>
#include <string.h>

#include <lauxlib.h>

#include "scripts/network_private.h"

/*
 * The graph is outside of what the sandbox counts, so it has limits of its own. The largest
 * networks in use have some ten thousand nodes; each costs less than a kilobyte.
 */
enum { MAX_NODES = 10000, MAX_VALUES = 50000, MAX_INPUTS = 64 };

/* Operator set of the attributes that net:op() takes. */
enum { OPSET = 17 };

struct tensor {
    int value;
};

void network_release(struct network *n)
{
    graph_free(n->g);
    *n = (struct network){0};
}

static int raise(lua_State *L, const struct err *e)
{
    return luaL_error(L, "%s", e->msg);
}

struct network *net_bound(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

void net_push_tensor(lua_State *L, int value)
{
    struct tensor *t = lua_newuserdatauv(L, sizeof *t, 0);
    t->value = value;
    luaL_setmetatable(L, NET_TENSOR);
}

bool network_is_net(lua_State *L, int idx)
{
    return luaL_testudata(L, idx, NET_TYPE) != NULL;
}

/* Pushes "[1,3,224,224]". */
static const char *push_shape(lua_State *L, const struct shape *s)
{
    lua_pushliteral(L, "[");
    for (int i = 0; i < s->rank; i++) {
        lua_pushfstring(L, "%s%I", i ? "," : "", (LUAI_UACINT)s->dim[i]);
        lua_concat(L, 2);
    }
    lua_pushliteral(L, "]");
    lua_concat(L, 2);
    return lua_tostring(L, -1);
}

void net_name(lua_State *L, int idx, char out[NET_NAME])
{
    const char *text = lua_type(L, idx) == LUA_TSTRING ? lua_tostring(L, idx) : "";
    size_t n = 0;
    for (; text[n] && n < NET_NAME - 1; n++)
        out[n] = text[n] > ' ' && text[n] < 127 ? text[n] : '_';
    out[n] = '\0';
}

void net_check_room(lua_State *L, const struct network *n)
{
    if (n->g->nr_nodes > MAX_NODES || n->g->nr_values > MAX_VALUES)
        luaL_error(L, "the network has more than %d operators", MAX_NODES);
}

int net_value(lua_State *L, struct network *n, int idx)
{
    const struct tensor *t = luaL_testudata(L, idx, NET_TENSOR);
    if (t)
        return t->value;
    if (lua_type(L, idx) != LUA_TNUMBER)
        return -1;
    float v = (float)lua_tonumber(L, idx);
    struct err e = ERR_INIT;
    int value = graph_const_f32(n->g, "", 0, NULL, &v, &e);
    return value < 0 ? raise(L, &e) : value;
}

/* ---- network{...} ---- */

/* The table on top is a shape; adds an input, and the tensor as number `i` of the list at `list`.
 */
static void add_input(lua_State *L, struct network *n, int list, int i)
{
    int64_t dim[LAYOUT_MAX_DIMS];
    char name[NET_NAME];
    if (!lua_istable(L, -1))
        luaL_error(L, "network: an input is a shape like {1, 3, 224, 224}, not a %s",
                   luaL_typename(L, -1));
    int shape = lua_gettop(L);
    net_check_keys(L, shape, "shape of an input", "name ...");
    int rank = net_table_ints(L, shape, "shape of an input", LAYOUT_MAX_DIMS, dim);
    if (rank == 0)
        luaL_error(L, "network: an input needs a shape like {1, 3, 224, 224}");
    lua_getfield(L, shape, "name");
    net_name(L, -1, name);
    if (!*name)
        snprintf(name, sizeof name, "input%d", i);
    struct err e = ERR_INIT;
    int v = graph_input(n->g, name, rank, dim, &e);
    if (v < 0)
        raise(L, &e);
    net_push_tensor(L, v);
    lua_rawseti(L, list, i);
    lua_settop(L, shape);
}

static int new_network(lua_State *L)
{
    struct network *n = net_bound(L);
    char name[NET_NAME];
    if (n->g)
        return luaL_error(L, "network: this script has made its network already");
    luaL_argexpected(L, lua_istable(L, 1), 1, "table of options");
    lua_settop(L, 1);
    net_check_keys(L, 1, "network", "name input inputs");
    if (lua_getfield(L, 1, "name") != LUA_TNIL && lua_type(L, -1) != LUA_TSTRING)
        return luaL_error(L, "network: name must be a text");
    net_name(L, 2, name);
    n->g = graph_new(*name ? name : n->name, OPSET);
    lua_newtable(L); /* 3: the inputs */
    if (lua_getfield(L, 1, "input") != LUA_TNIL) {
        add_input(L, n, 3, 1);
    } else if (lua_getfield(L, 1, "inputs") == LUA_TTABLE) {
        lua_Unsigned nr = lua_rawlen(L, -1);
        for (int i = 1; i <= (int)(nr < MAX_INPUTS ? nr : MAX_INPUTS); i++) {
            lua_rawgeti(L, 5, i);
            add_input(L, n, 3, i);
            lua_settop(L, 5);
        }
    }
    if (lua_rawlen(L, 3) == 0)
        return luaL_error(L, "network: needs an input, as in input = {1, 3, 224, 224}");
    lua_newuserdatauv(L, 1, 1);
    luaL_setmetatable(L, NET_TYPE);
    lua_pushvalue(L, 3);
    lua_setiuservalue(L, -2, 1);
    return 1;
}

/* ---- other methods ---- */

static int output(lua_State *L)
{
    struct network *n = net_bound(L);
    if (!network_is_net(L, 1))
        return luaL_error(L, "output: is called as net:output(x)");
    if (lua_gettop(L) < 2)
        return luaL_error(L, "output: needs a tensor");
    for (int i = 2; i <= lua_gettop(L); i++) {
        const struct tensor *t = luaL_testudata(L, i, NET_TENSOR);
        struct err e = ERR_INIT;
        if (!t)
            return luaL_error(L, "output: argument %d is a %s, not a tensor", i - 1,
                              luaL_typename(L, i));
        if (graph_output(n->g, t->value, &e) != 0)
            return raise(L, &e);
    }
    n->has_output = true;
    lua_settop(L, 1);
    return 1;
}

static int weight(lua_State *L)
{
    struct network *n = net_bound(L);
    int64_t dim[LAYOUT_MAX_DIMS];
    if (!network_is_net(L, 1) || !lua_istable(L, 2))
        return luaL_error(L, "weight: is called with a shape, as net:weight{64, 64}");
    net_check_room(L, n);
    lua_settop(L, 2);
    net_check_keys(L, 2, "weight", "fill name ...");
    int rank = net_table_ints(L, 2, "weight", LAYOUT_MAX_DIMS, dim);
    char name[NET_NAME];
    lua_getfield(L, 2, "name");
    net_name(L, 3, name);
    bool fill = lua_getfield(L, 2, "fill") != LUA_TNIL;
    if (fill && lua_type(L, -1) != LUA_TNUMBER)
        return luaL_error(L, "weight: fill must be a number");
    struct err e = ERR_INIT;
    int v = fill ? graph_const_fill(n->g, name, GRAPH_F32, rank, dim, lua_tonumber(L, -1), &e)
                 : graph_const_f32(n->g, name, rank, dim, NULL, &e);
    if (v < 0)
        return raise(L, &e);
    net_push_tensor(L, v);
    return 1;
}

static int tensor_index(lua_State *L)
{
    const struct network *n = net_bound(L);
    const struct tensor *t = luaL_checkudata(L, 1, NET_TENSOR);
    const struct value *v = n->g->value[t->value];
    const char *key = luaL_tolstring(L, 2, NULL);
    if (strcmp(key, "shape") == 0) {
        lua_createtable(L, v->shape.rank, 0);
        for (int i = 0; i < v->shape.rank; i++) {
            lua_pushinteger(L, v->shape.dim[i]);
            lua_rawseti(L, -2, i + 1);
        }
        return 1;
    }
    if (strcmp(key, "name") == 0) {
        lua_pushstring(L, v->name);
        return 1;
    }
    if (lua_getfield(L, lua_upvalueindex(2), key) == LUA_TNIL)
        return luaL_error(L, "a tensor has no \"%s\"", key);
    return 1;
}

static int tensor_text(lua_State *L)
{
    const struct tensor *t = luaL_checkudata(L, 1, NET_TENSOR);
    lua_pushfstring(L, "tensor %s", push_shape(L, &net_bound(L)->g->value[t->value]->shape));
    return 1;
}

static int net_index(lua_State *L)
{
    luaL_checkudata(L, 1, NET_TYPE);
    const char *key = luaL_tolstring(L, 2, NULL);
    lua_getiuservalue(L, 1, 1);
    if (strcmp(key, "inputs") == 0)
        return 1;
    if (strcmp(key, "input") == 0) {
        lua_rawgeti(L, -1, 1);
        return 1;
    }
    if (strcmp(key, "name") == 0) {
        lua_pushstring(L, net_bound(L)->g->name);
        return 1;
    }
    if (lua_getfield(L, lua_upvalueindex(2), key) == LUA_TNIL)
        return luaL_error(L,
                          "a network has no operator \"%s\"; net:op(\"%s\", ...) reaches those of "
                          "ONNX",
                          key, key);
    return 1;
}

/* ---- classes ---- */

/* Pushes a closure over the network, and over the operator if there is one. */
static void push_method(lua_State *L, struct network *n, lua_CFunction f, const struct net_op *op)
{
    lua_pushlightuserdata(L, n);
    if (op)
        lua_pushlightuserdata(L, (void *)(uintptr_t)op);
    lua_pushcclosure(L, f, op ? 2 : 1);
}

static const struct net_op *find_op(const char *name)
{
    const struct net_op *op = net_ops;
    while (strcmp(op->name, name) != 0)
        op++;
    return op;
}

/* A metatable whose __index is `index` over the network and the methods at the top of the stack. */
static void new_class(lua_State *L, struct network *n, const char *type, lua_CFunction index)
{
    int methods = lua_gettop(L);
    luaL_newmetatable(L, type);
    lua_pushlightuserdata(L, n);
    lua_pushvalue(L, methods);
    lua_pushcclosure(L, index, 2);
    lua_setfield(L, -2, "__index");
}

void network_open(lua_State *L, struct network *n)
{
    static const struct {
        const char *event, *op;
    } arithmetic[] = {{"__add", "add"}, {"__sub", "sub"}, {"__mul", "mul"}, {"__div", "div"}};
    lua_newtable(L);
    for (const struct net_op *op = net_ops; op->name; op++) {
        push_method(L, n, net_call_operator, op);
        lua_setfield(L, -2, op->name);
    }
    new_class(L, n, NET_TENSOR, tensor_index);
    push_method(L, n, tensor_text, NULL);
    lua_setfield(L, -2, "__tostring");
    for (int i = 0; i < 4; i++) {
        push_method(L, n, net_call_operator, find_op(arithmetic[i].op));
        lua_setfield(L, -2, arithmetic[i].event);
    }
    lua_pop(L, 1);
    static const luaL_Reg own[] = {{"output", output}, {"weight", weight}, {"op", net_onnx}};
    lua_newtable(L);
    lua_pushnil(L);
    while (lua_next(L, -3)) { /* all that a tensor has */
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_settable(L, -4);
    }
    for (int i = 0; i < 3; i++) {
        push_method(L, n, own[i].func, NULL);
        lua_setfield(L, -2, own[i].name);
    }
    new_class(L, n, NET_TYPE, net_index);
    lua_pop(L, 3);
    push_method(L, n, new_network, NULL);
    lua_setglobal(L, "network");
}
