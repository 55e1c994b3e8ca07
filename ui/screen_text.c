/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/screen_text.h"

#include <wctype.h>

enum { REPLACEMENT = 0xfffd };

uint32_t text_decode(const char **p)
{
    const unsigned char *s = (const unsigned char *)*p;
    uint32_t c = s[0];
    int more = c < 0x80 ? 0 : (c & 0xe0) == 0xc0 ? 1 : (c & 0xf0) == 0xe0 ? 2
               : (c & 0xf8) == 0xf0 ? 3 : -1;
    *p += 1;
    if (more < 0)
        return REPLACEMENT;
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    static const uint32_t mask[] = {0x7f, 0x1f, 0x0f, 0x07};
    c &= mask[more];
    for (int i = 1; i <= more; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return REPLACEMENT;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return REPLACEMENT;
    *p += more;
    return c;
}

/* Marks and overrides of writing direction would reorder what stands beside the text. */
static bool turns_direction(uint32_t c)
{
    return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

/* What is drawn for a code point: one or two characters, their columns in *cols. */
static int cell_of(uint32_t c, bool ascii, wchar_t out[2], int *cols)
{
    if (c < 0x20 || c == 0x7f) {
        out[0] = L'^';
        out[1] = (wchar_t)(c ^ 0x40);
        *cols = 2;
        return 2;
    }
    if (c >= 0x80 && (ascii || (c >= 0x80 && c < 0xa0) || turns_direction(c) || c == REPLACEMENT))
        c = '?';
    int w = c < 0x80 ? 1 : wcwidth((wchar_t)c);
    if (w < 0) {
        c = '?';
        w = 1;
    }
    out[0] = (wchar_t)c;
    *cols = w;
    return 1;
}

int text_width(const char *text, bool ascii)
{
    int width = 0, cols;
    wchar_t w[2];
    while (*text) {
        cell_of(text_decode(&text), ascii, w, &cols);
        width += cols;
    }
    return width;
}

int text_fit(const char *text, int skip, int cols, bool ascii, const char *ellipsis, wchar_t *out,
             int cap, int *len)
{
    int used = 0, nr = 0;
    int mark_nr = 0, mark_used = 0; /* where the ellipsis would go */
    bool cut = false;
    while (*text) {
        wchar_t w[2];
        int width;
        int n = cell_of(text_decode(&text), ascii, w, &width);
        if (skip > 0) {
            skip -= width;
            continue;
        }
        if (used + width > cols || nr + n >= cap) {
            cut = used + width > cols;
            break;
        }
        for (int i = 0; i < n; i++)
            out[nr++] = w[i];
        used += width;
        if (used <= cols - 1) {
            mark_nr = nr;
            mark_used = used;
        }
    }
    if (cut && ellipsis && cols > 0) {
        const char *e = ellipsis;
        nr = mark_nr;
        used = mark_used;
        out[nr++] = (wchar_t)text_decode(&e);
        used++;
    }
    out[nr] = L'\0';
    *len = nr;
    return used;
}
