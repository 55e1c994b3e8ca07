/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the readers of this folder share: a builder that collects rows whose knobs and domains may
 * only be found on the way, and the readers themselves. Private to backends/recorded.
 */
#ifndef BACKENDS_RECORDED_PRIVATE_H
#define BACKENDS_RECORDED_PRIVATE_H

#include "backends/recorded/json.h"
#include "backends/recorded/recorded.h"

enum {
    RECORDED_MAX_KNOBS = 256,
    RECORDED_MAX_VALUES = 1 << 20,
};

struct builder_knob {
    struct recorded_knob k; /* values in the order they came */
    int cap;
    int32_t *bucket; /* value index + 1 by hash */
    uint32_t nr_buckets;
    bool stated; /* the file gave its domain */
};

/* One space under construction. The row being read is `now`, with a value index for each knob. */
struct builder {
    struct recorded *r;
    struct builder_knob *knob;
    int nr_knobs, cap_knobs;
    int32_t *index;     /* rows x stride, -1: the row has no such knob */
    int stride;
    int cap_rows;
    bool merge;         /* rows of one configuration are runs of it; else the last one wins */
    struct recorded_row now;
    int32_t *now_index; /* stride */
    struct recorded_metric *metric; /* of the row being read */
    int nr_metrics, cap_metrics;
    double *number;                 /* a list being read */
    int nr_numbers, cap_numbers;
    int cap_words;
    int32_t *word_bucket;
    uint32_t nr_word_buckets;
};

void builder_init(struct builder *b, const char *path, const char *format);
/* Frees what is left; the space too, unless builder_finish() gave it away. */
void builder_release(struct builder *b);

/* Number of the knob of that name, which is added where it is new; -1 where there are too many. */
int builder_knob(struct builder *b, const char *name);
int builder_find_knob(const struct builder *b, const char *name);
/* Index of the value, which is added where it is new; -1 where there are too many. Texts are
 * copied. */
int builder_value(struct builder *b, int knob, const struct recorded_value *v);

void builder_begin_row(struct builder *b);
/* Keeps the row begun. */
void builder_end_row(struct builder *b);
int32_t builder_word(struct builder *b, const char *word);
struct recorded_metric *builder_metric(struct builder *b, const char *name, const char *unit);

/* Domains, duplicates, the hash, best and counts. Rows have ->value as the file has it, which is
 * negated here where the objective is to be maximised. `*out` gets the space. */
int builder_finish(struct builder *b, const struct recorded_options *o, struct recorded **out,
                   struct err *e);

/* Reads any value: text stays in j->text until the next string. Lists and objects become the text of
 * their JSON. */
bool read_value(struct jread *j, struct builder *b, struct recorded_value *out);
/*
 * Reads a list of numbers into b->number; of a nested list [0, t] the last number (`*pairs` is set).
 * What is no number is left out. A single number counts as a list of one.
 */
bool read_numbers(struct jread *j, struct builder *b, bool *pairs);
/* The list just read, kept. */
const double *keep_numbers(struct builder *b);

/* Milliseconds of a unit of time by its name in any spelling ("miliseconds", "us"); 0: not one. */
double time_unit_ms(const char *name);

/* A value that stands for failure in old files. */
bool is_failure_value(double x);
/* "CompilationFailedConfig" ... ; false where the text is none of Kernel Tuner's names. */
bool kernel_tuner_error(const char *text, enum recorded_status *out);

/* -1 minimise, 1 maximise, 0 unknown: Kernel Tuner's table of exact names. */
int objective_direction(const char *name);

/* A sketch with the knobs that are open, in `out`, without constraints. */
int recorded_sketch(const struct recorded *r, struct space *out, struct sketch **k, struct err *e);
/* The plainest row that works and is valid: the first in the order of the domains; -1 for none. */
int recorded_first_ok(const struct recorded *r, const struct space *s);

struct reading {
    struct jread j;
    const char *path;
    const struct recorded_options *o;
    struct recorded_list *out;
    struct err *e;
};

int read_kernel_tuner(struct reading *g);
int read_t4(struct reading *g);
int read_ktt(struct reading *g);
int read_autotvm(struct reading *g);
int read_ansor(struct reading *g);
int read_metaschedule(struct reading *g);

/* A sentence with file and line for what j->wrong says; returns ERR_INPUT. */
int reading_failed(struct reading *g, const char *what);

/* The bytes of a file, unpacked where it is gzip; malloc. */
int read_whole(const char *path, char **text, size_t *len, struct err *e);

#endif
