/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing, always terminated string. A zeroed struct is valid and empty; `buf` is then NULL, and
 * strbuf_text() gives "". strbuf_release() frees the contents.
 */
#ifndef ENGINE_BASE_STRBUF_H
#define ENGINE_BASE_STRBUF_H

#include <stdarg.h>
#include <stddef.h>

struct strbuf {
    char *buf;
    size_t len, cap;
};

void strbuf_add(struct strbuf *sb, const void *data, size_t len);
void strbuf_adds(struct strbuf *sb, const char *text);
void strbuf_addc(struct strbuf *sb, char c);
void strbuf_addf(struct strbuf *sb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vaddf(struct strbuf *sb, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
void strbuf_reset(struct strbuf *sb);
void strbuf_release(struct strbuf *sb);
const char *strbuf_text(const struct strbuf *sb);

/* Gives the text (malloc) to the caller and empties the buffer; never NULL. */
char *strbuf_detach(struct strbuf *sb);

#endif
