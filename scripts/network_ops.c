/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of the network binding: from options that people write to those of ONNX. */
#include <math.h>
#include <string.h>

#include "scripts/network_private.h"

/* Attributes of one operator, and the memory they point to. */
struct attrs {
    int nr;
    struct graph_attr attr[8];
    int64_t kernel[OP_MAX_WINDOW], stride[OP_MAX_WINDOW], dilation[OP_MAX_WINDOW];
    int64_t pad[2 * OP_MAX_WINDOW];
};

static void put(struct attrs *a, struct graph_attr attr)
{
    a->attr[a->nr++] = attr;
}

/* ---- windows ---- */

/* Dimensions of space, for [N, C, ...]. */
static int space_of(struct net_call *c)
{
    int rank = call_shape(c, 0)->rank;
    if (rank < 3 || rank > 2 + OP_MAX_WINDOW)
        return call_raise(
            c, "its input has %d dimensions, it must be {batch, channels, height, width}", rank);
    return rank - 2;
}

static void read_pad(struct net_call *c, struct attrs *a, int nr)
{
    if (opt_is_text(c, "pad", "same")) {
        put(a, graph_string("auto_pad", "SAME_UPPER"));
        return;
    }
    if (opt_length(c, "pad") == 2 * nr) {
        opt_ints(c, "pad", 2 * nr, 0, a->pad);
    } else {
        opt_ints(c, "pad", nr, 0, a->pad);
        memcpy(a->pad + nr, a->pad, (size_t)nr * sizeof a->pad[0]);
    }
    put(a, graph_ints("pads", a->pad, 2 * (size_t)nr));
}

/* kernel is read before, for the stride of pooling is that of its window unless it is given. */
static void read_window(struct net_call *c, struct attrs *a, int nr, bool is_pool)
{
    put(a, graph_ints("kernel_shape", a->kernel, (size_t)nr));
    if (!opt_ints(c, "stride", nr, 1, a->stride))
        for (int i = 0; i < nr; i++)
            a->stride[i] = is_pool ? a->kernel[i] : 1;
    put(a, graph_ints("strides", a->stride, (size_t)nr));
    if (opt_ints(c, "dilation", nr, 1, a->dilation))
        put(a, graph_ints("dilations", a->dilation, (size_t)nr));
    read_pad(c, a, nr);
}

static int emit_conv(struct net_call *c, int nr, int64_t k, int64_t groups, struct attrs *a)
{
    int64_t channels = call_shape(c, 0)->dim[1];
    if (channels % groups || k % groups)
        return call_raise(c, "%I channels to %I do not split into %I groups", (LUAI_UACINT)channels,
                          (LUAI_UACINT)k, (LUAI_UACINT)groups);
    int64_t dim[2 + OP_MAX_WINDOW] = {k, channels / groups};
    memcpy(dim + 2, a->kernel, (size_t)nr * sizeof dim[0]);
    int in[3] = {c->x[0], new_weight(c, "weight", 2 + nr, dim), -1};
    if (opt_bool(c, "bias", false))
        in[2] = new_weight(c, "bias", 1, &k);
    put(a, graph_int("group", groups));
    return new_node(c, "Conv", in, 3, a->attr, a->nr);
}

static int build_conv(struct net_call *c)
{
    struct attrs a = {0};
    int nr = space_of(c);
    int64_t k = need_int(c, "k", 1);
    if (!opt_ints(c, "kernel", nr, 1, a.kernel))
        for (int i = 0; i < nr; i++)
            a.kernel[i] = 1;
    read_window(c, &a, nr, false);
    return emit_conv(c, nr, k, opt_int(c, "groups", 1, 1), &a);
}

/* Raises where the window is not given. */
static void need_kernel(struct net_call *c, int nr, int64_t *kernel)
{
    if (!opt_ints(c, "kernel", nr, 1, kernel))
        call_raise(c, "needs the option kernel");
}

static int build_depthwise(struct net_call *c)
{
    struct attrs a = {0};
    int nr = space_of(c);
    int64_t channels = call_shape(c, 0)->dim[1];
    need_kernel(c, nr, a.kernel);
    read_window(c, &a, nr, false);
    return emit_conv(c, nr, channels * opt_int(c, "multiplier", 1, 1), channels, &a);
}

static int build_pool(struct net_call *c)
{
    struct attrs a = {0};
    int nr = space_of(c);
    need_kernel(c, nr, a.kernel);
    read_window(c, &a, nr, true);
    if (opt_bool(c, "ceil", false))
        put(&a, graph_int("ceil_mode", 1));
    if (opt_bool(c, "include_pad", false))
        put(&a, graph_int("count_include_pad", 1));
    return new_node(c, c->op->onnx, c->x, 1, a.attr, a.nr);
}

static int build_lrn(struct net_call *c)
{
    struct graph_attr attr[] = {graph_int("size", need_int(c, "size", 1)),
                                graph_float("alpha", opt_number(c, "alpha", 1e-4)),
                                graph_float("beta", opt_number(c, "beta", 0.75)),
                                graph_float("bias", opt_number(c, "bias", 1))};
    return new_node(c, "LRN", c->x, 1, attr, 4);
}

/* ---- matrices ---- */

static int build_dense(struct net_call *c)
{
    const struct shape s = *call_shape(c, 0);
    int64_t n = need_int(c, "n", 1);
    bool bias = opt_bool(c, "bias", false);
    if (s.rank < 2)
        return call_raise(c, "its input must have at least 2 dimensions");
    int64_t last = s.dim[s.rank - 1];
    if (s.rank == 2) {
        struct graph_attr attr[] = {graph_int("transB", 1)};
        int in[3] = {c->x[0], new_weight(c, "weight", 2, (int64_t[]){n, last}), -1};
        if (bias)
            in[2] = new_weight(c, "bias", 1, &n);
        return new_node(c, "Gemm", in, 3, attr, 1);
    }
    int in[2] = {c->x[0], new_weight(c, "weight", 2, (int64_t[]){last, n})};
    int y = new_node(c, "MatMul", in, 2, NULL, 0);
    return bias ? new_node(c, "Add", (int[]){y, new_weight(c, "bias", 1, &n)}, 2, NULL, 0) : y;
}

static int build_gemm(struct net_call *c)
{
    struct graph_attr attr[] = {graph_float("alpha", opt_number(c, "alpha", 1)),
                                graph_float("beta", opt_number(c, "beta", 1)),
                                graph_int("transA", opt_bool(c, "trans_a", false)),
                                graph_int("transB", opt_bool(c, "trans_b", false))};
    return new_node(c, "Gemm", c->x, c->nr_x, attr, 4);
}

/* ---- normalisations ---- */

static int build_batchnorm(struct net_call *c)
{
    const struct shape s = *call_shape(c, 0);
    if (s.rank < 2)
        return call_raise(c, "its input has no channels");
    static const char *const part[] = {"scale", "shift", "mean", "variance"};
    int in[5] = {c->x[0]};
    for (int i = 0; i < 4; i++)
        in[1 + i] = new_weight(c, part[i], 1, &s.dim[1]);
    struct graph_attr attr[] = {graph_float("epsilon", opt_number(c, "epsilon", 1e-5))};
    return new_node(c, "BatchNormalization", in, 5, attr, 1);
}

static int build_layernorm(struct net_call *c)
{
    const struct shape s = *call_shape(c, 0);
    if (s.rank < 1)
        return call_raise(c, "its input has no dimensions");
    int64_t last = s.dim[s.rank - 1];
    int in[3] = {c->x[0], new_weight(c, "scale", 1, &last), new_weight(c, "shift", 1, &last)};
    struct graph_attr attr[] = {graph_float("epsilon", opt_number(c, "epsilon", 1e-5))};
    return new_node(c, "LayerNormalization", in, 3, attr, 1);
}

static int build_softmax(struct net_call *c)
{
    struct graph_attr attr[] = {graph_int("axis", opt_axis(c, "axis", call_shape(c, 0)->rank, -1))};
    return new_node(c, "Softmax", c->x, 1, attr, 1);
}

/* ---- elements ---- */

/* Any operator that takes its tensors as they are; alpha and beta are passed on where given. */
static int build_plain(struct net_call *c)
{
    struct attrs a = {0};
    if (has_option(c, "alpha"))
        put(&a, graph_float("alpha", opt_number(c, "alpha", 0)));
    if (has_option(c, "beta"))
        put(&a, graph_float("beta", opt_number(c, "beta", 0)));
    return new_node(c, c->op->onnx, c->x, c->nr_x, a.attr, a.nr);
}

static int build_clip(struct net_call *c)
{
    int in[3] = {c->x[0], -1, -1};
    double low = opt_number(c, "min", -INFINITY), high = opt_number(c, "max", INFINITY);
    if (low > high)
        return call_raise(c, "min is above max");
    if (has_option(c, "min"))
        in[1] = new_number(c, low);
    if (has_option(c, "max"))
        in[2] = new_number(c, high);
    return new_node(c, "Clip", in, 3, NULL, 0);
}

static int build_relu6(struct net_call *c)
{
    int in[3] = {c->x[0], new_number(c, 0), new_number(c, 6)};
    return new_node(c, "Clip", in, 3, NULL, 0);
}

static int build_silu(struct net_call *c)
{
    int s = new_node(c, "Sigmoid", c->x, 1, NULL, 0);
    return new_node(c, "Mul", (int[]){c->x[0], s}, 2, NULL, 0);
}

static int build_reduce(struct net_call *c)
{
    int rank = call_shape(c, 0)->rank, nr = opt_length(c, "axes");
    int64_t axes[LAYOUT_MAX_DIMS];
    if (nr < 1 || nr > rank)
        return call_raise(c, "needs axes, as in axes = {3, 4}");
    opt_ints(c, "axes", nr, -rank, axes);
    for (int i = 0; i < nr; i++) {
        if (axes[i] == 0 || axes[i] > rank)
            return call_raise(c, "has no dimension %I", (LUAI_UACINT)axes[i]);
        axes[i] -= axes[i] > 0;
    }
    struct graph_attr attr[] = {graph_ints("axes", axes, (size_t)nr),
                                graph_int("keepdims", opt_bool(c, "keep", true))};
    return new_node(c, c->op->onnx, c->x, 1, attr, 2);
}

/* ---- shapes ---- */

static int build_concat(struct net_call *c)
{
    struct graph_attr attr[] = {graph_int("axis", opt_axis(c, "axis", call_shape(c, 0)->rank, 2))};
    return new_node(c, "Concat", c->x, c->nr_x, attr, 1);
}

static int build_flatten(struct net_call *c)
{
    struct graph_attr attr[] = {graph_int("axis", opt_axis(c, "axis", call_shape(c, 0)->rank, 2))};
    return new_node(c, "Flatten", c->x, 1, attr, 1);
}

/* The numbered part of the options. */
static int read_list(struct net_call *c, int64_t *out)
{
    int nr = c->options ? net_table_ints(c->L, c->options, c->op->name, LAYOUT_MAX_DIMS, out) : 0;
    return nr ? nr : call_raise(c, "needs a table of dimensions, as in {1, -1}");
}

static int build_reshape(struct net_call *c)
{
    int64_t dim[LAYOUT_MAX_DIMS];
    int nr = read_list(c, dim);
    for (int i = 0; i < nr; i++)
        if (dim[i] < 1 && dim[i] != -1)
            return call_raise(c, "asks for dimension %I", (LUAI_UACINT)dim[i]);
    struct err e = ERR_INIT;
    int shape = graph_const_i64(c->net->g, "", 1, &(int64_t){nr}, dim, &e);
    if (shape < 0)
        return call_raise(c, "%s", e.msg);
    return new_node(c, "Reshape", (int[]){c->x[0], shape}, 2, NULL, 0);
}

static int build_transpose(struct net_call *c)
{
    int64_t perm[LAYOUT_MAX_DIMS];
    int nr = read_list(c, perm);
    for (int i = 0; i < nr; i++)
        if (perm[i]-- < 1)
            return call_raise(c, "counts dimensions from 1");
    struct graph_attr attr[] = {graph_ints("perm", perm, (size_t)nr)};
    return new_node(c, "Transpose", c->x, 1, attr, 1);
}

/* name, builder, fewest and most tensors, options, ONNX name where the builder serves several */
const struct net_op net_ops[] = {
    {"conv", build_conv, 1, 1, "k kernel stride pad dilation groups bias", NULL},
    {"depthwise", build_depthwise, 1, 1, "kernel stride pad dilation bias multiplier", NULL},
    {"maxpool", build_pool, 1, 1, "kernel stride pad dilation ceil", "MaxPool"},
    {"avgpool", build_pool, 1, 1, "kernel stride pad ceil include_pad", "AveragePool"},
    {"global_avgpool", build_plain, 1, 1, "", "GlobalAveragePool"},
    {"global_maxpool", build_plain, 1, 1, "", "GlobalMaxPool"},
    {"dense", build_dense, 1, 1, "n bias", NULL},
    {"gemm", build_gemm, 2, 3, "alpha beta trans_a trans_b", NULL},
    {"matmul", build_plain, 2, 2, "", "MatMul"},
    {"batchnorm", build_batchnorm, 1, 1, "epsilon", NULL},
    {"layernorm", build_layernorm, 1, 1, "epsilon", NULL},
    {"lrn", build_lrn, 1, 1, "size alpha beta bias", NULL},
    {"softmax", build_softmax, 1, 1, "axis", NULL},
    {"relu", build_plain, 1, 1, "", "Relu"},
    {"relu6", build_relu6, 1, 1, "", NULL},
    {"clip", build_clip, 1, 1, "min max", NULL},
    {"leakyrelu", build_plain, 1, 1, "alpha", "LeakyRelu"},
    {"elu", build_plain, 1, 1, "alpha", "Elu"},
    {"sigmoid", build_plain, 1, 1, "", "Sigmoid"},
    {"hardsigmoid", build_plain, 1, 1, "alpha beta", "HardSigmoid"},
    {"silu", build_silu, 1, 1, "", NULL},
    {"hardswish", build_plain, 1, 1, "", "HardSwish"},
    {"gelu", build_plain, 1, 1, "", "Gelu"},
    {"tanh", build_plain, 1, 1, "", "Tanh"},
    {"softplus", build_plain, 1, 1, "", "Softplus"},
    {"erf", build_plain, 1, 1, "", "Erf"},
    {"exp", build_plain, 1, 1, "", "Exp"},
    {"log", build_plain, 1, 1, "", "Log"},
    {"sqrt", build_plain, 1, 1, "", "Sqrt"},
    {"neg", build_plain, 1, 1, "", "Neg"},
    {"abs", build_plain, 1, 1, "", "Abs"},
    {"add", build_plain, 2, 2, "", "Add"},
    {"sub", build_plain, 2, 2, "", "Sub"},
    {"mul", build_plain, 2, 2, "", "Mul"},
    {"div", build_plain, 2, 2, "", "Div"},
    {"max", build_plain, 2, 2, "", "Max"},
    {"min", build_plain, 2, 2, "", "Min"},
    {"mean", build_reduce, 1, 1, "axes keep", "ReduceMean"},
    {"max_over", build_reduce, 1, 1, "axes keep", "ReduceMax"},
    {"concat", build_concat, 1, NET_MAX_TENSORS, "axis", NULL},
    {"flatten", build_flatten, 1, 1, "axis", NULL},
    {"reshape", build_reshape, 1, 1, "...", NULL},
    {"transpose", build_transpose, 1, 1, "...", NULL},
    {NULL, NULL, 0, 0, NULL, NULL},
};

_Static_assert(sizeof net_ops / sizeof *net_ops <= NETWORK_MAX_OPS, "one counter for each operator");
