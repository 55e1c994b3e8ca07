/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of a candidate: canonical code, JSON, and the words for people.
 *
 *     code  = sketch ":" [ knob { "/" knob } ]
 *     knob  = integer { "." integer }
 *
 * A split and a permutation write their slots, a flag 0 or 1, an ordinal and a choice the value
 * itself: a code read against a space that has lost the value is refused, and never becomes another
 * candidate in silence. Integers are decimal without leading zeros or "+", so a candidate has
 * exactly one code.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/search/space.h"
#include "engine/search/space_domain.h"

static void add_slots(const struct knob *k, const struct candidate *c, char sep, struct strbuf *out)
{
    for (int i = 0; i < k->nr_slots; i++) {
        if (i)
            strbuf_addc(out, sep);
        strbuf_addf(out, "%" PRId32, c->v[k->slot + i]);
    }
}

static bool is_listed(const struct knob *k)
{
    return k->kind == KNOB_SPLIT || k->kind == KNOB_PERMUTATION;
}

/* A string's label without its quotes. */
static void add_label(const char *label, struct strbuf *out)
{
    size_t n = strlen(label);
    if (n >= 2 && *label == '"')
        strbuf_add(out, label + 1, n - 2);
    else
        strbuf_add(out, label, n);
}

void knob_format(const struct knob *k, const struct candidate *c, struct strbuf *out)
{
    if (is_listed(k))
        add_slots(k, c, ',', out);
    else if (k->kind == KNOB_FLAG)
        strbuf_adds(out, c->v[k->slot] ? "on" : "off");
    else if (k->label)
        add_label(k->label[c->v[k->slot]], out);
    else
        strbuf_addf(out, "%" PRId64, knob_value(k, c));
}

static void add_json_string(const char *text, struct strbuf *out)
{
    strbuf_addc(out, '"');
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            strbuf_addf(out, "\\%c", *p);
        else if (*p < 0x20)
            strbuf_addf(out, "\\u%04x", *p);
        else
            strbuf_addc(out, (char)*p);
    }
    strbuf_addc(out, '"');
}

void candidate_json(const struct space *s, const struct candidate *c, struct strbuf *out)
{
    const struct sketch *k = s->sketch[c->sketch];
    strbuf_addc(out, '{');
    for (int i = 0; i < k->nr_knobs; i++) {
        const struct knob *knob = &k->knob[i];
        if (i)
            strbuf_addc(out, ',');
        add_json_string(knob->name, out);
        strbuf_addc(out, ':');
        if (is_listed(knob)) {
            strbuf_addc(out, '[');
            add_slots(knob, c, ',', out);
            strbuf_addc(out, ']');
        } else if (knob->kind == KNOB_FLAG) {
            strbuf_adds(out, c->v[knob->slot] ? "true" : "false");
        } else if (knob->label) {
            strbuf_adds(out, knob->label[c->v[knob->slot]]);
        } else {
            strbuf_addf(out, "%" PRId64, knob_value(knob, c));
        }
    }
    strbuf_addc(out, '}');
}

void candidate_code(const struct space *s, const struct candidate *c, struct strbuf *out)
{
    const struct sketch *k = s->sketch[c->sketch];
    strbuf_addf(out, "%" PRId32 ":", c->sketch);
    for (int i = 0; i < k->nr_knobs; i++) {
        if (i)
            strbuf_addc(out, '/');
        if (is_listed(&k->knob[i]))
            add_slots(&k->knob[i], c, '.', out);
        else
            strbuf_addf(out, "%" PRId64, knob_value(&k->knob[i], c));
    }
}

/* A canonical integer; moves *p behind it. */
static bool read_int(const char **p, int64_t *out)
{
    const char *t = *p;
    bool minus = *t == '-';
    t += minus;
    if (*t < '0' || *t > '9' || (*t == '0' && t[1] >= '0' && t[1] <= '9') || (minus && *t == '0'))
        return false;
    int64_t v = 0;
    for (; *t >= '0' && *t <= '9'; t++) {
        /* Summed up on the negative side, which has room for INT64_MIN. */
        int digit = *t - '0';
        if (v < (INT64_MIN + digit) / 10)
            return false;
        v = v * 10 - digit;
    }
    if (!minus && v == INT64_MIN)
        return false;
    *out = minus ? v : -v;
    *p = t;
    return true;
}

static bool read_slots(const char **p, const struct knob *k, int32_t *v)
{
    for (int i = 0; i < k->nr_slots; i++) {
        int64_t n;
        if ((i && *(*p)++ != '.') || !read_int(p, &n) || n < 0 || n > INT32_MAX)
            return false;
        v[i] = (int32_t)n;
    }
    return domain_contains(k, v);
}

static bool read_value(const char **p, const struct knob *k, int32_t *v)
{
    int64_t n;
    if (!read_int(p, &n))
        return false;
    for (int i = 0; i < k->nr_values; i++) {
        if (k->values[i] == n) {
            v[0] = i;
            return true;
        }
    }
    return false;
}

/* What may be shown of a text from outside: its beginning, without control characters. */
static const char *shown(const char *text, char buf[64])
{
    size_t n = strnlen(text, 60);
    for (size_t i = 0; i < n; i++)
        buf[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
    strcpy(buf + n, text[n] ? "..." : "");
    return buf;
}

int candidate_parse(const struct space *s, const char *code, struct candidate *c, struct err *e)
{
    char buf[64];
    const char *p = code;
    int64_t sketch;
    memset(c, 0, sizeof *c);
    if (!read_int(&p, &sketch) || *p++ != ':')
        return err_set(e, ERR_INPUT,
                       "candidate \"%s\" does not begin with the number of its sketch",
                       shown(code, buf));
    if (sketch < 0 || sketch >= s->nr_sketches)
        return err_set(e, ERR_INPUT,
                       "candidate \"%s\" is of a sketch that this space does not have",
                       shown(code, buf));
    const struct sketch *k = s->sketch[sketch];
    struct candidate got = {.sketch = (int32_t)sketch, .nr = k->nr_slots};
    for (int i = 0; i < k->nr_knobs; i++) {
        const struct knob *knob = &k->knob[i];
        if (i && *p++ != '/')
            return err_set(e, ERR_INPUT, "candidate \"%s\" ends before knob \"%s\"",
                           shown(code, buf), knob->name);
        bool listed = is_listed(knob) || knob->kind == KNOB_FLAG;
        int32_t *v = got.v + knob->slot;
        if (!(listed ? read_slots(&p, knob, v) : read_value(&p, knob, v)))
            return err_set(e, ERR_INPUT, "candidate \"%s\" has no legal value for knob \"%s\"",
                           shown(code, buf), knob->name);
    }
    if (*p)
        return err_set(e, ERR_INPUT, "candidate \"%s\" goes on after its last knob",
                       shown(code, buf));
    *c = got;
    return 0;
}
