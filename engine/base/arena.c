/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 16 KiB: a lowered kernel fits in one or two blocks. */
enum { BLOCK_BYTES = 16 * 1024, ALIGNMENT = 16 };

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(16) unsigned char data[];
};

static void *checked(void *p)
{
    if (!p) {
        fputs("squall: out of memory\n", stderr);
        abort();
    }
    return p;
}

void *xmalloc(size_t size)
{
    return checked(malloc(size ? size : 1));
}

void *xcalloc(size_t n, size_t size)
{
    return checked(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t size)
{
    return checked(realloc(p, size ? size : 1));
}

char *xstrdup(const char *text)
{
    return checked(strdup(text));
}

void *arena_alloc(struct arena *a, size_t size)
{
    size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    struct arena_block *b = a->head;
    if (!b || b->size - b->used < size) {
        size_t bytes = size > BLOCK_BYTES / 4 ? size : BLOCK_BYTES;
        b = xmalloc(sizeof *b + bytes);
        b->used = 0;
        b->size = bytes;
        b->next = a->head;
        a->head = b;
    }
    void *p = b->data + b->used;
    b->used += size;
    memset(p, 0, size);
    return p;
}

void *arena_dup(struct arena *a, const void *data, size_t size)
{
    void *p = arena_alloc(a, size);
    if (size)
        memcpy(p, data, size);
    return p;
}

char *arena_strndup(struct arena *a, const char *text, size_t len)
{
    char *p = arena_alloc(a, len + 1);
    memcpy(p, text, len);
    return p;
}

char *arena_strdup(struct arena *a, const char *text)
{
    return arena_strndup(a, text, strlen(text));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = arena_alloc(a, (size_t)len + 1);
    vsnprintf(p, (size_t)len + 1, fmt, again);
    va_end(again);
    return p;
}

void arena_release(struct arena *a)
{
    for (struct arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    a->head = NULL;
}

void arena_adopt(struct arena *a, struct arena *from)
{
    struct arena_block **end = &from->head;
    while (*end)
        end = &(*end)->next;
    /* Behind the block in use, which goes on being filled. */
    if (a->head) {
        *end = a->head->next;
        a->head->next = from->head;
    } else {
        a->head = from->head;
    }
    from->head = NULL;
}
