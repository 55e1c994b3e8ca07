/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of TVM's records share. Private to backends/recorded. */
#ifndef BACKENDS_RECORDED_TVM_H
#define BACKENDS_RECORDED_TVM_H

#include "backends/recorded/private.h"

struct slice {
    const char *text;
    size_t len;
};

struct tvm_space {
    const char *key;
    struct builder b;
};

struct tvm {
    struct reading *g;
    const char *format;
    struct jread j; /* over a line, or a part of one */
    int nr, cap;
    struct tvm_space **v;
    bool torn, named; /* named: the reader gave the spaces their names */
    int nr_damaged, first_bad;
    const char *first_wrong;
};

/* Calls `read` for each line; false leaves the line out. */
int tvm_read_lines(struct reading *g, const char *format,
                   bool (*read)(struct tvm *t, struct slice line));

/* The space of a workload, by any text that names it. NULL: too many. */
struct builder *tvm_space(struct tvm *t, const char *key, size_t len);

/* t->j reads `s` from now on. */
void tvm_over(struct tvm *t, struct slice s);
/* The value that comes, to be read later. */
bool tvm_slice(struct tvm *t, struct slice *out);
/* The string that comes, or any other value's text; in the arena of the space. */
bool tvm_text(struct tvm *t, struct builder *b, const char **out);

/* Knobs of the row under way. */
bool tvm_knob(struct tvm *t, struct builder *b, const char *name, const struct recorded_value *v);
bool tvm_read_knob(struct tvm *t, struct builder *b, const char *name);
bool tvm_sketch(struct tvm *t, struct builder *b, uint64_t signature);

/* A list of seconds: value, samples, or that it failed. */
bool tvm_costs(struct tvm *t, struct builder *b);
/* [costs, error, all_cost, time] */
bool tvm_result(struct tvm *t, struct slice s, struct builder *b);

#endif
