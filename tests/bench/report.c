/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/bench.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Quartiles further apart than this say more of the machine than of the kernels. */
static const double noisy = 0.05;

#define PRODUCTS                                                                                   \
    {                                                                                              \
        "openblas", "openblas-haswell", "onednn", "onednn-packed", "onednn-inner"                  \
    }
#define CONVOLUTIONS                                                                               \
    {                                                                                              \
        "onednn-any", "onednn-blocked", "onednn-winograd"                                          \
    }

static const char *const peers[NR_LAYER_KINDS][6] = {
    [LAYER_MATMUL] = PRODUCTS,
    [LAYER_DENSE] = PRODUCTS,
    [LAYER_CONV] = CONVOLUTIONS,
    [LAYER_DEPTHWISE] = CONVOLUTIONS,
};

static const char *const titles[] = {[LAYER_MATMUL] = "matrix products",
                                     [LAYER_DENSE] = "dense layers, with bias",
                                     [LAYER_CONV] = "convolutions",
                                     [LAYER_DEPTHWISE] = "depthwise convolutions"};

static const char *const kinds[] = {[LAYER_MATMUL] = "matmul",
                                    [LAYER_DENSE] = "dense",
                                    [LAYER_CONV] = "conv",
                                    [LAYER_DEPTHWISE] = "depthwise"};

static const struct entrant *find(const struct layer *l, const char *name)
{
    for (int i = 0; i < l->nr_entrants; i++)
        if (strcmp(l->entrant[i].name, name) == 0)
            return &l->entrant[i];
    return NULL;
}

static double gflops(const struct entrant *en)
{
    return en && en->median_ns > 0 ? en->flops / en->median_ns : 0;
}

static double best_peer(const struct layer *l)
{
    double best = 0;
    for (int i = 0; i < l->nr_entrants; i++)
        if (l->entrant[i].role == ENTRANT_PEER && gflops(&l->entrant[i]) > best)
            best = gflops(&l->entrant[i]);
    return best;
}

static void print_cell(double value, int decimals, const char *unit, int width)
{
    char text[32] = "-";
    if (value > 0)
        snprintf(text, sizeof text, "%.*f%s", decimals, value, unit);
    printf("  %*s", width, text);
}

static int column(const char *name)
{
    int width = (int)strlen(name);
    return width < 7 ? 7 : width;
}

static void print_row(const struct layer *l)
{
    double ours = gflops(find(l, "squall")), peer = best_peer(l), peak = gflops(find(l, "peak"));
    printf("%-44s", l->name);
    for (int i = 0; peers[l->kind][i]; i++)
        print_cell(gflops(find(l, peers[l->kind][i])), 1, "", column(peers[l->kind][i]));
    print_cell(ours, 1, "", 7);
    print_cell(peer > 0 ? ours / peer : 0, 3, "", 9);
    print_cell(peak > 0 ? peer / peak * 100 : 0, 1, "%", 9);
    print_cell(peak > 0 ? ours / peak * 100 : 0, 1, "%", 11);
    print_cell(peak, 1, "", 7);
    putchar('\n');
}

static void print_kind(const struct report *r, enum layer_kind kind)
{
    bool head = false;
    for (int i = 0; i < r->nr_layers; i++) {
        if (r->layer[i]->kind != kind)
            continue;
        if (!head) {
            printf("\n%-44s", titles[kind]);
            for (int c = 0; peers[kind][c]; c++)
                printf("  %*s", column(peers[kind][c]), peers[kind][c]);
            printf("  %7s  %9s  %9s  %11s  %7s\n", "squall", "/best peer", "peer/peak",
                   "squall/peak", "peak");
        }
        head = true;
        print_row(r->layer[i]);
    }
}

/* What a call must read and write at least. */
static double bytes(const struct layer *l)
{
    const struct workload *w = &l->task->wl;
    double sum = 0;
    for (int t = 0; t < w->nr_tensors; t++)
        if (w->tensor[t].role != WL_TEMP)
            sum += (double)layout_logical_size(&w->tensor[t].layout) * sizeof(float);
    return sum;
}

static void print_notes(const struct report *r)
{
    printf("\n");
    for (int i = 0; i < r->nr_layers; i++) {
        const struct layer *l = r->layer[i];
        printf("%s\n", l->name);
        if (l->nr_trips)
            printf("  %-16s %10.3f to %.3f us between the cores\n", "round trip",
                   quantile(l->trip_ns, l->nr_trips, 0) / 1e3,
                   quantile(l->trip_ns, l->nr_trips, 1) / 1e3);
        for (int k = 0; k < l->nr_entrants; k++) {
            const struct entrant *en = &l->entrant[k];
            if (en->role == ENTRANT_PEAK)
                continue;
            if (en->role == ENTRANT_MEMORY) {
                printf("  %-16s %10.1f GB/s\n", en->name, gflops(en));
                continue;
            }
            printf("  %-16s %10.1f us +-%4.1f%%  %s%s\n", en->name, en->median_ns / 1e3,
                   en->spread * 50, en->detail, en->spread > noisy ? "  (noisy)" : "");
        }
    }
}

void report_table(const struct report *r)
{
    printf("%s, %s; core", r->hardware, r->target);
    for (int i = 0; i < r->cores->nr; i++)
        printf("%s %d", i ? "," : "", r->cores->cpu[i]);
    printf(", %d thread%s, median of %d rounds of %.0f ms\n", r->cores->nr,
           r->cores->nr == 1 ? "" : "s", r->rounds, r->slice_ms);
    printf("peak: %s; oneDNN %s; OpenBLAS %s\n", r->peak ? r->peak : "unknown", r->onednn,
           r->openblas);
    printf("GFLOP/s, counting padded taps, which libraries skip: a 3x3 layer may pass the peak\n");
    for (int k = 0; k < NR_LAYER_KINDS; k++)
        print_kind(r, (enum layer_kind)k);
    print_notes(r);
}

static json_t *numbers(const double *v, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_real(v[i]));
    return list;
}

static json_t *entrant_json(const struct layer *l, const struct entrant *en)
{
    double peer = best_peer(l), peak = gflops(find(l, "peak"));
    static const char *const role[] = {"peak", "memory", "peer", "squall"};
    json_t *o = json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:I}", "name", en->name, "role",
                          role[en->role], "detail", en->detail, "gflops", gflops(en), "median_ns",
                          en->median_ns, "spread", en->spread, "error", en->error, "calls",
                          (json_int_t)en->calls);
    if (en->role == ENTRANT_SQUALL && peer > 0)
        json_object_set_new(o, "to_best_peer", json_real(gflops(en) / peer));
    if (peak > 0)
        json_object_set_new(o, "of_peak", json_real(gflops(en) / peak));
    json_object_set_new(o, "sample_ns", numbers(en->sample_ns, en->nr_samples));
    return o;
}

void report_json(const struct report *r)
{
    json_t *layers = json_array();
    for (int i = 0; i < r->nr_layers; i++) {
        const struct layer *l = r->layer[i];
        json_t *entrants = json_array();
        for (int k = 0; k < l->nr_entrants; k++)
            json_array_append_new(entrants, entrant_json(l, &l->entrant[k]));
        json_array_append_new(layers,
                              json_pack("{s:s, s:s, s:f, s:f, s:o, s:o}", "workload", l->name,
                                        "kind", kinds[l->kind], "flops", l->task->wl.flops, "bytes",
                                        bytes(l), "round_trip_ns", numbers(l->trip_ns, l->nr_trips),
                                        "entrants", entrants));
    }
    json_t *cpus = json_array();
    for (int i = 0; i < r->cores->nr; i++)
        json_array_append_new(cpus, json_integer(r->cores->cpu[i]));
    json_t *all = json_pack("{s:s, s:s, s:s?, s:s, s:s, s:i, s:o, s:i, s:f, s:o}", "hardware",
                            r->hardware, "target", r->target, "peak", r->peak, "onednn", r->onednn,
                            "openblas", r->openblas, "threads", r->cores->nr, "cpus", cpus,
                            "rounds", r->rounds, "slice_ms", r->slice_ms, "layers", layers);
    json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(all);
}
