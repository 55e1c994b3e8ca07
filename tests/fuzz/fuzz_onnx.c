/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ONNX reader on whatever bytes: it must refuse or give a graph, whose plan must come out, and
 * where that computes little, its stages and operators must run within their arrays.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "engine/base/arena.h"
#include "engine/model/plan.h"
#include "engine/model/regions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Beyond this running tells nothing new, but takes time. */
enum { MAX_STEPS = 200000, MAX_VALUES = 64 };

static double steps_of(const struct plan *p, const struct task_list *l)
{
    double steps = 0;
    for (int i = 0; i < p->nr_calls; i++) {
        const struct workload *w = &l->task[p->call[i].task]->wl;
        for (int s = 0; s < w->nr_stages; s++) {
            double n = 1;
            for (int a = 0; a < w->stage[s].nr_spatial + w->stage[s].nr_reduce; a++)
                n *= (double)w->stage[s].extent[a];
            steps += n;
        }
    }
    for (int i = 0; i < p->graph->nr_values; i++) /* constants are computed, too */
        steps += (double)shape_size(&p->graph->value[i]->shape);
    return steps;
}

static void run(const struct plan *p, const struct task_list *l)
{
    const struct graph *g = p->graph;
    float *array[2][MAX_VALUES];
    if (g->nr_inputs > MAX_VALUES || g->nr_outputs > MAX_VALUES || steps_of(p, l) > MAX_STEPS)
        return;
    for (int i = 0; i < g->nr_inputs; i++)
        array[0][i] = xcalloc((size_t)shape_size(&g->value[g->input[i]]->shape) + 1, sizeof(float));
    for (int i = 0; i < g->nr_outputs; i++)
        array[1][i] =
            xcalloc((size_t)shape_size(&g->value[g->output[i]]->shape) + 1, sizeof(float));
    struct plan_runner interpreter = {.call = plan_call_interpreter},
                       reference = {.call = plan_call_reference};
    plan_run(p, l, (const float *const *)array[0], array[1], &interpreter, NULL);
    plan_run(p, l, (const float *const *)array[0], array[1], &reference, NULL);
    for (int i = 0; i < g->nr_inputs; i++)
        free(array[0][i]);
    for (int i = 0; i < g->nr_outputs; i++)
        free(array[1][i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int block = 1; block <= 8; block *= 8) {
        struct err e = ERR_INIT;
        struct graph *g = onnx_parse(data, size, "fuzz.onnx", &e);
        if (!g) {
            if (!e.code || !e.msg[0])
                abort(); /* a refusal has its sentence */
            return 0;
        }
        struct plan p = {0};
        struct task_list l = {0};
        struct model_options o = {.block = block};
        if (plan_build(&p, g, &o, &l, &e) == 0)
            run(&p, &l);
        else if (!e.code)
            abort();
        struct regions regions = {0};
        (void)regions_find(&regions, g, &o, &l, &e);
        regions_release(&regions);
        plan_release(&p);
        task_list_release(&l);
        graph_free(g);
    }
    return 0;
}
