/* SPDX-License-Identifier: Apache-2.0 */
/* From the words of the command line to tasks. A new kind of input is one more branch here. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "scripts/lua_model.h"
#include "ui/cli.h"

static bool has_extension(const char *path, const char *ext)
{
    size_t n = strlen(path), m = strlen(ext);
    return n > m && strcmp(path + n - m, ext) == 0;
}

bool input_is_file(const char *input)
{
    return !lua_model_is_embedded(input) && !model_is_named_workload(input);
}

static int load_one(const char *input, const struct model_options *o, struct task_list *out,
                    struct err *e)
{
    if (lua_model_is_embedded(input) || has_extension(input, ".lua"))
        return lua_model_tasks(input, o, out, e);
    if (model_is_named_workload(input))
        return model_task_from_name(input, o, out, e);
    if (!has_extension(input, ".onnx") && access(input, F_OK) != 0)
        return err_set(e, ERR_INPUT, "\"%s\" is no file, no embedded network and no named workload; "
                       "see squall tune --help", input);
    return model_tasks_from_onnx(input, o, out, e);
}

static void drop_unwanted(struct task_list *l, const char *glob)
{
    int kept = 0;
    for (int i = 0; i < l->nr; i++) {
        if (fnmatch(glob, l->task[i]->name, 0) == 0)
            l->task[kept++] = l->task[i];
        else
            task_free(l->task[i]);
    }
    l->nr = kept;
}

int load_inputs(int nr, const char *const *input, int block, const char *task_glob,
                struct task_list *out, struct err *e)
{
    struct model_options o = {.block = block};
    for (int i = 0; i < nr; i++) {
        int rc = load_one(input[i], &o, out, e);
        if (rc)
            return rc;
    }
    if (task_glob)
        drop_unwanted(out, task_glob);
    if (!out->nr)
        return task_glob ? err_set(e, ERR_INPUT, "no task is named like \"%s\"", task_glob)
                         : err_set(e, ERR_INPUT, "\"%s\" has nothing to tune", input[0]);
    return 0;
}
