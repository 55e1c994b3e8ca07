/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_kernels: squall's tuned kernels beside oneDNN and OpenBLAS, in one run on one core or more.
 *
 *   bench_kernels SESSION...                      the best candidates of squall's sessions
 *   bench_kernels --kernel WORKLOAD=CODE ...      candidates by code; "start": the untuned one
 *   bench_kernels --layer WORKLOAD SESSION ...    other layers than the usual few
 *
 * Every entrant's output is compared with the task's reference before anything is timed. Then
 * rounds: in each one, every entrant of the layer makes one slice of calls, forwards and backwards
 * in turn, so that a change of the clock or a busy neighbour meets all of them. The peak is an
 * entrant, too. tests/bench/run.sh and layers.sh tune the layers and run this.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "tests/bench/bench.h"

static const char *const default_layers[] = {
    "matmul:1024x1024x1024",
    "matmul:1024x1024x1024,const",
    /* of ResNet-50; the same three for which figures of other machines are known */
    "conv2d:C=64,H=56,W=56,K=64,R=3,S=3,pad=1",
    "conv2d:C=256,H=14,W=14,K=256,R=3,S=3,pad=1",
    "conv2d:C=256,H=14,W=14,K=1024,R=1,S=1,pad=0",
};

enum { NR_DEFAULT_LAYERS = sizeof default_layers / sizeof default_layers[0], MAX_KERNELS = 64 };

struct options {
    const char *kernel[MAX_KERNELS]; /* WORKLOAD=CODE */
    const char *layer[MAX_LAYERS];   /* instead of the default ones */
    int nr_kernels, nr_layers, rounds, threads, cpu, top;
    double slice_ms;
    const char *only;
    bool json;
};

struct bench {
    struct layer *layer[MAX_LAYERS];
    int nr_layers;
    struct cores cores;
    struct tuned *tuned;
    struct openblas *openblas[2];
    bool wrong; /* squall's output was, or its candidate could not be built */
};

static void usage(FILE *f)
{
    fprintf(f,
            "usage: bench_kernels [OPTION]... [SESSION]...\n"
            "  --kernel WORKLOAD=CODE  a candidate; CODE \"start\" is the untuned schedule\n"
            "  --layer WORKLOAD        a layer, in place of the default ones\n"
            "  --only TEXT             only layers with TEXT in their names\n"
            "  --top N                 candidates of a session that qualify (3, at most %d)\n"
            "  --rounds N              samples of each entrant (31, at most %d)\n"
            "  --slice MS              length of a sample (10)\n"
            "  --threads N             of every entrant, on as many cores (1)\n"
            "  --cpu N                 core of one thread (the last one that may be used)\n"
            "  --json                  everything, as JSON\n",
            MAX_CODES, MAX_ROUNDS);
}

static int read_number(const char *text, double least, double most, double *out, struct err *e)
{
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    if (end == text || *end || errno || !(*out >= least && *out <= most))
        return err_set(e, ERR_USAGE, "\"%s\" is not a number from %g to %g", text, least, most);
    return 0;
}

/* 0, or ERR_USAGE; 1 after --help. What is left in argv from optind on are sessions. */
static int read_options(int argc, char **argv, struct options *o, struct err *e)
{
    enum { KERNEL = 256, LAYER, ONLY, TOP, ROUNDS, SLICE, THREADS, CPU, JSON, HELP };
    static const struct option longopts[] = {
        {"kernel", required_argument, NULL, KERNEL},
        {"layer", required_argument, NULL, LAYER},
        {"only", required_argument, NULL, ONLY},
        {"top", required_argument, NULL, TOP},
        {"rounds", required_argument, NULL, ROUNDS},
        {"slice", required_argument, NULL, SLICE},
        {"threads", required_argument, NULL, THREADS},
        {"cpu", required_argument, NULL, CPU},
        {"json", no_argument, NULL, JSON},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    *o = (struct options){.rounds = 31, .threads = 1, .cpu = -1, .top = 3, .slice_ms = 10};
    int rc = 0;
    for (int c; !rc && (c = getopt_long(argc, argv, "", longopts, NULL)) != -1;) {
        double v = 0;
        if (c == KERNEL && o->nr_kernels == MAX_KERNELS)
            rc = err_set(e, ERR_USAGE, "more than %d kernels", MAX_KERNELS);
        else if (c == KERNEL)
            o->kernel[o->nr_kernels++] = optarg;
        else if (c == LAYER && o->nr_layers == MAX_LAYERS)
            rc = err_set(e, ERR_USAGE, "more than %d layers", MAX_LAYERS);
        else if (c == LAYER)
            o->layer[o->nr_layers++] = optarg;
        else if (c == ONLY)
            o->only = optarg;
        else if (c == JSON)
            o->json = true;
        else if (c == SLICE)
            rc = read_number(optarg, 0.01, 10e3, &o->slice_ms, e);
        else if (c == TOP && !(rc = read_number(optarg, 1, MAX_CODES, &v, e)))
            o->top = (int)v;
        else if (c == ROUNDS && !(rc = read_number(optarg, 1, MAX_ROUNDS, &v, e)))
            o->rounds = (int)v;
        else if (c == THREADS && !(rc = read_number(optarg, 1, MAX_CORES, &v, e)))
            o->threads = (int)v;
        else if (c == CPU && !(rc = read_number(optarg, 0, CPU_SETSIZE - 1, &v, e)))
            o->cpu = (int)v;
        else if (c == HELP) {
            usage(stdout);
            return 1;
        } else if (c == '?') {
            usage(stderr);
            return err_set(e, ERR_USAGE, "wrong usage");
        }
    }
    if (!rc && o->threads > 1 && o->cpu >= 0)
        rc = err_set(e, ERR_USAGE, "--cpu is for one thread");
    return rc;
}

static struct layer *find_layer(const struct bench *b, const char *name)
{
    for (int i = 0; i < b->nr_layers; i++)
        if (strcmp(b->layer[i]->name, name) == 0)
            return b->layer[i];
    return NULL;
}

static int add_layer(struct bench *b, const struct options *o, const char *name, struct err *e)
{
    if ((o->only && !strstr(name, o->only)) || find_layer(b, name))
        return 0;
    if (b->nr_layers == MAX_LAYERS)
        return err_set(e, ERR_LIMIT, "more than %d layers", MAX_LAYERS);
    struct layer *l = xcalloc(1, sizeof *l);
    b->layer[b->nr_layers++] = l;
    return layer_init(l, name, tuned_lanes(b->tuned), &b->cores, e);
}

/* WORKLOAD=CODE; there are more "=" in the workload, none in the code. */
static int add_kernel(struct bench *b, const struct options *o, const char *text, struct err *e)
{
    const char *code = strrchr(text, '=');
    if (!code || !code[1])
        return err_set(e, ERR_USAGE, "\"%s\" is not WORKLOAD=CODE", text);
    char *name = xstrdup(text);
    name[code - text] = '\0';
    int rc = add_layer(b, o, name, e);
    struct layer *l = rc ? NULL : find_layer(b, name);
    if (l && l->nr_codes == MAX_CODES)
        rc = err_set(e, ERR_LIMIT, "more than %d candidates of \"%s\"", MAX_CODES, name);
    else if (l)
        l->code[l->nr_codes++] = xstrdup(code + 1);
    free(name);
    return rc;
}

static int gather(struct bench *b, const struct options *o, char *const *session, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < NR_DEFAULT_LAYERS && !o->nr_layers && !rc; i++)
        rc = add_layer(b, o, default_layers[i], e);
    for (int i = 0; i < o->nr_layers && !rc; i++)
        rc = add_layer(b, o, o->layer[i], e);
    for (int i = 0; i < o->nr_kernels && !rc; i++)
        rc = add_kernel(b, o, o->kernel[i], e);
    if (!rc && !b->nr_layers)
        rc = err_set(e, ERR_USAGE, "no layer has \"%s\" in its name", o->only);
    for (; *session && !rc; session++) {
        int n = tuned_read_session(b->tuned, *session, o->top, b->layer, b->nr_layers, e);
        if (n < 0)
            rc = n;
        else if (n == 0)
            fprintf(stderr, "bench_kernels: \"%s\" has no kernel for these layers\n", *session);
    }
    return rc;
}

static int start_openblas(struct bench *b, struct err *e)
{
    b->openblas[0] = openblas_start("openblas", NULL, &b->cores, b->layer, b->nr_layers, e);
    b->openblas[1] =
        openblas_start("openblas-haswell", "Haswell", &b->cores, b->layer, b->nr_layers, e);
    return b->openblas[0] && b->openblas[1] ? 0 : ERR_IO;
}

/* A wrong result is not timed: a fast wrong kernel says nothing. */
static void drop_wrong(struct bench *b, struct layer *l)
{
    int kept = 0;
    for (int i = 0; i < l->nr_entrants; i++) {
        struct entrant *en = &l->entrant[i];
        if (en->error <= 1) {
            l->entrant[kept++] = *en;
            continue;
        }
        fprintf(stderr, "bench_kernels: %s: the output of %s (%s) is off by %g tolerances\n",
                l->name, en->name, en->detail, en->error);
        b->wrong = b->wrong || en->role == ENTRANT_SQUALL;
        if (en->free)
            en->free(en->ctx);
    }
    l->nr_entrants = kept;
}

static int enter_all(struct bench *b, int number, double slice_ns, struct err *e)
{
    struct layer *l = b->layer[number];
    int rc = 0;
    peak_enter(l);
    memory_enter(l);
    bool product = l->kind == LAYER_MATMUL || l->kind == LAYER_DENSE;
    for (int i = 0; i < 2 && product && !rc; i++)
        rc = openblas_enter(b->openblas[i], l, number, e);
    if (!rc)
        rc = onednn_enter(l, e);
    if (rc)
        return rc;
    /* a session of another version is no reason to lose what is measured of the other layers */
    struct err why = ERR_INIT;
    if (tuned_enter(b->tuned, l, slice_ns, &why)) {
        fprintf(stderr, "bench_kernels: %s\n", why.msg);
        b->wrong = true;
    }
    drop_wrong(b, l);
    return 0;
}

static int run_layer(struct bench *b, int number, const struct options *o, struct err *e)
{
    double slice_ns = o->slice_ms * 1e6;
    fprintf(stderr, "%s ...\n", b->layer[number]->name);
    int rc = enter_all(b, number, slice_ns, e);
    return rc ? rc : layer_rounds(b->layer[number], o->rounds, slice_ns, e);
}

static void print(const struct bench *b, const struct options *o)
{
    char openblas[300] = "-";
    if (*openblas_version(b->openblas[0]))
        snprintf(openblas, sizeof openblas, "%s, with OPENBLAS_CORETYPE=Haswell %s",
                 openblas_version(b->openblas[0]), openblas_version(b->openblas[1]));
    const struct report r = {
        .hardware = tuned_hardware(b->tuned),
        .target = tuned_target(b->tuned),
        .peak = peak_name(),
        .onednn = onednn_version(),
        .openblas = openblas,
        .cores = &b->cores,
        .rounds = o->rounds,
        .slice_ms = o->slice_ms,
        .layer = b->layer,
        .nr_layers = b->nr_layers,
    };
    if (o->json)
        report_json(&r);
    else
        report_table(&r);
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct options o;
    struct bench b = {0};
    int rc = read_options(argc, argv, &o, &e);
    if (rc == 1)
        return 0;
    if (!rc)
        rc = cores_take(&b.cores, o.threads, o.cpu, argv, &e);
    if (!rc)
        rc = tuned_open(&b.tuned, o.threads, &e);
    if (!rc)
        rc = gather(&b, &o, argv + optind, &e);
    if (!rc)
        rc = start_openblas(&b, &e);
    for (int i = 0; i < b.nr_layers && !rc; i++)
        rc = run_layer(&b, i, &o, &e);
    if (rc)
        fprintf(stderr, "bench_kernels: %s\n", e.msg);
    else
        print(&b, &o);
    for (int i = 0; i < b.nr_layers; i++) {
        layer_release(b.layer[i]);
        free(b.layer[i]);
    }
    openblas_stop(b.openblas[0]);
    openblas_stop(b.openblas[1]);
    tuned_close(b.tuned);
    return rc == ERR_USAGE ? 2 : rc || b.wrong ? 1 : 0;
}
