/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Region: memory a kernel is let loose on.
 *
 * The buffer is aligned to 64 bytes; behind it lie at least 64 bytes that may be read, up to an
 * inaccessible page. A write just past the end shows in region_intact(), one further off is a
 * crash, as is any write to a region that was made read-only. Large ones ask for huge pages.
 */
#ifndef BACKENDS_REGION_H
#define BACKENDS_REGION_H

#include <stdbool.h>
#include <stddef.h>

enum { REGION_ALIGN = 64, REGION_SLACK = 64 };

struct region {
    char *data;
    size_t bytes;    /* asked for */
    size_t occupied; /* memory used */
    void *map;
    size_t map_bytes;
};

/* Zeroed, writable. False where memory does not suffice. */
bool region_init(struct region *r, size_t bytes);
void region_release(struct region *r);

/* Makes it read-only until it is released. */
void region_protect(struct region *r);

/* Are the bytes behind the buffer as they were made? region_mend() makes them so again. */
bool region_intact(const struct region *r);
void region_mend(struct region *r);

#endif
