/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the library writer: what its files share. Not for others. */
#ifndef BACKENDS_LIBRARY_PRIVATE_H
#define BACKENDS_LIBRARY_PRIVATE_H

#include "backends/library.h"
#include "engine/model/memory.h"

/* The file of weights begins with a line that names the library and the weights' hash. */
enum { WEIGHTS_HEAD = 64 };

/* Where a kernel's buffer is: floats from the start of ... */
enum place {
    PLACE_ARENA,
    PLACE_WEIGHTS,
    PLACE_INPUT, /* number `index` of the caller's arrays */
    PLACE_OUTPUT,
};

struct address {
    enum place place;
    int index; /* input, output; arena: the item */
    int64_t offset;
};

struct library_call {
    int task, nr;
    struct address buf[ARTIFACT_MAX_BUFFERS];
};

/* A constant in the file of weights. */
struct packed {
    int value, task, tensor;
    int64_t offset;
};

struct library {
    const struct library_options *o;
    struct library_report *r;
    struct err *e;
    char *work;              /* folder in which all is made */
    struct artifact *kernel; /* of each task; its code is in a file by then */
    bool *stale;             /* of each task */
    struct library_call *call;
    struct memory_item *item;
    int nr_items, cap_items;
    struct address *root;   /* of each buffer of the plan that has memory of its own */
    struct address *output; /* of each output: where it is after the last call */
    struct packed *packed;
    int nr_packed, cap_packed;
    char weights_id[17];
};

/* library_source.c: NAME.h and NAME.c. */
void library_header(const struct library *l, struct strbuf *out);
void library_source(const struct library *l, struct strbuf *out);

/* library_weights.c: packs the constants into the file of weights and says where they are. */
int library_pack(struct library *l);

/* library_link.c: kernels, sources and weights in the work folder become object and library. */
int library_link(struct library *l);
int library_write_file(const char *path, const void *data, size_t size, struct err *e);

/* File of the kernel of task `i` in the work folder, and its symbol. */
#define KERNEL_FILE "k%d.o"
#define KERNEL_SYMBOL "%s_k%d"

#endif
