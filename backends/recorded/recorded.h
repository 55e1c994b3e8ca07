/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded space: a tuning space that somebody measured, read from a file.
 *
 *   Kernel Tuner cachefiles of every generation, open or closed or torn, T4 results, KTT's JSON;
 *   AutoTVM, Ansor and MetaSchedule records; all plain or gzip-compressed.
 *
 * A *knob* has an ordered domain; a *row* is one configuration, an index into each knob's domain,
 * with its value, status, cost and samples. A file may hold several spaces (one a workload of a
 * TVM log); the others hold one.
 *
 * VALUE. What the search minimises: the objective as the file has it, negated where it is to be
 * maximised (`maximise`); recorded_shown() turns it back. INFINITY for rows that are not ok.
 * Times are in milliseconds where the file's unit is known, costs in seconds.
 *
 * COST of a row: the sum of what making, checking and measuring it took, of the parts that the file
 * has; NAN where it has none. (methodology: Willemsen et al., doi 10.1016/j.future.2024.05.021,
 * where missing parts count nothing unless all are missing.)
 *
 * What is torn or doubtful in a file never stops the reading of the rest: it is counted, and
 * recorded_notes() says it in words. Everything is read-only after loading and may be shared between
 * threads; all memory belongs to the struct.
 */
#ifndef BACKENDS_RECORDED_RECORDED_H
#define BACKENDS_RECORDED_RECORDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/base/strbuf.h"
#include "engine/search/space.h"

enum recorded_type {
    RECORDED_NULL, /* the row has no such knob */
    RECORDED_BOOL,
    RECORDED_INT,
    RECORDED_REAL,
    RECORDED_TEXT,
};

struct recorded_value {
    enum recorded_type type;
    int64_t i;        /* int, bool */
    double num;       /* int, bool, real: as a number */
    const char *text; /* text */
};

struct recorded_knob {
    const char *name;
    bool ordinal;  /* values are numbers in ascending or descending order */
    bool inferred; /* from the rows: the file states no domain */
    int nr_values;
    struct recorded_value *value;
};

enum recorded_status {
    RECORDED_OK,
    RECORDED_COMPILE,     /* did not compile */
    RECORDED_RUNTIME,     /* did not run */
    RECORDED_CONSTRAINTS, /* refused beforehand */
    RECORDED_CORRECTNESS, /* ran, with a wrong result */
    RECORDED_TIMEOUT,
    RECORDED_UNKNOWN,     /* the file does not say */
    RECORDED_NR_STATUS,
};
/* As T4 calls them: "correct", "compile", "runtime", ...; "unknown". */
const char *recorded_status_name(enum recorded_status s);

/* Parts of a row's cost, in milliseconds; NAN where missing. */
enum recorded_part {
    PART_COMPILE,
    PART_BENCHMARK,
    PART_FRAMEWORK,
    PART_STRATEGY,
    PART_VERIFY,
    RECORDED_NR_PARTS,
};

/* What else the file says of a row: a number, a text or a list of numbers (nr > 0). */
struct recorded_metric {
    int32_t name, unit; /* recorded.word[]; unit -1 for none */
    int32_t nr;
    double num; /* nr == 0 and text == NULL */
    const double *list;
    const char *text;
};

struct recorded_row {
    enum recorded_status status;
    double value;  /* minimised; INFINITY unless ok */
    double cost_s; /* NAN where unknown */
    double part_ms[RECORDED_NR_PARTS];
    int nr_samples;
    const double *sample_ms; /* times of single runs, in the order taken */
    const char *reason;      /* of a row that is not ok, as the file words it; else NULL */
    const char *timestamp;   /* NULL where missing */
    int nr_metrics;
    const struct recorded_metric *metric;
};

struct recorded {
    const char *path;
    const char *format;    /* "Kernel Tuner cachefile", "T4 1.0.0", ... */
    const char *name;      /* of the workload, where a file has several; else the file's, bare */
    const char *device, *kernel; /* "" where the file does not say */
    const char *problem;   /* problem size as JSON text; NULL where missing */
    const char *objective; /* "time", "GFLOP/s", "score" */
    const char *unit;      /* of the objective: "ms", "" where unknown */
    bool maximise;
    bool direction_guessed; /* neither the caller nor a name that is known says so */
    bool closed;            /* the file ends as its format wants */
    bool has_cost;          /* some row has one */
    bool zero_pairs;        /* samples stood in pairs [0, t]: the recorded mean is half the time */
    int nr_knobs;
    struct recorded_knob *knob;
    int nr_rows;
    struct recorded_row *row;
    int32_t *index;      /* row r, knob k: index[r * nr_knobs + k] */
    int nr_ok;
    int best;            /* a row, -1 where none is ok */
    int nr_duplicates;   /* rows of a configuration that came again: merged or replaced */
    int nr_damaged;      /* rows that could not be read */
    int nr_words;
    const char **word;   /* names and units of metrics */
    /* Hash of index vectors; private to recorded_find(). */
    int32_t *bucket;
    uint32_t nr_buckets;
    struct arena arena;
};

/* Zeroed: what the file says. */
struct recorded_options {
    const char *objective; /* a metric of the rows to use instead of the file's objective */
    int direction;         /* < 0 minimise, > 0 maximise, 0 by the objective's name */
    const char *workload;  /* of a file of several: the one of this name */
};

/* The space of a file; of several the one that `o` names, else the one with the most rows. `o` may
 * be NULL. Free it with recorded_free(). */
int recorded_load(const char *path, const struct recorded_options *o, struct recorded **out,
                  struct err *e);

struct recorded_list {
    struct recorded **v;
    int nr, cap;
};

/* All spaces of a file, in its order. */
int recorded_load_all(const char *path, const struct recorded_options *o,
                      struct recorded_list *out, struct err *e);

/* The same from memory; `path` only names it. For tests and fuzzers. */
int recorded_parse(const char *path, const char *text, size_t len,
                   const struct recorded_options *o, struct recorded_list *out, struct err *e);

void recorded_free(struct recorded *r);
void recorded_list_release(struct recorded_list *l);

/* Does the file look like one of these? Reads its beginning only. */
bool recorded_is_file(const char *path);

/* The row of an index vector, -1 where there is none. */
int recorded_find(const struct recorded *r, const int32_t *index);
static inline const int32_t *recorded_index(const struct recorded *r, int row)
{
    return r->index + (size_t)row * (size_t)r->nr_knobs;
}

/* The objective as the file has it. */
static inline double recorded_shown(const struct recorded *r, double value)
{
    return r->maximise ? -value : value;
}

/* Values of the rows that are ok, ascending: best first, nr_ok of them; the caller frees. */
double *recorded_sorted(const struct recorded *r);

/* A metric of a row by name, NULL where it has none. */
const struct recorded_metric *recorded_metric(const struct recorded *r, int row, const char *name);

/* A value as Python's str() writes it ("16", "1.0", "True"), which is how keys are made. */
void recorded_value_str(const struct recorded_value *v, struct strbuf *out);
/* The same as JSON. */
void recorded_value_json(const struct recorded_value *v, struct strbuf *out);

/* What a reader should know: "the last row is torn", "12 rows came twice"; lines, "" for nothing. */
void recorded_notes(const struct recorded *r, struct strbuf *out);

/*
 * The rows as a space of the engine: one sketch, a knob of it for each knob of more than one value;
 * what the file holds is the whole space. `out` must be initialised; `r` outlives it.
 */
int recorded_space(const struct recorded *r, struct space *out, struct err *e);

/* Row of a candidate of that space, -1 where the file does not have it. */
int recorded_row_of(const struct recorded *r, const struct candidate *c);
/* Candidate of a row. */
void recorded_candidate(const struct recorded *r, int row, struct candidate *out);

#endif
