/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX files.
 *
 * The file is foreign: before it is unpacked its nesting is checked (the unpacker recurses), while
 * it is unpacked its memory is counted (an empty message of two bytes becomes a struct of
 * hundreds), and every number, size and name is checked before it is used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/model/onnx_reader.h"
#include "engine/model/onnx_wire.h"

/* ---- names ---- */

static struct name_entry *find_slot(const struct name_map *m, const char *name)
{
    size_t i = (size_t)hash64(HASH64_INIT, name, strlen(name)) & (m->cap - 1);
    while (m->entry[i].name && strcmp(m->entry[i].name, name) != 0)
        i = (i + 1) & (m->cap - 1);
    return &m->entry[i];
}

int onnx_find(const struct name_map *m, const char *name)
{
    const struct name_entry *s = m->cap ? find_slot(m, name) : NULL;
    return s && s->name ? s->value : VALUE_UNKNOWN;
}

void onnx_set(struct name_map *m, const char *name, int value)
{
    if (2 * (m->nr + 1) > m->cap) {
        struct name_map old = *m;
        m->cap = old.cap ? old.cap * 2 : 256;
        m->entry = xcalloc(m->cap, sizeof *m->entry);
        for (size_t i = 0; i < old.cap; i++)
            if (old.entry[i].name)
                *find_slot(m, old.entry[i].name) = old.entry[i];
        free(old.entry);
    }
    struct name_entry *s = find_slot(m, name);
    m->nr += !s->name;
    *s = (struct name_entry){name, value};
}

int onnx_fail(struct onnx_reader *r, int code, const char *fmt, ...)
{
    if (r->rc)
        return r->rc;
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    err_set(r->e, code, "%s", text);
    return r->rc = code;
}

const char *onnx_clean(struct onnx_reader *r, const char *name)
{
    enum { LONGEST = 200 };
    if (!name)
        return "";
    size_t len = strnlen(name, LONGEST);
    while (len == LONGEST && len > 0 && ((unsigned char)name[len] & 0xc0) == 0x80)
        len--; /* not within a UTF-8 character */
    char *copy = arena_strndup(&r->arena, name, len);
    for (char *p = copy; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return copy;
}

static void read_initializers(struct onnx_reader *r, const Onnx__GraphProto *g)
{
    if (g->n_sparse_initializer)
        onnx_fail(r, ERR_UNSUPPORTED, "sparse tensors are not supported");
    for (size_t i = 0; i < g->n_initializer && !r->rc; i++) {
        const Onnx__TensorProto *t = g->initializer[i];
        if (!t->name || !*t->name)
            onnx_fail(r, ERR_INPUT, "initializer %zu has no name", i);
        else if (onnx_find(&r->names, t->name) != VALUE_UNKNOWN)
            onnx_fail(r, ERR_INPUT, "initializer \"%s\" is there twice", onnx_clean(r, t->name));
        else
            onnx_set(&r->names, t->name, onnx_tensor(r, t, onnx_clean(r, t->name)));
    }
}

/* ---- nodes ---- */

/* False for kinds that no operator known here has. */
static bool read_attr(struct onnx_reader *r, const Onnx__AttributeProto *a, struct graph_attr *out)
{
    int type = a->type;
    if (type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED) /* IR 1 and 2 */
        type = a->t          ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR
               : a->n_ints   ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS
               : a->n_floats ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS
               : a->has_i    ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT
               : a->has_f    ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT
                             : ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    *out = (struct graph_attr){.name = a->name ? a->name : ""};
    switch (type) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        out->kind = ATTR_INT;
        out->i = a->i;
        return true;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        out->kind = ATTR_FLOAT;
        out->f = (double)a->f;
        return true;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        out->kind = ATTR_STRING;
        out->s = a->s.data ? (const char *)a->s.data : "";
        out->nr = a->s.len;
        return true;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        out->kind = ATTR_INTS;
        out->ints = a->ints;
        out->nr = a->n_ints;
        return true;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
        out->kind = ATTR_FLOATS;
        out->floats = a->floats;
        out->nr = a->n_floats;
        return true;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
        if (!a->t)
            return false;
        out->kind = ATTR_VALUE;
        out->i = onnx_tensor(r, a->t, onnx_clean(r, a->name));
        return !r->rc;
    default:
        return false;
    }
}

static const char *node_name(struct onnx_reader *r, const Onnx__NodeProto *n)
{
    if (n->name && *n->name)
        return onnx_clean(r, n->name);
    return n->n_output ? onnx_clean(r, n->output[0]) : "";
}

/* Is `name` made by some node of the graph? Only asked on the way to an error. */
static bool is_made_later(const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            if (strcmp(g->node[i]->output[k], name) == 0)
                return true;
    return false;
}

static int input_of_node(struct onnx_reader *r, const Onnx__GraphProto *g, const Onnx__NodeProto *n,
                         const char *name)
{
    if (!name || !*name)
        return VALUE_NONE;
    int v = onnx_find(&r->names, name);
    if (v == VALUE_NOT_GIVEN)
        onnx_fail(r, ERR_UNSUPPORTED, "node \"%s\" reads \"%s\", an output that is not supported",
                  node_name(r, n), onnx_clean(r, name));
    else if (v < 0)
        onnx_fail(r, ERR_INPUT,
                  is_made_later(g, name)
                      ? "node \"%s\" reads \"%s\" before it is computed: nodes are out of "
                        "order or in a cycle"
                      : "node \"%s\" reads \"%s\", which nothing computes",
                  node_name(r, n), onnx_clean(r, name));
    return v < 0 ? VALUE_NONE : v;
}

static void call_node(struct onnx_reader *r, const Onnx__GraphProto *g, const Onnx__NodeProto *n)
{
    int *in = xcalloc(n->n_input, sizeof *in), *out = xcalloc(n->n_output, sizeof *out);
    const char **out_name = xcalloc(n->n_output, sizeof *out_name);
    struct graph_attr *attr = xcalloc(n->n_attribute, sizeof *attr);
    struct graph_call c = {.op = onnx_clean(r, n->op_type),
                           .name = onnx_clean(r, n->name),
                           .in = in,
                           .nr_in = (int)n->n_input,
                           .attr = attr,
                           .out = out,
                           .nr_out = (int)n->n_output,
                           .out_name = out_name};
    for (size_t i = 0; i < n->n_input && !r->rc; i++)
        in[i] = input_of_node(r, g, n, n->input[i]);
    for (size_t i = 0; i < n->n_attribute && !r->rc; i++)
        c.nr_attr += read_attr(r, n->attribute[i], &attr[c.nr_attr]);
    for (size_t i = 0; i < n->n_output; i++)
        out_name[i] = onnx_clean(r, n->output[i]);
    while (c.nr_in > 0 && in[c.nr_in - 1] == VALUE_NONE) /* left out at the end */
        c.nr_in--;
    if (!r->rc)
        r->rc = graph_node(r->g, &c, r->e);
    for (size_t i = 0; i < n->n_output && !r->rc; i++) {
        const char *name = n->output[i];
        if (!*name)
            continue;
        if (onnx_find(&r->names, name) != VALUE_UNKNOWN)
            onnx_fail(r, ERR_INPUT, "node \"%s\" computes \"%s\", which is there already",
                      node_name(r, n), out_name[i]);
        onnx_set(&r->names, name, out[i] >= 0 ? out[i] : VALUE_NOT_GIVEN);
    }
    free(attr);
    free(out_name);
    free(out);
    free(in);
}

static void read_nodes(struct onnx_reader *r, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_node && !r->rc; i++) {
        const Onnx__NodeProto *n = g->node[i];
        if (!n->op_type || !*n->op_type)
            onnx_fail(r, ERR_INPUT, "node \"%s\" has no operator", node_name(r, n));
        else if (n->domain && *n->domain && strcmp(n->domain, "ai.onnx") != 0)
            onnx_fail(r, ERR_UNSUPPORTED,
                      "operator \"%s\" of node \"%s\" is of domain \"%s\", which is not "
                      "supported; squall check --help lists all",
                      onnx_clean(r, n->op_type), node_name(r, n), onnx_clean(r, n->domain));
        else
            call_node(r, g, n);
    }
}

static void read_outputs(struct onnx_reader *r, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_output && !r->rc; i++) {
        const char *name = g->output[i]->name;
        int v = name ? onnx_find(&r->names, name) : VALUE_UNKNOWN;
        if (v < 0)
            onnx_fail(r, v == VALUE_NOT_GIVEN ? ERR_UNSUPPORTED : ERR_INPUT, "output \"%s\" is %s",
                      onnx_clean(r, name),
                      v == VALUE_NOT_GIVEN ? "not supported" : "computed by no node");
        else
            r->rc = graph_output(r->g, v, r->e);
    }
    if (!r->rc)
        r->rc = graph_finish(r->g, r->e);
}

/* ---- the file ---- */

static int opset_of(const Onnx__ModelProto *m)
{
    int64_t version = 1;
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *o = m->opset_import[i];
        if (!o->domain || !*o->domain || strcmp(o->domain, "ai.onnx") == 0)
            version = o->version;
    }
    return version < 1 ? 1 : version > 1000 ? 1000 : (int)version;
}

/* Name of the model: the file's, without folder and extension. */
static char *model_name(struct arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = arena_strdup(a, slash ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot && dot != name)
        *dot = '\0';
    return name;
}

static struct graph *parse(const void *data, size_t size, const char *name, const char *folder,
                           const struct onnx_options *o, struct err *e)
{
    static const struct onnx_options none;
    struct onnx_reader r = {.e = e, .options = o ? o : &none, .folder = folder};
    if (!onnx_wire_is_sound(data, size)) {
        err_set(e, ERR_INPUT, "\"%s\" is not an ONNX file, is truncated, or is nested too deeply",
                name);
        return NULL;
    }
    Onnx__ModelProto *m = onnx_unpack(&onnx__model_proto__descriptor, data, size);
    if (!m || !m->graph) {
        err_set(e, ERR_INPUT,
                m ? "\"%s\" has no graph, is it an ONNX file?"
                  : "\"%s\" is not an ONNX file, or is damaged",
                name);
        if (m)
            onnx__model_proto__free_unpacked(m, NULL);
        return NULL;
    }
    r.g = graph_new(model_name(&r.arena, name), opset_of(m));
    read_initializers(&r, m->graph);
    onnx_inputs(&r, m->graph);
    read_nodes(&r, m->graph);
    read_outputs(&r, m->graph);
    if (r.rc) {
        err_prefix(e, "\"%s\"", name);
        graph_free(r.g);
        r.g = NULL;
    }
    onnx__model_proto__free_unpacked(m, NULL);
    free(r.shape);
    free(r.names.entry);
    arena_release(&r.arena);
    return r.g;
}

struct graph *onnx_parse(const void *data, size_t size, const char *name, struct err *e)
{
    return parse(data, size, name, NULL, NULL, e);
}

struct graph *onnx_read_as(const char *path, const struct onnx_options *o, struct err *e)
{
    size_t size;
    void *data = onnx_slurp(path, &size, e);
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    struct graph *g = data && folder ? parse(data, size, path, folder, o, e) : NULL;
    free(folder);
    free(data);
    return g;
}

struct graph *onnx_read(const char *path, struct err *e)
{
    return onnx_read_as(path, NULL, e);
}

int model_tasks_from_onnx(const char *path, const struct model_options *o, struct task_list *out,
                          struct err *e)
{
    struct err own = ERR_INIT;
    struct onnx_options how = {.shapes = o->shapes};
    struct graph *g = onnx_read_as(path, &how, e ? e : (e = &own));
    if (!g)
        return e->code;
    int rc = model_tasks_from_graph(g, o, out, e);
    if (rc)
        err_prefix(e, "\"%s\"", path);
    graph_free(g);
    return rc;
}
