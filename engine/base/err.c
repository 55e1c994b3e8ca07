/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/base/err.h"

#include <stdio.h>
#include <string.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
    if (!e || e->code)
        return code;
    e->code = code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    return code;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
    if (!e || !e->code)
        return e ? e->code : 0;
    char text[2 * sizeof e->msg];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof e->msg - 2, fmt, ap);
    va_end(ap);
    strcat(text, ": ");
    strcat(text, e->msg);
    text[sizeof e->msg - 1] = '\0';
    memcpy(e->msg, text, sizeof e->msg);
    return e->code;
}

void err_clear(struct err *e)
{
    e->code = 0;
    e->msg[0] = '\0';
}

const char *err_text(int code)
{
    switch (code) {
#define ERR_CASE(name, value, text)                                                                \
    case name:                                                                                     \
        return text;
        ERR_LIST(ERR_CASE)
#undef ERR_CASE
    }
    return "unknown error";
}
