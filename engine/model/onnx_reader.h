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
    struct arena arena;  /* cleaned names */
    const char *folder;  /* where files beside the model are; NULL: none are read */
    int64_t beside_bytes, beside_largest; /* read of them so far; size of the largest */
    const struct onnx_options *options;
    int nr_shapes, cap_shapes; /* of the options */
    struct given_shape {
        const char *name;
        int rank;
        int64_t dim[LAYOUT_MAX_DIMS];
    } * shape;
    int nr_bound; /* inputs so far */
    struct err *e;
    int rc;
};

int onnx_fail(struct onnx_reader *r, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A name of the file for messages and screens: without control characters, not endless. */
const char *onnx_clean(struct onnx_reader *r, const char *name);

/* What stands for no value in the map of names: left out; not there; a node gives it but this
 * program cannot. */
enum { VALUE_NONE = -1, VALUE_UNKNOWN = -2, VALUE_NOT_GIVEN = -3 };
int onnx_find(const struct name_map *m, const char *name);
void onnx_set(struct name_map *m, const char *name, int value);

/* "float", "uint8" ... of TensorProto.DataType; the type of the graph's value, and whether kernels
 * compute with it (else *refused gets the name, also for integers that are parameters). */
enum graph_type onnx_type(int data_type, const char **refused);

/* The graph's inputs, with the types and shapes of the file, of the options, or of a case. */
void onnx_inputs(struct onnx_reader *r, const Onnx__GraphProto *g);

/*
 * The elements of a tensor that lie in a file beside the model: `bytes` of them, malloc'd; NULL
 * after a failure. The file must lie in the folder of the model, or below it.
 */
void *onnx_beside(struct onnx_reader *r, const Onnx__TensorProto *t, const char *name,
                  size_t bytes);

/* The value of a tensor of the file, whose data is checked and copied; -1 after a failure. */
int onnx_tensor(struct onnx_reader *r, const Onnx__TensorProto *t, const char *name);

/* All of a file; NULL and a sentence on failure; the caller frees. */
void *onnx_slurp(const char *path, size_t *size, struct err *e);

#endif
