/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plan: a graph as a sequence of kernel calls on buffers.
 *
 *   graph -> groups (fuse.c) -> layouts and calls (layouts.c) -> tasks, equal ones merged
 *
 * The plan keeps what the list of tasks forgets: which call reads and writes what, in which order.
 * Running the calls one after the other is running the model.
 */
#ifndef ENGINE_MODEL_PLAN_H
#define ENGINE_MODEL_PLAN_H

#include "engine/model/graph.h"
#include "engine/model/kernel.h"
#include "engine/model/model.h"

/*
 * A value of the graph in one stored form. `same_as` >= 0: not memory of its own but lies in that
 * buffer from element `offset` on: the same elements seen in another shape, or a part of a
 * concatenation, whose kernel writes where the whole is (which then has no call of its own).
 */
struct plan_buffer {
    int value;
    int block; /* of dimension 1; 1 is plain */
    struct layout layout;
    int same_as;
    int64_t offset;
    bool is_outside; /* input of the model: memory of the caller */
};

/*
 * One call of a task. operand[t] for tensor t of its workload: a buffer for inputs and the output;
 * a constant value of the graph for constants (graph_const_data() gives its elements, in the
 * logical order of the tensor), or -1 where the task has the data itself; -1 for temporaries.
 */
struct plan_call {
    int task;
    int group; /* of fuse.c, in their order; -1: converts a value to its other form */
    int operand[WL_MAX_TENSORS];
};

struct plan {
    struct graph *graph; /* borrowed */
    struct plan_buffer *buffer;
    struct plan_call *call;
    int nr_buffers, cap_buffers, nr_calls, cap_calls;
    int nr_groups; /* some have no call: what moves nothing */
};

/* The graph must be finished and outlive the plan. Tasks are added to `tasks`, which may already
 * hold some. A zeroed plan is valid and empty. */
int plan_build(struct plan *p, struct graph *g, const struct model_options *o,
               struct task_list *tasks, struct err *e);
void plan_release(struct plan *p);

/* The buffer that has the memory `b` lies in, and where in it. */
int plan_root(const struct plan *p, int b, int64_t *offset);

/* As far as `b` is all of another buffer, that buffer. */
int plan_memory(const struct plan *p, int b);

/* The buffer in the form in which the model gives value `v` out; -1 for a constant. */
int plan_output(const struct plan *p, int v);

/* How the caller's array of input or output `k` of the graph is stored: plain, unless it flows. */
struct layout plan_outside(const struct plan *p, bool output, int k);

/* Floats behind the end of each buffer that kernels may read: a vector of the widest target. */
enum { PLAN_SLACK = 64 };

/*
 * Runs the calls of a plan in order, each by runner->call() on the stored arrays of its tensors
 * (NULL for temporaries; constants in their logical order). `inputs` and `outputs`: plain logical
 * arrays, in the order of the graph's lists input[] and output[]. All buffers live until the end.
 */
struct plan_runner {
    int (*call)(void *ctx, const struct task *task, float *const *stored, struct err *e);
    void *ctx;
};

int plan_run(const struct plan *p, const struct task_list *tasks, const float *const *inputs,
             float *const *outputs, const struct plan_runner *runner, struct err *e);

/* Calls by the definition of the workload, and by the reference of the task. */
int plan_call_interpreter(void *ctx, const struct task *task, float *const *stored, struct err *e);
int plan_call_reference(void *ctx, const struct task *task, float *const *stored, struct err *e);

/* Tasks of a finished graph: plan_build() without keeping the plan. */
int model_tasks_from_graph(struct graph *g, const struct model_options *o, struct task_list *out,
                           struct err *e);

/* The graph of an ONNX file, finished (onnx.c). NULL and a sentence on failure; graph_free(). */
struct graph *onnx_read(const char *path, struct err *e);

/* The same from memory; `name` stands for the file in messages. */
struct graph *onnx_parse(const void *data, size_t size, const char *name, struct err *e);

/*
 * The graph of a named workload, finished. Planned with the *block that is given back it is one
 * kernel: the wanted one, or 1 where its operator works on plain arrays. NULL and a sentence.
 */
struct graph *model_graph_from_name(const char *text, int *block, struct err *e);

/*
 * A conformance case: an ONNX file and a file with a tensor for each of its inputs, which has its
 * shape. Inputs that some operator reads as a parameter (the shape of a Reshape) and those without
 * elements become constants with the numbers of their file; value[i] gets the graph's input for
 * file i, or -1 where that is a constant now.
 */
struct onnx_case {
    const char *const *path;
    int nr;
    int *value;
};

/* How a file is read; all zero is as it says. */
struct onnx_options {
    const char *shapes;           /* as in struct model_options; or NULL */
    const struct onnx_case *bind; /* or NULL */
};

struct graph *onnx_read_as(const char *path, const struct onnx_options *o, struct err *e);

/* A file with one tensor, as float32 whatever its type; the caller frees *data. */
int onnx_read_tensor(const char *path, struct shape *shape, float **data, struct err *e);

/* As task_list_add(), and returns the index of the task or of its equal. */
int task_list_place(struct task_list *l, struct task *t);

/* ---- groups: fuse.c ---- */

struct group {
    int *node, nr; /* in order; the first is the anchor, or an operator on elements */
    int result;    /* value */
};

struct groups {
    struct group *group; /* in the order of execution */
    int nr;
    int *of_node; /* group of each node, or -1 */
    struct arena arena;
};

/* Every live node that is no constant is in one group. `block`: of the layouts to come. */
void groups_make(struct groups *gs, const struct graph *g, int block);
void groups_release(struct groups *gs);

#endif
