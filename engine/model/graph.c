/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/model/graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/ops.h"
#include "engine/model/reference.h"

#define MAX_ELEMENTS (INT64_C(1) << 31)

/* A constant of one element is computed as soon as it can be: it may be a number that a later
 * operator needs to know (the bound of a Clip). All others wait until somebody asks. */
enum { EAGER_INPUT = 4096, EAGER_BYTES = 1 << 20 };

static const struct {
    const char *text;
    int arity, repeats;
    bool keeps_lanes;
} element[] = {
#define ELEMENT_ROW(name, text, arity, twice, lanes) {text, arity, twice, lanes},
    OP_ELEMENT_LIST(ELEMENT_ROW)
#undef ELEMENT_ROW
};

const char *op_text(enum op_kind kind)
{
    static const char *const other[] = {"conv",  "matmul",  "pool",      "reduce", "softmax",
                                        "lrn",   "concat",  "transpose", "gather", "pad",
                                        "slice", "reshape", "relayout"};
    return op_is_element(kind) ? element[kind].text : other[kind - OP_NR_ELEMENT];
}

int op_operands(enum op_kind kind)
{
    return op_is_element(kind) ? element[kind].arity : 0;
}

int op_repeats(enum op_kind kind)
{
    return op_is_element(kind) ? element[kind].repeats : 1;
}

bool op_keeps_lanes(enum op_kind kind)
{
    return op_is_element(kind) && element[kind].keeps_lanes;
}

int64_t shape_size(const struct shape *s)
{
    int64_t n = 1;
    bool empty = false;
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] < 0 || s->dim[i] > MAX_ELEMENTS)
            return -1;
        if (s->dim[i] == 0)
            empty = true;
        else if ((n *= s->dim[i]) > MAX_ELEMENTS)
            return -1;
    }
    return empty ? 0 : n;
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
    return a->rank == b->rank &&
           (!a->rank || memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) == 0);
}

struct graph *graph_new(const char *name, int opset)
{
    struct graph *g = xcalloc(1, sizeof *g);
    g->name = arena_strdup(&g->arena, name ? name : "");
    g->opset = opset;
    return g;
}

void graph_free(struct graph *g)
{
    if (!g)
        return;
    /* Views of constants share elements: the first of a group owns them. */
    for (int i = 0; i < g->nr_values; i++) {
        if (g->value[i]->owns)
            free(g->value[i]->f32);
        if (g->value[i]->owns_i64)
            free(g->value[i]->i64);
    }
    free(g->value);
    free(g->node);
    free(g->input);
    free(g->output);
    arena_release(&g->arena);
    free(g);
}

int graph_add_value(struct graph *g, const char *name, enum graph_type type,
                    const struct shape *shape)
{
    assert(shape_size(shape) >= 0);
    struct value *v = ARENA_NEW(&g->arena, struct value);
    v->name = arena_strdup(&g->arena, name ? name : "");
    v->type = type;
    v->shape = *shape;
    v->node = v->view_of = -1;
    GROW(g->value, g->nr_values, g->cap_values);
    g->value[g->nr_values] = v;
    return g->nr_values++;
}

static int checked_shape(struct shape *s, const char *what, const char *name, int rank,
                         const int64_t *dim, bool may_be_empty, struct err *e)
{
    if (rank < 0 || rank > LAYOUT_MAX_DIMS)
        return err_set(e, ERR_UNSUPPORTED, "%s \"%s\" has %d dimensions, at most %d are supported",
                       what, name, rank, LAYOUT_MAX_DIMS);
    *s = (struct shape){.rank = rank};
    for (int i = 0; i < rank; i++) {
        s->dim[i] = dim[i];
        if (dim[i] < (may_be_empty ? 0 : 1))
            return err_set(e, ERR_INPUT, "dimension %d of %s \"%s\" is %lld", i, what, name,
                           (long long)dim[i]);
    }
    if (shape_size(s) < 0)
        return err_set(e, ERR_LIMIT, "%s \"%s\" has more than 2^31 elements", what, name);
    return 0;
}

int graph_input(struct graph *g, const char *name, int rank, const int64_t *dim, struct err *e)
{
    return graph_input_of(g, name, GRAPH_F32, rank, dim, e);
}

int graph_input_of(struct graph *g, const char *name, enum graph_type type, int rank,
                   const int64_t *dim, struct err *e)
{
    struct shape s;
    int rc = checked_shape(&s, "input", name, rank, dim, false, e);
    if (rc)
        return rc;
    int v = graph_add_value(g, name, type, &s);
    g->value[v]->is_input = true;
    GROW(g->input, g->nr_inputs, g->cap_inputs);
    g->input[g->nr_inputs++] = v;
    return v;
}

static int add_const(struct graph *g, const char *name, enum graph_type type, int rank,
                     const int64_t *dim, struct err *e)
{
    struct shape s;
    int rc = checked_shape(&s, "constant", name ? name : "", rank, dim, true, e);
    if (rc)
        return rc;
    int v = graph_add_value(g, name, type, &s);
    g->value[v]->is_const = true;
    return v;
}

int graph_const_f32(struct graph *g, const char *name, int rank, const int64_t *dim,
                    const float *data, struct err *e)
{
    int v = add_const(g, name, GRAPH_F32, rank, dim, e);
    if (v < 0)
        return v;
    struct value *c = g->value[v];
    size_t bytes = (size_t)shape_size(&c->shape) * sizeof *data;
    c->is_any = !data;
    if (data) {
        c->f32 = xmalloc(bytes);
        c->owns = true;
        if (bytes)
            memcpy(c->f32, data, bytes);
    }
    return v;
}

int graph_const_i64(struct graph *g, const char *name, int rank, const int64_t *dim,
                    const int64_t *data, struct err *e)
{
    int v = add_const(g, name, GRAPH_I64, rank, dim, e);
    if (v < 0)
        return v;
    struct value *c = g->value[v];
    size_t bytes = (size_t)shape_size(&c->shape) * sizeof *data;
    c->i64 = xmalloc(bytes);
    c->owns_i64 = true;
    if (bytes)
        memcpy(c->i64, data, bytes);
    return v;
}

int graph_const_fill(struct graph *g, const char *name, enum graph_type type, int rank,
                     const int64_t *dim, double fill, struct err *e)
{
    int v = add_const(g, name, type, rank, dim, e);
    if (v < 0)
        return v;
    g->value[v]->is_fill = true;
    g->value[v]->fill = fill;
    return v;
}

int graph_const_view(struct graph *g, int value, const struct shape *shape)
{
    const struct value *from = g->value[value];
    assert(from->is_const && shape_size(shape) == shape_size(&from->shape));
    if (from->node >= 0 && !from->f32) { /* not computed yet: a view must be computed too */
        struct op op = {.kind = OP_RESHAPE};
        int view = graph_add_node(g, &op, "", &value, 1, shape);
        g->value[view]->type = from->type;
        return view;
    }
    int v = graph_add_value(g, from->name, from->type, shape);
    struct value *to = g->value[v];
    from = g->value[value];
    to->is_const = true;
    to->is_fill = from->is_fill;
    to->is_any = from->is_any;
    to->refused = from->refused;
    to->view_of = from->view_of >= 0 ? from->view_of : value;
    to->fill = from->fill;
    to->f32 = from->f32;
    to->i64 = from->i64;
    return v;
}

/* All inputs constant: so is the output. Computes it where it is small. */
static void fold_node(struct graph *g, struct node *n)
{
    struct value *out = g->value[n->out];
    bool small = shape_size(&out->shape) == 1;
    bool any = false;
    for (int i = 0; i < n->nr_in; i++) {
        const struct value *v = g->value[n->in[i]];
        if (!v->is_const)
            return;
        any |= v->is_any;
        small &= shape_size(&v->shape) <= EAGER_INPUT && (v->f32 || v->i64 || v->is_fill);
    }
    n->constant = out->is_const = true;
    out->is_any = any;
    if (small && !any)
        graph_const_data(g, n->out, EAGER_BYTES, NULL);
}

int graph_add_node(struct graph *g, const struct op *op, const char *name, const int *in, int nr_in,
                   const struct shape *out)
{
    int v = graph_add_value(g, name, GRAPH_F32, out);
    struct node *n = ARENA_NEW(&g->arena, struct node);
    n->op = *op;
    n->name = arena_strdup(&g->arena, name ? name : "");
    n->nr_in = nr_in;
    n->in = arena_dup(&g->arena, in, (size_t)nr_in * sizeof *in);
    n->out = v;
    GROW(g->node, g->nr_nodes, g->cap_nodes);
    g->node[g->nr_nodes] = n;
    g->value[v]->node = g->nr_nodes++;
    fold_node(g, n);
    return v;
}

bool graph_const_scalar(const struct graph *g, int value, double *v)
{
    const struct value *c = value >= 0 ? g->value[value] : NULL;
    if (!c || !c->is_const || (!c->is_fill && shape_size(&c->shape) != 1))
        return false;
    if (c->is_fill)
        *v = c->fill;
    else if (c->f32)
        *v = (double)c->f32[0];
    else if (c->i64)
        *v = (double)c->i64[0];
    else
        return false;
    return true;
}

int graph_output(struct graph *g, int value, struct err *e)
{
    if (value < 0 || value >= g->nr_values)
        return err_set(e, ERR_INPUT, "an output is no value of the graph");
    struct value *v = g->value[value];
    if (v->type == GRAPH_OTHER || v->refused)
        return err_set(e, ERR_UNSUPPORTED, "output \"%s\" is %s, which kernels do not compute with",
                       v->name, v->refused ? v->refused : "of a type");
    v->is_output = true;
    GROW(g->output, g->nr_outputs, g->cap_outputs);
    g->output[g->nr_outputs++] = value;
    return 0;
}

/* ---- what outputs depend on ---- */

/* Pushes the nodes behind `value` that are not yet marked. Explicit stack: graphs are deep. */
struct stack {
    int *node, nr, cap;
};

static void push_producer(struct graph *g, struct stack *s, int value)
{
    int n = g->value[value]->node;
    if (n < 0 || g->node[n]->live)
        return;
    g->node[n]->live = true;
    GROW(s->node, s->nr, s->cap);
    s->node[s->nr++] = n;
}

void graph_mark_live(struct graph *g)
{
    struct stack s = {0};
    for (int i = 0; i < g->nr_nodes; i++)
        g->node[i]->live = false;
    for (int i = 0; i < g->nr_values; i++) {
        g->value[i]->nr_uses = g->value[i]->is_output;
        if (g->value[i]->is_output)
            push_producer(g, &s, i);
    }
    while (s.nr > 0) {
        const struct node *n = g->node[s.node[--s.nr]];
        for (int i = 0; i < n->nr_in; i++) {
            g->value[n->in[i]]->nr_uses++;
            push_producer(g, &s, n->in[i]);
        }
    }
    free(s.node);
}

int graph_finish(struct graph *g, struct err *e)
{
    if (!g->nr_outputs)
        return err_set(e, ERR_INPUT, "graph \"%s\" has no outputs", g->name);
    graph_mark_live(g);
    graph_simplify(g);
    graph_mark_live(g);
    return 0;
}

/* ---- elements of constants ---- */

struct budget {
    size_t used, limit;
};

static float *budget_floats(struct budget *b, const struct shape *shape)
{
    size_t bytes = (size_t)shape_size(shape) * sizeof(float);
    if (bytes > b->limit - b->used)
        return NULL;
    float *p = malloc(bytes ? bytes : 1);
    if (p)
        b->used += bytes;
    return p;
}

/* Gives a constant that needs no node its elements. False: over the limit, or it has none. */
static bool materialise(struct value *v, struct budget *b)
{
    if (v->f32)
        return true;
    if ((!v->is_fill && !v->i64) || !(v->f32 = budget_floats(b, &v->shape)))
        return false;
    v->owns = true;
    for (int64_t i = 0, n = shape_size(&v->shape); i < n; i++)
        v->f32[i] = v->i64 ? (float)v->i64[i] : (float)v->fill;
    return true;
}

static bool compute_node(struct graph *g, struct node *n, struct budget *b)
{
    struct value *out = g->value[n->out];
    const float **in = xcalloc((size_t)n->nr_in, sizeof *in);
    const struct shape **shape = xcalloc((size_t)n->nr_in, sizeof *shape);
    bool ok = true;
    for (int i = 0; i < n->nr_in && ok; i++) {
        struct value *v = g->value[n->in[i]];
        ok = materialise(v, b);
        in[i] = v->f32;
        shape[i] = &v->shape;
    }
    float *result = ok ? budget_floats(b, &out->shape) : NULL;
    if (result) {
        reference_op(&n->op, n->nr_in, shape, in, &out->shape, result);
        out->f32 = result;
        out->owns = true;
    }
    free(in);
    free(shape);
    return result != NULL;
}

/* Post-order over the nodes behind `value`: each is visited, its inputs first. */
static bool compute_behind(struct graph *g, int value, struct budget *b)
{
    struct stack s = {0};
    bool ok = true;
    GROW(s.node, s.nr, s.cap);
    s.node[s.nr++] = g->value[value]->node;
    while (ok && s.nr > 0) {
        struct node *n = g->node[s.node[s.nr - 1]];
        bool ready = true;
        for (int i = 0; i < n->nr_in; i++) {
            const struct value *v = g->value[n->in[i]];
            if (v->f32 || v->node < 0)
                continue;
            ready = false;
            GROW(s.node, s.nr, s.cap);
            s.node[s.nr++] = v->node;
        }
        if (!ready)
            continue;
        s.nr--;
        if (!g->value[n->out]->f32)
            ok = compute_node(g, n, b);
    }
    free(s.node);
    return ok;
}

const float *graph_const_data(struct graph *g, int value, size_t limit, struct err *e)
{
    struct value *v = g->value[value];
    if (!v->is_const || v->type == GRAPH_OTHER || v->is_any) {
        err_set(e, ERR_INPUT, "value \"%s\" is no constant with known numbers", v->name);
        return NULL;
    }
    struct budget b = {.limit = limit};
    bool ok = v->f32 || (v->node >= 0 ? compute_behind(g, value, &b) : materialise(v, &b));
    if (!ok)
        err_set(e, ERR_NOMEM, "constant \"%s\" needs more than %zu bytes", v->name, limit);
    return v->f32;
}

/* ---- attributes ---- */

struct graph_attr graph_int(const char *name, int64_t v)
{
    return (struct graph_attr){.name = name, .kind = ATTR_INT, .i = v};
}

struct graph_attr graph_float(const char *name, double v)
{
    return (struct graph_attr){.name = name, .kind = ATTR_FLOAT, .f = v};
}

struct graph_attr graph_string(const char *name, const char *v)
{
    return (struct graph_attr){.name = name, .kind = ATTR_STRING, .s = v, .nr = strlen(v)};
}

struct graph_attr graph_ints(const char *name, const int64_t *v, size_t nr)
{
    return (struct graph_attr){.name = name, .kind = ATTR_INTS, .ints = v, .nr = nr};
}
