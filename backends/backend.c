/* SPDX-License-Identifier: Apache-2.0 */
/* The list of backends. Filled by main before the first thread starts, only read from then on. */
#include "backends/backend.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

enum { MAX_BACKENDS = 16 };

static const struct backend *backends[MAX_BACKENDS];

void backend_register(const struct backend *b)
{
    assert(!backend_find(b->name));
    int i = 0;
    while (i < MAX_BACKENDS && backends[i])
        i++;
    assert(i < MAX_BACKENDS);
    backends[i] = b;
}

const struct backend *backend_at(int i)
{
    return i >= 0 && i < MAX_BACKENDS ? backends[i] : NULL;
}

const struct backend *backend_find(const char *name)
{
    for (int i = 0; i < MAX_BACKENDS && backends[i]; i++)
        if (!strcmp(backends[i]->name, name))
            return backends[i];
    return NULL;
}
