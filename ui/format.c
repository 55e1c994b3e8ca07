/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/tune/event.h"

static char *nothing(char *buf)
{
    return strcpy(buf, "-");
}

struct format_unit format_unit(double ns)
{
    static const struct {
        double ns;
        const char *text;
    } units[] = {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};
    struct format_unit u = {1e6, "ms", 3};
    if (!isfinite(ns) || ns <= 0)
        return u;
    size_t i = 0;
    /* 999.95 would print as "1000.0": it belongs to the next unit. */
    while (i + 1 < sizeof units / sizeof units[0] && ns / units[i].ns >= 999.95)
        i++;
    u.ns = units[i].ns;
    u.text = units[i].text;
    double v = ns / u.ns;
    u.decimals = v < 9.9995 ? 3 : v < 99.995 ? 2 : v < 999.95 ? 1 : 0;
    return u;
}

char *format_in(char buf[FORMAT_MAX], double ns, const struct format_unit *u)
{
    if (!isfinite(ns))
        return nothing(buf);
    snprintf(buf, FORMAT_MAX, "%.*f", u->decimals, ns / u->ns);
    return buf;
}

char *format_time(char buf[FORMAT_MAX], double ns)
{
    if (!isfinite(ns))
        return nothing(buf);
    struct format_unit u = format_unit(ns);
    snprintf(buf, FORMAT_MAX, "%.*f %s", u.decimals, ns / u.ns, u.text);
    return buf;
}

char *format_elapsed(char buf[FORMAT_MAX], int64_t ns)
{
    int64_t s = ns < 0 ? 0 : ns / 1000000000;
    if (s >= 86400)
        snprintf(buf, FORMAT_MAX, "%lldd %02d:%02d", (long long)(s / 86400),
                 (int)(s % 86400 / 3600), (int)(s % 3600 / 60));
    else if (s >= 3600)
        snprintf(buf, FORMAT_MAX, "%d:%02d:%02d", (int)(s / 3600), (int)(s % 3600 / 60),
                 (int)(s % 60));
    else
        snprintf(buf, FORMAT_MAX, "%d:%02d", (int)(s / 60), (int)(s % 60));
    return buf;
}

char *format_count(char buf[FORMAT_MAX], double n)
{
    if (!isfinite(n))
        return nothing(buf);
    static const char suffix[] = "kMGT";
    if (fabs(n) < 9999.5) {
        snprintf(buf, FORMAT_MAX, n == floor(n) || fabs(n) >= 999.95 ? "%.0f" : "%.1f", n);
        return buf;
    }
    for (int i = 0; suffix[i]; i++) {
        n /= 1000;
        if (fabs(n) < 999.5) {
            snprintf(buf, FORMAT_MAX, "%.*f%c", fabs(n) < 9.995 ? 2 : fabs(n) < 99.95 ? 1 : 0, n,
                     suffix[i]);
            return buf;
        }
    }
    snprintf(buf, FORMAT_MAX, "%.1e", n * 1e12);
    return buf;
}

char *format_space(char buf[FORMAT_MAX], double n)
{
    char count[FORMAT_MAX];
    snprintf(buf, FORMAT_MAX, "%.10s%s", format_count(count, n),
             n >= (double)EVENT_SPACE_CAP ? " or more" : "");
    return buf;
}

char *format_speedup(char buf[FORMAT_MAX], double from_ns, double to_ns)
{
    if (!isfinite(from_ns) || !isfinite(to_ns) || to_ns <= 0)
        return nothing(buf);
    double x = from_ns / to_ns;
    snprintf(buf, FORMAT_MAX, "%.*fx", x < 9.995 ? 2 : x < 99.95 ? 1 : 0, x);
    return buf;
}

char *format_change(char buf[FORMAT_MAX], double fraction)
{
    if (!isfinite(fraction))
        return nothing(buf);
    double p = 100 * fraction;
    if (p > 999.5)
        return strcpy(buf, ">999%");
    if (fabs(p) < 0.05)
        return strcpy(buf, "0.0%");
    snprintf(buf, FORMAT_MAX, "%+.*f%%", fabs(p) < 9.95 ? 1 : 0, p);
    return buf;
}

char *format_share(char buf[FORMAT_MAX], double fraction)
{
    if (!isfinite(fraction))
        return nothing(buf);
    double p = 100 * fraction;
    snprintf(buf, FORMAT_MAX, "%.*f%%", p >= 0.05 && p < 0.95 ? 1 : 0, p);
    return buf;
}

char *format_p(char buf[FORMAT_MAX], double p)
{
    if (!isfinite(p))
        return nothing(buf);
    if (p < 0.001)
        return strcpy(buf, "<.001");
    snprintf(buf, FORMAT_MAX, "%.*f", p < 0.0995 ? 3 : 2, p);
    /* ".31": a probability needs no digit before the point. */
    if (buf[0] == '0')
        memmove(buf, buf + 1, strlen(buf));
    return buf;
}

char *format_gflops(char buf[FORMAT_MAX], double gflops)
{
    if (!isfinite(gflops) || gflops <= 0)
        return nothing(buf);
    snprintf(buf, FORMAT_MAX, "%.*f", gflops < 9.995 ? 2 : gflops < 99.95 ? 1 : 0, gflops);
    return buf;
}

char *format_flop(char buf[FORMAT_MAX], double flop)
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    if (!isfinite(flop))
        return nothing(buf);
    size_t i = 0;
    for (; i + 1 < sizeof units / sizeof units[0] && flop >= 999.5; i++)
        flop /= 1000;
    snprintf(buf, FORMAT_MAX, "%.*f %sFLOP", !i || flop >= 99.95 ? 0 : flop >= 9.995 ? 1 : 2, flop,
             units[i]);
    return buf;
}

char *format_bytes(char buf[FORMAT_MAX], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    if (!isfinite(bytes))
        return nothing(buf);
    size_t i = 0;
    while (i + 1 < sizeof units / sizeof units[0] && bytes >= 1023.95) {
        bytes /= 1024;
        i++;
    }
    snprintf(buf, FORMAT_MAX, i && bytes < 99.95 ? "%.1f %s" : "%.0f %s", bytes, units[i]);
    return buf;
}

/*
 * One "name": value pair of a flat object whose values are numbers, strings or arrays of numbers.
 * Spans of the text, without quotes and brackets.
 */
struct pair {
    const char *name, *value;
    size_t name_len, value_len;
};

/* Reads a quoted string at p; returns what follows it, NULL when it does not end. */
static const char *quoted(const char *p, const char **text, size_t *len)
{
    const char *q = ++p;
    while (*q && *q != '"')
        q += q[0] == '\\' && q[1] ? 2 : 1;
    if (!*q)
        return NULL;
    *text = p;
    *len = (size_t)(q - p);
    return q + 1;
}

/* The next pair after p, which stands behind '{' or a pair; NULL at the end or where it is odd. */
static const char *next_pair(const char *p, struct pair *out)
{
    p += strspn(p, " ,");
    if (*p != '"' || !(p = quoted(p, &out->name, &out->name_len)))
        return NULL;
    p += strspn(p, " ");
    if (*p++ != ':')
        return NULL;
    p += strspn(p, " ");
    if (*p == '"')
        return quoted(p, &out->value, &out->value_len);
    bool list = *p == '[';
    if (list)
        p++;
    out->value = p;
    out->value_len = strcspn(p, list ? "]" : ",}");
    p += out->value_len;
    if (!*p)
        return NULL;
    return list ? p + 1 : p;
}

static void add_value(struct strbuf *out, const struct pair *kv)
{
    if (kv->value_len == 4 && !memcmp(kv->value, "true", 4))
        strbuf_adds(out, "on");
    else if (kv->value_len == 5 && !memcmp(kv->value, "false", 5))
        strbuf_adds(out, "off");
    else
        for (size_t i = 0; i < kv->value_len; i++)
            if (kv->value[i] != ' ')
                strbuf_addc(out, kv->value[i]);
}

/* The pair of that name, false where there is none. */
static bool find_pair(const char *json, const char *name, size_t len, struct pair *kv)
{
    if (json[0] != '{')
        return false;
    for (const char *p = json + 1; (p = next_pair(p, kv)) != NULL;)
        if (kv->name_len == len && !memcmp(kv->name, name, len))
            return true;
    return false;
}

void format_knobs(struct strbuf *out, const char *json, const char *base)
{
    if (json[0] != '{') {
        strbuf_adds(out, json);
        return;
    }
    struct pair kv, old;
    int nr = 0;
    for (const char *p = json + 1; (p = next_pair(p, &kv)) != NULL;) {
        if (base && find_pair(base, kv.name, kv.name_len, &old) &&
            old.value_len == kv.value_len && !memcmp(old.value, kv.value, kv.value_len))
            continue;
        if (nr++)
            strbuf_adds(out, "  ");
        strbuf_add(out, kv.name, kv.name_len);
        strbuf_addc(out, ' ');
        add_value(out, &kv);
    }
}

bool format_knob(const char *json, const char *name, char *buf, size_t size)
{
    struct pair kv;
    struct strbuf value = {0};
    bool found = find_pair(json, name, strlen(name), &kv);
    if (found)
        add_value(&value, &kv);
    snprintf(buf, size, "%s", strbuf_text(&value));
    strbuf_release(&value);
    return found;
}
