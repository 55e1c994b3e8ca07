/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast way to read an event: a session is opened by reading millions of them, all written by
 * event_to_json(). Whatever is unusual, and whatever is wrong, is left to event_parse().
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tune/event_fields.h"

enum {
    EXACT_DIGITS = 15, /* of a number below 2^53 */
    EXACT_POWER = 22,  /* of ten, in a double */
    NUMBER_MAX = 48,
};

struct scan {
    const char *p, *end;
};

static bool literal(struct scan *s, const char *text, size_t len)
{
    if ((size_t)(s->end - s->p) < len || memcmp(s->p, text, len) != 0)
        return false;
    s->p += len;
    return true;
}

#define LITERAL(s, text) literal((s), (text), sizeof(text) - 1)

static bool at(const struct scan *s, char c)
{
    return s->p < s->end && *s->p == c;
}

/* The character that an escape stands for; 0 for those that are left to the parser. */
static char unescaped(char c)
{
    switch (c) {
    case '"':
    case '\\':
    case '/':
        return c;
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    }
    return 0;
}

static bool text(struct scan *s, char *to, size_t size)
{
    size_t nr = 0;
    if (!LITERAL(s, "\""))
        return false;
    for (; s->p < s->end && *s->p != '"'; s->p++) {
        char c = *s->p;
        if (c == '\\') {
            if (++s->p == s->end)
                return false;
            c = unescaped(*s->p);
            if (!c)
                return false;
        } else if ((unsigned char)c < 0x20 || (unsigned char)c >= 0x80) {
            return false;
        }
        if (nr + 1 >= size)
            return false;
        to[nr++] = c;
    }
    to[nr] = '\0';
    return LITERAL(s, "\"");
}

/* Digits without a leading zero; their number, 0 where there are none, or 2^63 is passed. */
static int digits(struct scan *s, int64_t *out)
{
    const char *start = s->p;
    int64_t v = 0;
    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s->p - '0', &v))
            return 0;
    *out = v;
    int nr = (int)(s->p - start);
    return nr > 1 && *start == '0' ? 0 : nr;
}

static bool integer(struct scan *s, int64_t *out)
{
    bool minus = LITERAL(s, "-");
    int64_t v;
    if (!digits(s, &v) || at(s, '.') || at(s, 'e') || at(s, 'E'))
        return false;
    *out = minus ? -v : v;
    return true;
}

/* The slow but exact way; the text of the number is copied because strtod() wants an end. */
static bool convert(const char *start, size_t len, double *out)
{
    char copy[NUMBER_MAX], *end;
    if (len >= sizeof copy)
        return false;
    memcpy(copy, start, len);
    copy[len] = '\0';
    *out = strtod(copy, &end);
    return *end == '\0' && isfinite(*out);
}

/* Skips digits; adds them to *v as long as they are exact, and counts the significant ones. */
static int skip_digits(struct scan *s, int64_t *v, int *significant)
{
    const char *start = s->p;
    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++) {
        *significant += *significant || *s->p != '0';
        if (*significant <= EXACT_DIGITS)
            *v = *v * 10 + (*s->p - '0');
    }
    return (int)(s->p - start);
}

/* A product or quotient of two exact doubles is rounded once, so it is exact (Clinger 1990). */
static bool real(struct scan *s, double *out)
{
    static const double power[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (LITERAL(s, "null")) {
        *out = NAN;
        return true;
    }
    const char *start = s->p;
    bool minus = LITERAL(s, "-");
    const char *whole = s->p;
    int64_t v = 0;
    int significant = 0, fraction = 0;
    int nr = skip_digits(s, &v, &significant);
    if (!nr || (nr > 1 && *whole == '0'))
        return false;
    bool is_integer = true;
    if (LITERAL(s, ".")) {
        is_integer = false;
        fraction = skip_digits(s, &v, &significant);
        if (!fraction)
            return false;
    }
    if (at(s, 'e') || at(s, 'E')) {
        is_integer = false;
        s->p++;
        if (!LITERAL(s, "-"))
            LITERAL(s, "+");
        int64_t ignored = 0;
        int none = 0;
        significant = EXACT_DIGITS + 1;
        if (!skip_digits(s, &ignored, &none))
            return false;
    }
    /* Integers beyond 2^63 are an error to the parser. */
    if (is_integer && significant > EXACT_DIGITS)
        return false;
    if (significant > EXACT_DIGITS || fraction > EXACT_POWER)
        return convert(start, (size_t)(s->p - start), out);
    *out = (double)v / power[fraction];
    if (minus && (v || !is_integer))
        *out = -*out;
    return true;
}

static bool reals(struct scan *s, double *x, size_t cap, int32_t *nr)
{
    size_t n = 0;
    if (!LITERAL(s, "["))
        return false;
    while (!at(s, ']'))
        if ((n && !LITERAL(s, ",")) || n >= cap || !real(s, &x[n++]))
            return false;
    *nr = (int32_t)n;
    return LITERAL(s, "]");
}

static bool name(struct scan *s, const struct event_names *names, int32_t *out)
{
    char word[32];
    if (!text(s, word, sizeof word))
        return false;
    for (int i = 0; i < names->nr; i++)
        if (!strcmp(word, names->name(i))) {
            *out = i;
            return true;
        }
    return false;
}

static bool value(struct scan *s, const struct event_field *f, char *event)
{
    void *to = event + f->offset;
    int64_t v = 0;
    switch (f->type) {
    case T_TEXT:
        return text(s, to, f->size);
    case T_I32:
        if (!integer(s, &v) || v < INT32_MIN || v > INT32_MAX)
            return false;
        *(int32_t *)to = (int32_t)v;
        return true;
    case T_I64:
        return integer(s, to);
    case T_U64:
        if (!integer(s, &v) || v < 0)
            return false;
        *(uint64_t *)to = (uint64_t)v;
        return true;
    case T_REAL:
        return real(s, to);
    case T_BOOL:
        *(bool *)to = at(s, 't');
        return at(s, 't') ? LITERAL(s, "true") : LITERAL(s, "false");
    case T_NAME:
        return name(s, f->names, to);
    case T_REALS:
        return reals(s, to, f->size, (int32_t *)(void *)(event + f->count_offset));
    }
    return false;
}

/* What an older version did not write: it came to be at the end of the list. */
static bool absent(const struct event_field *f, int nr, struct event *ev)
{
    for (int i = 0; i < nr; i++) {
        if (f[i].must)
            return false;
        if (f[i].type == T_REAL)
            *(double *)(void *)((char *)ev + f[i].offset) = NAN;
    }
    return true;
}

static bool fields(struct scan *s, const struct event_field *f, int nr, struct event *ev)
{
    for (int i = 0; i < nr; i++) {
        if (at(s, '}'))
            return absent(f + i, nr - i, ev);
        if (!LITERAL(s, ",\"") || !literal(s, f[i].name, f[i].name_len) || !LITERAL(s, "\":") ||
            !value(s, &f[i], (char *)ev))
            return false;
    }
    return true;
}

bool event_scan(const char *json, size_t len, struct event *ev)
{
    struct scan s = {json, json + len};
    char word[16];
    int kind = 0;
    if (!LITERAL(&s, "{\"event\":") || !text(&s, word, sizeof word))
        return false;
    while (kind < EV_NR_KINDS && strcmp(word, event_kind_name((enum event_kind)kind)) != 0)
        kind++;
    if (kind == EV_NR_KINDS)
        return false;
    memset(ev, 0, sizeof *ev);
    ev->kind = (enum event_kind)kind;
    const struct event_field *first;
    int nr = event_fields(ev->kind, &first);
    return fields(&s, event_common, EVENT_NR_COMMON, ev) && fields(&s, first, nr, ev) &&
           LITERAL(&s, "}") && s.p == s.end && event_plausible(ev);
}
