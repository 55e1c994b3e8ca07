/* SPDX-License-Identifier: Apache-2.0 */
/* The list of backends. Filled by main before the first thread starts, only read from then on. */
#include "backends/backend.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/strbuf.h"

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

const struct backend *backend_of_target(const char *target, const char **spec, struct err *e)
{
    char name[32];
    size_t len = strcspn(target, ":");
    snprintf(name, sizeof name, "%.*s", (int)len, target);
    *spec = target[len] ? target + len + 1 : "";
    const struct backend *b = backend_find(name);
    if (b)
        return b;
    struct strbuf known = {0};
    for (int i = 0; backend_at(i); i++)
        strbuf_addf(&known, "%s%s", i ? ", " : "", backend_at(i)->name);
    err_set(e, ERR_USAGE, "no backend for target \"%s\"; there are: %s", target,
            strbuf_text(&known));
    strbuf_release(&known);
    return NULL;
}
