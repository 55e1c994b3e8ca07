/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network: the Lua words in which a person writes a network.
 *
 *     local net = network { name = "resnet18", input = {1, 3, 224, 224} }
 *     local x = net.input
 *     x = net:conv(x, {k = 64, kernel = 7, stride = 2, pad = 3})
 *     x = net:relu(net:batchnorm(x))
 *     return net:output(x)
 *
 * Every operator can also be called on its first tensor: x:conv{k = 64}:batchnorm():relu(). Tensors
 * add, subtract, multiply and divide with + - * /, also with numbers; x.shape is a table of
 * extents, x.name a text. Weights have shapes and no numbers: kernels are tuned on synthetic ones.
 *
 * network{...}
 *     name = text, input = shape; or inputs = {shape, ...}, where a shape may have a name, as in
 *     {1, 3, 224, 224, name = "image"}. net.input is the first of net.inputs. Once in a script.
 * net:output(x, ...)
 *     marks results, and returns net: what a script must return.
 * net:weight(shape)
 *     a constant tensor; {64, 64, fill = 0.5} for one known number everywhere.
 * net:op(name, {x, ...}, {attributes}, outputs)
 *     any operator that the reader of ONNX knows, with its attributes: whole numbers, numbers,
 *     texts, tables of whole numbers. In the list of tensors a table is a constant of whole
 *     numbers, and false an input left out.
 *
 * Operators (table: network_ops.c). All take an option `name`. Sizes are numbers, or tables
 * of one number a spatial dimension. Dimensions count from 1, as in x.shape, or back from -1.
 *     conv         k (output channels), kernel = 1, stride = 1, pad = 0, dilation = 1, groups = 1,
 *                  bias = false
 *     depthwise    kernel, stride, pad, dilation, bias, multiplier = 1
 *     dense        n (outputs), bias = false; on the last dimension
 *     gemm         (a, b[, c]) alpha, beta, trans_a, trans_b;      matmul (a, b)
 *     batchnorm    epsilon;    layernorm epsilon;    lrn size, alpha, beta, bias
 *     maxpool      kernel, stride = kernel, pad, dilation, ceil
 *     avgpool      kernel, stride = kernel, pad, ceil, include_pad
 *     global_avgpool   global_maxpool   mean max_over (axes, keep = true)
 *     relu relu6 sigmoid tanh silu hardswish hardsigmoid gelu erf exp log sqrt neg abs softplus
 *     leakyrelu elu (alpha)    clip (min, max)    add sub mul div max min (x, y)
 *     concat       (x, y, ...) or ({x, y, ...}), axis = 2
 *     flatten      axis = 2;   softmax axis = -1;    reshape {1, -1};    transpose {1, 3, 2}
 * pad is one number, one for each dimension, one for each side as {top, left, bottom, right}, or
 * "same".
 */
#ifndef SCRIPTS_NETWORK_H
#define SCRIPTS_NETWORK_H

#include <lua.h>
#include <stdbool.h>

#include "engine/model/graph.h"

enum { NETWORK_MAX_OPS = 64 };

struct network {
    struct graph *g; /* owned; NULL until the script calls network{} */
    const char *name; /* where the script gives none; borrowed */
    bool has_output;
    int nr_calls[NETWORK_MAX_OPS]; /* of each operator, which number its nodes; first net:op() */
};

void network_release(struct network *n);

/* For the body of a sandbox: defines `network` in the globals. `n` outlives the Lua state. */
void network_open(lua_State *L, struct network *n);

/* Is the value at `idx` the object that network{} gave to the script? */
bool network_is_net(lua_State *L, int idx);

#endif
