/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/recorded/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/recorded/expr.h"
#include "backends/recorded/private.h"

void recorded_rules_add(struct recorded_rules *l, const char *text)
{
    GROW(l->v, l->nr, l->cap);
    l->v[l->nr++] = xstrdup(text);
}

void recorded_rules_release(struct recorded_rules *l)
{
    for (int i = 0; i < l->nr; i++)
        free(l->v[i]);
    free(l->v);
    *l = (struct recorded_rules){0};
}

static void read_lines(struct recorded_rules *l, char *text)
{
    char *save = NULL;
    for (char *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save)) {
        line[strcspn(line, "#")] = '\0';
        if (line[strspn(line, " \t")])
            recorded_rules_add(l, line + strspn(line, " \t"));
    }
}

/* {"Parameters": [...], "Expression": "..."}: the names are in the expression. */
static bool read_condition(struct jread *j, struct recorded_rules *l)
{
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        bool text = strcmp(strbuf_text(&j->text), "Expression") == 0 && jread_peek(j) == '"';
        if (text ? !jread_string(j) : !jread_skip(j))
            return false;
        if (text)
            recorded_rules_add(l, strbuf_text(&j->text));
    }
    return !j->wrong;
}

static bool read_conditions(struct jread *j, struct recorded_rules *l)
{
    if (jread_peek(j) != '[')
        return jread_skip(j);
    if (!jread_open(j, '['))
        return false;
    while (jread_element(j)) {
        if (!read_condition(j, l))
            return false;
    }
    return !j->wrong;
}

static bool read_t1(struct jread *j, struct recorded_rules *l)
{
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        if (strcmp(strbuf_text(&j->text), "ConfigurationSpace") != 0) {
            if (!jread_skip(j))
                return false;
            continue;
        }
        if (!jread_open(j, '{'))
            return false;
        while (jread_key(j)) {
            bool conditions = strcmp(strbuf_text(&j->text), "Conditions") == 0;
            if (conditions ? !read_conditions(j, l) : !jread_skip(j))
                return false;
        }
    }
    return !j->wrong;
}

int recorded_rules_read(struct recorded_rules *l, const char *path, struct err *e)
{
    char *text;
    size_t len;
    int rc = read_whole(path, &text, &len, e);
    if (rc)
        return rc;
    struct jread j;
    jread_init(&j, text, len);
    if (jread_peek(&j) != '{')
        read_lines(l, text);
    else if (!read_t1(&j, l))
        rc = err_set(e, ERR_INPUT, "\"%s\" is no T1 file that can be read: line %d %s", path,
                     jread_at_line(&j), j.wrong);
    jread_release(&j);
    free(text);
    return rc;
}

struct used_knob {
    int knob; /* of the file */
    int open; /* knob of the sketch, -1: fixed */
    int slot;
    double lo, hi; /* of its domain; lo > hi: not only numbers */
};

struct rule {
    const struct recorded *r;
    struct expr *x;
    int nr;
    struct used_knob used[SKETCH_MAX_KNOBS];
};

static const struct recorded_value *decided(const struct rule *q, const struct used_knob *u,
                                            const struct candidate *c)
{
    return &q->r->knob[u->knob].value[u->open < 0 ? 0 : c->v[u->slot]];
}

static bool rule_ok(const void *ctx, const struct candidate *c)
{
    const struct rule *q = ctx;
    const struct recorded_value *value[RECORDED_MAX_KNOBS];
    struct recorded_value out = {0};
    for (int i = 0; i < q->nr; i++)
        value[q->used[i].knob] = decided(q, &q->used[i], c);
    enum expr_status s = expr_eval(q->x, value, &out);
    return s == EXPR_ZERO_DIVISION || (s == EXPR_FINE && expr_truth(&out));
}

static bool rule_possible(const void *ctx, const struct candidate *c, uint64_t set)
{
    const struct rule *q = ctx;
    struct expr_range range[RECORDED_MAX_KNOBS];
    for (int i = 0; i < q->nr; i++) {
        const struct used_knob *u = &q->used[i];
        bool known = u->open < 0 || set & UINT64_C(1) << u->open;
        range[u->knob] =
            (struct expr_range){u->lo, u->hi, known ? decided(q, u, c) : NULL};
    }
    return expr_possible(q->x, range);
}

struct resolving {
    const struct recorded *r;
    const struct sketch *k;
    struct rule *rule;
    uint64_t mask;
    bool too_many;
};

static int resolve(void *ctx, const char *name, size_t len)
{
    const struct resolving *g = ctx;
    for (int i = 0; i < g->r->nr_knobs; i++) {
        const char *known = g->r->knob[i].name;
        if (strlen(known) == len && !memcmp(known, name, len))
            return i;
    }
    return -1;
}

static void use_knob(void *ctx, int knob)
{
    struct resolving *g = ctx;
    struct rule *q = g->rule;
    const struct recorded_knob *k = &g->r->knob[knob];
    int open = -1, before = 0;
    for (int i = 0; i < q->nr; i++) {
        if (q->used[i].knob == knob)
            return;
    }
    if (q->nr == SKETCH_MAX_KNOBS) {
        g->too_many = true;
        return;
    }
    for (int i = 0; i < knob; i++)
        before += g->r->knob[i].nr_values > 1;
    if (k->nr_values > 1) {
        open = before;
        g->mask |= UINT64_C(1) << open;
    }
    struct used_knob u = {knob, open, open < 0 ? 0 : g->k->knob[open].slot, INFINITY, -INFINITY};
    for (int i = 0; i < k->nr_values; i++) {
        bool number = k->value[i].type != RECORDED_TEXT && k->value[i].type != RECORDED_NULL;
        u.lo = number ? fmin(u.lo, k->value[i].num) : -INFINITY;
        u.hi = number ? fmax(u.hi, k->value[i].num) : INFINITY;
        if (!number) {
            u.lo = 1;
            u.hi = 0;
            break;
        }
    }
    q->used[q->nr++] = u;
}

/* A rule whose types never fit is a mistake in the rule: it is found at the first values. */
static int check_types(const struct rule *q, const char *text, struct err *e)
{
    const struct recorded_value *value[RECORDED_MAX_KNOBS];
    struct recorded_value out;
    for (int i = 0; i < q->nr; i++)
        value[q->used[i].knob] = &q->r->knob[q->used[i].knob].value[0];
    if (expr_eval(q->x, value, &out) != EXPR_TYPE)
        return 0;
    return err_set(e, ERR_INPUT, "the constraint \"%.200s\" mixes texts and numbers in a way that has "
                   "no meaning", text);
}

static int add_rule(const struct recorded *r, const char *text, struct space *s, struct sketch *k,
                    struct err *e)
{
    struct rule *q = ARENA_NEW(&s->arena, struct rule);
    struct resolving g = {.r = r, .k = k, .rule = q};
    q->r = r;
    int rc = expr_parse(text, resolve, &g, &s->arena, &q->x, e);
    if (rc)
        return rc;
    expr_variables(q->x, use_knob, &g);
    if (g.too_many)
        return err_set(e, ERR_LIMIT, "the constraint \"%.200s\" reads more than %d knobs", text,
                       SKETCH_MAX_KNOBS);
    rc = check_types(q, text, e);
    if (rc)
        return rc;
    if (!g.mask) { /* of fixed knobs only: it holds everywhere or nowhere */
        struct candidate none = {0};
        if (rule_ok(q, &none))
            return 0;
        return err_set(e, ERR_INPUT, "the constraint \"%.200s\" holds nowhere", text);
    }
    sketch_constraint(s, k, text, g.mask, rule_ok, q);
    sketch_possible(k, rule_possible);
    return 0;
}

int recorded_ruled_space(const struct recorded *r, const struct recorded_rules *rules,
                         struct space *out, struct err *e)
{
    enum { NODES = 1 << 24 }; /* a second or two */
    struct sketch *k;
    int rc = recorded_sketch(r, out, &k, e);
    for (int i = 0; i < rules->nr && !rc; i++)
        rc = add_rule(r, rules->v[i], out, k, e);
    if (rc)
        return rc;
    int row = recorded_first_ok(r, out);
    if (row < 0)
        return err_set(e, ERR_INPUT, "no configuration of \"%s\" that works keeps the constraints",
                       r->path);
    recorded_candidate(r, row, &k->start);
    space_weigh(out, k->start.sketch, NODES);
    return 0;
}

int recorded_outside(const struct recorded *r, const struct space *s)
{
    int nr = 0;
    for (int i = 0; i < r->nr_rows; i++) {
        struct candidate c;
        recorded_candidate(r, i, &c);
        nr += !candidate_valid(s, &c, NULL);
    }
    return nr;
}
