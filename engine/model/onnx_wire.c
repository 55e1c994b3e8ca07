/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/model/onnx_wire.h"

#include <stdint.h>
#include <stdlib.h>

/* A graph in an attribute of a node in a graph: 3 levels. Real files have a few of those. */
enum { MAX_DEPTH = 32 };

/* Messages on the way to one that contains itself, and the fields that lead on. */
enum message {
    MODEL,
    GRAPH,
    NODE,
    ATTRIBUTE,
    VALUE_INFO,
    TYPE,
    TYPE_HOLDER,
    MAP,
    FUNCTION,
    TRAINING,
    LEAF
};

static const struct edge {
    enum message from;
    uint32_t field;
    enum message to;
} edges[] = {
    {MODEL, 7, GRAPH},       {MODEL, 20, TRAINING},   {MODEL, 25, FUNCTION},
    {GRAPH, 1, NODE},        {GRAPH, 11, VALUE_INFO}, {GRAPH, 12, VALUE_INFO},
    {GRAPH, 13, VALUE_INFO}, {NODE, 5, ATTRIBUTE},    {ATTRIBUTE, 6, GRAPH},
    {ATTRIBUTE, 11, GRAPH},  {ATTRIBUTE, 14, TYPE},   {ATTRIBUTE, 15, TYPE},
    {VALUE_INFO, 2, TYPE},   {TYPE, 4, TYPE_HOLDER},  {TYPE, 5, MAP},
    {TYPE, 9, TYPE_HOLDER},  {TYPE_HOLDER, 1, TYPE},  {MAP, 2, TYPE},
    {FUNCTION, 7, NODE},     {TRAINING, 1, GRAPH},    {TRAINING, 2, GRAPH},
};

static enum message follow(enum message from, uint64_t field)
{
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        if (edges[i].from == from && edges[i].field == field)
            return edges[i].to;
    return LEAF;
}

struct wire {
    const uint8_t *at, *end;
};

static bool varint(struct wire *w, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        uint8_t b = *w->at++;
        *v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80))
            return true;
    }
    return false;
}

static bool skip(struct wire *w, uint64_t n)
{
    if (n > (uint64_t)(w->end - w->at))
        return false;
    w->at += n;
    return true;
}

static bool is_sound(enum message kind, struct wire w, int depth)
{
    if (depth > MAX_DEPTH)
        return false;
    while (w.at < w.end) {
        uint64_t tag, v;
        bool ok = varint(&w, &tag);
        if (!ok)
            return false;
        switch (tag & 7) {
        case 0:
            ok = varint(&w, &v);
            break;
        case 1:
            ok = skip(&w, 8);
            break;
        case 5:
            ok = skip(&w, 4);
            break;
        case 2: {
            ok = varint(&w, &v);
            struct wire inner = {w.at, w.at};
            ok = ok && skip(&w, v);
            inner.end = w.at;
            enum message next = follow(kind, tag >> 3);
            if (ok && next != LEAF)
                ok = is_sound(next, inner, depth + 1);
            break;
        }
        default: /* groups: not in this schema */
            ok = false;
        }
        if (!ok)
            return false;
    }
    return true;
}

bool onnx_wire_is_sound(const void *data, size_t size)
{
    const uint8_t *p = data;
    return size > 0 && is_sound(MODEL, (struct wire){p, p + size}, 0);
}

/* ---- unpacking ---- */

/* What unpacking may take beside the bytes of the file themselves. */
#define UNPACK_BYTES ((size_t)256 << 20)

/* Memory of an unpacked message, counted: nothing is freed before all of it is. */
struct budget {
    size_t left;
};

static void *budget_alloc(void *data, size_t size)
{
    struct budget *b = data;
    if (size > b->left)
        return NULL;
    b->left -= size;
    return malloc(size ? size : 1);
}

static void budget_free(void *data, void *p)
{
    (void)data;
    free(p);
}

void *onnx_unpack(const ProtobufCMessageDescriptor *type, const void *data, size_t size)
{
    struct budget budget = {UNPACK_BYTES + 2 * size};
    ProtobufCAllocator alloc = {budget_alloc, budget_free, &budget};
    return protobuf_c_message_unpack(type, &alloc, size, data);
}
