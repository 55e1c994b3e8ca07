/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena: memory that lives and dies together.
 *
 * A zeroed `struct arena` is valid and empty. Pointers stay valid until arena_release(). Memory is
 * zeroed and aligned to 16 bytes. Allocation failure aborts the process with a message: what is put
 * in an arena is bounded by the caller, and a tuner without memory has nothing left to save that
 * its session has not committed. Not thread-safe.
 */
#ifndef ENGINE_BASE_ARENA_H
#define ENGINE_BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *head;
};

void *arena_alloc(struct arena *a, size_t size);
void *arena_dup(struct arena *a, const void *data, size_t size);
char *arena_strdup(struct arena *a, const char *text);
char *arena_strndup(struct arena *a, const char *text, size_t len);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void arena_release(struct arena *a);

/* Moves all that is in `from`, which is empty then, to `a`; pointers stay valid. */
void arena_adopt(struct arena *a, struct arena *from);

#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_ARRAY(a, type, n) ((type *)arena_alloc((a), sizeof(type) * (size_t)(n)))

/* malloc family that aborts with a message instead of returning NULL; the caller frees. */
void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *text);

/* Makes room for one more element in the array `v` of capacity `cap` and length `nr`. */
#define GROW(v, nr, cap)                                                                           \
    do {                                                                                           \
        if ((nr) >= (cap)) {                                                                       \
            (cap) = (cap) ? (cap) * 2 : 8;                                                         \
            (v) = xrealloc((v), (size_t)(cap) * sizeof *(v));                                      \
        }                                                                                          \
    } while (0)

#endif
