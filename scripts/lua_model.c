/* SPDX-License-Identifier: Apache-2.0 */
#include "scripts/lua_model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>

#include "engine/base/arena.h"
#include "engine/base/strbuf.h"
#include "engine/base/utf8.h"
#include "engine/model/graph.h"
#include "engine/model/plan.h"
#include "scripts/embedded.h"
#include "scripts/network.h"
#include "scripts/sandbox.h"

enum { MAX_SCRIPT_BYTES = 1 << 20 };

/* The embedded networks need 30 kB and a thousand instructions. */
static const struct sandbox_limits limits = {
    .mem_bytes = 16 << 20, .instructions = 100 * 1000 * 1000, .cpu_ns = INT64_C(3000000000)};

/* "dir/net.lua" is "net". */
static void stem(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');
    utf8_copy(out, size, slash ? slash + 1 : path);
    char *dot = strrchr(out, '.');
    if (dot && dot != out)
        *dot = '\0';
}

struct job {
    const char *script, *text;
    size_t size;
    struct network net;
};

static void build(lua_State *L, void *ctx)
{
    struct job *j = ctx;
    network_open(L, &j->net);
    sandbox_load(L, j->script, j->text, j->size);
    lua_call(L, 0, 1);
    if (!network_is_net(L, -1))
        luaL_error(L, "the script returns %s, it must end with: return net:output(x)",
                   lua_isnil(L, -1) ? "nothing" : luaL_tolstring(L, -1, NULL));
    if (!j->net.has_output)
        luaL_error(L, "the network has no output, the script must end with: return net:output(x)");
}

struct graph *lua_model_graph_from_text(const char *name, const char *text, size_t size,
                                        struct err *e)
{
    char short_name[64];
    stem(name, short_name, sizeof short_name);
    struct job j = {.script = name, .text = text, .size = size, .net.name = short_name};
    struct graph *g = NULL;
    struct sandbox *s = sandbox_new(&limits, e);
    if (!s || sandbox_run(s, name, build, &j, e) != 0)
        goto out;
    if (graph_finish(j.net.g, e) != 0) {
        err_prefix(e, "network \"%s\"", name);
        goto out;
    }
    g = j.net.g;
    j.net.g = NULL;
out:
    sandbox_free(s); /* first: its tensors are numbers of the graph */
    network_release(&j.net);
    return g;
}

/* The whole of a small regular file; opening anything else, as a pipe, could wait for ever. */
static int read_file(const char *path, struct strbuf *text, struct err *e)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
    if (fd < 0 || fstat(fd, &st) != 0) {
        rc = err_set(e, ERR_IO, "cannot open script \"%s\": %s", path, strerror(errno));
        goto out;
    }
    if (!S_ISREG(st.st_mode)) {
        rc = err_set(e, ERR_INPUT, "cannot read script \"%s\": not a regular file", path);
        goto out;
    }
    char buf[8192];
    ssize_t n;
    while (!rc && (n = read(fd, buf, sizeof buf)) != 0) {
        if (n > 0)
            strbuf_add(text, buf, (size_t)n);
        else if (errno != EINTR)
            rc = err_set(e, ERR_IO, "cannot read script \"%s\": %s", path, strerror(errno));
        if (text->len > MAX_SCRIPT_BYTES)
            rc = err_set(e, ERR_LIMIT, "script \"%s\" is larger than 1 MiB", path);
    }
out:
    if (fd >= 0)
        close(fd);
    return rc;
}

static const struct embedded_script *find_embedded(const char *name)
{
    for (const struct embedded_script *s = embedded_models; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

static int unknown_name(const char *name, struct err *e)
{
    struct strbuf names = {0};
    for (const struct embedded_script *s = embedded_models; s->name; s++)
        strbuf_addf(&names, "%s%s", names.len ? ", " : "", s->name);
    int rc =
        err_set(e, ERR_INPUT, "\"%s\" is neither a file nor an embedded network; those are: %s",
                name, strbuf_text(&names));
    strbuf_release(&names);
    return rc;
}

/* The text of a file or of an embedded network; `script` gets its name for messages. */
static int find_text(const char *path_or_name, struct strbuf *script, struct strbuf *text,
                     struct err *e)
{
    const struct embedded_script *s = find_embedded(path_or_name);
    if (s) {
        strbuf_addf(script, "%s.lua", s->name);
        strbuf_add(text, s->text, s->size);
        return 0;
    }
    if (!strpbrk(path_or_name, "/.") && access(path_or_name, F_OK) != 0)
        return unknown_name(path_or_name, e);
    strbuf_adds(script, path_or_name);
    return read_file(path_or_name, text, e);
}

struct graph *lua_model_graph(const char *path_or_name, struct err *e)
{
    struct strbuf script = {0}, text = {0};
    struct graph *g = NULL;
    if (find_text(path_or_name, &script, &text, e) == 0)
        g = lua_model_graph_from_text(strbuf_text(&script), strbuf_text(&text), text.len, e);
    strbuf_release(&text);
    strbuf_release(&script);
    return g;
}

int lua_model_tasks(const char *path_or_name, const struct model_options *o, struct task_list *out,
                    struct err *e)
{
    struct graph *g = lua_model_graph(path_or_name, e);
    if (!g)
        return e && e->code ? e->code : ERR_SCRIPT;
    int rc = model_tasks_from_graph(g, o, out, e);
    if (rc)
        err_prefix(e, "network \"%s\"", path_or_name);
    else if (!out->name[0])
        utf8_copy(out->name, sizeof out->name, g->name);
    graph_free(g);
    return rc;
}

bool lua_model_is_embedded(const char *name)
{
    return find_embedded(name) != NULL;
}

static const struct embedded_script *at(int i)
{
    static const struct embedded_script none;
    for (int k = 0; k <= i; k++)
        if (!embedded_models[k].name)
            return &none;
    return i < 0 ? &none : &embedded_models[i];
}

const char *lua_model_name(int i)
{
    return at(i)->name;
}

const char *lua_model_summary(int i)
{
    return at(i)->summary;
}

const char *lua_model_source(int i)
{
    return at(i)->text;
}
