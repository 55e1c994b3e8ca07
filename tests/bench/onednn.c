/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oneDNN (version 2, operation descriptors). Each way of doing a layer is one primitive with
 * operands that were reordered into the layouts it asks for; only the primitive itself is timed.
 */
#include "tests/bench/bench.h"

#include <dnnl.h>
#include <dnnl_debug.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/region.h"
#include "engine/base/arena.h"

/* Of libgomp, on which oneDNN stands here; its header comes with only some of the compilers. */
extern void omp_set_num_threads(int nr);

enum { SRC, WEIGHTS, DST, NR_OPERANDS };

struct primitive {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    struct region region[NR_OPERANDS];
    dnnl_memory_t memory[NR_OPERANDS];
    dnnl_exec_arg_t arg[NR_OPERANDS];
};

/* One way: the formats of the operands, plain ones with a plain layer. */
struct way {
    const char *name;
    dnnl_format_tag_t format[NR_OPERANDS];
};

static int status(dnnl_status_t s, const char *what, struct err *e)
{
    if (s == dnnl_success)
        return 0;
    int code = s == dnnl_unimplemented ? ERR_UNSUPPORTED : ERR_BACKEND;
    return err_set(e, code, "oneDNN: %s: %s", what, dnnl_status2str(s));
}

static void primitive_free(void *ctx)
{
    struct primitive *p = ctx;
    if (p->primitive)
        dnnl_primitive_destroy(p->primitive);
    if (p->desc)
        dnnl_primitive_desc_destroy(p->desc);
    for (int i = 0; i < NR_OPERANDS; i++) {
        if (p->memory[i])
            dnnl_memory_destroy(p->memory[i]);
        region_release(&p->region[i]);
    }
    if (p->stream)
        dnnl_stream_destroy(p->stream);
    if (p->engine)
        dnnl_engine_destroy(p->engine);
    free(p);
}

static void execute(void *ctx)
{
    struct primitive *p = ctx;
    dnnl_primitive_execute(p->primitive, p->stream, NR_OPERANDS, p->arg);
    dnnl_stream_wait(p->stream);
}

/* Shapes. */

static int extents(const struct layer *l, int operand, dnnl_dims_t dims)
{
    const int64_t matmul[NR_OPERANDS][2] = {{l->m, l->k}, {l->k, l->n}, {l->m, l->n}};
    const int64_t conv[NR_OPERANDS][4] = {
        {l->conv.n, l->conv.c, l->conv.h, l->conv.w},
        {l->conv.k, l->conv.c, l->conv.r, l->conv.s},
        {l->conv.n, l->conv.k, l->conv.oh, l->conv.ow},
    };
    int nr = l->kind == LAYER_MATMUL ? 2 : 4;
    for (int i = 0; i < nr; i++)
        dims[i] = l->kind == LAYER_MATMUL ? matmul[operand][i] : conv[operand][i];
    return nr;
}

static dnnl_format_tag_t plain(const struct layer *l)
{
    return l->kind == LAYER_MATMUL ? dnnl_ab : dnnl_abcd;
}

static int describe(const struct layer *l, int operand, dnnl_format_tag_t format,
                    dnnl_memory_desc_t *out, struct err *e)
{
    dnnl_dims_t dims;
    int nr = extents(l, operand, dims);
    return status(dnnl_memory_desc_init_by_tag(out, nr, dims, dnnl_f32, format), "format", e);
}

static int make_matmul(struct primitive *p, const dnnl_memory_desc_t md[NR_OPERANDS], struct err *e)
{
    dnnl_matmul_desc_t op;
    int rc =
        status(dnnl_matmul_desc_init(&op, &md[SRC], &md[WEIGHTS], NULL, &md[DST]), "matmul", e);
    return rc ? rc
              : status(dnnl_primitive_desc_create(&p->desc, &op, NULL, p->engine, NULL), "matmul",
                       e);
}

/* "auto" may choose Winograd's algorithm; 2.6 never did for the layers that were tried. */
static int make_conv(const struct layer *l, struct primitive *p,
                     const dnnl_memory_desc_t md[NR_OPERANDS], struct err *e)
{
    dnnl_convolution_desc_t op;
    const dnnl_dims_t stride = {l->conv.stride, l->conv.stride};
    const dnnl_dims_t dilation = {l->conv.dilation - 1, l->conv.dilation - 1};
    const dnnl_dims_t before = {l->conv.pad, l->conv.pad};
    /* what the last output needs, which with a stride may be less than on the other side */
    const dnnl_dims_t after = {(l->conv.oh - 1) * l->conv.stride +
                                   (l->conv.r - 1) * l->conv.dilation + 1 - l->conv.h - l->conv.pad,
                               (l->conv.ow - 1) * l->conv.stride +
                                   (l->conv.s - 1) * l->conv.dilation + 1 - l->conv.w -
                                   l->conv.pad};
    int rc = status(dnnl_dilated_convolution_forward_desc_init(
                        &op, dnnl_forward_inference, dnnl_convolution_auto, &md[SRC], &md[WEIGHTS],
                        NULL, &md[DST], stride, dilation, before, after),
                    "convolution", e);
    return rc ? rc
              : status(dnnl_primitive_desc_create(&p->desc, &op, NULL, p->engine, NULL),
                       "convolution", e);
}

/* Operands. */

static const dnnl_memory_desc_t *chosen(const struct primitive *p, int operand)
{
    static const dnnl_query_t query[] = {dnnl_query_src_md, dnnl_query_weights_md,
                                         dnnl_query_dst_md};
    return dnnl_primitive_desc_query_md(p->desc, query[operand], 0);
}

static int reorder(struct primitive *p, dnnl_memory_t from, dnnl_memory_t to, struct err *e)
{
    const dnnl_memory_desc_t *a, *b;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t move = NULL;
    dnnl_memory_get_memory_desc(from, &a);
    dnnl_memory_get_memory_desc(to, &b);
    int rc = status(dnnl_reorder_primitive_desc_create(&desc, a, p->engine, b, p->engine, NULL),
                    "reorder", e);
    if (!rc)
        rc = status(dnnl_primitive_create(&move, desc), "reorder", e);
    if (!rc) {
        const dnnl_exec_arg_t arg[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
        rc = status(dnnl_primitive_execute(move, p->stream, 2, arg), "reorder", e);
        dnnl_stream_wait(p->stream);
    }
    if (move)
        dnnl_primitive_destroy(move);
    if (desc)
        dnnl_primitive_desc_destroy(desc);
    return rc;
}

/* Copies between a logical array and operand `i`. */
static int exchange(const struct layer *l, struct primitive *p, int i, float *logical, bool out,
                    struct err *e)
{
    dnnl_memory_desc_t md;
    dnnl_memory_t user = NULL;
    int rc = describe(l, i, plain(l), &md, e);
    if (!rc)
        rc = status(dnnl_memory_create(&user, &md, p->engine, logical), "memory", e);
    if (!rc)
        rc = out ? reorder(p, p->memory[i], user, e) : reorder(p, user, p->memory[i], e);
    if (user)
        dnnl_memory_destroy(user);
    return rc;
}

static int make_operands(const struct layer *l, struct primitive *p, struct err *e)
{
    static const int arg[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    for (int i = 0; i < NR_OPERANDS; i++) {
        const dnnl_memory_desc_t *md = chosen(p, i);
        if (!region_init(&p->region[i], dnnl_memory_desc_get_size(md)))
            return err_set(e, ERR_NOMEM, "not enough memory for the operands of \"%s\"", l->name);
        int rc = status(dnnl_memory_create(&p->memory[i], md, p->engine, p->region[i].data),
                        "memory", e);
        if (rc)
            return rc;
        p->arg[i] = (dnnl_exec_arg_t){arg[i], p->memory[i]};
    }
    int rc = exchange(l, p, SRC, l->x, false, e);
    return rc ? rc : exchange(l, p, WEIGHTS, l->w, false, e);
}

static int output_error(const struct layer *l, struct primitive *p, double *error, struct err *e)
{
    dnnl_dims_t dims;
    int64_t n = 1;
    for (int i = 0, nr = extents(l, DST, dims); i < nr; i++)
        n *= dims[i];
    float *got = xcalloc((size_t)n, sizeof *got);
    execute(p);
    int rc = exchange(l, p, DST, got, true, e);
    if (!rc)
        *error = layer_error(l, got);
    free(got);
    return rc;
}

/* "nhwc", "nChw16c", ...: of the source, where there is a choice. */
static void describe_format(const struct primitive *p, char *out, size_t size)
{
    const dnnl_memory_desc_t *md = chosen(p, SRC);
    *out = '\0';
    if (md->ndims != 4 || md->format_kind != dnnl_blocked)
        return;
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    if (b->inner_nblks)
        snprintf(out, size, ", nChw%dc", (int)b->inner_blks[0]);
    else
        snprintf(out, size, b->strides[1] == 1 ? ", nhwc" : ", nchw");
}

static int build(const struct layer *l, const struct way *way, struct primitive *p, struct err *e)
{
    dnnl_memory_desc_t md[NR_OPERANDS];
    int rc = status(dnnl_engine_create(&p->engine, dnnl_cpu, 0), "engine", e);
    if (!rc)
        rc = status(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags), "stream",
                    e);
    for (int i = 0; i < NR_OPERANDS && !rc; i++)
        rc = describe(l, i, way->format[i], &md[i], e);
    if (!rc)
        rc = l->kind == LAYER_MATMUL ? make_matmul(p, md, e) : make_conv(l, p, md, e);
    if (!rc)
        rc = status(dnnl_primitive_create(&p->primitive, p->desc), "primitive", e);
    return rc ? rc : make_operands(l, p, e);
}

static int enter(struct layer *l, const struct way *way, struct err *e)
{
    struct primitive *p = xcalloc(1, sizeof *p);
    double error = 0;
    int rc = build(l, way, p, e);
    if (!rc)
        rc = output_error(l, p, &error, e);
    if (rc) {
        primitive_free(p);
        return rc;
    }
    const char *kernel = "";
    char format[32];
    dnnl_primitive_desc_query(p->desc, dnnl_query_impl_info_str, 0, &kernel);
    describe_format(p, format, sizeof format);
    struct entrant *en = layer_entrant(l, way->name, ENTRANT_PEER);
    snprintf(en->detail, sizeof en->detail, "%s%s", kernel, format);
    en->call = execute;
    en->free = primitive_free;
    en->ctx = p;
    en->error = error;
    return 0;
}

int onednn_enter(struct layer *l, struct err *e)
{
    dnnl_format_tag_t blocked = l->block == 16 ? dnnl_aBcd16b : dnnl_aBcd8b;
    const struct way matmul[] = {
        {"onednn", {dnnl_ab, dnnl_ab, dnnl_ab}},
        {"onednn-packed", {dnnl_ab, dnnl_format_tag_any, dnnl_ab}},
    };
    /* a network's input of three channels is not blocked, here as in squall */
    dnnl_format_tag_t source = l->conv.c <= 4 ? dnnl_abcd : blocked;
    const struct way conv[] = {
        {"onednn-any", {dnnl_format_tag_any, dnnl_format_tag_any, dnnl_format_tag_any}},
        {"onednn-blocked", {source, dnnl_format_tag_any, blocked}},
    };
    omp_set_num_threads(1);
    const struct way *way = l->kind == LAYER_MATMUL ? matmul : conv;
    /* packing beforehand is only fair to a kernel that may do so, too */
    int nr = l->kind == LAYER_MATMUL && !l->constant ? 1 : 2;
    for (int i = 0; i < nr; i++) {
        struct err why = ERR_INIT;
        int rc = enter(l, &way[i], &why);
        /* a way that oneDNN does not know is a gap in the table */
        if (rc && rc != ERR_UNSUPPORTED)
            return err_set(e, rc, "%s", why.msg);
    }
    return 0;
}

const char *onednn_version(void)
{
    static char text[64];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
}
