/* SPDX-License-Identifier: Apache-2.0 */
/* The parser: a table of binding powers (Pratt), one function for what a word can begin with and one
 * for what can follow a value. Depth and size are bounded, so a hostile text costs nothing. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/recorded/expr_private.h"

enum { MAX_DEPTH = 60, MAX_NODES = 1024, MAX_LENGTH = 1 << 14 };

enum token_kind { T_END, T_VALUE, T_NAME, T_SYMBOL, T_BAD };

struct token {
    enum token_kind kind;
    const char *at;
    size_t len;
    struct recorded_value value;
};

struct parser {
    const char *text, *at;
    struct token now;
    expr_resolve *resolve;
    void *ctx;
    struct arena *arena;
    struct err *e;
    int depth, nodes;
};

static struct expr *failed(struct parser *p, const char *what)
{
    err_set(p->e, ERR_INPUT, "%s at character %d of the constraint \"%.200s\"", what,
            (int)(p->now.at - p->text) + 1, p->text);
    return NULL;
}

static void scan_string(struct parser *p, struct token *t)
{
    char quote = *p->at++;
    const char *from = p->at;
    while (*p->at && *p->at != quote && *p->at != '\\')
        p->at++;
    if (*p->at != quote) { /* no escapes: no knob's value needs one */
        t->kind = T_BAD;
        return;
    }
    t->kind = T_VALUE;
    t->value.type = RECORDED_TEXT;
    t->value.text = arena_strndup(p->arena, from, (size_t)(p->at - from));
    p->at++;
}

static void scan_number(struct parser *p, struct token *t)
{
    const char *q = p->at;
    bool real = false;
    if (*q == '0' && (q[1] == 'x' || q[1] == 'X')) {
        q += 2;
        while (isxdigit((unsigned char)*q))
            q++;
    } else {
        for (; isdigit((unsigned char)*q) || *q == '.'; q++)
            real = real || *q == '.';
        if (*q == 'e' || *q == 'E') {
            const char *x = q + 1 + (q[1] == '-' || q[1] == '+');
            real = true;
            for (q = x; isdigit((unsigned char)*q); q++)
                ;
        }
    }
    char buf[64], *end;
    size_t n = (size_t)(q - p->at);
    p->at = q;
    t->kind = T_BAD;
    if (n >= sizeof buf || isalnum((unsigned char)*q) || *q == '_')
        return;
    memcpy(buf, t->at, n);
    buf[n] = '\0';
    errno = 0;
    long long i = real ? 0 : strtoll(buf, &end, buf[1] == 'x' || buf[1] == 'X' ? 16 : 10);
    if (real || errno) {
        double x = strtod(buf, &end);
        t->value = value_real(x);
    } else {
        t->value = value_int(i);
    }
    if (!*end && end > buf)
        t->kind = T_VALUE;
}

static void scan_symbol(struct parser *p, struct token *t)
{
    static const char *const two[] = {"**", "//", "<=", ">=", "==", "!=", "<<", ">>"};
    t->kind = T_SYMBOL;
    for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
        if (p->at[0] == two[i][0] && p->at[1] == two[i][1]) {
            p->at += 2;
            return;
        }
    }
    if (!strchr("+-*/%()[],<>|^&~", *p->at))
        t->kind = T_BAD;
    p->at++;
}

static void scan(struct parser *p)
{
    struct token *t = &p->now;
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')
        p->at++;
    *t = (struct token){.at = p->at};
    unsigned char c = (unsigned char)*p->at;
    if (!c) {
        t->kind = T_END;
    } else if (isdigit(c) || (c == '.' && isdigit((unsigned char)p->at[1]))) {
        scan_number(p, t);
    } else if (c == '"' || c == '\'') {
        scan_string(p, t);
    } else if (isalpha(c) || c == '_' || c >= 0x80) {
        t->kind = T_NAME;
        while (isalnum((unsigned char)*p->at) || *p->at == '_' || (unsigned char)*p->at >= 0x80)
            p->at++;
    } else {
        scan_symbol(p, t);
    }
    t->len = (size_t)(p->at - t->at);
}

static bool is(const struct parser *p, const char *word)
{
    return (p->now.kind == T_SYMBOL || p->now.kind == T_NAME) && p->now.len == strlen(word) &&
           !memcmp(p->now.at, word, p->now.len);
}

static bool take(struct parser *p, const char *word)
{
    bool yes = is(p, word);
    if (yes)
        scan(p);
    return yes;
}

static struct expr *node(struct parser *p, enum expr_op op, int nr)
{
    if (++p->nodes > MAX_NODES)
        return failed(p, "too much");
    struct expr *x = ARENA_NEW(p->arena, struct expr);
    x->op = op;
    x->nr = nr;
    x->arg = ARENA_ARRAY(p->arena, struct expr *, nr + 1);
    return x;
}

enum { POWER_IF = 1, POWER_OR = 2, POWER_AND = 3, POWER_NOT = 4, POWER_COMPARE = 5, POWER_UNARY = 12,
       POWER_POW = 13 };

static struct expr *parse(struct parser *p, int power);

static struct expr *unary(struct parser *p, enum expr_op op, int power)
{
    struct expr *x = node(p, op, 1);
    if (!x || !(x->arg[0] = parse(p, power)))
        return NULL;
    return x;
}

/* Behind the opening bracket, up to and with the closing one. */
static struct expr *list(struct parser *p, enum expr_op op, struct expr *first, const char *close)
{
    struct expr *x = node(p, op, 0), **arg = NULL;
    int nr = 0, cap = 0;
    bool ok = x != NULL;
    if (ok && first) {
        GROW(arg, nr, cap);
        arg[nr++] = first;
        ok = is(p, close) || take(p, ",");
    }
    while (ok && !is(p, close)) {
        struct expr *y = parse(p, POWER_IF);
        ok = y != NULL;
        if (ok) {
            GROW(arg, nr, cap);
            arg[nr++] = y;
            ok = is(p, close) || take(p, ",");
        }
    }
    ok = ok && take(p, close);
    if (ok) {
        x->nr = nr;
        x->arg = arena_dup(p->arena, arg, (size_t)nr * sizeof *arg);
    }
    free(arg);
    return ok ? x : failed(p, "a bracket or comma is missing");
}

static struct expr *call(struct parser *p, const struct token *name)
{
    static const struct {
        const char *name;
        enum expr_op op;
        int min, max;
    } functions[] = {
        {"abs", OP_ABS, 1, 1}, {"min", OP_MIN, 2, 64},    {"max", OP_MAX, 2, 64},
        {"int", OP_INT, 1, 1}, {"float", OP_FLOAT, 1, 1}, {"round", OP_ROUND, 1, 1},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strlen(functions[i].name) != name->len || memcmp(functions[i].name, name->at, name->len))
            continue;
        struct expr *x = list(p, functions[i].op, NULL, ")");
        if (x && (x->nr < functions[i].min || x->nr > functions[i].max))
            return failed(p, "a wrong number of arguments ends");
        return x;
    }
    p->now = *name;
    return failed(p, "an unknown function");
}

static struct expr *constant(struct parser *p, const struct recorded_value *v)
{
    struct expr *x = node(p, OP_VALUE, 0);
    if (x)
        x->value = *v;
    return x;
}

static struct expr *name(struct parser *p)
{
    static const char *const reserved[] = {"and", "or", "not", "in", "if", "else", "is", "lambda"};
    struct token t = p->now;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        if (is(p, reserved[i]))
            return failed(p, "a value is missing");
    }
    bool yes = is(p, "True"), no = is(p, "False"), none = is(p, "None");
    scan(p);
    struct recorded_value v = value_bool(yes);
    if (none)
        v = (struct recorded_value){0};
    if (yes || no || none)
        return constant(p, &v);
    if (take(p, "("))
        return call(p, &t);
    int variable = p->resolve(p->ctx, t.at, t.len);
    if (variable < 0) {
        err_set(p->e, ERR_INPUT, "\"%.*s\" in the constraint \"%.200s\" is no knob",
                (int)(t.len < 60 ? t.len : 60), t.at, p->text);
        return NULL;
    }
    struct expr *x = node(p, OP_VARIABLE, 0);
    if (x)
        x->variable = variable;
    return x;
}

static struct expr *primary(struct parser *p, int power)
{
    if (p->now.kind == T_VALUE) {
        struct recorded_value v = p->now.value;
        scan(p);
        return constant(p, &v);
    }
    if (p->now.kind == T_NAME && !is(p, "not"))
        return name(p);
    if (is(p, "not") && power > POWER_NOT)
        return failed(p, "\"not\" wants brackets");
    if (take(p, "not"))
        return unary(p, OP_NOT, POWER_NOT);
    if (take(p, "-"))
        return unary(p, OP_MINUS, POWER_UNARY);
    if (take(p, "+"))
        return unary(p, OP_PLUS, POWER_UNARY);
    if (take(p, "~"))
        return unary(p, OP_INVERT, POWER_UNARY);
    if (take(p, "["))
        return list(p, OP_LIST, NULL, "]");
    if (take(p, "(")) {
        struct expr *x = parse(p, POWER_IF);
        if (!x)
            return NULL;
        if (is(p, ","))
            return list(p, OP_LIST, x, ")");
        return take(p, ")") ? x : failed(p, "a bracket is missing");
    }
    return failed(p, p->now.kind == T_END ? "a value is missing" : "something unexpected");
}

static const struct infix {
    const char *word;
    int power;
    enum expr_op op;
} infixes[] = {
    {"or", POWER_OR, OP_OR},      {"and", POWER_AND, OP_AND},   {"|", 6, OP_BIT_OR},
    {"^", 7, OP_BIT_XOR},         {"&", 8, OP_BIT_AND},         {"<<", 9, OP_SHIFT_LEFT},
    {">>", 9, OP_SHIFT_RIGHT},    {"+", 10, OP_ADD},            {"-", 10, OP_SUB},
    {"*", 11, OP_MUL},            {"/", 11, OP_DIV},            {"//", 11, OP_FLOOR_DIV},
    {"%", 11, OP_MOD},            {"**", POWER_POW, OP_POW},
};

/* The comparison that stands here, which is passed; false where there is none. */
static bool comparison(struct parser *p, enum expr_cmp *cmp)
{
    static const char *const words[] = {"<", "<=", ">", ">=", "==", "!=", "in"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (take(p, words[i])) {
            *cmp = (enum expr_cmp)i;
            return true;
        }
    }
    if (!is(p, "not"))
        return false;
    scan(p);
    *cmp = CMP_NOT_IN;
    return take(p, "in");
}

static struct expr *chain(struct parser *p, struct expr *left)
{
    enum { MAX_CHAIN = 16 };
    struct expr *arg[MAX_CHAIN + 1] = {left};
    enum expr_cmp cmp[MAX_CHAIN];
    int nr = 0;
    while (nr < MAX_CHAIN && comparison(p, &cmp[nr])) {
        struct expr *right = parse(p, POWER_COMPARE + 1);
        if (!right)
            return NULL;
        if ((cmp[nr] >= CMP_IN) != (right->op == OP_LIST) || left->op == OP_LIST)
            return failed(p, "a list belongs behind \"in\" and nowhere else: see what ends");
        arg[++nr] = right;
    }
    if (nr == 0)
        return failed(p, "\"in\" is missing");
    struct expr *x = nr < MAX_CHAIN ? node(p, OP_CHAIN, nr + 1) : failed(p, "too long a chain");
    if (!x)
        return NULL;
    memcpy(x->arg, arg, (size_t)(nr + 1) * sizeof *arg);
    x->cmp = arena_dup(p->arena, cmp, (size_t)nr * sizeof *cmp);
    return x;
}

static struct expr *conditional(struct parser *p, struct expr *value)
{
    struct expr *x = node(p, OP_IF, 3);
    if (!x || !(x->arg[1] = parse(p, POWER_OR)))
        return NULL;
    if (!take(p, "else"))
        return failed(p, "\"else\" is missing");
    x->arg[0] = value;
    return (x->arg[2] = parse(p, POWER_IF)) ? x : NULL;
}

static struct expr *binary(struct parser *p, const struct infix *f, struct expr *left)
{
    struct expr *x = node(p, f->op, 2);
    if (!x)
        return NULL;
    x->arg[0] = left;
    /* ** takes the right side with its minus, and binds to the right. */
    x->arg[1] = parse(p, f->op == OP_POW ? POWER_UNARY : f->power + 1);
    if (!x->arg[1])
        return NULL;
    return left->op == OP_LIST || x->arg[1]->op == OP_LIST ? failed(p, "a list is no number: see what ends")
                                                         : x;
}

static struct expr *follow(struct parser *p, struct expr *left, int power, bool *more)
{
    *more = true;
    for (size_t i = 0; i < sizeof infixes / sizeof *infixes; i++) {
        const struct infix *f = &infixes[i];
        if (f->power >= power && take(p, f->word))
            return binary(p, f, left);
    }
    bool compare = is(p, "<") || is(p, "<=") || is(p, ">") || is(p, ">=") || is(p, "==") ||
                   is(p, "!=") || is(p, "in") || is(p, "not");
    if (compare && power <= POWER_COMPARE)
        return chain(p, left);
    if (power <= POWER_IF && take(p, "if"))
        return conditional(p, left);
    *more = false;
    return left;
}

static struct expr *parse(struct parser *p, int power)
{
    if (++p->depth > MAX_DEPTH)
        return failed(p, "too deep nesting");
    struct expr *x = primary(p, power);
    for (bool more = true; x && more;)
        x = follow(p, x, power, &more);
    p->depth--;
    return x;
}

int expr_parse(const char *text, expr_resolve *resolve, void *ctx, struct arena *a,
               struct expr **out, struct err *e)
{
    struct parser p = {.text = text, .at = text, .resolve = resolve, .ctx = ctx, .arena = a, .e = e};
    if (strnlen(text, MAX_LENGTH) == MAX_LENGTH)
        return err_set(e, ERR_INPUT, "the constraint \"%.60s...\" is too long", text);
    scan(&p);
    struct expr *x = parse(&p, POWER_IF);
    if (x && p.now.kind != T_END)
        x = failed(&p, is(&p, "=") ? "a comparison is \"==\"; wrong" : "something unexpected");
    if (x && x->op == OP_LIST)
        x = failed(&p, "a list is no constraint: see what ends");
    if (!x)
        return ERR_INPUT;
    *out = x;
    return 0;
}

void expr_variables(const struct expr *x, void (*found)(void *ctx, int variable), void *ctx)
{
    if (x->op == OP_VARIABLE)
        found(ctx, x->variable);
    for (int i = 0; i < x->nr; i++)
        expr_variables(x->arg[i], found, ctx);
}
