/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/base/utf8.h"

#include <string.h>

int utf8_decode(const char *text, size_t len, uint32_t *cp)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)text;
    *cp = p[0];
    if (p[0] < 0x80)
        return 1;
    int nr = p[0] >= 0xf8 ? 0 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc0 ? 2 : 0;
    if (!nr || (size_t)nr > len)
        return 0;
    uint32_t c = p[0] & (0x7fu >> nr);
    for (int i = 1; i < nr; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[nr] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *cp = c;
    return nr;
}

void utf8_clean(const char *text, size_t len, struct strbuf *out)
{
    while (len) {
        uint32_t cp;
        int nr = utf8_decode(text, len, &cp);
        if (nr)
            strbuf_add(out, text, (size_t)nr);
        else
            strbuf_adds(out, "\xef\xbf\xbd");
        text += nr ? nr : 1;
        len -= nr ? (size_t)nr : 1;
    }
}

void utf8_copy(char *to, size_t size, const char *from)
{
    size_t len = strlen(from);
    if (len >= size) {
        len = size - 1;
        while (len && ((unsigned char)from[len] & 0xc0) == 0x80)
            len--;
    }
    memcpy(to, from, len);
    to[len] = '\0';
}
