/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an input to tasks: the door of engine/model.
 *
 *   ONNX file, or network table of a script, or named workload
 *     -> graph (graph.h): operators on values, shapes inferred, constants folded
 *     -> fused groups: a producer with what follows it element by element
 *     -> layouts: 4-D activations flow channel-blocked where `block` > 1
 *     -> tasks, equal workloads merged
 */
#ifndef ENGINE_MODEL_MODEL_H
#define ENGINE_MODEL_MODEL_H

#include <stdbool.h>

#include "engine/base/err.h"
#include "engine/model/task.h"

/* Is `text`, of that length, "NAME=1x3x224x224"? */
bool model_is_shape(const char *text, size_t len);

struct model_options {
    int block; /* channel block of activations: float lanes of the target; 1 for plain layouts */
    /* Make kernels of all concatenations, also of those whose parts can be written in place. */
    bool copy_concat;
    /* Which kernels flow plain although they could in blocks: a choice of regions.h, for this model
     * and from outside. NULL: none. */
    const char *plain;
    /* Sizes for what an ONNX file leaves free, one a line: NAME=1x3x224x224 of an input, all of its
     * dimensions; NAME=8 of a dimension that has a name. NULL: none. */
    const char *shapes;
};

/* Reads an ONNX file and extracts its tasks. Errors name the file, and the node where there is one;
 * an operator that is not known is named with its node, and the known ones are listed. */
int model_tasks_from_onnx(const char *path, const struct model_options *o, struct task_list *out,
                          struct err *e);

/*
 * Named workloads: "matmul:MxNxK", "dense:MxNxK", "conv2d:...", documented in workloads.c and in
 * the README. Is `text` of that form (a known kind, then a colon)?
 */
bool model_is_named_workload(const char *text);
int model_task_from_name(const char *text, const struct model_options *o, struct task_list *out,
                         struct err *e);

/* One line for each kind of named workload and its syntax, for --help. */
const char *model_named_workloads_help(void);

#endif
