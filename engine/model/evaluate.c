/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/model/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/strbuf.h"
#include "engine/model/reference.h"

/* ---- numbers for constants ---- */

void seed_floats(const char *name, double lo, double hi, int64_t n, float *out)
{
    uint32_t h = hash32(HASH32_INIT, name, strlen(name));
    for (int64_t i = 0; i < n; i++) {
        uint32_t x = h + (uint32_t)i * UINT32_C(0x9e3779b1);
        x ^= x >> 16;
        x *= UINT32_C(0x85ebca6b);
        x ^= x >> 13;
        x *= UINT32_C(0xc2b2ae35);
        x ^= x >> 16;
        out[i] = (float)(lo + (hi - lo) * ((double)(x >> 8) * 0x1p-24));
    }
}

static void seed_value(struct value *v, int number)
{
    int64_t n = shape_size(&v->shape);
    double lo = -0.1, hi = 0.1;
    if (v->shape.rank >= 2 && n > 0) {
        hi = sqrt(6.0 / (double)(n / v->shape.dim[0]));
        lo = -hi;
    } else if (v->is_scale) {
        lo = 0.5;
        hi = 1.5;
    }
    struct strbuf name = {0};
    strbuf_adds(&name, v->name);
    if (v->is_any) /* names of scripts need not be unique */
        strbuf_addf(&name, "#%d", number);
    if (v->owns)
        free(v->f32);
    v->f32 = xmalloc((size_t)n * sizeof *v->f32);
    v->owns = true;
    seed_floats(strbuf_text(&name), lo, hi, n, v->f32);
    v->is_any = v->is_fill = false;
    strbuf_release(&name);
}

static bool wants_numbers(const struct value *v, bool fills)
{
    if (!v->is_const || v->type != GRAPH_F32 || v->node >= 0 || v->view_of >= 0)
        return false;
    return v->is_any || (fills && v->is_fill && *v->name && shape_size(&v->shape) > 1);
}

void graph_seed(struct graph *g, bool fills)
{
    for (int i = 0; i < g->nr_values; i++)
        if (wants_numbers(g->value[i], fills))
            seed_value(g->value[i], i);
    for (int i = 0; i < g->nr_values; i++) {
        struct value *v = g->value[i];
        const struct value *from = v->view_of >= 0 ? g->value[v->view_of] : NULL;
        if (!from || from->node >= 0 || !from->f32 || !(v->is_any || v->is_fill))
            continue;
        if (v->owns)
            free(v->f32);
        v->owns = false;
        v->f32 = from->f32;
        v->is_any = v->is_fill = false;
    }
    for (int i = 0; i < g->nr_nodes; i++) /* all are known now: computed when somebody asks */
        if (g->node[i]->constant)
            g->value[g->node[i]->out]->is_any = false;
}

/* ---- the graph ---- */

struct evaluation {
    struct graph *g;
    const float **array; /* of each value; activations are freed with their last reader */
    float **own;
    int *uses;
    struct err *e;
};

static int operand(struct evaluation *v, int value)
{
    if (!v->array[value] && v->g->value[value]->is_const)
        v->array[value] = graph_const_data(v->g, value, SIZE_MAX / 2, v->e);
    return v->array[value] ? 0 : ERR_NOMEM;
}

static void release(struct evaluation *v, int value)
{
    if (--v->uses[value] > 0 || !v->own[value])
        return;
    free(v->own[value]);
    v->own[value] = NULL;
}

static int evaluate_node(struct evaluation *v, const struct node *n)
{
    struct graph *g = v->g;
    const float **in = xcalloc((size_t)n->nr_in, sizeof *in);
    const struct shape **shape = xcalloc((size_t)n->nr_in, sizeof *shape);
    int rc = 0;
    for (int i = 0; i < n->nr_in && !rc; i++) {
        rc = operand(v, n->in[i]);
        in[i] = v->array[n->in[i]];
        shape[i] = &g->value[n->in[i]]->shape;
    }
    const struct shape *ys = &g->value[n->out]->shape;
    float *out = rc ? NULL : malloc((size_t)shape_size(ys) * sizeof *out);
    if (out)
        reference_op(&n->op, n->nr_in, shape, in, ys, out);
    else
        rc = err_set(v->e, ERR_NOMEM, "not enough memory for value \"%s\"", g->value[n->out]->name);
    v->array[n->out] = v->own[n->out] = out;
    for (int i = 0; i < n->nr_in && !rc; i++)
        release(v, n->in[i]);
    free(in);
    free(shape);
    return rc;
}

int graph_evaluate(struct graph *g, const float *const *inputs, float *const *outputs,
                   struct err *e)
{
    size_t nr = (size_t)g->nr_values;
    struct evaluation v = {g, xcalloc(nr, sizeof *v.array), xcalloc(nr, sizeof *v.own),
                           xcalloc(nr, sizeof *v.uses), e};
    int rc = 0;
    for (int i = 0; i < g->nr_values; i++)
        v.uses[i] = g->value[i]->nr_uses;
    for (int i = 0; i < g->nr_inputs; i++)
        v.array[g->input[i]] = inputs[i];
    for (int i = 0; i < g->nr_nodes && !rc; i++)
        if (g->node[i]->live && !g->node[i]->constant)
            rc = evaluate_node(&v, g->node[i]);
    for (int i = 0; i < g->nr_outputs && !rc; i++) {
        rc = operand(&v, g->output[i]);
        if (!rc)
            memcpy(outputs[i], v.array[g->output[i]],
                   (size_t)shape_size(&g->value[g->output[i]]->shape) * sizeof **outputs);
    }
    for (size_t i = 0; i < nr; i++)
        free(v.own[i]);
    free(v.own);
    free(v.array);
    free(v.uses);
    return rc;
}
