/* SPDX-License-Identifier: Apache-2.0 */
/* From the words of the command line to tasks. A new kind of input is one more branch here. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/strbuf.h"
#include "engine/model/model.h"
#include "engine/model/plan.h"
#include "scripts/lua_model.h"
#include "ui/cli.h"
#include "ui/flow.h"

static bool has_extension(const char *path, const char *ext)
{
    size_t n = strlen(path), m = strlen(ext);
    return n > m && strcmp(path + n - m, ext) == 0;
}

bool input_is_file(const char *input)
{
    return !lua_model_is_embedded(input) && !model_is_named_workload(input);
}

/* What a session begins with, and no model: it is an SQLite file. */
bool input_is_session(const char *path)
{
    static const char magic[] = "SQLite format 3";
    char head[sizeof magic];
    FILE *f = fopen(path, "rb");
    bool yes = f && fread(head, sizeof head, 1, f) == 1 && !memcmp(head, magic, sizeof head);
    if (f)
        fclose(f);
    return yes;
}

static bool is_lua(const char *input)
{
    return lua_model_is_embedded(input) || has_extension(input, ".lua");
}

static int load_one(const char *input, const struct model_options *o, struct task_list *out,
                    struct err *e)
{
    if (is_lua(input))
        return lua_model_tasks(input, o, out, e);
    if (model_is_named_workload(input))
        return model_task_from_name(input, o, out, e);
    if (!has_extension(input, ".onnx") && access(input, F_OK) != 0)
        return err_set(e, ERR_INPUT, "\"%s\" is no file, no embedded network and no named workload; "
                       "see squall tune --help", input);
    if (input_is_session(input))
        return err_set(e, ERR_INPUT, "\"%s\" is a session, not a model: go on with `squall resume`",
                       input);
    return model_tasks_from_onnx(input, o, out, e);
}

struct graph *input_graph(const char *input, const char *shapes, int *block, struct err *e)
{
    if (is_lua(input))
        return lua_model_graph(input, e);
    if (model_is_named_workload(input))
        return model_graph_from_name(input, block, e);
    return onnx_read_as(input, &(struct onnx_options){.shapes = shapes}, e);
}

/* As many names as a sentence has room for. */
static int no_such_task(const struct task_list *l, const char *glob, struct err *e)
{
    struct strbuf names = {0};
    int i = 0;
    for (; i < l->nr && names.len < 600; i++)
        strbuf_addf(&names, "%s%s", i ? ", " : "", l->task[i]->name);
    err_set(e, ERR_INPUT, "no task is named like \"%.100s\"; the tasks are: %.800s%s", glob,
            strbuf_text(&names), i < l->nr ? ", ..." : "");
    strbuf_release(&names);
    return ERR_INPUT;
}

int select_tasks(struct task_list *l, const char *glob, struct err *e)
{
    int kept = 0, nr = 0;
    for (int i = 0; i < l->nr; i++)
        nr += fnmatch(glob, l->task[i]->name, 0) == 0;
    if (!nr)
        return no_such_task(l, glob, e);
    for (int i = 0; i < l->nr; i++) {
        if (fnmatch(glob, l->task[i]->name, 0) == 0)
            l->task[kept++] = l->task[i];
        else
            task_free(l->task[i]);
    }
    l->nr = kept;
    return 0;
}

bool add_shape(const char *text, char *shapes, size_t size)
{
    size_t len = strlen(text), used = strlen(shapes);
    if (!model_is_shape(text, len) || used + len + 2 > size)
        return false;
    snprintf(shapes + used, size - used, "%s\n", text);
    return true;
}

int load_inputs(const struct cli_options *given, int block, struct task_list *out, struct err *e)
{
    for (int i = 0; i < given->nr_inputs; i++) {
        struct model_options o = {.block = block, .shapes = given->shapes};
        flow_options(given->flow, i, &o);
        int rc = load_one(given->input[i], &o, out, e);
        if (rc)
            return rc;
    }
    if (!out->nr)
        return err_set(e, ERR_INPUT, "\"%s\" has nothing to tune", given->input[0]);
    return given->task_glob ? select_tasks(out, given->task_glob, e) : 0;
}
