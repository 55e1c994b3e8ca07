/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that tests read from a folder beside the source tree, or from the one that SQUALL_SHARED
 * names. Where it is missing the test is skipped and says so. Include after cmocka.h.
 */
#ifndef TESTS_SHARED_FILES_H
#define TESTS_SHARED_FILES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/strbuf.h"

/* The caller frees. */
static inline char *shared_path(const char *rest)
{
    const char *root = getenv("SQUALL_SHARED");
    struct strbuf sb = {0};
    strbuf_addf(&sb, "%s/%s", root ? root : SOURCE_ROOT "/../shared", rest);
    return strbuf_detach(&sb);
}

/* The bytes of a file of the folder; skips the test where it is not there. */
static inline uint8_t *slurp(const char *rest, size_t *size)
{
    char *path = shared_path(rest);
    FILE *f = fopen(path, "rb");
    if (!f) {
        print_message("%s is not there: skipped\n", path);
        free(path);
        skip();
    }
    free(path);
    struct strbuf sb = {0};
    char buf[4096];
    for (size_t n; (n = fread(buf, 1, sizeof buf, f)) > 0;)
        strbuf_add(&sb, buf, n);
    fclose(f);
    *size = sb.len;
    return (uint8_t *)strbuf_detach(&sb);
}

#endif
