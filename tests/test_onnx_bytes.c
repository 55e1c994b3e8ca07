/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX files with defects, and bytes that are no ONNX file: a sentence, never harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "onnx.pb-c.h"

#include "engine/base/rng.h"
#include "engine/base/strbuf.h"
#include "engine/model/plan.h"
#include "tests/shared_files.h"

/* Reads the bytes; whatever they are, there is a graph or a sentence. */
static bool survive(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    struct graph *g = onnx_parse(data, size, "hostile.onnx", &e);
    if (!g) {
        assert_true(e.code < 0);
        assert_true(strlen(e.msg) > 20);
        return false;
    }
    struct task_list l = {0};
    int rc = model_tasks_from_graph(g, &(struct model_options){.block = 8}, &l, &e);
    assert_int_equal(rc, e.code);
    task_list_release(&l);
    graph_free(g);
    return true;
}

static void truncated_files_are_refused(void **state)
{
    (void)state;
    static const char *const files[] = {"models/light_squeezenet.onnx",
                                        "models/light_resnet50.onnx",
                                        "models/light_bvlc_alexnet.onnx"};
    for (int i = 0; i < 3; i++) {
        size_t size;
        uint8_t *data = slurp(files[i], &size);
        int accepted = 0;
        for (size_t n = 0; n < size; n += i == 2 ? 7 : 997) {
            uint8_t *part = malloc(n ? n : 1); /* exact, for the address sanitizer */
            memcpy(part, data, n);
            accepted += survive(part, n);
            free(part);
        }
        /* Cut between the graph and the operator sets a file is still one. */
        assert_true(accepted <= 2);
        free(data);
    }
}

static void flipped_bytes_do_no_harm(void **state)
{
    (void)state;
    static const char *const files[] = {
        "models/light_squeezenet.onnx", "models/light_inception_v1.onnx",
        "models/light_bvlc_alexnet.onnx",
        "onnx-tests/pytorch-converted/test_Conv2d_depthwise/model.onnx",
        "onnx-tests/pytorch-operator/test_operator_pad/model.onnx"};
    struct rng r;
    rng_seed(&r, 1);
    for (int i = 0; i < 5; i++) {
        size_t size;
        uint8_t *data = slurp(files[i], &size), *copy = malloc(size);
        for (int round = 0; round < 600; round++) {
            memcpy(copy, data, size);
            for (uint64_t k = 1 + rng_below(&r, 8); k > 0; k--)
                copy[rng_below(&r, size)] = (uint8_t)rng_u64(&r);
            survive(copy, size);
        }
        free(copy);
        free(data);
    }
}

/* An attribute holds a graph, whose node has an attribute, ... : the unpacker would recurse. */
static void deep_nesting_is_refused(void **state)
{
    (void)state;
    enum { LEVELS = 60000 };
    uint8_t *buf = malloc(LEVELS * 24), *at = buf + LEVELS * 24;
    size_t len = 0;
    for (int i = 0; i < LEVELS; i++) {
        static const uint8_t tags[] = {0x32, 0x2a,
                                       0x0a}; /* attribute.g, node.attribute, graph.node */
        for (int k = 0; k < 3; k++) {
            uint8_t head[6] = {tags[k]};
            int n = 1;
            for (size_t rest = len; n == 1 || rest; rest >>= 7)
                head[n++] = (uint8_t)((rest & 0x7f) | (rest >> 7 ? 0x80 : 0));
            at -= n;
            memcpy(at, head, (size_t)n);
            len += (size_t)n;
        }
    }
    /* The outermost of these is a graph's content: field 7 of the model. */
    struct strbuf sb = {0};
    strbuf_addc(&sb, 0x3a);
    for (size_t rest = len; rest; rest >>= 7)
        strbuf_addc(&sb, (char)((rest & 0x7f) | (rest >> 7 ? 0x80 : 0)));
    strbuf_add(&sb, at, len);
    assert_false(survive((const uint8_t *)sb.buf, sb.len));
    strbuf_release(&sb);
    free(buf);
}

/* Two bytes in the file, hundreds in memory. */
static void empty_messages_do_not_fill_memory(void **state)
{
    (void)state;
    struct strbuf sb = {0}, model = {0};
    for (int i = 0; i < 4000000; i++)
        strbuf_add(&sb, "\x2a\x00", 2); /* graph.initializer */
    strbuf_addc(&model, 0x3a);
    for (size_t rest = sb.len; rest; rest >>= 7)
        strbuf_addc(&model, (char)((rest & 0x7f) | (rest >> 7 ? 0x80 : 0)));
    strbuf_add(&model, sb.buf, sb.len);
    assert_false(survive((const uint8_t *)model.buf, model.len));
    strbuf_release(&sb);
    strbuf_release(&model);
}

/* ---- small models made here ---- */

struct small {
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__NodeProto node[3], *nodes[3];
    Onnx__AttributeProto attr[3], *attrs[3];
    Onnx__TensorProto tensor[2], *tensors[2];
    Onnx__ValueInfoProto in, out, *ins[1], *outs[1];
    Onnx__TypeProto type;
    Onnx__TypeProto__Tensor tensor_type;
    Onnx__TensorShapeProto shape;
    Onnx__TensorShapeProto__Dimension dim[4], *dims[4];
    char *names[3][3];
    int64_t w_dims[4], ints[4];
    float w[64];
};

/* x [1,2,4,4] -> Conv with w [2,2,2,2] -> Relu -> y */
static void small_init(struct small *s)
{
    memset(s, 0, sizeof *s);
    onnx__model_proto__init(&s->model);
    onnx__graph_proto__init(&s->graph);
    s->model.graph = &s->graph;
    onnx__value_info_proto__init(&s->in);
    onnx__value_info_proto__init(&s->out);
    onnx__type_proto__init(&s->type);
    onnx__type_proto__tensor__init(&s->tensor_type);
    onnx__tensor_shape_proto__init(&s->shape);
    static char x[] = "x", w[] = "w", c[] = "c", y[] = "y", conv[] = "Conv", relu[] = "Relu";
    static char first[] = "first", second[] = "second";
    for (int i = 0; i < 4; i++) {
        onnx__tensor_shape_proto__dimension__init(&s->dim[i]);
        s->dim[i].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        s->dim[i].dim_value = (int64_t[]){1, 2, 4, 4}[i];
        s->dims[i] = &s->dim[i];
        s->w_dims[i] = 2;
        s->ints[i] = 1;
    }
    s->shape.n_dim = 4;
    s->shape.dim = s->dims;
    s->tensor_type.has_elem_type = 1;
    s->tensor_type.elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    s->tensor_type.shape = &s->shape;
    s->type.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    s->type.tensor_type = &s->tensor_type;
    s->in.name = x;
    s->in.type = &s->type;
    s->out.name = y;
    s->ins[0] = &s->in;
    s->outs[0] = &s->out;
    s->graph.n_input = s->graph.n_output = 1;
    s->graph.input = s->ins;
    s->graph.output = s->outs;
    for (int i = 0; i < 2; i++) {
        onnx__tensor_proto__init(&s->tensor[i]);
        s->tensors[i] = &s->tensor[i];
    }
    for (int i = 0; i < 3; i++) {
        onnx__node_proto__init(&s->node[i]);
        onnx__attribute_proto__init(&s->attr[i]);
        s->nodes[i] = &s->node[i];
        s->attrs[i] = &s->attr[i];
    }
    s->tensor[0].name = w;
    s->tensor[0].n_dims = 4;
    s->tensor[0].dims = s->w_dims;
    s->tensor[0].has_data_type = 1;
    s->tensor[0].data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    s->tensor[0].n_float_data = 16;
    s->tensor[0].float_data = s->w;
    s->graph.n_initializer = 1;
    s->graph.initializer = s->tensors;
    s->graph.n_node = 2;
    s->graph.node = s->nodes;
    char *names[3][3] = {{x, w, c}, {c, y, NULL}};
    memcpy(s->names, names, sizeof names);
    s->node[0].op_type = conv;
    s->node[0].name = first;
    s->node[0].n_input = 2;
    s->node[0].input = s->names[0];
    s->node[0].n_output = 1;
    s->node[0].output = &s->names[0][2];
    s->node[1].op_type = relu;
    s->node[1].name = second;
    s->node[1].n_input = 1;
    s->node[1].input = s->names[1];
    s->node[1].n_output = 1;
    s->node[1].output = &s->names[1][1];
}

static void small_ints(struct small *s, char *name, size_t nr)
{
    s->attr[0].name = name;
    s->attr[0].has_type = 1;
    s->attr[0].type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    s->attr[0].n_ints = nr;
    s->attr[0].ints = s->ints;
    s->node[0].n_attribute = 1;
    s->node[0].attribute = s->attrs;
}

enum harm {
    NONE,
    BATCH_FREE,
    HEIGHT_FREE,
    NEGATIVE_DIM,
    HUGE_DIM,
    NO_SHAPE,
    INT_INPUT,
    NO_INPUT_NAME,
    SHORT_WEIGHTS,
    NEGATIVE_WEIGHT_DIM,
    HUGE_WEIGHTS,
    EXTERNAL,
    NO_WEIGHT_NAME,
    WEIGHT_TYPE,
    UNKNOWN_OP,
    NO_OP,
    OTHER_DOMAIN,
    UNKNOWN_VALUE,
    CYCLE,
    TWICE,
    NO_OUTPUT,
    NEGATIVE_STRIDE,
    HUGE_PAD,
    MANY_PADS,
    STRIDE_TYPE,
    ZERO_GROUP,
    NO_WEIGHTS,
    MANY_INPUTS,
    NR_HARMS
};

static void small_harm(struct small *s, enum harm h)
{
    static char batch[] = "batch_size", height[] = "height", op[] = "Frob",
                domain[] = "com.example";
    static char lost[] = "lost", strides[] = "strides", pads[] = "pads", group[] = "group";
    static char *many[64];
    switch (h) {
    case BATCH_FREE:
    case HEIGHT_FREE:
        s->dim[h == BATCH_FREE ? 0 : 2].value_case =
            ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        s->dim[h == BATCH_FREE ? 0 : 2].dim_param = h == BATCH_FREE ? batch : height;
        break;
    case NEGATIVE_DIM:
        s->dim[2].dim_value = -7;
        break;
    case HUGE_DIM:
        s->dim[2].dim_value = INT64_MAX;
        break;
    case NO_SHAPE:
        s->tensor_type.shape = NULL;
        break;
    case INT_INPUT:
        s->tensor_type.elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT32;
        break;
    case NO_INPUT_NAME:
        s->in.name = NULL;
        break;
    case SHORT_WEIGHTS:
        s->tensor[0].n_float_data = 15;
        break;
    case NEGATIVE_WEIGHT_DIM:
        s->w_dims[1] = -2;
        break;
    case HUGE_WEIGHTS:
        s->w_dims[0] = s->w_dims[1] = INT64_C(1) << 40;
        break;
    case EXTERNAL:
        s->tensor[0].has_data_location = 1;
        s->tensor[0].data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
        break;
    case NO_WEIGHT_NAME:
        s->tensor[0].name = NULL;
        break;
    case WEIGHT_TYPE:
        s->tensor[0].data_type = ONNX__TENSOR_PROTO__DATA_TYPE__STRING;
        break;
    case UNKNOWN_OP:
        s->node[0].op_type = op;
        break;
    case NO_OP:
        s->node[0].op_type = NULL;
        break;
    case OTHER_DOMAIN:
        s->node[0].domain = domain;
        break;
    case UNKNOWN_VALUE:
        s->names[0][0] = lost;
        break;
    case CYCLE:
        s->names[0][0] = s->names[1][1];
        break;
    case TWICE:
        s->names[1][1] = s->names[0][2];
        break;
    case NO_OUTPUT:
        s->graph.n_output = 0;
        break;
    case NEGATIVE_STRIDE:
        s->ints[0] = -1;
        small_ints(s, strides, 2);
        break;
    case HUGE_PAD:
        s->ints[3] = INT64_MAX;
        small_ints(s, pads, 4);
        break;
    case MANY_PADS:
        small_ints(s, pads, 3);
        break;
    case STRIDE_TYPE:
        small_ints(s, strides, 2);
        s->attr[0].type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        break;
    case ZERO_GROUP:
        small_ints(s, group, 0);
        s->attr[0].type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        break;
    case NO_WEIGHTS:
        s->node[0].n_input = 1;
        break;
    case MANY_INPUTS:
        for (int i = 0; i < 64; i++)
            many[i] = s->names[0][0];
        s->node[1].input = many;
        s->node[1].n_input = 64;
        break;
    default:
        break;
    }
}

static void each_defect_has_its_sentence(void **state)
{
    (void)state;
    static const char *const text[NR_HARMS] = {
        [HEIGHT_FREE] = "dimension 2 of input \"x\" is free (\"height\")",
        [NEGATIVE_DIM] = "dimension 2 of input \"x\" is -7",
        [HUGE_DIM] = "input \"x\" has more than 2^31 elements",
        [NO_SHAPE] = "input \"x\" is no tensor of known shape",
        [INT_INPUT] = "computes with \"x\", which is of integers",
        [NO_INPUT_NAME] = "input 0 has no name",
        [SHORT_WEIGHTS] = "tensor \"w\" has 15 elements where 16 are needed",
        [NEGATIVE_WEIGHT_DIM] = "tensor \"w\" has a negative dimension",
        [HUGE_WEIGHTS] = "more than 2^31 elements",
        [EXTERNAL] = "tensor \"w\" keeps its data in another file",
        [NO_WEIGHT_NAME] = "initializer 0 has no name",
        [WEIGHT_TYPE] = "computes with \"w\", which is string; float32",
        [UNKNOWN_OP] = "operator \"Frob\" of node \"first\" is not supported; squall check",
        [NO_OP] = "node \"first\" has no operator",
        [OTHER_DOMAIN] = "is of domain \"com.example\"",
        [UNKNOWN_VALUE] = "node \"first\" reads \"lost\", which nothing computes",
        [CYCLE] = "node \"first\" reads \"y\" before it is computed",
        [TWICE] = "node \"second\" computes \"c\", which is there already",
        [NO_OUTPUT] = "has no outputs",
        [NEGATIVE_STRIDE] = "node \"first\" has -1 in attribute \"strides\"",
        [HUGE_PAD] = "in attribute \"pads\"",
        [MANY_PADS] = "has 3 numbers in attribute \"pads\" where 4 are needed",
        [STRIDE_TYPE] = "attribute \"strides\" of a wrong type",
        [ZERO_GROUP] = "0 groups",
        [NO_WEIGHTS] = "needs at least 2",
    };
    for (int h = 0; h < NR_HARMS; h++) {
        struct small s;
        small_init(&s);
        small_harm(&s, (enum harm)h);
        size_t size = onnx__model_proto__get_packed_size(&s.model);
        uint8_t *data = malloc(size);
        onnx__model_proto__pack(&s.model, data);
        struct err e = ERR_INIT;
        struct graph *g = onnx_parse(data, size, "dir/small.onnx", &e);
        bool fine = h == NONE || h == BATCH_FREE || h == MANY_INPUTS;
        if (!!g != fine || (text[h] && !strstr(e.msg, text[h])))
            print_error("defect %d: %s\n", h, e.msg);
        assert_int_equal(!!g, fine);
        if (!fine) {
            assert_memory_equal(e.msg, "\"dir/small.onnx\": ", 18);
            assert_non_null(strstr(e.msg, text[h]));
        }
        survive(data, size);
        free(data);
        graph_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(flipped_bytes_do_no_harm),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(empty_messages_do_not_fill_memory),
        cmocka_unit_test(each_defect_has_its_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
