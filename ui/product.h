/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Product: what `compile` makes of a session, and `bench` measures.
 *
 * DIR/NAME.json, the manifest, stands beside the files of the library (backends/library.h) and says
 * what they were made of, so that the model can be read again to compute what must come out.
 */
#ifndef UI_PRODUCT_H
#define UI_PRODUCT_H

#include "backends/library.h"
#include "engine/base/strbuf.h"

/* A model read again: its graph, its calls, its tasks. */
struct product_model {
    struct graph *graph;
    struct plan plan;
    struct task_list tasks;
};

/* `block` is the wished one of the layouts. `logits`: the input of the final Softmax is the output
 * instead. Constants without numbers get some (engine/model/evaluate.h), with `seed_weights` also
 * those that are one number everywhere. On failure nothing is left to release. */
struct product_source {
    const char *input;  /* as for tune */
    const char *shapes; /* of what an ONNX file leaves free, as in engine/model/model.h */
    int block;
    const char *plain; /* a choice of engine/model/regions.h; "" for none */
    bool seed_weights, logits;
};
int product_load(const struct product_source *s, struct product_model *m, struct err *e);
void product_release(struct product_model *m);

struct product_options {
    const char *session;
    const char *input;  /* which of the session's; NULL where it has one */
    const char *target; /* NULL: the session's */
    const char *folder;
    const char *name; /* NULL: the model's */
    bool seed_weights, logits;
    enum library_weights weights;
};

/* The manifest. Texts are owned. */
struct product {
    char *name, *input, *shapes, *input_hash, *session, *target, *compiler;
    char *tuned_with; /* compiler of the session; not in the file */
    char *plain; /* which kernels flow so, as in product_source */
    int threads, block;
    bool seed_weights, logits;
    struct library_report report;
    int nr_refined, nr_explored, nr_default; /* kernels by where their schedule is from; the last
                                                with those of no result and stale ones */
};
void product_clear(struct product *p);

/* Compiles a session into a folder. */
int product_compile(const struct product_options *o, struct product *out, struct err *e);

/* The manifest of a folder, the only one there; its input must not have changed. */
int product_read(const char *folder, struct product *out, struct err *e);
void product_json(const struct product *p, struct strbuf *out);

#endif
