/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/recorded/recorded.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "backends/recorded/private.h"

/* 17 MB are usual, and a hundred times that is no tuning record any more but a bomb. */
enum { CHUNK = 1 << 18 };
#define MAX_TEXT ((size_t)1 << 31)

int read_whole(const char *path, char **text, size_t *len, struct err *e)
{
    struct strbuf sb = {0};
    gzFile f = gzopen(path, "rb"); /* plain files pass through */
    if (!f)
        return err_set(e, ERR_IO, "cannot read \"%s\": %s", path, strerror(errno));
    gzbuffer(f, CHUNK);
    char *buf = xmalloc(CHUNK);
    int n, rc = 0;
    while ((n = gzread(f, buf, CHUNK)) > 0 && sb.len < MAX_TEXT)
        strbuf_add(&sb, buf, (size_t)n);
    if (sb.len >= MAX_TEXT)
        rc = err_set(e, ERR_LIMIT, "\"%s\" unpacks to more than 2 GB", path);
    else if (n < 0 && !sb.len) /* what was unpacked before the damage is torn text like any other */
        rc = err_set(e, ERR_IO, "cannot read \"%s\": it is neither text nor gzip", path);
    free(buf);
    gzclose(f);
    if (rc) {
        strbuf_release(&sb);
        return rc;
    }
    *len = sb.len;
    *text = strbuf_detach(&sb);
    return 0;
}

int reading_failed(struct reading *g, const char *what)
{
    const struct jread *j = &g->j;
    return err_set(g->e, ERR_INPUT, "\"%s\" is no %s that can be read: line %d %s", g->path, what,
                   jread_at_line(j), j->wrong ? j->wrong : "is not what is expected there");
}

struct format {
    const char *key; /* the first of the top level's keys that is known says which it is */
    int (*read)(struct reading *g);
};

static const struct format formats[] = {
    {"device_name", read_kernel_tuner}, {"tune_params_keys", read_kernel_tuner},
    {"tune_params", read_kernel_tuner}, {"cache", read_kernel_tuner},
    {"results", read_t4},               {"metadata", read_t4},
    {"Results", read_ktt},              {"Metadata", read_ktt},
};

static const struct format autotvm = {NULL, read_autotvm}, ansor = {NULL, read_ansor},
                           metaschedule = {NULL, read_metaschedule};

/* A line of a TVM log: in AutoTVM's the input begins with a target's text, in Ansor's with a list. */
static const struct format *log_of(struct jread *j)
{
    bool opened = jread_open(j, '[') && jread_element(j);
    return !opened ? NULL : jread_peek(j) == '[' ? &ansor : &autotvm;
}

static const struct format *object_format(struct jread *j)
{
    while (jread_key(j)) {
        const char *key = strbuf_text(&j->text);
        if (!strcmp(key, "input") || !strcmp(key, "i"))
            return log_of(j);
        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
            if (strcmp(key, formats[i].key) == 0)
                return &formats[i];
        }
        if (!jread_skip(j))
            return NULL;
    }
    return NULL;
}

/* A MetaSchedule line is [workload, [...]]; its file of workloads is told from it by the reader, for
 * a better sentence. */
static const struct format *list_format(struct jread *j)
{
    char c = jread_element(j) ? jread_peek(j) : 0;
    bool first = (c >= '0' && c <= '9') || c == '"';
    if (!first || !jread_skip(j) || !jread_element(j))
        return NULL;
    return jread_peek(j) == '[' || jread_peek(j) == '"' ? &metaschedule : NULL;
}

/* NULL: none of them. The text may be the beginning of a file only. */
static const struct format *format_of(const char *text, size_t len)
{
    struct jread j;
    const struct format *found = NULL;
    while (len && *text == '#') { /* AutoTVM logs have comments */
        const char *line = memchr(text, '\n', len);
        size_t skip = line ? (size_t)(line + 1 - text) : len;
        text += skip;
        len -= skip;
    }
    jread_init(&j, text, len);
    if (jread_peek(&j) == '{' && jread_open(&j, '{'))
        found = object_format(&j);
    else if (jread_peek(&j) == '[' && jread_open(&j, '['))
        found = list_format(&j);
    jread_release(&j);
    return found;
}

bool recorded_is_file(const char *path)
{
    char buf[4096];
    gzFile f = gzopen(path, "rb");
    if (!f)
        return false;
    int n = gzread(f, buf, sizeof buf);
    gzclose(f);
    return n > 0 && format_of(buf, (size_t)n);
}

int recorded_parse(const char *path, const char *text, size_t len,
                   const struct recorded_options *o, struct recorded_list *out, struct err *e)
{
    struct reading g = {.path = path, .o = o, .out = out, .e = e};
    const struct format *f = format_of(text, len);
    if (!f)
        return err_set(e, ERR_INPUT, "\"%s\" is no recorded space: neither a Kernel Tuner cachefile "
                       "nor T4, KTT or TVM records", path);
    jread_init(&g.j, text, len);
    int before = out->nr, rc = f->read(&g);
    jread_release(&g.j);
    for (int i = before; rc && i < out->nr; i++)
        recorded_free(out->v[i]);
    if (rc)
        out->nr = before;
    return rc;
}

int recorded_load_all(const char *path, const struct recorded_options *o,
                      struct recorded_list *out, struct err *e)
{
    char *text;
    size_t len;
    int rc = read_whole(path, &text, &len, e);
    if (rc)
        return rc;
    rc = recorded_parse(path, text, len, o, out, e);
    free(text);
    return rc;
}

int recorded_load(const char *path, const struct recorded_options *o, struct recorded **out,
                  struct err *e)
{
    struct recorded_list l = {0};
    int rc = recorded_load_all(path, o, &l, e), chosen = -1;
    *out = NULL;
    for (int i = 0; i < l.nr; i++) {
        if (o && o->workload ? strcmp(l.v[i]->name, o->workload) == 0
                             : chosen < 0 || l.v[i]->nr_rows > l.v[chosen]->nr_rows)
            chosen = i;
    }
    if (!rc && chosen < 0)
        rc = err_set(e, ERR_INPUT, "\"%s\" has no workload \"%s\"", path,
                     o && o->workload ? o->workload : "");
    if (!rc) {
        *out = l.v[chosen];
        l.v[chosen] = NULL;
    }
    recorded_list_release(&l);
    return rc;
}

void recorded_free(struct recorded *r)
{
    if (!r)
        return;
    free(r->row);
    free(r->index);
    free(r->bucket);
    free(r->word);
    arena_release(&r->arena);
    free(r);
}

void recorded_list_release(struct recorded_list *l)
{
    for (int i = 0; i < l->nr; i++)
        recorded_free(l->v[i]);
    free(l->v);
    *l = (struct recorded_list){0};
}

const char *recorded_status_name(enum recorded_status s)
{
    static const char *const names[RECORDED_NR_STATUS] = {
        "correct", "compile", "runtime", "constraints", "correctness", "timeout", "unknown",
    };
    return names[s];
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double *recorded_sorted(const struct recorded *r)
{
    double *v = xmalloc((size_t)r->nr_ok * sizeof *v);
    int nr = 0;
    for (int i = 0; i < r->nr_rows; i++) {
        if (r->row[i].status == RECORDED_OK)
            v[nr++] = r->row[i].value;
    }
    qsort(v, (size_t)nr, sizeof *v, ascending);
    return v;
}

const struct recorded_metric *recorded_metric(const struct recorded *r, int row, const char *name)
{
    for (int i = 0; i < r->row[row].nr_metrics; i++) {
        const struct recorded_metric *m = &r->row[row].metric[i];
        if (strcmp(r->word[m->name], name) == 0)
            return m;
    }
    return NULL;
}

void recorded_value_str(const struct recorded_value *v, struct strbuf *out)
{
    switch (v->type) {
    case RECORDED_NULL:
        strbuf_adds(out, "None");
        break;
    case RECORDED_BOOL:
        strbuf_adds(out, v->i ? "True" : "False");
        break;
    case RECORDED_INT:
        strbuf_addf(out, "%" PRId64, v->i);
        break;
    case RECORDED_REAL:
        if (isfinite(v->num))
            jwrite_real(v->num, out);
        else
            strbuf_adds(out, isnan(v->num) ? "nan" : v->num < 0 ? "-inf" : "inf");
        break;
    case RECORDED_TEXT:
        strbuf_adds(out, v->text);
        break;
    }
}

void recorded_value_json(const struct recorded_value *v, struct strbuf *out)
{
    switch (v->type) {
    case RECORDED_NULL:
        strbuf_adds(out, "null");
        break;
    case RECORDED_BOOL:
        strbuf_adds(out, v->i ? "true" : "false");
        break;
    case RECORDED_INT:
        strbuf_addf(out, "%" PRId64, v->i);
        break;
    case RECORDED_REAL:
        jwrite_real(v->num, out);
        break;
    case RECORDED_TEXT:
        jwrite_quote(v->text, out);
        break;
    }
}

void recorded_notes(const struct recorded *r, struct strbuf *out)
{
    if (!r->closed)
        strbuf_adds(out, "the file ends without its end: an interrupted run, maybe not all of the "
                         "space\n");
    if (r->nr_damaged)
        strbuf_addf(out, "%d row%s could not be read\n", r->nr_damaged,
                    r->nr_damaged == 1 ? "" : "s");
    if (r->nr_duplicates)
        strbuf_addf(out, "%d row%s came again for a configuration\n", r->nr_duplicates,
                    r->nr_duplicates == 1 ? "" : "s");
    if (r->zero_pairs)
        strbuf_adds(out, "samples stand in pairs [0, t]: the recorded mean is half of the time\n");
    if (r->direction_guessed)
        strbuf_addf(out, "taken as to be %s: \"%s\"\n", r->maximise ? "maximised" : "minimised",
                    r->objective);
    if (!r->has_cost)
        strbuf_adds(out, "no row says what measuring it cost: no budgets of time\n");
}
