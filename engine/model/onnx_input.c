/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of an ONNX graph: their types, and their shapes from wherever they are known. */
#include <stdlib.h>
#include <string.h>

#include "engine/model/onnx_reader.h"
#include "engine/model/onnx_wire.h"

enum graph_type onnx_type(int data_type, const char **refused)
{
    static const char *const name[] = {"undefined",  "float",   "uint8",  "int8",   "uint16",
                                       "int16",      "int32",   "int64",  "string", "bool",
                                       "float16",    "double",  "uint32", "uint64", "complex64",
                                       "complex128", "bfloat16"};
    *refused = NULL;
    switch (data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
        return GRAPH_F32;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
        return GRAPH_I64;
    case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL:
        return GRAPH_BOOL;
    default:
        *refused = data_type >= 0 && data_type < (int)(sizeof name / sizeof *name)
                       ? name[data_type]
                       : "of a type that is not known";
        return GRAPH_OTHER;
    }
}

/* "NAME=1x3x224x224", `name` without what follows. */
static bool read_shape(const char *text, size_t len, size_t *name_len, struct given_shape *out)
{
    size_t at = len;
    while (at > 0 && text[at - 1] != '=')
        at--;
    *out = (struct given_shape){0};
    *name_len = at ? at - 1 : 0;
    if (at < 2)
        return false;
    for (bool more = true; more; at++) {
        int64_t v = 0;
        size_t first = at;
        for (; at < len && text[at] >= '0' && text[at] <= '9' && v <= INT32_MAX; at++)
            v = v * 10 + (text[at] - '0');
        if (at == first || v < 1 || v > INT32_MAX || out->rank == LAYOUT_MAX_DIMS)
            return false;
        out->dim[out->rank++] = v;
        more = at < len && text[at] == 'x';
        if (!more && at < len)
            return false;
    }
    return true;
}

bool model_is_shape(const char *text, size_t len)
{
    struct given_shape s;
    size_t name_len;
    return !memchr(text, '\n', len) && read_shape(text, len, &name_len, &s);
}

static void read_shapes(struct onnx_reader *r)
{
    for (const char *p = r->options->shapes; p && *p && !r->rc;) {
        size_t len = strcspn(p, "\n"), name_len;
        GROW(r->shape, r->nr_shapes, r->cap_shapes);
        struct given_shape *s = &r->shape[r->nr_shapes];
        if (len && !read_shape(p, len, &name_len, s)) {
            onnx_fail(r, ERR_USAGE, "\"%.*s\" is no shape such as NAME=1x3x224x224", (int)len, p);
        } else if (len) {
            s->name = arena_strndup(&r->arena, p, name_len);
            r->nr_shapes++;
        }
        p += len + (p[len] == '\n');
    }
}

static const struct given_shape *find_shape(const struct onnx_reader *r, const char *name, int rank)
{
    for (int i = 0; i < r->nr_shapes && name; i++)
        if (strcmp(r->shape[i].name, name) == 0 && (rank < 0 || r->shape[i].rank == rank))
            return &r->shape[i];
    return NULL;
}

static bool contains_batch(const char *name)
{
    return name && (strcmp(name, "N") == 0 || strstr(name, "batch") || strstr(name, "Batch"));
}

/* Extents of an input. A free one is 1 where it is the batch, else somebody must say. */
static bool declared_dims(struct onnx_reader *r, const Onnx__TensorShapeProto *shape,
                          const Onnx__ValueInfoProto *v, int64_t *dim)
{
    const char *name = onnx_clean(r, v->name);
    const struct given_shape *given = find_shape(r, v->name, -1);
    if (given && given->rank != (int)shape->n_dim)
        return !onnx_fail(r, ERR_INPUT, "input \"%s\" has %zu dimensions, not %d", name,
                          shape->n_dim, given->rank);
    for (size_t i = 0; i < shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = shape->dim[i];
        bool fixed = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        bool named = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        const struct given_shape *one = named ? find_shape(r, d->dim_param, 1) : NULL;
        if (fixed && d->dim_value > 0 && given && given->dim[i] != d->dim_value)
            return !onnx_fail(r, ERR_INPUT, "dimension %zu of input \"%s\" is fixed to %lld", i,
                              name, (long long)d->dim_value);
        if (fixed && d->dim_value < -1)
            return !onnx_fail(r, ERR_INPUT, "dimension %zu of input \"%s\" is %lld", i, name,
                              (long long)d->dim_value);
        if (fixed && d->dim_value > 0)
            dim[i] = d->dim_value;
        else if (given)
            dim[i] = given->dim[i];
        else if (one)
            dim[i] = one->dim[0];
        else if (i == 0 || (named && contains_batch(d->dim_param)))
            dim[i] = 1;
        else
            return !onnx_fail(
                r, ERR_UNSUPPORTED,
                named ? "dimension %zu of input \"%s\" is free (\"%s\"): give it a size "
                        "with --shape %s=128"
                      : "dimension %zu of input \"%s\" is free (\"%s\"): give all of its "
                        "sizes with --shape %s=1x3x224x224",
                i, name, named ? onnx_clean(r, d->dim_param) : "?",
                named ? onnx_clean(r, d->dim_param) : name);
    }
    return true;
}

/* Is the input no operand but a parameter of some node? */
static bool is_parameter(const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_input; k++)
            if (strcmp(g->node[i]->input[k], name) == 0 &&
                graph_is_parameter(g->node[i]->op_type, (int)k))
                return true;
    return false;
}

/*
 * Of a conformance case: the shape is that of the file. True where the input has become a constant,
 * or that failed; else dim[] and *rank are set.
 */
static bool bind_input(struct onnx_reader *r, const Onnx__GraphProto *g,
                       const Onnx__ValueInfoProto *v, int at, int64_t *dim, int *rank)
{
    const char *path = r->options->bind->path[at];
    size_t size;
    void *bytes = onnx_slurp(path, &size, r->e);
    Onnx__TensorProto *t = bytes ? onnx_unpack(&onnx__tensor_proto__descriptor, bytes, size) : NULL;
    free(bytes);
    if (!t) {
        onnx_fail(r, ERR_INPUT, "\"%s\" is no tensor", path);
        return true;
    }
    bool empty = false, done = t->n_dims > LAYOUT_MAX_DIMS;
    if (done)
        onnx_fail(r, ERR_UNSUPPORTED, "\"%s\" has %zu dimensions, at most %d are supported", path,
                  t->n_dims, LAYOUT_MAX_DIMS);
    for (size_t i = 0; i < t->n_dims && !done; i++) {
        dim[i] = t->dims[i];
        empty |= dim[i] == 0;
    }
    *rank = (int)t->n_dims;
    if (!done && (empty || is_parameter(g, v->name))) {
        int value = onnx_tensor(r, t, onnx_clean(r, v->name));
        if (value >= 0)
            onnx_set(&r->names, v->name, value);
        r->options->bind->value[at] = -1;
        done = true;
    }
    onnx__tensor_proto__free_unpacked(t, NULL);
    return done;
}

static void read_input(struct onnx_reader *r, const Onnx__GraphProto *g,
                       const Onnx__ValueInfoProto *v)
{
    const char *name = onnx_clean(r, v->name), *refused;
    const Onnx__TypeProto__Tensor *t =
        v->type && v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? v->type->tensor_type
                                                                              : NULL;
    const struct onnx_case *bind = r->options->bind;
    int at = r->nr_bound++, rank = t && t->shape ? (int)t->shape->n_dim : 0, value;
    bool bound = bind && at < bind->nr;
    int64_t dim[LAYOUT_MAX_DIMS];
    if (!t || (!t->shape && !bound)) {
        onnx_fail(r, ERR_UNSUPPORTED, "input \"%s\" is no tensor of known shape", name);
        return;
    }
    if (rank > LAYOUT_MAX_DIMS) {
        onnx_fail(r, ERR_UNSUPPORTED, "input \"%s\" has %d dimensions, at most %d are supported",
                  name, rank, LAYOUT_MAX_DIMS);
        return;
    }
    if (bound ? bind_input(r, g, v, at, dim, &rank) : !declared_dims(r, t->shape, v, dim))
        return;
    enum graph_type type = onnx_type(t->elem_type, &refused);
    struct shape s = {.rank = rank};
    memcpy(s.dim, dim, (size_t)rank * sizeof *dim);
    if (type != GRAPH_OTHER) {
        value = graph_input_of(r->g, name, type, rank, dim, r->e);
    } else { /* an error only for an operator that computes with it */
        value = graph_add_value(r->g, name, type, shape_size(&s) < 0 ? &(struct shape){0} : &s);
        r->g->value[value]->refused = refused;
    }
    if (value < 0)
        r->rc = value;
    else
        onnx_set(&r->names, v->name, value);
    if (bound)
        bind->value[at] = type == GRAPH_OTHER ? -1 : value;
}

/* A shape for what is not there is a slip of the pen; in a case it is for another one. */
static void check_shapes(struct onnx_reader *r, const Onnx__GraphProto *g)
{
    for (int i = 0; i < r->nr_shapes && !r->rc && !r->options->bind; i++) {
        const char *name = r->shape[i].name;
        bool known = false;
        for (size_t k = 0; k < g->n_input && !known; k++) {
            const Onnx__ValueInfoProto *v = g->input[k];
            const Onnx__TypeProto__Tensor *t =
                v->type && v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
                    ? v->type->tensor_type
                    : NULL;
            known = v->name && strcmp(v->name, name) == 0;
            for (size_t d = 0; t && t->shape && d < t->shape->n_dim && !known; d++)
                known = t->shape->dim[d]->value_case ==
                            ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
                        strcmp(t->shape->dim[d]->dim_param, name) == 0;
        }
        if (!known)
            onnx_fail(r, ERR_USAGE, "no input and no dimension is named \"%s\"", name);
    }
}

void onnx_inputs(struct onnx_reader *r, const Onnx__GraphProto *g)
{
    read_shapes(r);
    check_shapes(r, g);
    for (size_t i = 0; i < g->n_input && !r->rc; i++) {
        const Onnx__ValueInfoProto *v = g->input[i];
        if (!v->name || !*v->name)
            onnx_fail(r, ERR_INPUT, "input %zu has no name", i);
        /* Up to IR 3 initializers are listed here too. */
        else if (onnx_find(&r->names, v->name) == VALUE_UNKNOWN)
            read_input(r, g, v);
    }
}
