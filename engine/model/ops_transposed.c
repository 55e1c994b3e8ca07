/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvTranspose as a convolution: output o = q s + f (phase f of the stride s) sums
 *
 *     y[q s + f] = sum over j of x[q - j] w[j s + f]
 *
 * so all phases together are one convolution with the channels K s^d, whose weights are the phases
 * of w turned round, and then the phases are put between each other: a reshape and a transposition.
 * Nothing is multiplied with zeros that the stride would put between the inputs, but for weights
 * whose extent is no multiple of it. Constant weights are rearranged once.
 */
#include <string.h>

#include "engine/model/ops.h"

#define MAX_ATTR (INT64_C(1) << 20)

struct transposed {
    int nr;                              /* spatial dimensions */
    int64_t groups, in_group, out_group; /* channels a group */
    int64_t in[OP_MAX_WINDOW], size[OP_MAX_WINDOW], stride[OP_MAX_WINDOW], dilation[OP_MAX_WINDOW];
    int64_t reach[OP_MAX_WINDOW]; /* extent of the dilated weights */
    int64_t taps[OP_MAX_WINDOW];  /* of one phase */
    int64_t front[OP_MAX_WINDOW], out[OP_MAX_WINDOW];
};

static void spatial(struct call *c, const char *name, int nr, int64_t otherwise, int64_t *out)
{
    int have = call_ints(c, name, nr, out);
    for (int i = 0; i < nr; i++) {
        out[i] = have < 0 ? otherwise : out[i];
        if ((have >= 0 && have != nr) || out[i] < -MAX_ATTR || out[i] > MAX_ATTR ||
            (out[i] < otherwise && otherwise == 1)) {
            call_fail(c, ERR_INPUT, "has a wrong attribute \"%s\"", name);
            out[i] = otherwise;
        }
    }
}

/* What is cut off in front, and the extents of the output. */
static void read_frame(struct call *c, struct transposed *t)
{
    int64_t pads[2 * OP_MAX_WINDOW], more[OP_MAX_WINDOW], want[OP_MAX_WINDOW];
    spatial(c, "pads", 2 * t->nr, 0, pads);
    spatial(c, "output_padding", t->nr, 0, more);
    bool given = call_has(c, "output_shape");
    if (given) {
        int64_t all[OP_MAX_WINDOW + 2];
        int have = call_ints(c, "output_shape", t->nr + 2, all); /* some name N and C, too */
        if (!c->rc && have != t->nr && have != t->nr + 2)
            call_fail(c, ERR_INPUT, "has a wrong attribute \"output_shape\"");
        for (int i = 0; i < t->nr && !c->rc; i++)
            want[i] = all[have - t->nr + i];
    }
    bool upper = call_string_is(c, "auto_pad", "SAME_UPPER", false);
    bool lower = call_string_is(c, "auto_pad", "SAME_LOWER", false);
    bool valid = call_string_is(c, "auto_pad", "VALID", false);
    for (int i = 0; i < t->nr && !c->rc; i++) {
        int64_t full = (t->in[i] - 1) * t->stride[i] + more[i] + t->reach[i];
        if ((upper || lower) && !given)
            want[i] = t->in[i] * t->stride[i];
        if (given || upper || lower) {
            int64_t total = full - want[i];
            t->front[i] = total < 0 ? 0 : upper ? total / 2 : total - total / 2;
            t->out[i] = want[i];
        } else {
            t->front[i] = valid ? 0 : pads[i];
            t->out[i] = full - (valid ? 0 : pads[i] + pads[t->nr + i]);
        }
        if (t->out[i] < 1 || t->out[i] > MAX_ATTR * 1024)
            call_fail(c, ERR_INPUT, "would give dimension %lld", (long long)t->out[i]);
    }
}

static void read_transposed(struct call *c, int x, int w, struct transposed *t)
{
    const struct shape xs = call_value(c, x)->shape, ws = call_value(c, w)->shape;
    *t = (struct transposed){.nr = xs.rank - 2, .groups = call_int(c, "group", 1)};
    if (!c->rc &&
        (xs.rank < 3 || xs.rank > 2 + OP_MAX_WINDOW || ws.rank != xs.rank || shape_size(&xs) < 1 ||
         shape_size(&ws) < 1 || ws.dim[0] != xs.dim[1] || t->groups < 1 || xs.dim[1] % t->groups))
        call_fail(c, ERR_INPUT, "has input %s, weights %s and %lld groups, which do not match",
                  shape_text(&xs).s, shape_text(&ws).s, (long long)t->groups);
    if (c->rc)
        return;
    t->in_group = ws.dim[0] / t->groups;
    t->out_group = ws.dim[1];
    spatial(c, "strides", t->nr, 1, t->stride);
    spatial(c, "dilations", t->nr, 1, t->dilation);
    for (int i = 0; i < t->nr; i++) {
        t->in[i] = xs.dim[2 + i];
        t->size[i] = ws.dim[2 + i];
        t->reach[i] = (t->size[i] - 1) * t->dilation[i] + 1;
        t->taps[i] = (t->reach[i] + t->stride[i] - 1) / t->stride[i];
    }
    read_frame(c, t);
}

/* Zeros between the weights, and behind them up to whole phases: [C, K/g, taps * stride ...]. */
static int spread_weights(struct call *c, const struct transposed *t, int w)
{
    static const int64_t none[LAYOUT_MAX_DIMS];
    struct shape cut = {.rank = 2, .dim = {t->in_group * t->groups, t->out_group}};
    struct shape wide = cut, joined = cut, whole = cut;
    bool dilated = false;
    for (int i = 0; i < t->nr; i++) {
        cut.dim[cut.rank++] = t->size[i];
        wide.dim[wide.rank++] = t->size[i];
        if (t->dilation[i] > 1) {
            cut.dim[cut.rank++] = 1;
            wide.dim[wide.rank++] = t->dilation[i];
            dilated = true;
        }
        joined.dim[joined.rank++] = t->size[i] * t->dilation[i];
        whole.dim[whole.rank++] = t->taps[i] * t->stride[i];
    }
    if (dilated) {
        w = call_pad(c, call_reshape(c, w, &cut), none, 0, &wide);
        w = call_reshape(c, w, &joined);
    }
    return call_pad(c, w, none, 0, &whole); /* also cuts the zeros behind the last weight */
}

/* [C, K/g, taps * stride ...] to the weights of the convolution: [K * phases, C/g, taps ...]. */
static int turn_weights(struct call *c, const struct transposed *t, int w)
{
    struct shape cut = {0}, out = {.rank = 2};
    int64_t start[LAYOUT_MAX_DIMS] = {0}, step[LAYOUT_MAX_DIMS], perm[LAYOUT_MAX_DIMS];
    int tap[OP_MAX_WINDOW], phase[OP_MAX_WINDOW], nr = 0;
    bool grouped = t->groups > 1;
    for (int i = 0; i < t->nr; i++)
        nr += 1 + (t->stride[i] > 1);
    if (nr + 2 + grouped > LAYOUT_MAX_DIMS)
        return call_fail(c, ERR_UNSUPPORTED, "is not supported in groups and three strides");
    if (grouped)
        cut.dim[cut.rank++] = t->groups;
    int in = cut.rank;
    cut.dim[cut.rank++] = t->in_group;
    cut.dim[cut.rank++] = t->out_group;
    for (int i = 0; i < t->nr; i++) {
        tap[i] = cut.rank;
        cut.dim[cut.rank++] = t->taps[i];
        phase[i] = t->stride[i] > 1 ? cut.rank : -1;
        if (phase[i] >= 0)
            cut.dim[cut.rank++] = t->stride[i];
    }
    for (int i = 0; i < LAYOUT_MAX_DIMS; i++)
        step[i] = 1;
    for (int i = 0; i < t->nr; i++) {
        start[tap[i]] = t->taps[i] - 1;
        step[tap[i]] = t->taps[i] > 1 ? -1 : 1;
    }
    w = call_slice(c, call_reshape(c, w, &cut), start, step, &cut);
    nr = 0;
    if (grouped)
        perm[nr++] = 0;
    perm[nr++] = in + 1;
    for (int i = 0; i < t->nr; i++)
        if (phase[i] >= 0)
            perm[nr++] = phase[i];
    perm[nr++] = in;
    out.dim[0] = t->groups * t->out_group;
    out.dim[1] = t->in_group;
    for (int i = 0; i < t->nr; i++) {
        perm[nr++] = tap[i];
        out.dim[0] *= t->stride[i];
        out.dim[out.rank++] = t->taps[i];
    }
    return call_reshape(c, call_transpose(c, w, perm), &out);
}

/* [N, K * phases, Q ...] to [N, K, Q * stride ...]. */
static int join_phases(struct call *c, const struct transposed *t, int y)
{
    const struct shape ys = call_value(c, y)->shape;
    struct shape cut = {2, {ys.dim[0], t->groups * t->out_group}}, out = cut;
    int64_t perm[LAYOUT_MAX_DIMS] = {0, 1};
    int phase[OP_MAX_WINDOW], nr = 2;
    if (c->rc)
        return -1;
    for (int i = 0; i < t->nr; i++) {
        phase[i] = t->stride[i] > 1 ? cut.rank : -1;
        if (phase[i] >= 0)
            cut.dim[cut.rank++] = t->stride[i];
    }
    for (int i = 0; i < t->nr; i++) {
        perm[nr++] = cut.rank;
        cut.dim[cut.rank++] = ys.dim[2 + i];
        if (phase[i] >= 0)
            perm[nr++] = phase[i];
        out.dim[out.rank++] = ys.dim[2 + i] * t->stride[i];
    }
    y = call_transpose(c, call_reshape(c, y, &cut), perm);
    return call_reshape(c, y, &out);
}

void op_conv_transpose(struct call *c)
{
    int x = call_tensor(c, 0), w = call_tensor(c, 1), b = call_tensor(c, 2);
    struct transposed t;
    read_transposed(c, x, w, &t);
    if (c->rc)
        return;
    const struct shape xs = call_value(c, x)->shape;
    w = turn_weights(c, &t, spread_weights(c, &t, w));
    struct op op = {.kind = OP_CONV, .groups = t.groups, .window.nr = t.nr};
    struct shape ys = {2, {xs.dim[0], call_value(c, w)->shape.dim[0]}};
    int64_t front[LAYOUT_MAX_DIMS] = {0};
    for (int i = 0; i < t.nr; i++) {
        op.window.size[i] = t.taps[i];
        op.window.stride[i] = op.window.dilation[i] = 1;
        op.window.pad[i] = op.window.pad_end[i] = t.taps[i] - 1;
        ys.dim[ys.rank++] = t.in[i] + t.taps[i] - 1;
        front[2 + i] = -t.front[i];
    }
    int y = join_phases(c, &t, call_emit(c, &op, (int[]){x, w}, 2, &ys));
    struct shape out = call_value(c, y)->shape;
    for (int i = 0; i < t.nr && !c->rc; i++)
        out.dim[2 + i] = t.out[i];
    y = call_pad(c, y, front, 0, &out);
    if (call_in(c, 2) >= 0) {
        struct shape bias = {xs.rank - 1, {t.groups * t.out_group, 1, 1, 1}};
        y = call_element2(c, OP_ADD, y, call_reshape(c, b, &bias));
    }
    call_out(c, 0, y);
}
