/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored trees on whatever bytes: refused, or read; what was read answers for any row, and is
 * written as it was. The checksum is put right first, or nothing would get past it.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/search/trees.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHECK_AT = 16, HEAD = 24 }; /* engine/search/trees.c */

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void use(const struct trees *t, const uint8_t *data, size_t size)
{
    static const float values[] = {0, -1, 1e30f, INFINITY, -INFINITY, NAN};
    float row[6][FEATURES], out[3];
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < FEATURES; k++)
            row[i][k] = values[(i + k) % 6];
    trees_predict(t, (const float(*)[FEATURES])row, (int[]){0, 1, 1, 6}, 3, out);
    require(out[1] == 0);
    struct strbuf again = {0};
    trees_write(t, &again);
    require(again.len == size && memcmp(again.buf, data, size) == 0);
    strbuf_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes)
        return 0;
    if (size)
        memcpy(bytes, data, size);
    if (size >= HEAD) {
        uint64_t check = hash64(HASH64_INIT, bytes + HEAD, size - HEAD);
        memcpy(bytes + CHECK_AT, &check, sizeof check);
    }
    struct trees *t = trees_read(bytes, size, &e);
    if (t)
        use(t, bytes, size);
    else
        require(e.code < 0);
    trees_free(t);
    free(bytes);
    return 0;
}
