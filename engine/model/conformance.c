/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/model/conformance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "onnx.pb-c.h"

#include "engine/base/strbuf.h"
#include "engine/model/onnx_reader.h"
#include "engine/model/onnx_wire.h"

enum { MAX_FILES = 64, MAX_SETS = 1000 };

/* The caller frees. `nr` < 0: the model. */
static char *file_of(const char *folder, int set, const char *what, int nr)
{
    struct strbuf sb = {0};
    if (nr < 0)
        strbuf_addf(&sb, "%s/model.onnx", folder);
    else
        strbuf_addf(&sb, "%s/test_data_set_%d/%s_%d.pb", folder, set, what, nr);
    return strbuf_detach(&sb);
}

static bool is_there(const char *folder, int set, const char *what, int nr)
{
    char *path = file_of(folder, set, what, nr);
    bool yes = access(path, R_OK) == 0;
    free(path);
    return yes;
}

bool conformance_is_case(const char *folder)
{
    return is_there(folder, 0, "model", -1);
}

void conformance_operator(const char *folder, char *out, size_t size)
{
    char *path = file_of(folder, 0, "model", -1);
    size_t bytes = 0;
    void *data = onnx_slurp(path, &bytes, NULL);
    Onnx__ModelProto *m = data && onnx_wire_is_sound(data, bytes)
                              ? onnx_unpack(&onnx__model_proto__descriptor, data, bytes)
                              : NULL;
    snprintf(out, size, "?");
    for (size_t i = 0; m && m->graph && i < m->graph->n_node; i++) {
        const char *op = m->graph->node[i]->op_type;
        if (!op || strcmp(op, "Constant") == 0)
            continue;
        snprintf(out, size, "%s", op);
        break;
    }
    for (char *p = out; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f)
            *p = '?';
    if (m)
        onnx__model_proto__free_unpacked(m, NULL);
    free(data);
    free(path);
}

/* ---- one set of data ---- */

struct set {
    const struct conformance *c;
    int number, nr_in;
    char *path[MAX_FILES]; /* of the inputs */
    int value[MAX_FILES];  /* the graph's input for each, or -1 */
    struct graph *g;
    struct plan plan;
    struct task_list tasks;
    float *in[MAX_FILES], *out[MAX_FILES], *want[MAX_FILES];
};

static int read_inputs(struct set *s, struct err *e)
{
    const struct graph *g = s->g;
    for (int i = 0; i < g->nr_inputs; i++) {
        for (int k = 0; k < s->nr_in && !s->in[i]; k++) {
            struct shape shape;
            int rc =
                s->value[k] == g->input[i] ? onnx_read_tensor(s->path[k], &shape, &s->in[i], e) : 0;
            if (!rc && s->in[i] && !shape_equal(&shape, &g->value[g->input[i]]->shape))
                rc = err_set(e, ERR_INPUT, "input %d has another shape than its file", k);
            if (rc)
                return rc;
        }
        if (!s->in[i])
            return err_set(e, ERR_INPUT, "input \"%s\" has no file", g->value[g->input[i]]->name);
    }
    return 0;
}

static int read_outputs(struct set *s, struct err *e)
{
    const struct graph *g = s->g;
    for (int i = 0; i < g->nr_outputs; i++) {
        const struct shape *have = &g->value[g->output[i]]->shape;
        struct shape shape;
        char *path = file_of(s->c->folder, s->number, "output", i);
        int rc = onnx_read_tensor(path, &shape, &s->want[i], e);
        free(path);
        if (rc)
            return rc;
        bool same = shape_size(&shape) == shape_size(have) && shape.rank == have->rank;
        for (int d = 0; same && d < shape.rank; d++)
            same = shape.dim[d] == have->dim[d];
        if (!same)
            return err_set(
                e, ERR_INPUT, "output %d has %lld elements in %d dimensions, not %lld in %d", i,
                (long long)shape_size(have), have->rank, (long long)shape_size(&shape), shape.rank);
        s->out[i] = xcalloc((size_t)shape_size(have) + 1, sizeof(float));
    }
    return 0;
}

static bool is_near(double got, double want)
{
    if (isnan(want) || isinf(want))
        return isnan(want) ? isnan(got) : isinf(got) && (got > 0) == (want > 0);
    return fabs(got - want) <= 1e-7 + 1e-3 * fabs(want);
}

static int compare(const struct set *s, struct err *e)
{
    for (int i = 0; i < s->g->nr_outputs; i++)
        for (int64_t k = 0; k < shape_size(&s->g->value[s->g->output[i]]->shape); k++)
            if (!is_near((double)s->out[i][k], (double)s->want[i][k]))
                return err_set(e, ERR_INPUT, "element %lld of output %d is %.9g, expected %.9g",
                               (long long)k, i, (double)s->out[i][k], (double)s->want[i][k]);
    return 0;
}

static enum conformance_status run_set(struct set *s, struct err *e)
{
    const struct conformance *c = s->c;
    char *model = file_of(c->folder, 0, "model", -1);
    const struct onnx_case bind = {
        .path = (const char *const *)s->path, .nr = s->nr_in, .value = s->value};
    const struct onnx_options how = {.shapes = c->shapes, .bind = &bind};
    struct model_options o = {.block = c->block};
    s->g = onnx_read_as(model, &how, e);
    free(model);
    int rc = s->g ? 0 : e->code;
    if (!rc && (s->g->nr_inputs > MAX_FILES || s->g->nr_outputs > MAX_FILES))
        rc = err_set(e, ERR_UNSUPPORTED, "has more than %d inputs or outputs", MAX_FILES);
    if (!rc)
        rc = plan_build(&s->plan, s->g, &o, &s->tasks, e);
    if (rc)
        return rc == ERR_UNSUPPORTED ? CASE_UNSUPPORTED : CASE_FAILED;
    rc = read_inputs(s, e);
    rc = rc ? rc : read_outputs(s, e);
    for (int i = 0; i < c->runs && !rc; i++) {
        if (c->run)
            c->run(c->runner.ctx, i);
        rc = plan_run(&s->plan, &s->tasks, (const float *const *)s->in, s->out, &c->runner, e);
        rc = rc ? rc : compare(s, e);
        if (rc && i)
            err_prefix(e, "random schedule %d", i);
    }
    return rc ? CASE_FAILED : CASE_PASSED;
}

static void release_set(struct set *s)
{
    for (int i = 0; i < MAX_FILES; i++) {
        free(s->path[i]);
        free(s->in[i]);
        free(s->out[i]);
        free(s->want[i]);
    }
    plan_release(&s->plan);
    task_list_release(&s->tasks);
    graph_free(s->g);
    free(s);
}

enum conformance_status conformance_run(const struct conformance *c, struct err *e)
{
    enum conformance_status status = CASE_PASSED;
    int nr = 0;
    for (; nr < MAX_SETS && status == CASE_PASSED; nr++) {
        if (!is_there(c->folder, nr, "output", 0))
            break;
        struct set *s = xcalloc(1, sizeof *s);
        s->c = c;
        s->number = nr;
        while (s->nr_in < MAX_FILES && is_there(c->folder, nr, "input", s->nr_in)) {
            s->value[s->nr_in] = -1;
            s->path[s->nr_in] = file_of(c->folder, nr, "input", s->nr_in);
            s->nr_in++;
        }
        status = run_set(s, e);
        release_set(s);
    }
    if (nr)
        return status;
    err_set(e, ERR_INPUT, "has no test_data_set_0/output_0.pb");
    return CASE_FAILED;
}
