/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface and the code behind it, as C.
 *
 * Fixed parts are templates in which @ is the library's name and $ the same in capitals.
 */
#include "backends/library_private.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static void expand(const struct library *l, const char *text, struct strbuf *out)
{
    for (; *text; text++) {
        if (*text == '@')
            strbuf_adds(out, l->o->name);
        else if (*text == '$')
            for (const char *p = l->o->name; *p; p++)
                strbuf_addc(out, (char)toupper((unsigned char)*p));
        else
            strbuf_addc(out, *text);
    }
}

/* Names come from files: neither do they end a comment nor a line. */
static void add_comment(const char *text, struct strbuf *out)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f || *text == '\\')
            strbuf_addc(out, '?');
        else if (*text == '*' && text[1] == '/')
            strbuf_adds(out, "* ");
        else
            strbuf_addc(out, *text);
}

static void add_string(const char *text, struct strbuf *out)
{
    strbuf_addc(out, '"');
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f || *text == '"' || *text == '\\')
            strbuf_addf(out, "\\%03o", (unsigned)(unsigned char)*text);
        else
            strbuf_addc(out, *text);
    strbuf_addc(out, '"');
}

/* ---- tensors ---- */

struct tensor {
    const struct value *value;
    struct layout layout;
};

static struct tensor tensor_of(const struct library *l, bool output, int k)
{
    const struct plan *p = l->o->plan;
    int v = output ? p->graph->output[k] : p->graph->input[k];
    return (struct tensor){p->graph->value[v], plan_outside(p, output, k)};
}

static void add_dims(const struct tensor *t, struct strbuf *out)
{
    for (int i = 0; i < t->layout.nr_p; i++)
        strbuf_addf(out, "%s%" PRId64, i ? ", " : "", t->layout.p[i].extent);
}

static void tensor_comment(const struct library *l, bool output, int k, struct strbuf *out)
{
    struct tensor t = tensor_of(l, output, k);
    strbuf_addf(out, " *   %s[%d]  ", output ? "out" : "in", k);
    add_comment(t.value->name, out);
    strbuf_adds(out, "  [");
    add_dims(&t, out);
    strbuf_adds(out, "]");
    if (!layout_is_plain(&t.layout)) {
        strbuf_adds(out, ": channels in blocks, of [");
        for (int i = 0; i < t.layout.nr_l; i++)
            strbuf_addf(out, "%s%" PRId64, i ? ", " : "", t.layout.l[i]);
        strbuf_adds(out, "], padded with zeros");
    }
    strbuf_adds(out, "\n");
}

static void tensor_table(const struct library *l, bool output, struct strbuf *out)
{
    const struct graph *g = l->o->plan->graph;
    int nr = output ? g->nr_outputs : g->nr_inputs;
    expand(l, "API const struct @_tensor @_", out);
    strbuf_addf(out, "%s[%d] = {\n", output ? "output" : "input", nr ? nr : 1);
    for (int k = 0; k < nr; k++) {
        struct tensor t = tensor_of(l, output, k);
        strbuf_adds(out, "    {");
        add_string(t.value->name, out);
        strbuf_addf(out, ", %d, {", t.layout.nr_p);
        add_dims(&t, out);
        strbuf_addf(out, "}, %" PRId64 "},\n", layout_stored_size(&t.layout));
    }
    if (!nr)
        strbuf_adds(out, "    {0, 0, {0}, 0},\n");
    strbuf_adds(out, "};\n");
}

/* ---- the header ---- */

static const char header_head[] =
    "#ifndef $_H\n"
    "#define $_H\n"
    "\n"
    "#include <stddef.h>\n"
    "\n"
    "#ifdef __cplusplus\n"
    "extern \"C\" {\n"
    "#endif\n"
    "\n"
    "/*\n"
    " * Tensors are float32, dense, the last dimension contiguous. They are used where they are:\n"
    " * outputs overlap no input and no other output. Any alignment will do; 64 bytes is fastest.\n"
    " *\n";

static const char header_rest[] =
    "struct @;\n"
    "\n"
    "struct @_tensor {\n"
    "    const char *name;\n"
    "    int rank;\n"
    "    long long dim[24];\n"
    "    long long elements; /* the product of dim[] */\n"
    "};\n"
    "\n"
    "extern const struct @_tensor @_input[], @_output[];\n"
    "\n"
    "/*\n"
    " * NULL where it cannot be made: the processor lacks what the kernels need, there is no memory,\n"
    " * or the weights are missing; `why` (may be NULL) then gets one sentence.\n";

static const char header_weights_inside[] =
    " * `weights` is not used: they are inside.\n";

static const char header_weights_file[] =
    " * `weights` is the path of @.weights; NULL: it lies beside the shared library, or, with\n"
    " * @.o in a program, beside that. The file is mapped, so that processes share it.\n";

static const char header_end[] =
    " */\n"
    "struct @ *@_create(const char *weights, char *why, size_t why_size);\n"
    "void @_free(struct @ *m); /* m may be NULL */\n"
    "\n"
    "/* Computes all outputs. One thread at a time for each m; several m at the same time. */\n"
    "void @_run(struct @ *m, const float *const in[], float *const out[]);\n"
    "\n"
    "/* The number of threads that the next runs use, 1 to $_THREADS, at first all of them.\n"
    " * Returns the number taken. */\n"
    "int @_threads(struct @ *m, int threads);\n"
    "\n"
    "#ifdef __cplusplus\n"
    "}\n"
    "#endif\n"
    "\n"
    "#endif\n";

void library_header(const struct library *l, struct strbuf *out)
{
    const struct graph *g = l->o->plan->graph;
    const struct device_info *info = l->o->backend->target_info(l->o->target);
    expand(l, "/* @.h: ", out);
    add_comment(l->o->about, out);
    strbuf_adds(out, " */\n");
    expand(l, header_head, out);
    for (int k = 0; k < g->nr_inputs; k++)
        tensor_comment(l, false, k, out);
    for (int k = 0; k < g->nr_outputs; k++)
        tensor_comment(l, true, k, out);
    strbuf_adds(out, " */\n");
    expand(l, "enum { $_INPUTS = ", out);
    strbuf_addf(out, "%d, ", g->nr_inputs);
    expand(l, "$_OUTPUTS = ", out);
    strbuf_addf(out, "%d, ", g->nr_outputs);
    expand(l, "$_THREADS = ", out);
    strbuf_addf(out, "%d };\n\n", info->threads);
    expand(l, header_rest, out);
    expand(l, l->r->weights_inside ? header_weights_inside : header_weights_file, out);
    expand(l, header_end, out);
}

/* ---- the source ---- */

static const char source_head[] =
    "#define _GNU_SOURCE\n"
    "#include \"@.h\"\n"
    "\n"
    "#include <dlfcn.h>\n"
    "#include <errno.h>\n"
    "#include <fcntl.h>\n"
    "#include <stdarg.h>\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "#include <sys/mman.h>\n"
    "#include <sys/stat.h>\n"
    "#include <unistd.h>\n"
    "\n"
    "#define API __attribute__((visibility(\"default\")))\n"
    "#define HIDDEN __attribute__((visibility(\"hidden\")))\n"
    "\n";

static const char source_struct[] =
    "struct @ {\n"
    "    float *arena;         /* activations; their places are planned, see @_run() */\n"
    "    const float *weights; /* packed as the kernels read them */\n"
    "    void *map[2];         /* of the arena, and of the file of weights */\n"
    "    int threads;\n"
    "};\n"
    "\n"
    "static struct @ *fail(struct @ *m, char *why, size_t size, const char *fmt, ...)\n"
    "{\n"
    "    va_list ap;\n"
    "    va_start(ap, fmt);\n"
    "    if (why && size)\n"
    "        vsnprintf(why, size, fmt, ap);\n"
    "    va_end(ap);\n"
    "    @_free(m);\n"
    "    return NULL;\n"
    "}\n"
    "\n";

static const char source_arena[] =
    "/* On huge pages, where the system has them: aligned to their size. */\n"
    "static int make_arena(struct @ *m)\n"
    "{\n"
    "    const size_t huge = (size_t)2 << 20;\n"
    "    void *map = mmap(NULL, ARENA_MAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,\n"
    "                     -1, 0);\n"
    "    if (map == MAP_FAILED)\n"
    "        return -1;\n"
    "    m->map[0] = map;\n"
    "    m->arena = (float *)(((size_t)map + huge - 1) / huge * huge);\n"
    "    madvise(m->arena, ARENA_BYTES, MADV_HUGEPAGE);\n"
    "    return 0;\n"
    "}\n"
    "\n";

static const char source_map_weights[] =
    "static const char weights_head[64] = \"squall weights \" WEIGHTS_ID;\n"
    "\n"
    "/* Beside the library that this function is in. */\n"
    "static const char *beside(char *path, size_t size)\n"
    "{\n"
    "    Dl_info info;\n"
    "    const char *file = dladdr((void *)&@_create, &info) ? info.dli_fname : \"\";\n"
    "    const char *slash = strrchr(file, '/');\n"
    "    snprintf(path, size, \"%.*s@.weights\", slash ? (int)(slash + 1 - file) : 0, file);\n"
    "    return path;\n"
    "}\n"
    "\n"
    "static const char *map_weights(struct @ *m, const char *path)\n"
    "{\n"
    "    struct stat st;\n"
    "    int fd = open(path, O_RDONLY | O_CLOEXEC);\n"
    "    if (fd < 0)\n"
    "        return strerror(errno);\n"
    "    int known = !fstat(fd, &st) && st.st_size == WEIGHTS_BYTES;\n"
    "    void *map = known ? mmap(NULL, WEIGHTS_BYTES, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;\n"
    "    close(fd);\n"
    "    if (!known)\n"
    "        return \"it is not of this build\";\n"
    "    if (map == MAP_FAILED)\n"
    "        return strerror(errno);\n"
    "    m->map[1] = map;\n"
    "    m->weights = (const float *)map + 16;\n"
    "    return memcmp(map, weights_head, strlen(weights_head)) ? \"it is not of this build\" : NULL;\n"
    "}\n"
    "\n";

static const char source_create[] =
    "API struct @ *@_create(const char *weights, char *why, size_t why_size)\n"
    "{\n"
    "    const char *lacking = missing_feature();\n"
    "    if (lacking)\n"
    "        return fail(NULL, why, why_size, \"this processor lacks %s\", lacking);\n"
    "    struct @ *m = calloc(1, sizeof *m);\n"
    "    if (!m || make_arena(m))\n"
    "        return fail(m, why, why_size, \"not enough memory\");\n"
    "    m->threads = $_THREADS;\n";

static const char source_create_inside[] =
    "    (void)weights;\n"
    "    m->weights = @_weights + 16;\n"
    "    return m;\n"
    "}\n"
    "\n";

static const char source_create_file[] =
    "    char path[4096];\n"
    "    if (!weights)\n"
    "        weights = beside(path, sizeof path);\n"
    "    const char *failed = map_weights(m, weights);\n"
    "    if (failed)\n"
    "        return fail(m, why, why_size, \"cannot use the weights %s: %s\", weights, failed);\n"
    "    return m;\n"
    "}\n"
    "\n";

static const char source_free[] =
    "API void @_free(struct @ *m)\n"
    "{\n"
    "    if (m && m->map[0])\n"
    "        munmap(m->map[0], ARENA_MAP);\n"
    "    if (m && m->map[1])\n"
    "        munmap(m->map[1], WEIGHTS_BYTES);\n"
    "    free(m);\n"
    "}\n"
    "\n"
    "API int @_threads(struct @ *m, int threads)\n"
    "{\n"
    "    m->threads = threads < 1 ? 1 : threads > $_THREADS ? $_THREADS : threads;\n"
    "    return m->threads;\n"
    "}\n"
    "\n"
    "/* Floats of the arena, the weights, the caller's arrays. */\n"
    "#define A(offset) (m->arena + (offset))\n"
    "#define W(offset) ((void *)(m->weights + (offset)))\n"
    "#define X(i, offset) ((void *)(in[i] + (offset)))\n"
    "#define Y(i, offset) (out[i] + (offset))\n"
    "#define CALL(kernel, ...) kernel((void *[]){__VA_ARGS__})\n"
    "\n"
    "API void @_run(struct @ *m, const float *const in[], float *const out[])\n"
    "{\n"
    "    (void)in;\n"
    "    (void)out;\n";

static bool is_parallel(const struct library *l)
{
    return l->o->backend->target_info(l->o->target)->threads > 1;
}

static void add_kernels(const struct library *l, struct strbuf *out)
{
    strbuf_adds(out, "/* Kernels: machine code, called with the arrays they read and write. */\n");
    for (int i = 0; i < l->o->tasks->nr; i++) {
        if (!l->kernel[i].nr_buffers)
            continue;
        expand(l, "HIDDEN void @", out);
        strbuf_addf(out, "_k%d(void *const *array); /* ", i);
        add_comment(l->o->tasks->task[i]->name, out);
        strbuf_adds(out, ": ");
        add_comment(l->stale[i] ? "default, the stored schedule is of another version"
                                : l->o->origin[i],
                    out);
        strbuf_adds(out, " */\n");
    }
    if (is_parallel(l))
        strbuf_adds(out, "\n/* Of libgomp, which runs the parallel kernels. */\n"
                         "int omp_get_max_threads(void);\n"
                         "void omp_set_num_threads(int n);\n");
    strbuf_adds(out, "\n");
}

static void add_features(const struct library *l, struct strbuf *out)
{
    const char *needs = l->o->backend->target_info(l->o->target)->needs;
    strbuf_adds(out, "static const char *missing_feature(void)\n{\n    __builtin_cpu_init();\n");
    for (size_t n; *needs; needs += n + (needs[n] == ' ')) {
        n = strcspn(needs, " ");
        strbuf_addf(out, "    if (!__builtin_cpu_supports(\"%.*s\"))\n        return \"%.*s\";\n",
                    (int)n, needs, (int)n, needs);
    }
    strbuf_adds(out, "    return NULL;\n}\n\n");
}

static void add_address(const struct library *l, const struct address *a, struct strbuf *out)
{
    int64_t base = a->place == PLACE_ARENA
                       ? l->item[a->index].offset / (int64_t)sizeof(float)
                       : 0;
    static const char letter[] = {[PLACE_ARENA] = 'A', [PLACE_WEIGHTS] = 'W', [PLACE_INPUT] = 'X',
                                  [PLACE_OUTPUT] = 'Y'};
    strbuf_addf(out, "%c(", letter[a->place]);
    if (a->place == PLACE_INPUT || a->place == PLACE_OUTPUT)
        strbuf_addf(out, "%d, ", a->index);
    strbuf_addf(out, "%" PRId64 ")", base + a->offset);
}

static void add_calls(const struct library *l, struct strbuf *out)
{
    for (int i = 0; i < l->r->nr_calls; i++) {
        const struct library_call *c = &l->call[i];
        expand(l, "    CALL(@", out);
        strbuf_addf(out, "_k%d", c->task);
        for (int k = 0; k < c->nr; k++) {
            strbuf_adds(out, ", ");
            add_address(l, &c->buf[k], out);
        }
        strbuf_adds(out, ");\n");
    }
}

/* Outputs that no kernel could write where the caller wants them. */
static void add_copies(const struct library *l, struct strbuf *out)
{
    for (int k = 0; k < l->o->plan->graph->nr_outputs; k++) {
        const struct address *a = &l->output[k];
        if (a->place == PLACE_OUTPUT && a->index == k && !a->offset)
            continue;
        struct tensor t = tensor_of(l, true, k);
        strbuf_addf(out, "    memcpy(out[%d], ", k);
        add_address(l, a, out);
        strbuf_addf(out, ", %" PRId64 " * sizeof(float));\n", layout_stored_size(&t.layout));
    }
}

void library_source(const struct library *l, struct strbuf *out)
{
    bool inside = l->r->weights_inside;
    expand(l, "/* @.c: ", out);
    add_comment(l->o->about, out);
    strbuf_adds(out, " */\n");
    expand(l, source_head, out);
    strbuf_addf(out, "#define ARENA_BYTES ((size_t)%" PRId64 ") /* %" PRId64
                     " without sharing memory */\n",
                l->r->arena_bytes, l->r->apart_bytes);
    strbuf_adds(out, "#define ARENA_MAP (ARENA_BYTES + ((size_t)2 << 20) + 64)\n");
    strbuf_addf(out, "#define WEIGHTS_BYTES %" PRId64 "\n#define WEIGHTS_ID \"%s\"\n\n",
                l->r->weights_bytes, l->weights_id);
    if (inside)
        expand(l, "extern const float @_weights[] HIDDEN;\n\n", out);
    add_kernels(l, out);
    tensor_table(l, false, out);
    tensor_table(l, true, out);
    strbuf_addc(out, '\n');
    expand(l, source_struct, out);
    add_features(l, out);
    expand(l, source_arena, out);
    if (!inside)
        expand(l, source_map_weights, out);
    expand(l, source_create, out);
    expand(l, inside ? source_create_inside : source_create_file, out);
    expand(l, source_free, out);
    if (is_parallel(l))
        strbuf_adds(out, "    int before = omp_get_max_threads();\n"
                         "    omp_set_num_threads(m->threads);\n");
    add_calls(l, out);
    add_copies(l, out);
    if (is_parallel(l))
        strbuf_adds(out, "    omp_set_num_threads(before);\n");
    strbuf_adds(out, "}\n");
}
