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

/* The networks here need 0.2 MiB and 0.1 million instructions. */
static const struct sandbox_limits limits = {
    .mem_bytes = 16 << 20, .instructions = 100 * 1000 * 1000, .cpu_ns = INT64_C(3000000000)};

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

/* "dir/net.lua" is "net". */
static void stem(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');
    utf8_copy(out, size, slash ? slash + 1 : path);
    char *dot = strrchr(out, '.');
    if (dot && dot != out)
        *dot = '\0';
}

int lua_model_tasks_from_text(const char *name, const char *text, size_t size,
                              const struct model_options *o, struct task_list *out, struct err *e)
{
    struct job j = {.script = name, .text = text, .size = size};
    struct sandbox *s = sandbox_new(&limits, e);
    if (!s)
        return ERR_NOMEM;
    int rc = sandbox_run(s, name, build, &j, e);
    if (rc)
        goto out;
    rc = graph_finish(j.net.g, e);
    if (!rc)
        rc = model_tasks_from_graph(j.net.g, o, out, e);
    if (rc)
        err_prefix(e, "network \"%s\"", name);
    else if (!out->name[0] && *j.net.g->name)
        utf8_copy(out->name, sizeof out->name, j.net.g->name);
    else if (!out->name[0])
        stem(name, out->name, sizeof out->name);
out:
    sandbox_free(s); /* first: its tensors are numbers of the graph */
    network_release(&j.net);
    return rc;
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
    int rc = err_set(e, ERR_INPUT, "\"%s\" is neither a file nor an embedded network; those are: %s",
                     name, strbuf_text(&names));
    strbuf_release(&names);
    return rc;
}

int lua_model_tasks(const char *path_or_name, const struct model_options *o, struct task_list *out,
                    struct err *e)
{
    const struct embedded_script *s = find_embedded(path_or_name);
    if (s) {
        char script[72];
        snprintf(script, sizeof script, "%s.lua", s->name);
        return lua_model_tasks_from_text(script, s->text, s->size, o, out, e);
    }
    if (!strpbrk(path_or_name, "/.") && access(path_or_name, F_OK) != 0)
        return unknown_name(path_or_name, e);
    struct strbuf text = {0};
    int rc = read_file(path_or_name, &text, e);
    if (!rc)
        rc = lua_model_tasks_from_text(path_or_name, strbuf_text(&text), text.len, o, out, e);
    strbuf_release(&text);
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
