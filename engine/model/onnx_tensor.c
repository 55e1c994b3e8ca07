/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of ONNX files: every type and both places where their elements can be. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/onnx_reader.h"
#include "engine/model/onnx_wire.h"

/* Protobuf's own limit for a file. */
#define MAX_FILE_BYTES ((size_t)INT32_MAX)

/* IEEE half precision and bfloat16 by their bits. */
static float from_half(uint16_t h)
{
    int exponent = h >> 10 & 0x1f, fraction = h & 0x3ff;
    float v = exponent == 0    ? ldexpf((float)fraction, -24)
              : exponent == 31 ? (fraction ? NAN : INFINITY)
                               : ldexpf((float)(fraction + 1024), exponent - 25);
    return h & 0x8000 ? -v : v;
}

static float from_bfloat(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static size_t raw_size(int type)
{
    switch (type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT8:
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT8:
    case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL:
        return 1;
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT16:
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT16:
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
    case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16:
        return 2;
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
        return 4;
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64:
        return 8;
    default:
        return 0;
    }
}

static bool is_float(int type)
{
    return type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ||
           type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE ||
           type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 ||
           type == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
}

/* One element of raw data (little-endian, as this machine is) as a number. */
static double raw_float(int type, const uint8_t *p)
{
    uint16_t h;
    double d;
    float f;
    switch (type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
        memcpy(&h, p, sizeof h);
        return (double)from_half(h);
    case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16:
        memcpy(&h, p, sizeof h);
        return (double)from_bfloat(h);
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
        memcpy(&d, p, sizeof d);
        return d;
    default:
        memcpy(&f, p, sizeof f);
        return (double)f;
    }
}

static int64_t raw_int(int type, const uint8_t *p)
{
    uint64_t bits = 0;
    size_t size = raw_size(type);
    memcpy(&bits, p, size);
    switch (type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT8:
        return (int8_t)bits;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT16:
        return (int16_t)bits;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
        return (int32_t)bits;
    default:
        return (int64_t)bits;
    }
}

/* Elements in the typed field that belongs to the type. */
static size_t typed_count(const Onnx__TensorProto *t)
{
    switch (t->data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
        return t->n_float_data;
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
        return t->n_double_data;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
        return t->n_int64_data;
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64:
        return t->n_uint64_data;
    default:
        return t->n_int32_data;
    }
}

static double typed_float(const Onnx__TensorProto *t, size_t i)
{
    switch (t->data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
        return (double)t->float_data[i];
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
        return t->double_data[i];
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
        return (double)from_half((uint16_t)t->int32_data[i]);
    default:
        return (double)from_bfloat((uint16_t)t->int32_data[i]);
    }
}

static int64_t typed_int(const Onnx__TensorProto *t, size_t i)
{
    switch (t->data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
        return t->int64_data[i];
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64:
        return (int64_t)t->uint64_data[i];
    default:
        return t->int32_data[i];
    }
}

static bool is_beside(const Onnx__TensorProto *t)
{
    return t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

/* Checks dimensions and the amount of data; *nr gets the number of elements. */
static bool check_tensor(struct onnx_reader *r, const Onnx__TensorProto *t, const char *name,
                         size_t *nr)
{
    struct shape s = {.rank = (int)t->n_dims};
    *nr = 0;
    if (t->n_dims > LAYOUT_MAX_DIMS) {
        onnx_fail(r, ERR_UNSUPPORTED, "tensor \"%s\" has %zu dimensions, at most %d are supported",
                  name, t->n_dims, LAYOUT_MAX_DIMS);
        return false;
    }
    for (size_t i = 0; i < t->n_dims; i++)
        s.dim[i] = t->dims[i];
    int64_t size = shape_size(&s);
    size_t raw = raw_size(t->data_type);
    bool by_bytes = t->has_raw_data;
    size_t have = by_bytes ? t->raw_data.len : typed_count(t);
    if (size < 0)
        onnx_fail(r, ERR_LIMIT, "tensor \"%s\" has a negative dimension or more than 2^31 elements",
                  name);
    else if (t->segment)
        onnx_fail(r, ERR_UNSUPPORTED, "tensor \"%s\" is stored in segments", name);
    else if (raw && !is_beside(t) && have != (size_t)size * (by_bytes ? raw : 1))
        onnx_fail(r, ERR_INPUT, "tensor \"%s\" has %zu %s where %zu are needed", name, have,
                  by_bytes ? "bytes" : "elements", (size_t)size * (by_bytes ? raw : 1));
    *nr = (size_t)(size > 0 ? size : 0);
    return !r->rc;
}

/* `raw`: the elements as bytes, or NULL where they are in a typed field. */
static int float_tensor(struct onnx_reader *r, const Onnx__TensorProto *t, const char *name,
                        const uint8_t *raw, size_t nr)
{
    if (t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT && !raw)
        return graph_const_f32(r->g, name, (int)t->n_dims, t->dims,
                               nr ? t->float_data : &(float){0}, r->e);
    float *v = xmalloc(nr * sizeof *v);
    size_t step = raw_size(t->data_type);
    if (raw && t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT && nr)
        memcpy(v, raw, nr * sizeof *v);
    else
        for (size_t i = 0; i < nr; i++)
            v[i] = (float)(raw ? raw_float(t->data_type, raw + i * step) : typed_float(t, i));
    int value = graph_const_f32(r->g, name, (int)t->n_dims, t->dims, v, r->e);
    free(v);
    return value;
}

static int int_tensor(struct onnx_reader *r, const Onnx__TensorProto *t, const char *name,
                      const uint8_t *raw, size_t nr)
{
    int64_t *v = xmalloc(nr * sizeof *v);
    size_t step = raw_size(t->data_type);
    for (size_t i = 0; i < nr; i++)
        v[i] = raw ? raw_int(t->data_type, raw + i * step) : typed_int(t, i);
    int value = graph_const_i64(r->g, name, (int)t->n_dims, t->dims, v, r->e);
    free(v);
    if (value >= 0) {
        struct value *x = r->g->value[value];
        x->type = onnx_type(t->data_type, &x->refused) == GRAPH_BOOL ? GRAPH_BOOL : GRAPH_I64;
    }
    return value;
}

int onnx_tensor(struct onnx_reader *r, const Onnx__TensorProto *t, const char *name)
{
    size_t nr;
    if (!check_tensor(r, t, name, &nr))
        return -1;
    static const uint8_t nothing;
    uint8_t *beside = NULL;
    const uint8_t *raw = t->raw_data.len ? t->raw_data.data : &nothing;
    size_t step = raw_size(t->data_type);
    int value;
    if (is_beside(t) && step && !(raw = beside = onnx_beside(r, t, name, nr * step)))
        return -1;
    if (!t->has_raw_data && !beside)
        raw = NULL;
    if (is_float(t->data_type))
        value = float_tensor(r, t, name, raw, nr);
    else if (step)
        value = int_tensor(r, t, name, raw, nr);
    else {
        value = graph_add_value(r->g, name, GRAPH_OTHER, &(struct shape){1, {1}});
        onnx_type(t->data_type, &r->g->value[value]->refused);
    }
    free(beside);
    if (value < 0)
        r->rc = value;
    return value;
}

void *onnx_slurp(const char *path, size_t *size, struct err *e)
{
    char *data = NULL;
    size_t cap = 0;
    FILE *f = fopen(path, "rb");
    if (!f) {
        err_set(e, ERR_IO, "cannot open \"%s\": %s", path, strerror(errno));
        return NULL;
    }
    for (*size = 0;;) {
        if (*size == cap) {
            cap = cap ? cap * 2 : 1 << 16;
            data = xrealloc(data, cap);
        }
        size_t n = fread(data + *size, 1, cap - *size, f);
        *size += n;
        if (n == 0 || *size > MAX_FILE_BYTES)
            break;
    }
    bool bad = ferror(f) || *size > MAX_FILE_BYTES;
    if (ferror(f))
        err_set(e, ERR_IO, "cannot read \"%s\": %s", path, strerror(errno));
    else if (bad)
        err_set(e, ERR_LIMIT, "\"%s\" is larger than 2 GiB, which no ONNX file can be", path);
    fclose(f);
    if (!bad)
        return data;
    free(data);
    return NULL;
}

int onnx_read_tensor(const char *path, struct shape *shape, float **data, struct err *e)
{
    struct err own = ERR_INIT;
    struct onnx_reader r = {.e = e ? e : &own};
    size_t size;
    void *bytes = onnx_slurp(path, &size, r.e);
    *data = NULL;
    if (!bytes)
        return r.e->code;
    Onnx__TensorProto *t = onnx_unpack(&onnx__tensor_proto__descriptor, bytes, size);
    free(bytes);
    r.g = graph_new("", 1);
    int v = t ? onnx_tensor(&r, t, "") : onnx_fail(&r, ERR_INPUT, "is no tensor");
    const struct value *x = v >= 0 ? r.g->value[v] : NULL;
    if (x && x->type == GRAPH_OTHER)
        onnx_fail(&r, ERR_UNSUPPORTED, "is of a type that is not supported");
    if (!r.rc) {
        int64_t n = shape_size(&x->shape);
        *shape = x->shape;
        *data = xmalloc((size_t)n * sizeof **data);
        for (int64_t i = 0; i < n; i++)
            (*data)[i] = x->f32 ? x->f32[i] : (float)x->i64[i];
    } else {
        err_prefix(r.e, "\"%s\"", path);
    }
    if (t)
        onnx__tensor_proto__free_unpacked(t, NULL);
    graph_free(r.g);
    arena_release(&r.arena);
    return r.rc;
}
