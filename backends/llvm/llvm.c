/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Target, builder and loader.
 *
 * Building runs no IR passes and code generation at level 2: the emitted IR is in its final shape,
 * passes would double the time and change nothing (measured: the speed of hand-tiled kernels is the
 * same with and without -O2, at half the build time). One context and target machine a builder.
 */
#include "backends/llvm/llvm.h"

#include <llvm-c/Core.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/llvm/emit.h"
#include "backends/canary.h"
#include "backends/llvm/peak.h"
#include "engine/base/arena.h"
#include "engine/tensor/sketch.h"

/* A context keeps every type and constant it ever saw: renewed after this many builds. */
enum { BUILDS_PER_CONTEXT = 256 };

struct target {
    struct device_info info;
    char *cpu, *features, *triple;
    struct sketch_target sketch;
};

struct builder {
    const struct target *t;
    LLVMTargetMachineRef machine;
    LLVMContextRef ctx;
    int builds;
};

/* Every kernel has the same entry symbol, so those loaded at one time are in JITs of their own. */
struct jit_slot {
    LLVMOrcLLJITRef jit; /* NULL until first used */
    LLVMOrcResourceTrackerRef tracker;
};

/* More than a runner keeps. */
enum { MAX_LOADED = 64 };

struct loader {
    struct jit_slot slot[MAX_LOADED];
};

static void init_llvm_once(void)
{
    /* Instructions stay in the order in which the schedule says them. LLVM's own, of large unrolled
     * bodies, loads early whatever it can, and then spills: they took up to twice as long. Pointers
     * are stepped by the emitter, not by the loop strength reduction. */
    const char *const option[] = {"squall", "-enable-misched=false", "-enable-post-misched=false",
                                  "-disable-lsr"};
    LLVMParseCommandLineOptions(sizeof option / sizeof *option, option, NULL);
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMInitializeNativeAsmParser();
}

static void init_llvm(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_llvm_once);
}

/* Target. */

/* What is known of x86-64 processors by name, where it is not this machine. */
static const struct {
    const char *prefix;
    int lanes;
} cpu_lanes[] = {
    {"x86-64-v4", 16}, {"skylake-avx512", 16}, {"skx", 16},        {"cascadelake", 16},
    {"cooperlake", 16}, {"icelake", 16},       {"sapphirerapids", 16}, {"emeraldrapids", 16},
    {"graniterapids", 16}, {"tigerlake", 16},  {"rocketlake", 16}, {"knl", 16},
    {"znver4", 16},    {"znver5", 16},         {"x86-64-v3", 8},   {"haswell", 8},
    {"broadwell", 8},  {"skylake", 8},         {"alderlake", 8},   {"raptorlake", 8},
    {"znver1", 8},     {"znver2", 8},          {"znver3", 8},      {"sandybridge", 8},
    {"ivybridge", 8},  {"x86-64-v2", 4},       {"x86-64", 4},      {"nehalem", 4},
};

static bool has_feature(const char *features, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = features; (p = strstr(p, name)); p += len)
        if ((p == features || p[-1] == ',') && (p[len] == ',' || !p[len]))
            return true;
    return false;
}

static void read_line_after(const char *path, const char *key, char *out, size_t size)
{
    FILE *f = fopen(path, "r");
    char line[512];
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) != 0 || !colon)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, size, "%s", colon + 2);
        break;
    }
    if (f)
        fclose(f);
}

static void set_cpu(struct target *t, const char *name)
{
    t->cpu = xstrdup(name);
    t->features = xstrdup("");
    t->sketch.lanes = 4;
    for (size_t i = 0; i < sizeof cpu_lanes / sizeof cpu_lanes[0]; i++)
        if (strncmp(name, cpu_lanes[i].prefix, strlen(cpu_lanes[i].prefix)) == 0) {
            t->sketch.lanes = cpu_lanes[i].lanes;
            break;
        }
}

static void set_host(struct target *t)
{
    char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
    t->cpu = xstrdup(cpu);
    t->features = xstrdup(features);
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    t->sketch.lanes = has_feature(t->features, "+avx512f") ? 16
                      : has_feature(t->features, "+avx")   ? 8
                                                           : 4;
}

/* What of the processor the code is going to use, for a library to check where it is run. */
static void list_needs(const struct target *t, bool host, char *out, size_t size)
{
    static const char *const all[] = {"avx",     "avx2",     "fma",      "avx512f",
                                      "avx512bw", "avx512dq", "avx512vl"};
    bool old = !strncmp(t->cpu, "sandybridge", 11) || !strncmp(t->cpu, "ivybridge", 9);
    int level = t->sketch.lanes == 16 ? !strcmp(t->cpu, "knl") ? 4 : 7
                : t->sketch.lanes == 8 ? old ? 1 : 3
                                       : 0;
    for (int i = 0; i < 7; i++) {
        char feature[16];
        snprintf(feature, sizeof feature, "+%s", all[i]);
        size_t len = strlen(out);
        if (host ? has_feature(t->features, feature) : i < level)
            snprintf(out + len, size - len, "%s%s", len ? " " : "", all[i]);
    }
}

static LLVMTargetMachineRef new_machine(const struct target *t, struct err *e)
{
    LLVMTargetRef target;
    char *text = NULL;
    if (LLVMGetTargetFromTriple(t->triple, &target, &text)) {
        err_set(e, ERR_BACKEND, "LLVM knows no target \"%s\": %s", t->triple, text);
        LLVMDisposeMessage(text);
        return NULL;
    }
    LLVMTargetMachineRef m =
        LLVMCreateTargetMachine(target, t->triple, t->cpu, t->features, LLVMCodeGenLevelDefault,
                                LLVMRelocPIC, LLVMCodeModelSmall);
    if (!m)
        err_set(e, ERR_BACKEND, "LLVM makes no code for \"%s\"", t->cpu);
    return m;
}

/* LLVM prints a warning and goes on with an unknown processor; that is a user's mistake here. */
static bool is_known_cpu(const char *cpu)
{
    for (size_t i = 0; i < sizeof cpu_lanes / sizeof cpu_lanes[0]; i++)
        if (strncmp(cpu, cpu_lanes[i].prefix, strlen(cpu_lanes[i].prefix)) == 0)
            return true;
    return false;
}

static void llvm_target_close(struct target *t)
{
    if (!t)
        return;
    free(t->cpu);
    free(t->features);
    if (t->triple)
        LLVMDisposeMessage(t->triple);
    free(t);
}

static int llvm_target_open(const char *spec, int threads, struct target **out, struct err *e)
{
    init_llvm();
    struct target *t = xcalloc(1, sizeof *t);
    t->triple = LLVMGetDefaultTargetTriple();
    const char *cpu = strncmp(spec, "cpu=", 4) == 0 ? spec + 4 : NULL;
    int rc = 0;
    if (*spec && !cpu)
        rc = err_set(e, ERR_USAGE, "target option \"%s\" is unknown; llvm takes cpu=NAME", spec);
    else if (cpu && !is_known_cpu(cpu))
        rc = err_set(e, ERR_USAGE, "cpu \"%s\" is unknown; try x86-64-v3, x86-64-v4, haswell, "
                     "skylake-avx512, znver3 or znver4", cpu);
    if (rc) {
        llvm_target_close(t);
        return rc;
    }
    if (cpu)
        set_cpu(t, cpu);
    else
        set_host(t);
    t->sketch.registers = t->sketch.lanes == 16 ? 32 : 16;
    t->sketch.threads = threads;
    long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    t->sketch.l1_bytes = l1 > 0 ? l1 : 32 << 10;
    t->sketch.l2_bytes = l2 > 0 ? l2 : 1 << 20;
    struct device_info *info = &t->info;
    unsigned major, minor, patch;
    LLVMGetVersion(&major, &minor, &patch);
    snprintf(info->compiler, sizeof info->compiler, "LLVM %u.%u.%u", major, minor, patch);
    snprintf(info->target, sizeof info->target, "llvm:cpu=%s", t->cpu);
    char model[96] = "unknown processor";
    read_line_after("/proc/cpuinfo", "model name", model, sizeof model);
    info->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    snprintf(info->hardware, sizeof info->hardware, "%s, %d cores", model, info->cores);
    list_needs(t, !cpu, info->needs, sizeof info->needs);
    info->lanes = t->sketch.lanes;
    info->registers = t->sketch.registers;
    info->threads = threads;
    if (!cpu) {
        LLVMTargetMachineRef machine = new_machine(t, NULL);
        if (machine) {
            info->peak_gflops = threads * measure_peak_gflops(machine, t->cpu, t->features,
                                                              info->lanes, info->registers);
            LLVMDisposeTargetMachine(machine);
        }
    }
    *out = t;
    return 0;
}

static const struct device_info *llvm_target_info(const struct target *t)
{
    return &t->info;
}

static int llvm_space(const struct target *t, const struct task *task, struct space *out,
                      struct err *e)
{
    return sketches_of(&task->wl, &t->sketch, out, e);
}

/* Building. */

static struct builder *llvm_builder_new(const struct target *t, struct err *e)
{
    LLVMTargetMachineRef machine = new_machine(t, e);
    if (!machine)
        return NULL;
    struct builder *b = xcalloc(1, sizeof *b);
    b->t = t;
    b->machine = machine;
    b->ctx = LLVMContextCreate();
    return b;
}

static void llvm_builder_free(struct builder *b)
{
    if (!b)
        return;
    LLVMDisposeTargetMachine(b->machine);
    LLVMContextDispose(b->ctx);
    free(b);
}

/* The kernel's buffers, in the order of its arguments. */
static int describe_buffers(const struct workload *w, const struct loop_program *p,
                            const struct emit_args *args, struct artifact *out, struct err *e)
{
    if (args->nr > ARTIFACT_MAX_BUFFERS)
        return err_set(e, ERR_LIMIT, "more than %d buffers", ARTIFACT_MAX_BUFFERS);
    for (int i = 0; i < args->nr; i++) {
        const struct lp_buffer *b = &p->buffer[args->buffer[i]];
        struct buffer *to = &out->buf[out->nr_buffers++];
        *to = (struct buffer){.role = BUF_SCRATCH, .tensor = -1};
        int64_t floats = b->per_thread ? emit_thread_stride(b) * p->threads : b->size;
        to->bytes = floats * (int64_t)sizeof(float);
        if (b->scope != LP_TENSOR)
            continue;
        static const enum buffer_role role[] = {[WL_INPUT] = BUF_INPUT, [WL_CONST] = BUF_CONST,
                                                [WL_OUTPUT] = BUF_OUTPUT};
        to->role = role[w->tensor[b->tensor].role];
        to->tensor = b->tensor;
        to->layout = b->layout;
    }
    return 0;
}

static int emit_object(struct builder *b, LLVMModuleRef mod, struct artifact *out, struct err *e)
{
    char *text = NULL;
    LLVMMemoryBufferRef object;
    if (LLVMTargetMachineEmitToMemoryBuffer(b->machine, mod, LLVMObjectFile, &text, &object)) {
        err_set(e, ERR_BACKEND, "LLVM could not make code: %s", text);
        LLVMDisposeMessage(text);
        return ERR_BACKEND;
    }
    out->code_bytes = LLVMGetBufferSize(object);
    out->code = xmalloc(out->code_bytes);
    memcpy(out->code, LLVMGetBufferStart(object), out->code_bytes);
    LLVMDisposeMemoryBuffer(object);
    return 0;
}

static int build(struct builder *b, const struct task *task, const struct space *s,
                 const struct candidate *c, const char *entry, struct artifact *out, struct err *e)
{
    struct loop_program p;
    int rc = lower(&task->wl, s, c, &p, e);
    if (rc)
        return rc;
    if (++b->builds % BUILDS_PER_CONTEXT == 0) {
        LLVMContextDispose(b->ctx);
        b->ctx = LLVMContextCreate();
    }
    LLVMModuleRef mod = LLVMModuleCreateWithNameInContext("kernel", b->ctx);
    LLVMSetTarget(mod, b->t->triple);
    LLVMTargetDataRef data = LLVMCreateTargetDataLayout(b->machine);
    LLVMSetModuleDataLayout(mod, data);
    LLVMDisposeTargetData(data);
    struct emit_target target = {b->t->cpu, b->t->features, b->t->sketch.lanes, entry};
    struct emit_args args;
    *out = (struct artifact){.threads = p.threads};
    snprintf(out->backend, sizeof out->backend, "%s", llvm_backend.name);
    snprintf(out->entry, sizeof out->entry, "%s", EMIT_ENTRY);
    rc = emit_program(mod, &p, &target, &args, e);
    if (!rc)
        rc = describe_buffers(&task->wl, &p, &args, out, e);
    if (!rc)
        rc = emit_object(b, mod, out, e);
    LLVMDisposeModule(mod);
    loop_program_release(&p);
    return rc;
}

static int llvm_build(struct builder *b, const struct task *task, const struct space *s,
                      const struct candidate *c, struct artifact *out, struct err *e)
{
    return build(b, task, s, c, NULL, out, e);
}

/* Loading, in the runner. */

static int orc_error(LLVMErrorRef error, const char *what, struct err *e)
{
    if (!error)
        return 0;
    char *text = LLVMGetErrorMessage(error);
    err_set(e, ERR_BACKEND, "%s: %s", what, text);
    LLVMDisposeErrorMessage(text);
    return ERR_BACKEND;
}

static int new_jit(LLVMOrcLLJITRef *jit, struct err *e)
{
    LLVMOrcDefinitionGeneratorRef process = NULL;
    int rc = orc_error(LLVMOrcCreateLLJIT(jit, NULL), "LLVM's JIT does not start", e);
    if (rc)
        return rc;
    rc = orc_error(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                       &process, LLVMOrcLLJITGetGlobalPrefix(*jit), NULL, NULL),
                   "LLVM's JIT sees no symbols", e);
    if (rc) {
        LLVMConsumeError(LLVMOrcDisposeLLJIT(*jit));
        *jit = NULL;
        return rc;
    }
    LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(*jit), process);
    return 0;
}

static void llvm_unload(struct loader *l, struct loaded *k)
{
    (void)l;
    struct jit_slot *s = k->handle;
    if (!s)
        return;
    LLVMConsumeError(LLVMOrcResourceTrackerRemove(s->tracker));
    LLVMOrcReleaseResourceTracker(s->tracker);
    s->tracker = NULL;
    *k = (struct loaded){0};
}

static void llvm_loader_free(struct loader *l)
{
    for (int i = 0; l && i < MAX_LOADED; i++) {
        struct loaded k = {.handle = l->slot[i].tracker ? &l->slot[i] : NULL};
        llvm_unload(l, &k);
        if (l->slot[i].jit)
            LLVMConsumeError(LLVMOrcDisposeLLJIT(l->slot[i].jit));
    }
    free(l);
}

/* Parallel kernels find the OpenMP runtime in this process; the call makes the linker keep it. */
extern int omp_get_max_threads(void);

static struct loader *llvm_loader_new(struct err *e)
{
    init_llvm();
    if (omp_get_max_threads() < 1) {
        err_set(e, ERR_BACKEND, "the OpenMP runtime does not start");
        return NULL;
    }
    struct loader *l = xcalloc(1, sizeof *l);
    if (new_jit(&l->slot[0].jit, e)) {
        llvm_loader_free(l);
        return NULL;
    }
    return l;
}

static int llvm_load(struct loader *l, const struct artifact *a, struct loaded *out,
                     struct err *e)
{
    *out = (struct loaded){0};
    int i = 0;
    while (i < MAX_LOADED && l->slot[i].tracker)
        i++;
    if (i == MAX_LOADED)
        return err_set(e, ERR_LIMIT, "more than %d kernels at a time", MAX_LOADED);
    struct jit_slot *s = &l->slot[i];
    int rc = s->jit ? 0 : new_jit(&s->jit, e);
    if (rc)
        return rc;
    s->tracker = LLVMOrcJITDylibCreateResourceTracker(LLVMOrcLLJITGetMainJITDylib(s->jit));
    out->handle = s;
    LLVMMemoryBufferRef object =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(a->code, a->code_bytes, "kernel");
    LLVMOrcExecutorAddress address = 0;
    rc = orc_error(LLVMOrcLLJITAddObjectFileWithRT(s->jit, s->tracker, object),
                   "cannot add the kernel", e);
    if (!rc)
        rc = orc_error(LLVMOrcLLJITLookup(s->jit, &address, a->entry), "cannot link the kernel",
                       e);
    if (rc) {
        llvm_unload(l, out);
        return rc;
    }
    void *pointer = (void *)(uintptr_t)address;
    memcpy(&out->call, &pointer, sizeof out->call);
    return 0;
}

const struct backend llvm_backend = {
    .name = "llvm",
    .summary = "CPU kernels through LLVM",
    .target_open = llvm_target_open,
    .target_close = llvm_target_close,
    .target_info = llvm_target_info,
    .space = llvm_space,
    .builder_new = llvm_builder_new,
    .builder_free = llvm_builder_free,
    .build = llvm_build,
    .build_object = build,
    .loader_new = llvm_loader_new,
    .loader_free = llvm_loader_free,
    .load = llvm_load,
    .unload = llvm_unload,
    .canary = canary_host,
};
