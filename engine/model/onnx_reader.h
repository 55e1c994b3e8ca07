/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the ONNX reader share. */
#ifndef ENGINE_MODEL_ONNX_READER_H
#define ENGINE_MODEL_ONNX_READER_H

#include "onnx.pb-c.h"

#include "engine/model/plan.h"

/* Numbers of values by name; open addressing. */
struct name_map {
    struct name_entry {
        const char *name; /* of the unpacked file */
        int value;
    } * entry;
    size_t nr, cap;
};

/* The state of one file. Errors are sticky: the first is kept in `rc`, its sentence in `e`. */
struct onnx_reader {
    struct graph *g;
    struct name_map names;
    struct arena arena;           /* cleaned names */
    const struct onnx_case *bind; /* or NULL */
    int nr_bound;
    struct err *e;
    int rc;
};

int onnx_fail(struct onnx_reader *r, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A name of the file for messages and screens: without control characters, not endless. */
const char *onnx_clean(struct onnx_reader *r, const char *name);

/* The value of a tensor of the file, whose data is checked and copied; -1 after a failure. */
int onnx_tensor(struct onnx_reader *r, const Onnx__TensorProto *t, const char *name);

/* All of a file; NULL and a sentence on failure; the caller frees. */
void *onnx_slurp(const char *path, size_t *size, struct err *e);

#endif
