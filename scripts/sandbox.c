/* SPDX-License-Identifier: Apache-2.0 */
#include "scripts/sandbox.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lualib.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/base/strbuf.h"
#include "engine/base/utf8.h"

/*
 * Instructions between two looks at the budget. Small, because one instruction can be a call into C
 * that copies or sorts megabytes, and the CPU time is looked at only then.
 */
enum { HOOK_PERIOD = 100 };

/* Callers that a message lists; more do not help a reader. */
enum { MAX_CALLERS = 3 };

struct sandbox {
    lua_State *L;
    struct sandbox_limits limits;
    size_t mem_bytes;
    int64_t instructions_left, cpu_end_ns;
    char script[LUA_IDSIZE]; /* as Lua prints it: never cut again */
    int line;                /* the last one begun; for errors that know no place, as of memory */
    char msg[768];
};

static void *limited_alloc(void *ctx, void *p, size_t old, size_t size)
{
    struct sandbox *s = ctx;
    size_t had = p ? old : 0; /* without a block, `old` is the kind of the object */
    if (size == 0) {
        free(p);
        s->mem_bytes -= had;
        return NULL;
    }
    if (size > had && size - had > s->limits.mem_bytes - s->mem_bytes)
        return NULL;
    void *q = realloc(p, size);
    if (q)
        s->mem_bytes = s->mem_bytes - had + size;
    return q;
}

static struct sandbox *of_state(lua_State *L)
{
    void *ctx;
    lua_getallocf(L, &ctx);
    return ctx;
}

/* ---- what a script sees ---- */

static const char *const base_names[] = {"assert", "error",    "ipairs",   "next", "pairs",
                                         "select", "tonumber", "tostring", "type", NULL};
static const char *const math_names[] = {
    "abs",        "ceil",       "exp",  "floor", "fmod", "huge",      "log",  "max", "min",
    "maxinteger", "mininteger", "modf", "pi",    "sqrt", "tointeger", "type", "ult", NULL};
static const char *const string_names[] = {"byte", "char", "format",  "len",   "lower",
                                           "rep",  "sub",  "reverse", "upper", NULL};
static const char *const table_names[] = {"concat", "insert", "pack", "remove",
                                          "sort",   "unpack", NULL};
static const char *const absent_names[] = {
    "collectgarbage", "coroutine", "debug",  "dofile",  "getmetatable", "io",
    "load",           "loadfile",  "os",     "package", "pcall",        "print",
    "rawequal",       "rawget",    "rawlen", "rawset",  "require",      "setmetatable",
    "utf8",           "warn",      "xpcall", "_G",      "_VERSION",     NULL};

static bool is_listed(const char *const *list, const char *name)
{
    while (*list && strcmp(*list, name) != 0)
        list++;
    return *list != NULL;
}

/* Removes from the table on top what is not listed. */
static void keep_only(lua_State *L, const char *const *list)
{
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) != LUA_TSTRING || !is_listed(list, lua_tostring(L, -1))) {
            lua_pushvalue(L, -1);
            lua_pushnil(L);
            lua_rawset(L, -4);
        }
    }
}

static int undefined_name(lua_State *L)
{
    if (lua_type(L, 2) == LUA_TSTRING && is_listed(absent_names, lua_tostring(L, 2)))
        return luaL_error(L, "\"%s\" is not available: a script has no files, system or other code",
                          lua_tostring(L, 2));
    return luaL_error(L, "\"%s\" is not defined", luaL_tolstring(L, 2, NULL));
}

static void open_library(lua_State *L, const char *name, lua_CFunction open,
                         const char *const *list)
{
    luaL_requiref(L, name, open, 1);
    keep_only(L, list);
    lua_pop(L, 1);
}

static int open_libraries(lua_State *L)
{
    luaL_requiref(L, LUA_GNAME, luaopen_base, 0);
    keep_only(L, base_names);
    lua_pop(L, 1);
    open_library(L, LUA_MATHLIBNAME, luaopen_math, math_names);
    open_library(L, LUA_STRLIBNAME, luaopen_string, string_names);
    open_library(L, LUA_TABLIBNAME, luaopen_table, table_names);
    lua_pushglobaltable(L);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, undefined_name);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    return 0;
}

/* ---- limits ---- */

static int give_up(lua_State *L, lua_Debug *ar, const char *what)
{
    const struct sandbox *s = of_state(L);
    lua_getinfo(L, "l", ar);
    lua_pushfstring(L, "%s:%d: %s", s->script, ar->currentline > 0 ? ar->currentline : s->line,
                    what);
    return lua_error(L);
}

static void watch(lua_State *L, lua_Debug *ar)
{
    struct sandbox *s = of_state(L);
    if (ar->event == LUA_HOOKLINE) {
        s->line = ar->currentline;
        return;
    }
    s->instructions_left -= HOOK_PERIOD;
    if (s->instructions_left <= 0)
        give_up(L, ar,
                lua_pushfstring(L,
                                "gave up after %d million instructions, is this a loop "
                                "without end?",
                                (int)(s->limits.instructions / 1000000)));
    if (clock_thread_cpu_ns() > s->cpu_end_ns)
        give_up(
            L, ar,
            lua_pushfstring(L, "gave up after %d seconds", (int)(s->limits.cpu_ns / 1000000000)));
}

/* ---- errors ---- */

/*
 * Message handler: runs where the error is, so that it knows who called. Allocates nothing in Lua,
 * which may be out of memory or stack.
 */
static int explain(lua_State *L)
{
    struct sandbox *s = of_state(L);
    int type = lua_type(L, 1), line[MAX_CALLERS + 1], nr = 0;
    lua_Debug ar;
    for (int level = 0; nr <= MAX_CALLERS && lua_getstack(L, level, &ar); level++)
        if (lua_getinfo(L, "l", &ar) && ar.currentline > 0)
            line[nr++] = ar.currentline;
    char other[64];
    snprintf(other, sizeof other, "error with %s instead of a message",
             type == LUA_TNIL ? "nil" : lua_typename(L, type));
    const char *text = type == LUA_TSTRING ? lua_tostring(L, 1) : other;
    char place[LUA_IDSIZE + 16] = "";
    size_t len = strlen(s->script);
    if (strncmp(text, s->script, len) != 0 || text[len] != ':') {
        int at = nr ? line[0] : s->line;
        snprintf(place, sizeof place, at > 0 ? "%s:%d: " : "%s: ", s->script, at);
    }
    int used = snprintf(s->msg, sizeof s->msg, "%s%.600s", place, text);
    for (int i = 1; i < nr && used < (int)sizeof s->msg; i++)
        used += snprintf(s->msg + used, sizeof s->msg - (size_t)used, "%s%d%s",
                         i > 1 ? ", " : " (called from line ", line[i], i == nr - 1 ? ")" : "");
    return 1;
}

/* One line of printable text, whatever a script put in its message. */
static int report(struct sandbox *s, struct err *e)
{
    for (char *p = s->msg; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = ' ';
    struct strbuf clean = {0};
    utf8_clean(s->msg, strlen(s->msg), &clean);
    err_set(e, ERR_SCRIPT, "%s", strbuf_text(&clean));
    strbuf_release(&clean);
    return ERR_SCRIPT;
}

static int failed(struct sandbox *s, int status, struct err *e)
{
    /* For these two Lua calls no handler, or calls it in vain. */
    if (status == LUA_ERRMEM)
        snprintf(s->msg, sizeof s->msg, "%s:%d: needs more than the %zu MiB a script may use",
                 s->script, s->line, s->limits.mem_bytes >> 20);
    else if (status != LUA_ERRRUN || !s->msg[0])
        snprintf(s->msg, sizeof s->msg, "%s:%d: calls are nested too deeply", s->script, s->line);
    return report(s, e);
}

/* ---- life ---- */

struct sandbox *sandbox_new(const struct sandbox_limits *limits, struct err *e)
{
    struct sandbox *s = xcalloc(1, sizeof *s);
    s->limits = *limits;
    s->L = lua_newstate(limited_alloc, s);
    bool ok = s->L != NULL;
    if (ok) {
        lua_pushcfunction(s->L, open_libraries);
        ok = lua_pcall(s->L, 0, 0, 0) == LUA_OK;
    }
    if (!ok) {
        err_set(e, ERR_NOMEM, "not enough memory to start Lua");
        sandbox_free(s);
        return NULL;
    }
    return s;
}

void sandbox_free(struct sandbox *s)
{
    if (s && s->L)
        lua_close(s->L);
    free(s);
}

struct run {
    void (*body)(lua_State *L, void *ctx);
    void *ctx;
};

static int run_body(lua_State *L)
{
    struct run *r = lua_touserdata(L, 1);
    lua_settop(L, 0);
    r->body(L, r->ctx);
    return 0;
}

/* A name that is too long for Lua keeps its end, which tells more. */
static void name_script(char *to, const char *name)
{
    size_t len = strlen(name);
    if (len < LUA_IDSIZE)
        memcpy(to, name, len + 1);
    else
        snprintf(to, LUA_IDSIZE, "...%s", name + len - (LUA_IDSIZE - 4));
    for (char *p = to; *p; p++)
        if ((unsigned char)*p < ' ')
            *p = '?';
}

int sandbox_run(struct sandbox *s, const char *script, void (*body)(lua_State *L, void *ctx),
                void *ctx, struct err *e)
{
    struct run r = {body, ctx};
    name_script(s->script, script);
    s->line = 0;
    s->msg[0] = '\0';
    s->instructions_left = s->limits.instructions;
    s->cpu_end_ns = clock_thread_cpu_ns() + s->limits.cpu_ns;
    lua_settop(s->L, 0);
    lua_sethook(s->L, watch, LUA_MASKCOUNT | LUA_MASKLINE, HOOK_PERIOD);
    lua_pushcfunction(s->L, explain);
    lua_pushcfunction(s->L, run_body);
    lua_pushlightuserdata(s->L, &r);
    int status = lua_pcall(s->L, 1, 0, 1);
    lua_settop(s->L, 0);
    lua_sethook(s->L, NULL, 0, 0);
    return status == LUA_OK ? 0 : failed(s, status, e);
}

void sandbox_load(lua_State *L, const char *script, const char *text, size_t size)
{
    char name[LUA_IDSIZE + 1] = "=";
    name_script(name + 1, script);
    if (size && text[0] == LUA_SIGNATURE[0])
        luaL_error(L, "%s: is compiled Lua, only source text is read", name + 1);
    /* As the stand-alone interpreter does: the first line may say who runs the file. */
    if (size && text[0] == '#')
        while (size && *text != '\n') {
            text++;
            size--;
        }
    if (luaL_loadbufferx(L, text, size, name, "t") != LUA_OK)
        lua_error(L);
}
