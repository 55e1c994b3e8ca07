/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox: a Lua state for text from anybody.
 *
 * A script sees math, string and table, without what reaches outside (io, os, package, debug,
 * load), what catches errors (pcall, coroutine: they could swallow the limits), what is not
 * reproducible (math.random), and the C functions whose time the instruction limit cannot see
 * (patterns, table.move). A name that is not defined is an error, not nil. Memory, instructions
 * and, for what a single instruction can still cost, CPU time are bounded: a script ends, well or
 * with a sentence.
 *
 *     struct sandbox *s = sandbox_new(&limits, e);
 *     int rc = sandbox_run(s, "net.lua", body, ctx, e);
 *     sandbox_free(s);
 *
 * Everything that touches the state happens in `body`, which runs protected: any error in it,
 * memory included, becomes one sentence that begins with the script and its line. Such an error
 * jumps out of C functions, so they own nothing that a jump would lose; what they make belongs to
 * ctx.
 */
#ifndef SCRIPTS_SANDBOX_H
#define SCRIPTS_SANDBOX_H

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

struct sandbox;

struct sandbox_limits {
    size_t mem_bytes;     /* of everything in the Lua state */
    int64_t instructions; /* of one run */
    int64_t cpu_ns;       /* of one run, of the calling thread */
};

/* The caller frees with sandbox_free(); NULL and a sentence where memory does not suffice. */
struct sandbox *sandbox_new(const struct sandbox_limits *limits, struct err *e);
void sandbox_free(struct sandbox *s);

/*
 * Runs body(L, ctx) protected, with a fresh budget. `script` names the text that runs, in messages.
 * 0, or ERR_SCRIPT and a sentence.
 */
int sandbox_run(struct sandbox *s, const char *script, void (*body)(lua_State *L, void *ctx),
                void *ctx, struct err *e);

/*
 * For a body: pushes the function of a script given as text, called `script` in messages as in
 * sandbox_run(). Compiled chunks are refused. Raises a Lua error on failure.
 */
void sandbox_load(lua_State *L, const char *script, const char *text, size_t size);

#endif
