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
    l->conv.groups = l->conv.c / w->l[1];
}

struct operands {
    int x, w, bias; /* tensors of the workload; -1: none */
};

static bool is_kind(const struct layer *l, const char *kind)
{
    size_t len = strlen(kind);
    return strncmp(l->name, kind, len) == 0 && l->name[len] == ':';
}

/* What every library has a call for: two operands, a bias where the layer always has one, and
 * nothing behind that. */
static int find_operands(const struct layer *l, struct operands *o, struct err *e)
{
    const struct workload *wl = &l->task->wl;
    int nr = 0;
    *o = (struct operands){-1, -1, -1};
    for (int i = 0; i < wl->nr_tensors; i++) {
        const struct wl_tensor *t = &wl->tensor[i];
        if (t->role != WL_INPUT && t->role != WL_CONST)
            continue;
        nr++;
        if (t->role == WL_CONST && t->layout.nr_l == 1)
            o->bias = i;
        else
            *(o->x < 0 ? &o->x : &o->w) = i;
    }
    bool dense = is_kind(l, "dense");
    bool plain = dense ? !strchr(l->name, ',') && o->bias >= 0
                       : o->bias < 0 && wl->stage[wl->nr_stages - 1].combine == WL_SUM;
    if (plain && o->w >= 0 && nr == 2 + dense)
        return 0;
    return err_set(
        e, ERR_UNSUPPORTED,
        "\"%s\" has no counterpart in the other libraries here; matmul:, dense:, conv2d: "
        "and depthwise: have, with nothing behind them",
        l->name);
}

static int set_shape(struct layer *l, const struct operands *o, struct err *e)
{
    const struct workload *wl = &l->task->wl;
    const struct layout *x = &wl->tensor[o->x].layout, *w = &wl->tensor[o->w].layout;
    const struct layout *y = &wl->tensor[workload_output(wl)].layout;
    bool dense = is_kind(l, "dense");
    l->constant = wl->tensor[o->w].role == WL_CONST;
    if ((dense || is_kind(l, "matmul")) && x->nr_l == 2 && w->nr_l == 2) {
        l->kind = dense ? LAYER_DENSE : LAYER_MATMUL;
        l->m = x->l[0];
        l->k = x->l[1];
        l->n = w->l[dense ? 0 : 1];
        return 0;
    }
    if ((is_kind(l, "conv2d") || is_kind(l, "depthwise")) && x->nr_l == 4 && w->nr_l == 4) {
        l->kind = w->l[1] == 1 && x->l[1] > 1 ? LAYER_DEPTHWISE : LAYER_CONV;
        conv_shape(l, x, w, y);
        return 0;
    }
    return err_set(e, ERR_UNSUPPORTED, "the operands of \"%s\" are not as expected", l->name);
}

static float *filled(const struct task *t, int tensor)
{
    float *v = xmalloc((size_t)layout_logical_size(&t->wl.tensor[tensor].layout) * sizeof *v);
    task_fill(t, tensor, v);
    return v;
}

int layer_init(struct layer *l, const char *name, int block, const struct cores *cores,
               struct err *e)
{
    *l = (struct layer){.block = block, .cores = cores};
    snprintf(l->name, sizeof l->name, "%s", name);
    struct model_options o = {.block = block};
    struct operands operands;
    int rc;
    if (!model_is_named_workload(name))
        return err_set(e, ERR_USAGE, "\"%s\" is no named workload; they are\n%s", name,
                       model_named_workloads_help());
    rc = model_task_from_name(name, &o, &l->list, e);
    if (rc)
        return rc;
    l->task = l->list.task[0];
    rc = find_operands(l, &operands, e);
    if (!rc)
        rc = set_shape(l, &operands, e);
    if (rc)
        return rc;
    l->x = filled(l->task, operands.x);
    l->w = filled(l->task, operands.w);
    if (operands.bias >= 0)
        l->bias = filled(l->task, operands.bias);
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
    free(l->bias);
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
