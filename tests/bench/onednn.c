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

enum { SRC, WEIGHTS, BIAS, DST, NR_OPERANDS };

enum operation { MATMUL, INNER_PRODUCT, CONVOLUTION, WINOGRAD };

static const dnnl_format_tag_t as_given = dnnl_format_tag_undef, any = dnnl_format_tag_any;

/* One way: the operation, and the formats of its operands. */
struct way {
    const char *name;
    enum operation op;
    dnnl_format_tag_t format[NR_OPERANDS];
};

struct primitive {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    struct region region[NR_OPERANDS];
    dnnl_memory_t memory[NR_OPERANDS];
    dnnl_exec_arg_t arg[NR_OPERANDS];
    int nr_args;
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
    dnnl_primitive_execute(p->primitive, p->stream, p->nr_args, p->arg);
    dnnl_stream_wait(p->stream);
}

/* Shapes. */

static int set_dims(dnnl_dims_t dims, int nr, const int64_t *from)
{
    memcpy(dims, from, (size_t)nr * sizeof *from);
    return nr;
}

#define DIMS(...)                                                                                  \
    set_dims(dims, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

/* Returns how many dimensions there are; 0 where there is no such operand. */
static int extents(const struct layer *l, enum operation op, int operand, dnnl_dims_t dims)
{
    int64_t m = l->m, n = l->n, k = l->k, g = l->conv.groups;
    if (operand == BIAS && !l->bias)
        return 0;
    if (op == MATMUL)
        return operand == SRC       ? DIMS(m, k)
               : operand == WEIGHTS ? DIMS(k, n)
               : operand == BIAS    ? DIMS(1, n)
                                    : DIMS(m, n);
    if (op == INNER_PRODUCT)
        return operand == SRC       ? DIMS(m, k)
               : operand == WEIGHTS ? DIMS(n, k)
               : operand == BIAS    ? DIMS(n)
                                    : DIMS(m, n);
    if (operand == SRC)
        return DIMS(l->conv.n, l->conv.c, l->conv.h, l->conv.w);
    if (operand == DST)
        return DIMS(l->conv.n, l->conv.k, l->conv.oh, l->conv.ow);
    if (g > 1)
        return DIMS(g, l->conv.k / g, l->conv.c / g, l->conv.r, l->conv.s);
    return DIMS(l->conv.k, l->conv.c, l->conv.r, l->conv.s);
}

#undef DIMS

/* Of the layer's logical arrays, in the order of the operation's dimensions. */
static dnnl_format_tag_t given_format(const struct layer *l, enum operation op, int operand)
{
    if (op != MATMUL && op != INNER_PRODUCT)
        return operand == WEIGHTS && l->conv.groups > 1 ? dnnl_abcde : dnnl_abcd;
    if (operand == WEIGHTS)
        return (op == MATMUL) == (l->kind == LAYER_MATMUL) ? dnnl_ab : dnnl_ba;
    return op == INNER_PRODUCT && operand == BIAS ? dnnl_a : dnnl_ab;
}

static int describe(const struct layer *l, enum operation op, int operand, dnnl_format_tag_t format,
                    dnnl_memory_desc_t *out, struct err *e)
{
    dnnl_dims_t dims;
    int nr = extents(l, op, operand, dims);
    if (format == as_given)
        format = given_format(l, op, operand);
    return status(dnnl_memory_desc_init_by_tag(out, nr, dims, dnnl_f32, format), "format", e);
}

/* Operations. md[BIAS] is NULL where the layer has none. */

static dnnl_status_t make_product(struct primitive *p, enum operation op,
                                  const dnnl_memory_desc_t *const md[NR_OPERANDS])
{
    dnnl_matmul_desc_t matmul;
    dnnl_inner_product_desc_t inner;
    dnnl_status_t s =
        op == MATMUL ? dnnl_matmul_desc_init(&matmul, md[SRC], md[WEIGHTS], md[BIAS], md[DST])
                     : dnnl_inner_product_forward_desc_init(&inner, dnnl_forward_inference, md[SRC],
                                                            md[WEIGHTS], md[BIAS], md[DST]);
    const void *desc = op == MATMUL ? (const void *)&matmul : &inner;
    return s == dnnl_success ? dnnl_primitive_desc_create(&p->desc, desc, NULL, p->engine, NULL)
                             : s;
}

/* What the last output needs behind the data, which with a stride may be less than before it. */
static int64_t pad_after(const struct layer *l, int64_t out, int64_t window, int64_t in)
{
    int64_t need = (out - 1) * l->conv.stride + (window - 1) * l->conv.dilation + 1;
    return need > in + l->conv.pad ? need - in - l->conv.pad : 0;
}

/* "auto" may choose Winograd's algorithm; 2.6 never did for the layers that were tried, so that one
 * is asked for by its name, too. */
static dnnl_status_t make_conv(const struct layer *l, struct primitive *p, enum operation op,
                               const dnnl_memory_desc_t *const md[NR_OPERANDS])
{
    dnnl_convolution_desc_t desc;
    const dnnl_dims_t stride = {l->conv.stride, l->conv.stride};
    const dnnl_dims_t dilation = {l->conv.dilation - 1, l->conv.dilation - 1};
    const dnnl_dims_t before = {l->conv.pad, l->conv.pad};
    const dnnl_dims_t after = {pad_after(l, l->conv.oh, l->conv.r, l->conv.h),
                               pad_after(l, l->conv.ow, l->conv.s, l->conv.w)};
    dnnl_status_t s = dnnl_dilated_convolution_forward_desc_init(
        &desc, dnnl_forward_inference,
        op == WINOGRAD ? dnnl_convolution_winograd : dnnl_convolution_auto, md[SRC], md[WEIGHTS],
        md[BIAS], md[DST], stride, dilation, before, after);
    return s == dnnl_success ? dnnl_primitive_desc_create(&p->desc, &desc, NULL, p->engine, NULL)
                             : s;
}

/* Operands. */

static const dnnl_memory_desc_t *chosen(const struct primitive *p, int operand)
{
    static const dnnl_query_t query[] = {
        [SRC] = dnnl_query_src_md,
        [WEIGHTS] = dnnl_query_weights_md,
        [BIAS] = dnnl_query_weights_md,
        [DST] = dnnl_query_dst_md,
    };
    return dnnl_primitive_desc_query_md(p->desc, query[operand], operand == BIAS);
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
static int exchange(const struct layer *l, enum operation op, struct primitive *p, int i,
                    float *logical, bool out, struct err *e)
{
    dnnl_memory_desc_t md;
    dnnl_memory_t user = NULL;
    int rc = describe(l, op, i, as_given, &md, e);
    if (!rc)
        rc = status(dnnl_memory_create(&user, &md, p->engine, logical), "memory", e);
    if (!rc)
        rc = out ? reorder(p, p->memory[i], user, e) : reorder(p, user, p->memory[i], e);
    if (user)
        dnnl_memory_destroy(user);
    return rc;
}

static int make_operands(const struct layer *l, enum operation op, struct primitive *p,
                         struct err *e)
{
    static const int arg[] = {[SRC] = DNNL_ARG_SRC,
                              [WEIGHTS] = DNNL_ARG_WEIGHTS,
                              [BIAS] = DNNL_ARG_BIAS,
                              [DST] = DNNL_ARG_DST};
    float *const logical[] = {[SRC] = l->x, [WEIGHTS] = l->w, [BIAS] = l->bias, [DST] = NULL};
    int rc = 0;
    for (int i = 0; i < NR_OPERANDS && !rc; i++) {
        if (i == BIAS && !l->bias)
            continue;
        const dnnl_memory_desc_t *md = chosen(p, i);
        if (!region_init(&p->region[i], dnnl_memory_desc_get_size(md)))
            return err_set(e, ERR_NOMEM, "not enough memory for the operands of \"%s\"", l->name);
        rc = status(dnnl_memory_create(&p->memory[i], md, p->engine, p->region[i].data), "memory",
                    e);
        if (!rc)
            p->arg[p->nr_args++] = (dnnl_exec_arg_t){arg[i], p->memory[i]};
        if (!rc && logical[i])
            rc = exchange(l, op, p, i, logical[i], false, e);
    }
    return rc;
}

static int output_error(const struct layer *l, enum operation op, struct primitive *p,
                        double *error, struct err *e)
{
    dnnl_dims_t dims;
    int64_t n = 1;
    for (int i = 0, nr = extents(l, op, DST, dims); i < nr; i++)
        n *= dims[i];
    float *got = xcalloc((size_t)n, sizeof *got);
    execute(p);
    int rc = exchange(l, op, p, DST, got, true, e);
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
    dnnl_memory_desc_t made[NR_OPERANDS];
    const dnnl_memory_desc_t *md[NR_OPERANDS] = {NULL};
    bool product = way->op == MATMUL || way->op == INNER_PRODUCT;
    int rc = status(dnnl_engine_create(&p->engine, dnnl_cpu, 0), "engine", e);
    if (!rc)
        rc = status(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags), "stream",
                    e);
    for (int i = 0; i < NR_OPERANDS && !rc; i++) {
        if (i == BIAS && !l->bias)
            continue;
        rc = describe(l, way->op, i, way->format[i], &made[i], e);
        md[i] = &made[i];
    }
    if (!rc)
        rc = status(product ? make_product(p, way->op, md) : make_conv(l, p, way->op, md),
                    way->name, e);
    if (!rc)
        rc = status(dnnl_primitive_create(&p->primitive, p->desc), "primitive", e);
    return rc ? rc : make_operands(l, way->op, p, e);
}

static int enter(struct layer *l, const struct way *way, struct err *e)
{
    struct primitive *p = xcalloc(1, sizeof *p);
    double error = 0;
    int rc = build(l, way, p, e);
    if (!rc)
        rc = output_error(l, way->op, p, &error, e);
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

/* Packing beforehand is only fair to a kernel that may do so, too. */
static int product_ways(const struct layer *l, const struct way **out)
{
    static const struct way ways[] = {
        {"onednn", MATMUL, {as_given, as_given, as_given, as_given}},
        {"onednn-packed", MATMUL, {as_given, any, as_given, as_given}},
        {"onednn-inner", INNER_PRODUCT, {as_given, any, as_given, as_given}},
    };
    *out = ways;
    return l->constant ? 3 : 1;
}

int onednn_enter(struct layer *l, struct err *e)
{
    dnnl_format_tag_t blocked = l->block == 16 ? dnnl_aBcd16b : dnnl_aBcd8b;
    /* a network's input of three channels is not blocked, here as in squall */
    dnnl_format_tag_t source = l->conv.c <= 4 ? dnnl_abcd : blocked;
    const struct way conv[] = {
        {"onednn-any", CONVOLUTION, {any, any, as_given, any}},
        {"onednn-blocked", CONVOLUTION, {source, any, as_given, blocked}},
        {"onednn-winograd", WINOGRAD, {any, any, as_given, any}},
    };
    const struct way *way = conv;
    int nr = sizeof conv / sizeof conv[0];
    if (l->kind == LAYER_MATMUL || l->kind == LAYER_DENSE)
        nr = product_ways(l, &way);
    omp_set_num_threads(l->cores->nr);
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
