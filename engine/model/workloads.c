/* SPDX-License-Identifier: Apache-2.0 */
/* Named workloads, first cut. */
#include "engine/model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"

static bool flag(const char *text, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = text; (p = strstr(p, name)); p += len)
        if (p > text && p[-1] == ',' && (p[len] == ',' || !p[len]))
            return true;
    return false;
}

static int64_t key(const char *text, const char *name, int64_t otherwise)
{
    size_t len = strlen(name);
    for (const char *p = text; (p = strstr(p, name)); p += len)
        if ((p[-1] == ',' || p[-1] == ':') && p[len] == '=')
            return strtoll(p + len + 1, NULL, 10);
    return otherwise;
}

static struct task *matmul(const char *text, bool dense)
{
    long long m, n, k;
    if (sscanf(strchr(text, ':') + 1, "%lldx%lldx%lld", &m, &n, &k) != 3)
        return NULL;
    struct task *t = xcalloc(1, sizeof *t);
    struct workload *w = &t->wl;
    workload_init(w, dense ? "dense" : "matmul");
    struct layout a = layout_plain(2, (int64_t[]){m, k}), c = layout_plain(2, (int64_t[]){m, n});
    struct layout b = layout_plain(2, dense ? (int64_t[]){n, k} : (int64_t[]){k, n});
    struct layout v = layout_plain(1, (int64_t[]){n});
    bool bias = dense || flag(text, "bias"), relu = flag(text, "relu"), post = bias || relu;
    int x = workload_tensor(w, "x", WL_INPUT, &a);
    int y = workload_tensor(w, "w", dense || flag(text, "const") ? WL_CONST : WL_INPUT, &b);
    int bt = bias ? workload_tensor(w, "b", WL_CONST, &v) : -1;
    int tmp = post ? workload_tensor(w, "t", WL_TEMP, &c) : -1;
    int out = workload_tensor(w, "y", WL_OUTPUT, &c);
    int s = workload_stage(w, "matmul", post ? tmp : out, WL_SUM);
    int am = workload_axis(w, s, "m", m, false), an = workload_axis(w, s, "n", n, false);
    int ak = workload_axis(w, s, "k", k, true);
    struct affine M = affine_axis(am, 1), N = affine_axis(an, 1), K = affine_axis(ak, 1);
    w->stage[s].body = wl_binary(w, WL_MUL, wl_load(w, x, (struct affine[]){M, K}),
                                 wl_load(w, y, dense ? (struct affine[]){N, K} : (struct affine[]){K, N}));
    if (post) {
        int o = workload_stage(w, "out", out, WL_NONE);
        workload_axis(w, o, "m", m, false);
        workload_axis(w, o, "n", n, false);
        const struct wl_expr *p = wl_load(w, tmp, (struct affine[]){M, N});
        if (bias)
            p = wl_binary(w, WL_ADD, p, wl_load(w, bt, &N));
        if (relu)
            p = wl_binary(w, WL_MAX, p, wl_literal(w, 0));
        w->stage[o].body = p;
    }
    w->flops = 2.0 * (double)m * (double)n * (double)k;
    t->reduce_length = k;
    return t;
}

static struct task *conv2d(const char *text, int64_t blk)
{
    int64_t N = key(text, "N", 1), C = key(text, "C", 64), H = key(text, "H", 56), W = key(text, "W", 56);
    int64_t K = key(text, "K", 64), R = key(text, "R", 3), S = key(text, "S", 3);
    int64_t st = key(text, "stride", 1), pd = key(text, "pad", 1), dl = key(text, "dilation", 1);
    int64_t Y = (H + 2 * pd - dl * (R - 1) - 1) / st + 1, X = (W + 2 * pd - dl * (S - 1) - 1) / st + 1;
    bool bias = flag(text, "bias"), relu = flag(text, "relu"), add = flag(text, "add");
    bool post = bias || relu || add, cb = blk > 1 && C > 4, kb = blk > 1;
    struct task *t = xcalloc(1, sizeof *t);
    struct workload *w = &t->wl;
    workload_init(w, "conv2d");
    int64_t xd[] = {N, C, H, W}, od[] = {N, K, Y, X}, wd[] = {K, C, R, S};
    struct layout xl = cb ? layout_blocked(4, xd, 1, blk) : layout_plain(4, xd);
    struct layout ol = kb ? layout_blocked(4, od, 1, blk) : layout_plain(4, od);
    struct layout wl = layout_plain(4, wd), bl = layout_plain(1, &K);
    int x = workload_tensor(w, "x", WL_INPUT, &xl), wt = workload_tensor(w, "w", WL_CONST, &wl);
    int bt = bias ? workload_tensor(w, "b", WL_CONST, &bl) : -1;
    int at = add ? workload_tensor(w, "e0", WL_INPUT, &ol) : -1;
    int64_t cblocks = cb ? (C + blk - 1) / blk : C, kblocks = kb ? (K + blk - 1) / blk : K;
    int64_t py = (Y - 1) * st + (R - 1) * dl + 1, px = (X - 1) * st + (S - 1) * dl + 1;
    int src = x;
    if (pd) {
        int64_t dd[] = {N, cblocks, py, px, blk};
        struct layout pl = layout_plain(cb ? 5 : 4, dd);
        src = workload_tensor(w, "pad", WL_TEMP, &pl);
        int s = workload_stage(w, "pad", src, WL_NONE);
        const char *nm[] = {"n", "c", "y", "x", "ci"};
        struct affine idx[5];
        for (int i = 0; i < (cb ? 5 : 4); i++)
            idx[i] = affine_axis(workload_axis(w, s, nm[i], dd[i], false), 1);
        idx[2].base = idx[3].base = -pd;
        w->stage[s].body = wl_load_guarded(w, x, idx, 0);
    }
    int64_t sd[] = {N, kblocks, Y, X, blk};
    struct layout tl = layout_plain(kb ? 5 : 4, sd);
    int tmp = post ? workload_tensor(w, "t", WL_TEMP, &tl) : -1;
    int out = workload_tensor(w, "y", WL_OUTPUT, &ol);
    int s = workload_stage(w, "conv", post ? tmp : out, WL_SUM);
    const char *nm[] = {"n", "k", "y", "x", "ki"};
    struct affine sp[5], lk;
    for (int i = 0; i < (kb ? 5 : 4); i++)
        sp[i] = affine_axis(workload_axis(w, s, nm[i], sd[i], false), 1);
    lk = kb ? affine_add(affine_axis(1, blk), affine_axis(4, 1)) : sp[1];
    int c = workload_axis(w, s, "c", cblocks, true), r = workload_axis(w, s, "r", R, true);
    int q = workload_axis(w, s, "s", S, true), ci = cb ? workload_axis(w, s, "ci", blk, true) : -1;
    struct affine xi[5] = {sp[0], affine_axis(c, 1),
                           affine_add(affine_axis(2, st), affine_axis(r, dl)),
                           affine_add(affine_axis(3, st), affine_axis(q, dl)),
                           cb ? affine_axis(ci, 1) : affine_const(0)};
    struct affine lc = cb ? affine_add(affine_axis(c, blk), affine_axis(ci, 1)) : affine_axis(c, 1);
    struct affine wi[4] = {lk, lc, affine_axis(r, 1), affine_axis(q, 1)};
    bool wg = (kb && K % blk) || (cb && C % blk);
    w->stage[s].body = wl_binary(w, WL_MUL, wl_load(w, src, xi),
                                 wg ? wl_load_guarded(w, wt, wi, 0) : wl_load(w, wt, wi));
    if (post) {
        int o = workload_stage(w, "out", out, WL_NONE);
        for (int i = 0; i < (kb ? 5 : 4); i++)
            workload_axis(w, o, nm[i], sd[i], false);
        const struct wl_expr *p = wl_load(w, tmp, sp);
        if (bias)
            p = wl_binary(w, WL_ADD, p, kb && K % blk ? wl_load_guarded(w, bt, &lk, 0) : wl_load(w, bt, &lk));
        if (add)
            p = wl_binary(w, WL_ADD, p, wl_load(w, at, sp));
        if (relu)
            p = wl_binary(w, WL_MAX, p, wl_literal(w, 0));
        w->stage[o].body = p;
    }
    w->flops = 2.0 * (double)(N * K * Y * X) * (double)(C * R * S);
    t->reduce_length = C * R * S;
    return t;
}

bool model_is_named_workload(const char *text)
{
    return strncmp(text, "matmul:", 7) == 0 || strncmp(text, "dense:", 6) == 0 ||
           strncmp(text, "conv2d:", 7) == 0;
}

int model_task_from_name(const char *text, const struct model_options *o, struct task_list *out,
                         struct err *e)
{
    struct task *t = strncmp(text, "conv2d:", 7) == 0 ? conv2d(text, o->block)
                                                      : matmul(text, text[0] == 'd');
    if (!t)
        return err_set(e, ERR_USAGE, "named workload \"%s\" is not understood", text);
    t->weight = 1;
    snprintf(t->name, sizeof t->name, "%s", text);
    int rc = workload_finish(&t->wl, e);
    if (rc) {
        task_free(t);
        return rc;
    }
    task_list_add(out, t);
    return 0;
}

const char *model_named_workloads_help(void)
{
    return "matmul:MxNxK[,const][,bias][,relu]\ndense:MxNxK[,relu]\nconv2d:N=1,C=64,...\n";
}
