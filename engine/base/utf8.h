/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 in text that is not trusted: names, reasons, compiler messages. */
#ifndef ENGINE_BASE_UTF8_H
#define ENGINE_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/strbuf.h"

/*
 * Decodes the character at `text` of `len` > 0 bytes into *cp and returns its bytes. Overlong forms,
 * surrogates and values past U+10FFFF are not characters: 0 is returned then, for one bad byte.
 */
int utf8_decode(const char *text, size_t len, uint32_t *cp);

/* Appends the text with every bad byte replaced by U+FFFD. */
void utf8_clean(const char *text, size_t len, struct strbuf *out);

/* Copies into `to` of `size` > 0 bytes, always terminated, cut between characters. */
void utf8_copy(char *to, size_t size, const char *from);

#endif
