/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for cells: UTF-8 that nobody promised is sane, to wide characters that fit a width.
 *
 * Names of tasks, knobs and kernels come from files. Control characters become ^X, what is not UTF-8
 * and what would turn the direction of the line becomes '?', and everything outside ASCII becomes
 * '?' for a terminal that is not UTF-8. Widths are wcwidth()'s, so setlocale() comes first.
 */
#ifndef UI_SCREEN_TEXT_H
#define UI_SCREEN_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <wchar.h>

/* The next code point of a terminated string; advances *p; U+FFFD for bytes that are no UTF-8. */
uint32_t text_decode(const char **p);

/* Columns the text takes. */
int text_width(const char *text, bool ascii);

/*
 * As much of the text as fits `cols` columns, in out[cap] (cap > cols; zero-width marks may need
 * more and are dropped then). A text that was cut ends in `ellipsis` (one column; NULL for none).
 * Skips the first `skip` columns. Returns the columns used; *len is the number of characters.
 */
int text_fit(const char *text, int skip, int cols, bool ascii, const char *ellipsis, wchar_t *out,
             int cap, int *len);

#endif
