/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lua models: from a network written in Lua to tasks. network.h describes the language.
 *
 * Networks come from files, or are embedded in the program under a name: scripts/models/NAME.lua.
 * Scripts run in a sandbox and are not trusted.
 */
#ifndef SCRIPTS_LUA_MODEL_H
#define SCRIPTS_LUA_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"
#include "engine/model/graph.h"
#include "engine/model/model.h"

/* What `squall tune` tunes when it is not told. */
#define LUA_MODEL_DEFAULT "resnet18"

/*
 * Adds the tasks of the network to `out`. A name of an embedded network is that network, even where
 * a file of that name exists: "./resnet18" is the file. An error of the script begins with its
 * file and line.
 */
int lua_model_tasks(const char *path_or_name, const struct model_options *o, struct task_list *out,
                    struct err *e);

/*
 * The network as a finished graph, for who runs it whole. NULL and a sentence on failure; the
 * caller frees with graph_free(). `name` stands for the file in messages and, without folder and
 * extension, for the name that the script does not give.
 */
struct graph *lua_model_graph(const char *path_or_name, struct err *e);
struct graph *lua_model_graph_from_text(const char *name, const char *text, size_t size,
                                        struct err *e);

bool lua_model_is_embedded(const char *name);

/* Name, one line of summary, and source of embedded network `i`; NULL past the last. Static. */
const char *lua_model_name(int i);
const char *lua_model_summary(int i);
const char *lua_model_source(int i);

#endif
