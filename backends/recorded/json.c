/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/recorded/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void jread_init(struct jread *j, const char *text, size_t len)
{
    memset(j, 0, sizeof *j);
    j->at = j->start = text;
    j->end = text + len;
    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        j->at += 3;
}

void jread_release(struct jread *j)
{
    strbuf_release(&j->text);
}

bool jread_fail(struct jread *j, const char *wrong)
{
    if (!j->wrong)
        j->wrong = wrong;
    return false;
}

static bool ended(struct jread *j)
{
    if (!j->wrong)
        j->torn = true;
    return jread_fail(j, "ends in the middle");
}

void jread_resume(struct jread *j, const char *at, int depth)
{
    j->wrong = NULL;
    j->torn = false;
    j->at = at;
    j->depth = depth;
}

int jread_at_line(const struct jread *j)
{
    int line = 1;
    for (const char *p = j->start; p < j->at; p++)
        line += *p == '\n';
    return line;
}

char jread_peek(struct jread *j)
{
    if (j->wrong)
        return 0;
    while (j->at < j->end &&
           (*j->at == ' ' || *j->at == '\n' || *j->at == '\t' || *j->at == '\r'))
        j->at++;
    return j->at < j->end ? *j->at : 0;
}

bool jread_open(struct jread *j, char bracket)
{
    char c = jread_peek(j);
    if (c != bracket)
        return c || j->at < j->end ? jread_fail(j, bracket == '{' ? "wants an object here"
                                                                 : "wants a list here")
                                   : ended(j);
    if (j->depth == JSON_MAX_DEPTH)
        return jread_fail(j, "is nested too deeply");
    j->at++;
    j->first[j->depth] = true;
    j->close[j->depth++] = bracket == '{' ? '}' : ']';
    return true;
}

/* Passes the comma before the next element, or the bracket that closes. A comma before the bracket
 * is let pass: files that were cut and mended have it. */
static bool next(struct jread *j)
{
    char c = jread_peek(j);
    if (j->wrong || j->depth == 0)
        return false;
    int top = j->depth - 1;
    if (c == ',' && !j->first[top]) {
        j->at++;
        c = jread_peek(j);
    } else if (c && c != j->close[top] && !j->first[top]) {
        return jread_fail(j, "wants a comma here");
    }
    j->first[top] = false;
    if (j->at >= j->end)
        return ended(j);
    if (c == j->close[top]) {
        j->at++;
        j->depth--;
        return false;
    }
    return true;
}

bool jread_element(struct jread *j)
{
    return next(j);
}

bool jread_key(struct jread *j)
{
    if (!next(j) || !jread_string(j))
        return false;
    if (jread_peek(j) != ':')
        return j->at < j->end ? jread_fail(j, "wants a colon here") : ended(j);
    j->at++;
    return true;
}

static int hex4(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0)
            return -1;
        v = v * 16 + d;
    }
    return v;
}

static void add_utf8(struct strbuf *out, uint32_t c)
{
    if (c < 0x80) {
        strbuf_addc(out, (char)c);
    } else if (c < 0x800) {
        strbuf_addc(out, (char)(0xc0 | c >> 6));
        strbuf_addc(out, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        strbuf_addc(out, (char)(0xe0 | c >> 12));
        strbuf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
        strbuf_addc(out, (char)(0x80 | (c & 0x3f)));
    } else {
        strbuf_addc(out, (char)(0xf0 | c >> 18));
        strbuf_addc(out, (char)(0x80 | (c >> 12 & 0x3f)));
        strbuf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
        strbuf_addc(out, (char)(0x80 | (c & 0x3f)));
    }
}

/* Behind "\u"; half a surrogate pair becomes U+FFFD, and so does a zero, which would end the text. */
static bool escape_unicode(struct jread *j)
{
    if (j->end - j->at < 4)
        return ended(j);
    int c = hex4(j->at);
    if (c < 0)
        return jread_fail(j, "has a bad \\u escape");
    j->at += 4;
    if (c >= 0xd800 && c < 0xdc00 && j->end - j->at >= 6 && j->at[0] == '\\' && j->at[1] == 'u') {
        int low = hex4(j->at + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            j->at += 6;
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    if (c == 0 || (c >= 0xd800 && c < 0xe000))
        c = 0xfffd;
    add_utf8(&j->text, (uint32_t)c);
    return true;
}

static bool escape(struct jread *j)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (j->at >= j->end)
        return ended(j);
    char c = *j->at++;
    if (c == 'u')
        return escape_unicode(j);
    const char *p = c ? strchr(from, c) : NULL;
    if (!p)
        return jread_fail(j, "has a bad escape");
    strbuf_addc(&j->text, to[p - from]);
    return true;
}

bool jread_string(struct jread *j)
{
    if (jread_peek(j) != '"')
        return j->at < j->end ? jread_fail(j, "wants a string here") : ended(j);
    j->at++;
    strbuf_reset(&j->text);
    for (;;) {
        const char *run = j->at;
        while (j->at < j->end && *j->at != '"' && *j->at != '\\' && *j->at != '\n' && *j->at)
            j->at++;
        strbuf_add(&j->text, run, (size_t)(j->at - run));
        if (j->at >= j->end)
            return ended(j);
        char c = *j->at;
        if (c != '"' && c != '\\')
            return jread_fail(j, "has an unended string");
        j->at++;
        if (c == '"')
            return true;
        if (!escape(j))
            return false;
    }
}

static bool literal(struct jread *j, const char *word)
{
    size_t n = strlen(word), left = (size_t)(j->end - j->at);
    if (left < n && !memcmp(j->at, word, left))
        return ended(j);
    if (left < n || memcmp(j->at, word, n))
        return jread_fail(j, "has a word that JSON does not know");
    j->at += n;
    return true;
}

bool jread_word(struct jread *j, char *out)
{
    char c = jread_peek(j);
    *out = c;
    if (c == 't')
        return literal(j, "true");
    if (c == 'f')
        return literal(j, "false");
    if (c == 'n')
        return literal(j, "null");
    return j->at < j->end ? jread_fail(j, "wants true, false or null here") : ended(j);
}

static bool is_digit(const struct jread *j)
{
    return j->at < j->end && *j->at >= '0' && *j->at <= '9';
}

/* Powers of ten that a double holds exactly. */
static const double ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                             1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                             1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* An integer below 2^53 times or over such a power is one exact operation; the rest is for the C
 * library, which gets a copy, since the text need not be terminated. */
static double to_double(const char *p, size_t len, uint64_t digits, int nr, int exponent)
{
    if (nr <= 19 && digits < UINT64_C(1) << 53 && exponent >= -22 && exponent <= 22)
        return exponent < 0 ? (double)digits / ten[-exponent] : (double)digits * ten[exponent];
    char buf[64], *copy = len < sizeof buf ? buf : malloc(len + 1);
    if (!copy)
        return NAN;
    memcpy(copy, p, len);
    copy[len] = '\0';
    double x = strtod(copy, NULL);
    if (copy != buf)
        free(copy);
    return x;
}

/* Digits, a point, an exponent; `out` without the sign. */
static bool decimal(struct jread *j, struct jread_number *out)
{
    const char *from = j->at;
    uint64_t digits = 0;
    int nr = 0, exponent = 0;
    if (!is_digit(j))
        return j->at < j->end ? jread_fail(j, "has a character that JSON does not know") : ended(j);
    out->is_int = true;
    bool fraction = false;
    for (; j->at < j->end; j->at++) {
        char c = *j->at;
        if (c == '.' && !fraction) {
            fraction = true;
            out->is_int = false;
        } else if (c >= '0' && c <= '9') {
            if (nr < 19)
                digits = digits * 10 + (uint64_t)(c - '0');
            nr += nr > 0 || c != '0';
            exponent -= fraction;
        } else {
            break;
        }
    }
    if (j->at < j->end && (*j->at == 'e' || *j->at == 'E')) {
        out->is_int = false;
        j->at++;
        bool minus = j->at < j->end && *j->at == '-';
        j->at += minus || (j->at < j->end && *j->at == '+');
        if (!is_digit(j))
            return j->at < j->end ? jread_fail(j, "has a number without exponent") : ended(j);
        int x = 0;
        for (; is_digit(j); j->at++)
            x = x < 100000 ? x * 10 + (*j->at - '0') : x;
        exponent += minus ? -x : x;
    }
    out->is_int = out->is_int && nr <= 19 && digits <= INT64_MAX;
    out->i = out->is_int ? (int64_t)digits : 0;
    out->num = to_double(from, (size_t)(j->at - from), digits, nr, exponent);
    return true;
}

bool jread_number(struct jread *j, struct jread_number *out)
{
    char c = jread_peek(j);
    *out = (struct jread_number){.num = NAN};
    if (j->wrong)
        return false;
    if (c == 'N')
        return literal(j, "NaN");
    bool minus = c == '-';
    j->at += minus;
    if (j->at < j->end && *j->at == 'I') {
        out->num = minus ? -INFINITY : INFINITY;
        return literal(j, "Infinity");
    }
    if (!decimal(j, out))
        return false;
    if (minus) {
        out->num = -out->num;
        out->i = -out->i;
    }
    return true;
}

static bool skip_scalar(struct jread *j)
{
    struct jread_number n;
    char word;
    switch (jread_peek(j)) {
    case '"':
        return jread_string(j);
    case 't':
    case 'f':
    case 'n':
        return jread_word(j, &word);
    case 0:
        return j->at < j->end ? jread_fail(j, "has a character that JSON does not know") : ended(j);
    default:
        return jread_number(j, &n);
    }
}

bool jread_skip(struct jread *j)
{
    int base = j->depth;
    do {
        /* One level of an enclosing container at a time; the close of it is found by next(). */
        if (j->depth > base &&
            !(j->close[j->depth - 1] == '}' ? jread_key(j) : jread_element(j))) {
            if (j->wrong)
                return false;
            continue;
        }
        char c = jread_peek(j);
        if (c == '{' || c == '[' ? !jread_open(j, c) : !skip_scalar(j))
            return false;
    } while (j->depth > base);
    return !j->wrong;
}

bool jread_raw(struct jread *j, const char **text, size_t *len)
{
    jread_peek(j);
    const char *from = j->at;
    if (!jread_skip(j))
        return false;
    *text = from;
    *len = (size_t)(j->at - from);
    return true;
}

void jwrite_quote(const char *text, struct strbuf *out)
{
    strbuf_addc(out, '"');
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            strbuf_addf(out, "\\%c", *p);
        else if (*p == '\n')
            strbuf_adds(out, "\\n");
        else if (*p < 0x20)
            strbuf_addf(out, "\\u%04x", *p);
        else
            strbuf_addc(out, (char)*p);
    }
    strbuf_addc(out, '"');
}

/* Python: the shortest digits that read back, an exponent below 1e-4 and from 1e16 on. */
void jwrite_real(double x, struct strbuf *out)
{
    if (isnan(x) || isinf(x)) {
        strbuf_adds(out, isnan(x) ? "NaN" : x < 0 ? "-Infinity" : "Infinity");
        return;
    }
    char sci[40];
    /* What reads back from fewer than 15 digits comes out of 15, but for the subnormals. */
    for (int digits = fabs(x) < 2.3e-308 ? 1 : 15; digits <= 17; digits++) {
        snprintf(sci, sizeof sci, "%.*e", digits - 1, x);
        if (strtod(sci, NULL) == x)
            break;
    }
    char *e = strchr(sci, 'e');
    int exponent = (int)strtol(e + 1, NULL, 10);
    *e = '\0';
    char *point = strchr(sci, '.');
    for (char *p = e - 1; point && p > point && *p == '0'; p--)
        *p = '\0';
    if (point && !point[1])
        *point = '\0';
    if (x != 0 && (exponent < -4 || exponent >= 16)) {
        strbuf_addf(out, "%se%c%02d", sci, exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    int digits = (int)strlen(sci) - (x < 0 || sci[0] == '-') - (strchr(sci, '.') != NULL);
    int decimals = digits - 1 - exponent;
    strbuf_addf(out, "%.*f", decimals < 1 ? 1 : decimals, x);
}
