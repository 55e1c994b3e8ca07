/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON read in one pass, without a tree: the caller asks for what it expects, and skips the rest.
 * (Names apart from those of jansson, which is linked too.)
 *
 * Wider than the standard where files in the wild are: NaN, Infinity and -Infinity are numbers, and
 * text may end anywhere (`torn` says that it did). Bytes past the end are never read; nesting is
 * bounded. After the first error all calls return false and change nothing.
 *
 *     if (jread_open(j, '{'))
 *         while (jread_key(j, &name))
 *             ... exactly one value ...
 */
#ifndef BACKENDS_RECORDED_JSON_H
#define BACKENDS_RECORDED_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/strbuf.h"

enum { JSON_MAX_DEPTH = 64 };

struct jread {
    const char *at, *end;
    const char *start;
    int depth;
    bool first[JSON_MAX_DEPTH]; /* no element of the container was read yet */
    char close[JSON_MAX_DEPTH];
    const char *wrong;   /* NULL while all is well */
    bool torn;           /* what is wrong is that the text ends */
    struct strbuf text;  /* of the last string */
};

void jread_init(struct jread *j, const char *text, size_t len);
void jread_release(struct jread *j);

/* First character of the value that comes: { [ " t f n N I - or a digit; 0 at the end. */
char jread_peek(struct jread *j);

/* Enters the object or list that comes; false where something else does, which is an error. */
bool jread_open(struct jread *j, char bracket);
/* Reads the next key of the object entered last; false at its end, which is passed. The key is in
 * j->text until the next string is read. */
bool jread_key(struct jread *j);
/* False at the end of the list entered last, which is passed. */
bool jread_element(struct jread *j);

bool jread_skip(struct jread *j);
/* Into j->text. */
bool jread_string(struct jread *j);

struct jread_number {
    double num;
    int64_t i;
    bool is_int; /* no point, no exponent, and it fits */
};
bool jread_number(struct jread *j, struct jread_number *out);
/* true, false, null: 't', 'f' or 'n' */
bool jread_word(struct jread *j, char *out);

/* The text of the value that comes, passed by. */
bool jread_raw(struct jread *j, const char **text, size_t *len);

bool jread_fail(struct jread *j, const char *wrong);
/* Forgets the error and goes on at `at` inside of `depth` containers. */
void jread_resume(struct jread *j, const char *at, int depth);
int jread_at_line(const struct jread *j);

/* Appends `text` as a JSON string, quoted. */
void jwrite_quote(const char *text, struct strbuf *out);
/* Shortest text that reads back as `x`; "NaN" and "Infinity" as Python writes them. A whole number
 * gets ".0", so that it stays a float. */
void jwrite_real(double x, struct strbuf *out);

#endif
