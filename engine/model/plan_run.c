/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "engine/model/plan.h"

struct run {
    const struct plan *p;
    float **memory;   /* of each buffer that has its own */
    float *constants; /* of unknown values, for one call at a time */
    struct err *e;
};

static float *buffer_memory(const struct run *r, int b)
{
    int64_t offset;
    int root = plan_root(r->p, b, &offset);
    return r->memory[root] + offset;
}

static int allocate(struct run *r)
{
    const struct plan *p = r->p;
    r->memory = xcalloc((size_t)p->nr_buffers, sizeof *r->memory);
    for (int i = 0; i < p->nr_buffers; i++) {
        if (p->buffer[i].same_as >= 0)
            continue;
        int64_t n = layout_stored_size(&p->buffer[i].layout);
        r->memory[i] = calloc((size_t)n + PLAN_SLACK, sizeof(float));
        if (!r->memory[i])
            return err_set(r->e, ERR_NOMEM, "not enough memory for value \"%s\"",
                           p->graph->value[p->buffer[i].value]->name);
    }
    return 0;
}

/* Elements of constant tensor `t`: of the task, of the graph, or made up. */
static int constant(struct run *r, const struct task *task, int t, int value, float **out)
{
    const struct value *v = value >= 0 ? r->p->graph->value[value] : NULL;
    if (v && !v->is_any) {
        *out = (float *)graph_const_data(r->p->graph, value, SIZE_MAX / 2, r->e);
        return *out ? 0 : ERR_NOMEM;
    }
    int64_t n = layout_logical_size(&task->wl.tensor[t].layout);
    *out = xmalloc((size_t)n * sizeof **out);
    task_fill(task, t, *out);
    return 0;
}

static int run_call(struct run *r, const struct plan_call *c, const struct task *task,
                    const struct plan_runner *runner)
{
    float *stored[WL_MAX_TENSORS] = {0};
    bool own[WL_MAX_TENSORS] = {false};
    int rc = 0;
    for (int t = 0; t < task->wl.nr_tensors && !rc; t++) {
        const struct wl_tensor *x = &task->wl.tensor[t];
        if (x->role == WL_CONST) {
            rc = constant(r, task, t, c->operand[t], &stored[t]);
            own[t] = c->operand[t] < 0 || r->p->graph->value[c->operand[t]]->is_any;
        } else if (x->role != WL_TEMP) {
            stored[t] = buffer_memory(r, c->operand[t]);
        }
    }
    if (!rc)
        rc = runner->call(runner->ctx, task, stored, r->e);
    for (int t = 0; t < task->wl.nr_tensors; t++)
        if (own[t])
            free(stored[t]);
    return rc;
}

static void fill_inputs(struct run *r, const float *const *inputs)
{
    const struct plan *p = r->p;
    for (int i = 0; i < p->nr_buffers; i++)
        for (int k = 0; k < p->graph->nr_inputs; k++)
            if (p->buffer[i].is_outside && p->buffer[i].value == p->graph->input[k])
                layout_pack(&p->buffer[i].layout, inputs[k], r->memory[i]);
}

static int read_outputs(struct run *r, float *const *outputs)
{
    struct graph *g = r->p->graph;
    for (int i = 0; i < g->nr_outputs; i++) {
        int v = g->output[i], b = plan_output(r->p, v);
        if (b >= 0) {
            layout_unpack(&r->p->buffer[b].layout, buffer_memory(r, b), outputs[i]);
            continue;
        }
        const float *data = graph_const_data(g, v, SIZE_MAX / 2, r->e);
        if (!data)
            return ERR_NOMEM;
        memcpy(outputs[i], data, (size_t)shape_size(&g->value[v]->shape) * sizeof *data);
    }
    return 0;
}

int plan_run(const struct plan *p, const struct task_list *tasks, const float *const *inputs,
             float *const *outputs, const struct plan_runner *runner, struct err *e)
{
    struct run r = {.p = p, .e = e};
    int rc = allocate(&r);
    if (!rc)
        fill_inputs(&r, inputs);
    for (int i = 0; i < p->nr_calls && !rc; i++)
        rc = run_call(&r, &p->call[i], tasks->task[p->call[i].task], runner);
    if (!rc)
        rc = read_outputs(&r, outputs);
    for (int i = 0; i < p->nr_buffers; i++)
        free(r.memory[i]);
    free(r.memory);
    return rc;
}

int plan_call_interpreter(void *ctx, const struct task *task, float *const *stored, struct err *e)
{
    float *all[WL_MAX_TENSORS];
    (void)ctx;
    (void)e;
    for (int t = 0; t < task->wl.nr_tensors; t++) {
        const struct wl_tensor *x = &task->wl.tensor[t];
        all[t] = x->role == WL_TEMP
                     ? xmalloc((size_t)layout_stored_size(&x->layout) * sizeof(float))
                     : stored[t];
    }
    workload_interpret(&task->wl, all);
    for (int t = 0; t < task->wl.nr_tensors; t++)
        if (task->wl.tensor[t].role == WL_TEMP)
            free(all[t]);
    return 0;
}

int plan_call_reference(void *ctx, const struct task *task, float *const *stored, struct err *e)
{
    float *logical[WL_MAX_TENSORS] = {0};
    if (!task->reference)
        return plan_call_interpreter(ctx, task, stored, e);
    for (int t = 0; t < task->wl.nr_tensors; t++) {
        const struct wl_tensor *x = &task->wl.tensor[t];
        if (x->role == WL_TEMP)
            continue;
        logical[t] = xmalloc((size_t)layout_logical_size(&x->layout) * sizeof(float));
        if (x->role != WL_OUTPUT)
            layout_unpack(&x->layout, stored[t], logical[t]);
    }
    task->reference(task->ctx, logical);
    int out = workload_output(&task->wl);
    layout_pack(&task->wl.tensor[out].layout, logical[out], stored[out]);
    for (int t = 0; t < task->wl.nr_tensors; t++)
        free(logical[t]);
    return 0;
}
