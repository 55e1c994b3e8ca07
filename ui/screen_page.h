/* SPDX-License-Identifier: Apache-2.0 */
/* Page: a scrollable text of its own, for help and details. A zeroed struct is valid and empty. */
#ifndef UI_SCREEN_PAGE_H
#define UI_SCREEN_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/strbuf.h"
#include "ui/theme.h"

struct line {
    size_t at; /* in text, terminated */
    enum role role;
};

struct page {
    struct strbuf text;
    struct line *line;
    int nr, cap;
};

void page_reset(struct page *l);
void page_release(struct page *l);
void page_add(struct page *l, enum role role, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A text broken at spaces (or anywhere, where a word is too long) to `cols` columns; every line but
 * the first begins with `indent` blanks, the first with `head` padded to as many. */
void page_wrap(struct page *l, enum role role, const char *head, int indent, int cols,
                const char *text);

const char *page_text(const struct page *l, int i);

#endif
