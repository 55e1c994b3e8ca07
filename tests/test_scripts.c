/* SPDX-License-Identifier: Apache-2.0 */
#include "scripts/lua_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "engine/base/clock.h"
#include "engine/model/plan.h"
#include "scripts/sandbox.h"

#define NET "local net = network { input = {1, 8, 16, 16} } local x = net.input\n"

static const struct model_options plain = {.block = 1}, blocked = {.block = 8};

/* ---- networks ---- */

static int tasks_from_text(const char *text, size_t size, struct task_list *l, struct err *e)
{
    struct graph *g = lua_model_graph_from_text("net.lua", text, size, e);
    if (!g)
        return e->code;
    int rc = model_tasks_from_graph(g, &plain, l, e);
    snprintf(l->name, sizeof l->name, "%s", g->name);
    graph_free(g);
    return rc;
}

static int run(const char *text, struct task_list *l, struct err *e)
{
    return tasks_from_text(text, strlen(text), l, e);
}

/* The tasks of a script that must succeed. */
static struct task_list tasks_of(const char *text)
{
    struct task_list l = {0};
    struct err e = ERR_INIT;
    if (run(text, &l, &e) != 0)
        fail_msg("%s", e.msg);
    return l;
}

/* Weights and operations of the tasks whose name begins with one of the words. */
static double count(const struct task_list *l, const char *const *word, double *flops)
{
    double weight = 0;
    *flops = 0;
    for (int i = 0; i < l->nr; i++)
        for (int k = 0; word[k]; k++)
            if (strncmp(l->task[i]->name, word[k], strlen(word[k])) == 0) {
                weight += l->task[i]->weight;
                *flops += l->task[i]->weight * l->task[i]->wl.flops;
                break;
            }
    return weight;
}

static void check_network(const char *name, double convs, double conv_flops, double dense)
{
    static const char *const conv_words[] = {"conv", "depthwise", NULL};
    static const char *const dense_words[] = {"dense", NULL};
    const struct model_options *o[] = {&plain, &blocked};
    for (int i = 0; i < 2; i++) {
        struct task_list l = {0};
        struct err e = ERR_INIT;
        double flops;
        if (lua_model_tasks(name, o[i], &l, &e) != 0)
            fail_msg("%s", e.msg);
        assert_string_equal(l.name, name);
        assert_float_equal(count(&l, conv_words, &flops), convs, 0);
        assert_true(flops > 0.98 * conv_flops && flops < 1.02 * conv_flops);
        assert_float_equal(count(&l, dense_words, &flops), dense, 0);
        task_list_release(&l);
    }
}

static void resnet18_has_20_convolutions_of_3_6_gflop(void **state)
{
    (void)state;
    check_network("resnet18", 20, 3.627e9, 1);
}

static void other_networks_have_their_layers(void **state)
{
    (void)state;
    check_network("mobilenet_v2", 52, 0.599e9, 1);
    check_network("squeezenet", 26, 0.698e9, 0);
    check_network("vgg16", 13, 30.69e9, 3);
    check_network("tinynet", 6, 1.737e6, 1);
}

static void every_embedded_network_extracts(void **state)
{
    (void)state;
    int nr = 0;
    for (; lua_model_name(nr); nr++) {
        struct task_list l = {0};
        struct err e = ERR_INIT;
        assert_true(lua_model_is_embedded(lua_model_name(nr)));
        assert_true(strlen(lua_model_summary(nr)) > 10);
        assert_non_null(strstr(lua_model_source(nr), "network {"));
        if (lua_model_tasks(lua_model_name(nr), &blocked, &l, &e) != 0)
            fail_msg("%s", e.msg);
        assert_true(l.nr > 0);
        task_list_release(&l);
    }
    assert_true(nr >= 4);
    assert_string_equal(lua_model_name(0), LUA_MODEL_DEFAULT);
    assert_null(lua_model_name(nr + 5));
    assert_null(lua_model_name(-1));
    assert_false(lua_model_is_embedded("resnet"));
}

static void shapes_are_visible_to_the_script(void **state)
{
    (void)state;
    struct task_list l = tasks_of(
        NET "local function is(x, want)\n"
            "  local got = table.concat(x.shape, ',')\n"
            "  if got ~= want then error(got .. ' is not ' .. want, 2) end\n"
            "  return x\n"
            "end\n"
            "is(x, '1,8,16,16')\n"
            "is(x:conv{k = 4, kernel = {3, 5}, pad = {1, 2}, stride = 2}, '1,4,8,8')\n"
            "is(x:conv{k = 4, kernel = 3, pad = {0, 1, 2, 3}}, '1,4,16,18')\n"
            "is(x:conv{k = 4, kernel = 3, pad = 'same', stride = 3}, '1,4,6,6')\n"
            "is(x:conv{k = 16, kernel = 3, dilation = 2, groups = 4}, '1,16,12,12')\n"
            "is(x:depthwise{kernel = 3, multiplier = 2}, '1,16,14,14')\n"
            "is(x:maxpool{kernel = 3, ceil = true}, '1,8,6,6')\n"
            "is(x:avgpool{kernel = 2}, '1,8,8,8')\n"
            "is(x:global_avgpool(), '1,8,1,1')\n"
            "is(net:flatten(x), '1,2048')\n"
            "is(x:reshape{1, 8, -1}, '1,8,256')\n"
            "is(x:transpose{1, 3, 4, 2}, '1,16,16,8')\n"
            "is(x:mean{axes = {3, -1}, keep = false}, '1,8')\n"
            "is(net:concat({x, x, x}), '1,24,16,16')\n"
            "is(net:concat(x, x, {axis = -2}), '1,8,32,16')\n"
            "is(x:reshape{8, 256}:matmul(net:weight{256, 10}), '8,10')\n"
            "is(net:gemm(x:reshape{8, 256}, net:weight{10, 256}, {trans_b = true}), '8,10')\n"
            "local a, b = net:op('Split', {x}, {axis = 1, split = {2, 6}}, 2)\n"
            "is(a, '1,2,16,16') is(b, '1,6,16,16')\n"
            "is(net:op('Slice', {x, {0}, {4}, {2}}), '1,8,4,16')\n"
            "return net:output(is(x * 0.5 + 1 - x / x, '1,8,16,16'))\n");
    assert_int_equal(l.nr, 1);
    assert_string_equal(l.name, "net");
    task_list_release(&l);
}

static void every_operator_makes_a_task(void **state)
{
    (void)state;
    static const char *const call[] = {"x:conv{k = 4}",
                                       "x:depthwise{kernel = 3}",
                                       "x:maxpool{kernel = 2}",
                                       "x:avgpool{kernel = 3, pad = 1, include_pad = true}",
                                       "x:global_avgpool()",
                                       "x:global_maxpool()",
                                       "x:flatten():dense{n = 3}",
                                       "x:dense{n = 3, bias = true}",
                                       "x:matmul(x)",
                                       "x:batchnorm{epsilon = 0.001}",
                                       "x:layernorm()",
                                       "x:lrn{size = 3, bias = 2}",
                                       "x:softmax{axis = 2}",
                                       "x:relu()",
                                       "x:relu6()",
                                       "x:clip{min = -1}",
                                       "x:clip{max = 1.5}",
                                       "x:leakyrelu{alpha = 0.2}",
                                       "x:elu()",
                                       "x:sigmoid()",
                                       "x:hardsigmoid{alpha = 0.2, beta = 0.5}",
                                       "x:silu()",
                                       "x:hardswish()",
                                       "x:gelu()",
                                       "x:tanh()",
                                       "x:softplus()",
                                       "x:erf()",
                                       "x:exp()",
                                       "x:log()",
                                       "x:sqrt()",
                                       "x:neg()",
                                       "x:abs()",
                                       "net:add(x, x)",
                                       "net:sub(x, 1)",
                                       "net:mul(2, x)",
                                       "x:div(x)",
                                       "x:max(0)",
                                       "x:min(x)",
                                       "x:mean{axes = {2}}",
                                       "x:max_over{axes = {-1}}",
                                       "x:concat(x)",
                                       "x:transpose{1, 4, 2, 3}",
                                       "net:op('Selu', {x})",
                                       "net:op('Clip', {x, false, 6})",
                                       "x + net:weight{8, 1, 1, fill = 2}"};
    for (size_t i = 0; i < sizeof call / sizeof *call; i++) {
        char text[256];
        snprintf(text, sizeof text, NET "return net:output(%s)", call[i]);
        struct task_list l = {0};
        struct err e = ERR_INIT;
        if (run(text, &l, &e) != 0)
            fail_msg("%s: %s", call[i], e.msg);
        if (l.nr < 1)
            fail_msg("%s: no task", call[i]);
        task_list_release(&l);
    }
}

static void a_network_can_have_many_inputs_and_outputs(void **state)
{
    (void)state;
    struct task_list l = tasks_of(
        "local net = network { name = 'two heads', inputs = { {4, 8, name = 'a'}, {4, 8} } }\n"
        "local a, b = net.inputs[1], net.inputs[2]\n"
        "assert(a.name == 'a' and b.name == 'input2' and net.name == 'two_heads')\n"
        "assert(tostring(net.input) == 'tensor [4,8]')\n"
        "return net:output((a * b):dense{n = 2}, a:dense{n = 3})\n");
    assert_int_equal(l.nr, 3);
    assert_string_equal(l.name, "two_heads");
    task_list_release(&l);
}

/* ---- errors ---- */

/* One sentence that holds `want`; nothing is added to the list. */
static void check_sentence(const struct err *e, const struct task_list *l, const char *text,
                           const char *want)
{
    assert_int_equal(l->nr, 0);
    if (!strstr(e->msg, want))
        fail_msg("script: %.300s\n  message: %s\n  has no: %s", text, e->msg, want);
    for (const char *p = e->msg; *p; p++)
        if ((unsigned char)*p < ' ')
            fail_msg("control character %d in: %s", *p, e->msg);
}

static void refuse(const char *text, size_t size, const char *want)
{
    struct task_list l = {0};
    struct err e = ERR_INIT;
    int64_t start_ns = clock_mono_ns();
    assert_true(tasks_from_text(text, size, &l, &e) < 0);
    check_sentence(&e, &l, text, want);
    assert_true(clock_mono_ns() - start_ns < INT64_C(60000000000));
    task_list_release(&l);
}

struct bad {
    const char *text, *want;
};

static void refuse_all(const struct bad *bad, size_t nr)
{
    for (size_t i = 0; i < nr; i++)
        refuse(bad[i].text, strlen(bad[i].text), bad[i].want);
}

#define REFUSE_ALL(list) refuse_all(list, sizeof(list) / sizeof *(list))

static void scripts_cannot_leave_the_sandbox(void **state)
{
    (void)state;
    static const struct bad bad[] = {
        {"io.open('/etc/passwd')", "net.lua:1: \"io\" is not available"},
        {"\n\nos.execute('true')", "net.lua:3: \"os\" is not available"},
        {"require 'x'", "\"require\" is not available"},
        {"package.loadlib('x', '*')", "\"package\" is not available"},
        {"debug.getregistry()", "\"debug\" is not available"},
        {"load('return 1')()", "\"load\" is not available"},
        {"dofile('x')", "\"dofile\" is not available"},
        {"loadfile('x')", "\"loadfile\" is not available"},
        {"while true do pcall(error) end", "\"pcall\" is not available"},
        {"coroutine.wrap(print)", "\"coroutine\" is not available"},
        {"setmetatable({}, {__gc = 1})", "\"setmetatable\" is not available"},
        {"getmetatable('').__index.rep = 1", "\"getmetatable\" is not available"},
        {"collectgarbage('stop')", "\"collectgarbage\" is not available"},
        {"_G.io.open('x')", "\"_G\" is not available"},
        {"_ENV['os'].exit(1)", "\"os\" is not available"},
        {"string.dump(network)", "net.lua:1: attempt to call a nil value (field 'dump')"},
        {"('x'):find('.-.-.-b')", "attempt to call a nil value (method 'find')"},
        {"table.move({}, 1, math.maxinteger - 1, 2)", "attempt to call a nil value (field 'move')"},
        {"math.random()", "attempt to call a nil value (field 'random')"},
        {"return netwrok {}", "net.lua:1: \"netwrok\" is not defined"}};
    REFUSE_ALL(bad);
}

static void scripts_end(void **state)
{
    (void)state;
    static const struct bad bad[] = {
        {"while true do end", "net.lua:1: gave up after "},
        {"\nlocal function f() while true do end end\nf()", "(called from line 3)"},
        {"for i = 1, math.huge do local s = ('x'):rep(1000000) end", "net.lua:1: gave up after"},
        {"local s = 'x'\nwhile true do\n s = s .. s\nend", "net.lua:3: needs more than the 16 MiB"},
        {"local t = {}\nfor i = 1, 1e9 do\n t[i] = {} end",
         "net.lua:3: needs more than the 16 MiB"},
        {"return ('x'):rep(1 << 30)", "net.lua:1: needs more than the 16 MiB"},
        {"return ('x'):rep(math.maxinteger)", "resulting string too large"},
        {"local function f() return 1 + f() end\nf()", "net.lua:1: needs more than the 16 MiB"},
        {NET "while true do x = x:relu() end", "net.lua:2: the network has more than 10000"},
        {NET "while true do net:weight{1} end", "net.lua:2: the network has more than 10000"},
        {"while true do network { input = {1} } end", "has made its network already"},
        {"return table.unpack({}, 1, 1e8)", "too many results to unpack"}};
    REFUSE_ALL(bad);
    char deep[4000];
    memset(deep, '(', sizeof deep);
    refuse(deep, sizeof deep, "net.lua: C stack overflow");
    memset(deep, '-', sizeof deep);
    memcpy(deep, "return ", 7);
    for (size_t i = 8; i < sizeof deep; i += 2)
        deep[i] = ' ';
    refuse(deep, sizeof deep, "net.lua: C stack overflow");
}

static void errors_are_one_sentence_with_a_line(void **state)
{
    (void)state;
    static const struct bad bad[] = {
        {"", "net.lua:1: the script returns nothing"},
        {NET, "net.lua:1: the script returns nothing, it must end with: return net:output(x)"},
        {NET "return 7", "the script returns 7"},
        {NET "return x", "the script returns tensor [1,8,16,16]"},
        {NET "return net", "net.lua:2: the network has no output"},
        {"return {}", "the script returns table"},
        {"local x = = 1", "net.lua:1: unexpected symbol near '='"},
        {"\n\nerror('no\\n\\27[2J\\0more', 0)", "net.lua:3: no  [2J"},
        {"error({})", "net.lua:1: error with table instead of a message"},
        {"error()", "net.lua:1: error with nil instead of a message"},
        {"local n = nil\nn.x = 1", "net.lua:2: attempt to index a nil value (local 'n')"},
        {"local function block(x)\n  return x:conv{}\nend\n" NET "block(x)",
         "net.lua:2: conv: needs the option k (called from line 5)"},
        {"local function level() error('deep \\xff \\xc3\\x28') end level()", "deep"}};
    REFUSE_ALL(bad);
    static const char nul[] = "local a\0 = 1";
    refuse(nul, sizeof nul - 1, "net.lua:1: ");
}

static void compiled_chunks_are_refused(void **state)
{
    (void)state;
    static const char header[] = "\x1bLua\x54\0\x19\x93\r\n\x1a\n\x04\x08\x08xV";
    refuse(header, sizeof header - 1, "net.lua: is compiled Lua, only source text is read");
    refuse("\x1b", 1, "is compiled Lua");
    refuse("#!\n\x1bLua", 7, "net.lua");
}

static void wrong_networks_are_explained(void **state)
{
    (void)state;
    static const struct bad bad[] = {
        {"network()", "net.lua:1: bad argument #1 to 'network' (table of options expected"},
        {"network {}", "net.lua:1: network: needs an input"},
        {"network { input = 5 }", "an input is a shape like {1, 3, 224, 224}, not a number"},
        {"network { input = {} }", "needs a shape"},
        {"network { input = {1, 2.5} }", "number 2 is 2.5, it must be a whole number"},
        {"network { input = {1, '3'} }", "number 2 is 3, it must be a whole number"},
        {"network { input = {1, 0} }", "net.lua:1: dimension 1 of input \"input1\" is 0"},
        {"network { input = {1, -3, 224} }", "dimension 1 of input \"input1\" is -3"},
        {"network { input = {1 << 20, 1 << 20} }", "more than 2^31 elements"},
        {"network { input = {1,1,1,1,1,1,1,1,1} }", "has 9 numbers, at most 8"},
        {"network { input = {1}, inptu = 2 }",
         "has no option \"inptu\"; there are: name input inputs"},
        {"network { inputs = {1} }", "an input is a shape"},
        {"network { name = 3, input = {1} }", "name must be a text"},
        {NET "x:conv{k = 4, strde = 2}",
         "net.lua:2: conv: has no option \"strde\"; there are: k kernel"},
        {NET "x:conv{k = 4, 3}", "conv: has no option \"1\""},
        {NET "x:conv{k = 0}", "conv: k is 0, it must be at least 1"},
        {NET "x:conv{k = 2.5}", "conv: k is 2.5, it must be a whole number"},
        {NET "x:conv{k = '4'}", "conv: k is 4, it must be a whole number"},
        {NET "x:conv{k = 1 << 40}", "below 2^31"},
        {NET "x:conv{k = 1 << 30, kernel = 99}", "more than 2^31 elements"},
        {NET "x:conv{k = 4, kernel = 99}", "has a window that does not fit its input [1,8,16,16]"},
        {NET "x:conv{k = 4, kernel = {3, 3, 3}}", "kernel has 3 numbers where 2 are needed"},
        {NET "x:conv{k = 4, kernel = {3, 'a'}}", "conv: kernel: number 2 is a"},
        {NET "x:conv{k = 4, pad = {1, 2, 3}}", "pad has 3 numbers"},
        {NET "x:conv{k = 4, pad = 'valid'}", "pad is \"valid\", it must be numbers or \"same\""},
        {NET "x:conv{k = 4, pad = -1}", "pad is -1, it must be at least 0"},
        {NET "x:conv{k = 4, bias = 1}", "bias is 1, it must be true or false"},
        {NET "x:conv{k = 4, groups = 3}", "8 channels to 4 do not split into 3 groups"},
        {NET "x:flatten():conv{k = 4}", "conv: its input has 2 dimensions"},
        {NET "x:conv(3)", "conv: takes at most 1 tensor, got 2"},
        {NET "x:conv('3')", "after the tensors takes a table of options, got a string"},
        {NET "net:conv()", "conv: needs 1 tensor, got 0"},
        {NET "net.conv{k = 3}", "is called with a colon, as in net:conv(x) or x:conv()"},
        {NET "return x + nil", "add: argument 2 is a nil, not a tensor"},
        {NET "return x + {}", "add: needs 2 tensors, got 1"},
        {NET "return x + x:flatten():dense{n = 5}", "cannot broadcast"},
        {NET "return x .. x", "attempt to concatenate"},
        {NET "x:maxpool{}", "maxpool: needs the option kernel"},
        {NET "x:maxpool()", "maxpool: needs the option kernel"},
        {NET "x:softmax{axis = 0}", "axis is 0, a tensor of 4 dimensions has 1 to 4"},
        {NET "x:softmax{axis = 5}", "axis is 5, a tensor of 4 dimensions has 1 to 4"},
        {NET "x:reshape{3, -1}", "cannot make"},
        {NET "x:reshape()", "needs a table of dimensions"},
        {NET "x:reshape{1 << 40, 1 << 40, -1}", "net.lua:2: "},
        {NET "x:transpose{0, 1, 2, 3}", "counts dimensions from 1"},
        {NET "x:transpose{1, 1, 2, 3}", "net.lua:2: "},
        {NET "x:mean{axes = {0}}", "has no dimension 0"},
        {NET "x:mean()", "needs axes"},
        {NET "x:clip{min = 2, max = 1}", "min is above max"},
        {NET "x:clip{min = 0/0}", "it must be a number"},
        {NET "net:concat{x, 'y'}", "item 2 of the list is a string, not a tensor"},
        {NET "net:matmul(x, net:weight{3, 3})", "cannot multiply [1,8,16,16] and [3,3]"},
        {NET "x.shape.k.k = 1", "net.lua:2: attempt to index a nil value"},
        {NET "x:foo()", "a tensor has no \"foo\""},
        {NET "net:foo()", "a network has no operator \"foo\"; net:op(\"foo\", ...)"},
        {NET "x.value = 3", "attempt to index a tensor value"},
        {NET "net:weight()", "is called with a shape"},
        {NET "net:weight{0}", "net.lua:2: "},
        {NET "net:weight{1, fill = 'x'}", "fill must be a number"},
        {NET "net:output()", "output: needs a tensor"},
        {NET "net:output(3)", "output: argument 1 is a number, not a tensor"},
        {NET "net.output(x)", "is called as net:output(x)"},
        {NET "net:op('Foo', {x})", "operator \"Foo\" of node \"Foo1\" is not supported"},
        {NET "net:op('Relu', x)", "is called as net:op("},
        {NET "net:op('Relu', {x}, {alpha = print})", "\"print\" is not available"},
        {NET "net:op('Relu', {x}, {alpha = network})", "attribute \"alpha\" is a function"},
        {NET "net:op('Relu', {x}, {1})", "attributes have names"},
        {NET "net:op('Relu', {x}, nil, 2)", "does not give output 2"},
        {NET "net:op('Relu', {}, {})", "needs at least 1"},
        {NET "net:op('Relu', {x}, {}, 1 << 20)", "has 1 to 256 outputs"}};
    REFUSE_ALL(bad);
}

/* ---- files ---- */

static void files_are_read(void **state)
{
    (void)state;
    char dir[] = "/tmp/squall-scripts-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/deep.lua", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("#!/usr/bin/env squall\n" NET "return net:output(x:conv{k = 2})\n", f);
    fclose(f);
    struct task_list l = {0};
    struct err e = ERR_INIT;
    assert_int_equal(lua_model_tasks(path, &plain, &l, &e), 0);
    assert_int_equal(l.nr, 1);
    assert_string_equal(l.name, "deep");
    assert_non_null(strstr(l.task[0]->where, "conv1"));
    task_list_release(&l);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("#!x\n" NET "x:conv{}\n", f);
    fclose(f);
    assert_int_equal(lua_model_tasks(path, &plain, &l, &e), ERR_SCRIPT);
    char want[96];
    snprintf(want, sizeof want, "%s:3: conv: needs the option k", path);
    check_sentence(&e, &l, path, want);
    unlink(path);
    rmdir(dir);
}

static void files_that_are_none_are_refused(void **state)
{
    (void)state;
    static const struct bad bad[] = {
        {"resnet19",
         "is neither a file nor an embedded network; those are: resnet18, mobilenet_v2"},
        {"/nowhere/x.lua", "cannot open script \"/nowhere/x.lua\": No such file"},
        {"/dev/zero", "not a regular file"},
        {"/tmp", "not a regular file"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct task_list l = {0};
        struct err e = ERR_INIT;
        assert_true(lua_model_tasks(bad[i].text, &plain, &l, &e) < 0);
        check_sentence(&e, &l, bad[i].text, bad[i].want);
    }
}

/* ---- memory ---- */

static void run_text(lua_State *L, void *ctx)
{
    sandbox_load(L, "s", ctx, strlen(ctx));
    lua_call(L, 0, 0);
}

/* Whatever the limit, starting and running end with a result or a sentence. */
static void any_memory_limit_is_survived(void **state)
{
    (void)state;
    static char text[] = "local t = {} for i = 1, 100 do t[i] = ('x'):rep(i) .. i end";
    int failed = 0, passed = 0;
    for (size_t bytes = 0; bytes < 64 << 10; bytes += 97) {
        struct sandbox_limits limits = {bytes, 1000000, INT64_C(1000000000)};
        struct err e = ERR_INIT;
        struct sandbox *s = sandbox_new(&limits, &e);
        int rc = s ? sandbox_run(s, "s", run_text, text, &e) : ERR_NOMEM;
        assert_int_equal(rc, e.code);
        failed += rc != 0;
        passed += rc == 0;
        sandbox_free(s);
    }
    assert_true(failed > 50 && passed > 50);
}

static void a_sandbox_runs_again_after_an_error(void **state)
{
    (void)state;
    static char bad[] = "x = 1 while true do end", good[] = "assert(x == 1)";
    struct sandbox_limits limits = {1 << 20, 1000000, INT64_C(1000000000)};
    struct err e = ERR_INIT;
    struct sandbox *s = sandbox_new(&limits, &e);
    assert_non_null(s);
    assert_int_equal(sandbox_run(s, "a", run_text, bad, &e), ERR_SCRIPT);
    err_clear(&e);
    assert_int_equal(sandbox_run(s, "a", run_text, good, &e), 0);
    sandbox_free(s);
}

static void endless_recursion_is_explained(void **state)
{
    (void)state;
    static char lua[] = "local function f()\nreturn 1 + f()\nend f()";
    static char c[] = "local t = {3, 1, 2}\n"
                      "local function f() table.sort(t, f) end\n"
                      "f()";
    char *const text[] = {lua, c};
    for (int i = 0; i < 2; i++) {
        struct sandbox_limits limits = {256 << 20, 100000000, INT64_C(3000000000)};
        struct err e = ERR_INIT;
        struct sandbox *s = sandbox_new(&limits, &e);
        assert_non_null(s);
        assert_int_equal(sandbox_run(s, "s.lua", run_text, text[i], &e), ERR_SCRIPT);
        assert_non_null(strstr(e.msg, "stack overflow"));
        assert_int_equal(strncmp(e.msg, "s.lua:2: ", 9), 0);
        sandbox_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resnet18_has_20_convolutions_of_3_6_gflop),
        cmocka_unit_test(other_networks_have_their_layers),
        cmocka_unit_test(every_embedded_network_extracts),
        cmocka_unit_test(shapes_are_visible_to_the_script),
        cmocka_unit_test(every_operator_makes_a_task),
        cmocka_unit_test(a_network_can_have_many_inputs_and_outputs),
        cmocka_unit_test(scripts_cannot_leave_the_sandbox),
        cmocka_unit_test(scripts_end),
        cmocka_unit_test(errors_are_one_sentence_with_a_line),
        cmocka_unit_test(compiled_chunks_are_refused),
        cmocka_unit_test(wrong_networks_are_explained),
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(files_that_are_none_are_refused),
        cmocka_unit_test(any_memory_limit_is_survived),
        cmocka_unit_test(endless_recursion_is_explained),
        cmocka_unit_test(a_sandbox_runs_again_after_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
