/* SPDX-License-Identifier: Apache-2.0 */
#include "scripts/network_private.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>

void net_check_keys(lua_State *L, int idx, const char *what, const char *known)
{
    lua_pushnil(L);
    while (lua_next(L, idx)) {
        lua_pop(L, 1);
        bool ok = lua_type(L, -1) != LUA_TSTRING && strstr(known, "...");
        if (lua_type(L, -1) == LUA_TSTRING) {
            const char *key = lua_tostring(L, -1), *p = known;
            size_t len = strlen(key);
            while (!ok && len && (p = strstr(p, key))) {
                ok = (p == known || p[-1] == ' ') && (p[len] == ' ' || !p[len]);
                p += len;
            }
        }
        if (!ok)
            luaL_error(L, "%s: has no option \"%s\"; %s%s", what, luaL_tolstring(L, -1, NULL),
                       *known ? "there are: " : "it has none", known);
    }
}

static int read_int(lua_State *L, int idx, int64_t *out)
{
    int is_int;
    *out = lua_tointegerx(L, idx, &is_int);
    return is_int && lua_type(L, idx) == LUA_TNUMBER;
}

int net_table_ints(lua_State *L, int idx, const char *what, int max, int64_t *out)
{
    lua_Unsigned nr = lua_rawlen(L, idx);
    if (nr > (lua_Unsigned)max)
        return luaL_error(L, "%s: has %d numbers, at most %d make sense", what,
                          (int)(nr < 1000000 ? nr : 1000000), max);
    for (int i = 0; i < (int)nr; i++) {
        lua_rawgeti(L, idx, i + 1);
        if (!read_int(L, -1, &out[i]))
            return luaL_error(L, "%s: number %d is %s, it must be a whole number", what, i + 1,
                              luaL_tolstring(L, -1, NULL));
        lua_pop(L, 1);
    }
    return (int)nr;
}

/* ---- calls of operators ---- */

int call_raise(struct net_call *c, const char *fmt, ...)
{
    luaL_where(c->L, 1);
    lua_pushfstring(c->L, "%s: ", c->op->name);
    va_list ap;
    va_start(ap, fmt);
    lua_pushvfstring(c->L, fmt, ap);
    va_end(ap);
    lua_concat(c->L, 3);
    return lua_error(c->L);
}

const struct shape *call_shape(const struct net_call *c, int i)
{
    return &c->net->g->value[c->x[i]]->shape;
}

/*
 * Collects the tensors that the arguments begin with, or those of a list as the first argument, in
 * memory that is pushed. Returns the index of the first argument after them.
 */
static int take_tensors(struct net_call *c)
{
    lua_State *L = c->L;
    int top = lua_gettop(L), first = 1;
    bool is_list = c->op->max_x > 3 && lua_istable(L, 1) && lua_rawlen(L, 1) > 0;
    lua_Unsigned room = is_list ? lua_rawlen(L, 1) : (lua_Unsigned)top;
    if (room > NET_MAX_TENSORS)
        return call_raise(c, "reads more than %d tensors", NET_MAX_TENSORS);
    int *x = lua_newuserdatauv(L, ((size_t)room + 1) * sizeof *x, 0);
    c->x = x;
    for (int i = 1; is_list && i <= (int)room; i++) {
        lua_rawgeti(L, 1, i);
        if ((x[c->nr_x++] = net_value(L, c->net, -1)) < 0)
            return call_raise(c, "item %d of the list is a %s, not a tensor", i,
                              luaL_typename(L, -1));
        lua_pop(L, 1);
    }
    if (is_list)
        return 2;
    while (first <= top && (x[c->nr_x] = net_value(L, c->net, first)) >= 0) {
        first++;
        c->nr_x++;
    }
    return first;
}

static void check_call(struct net_call *c, int rest, int top)
{
    lua_State *L = c->L;
    const struct net_op *op = c->op;
    if (c->nr_x < op->min_x && rest <= top && !lua_istable(L, rest))
        call_raise(c, "argument %d is a %s, not a tensor", c->nr_x + 1, luaL_typename(L, rest));
    if (c->nr_x < op->min_x)
        call_raise(c, "needs %d tensor%s, got %d", op->min_x, op->min_x > 1 ? "s" : "", c->nr_x);
    if (c->nr_x > op->max_x)
        call_raise(c, "takes at most %d tensor%s, got %d", op->max_x, op->max_x > 1 ? "s" : "",
                   c->nr_x);
    if (rest < top || (rest == top && !lua_istable(L, rest)))
        call_raise(c, "after the tensors takes a table of options, got a %s",
                   luaL_typename(L, rest));
    if (rest == top) {
        c->options = rest;
        luaL_checkstack(L, 8, NULL);
        lua_pushfstring(L, "%s name", op->options);
        net_check_keys(L, rest, op->name, *op->options ? lua_tostring(L, -1) : "name");
        lua_pop(L, 1);
    }
}

/* Upvalues: network, operator. net:relu(x) and x:relu() arrive here alike. */
int net_call_operator(lua_State *L)
{
    struct net_call c = {.L = L, .net = net_bound(L), .op = lua_touserdata(L, lua_upvalueindex(2))};
    char name[NET_NAME];
    if (network_is_net(L, 1))
        lua_remove(L, 1);
    else if (!luaL_testudata(L, 1, NET_TENSOR) && lua_type(L, 1) != LUA_TNUMBER)
        call_raise(&c, "is called with a colon, as in net:%s(x) or x:%s()", c.op->name, c.op->name);
    net_check_room(L, c.net);
    int top = lua_gettop(L), rest = take_tensors(&c);
    check_call(&c, rest, top);
    snprintf(name, sizeof name, "%s%d", c.op->name, ++c.net->nr_calls[1 + (c.op - net_ops)]);
    if (c.options && lua_getfield(L, c.options, "name") != LUA_TNIL) {
        if (lua_type(L, -1) != LUA_TSTRING)
            return call_raise(&c, "name must be a text");
        net_name(L, -1, name);
    }
    c.name = name;
    net_push_tensor(L, c.op->build(&c));
    return 1;
}

int new_weight(struct net_call *c, const char *suffix, int rank, const int64_t *dim)
{
    char name[2 * NET_NAME];
    struct err e = ERR_INIT;
    snprintf(name, sizeof name, "%s.%s", c->name, suffix);
    int v = graph_const_f32(c->net->g, name, rank, dim, NULL, &e);
    return v < 0 ? call_raise(c, "%s", e.msg) : v;
}

int new_number(struct net_call *c, double v)
{
    struct err e = ERR_INIT;
    float f = (float)v;
    int value = graph_const_f32(c->net->g, "", 0, NULL, &f, &e);
    return value < 0 ? call_raise(c, "%s", e.msg) : value;
}

int new_node(struct net_call *c, const char *onnx, const int *in, int nr_in,
             const struct graph_attr *attr, int nr_attr)
{
    int out = -1;
    struct err e = ERR_INIT;
    struct graph_call call = {.op = onnx,
                              .name = c->name,
                              .in = in,
                              .nr_in = nr_in,
                              .attr = attr,
                              .nr_attr = nr_attr,
                              .out = &out,
                              .nr_out = 1};
    if (graph_node(c->net->g, &call, &e) != 0 || out < 0)
        return call_raise(c, "%s", e.msg);
    return out;
}

/* ---- options ---- */

static int push_option(struct net_call *c, const char *key)
{
    if (c->options)
        return lua_getfield(c->L, c->options, key);
    lua_pushnil(c->L);
    return LUA_TNIL;
}

bool has_option(struct net_call *c, const char *key)
{
    bool has = push_option(c, key) != LUA_TNIL;
    lua_pop(c->L, 1);
    return has;
}

/* Larger extents are nonsense; the engine checks what follows from them. */
static void check_int(struct net_call *c, const char *key, int64_t v, int64_t min)
{
    if (v < min || v > INT32_MAX)
        call_raise(c, "%s is %I, it must be at least %I%s", key, (LUAI_UACINT)v, (LUAI_UACINT)min,
                   v < min ? "" : " and below 2^31");
}

int64_t opt_int(struct net_call *c, const char *key, int64_t min, int64_t otherwise)
{
    int64_t v = otherwise;
    if (push_option(c, key) != LUA_TNIL) {
        if (!read_int(c->L, -1, &v))
            return call_raise(c, "%s is %s, it must be a whole number", key,
                              luaL_tolstring(c->L, -1, NULL));
        check_int(c, key, v, min);
    }
    lua_pop(c->L, 1);
    return v;
}

int64_t need_int(struct net_call *c, const char *key, int64_t min)
{
    if (!has_option(c, key))
        return call_raise(c, "needs the option %s", key);
    return opt_int(c, key, min, min);
}

double opt_number(struct net_call *c, const char *key, double otherwise)
{
    double v = otherwise;
    if (push_option(c, key) != LUA_TNIL) {
        if (lua_type(c->L, -1) != LUA_TNUMBER || isnan(v = lua_tonumber(c->L, -1)))
            call_raise(c, "%s is %s, it must be a number", key, luaL_tolstring(c->L, -1, NULL));
    }
    lua_pop(c->L, 1);
    return v;
}

bool opt_bool(struct net_call *c, const char *key, bool otherwise)
{
    bool v = otherwise;
    int type = push_option(c, key);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        call_raise(c, "%s is %s, it must be true or false", key, luaL_tolstring(c->L, -1, NULL));
    if (type == LUA_TBOOLEAN)
        v = lua_toboolean(c->L, -1);
    lua_pop(c->L, 1);
    return v;
}

bool opt_is_text(struct net_call *c, const char *key, const char *text)
{
    bool is = push_option(c, key) == LUA_TSTRING;
    if (is && strcmp(lua_tostring(c->L, -1), text) != 0)
        call_raise(c, "%s is \"%s\", it must be numbers or \"%s\"", key, lua_tostring(c->L, -1),
                   text);
    lua_pop(c->L, 1);
    return is;
}

int opt_length(struct net_call *c, const char *key)
{
    lua_Unsigned nr = push_option(c, key) == LUA_TTABLE ? lua_rawlen(c->L, -1) : 0;
    lua_pop(c->L, 1);
    return nr < NET_MAX_TENSORS ? (int)nr : NET_MAX_TENSORS;
}

bool opt_ints(struct net_call *c, const char *key, int nr, int64_t min, int64_t *out)
{
    lua_State *L = c->L;
    int type = push_option(c, key);
    if (type == LUA_TTABLE) {
        if (lua_rawlen(L, -1) != (lua_Unsigned)nr)
            call_raise(c, "%s has %d numbers where %d are needed", key, opt_length(c, key), nr);
        lua_pushfstring(L, "%s: %s", c->op->name, key);
        net_table_ints(L, lua_gettop(L) - 1, lua_tostring(L, -1), nr, out);
        lua_pop(L, 1);
        for (int i = 0; i < nr; i++)
            check_int(c, key, out[i], min);
    }
    lua_pop(L, 1);
    if (type != LUA_TTABLE && type != LUA_TNIL)
        for (int i = 0; i < nr; i++)
            out[i] = opt_int(c, key, min, min);
    return type != LUA_TNIL;
}

int opt_axis(struct net_call *c, const char *key, int rank, int otherwise)
{
    int64_t v = opt_int(c, key, -LAYOUT_MAX_DIMS, otherwise);
    if (v == 0 || v > rank || v < -rank)
        return call_raise(c, "%s is %I, a tensor of %d dimensions has 1 to %d, or -1 to -%d", key,
                          (LUAI_UACINT)v, rank, rank, rank);
    return (int)(v < 0 ? v + rank : v - 1);
}
