/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backend: turns a candidate into something that runs, and runs it in the runner process.
 *
 * One table of functions is the whole contract. The first group works in squall's own process, on
 * builder threads; the second in the runner, a separate process that loads what was built. A built
 * kernel travels as an artifact: code and the list of the buffers that it is called with.
 * A new backend is one folder with one `const struct backend`, registered by main.
 */
#ifndef BACKENDS_BACKEND_H
#define BACKENDS_BACKEND_H

#include "backends/artifact.h"
#include "engine/base/err.h"
#include "engine/model/task.h"
#include "engine/search/space.h"
#include "engine/tune/device.h"

struct target;  /* a backend's device and its options; immutable, shared between threads */
struct builder; /* one a builder thread */
struct loader;  /* one in the runner process */

struct loaded {
    void (*call)(void *const *buf); /* buffers in the order of artifact->buf */
    void *handle;
};

struct backend {
    const char *name, *summary;

    /* `spec` is what follows "NAME:" in --target, or "": "cpu=znver4". */
    int (*target_open)(const char *spec, int threads, struct target **out, struct err *e);
    void (*target_close)(struct target *t);
    const struct device_info *(*target_info)(const struct target *t);

    /* The sketches of a task. */
    int (*space)(const struct target *t, const struct task *task, struct space *out,
                 struct err *e);

    struct builder *(*builder_new)(const struct target *t, struct err *e);
    void (*builder_free)(struct builder *b);
    /* Fills `out`; artifact_release() frees it. ERR_UNSUPPORTED or ERR_LIMIT: the candidate is
     * invalid; another code: a build error. */
    int (*build)(struct builder *b, const struct task *task, const struct space *s,
                 const struct candidate *c, struct artifact *out, struct err *e);

    /* The same for a library: the code is an object file for the system's linker, with `entry` as
     * its only symbol, and a parallel kernel runs with at most the target's threads, as many as
     * omp_set_num_threads() said. NULL where a backend's kernels cannot be linked. */
    int (*build_object)(struct builder *b, const struct task *task, const struct space *s,
                        const struct candidate *c, const char *entry, struct artifact *out,
                        struct err *e);

    struct loader *(*loader_new)(struct err *e);
    void (*loader_free)(struct loader *l);
    int (*load)(struct loader *l, const struct artifact *a, struct loaded *out, struct err *e);
    void (*unload)(struct loader *l, struct loaded *k);

    /* Some 30 us of work of a fixed length where the kernels run, to see how fast the machine is.
     * In the runner, between measurements. NULL: none. */
    void (*canary)(void);
};

/* The backends that main registered; NULL where there is none. */
void backend_register(const struct backend *b);
const struct backend *backend_find(const char *name);
const struct backend *backend_at(int i);

/* The backend of a target as --target names it, "llvm:cpu=znver4"; *spec gets what follows its
 * name. NULL and a sentence that lists the backends. */
const struct backend *backend_of_target(const char *target, const char **spec, struct err *e);

#endif
