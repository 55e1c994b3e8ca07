/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/model/model.h"

/* The number behind "name=" in a workload's name. */
static int64_t option(const char *text, const char *name, int64_t otherwise)
{
    size_t len = strlen(name);
    for (const char *p = text; (p = strstr(p, name)); p += len)
        if (p > text && (p[-1] == ',' || p[-1] == ':') && p[len] == '=')
            return strtoll(p + len + 1, NULL, 10);
    return otherwise;
}

/*
 * What a library's interface wants to know. Extents are those of the task's tensors; the padding
 * follows from them, since where the stride leaves a rest, the smallest padding that reaches the
 * last output is the one that was meant. A wrong guess would show in the comparison of the outputs.
 */
static void conv_shape(struct layer *l, const struct layout *x, const struct layout *w,
                       const struct layout *y)
{
    int64_t stride = option(l->name, "stride", 1), dilation = option(l->name, "dilation", 1);
    int64_t need = (y->l[2] - 1) * stride + (w->l[2] - 1) * dilation + 1 - x->l[2];
    l->conv.n = x->l[0];
    l->conv.c = x->l[1];
    l->conv.h = x->l[2];
    l->conv.w = x->l[3];
    l->conv.k = w->l[0];
    l->conv.r = w->l[2];
    l->conv.s = w->l[3];
    l->conv.oh = y->l[2];
    l->conv.ow = y->l[3];
    l->conv.stride = stride;
    l->conv.dilation = dilation;
    l->conv.pad = need > 0 ? (need + 1) / 2 : 0;
}

/* Two operands, and no element-wise stage behind the sum: what every library has a call for. */
static int find_operands(const struct layer *l, int *x, int *w, struct err *e)
{
    const struct workload *wl = &l->task->wl;
    *x = *w = -1;
    int operands = 0;
    for (int i = 0; i < wl->nr_tensors; i++) {
        if (wl->tensor[i].role != WL_INPUT && wl->tensor[i].role != WL_CONST)
            continue;
        *(operands == 0 ? x : w) = i;
        operands++;
    }
    if (operands != 2 || wl->stage[wl->nr_stages - 1].combine != WL_SUM)
        return err_set(e, ERR_UNSUPPORTED,
                       "\"%s\" has no counterpart in the other libraries here; "
                       "plain matmul: and conv2d: have",
                       l->name);
    return 0;
}

static int set_shape(struct layer *l, int x, int w, struct err *e)
{
    const struct workload *wl = &l->task->wl;
    const struct layout *lx = &wl->tensor[x].layout, *lw = &wl->tensor[w].layout;
    const struct layout *ly = &wl->tensor[workload_output(wl)].layout;
    l->constant = wl->tensor[w].role == WL_CONST;
    if (strncmp(l->name, "matmul:", 7) == 0 && lx->nr_l == 2 && lw->nr_l == 2) {
        l->kind = LAYER_MATMUL;
        l->m = lx->l[0];
        l->k = lx->l[1];
        l->n = lw->l[1];
        return 0;
    }
    if (strncmp(l->name, "conv2d:", 7) == 0 && lx->nr_l == 4 && lw->nr_l == 4 &&
        lw->l[1] == lx->l[1]) {
        l->kind = LAYER_CONV;
        conv_shape(l, lx, lw, ly);
        return 0;
    }
    return err_set(e, ERR_UNSUPPORTED,
                   "\"%s\" is neither a plain matmul: nor a dense conv2d:", l->name);
}

static float *filled(const struct task *t, int tensor)
{
    float *v = xmalloc((size_t)layout_logical_size(&t->wl.tensor[tensor].layout) * sizeof *v);
    task_fill(t, tensor, v);
    return v;
}

int layer_init(struct layer *l, const char *name, int block, struct err *e)
{
    *l = (struct layer){.block = block};
    snprintf(l->name, sizeof l->name, "%s", name);
    struct model_options o = {.block = block};
    int x, w, rc;
    if (!model_is_named_workload(name))
        return err_set(e, ERR_USAGE, "\"%s\" is no named workload; they are\n%s", name,
                       model_named_workloads_help());
    rc = model_task_from_name(name, &o, &l->list, e);
    if (rc)
        return rc;
    l->task = l->list.task[0];
    rc = find_operands(l, &x, &w, e);
    if (!rc)
        rc = set_shape(l, x, w, e);
    if (rc)
        return rc;
    l->x = filled(l->task, x);
    l->w = filled(l->task, w);
    float *stored = task_expected(l->task, e);
    if (!stored)
        return ERR_NOMEM;
    const struct layout *y = &l->task->wl.tensor[workload_output(&l->task->wl)].layout;
    l->want = xmalloc((size_t)layout_logical_size(y) * sizeof *l->want);
    layout_unpack(y, stored, l->want);
    free(stored);
    return 0;
}

void layer_release(struct layer *l)
{
    for (int i = 0; i < l->nr_entrants; i++)
        if (l->entrant[i].free)
            l->entrant[i].free(l->entrant[i].ctx);
    for (int i = 0; i < l->nr_codes; i++)
        free(l->code[i]);
    free(l->x);
    free(l->w);
    free(l->want);
    task_list_release(&l->list);
}

double layer_error(const struct layer *l, const float *got)
{
    const struct layout *y = &l->task->wl.tensor[workload_output(&l->task->wl)].layout;
    int64_t at = 0;
    return task_error(l->task, got, l->want, layout_logical_size(y), &at);
}

struct entrant *layer_entrant(struct layer *l, const char *name, enum entrant_role role)
{
    struct entrant *en = &l->entrant[l->nr_entrants++];
    *en = (struct entrant){.name = name, .role = role, .flops = l->task->wl.flops};
    return en;
}

double bench_slice(void (*call)(void *ctx), void *ctx, int64_t calls)
{
    call(ctx);
    int64_t start = clock_mono_ns();
    for (int64_t i = 0; i < calls; i++)
        call(ctx);
    return (double)(clock_mono_ns() - start) / (double)calls;
}

double entrant_slice(struct entrant *en, int64_t calls)
{
    return en->slice ? en->slice(en->ctx, calls) : bench_slice(en->call, en->ctx, calls);
}

int64_t entrant_calls(struct entrant *en, double slice_ns)
{
    int64_t calls = 1;
    double call_ns = entrant_slice(en, calls);
    while (call_ns >= 0 && call_ns * (double)calls < slice_ns / 8 && calls < 1 << 24)
        call_ns = entrant_slice(en, calls *= 2);
    double fit = call_ns > 0 ? slice_ns / call_ns : 1;
    return fit < 1 ? 1 : (int64_t)(fit + 0.5);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double quantile(const double *v, int n, double part)
{
    double copy[MAX_ROUNDS];
    memcpy(copy, v, (size_t)n * sizeof *v);
    qsort(copy, (size_t)n, sizeof *copy, ascending);
    double at = part * (n - 1);
    int low = (int)at, high = low + 1 < n ? low + 1 : low;
    return copy[low] + (copy[high] - copy[low]) * (at - low);
}
