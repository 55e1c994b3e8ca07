/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/screen_page.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "ui/screen_text.h"

void page_reset(struct page *l)
{
    strbuf_reset(&l->text);
    l->nr = 0;
}

void page_release(struct page *l)
{
    strbuf_release(&l->text);
    free(l->line);
    memset(l, 0, sizeof *l);
}

static void begin(struct page *l, enum role role)
{
    GROW(l->line, l->nr, l->cap);
    l->line[l->nr++] = (struct line){l->text.len, role};
}

void page_add(struct page *l, enum role role, const char *fmt, ...)
{
    va_list ap;
    begin(l, role);
    va_start(ap, fmt);
    strbuf_vaddf(&l->text, fmt, ap);
    va_end(ap);
    strbuf_addc(&l->text, '\0');
}

/* Bytes of `text` that go on a line of `room` columns. */
static size_t line_break(const char *text, int room)
{
    const char *p = text, *space = NULL;
    int cols = 0;
    while (*p && *p != '\n') {
        const char *at = p;
        if (*p == ' ')
            space = p;
        text_decode(&p);
        char one[8] = "";
        memcpy(one, at, (size_t)(p - at));
        cols += text_width(one, false);
        if (cols > room)
            return space && space > text ? (size_t)(space - text)
                   : at > text           ? (size_t)(at - text)
                                         : (size_t)(p - text);
    }
    return (size_t)(p - text);
}

void page_wrap(struct page *l, enum role role, const char *head, int indent, int cols,
                const char *text)
{
    int room = cols - indent > 8 ? cols - indent : 8;
    do {
        begin(l, role);
        strbuf_adds(&l->text, head);
        for (int i = text_width(head, false); i < indent; i++)
            strbuf_addc(&l->text, ' ');
        size_t n = line_break(text, room);
        strbuf_add(&l->text, text, n);
        strbuf_addc(&l->text, '\0');
        text += n;
        text += *text == ' ' || *text == '\n';
        head = "";
    } while (*text);
}

const char *page_text(const struct page *l, int i)
{
    return l->text.buf + l->line[i].at;
}
