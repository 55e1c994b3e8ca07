/* SPDX-License-Identifier: Apache-2.0 */
/* net:op(): operators by their ONNX names and attributes. */
#include <string.h>

#include <lauxlib.h>

#include "scripts/network_private.h"

enum { MAX_ATTRS = 16, MAX_OUTPUTS = 256, MAX_INTS = 256 };

struct request {
    struct graph_attr attr[MAX_ATTRS];
    int64_t ints[MAX_ATTRS][MAX_INTS];
    int nr_attr;
    int in[NET_MAX_TENSORS], nr_in;
    int out[MAX_OUTPUTS], nr_out;
};

/* The attribute value on top, by its type in Lua: 1 is an int, 1.0 and 0.5 are floats. */
static struct graph_attr to_attr(lua_State *L, struct request *r, const char *name)
{
    size_t len;
    switch (lua_type(L, -1)) {
    case LUA_TNUMBER:
        return lua_isinteger(L, -1) ? graph_int(name, lua_tointeger(L, -1))
                                    : graph_float(name, lua_tonumber(L, -1));
    case LUA_TBOOLEAN:
        return graph_int(name, lua_toboolean(L, -1));
    case LUA_TSTRING:
        len = strlen(lua_tostring(L, -1)); /* the table of attributes keeps it */
        return (struct graph_attr){
            .name = name, .kind = ATTR_STRING, .s = lua_tostring(L, -1), .nr = len};
    case LUA_TTABLE:
        len = (size_t)net_table_ints(L, lua_gettop(L), name, MAX_INTS, r->ints[r->nr_attr]);
        return graph_ints(name, r->ints[r->nr_attr], len);
    default:
        luaL_error(L, "op: attribute \"%s\" is a %s", name, luaL_typename(L, -1));
        return (struct graph_attr){0};
    }
}

static void read_attrs(lua_State *L, int idx, struct request *r)
{
    lua_pushnil(L);
    while (lua_next(L, idx)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "op: attributes have names, as in {axis = 1}");
        if (r->nr_attr == MAX_ATTRS)
            luaL_error(L, "op: has more than %d attributes", MAX_ATTRS);
        r->attr[r->nr_attr] = to_attr(L, r, lua_tostring(L, -2));
        r->nr_attr++;
        lua_pop(L, 1);
    }
}

/* A table of whole numbers is a constant of int64, as axes and shapes are. */
static int new_ints(lua_State *L, struct network *n, struct request *r)
{
    int64_t nr = net_table_ints(L, lua_gettop(L), "op: a constant", MAX_INTS, r->ints[0]);
    struct err e = ERR_INIT;
    int v = graph_const_i64(n->g, "", 1, &nr, r->ints[0], &e);
    return v < 0 ? luaL_error(L, "%s", e.msg) : v;
}

/* `false` in the list is an optional input left out. Before the attributes: shares their memory. */
static void read_inputs(lua_State *L, int idx, struct network *n, struct request *r)
{
    lua_Unsigned nr = lua_rawlen(L, idx);
    if (nr > NET_MAX_TENSORS)
        luaL_error(L, "op: reads more than %d tensors", NET_MAX_TENSORS);
    for (int i = 1; i <= (int)nr; i++) {
        bool left_out = lua_rawgeti(L, idx, i) == LUA_TBOOLEAN && !lua_toboolean(L, -1);
        int v = left_out ? -1 : lua_istable(L, -1) ? new_ints(L, n, r) : net_value(L, n, -1);
        if (v < 0 && !left_out)
            luaL_error(L, "op: input %d is a %s, not a tensor", i, luaL_typename(L, -1));
        r->in[r->nr_in++] = v;
        lua_pop(L, 1);
    }
}

int net_onnx(lua_State *L)
{
    struct network *n = net_bound(L);
    if (!network_is_net(L, 1) || lua_type(L, 2) != LUA_TSTRING || !lua_istable(L, 3))
        return luaL_error(L, "op: is called as net:op(\"Relu\", {x}, {attributes})");
    if (!lua_isnoneornil(L, 4) && !lua_istable(L, 4))
        return luaL_error(L, "op: attributes are a table, not a %s", luaL_typename(L, 4));
    lua_Integer nr_out = luaL_optinteger(L, 5, 1);
    if (nr_out < 1 || nr_out > MAX_OUTPUTS)
        return luaL_error(L, "op: has 1 to %d outputs", MAX_OUTPUTS);
    net_check_room(L, n);
    lua_settop(L, 5);
    struct request *r = lua_newuserdatauv(L, sizeof *r, 0);
    memset(r, 0, sizeof *r);
    read_inputs(L, 3, n, r);
    if (lua_istable(L, 4))
        read_attrs(L, 4, r);
    char name[NET_NAME];
    lua_pushfstring(L, "%s%d", lua_tostring(L, 2), ++n->nr_calls[0]);
    net_name(L, -1, name);
    struct graph_call call = {.op = lua_tostring(L, 2),
                              .name = name,
                              .in = r->in,
                              .nr_in = r->nr_in,
                              .attr = r->attr,
                              .nr_attr = r->nr_attr,
                              .out = r->out,
                              .nr_out = (int)nr_out};
    struct err e = ERR_INIT;
    if (graph_node(n->g, &call, &e) != 0)
        return luaL_error(L, "%s", e.msg);
    luaL_checkstack(L, MAX_OUTPUTS, NULL);
    for (int i = 0; i < (int)nr_out; i++) {
        if (r->out[i] < 0)
            return luaL_error(L, "operator \"%s\" does not give output %d", call.op, i + 1);
        net_push_tensor(L, r->out[i]);
    }
    return (int)nr_out;
}
