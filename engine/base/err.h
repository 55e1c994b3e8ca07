/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: a negative code and one sentence.
 *
 * A function that can fail returns 0 or one of the codes below and takes a `struct err *` as its
 * last argument, in which it leaves a sentence in git's style: lower case, what failed, the subject
 * in quotes, what to do. The first sentence stays; a caller may put its own context in front with
 * err_prefix(). `e` may be NULL everywhere.
 */
#ifndef ENGINE_BASE_ERR_H
#define ENGINE_BASE_ERR_H

#include <stdarg.h>

/* code, value, text */
#define ERR_LIST(X)                                                                                \
    X(ERR_INPUT, -1, "bad input")                                                                  \
    X(ERR_USAGE, -2, "wrong usage")                                                                \
    X(ERR_NOMEM, -3, "out of memory")                                                              \
    X(ERR_IO, -4, "input/output error")                                                            \
    X(ERR_UNSUPPORTED, -5, "not supported")                                                        \
    X(ERR_SESSION, -6, "session error")                                                            \
    X(ERR_BACKEND, -7, "backend error")                                                            \
    X(ERR_LIMIT, -8, "limit reached")                                                              \
    X(ERR_SCRIPT, -9, "script error")                                                              \
    X(ERR_INTERRUPTED, -10, "interrupted")

enum err_code {
#define ERR_ENUM(name, value, text) name = value,
    ERR_LIST(ERR_ENUM)
#undef ERR_ENUM
};

struct err {
    int code;
    char msg[1024];
};

#define ERR_INIT                                                                                   \
    {                                                                                              \
        0, ""                                                                                      \
    }

/* Sets the sentence unless one is already there, and returns `code`: `return err_set(e, ...)`. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "<prefix>: " in front of the sentence; returns the code that is already set. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void err_clear(struct err *e);

/* The general text of a code; never NULL. */
const char *err_text(int code);

#endif
