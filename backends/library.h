/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Library: a planned model, with a schedule for each of its tasks, as files for a linker.
 *
 *   lib<NAME>.so     shared library; needs libc, libm and, for kernels of several threads, libgomp
 *   <NAME>.o         the same as one object, to be linked into a program
 *   <NAME>.h         the interface: create, run, threads, free; names and shapes of the tensors
 *   <NAME>.c         the code behind it, which calls the kernels in order; inside both, for reading
 *   <NAME>.weights   the packed constants, where they are too large to be inside
 *
 * Kernels are built by the backend as objects; what calls them is generated as C and compiled by
 * the system's `cc`, which also links. Activations lie in one arena at offsets planned here, inputs
 * and outputs are the caller's arrays. Constants are packed into the order in which the chosen
 * schedules read them.
 *
 * All is made in a folder beside the result and moved there at the end: a failure leaves nothing.
 */
#ifndef BACKENDS_LIBRARY_H
#define BACKENDS_LIBRARY_H

#include "backends/backend.h"
#include "engine/model/plan.h"

/* Up to here weights are inside by default: they then share the fate of the code, and the linker
 * copies them twice, in tenths of a second. */
#define LIBRARY_WEIGHTS_INSIDE (INT64_C(128) << 20)

enum library_weights { WEIGHTS_BY_SIZE, WEIGHTS_INSIDE, WEIGHTS_FILE };

struct library_options {
    const char *folder; /* made where it does not exist */
    const char *name;   /* a C identifier */
    const char *about;  /* a line for the head of the files: what it was made of */
    const struct backend *backend;
    struct target *target;
    const struct plan *plan; /* all constants of its graph have numbers */
    const struct task_list *tasks;
    /* Of each task: the code of its candidate, or NULL for the untuned default; and where that is
     * from, for a comment. */
    const char *const *code;
    const char *const *origin;
    enum library_weights weights;
};

struct library_report {
    int nr_calls, nr_kernels;
    int nr_stale; /* codes that name no candidate of the task's space: the default was built */
    int64_t arena_bytes;
    int64_t apart_bytes; /* what the arena would be if no array shared memory with another */
    int64_t weights_bytes;
    bool weights_inside;
};

/* One thread; up to minutes, for weights of gigabytes. */
int library_write(const struct library_options *o, struct library_report *r, struct err *e);

/* A C identifier made of any text, of less than `size` characters; `size` is 32 or more. */
void library_name(const char *text, char *out, size_t size);

/* "FOLDER/libNAME.so" and so on, by one of the patterns. The caller frees. */
#define LIBRARY_SHARED "lib%s.so"
#define LIBRARY_OBJECT "%s.o"
#define LIBRARY_HEADER "%s.h"
#define LIBRARY_SOURCE "%s.c"
#define LIBRARY_WEIGHTS "%s.weights"
char *library_path(const char *folder, const char *kind, const char *name);

#endif
