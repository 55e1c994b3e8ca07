/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/region.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t huge_page = (size_t)2 << 20;

/* All bits set is a NaN of every float type: what is computed from it shows. */
enum { SLACK_BYTE = 0xff };

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static size_t slack_bytes(const struct region *r)
{
    return round_up(r->bytes, REGION_ALIGN) + REGION_SLACK - r->bytes;
}

/* [ unused | data ... | slack | guard page ], with the data as close to the guard as its alignment
 * allows; the start is on a huge page's border where one fits. */
bool region_init(struct region *r, size_t bytes)
{
    *r = (struct region){0};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (bytes > SIZE_MAX / 4)
        return false;
    size_t used = round_up(bytes, REGION_ALIGN) + REGION_SLACK;
    size_t body = round_up(used, page);
    size_t align = body >= huge_page ? huge_page : page;
    size_t total = body + page + (align - page);
    char *map = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return false;
    char *start = (char *)round_up((uintptr_t)map, align);
    if (mprotect(start + body, page, PROT_NONE) < 0) {
        munmap(map, total);
        return false;
    }
    if (align == huge_page)
        madvise(start, body, MADV_HUGEPAGE);
    r->map = map;
    r->map_bytes = total;
    r->bytes = bytes;
    r->occupied = body;
    r->data = start + body - used;
    region_mend(r);
    return true;
}

void region_release(struct region *r)
{
    if (r->map)
        munmap(r->map, r->map_bytes);
    *r = (struct region){0};
}

void region_protect(struct region *r)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *start = (char *)((uintptr_t)r->data / page * page);
    char *end = (char *)round_up((uintptr_t)r->data + r->bytes + REGION_SLACK, page);
    mprotect(start, (size_t)(end - start), PROT_READ);
}

void region_mend(struct region *r)
{
    memset(r->data + r->bytes, SLACK_BYTE, slack_bytes(r));
}

bool region_intact(const struct region *r)
{
    size_t slack = slack_bytes(r);
    const unsigned char *at = (const unsigned char *)r->data + r->bytes;
    for (size_t i = 0; i < slack; i++)
        if (at[i] != SLACK_BYTE)
            return false;
    return true;
}
