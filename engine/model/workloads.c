/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named workloads: one kernel in a few words, for people and tests.
 *
 *   matmul:MxNxK      y[M,N] = x[M,K] w[K,N]; w varies, or is constant with ",const"
 *   dense:MxNxK       y[M,N] = x[M,K] w[N,K]^T + b[N]; w and b constant
 *   conv2d:...        N=1 C=64 H=56 W=H K=C R=3 S=R stride=1 pad=(R-1)/2 dilation=1 groups=1
 *   depthwise:...     the same with a group for each channel
 *   maxpool:...       N=1 C=64 H=56 W=H R=3 S=R stride=2 pad=(R-1)/2; also avgpool
 *   globalavgpool:... N=1 C=64 H=7 W=H
 *   lrn:...           N=1 C=64 H=56 W=H size=5
 *   softmax:MxN       over the last dimension; any number of dimensions
 *   add:AxBx...       x + y of one shape; also mul
 *   relu:AxBx...      also sigmoid
 *   transpose:MxN     of the last two dimensions
 *
 * Words behind the sizes follow the kernel in this order: bias (one constant a channel), add
 * (another input of the result's shape), then one of relu, relu6, sigmoid, tanh, gelu.
 * Four-dimensional operands are in the layout in which activations flow, as in the middle of a
 * network.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/model.h"
#include "engine/model/plan.h"

enum { MAX_ITEMS = 24, MAX_NAME = 16 };

struct item {
    char key[MAX_NAME];
    int64_t value;
    bool has_value, used;
};

struct args {
    const char *text;
    int nr_dims, nr_items;
    int64_t dim[LAYOUT_MAX_DIMS];
    struct item item[MAX_ITEMS];
    struct graph *g;
    struct err *e;
    bool flows;
    int rc;
};

/* ---- reading ---- */

static int refuse(struct args *a, const char *what, const char *detail, size_t len)
{
    if (!a->rc)
        a->rc = err_set(a->e, ERR_USAGE, "workload \"%s\" %s \"%.*s\"; see squall tune --help",
                        a->text, what, (int)(len > 64 ? 64 : len), detail);
    return -1;
}

/* A positive decimal number of at most 10 digits. */
static bool read_number(const char *s, size_t len, int64_t *v)
{
    *v = 0;
    for (size_t i = 0; i < len; i++) {
        if (!isdigit((unsigned char)s[i]))
            return false;
        *v = *v * 10 + (s[i] - '0');
    }
    return len > 0 && len <= 10;
}

static bool read_dims(struct args *a, const char *s, size_t len)
{
    for (size_t at = 0; at <= len;) {
        size_t n = strcspn(s + at, "x,");
        if (at + n > len)
            n = len - at;
        if (a->nr_dims == LAYOUT_MAX_DIMS || !read_number(s + at, n, &a->dim[a->nr_dims]) ||
            a->dim[a->nr_dims] < 1)
            return false;
        a->nr_dims++;
        at += n + 1;
    }
    return true;
}

static void read_item(struct args *a, const char *s, size_t len)
{
    const char *eq = memchr(s, '=', len);
    size_t key = eq ? (size_t)(eq - s) : len;
    if (a->nr_items == MAX_ITEMS || key == 0 || key >= MAX_NAME) {
        refuse(a, "has the unreadable part", s, len);
        return;
    }
    struct item *it = &a->item[a->nr_items++];
    *it = (struct item){.has_value = eq != NULL};
    memcpy(it->key, s, key);
    if (eq && !read_number(eq + 1, len - key - 1, &it->value))
        refuse(a, "has no sensible number in", s, len);
    for (int i = 0; i + 1 < a->nr_items; i++)
        if (strcmp(a->item[i].key, it->key) == 0)
            refuse(a, "says twice", s, len);
}

static void read_args(struct args *a, const char *s)
{
    for (bool first = true; *s && !a->rc; first = false) {
        size_t len = strcspn(s, ",");
        if (first && isdigit((unsigned char)*s)) {
            if (!read_dims(a, s, len))
                refuse(a, "has no sensible size in", s, len);
        } else {
            read_item(a, s, len);
        }
        s += len;
        if (*s == ',' && !*++s)
            refuse(a, "ends in", ",", 1);
    }
}

static int64_t number(struct args *a, const char *key, int64_t otherwise)
{
    for (int i = 0; i < a->nr_items; i++)
        if (strcmp(a->item[i].key, key) == 0 && a->item[i].has_value) {
            a->item[i].used = true;
            return a->item[i].value;
        }
    return otherwise;
}

static bool word(struct args *a, const char *key)
{
    for (int i = 0; i < a->nr_items; i++)
        if (strcmp(a->item[i].key, key) == 0 && !a->item[i].has_value)
            return a->item[i].used = true;
    return false;
}

static void need_dims(struct args *a, int min, int max)
{
    if (a->nr_dims < min || a->nr_dims > max)
        refuse(a, "needs sizes joined by \"x\" behind the colon, as in", "64x64x64", 8);
}

/* ---- building ---- */

static int keep(struct args *a, int v)
{
    if (v < 0 && !a->rc)
        a->rc = v;
    return a->rc ? -1 : v;
}

static int input(struct args *a, const char *name, int rank, const int64_t *dim)
{
    int v = a->rc ? -1 : keep(a, graph_input(a->g, name, rank, dim, a->e));
    if (v >= 0)
        a->g->value[v]->flows = a->flows;
    return v;
}

static int weights(struct args *a, const char *name, int rank, const int64_t *dim)
{
    return a->rc ? -1 : keep(a, graph_const_f32(a->g, name, rank, dim, NULL, a->e));
}

static int node(struct args *a, const char *op, const int *in, int nr_in,
                const struct graph_attr *attr, int nr_attr)
{
    int out = -1;
    struct graph_call c = {.op = op,
                           .name = a->text,
                           .in = in,
                           .nr_in = nr_in,
                           .attr = attr,
                           .nr_attr = nr_attr,
                           .out = &out,
                           .nr_out = 1};
    int rc = a->rc ? a->rc : graph_node(a->g, &c, a->e);
    return keep(a, rc ? rc : out);
}

/* The words that follow a kernel. */
static int follow(struct args *a, int v, bool bias)
{
    if (a->rc)
        return -1;
    const struct shape s = a->g->value[v]->shape;
    bool space = s.rank == 4;
    if (bias || word(a, "bias")) {
        int64_t dim[] = {space ? s.dim[1] : s.dim[s.rank - 1], 1, 1};
        v = node(a, "Add", (int[]){v, weights(a, "b", space ? 3 : 1, dim)}, 2, NULL, 0);
    }
    if (word(a, "add"))
        v = node(a, "Add", (int[]){v, input(a, "e", s.rank, s.dim)}, 2, NULL, 0);
    if (word(a, "relu"))
        return node(a, "Relu", &v, 1, NULL, 0);
    if (word(a, "sigmoid"))
        return node(a, "Sigmoid", &v, 1, NULL, 0);
    if (word(a, "tanh"))
        return node(a, "Tanh", &v, 1, NULL, 0);
    if (word(a, "gelu"))
        return node(a, "Gelu", &v, 1, NULL, 0);
    if (word(a, "relu6")) {
        float bound[] = {0, 6};
        int low = keep(a, graph_const_f32(a->g, "low", 0, NULL, &bound[0], a->e));
        int high = keep(a, graph_const_f32(a->g, "high", 0, NULL, &bound[1], a->e));
        return node(a, "Clip", (int[]){v, low, high}, 3, NULL, 0);
    }
    return v;
}

static int build_matmul(struct args *a)
{
    need_dims(a, 3, 3);
    int64_t m = a->dim[0], n = a->dim[1], k = a->dim[2];
    int x = input(a, "x", 2, (int64_t[]){m, k});
    int w = word(a, "const") ? weights(a, "w", 2, (int64_t[]){k, n})
                             : input(a, "w", 2, (int64_t[]){k, n});
    return follow(a, node(a, "MatMul", (int[]){x, w}, 2, NULL, 0), false);
}

static int build_dense(struct args *a)
{
    need_dims(a, 3, 3);
    int64_t m = a->dim[0], n = a->dim[1], k = a->dim[2];
    int x = input(a, "x", 2, (int64_t[]){m, k}), w = weights(a, "w", 2, (int64_t[]){n, k});
    struct graph_attr t = graph_int("transB", 1);
    word(a, "bias");
    return follow(a, node(a, "Gemm", (int[]){x, w}, 2, &t, 1), true);
}

/* Kernel, strides and pads, the keys R, S, stride, pad. */
struct window_args {
    int64_t kernel[2], stride[2], dilation[2], pads[4];
    struct graph_attr attr[4];
};

static void read_window(struct args *a, int64_t stride, struct window_args *w)
{
    w->kernel[0] = number(a, "R", 3);
    w->kernel[1] = number(a, "S", w->kernel[0]);
    w->stride[0] = w->stride[1] = number(a, "stride", stride);
    w->dilation[0] = w->dilation[1] = number(a, "dilation", 1);
    int64_t pad = number(a, "pad", -1);
    for (int i = 0; i < 4; i++)
        w->pads[i] = pad >= 0 ? pad : (w->kernel[i % 2] - 1) / 2 * w->dilation[0];
    w->attr[0] = graph_ints("kernel_shape", w->kernel, 2);
    w->attr[1] = graph_ints("strides", w->stride, 2);
    w->attr[2] = graph_ints("dilations", w->dilation, 2);
    w->attr[3] = graph_ints("pads", w->pads, 4);
}

static int image(struct args *a, int64_t size)
{
    int64_t h = number(a, "H", size);
    int64_t dim[] = {number(a, "N", 1), number(a, "C", 64), h, number(a, "W", h)};
    if (a->nr_dims)
        refuse(a, "wants its sizes as in", "C=64,H=56", 9);
    return input(a, "x", 4, dim);
}

static int emit_conv(struct args *a, bool depthwise)
{
    int x = image(a, 56);
    int64_t c = number(a, "C", 64), k = depthwise ? c : number(a, "K", c);
    int64_t groups = depthwise ? c : number(a, "groups", 1);
    struct window_args w;
    read_window(a, 1, &w);
    if (groups < 1 || c % groups)
        refuse(a, "has groups that do not divide", "C", 1);
    if (a->rc)
        return -1;
    int v = weights(a, "w", 4, (int64_t[]){k, c / groups, w.kernel[0], w.kernel[1]});
    struct graph_attr attr[5] = {w.attr[0], w.attr[1], w.attr[2], w.attr[3],
                                 graph_int("group", groups)};
    return follow(a, node(a, "Conv", (int[]){x, v}, 2, attr, 5), false);
}

static int build_conv2d(struct args *a)
{
    return emit_conv(a, false);
}

static int build_depthwise(struct args *a)
{
    return emit_conv(a, true);
}

static int emit_pool(struct args *a, const char *op)
{
    int x = image(a, 56);
    struct window_args w;
    read_window(a, 2, &w);
    return follow(a, node(a, op, &x, 1, w.attr, 4), false);
}

static int build_maxpool(struct args *a)
{
    return emit_pool(a, "MaxPool");
}

static int build_avgpool(struct args *a)
{
    return emit_pool(a, "AveragePool");
}

static int build_globalavgpool(struct args *a)
{
    int x = image(a, 7);
    return follow(a, node(a, "GlobalAveragePool", &x, 1, NULL, 0), false);
}

static int build_lrn(struct args *a)
{
    int x = image(a, 56);
    struct graph_attr attr[] = {graph_int("size", number(a, "size", 5)), graph_float("alpha", 1e-4),
                                graph_float("beta", 0.75)};
    return follow(a, node(a, "LRN", &x, 1, attr, 3), false);
}

static int build_softmax(struct args *a)
{
    need_dims(a, 1, LAYOUT_MAX_DIMS);
    int x = input(a, "x", a->nr_dims, a->dim);
    return node(a, "Softmax", &x, 1, NULL, 0);
}

static int emit_elements(struct args *a, const char *op, int operands)
{
    need_dims(a, 1, LAYOUT_MAX_DIMS);
    int x = input(a, "x", a->nr_dims, a->dim);
    int y = operands == 2 ? input(a, "y", a->nr_dims, a->dim) : -1;
    return follow(a, node(a, op, (int[]){x, y}, operands, NULL, 0), false);
}

static int build_add(struct args *a)
{
    return emit_elements(a, "Add", 2);
}

static int build_mul(struct args *a)
{
    return emit_elements(a, "Mul", 2);
}

static int build_relu(struct args *a)
{
    return emit_elements(a, "Relu", 1);
}

static int build_sigmoid(struct args *a)
{
    return emit_elements(a, "Sigmoid", 1);
}

static int build_transpose(struct args *a)
{
    need_dims(a, 2, LAYOUT_MAX_DIMS);
    int x = input(a, "x", a->nr_dims, a->dim);
    int64_t perm[LAYOUT_MAX_DIMS];
    for (int i = 0; i < a->nr_dims; i++)
        perm[i] = i < a->nr_dims - 2 ? i : 2 * a->nr_dims - 3 - i;
    struct graph_attr p = graph_ints("perm", perm, (size_t)a->nr_dims);
    return node(a, "Transpose", &x, 1, &p, 1);
}

/* ---- the table ---- */

#define NAMED_LIST(X)                                                                              \
    X(matmul, "MxNxK[,const]")                                                                     \
    X(dense, "MxNxK")                                                                              \
    X(conv2d, "N=1,C=64,H=56,W=H,K=C,R=3,S=R,stride=1,pad=(R-1)/2,dilation=1,groups=1")            \
    X(depthwise, "N=1,C=64,H=56,W=H,R=3,S=R,stride=1,pad=(R-1)/2,dilation=1")                      \
    X(maxpool, "N=1,C=64,H=56,W=H,R=3,S=R,stride=2,pad=(R-1)/2")                                   \
    X(avgpool, "N=1,C=64,H=56,W=H,R=3,S=R,stride=2,pad=(R-1)/2")                                   \
    X(globalavgpool, "N=1,C=64,H=7,W=H")                                                           \
    X(lrn, "N=1,C=64,H=56,W=H,size=5")                                                             \
    X(softmax, "MxN")                                                                              \
    X(transpose, "MxN")                                                                            \
    X(add, "AxBxC")                                                                                \
    X(mul, "AxBxC")                                                                                \
    X(relu, "AxBxC")                                                                               \
    X(sigmoid, "AxBxC")

static const struct {
    const char *name;
    int (*build)(struct args *a);
} named[] = {
#define NAMED_ROW(name, syntax) {#name, build_##name},
    NAMED_LIST(NAMED_ROW)
#undef NAMED_ROW
};

enum { NR_NAMED = sizeof named / sizeof named[0] };

static int find_named(const char *text)
{
    for (int i = 0; i < NR_NAMED; i++) {
        size_t len = strlen(named[i].name);
        if (strncmp(text, named[i].name, len) == 0 && text[len] == ':')
            return i;
    }
    return -1;
}

bool model_is_named_workload(const char *text)
{
    return find_named(text) >= 0;
}

const char *model_named_workloads_help(void)
{
#define NAMED_HELP(name, syntax) #name ":" syntax "\n"
    return NAMED_LIST(NAMED_HELP) "then any of ,bias ,add and one of ,relu ,relu6 ,sigmoid ,tanh "
                                  ",gelu; keys in any order, what is left out is as shown\n";
#undef NAMED_HELP
}

static struct graph *build(const char *text, int kind, bool flows, struct err *e)
{
    struct args a = {.text = text, .g = graph_new(text, 20), .e = e, .flows = flows};
    read_args(&a, strchr(text, ':') + 1);
    int v = a.rc ? -1 : named[kind].build(&a);
    for (int i = 0; i < a.nr_items && !a.rc; i++)
        if (!a.item[i].used)
            refuse(&a, "does not know", a.item[i].key, strlen(a.item[i].key));
    if (!a.rc)
        a.rc = graph_output(a.g, v, e);
    if (!a.rc) {
        a.g->value[v]->flows = flows;
        a.rc = graph_finish(a.g, e);
    }
    if (!a.rc)
        return a.g;
    graph_free(a.g);
    return NULL;
}

/* The graph, and its tasks with *block: as activations flow where that is one kernel, else plain. */
static struct graph *build_single(const char *text, int kind, int *block, struct task_list *out,
                                  struct err *e)
{
    for (bool flows = true;; flows = false) {
        struct graph *g = build(text, kind, flows, e);
        *block = flows ? *block : 1;
        int rc = g ? model_tasks_from_graph(g, &(struct model_options){.block = *block}, out, e)
                   : ERR_INPUT;
        if (!rc && out->nr == 1)
            return g;
        graph_free(g);
        task_list_release(out);
        if (!rc && flows)
            continue;
        if (!rc)
            err_set(e, ERR_UNSUPPORTED, "workload \"%s\" is no single kernel", text);
        else if (e && e->code != ERR_USAGE) /* that one names it */
            err_prefix(e, "workload \"%s\"", text);
        return NULL;
    }
}

static struct graph *from_name(const char *text, int *block, struct task_list *out, struct err *e)
{
    int kind = find_named(text);
    if (kind >= 0)
        return build_single(text, kind, block, out, e);
    err_set(e, ERR_USAGE, "workload \"%s\" is of no known kind; kinds are:\n%s", text,
            model_named_workloads_help());
    return NULL;
}

struct graph *model_graph_from_name(const char *text, int *block, struct err *e)
{
    struct task_list made = {0};
    struct graph *g = from_name(text, block, &made, e);
    task_list_release(&made);
    return g;
}

int model_task_from_name(const char *text, const struct model_options *o, struct task_list *out,
                         struct err *e)
{
    struct task_list made = {0};
    struct err own = ERR_INIT;
    int block = o->block;
    struct graph *g = from_name(text, &block, &made, e ? e : (e = &own));
    if (!g)
        return e->code;
    made.task[0]->where[0] = '\0';
    made.task[0]->weight = 1;
    task_list_add(out, made.task[0]);
    made.nr = 0;
    if (!out->name[0])
        snprintf(out->name, sizeof out->name, "%s", named[find_named(text)].name);
    task_list_release(&made);
    graph_free(g);
    return 0;
}
