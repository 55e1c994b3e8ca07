/* SPDX-License-Identifier: Apache-2.0 */
/* What `compare` found, and how it is printed. */
#ifndef UI_COMPARE_H
#define UI_COMPARE_H

#include <stdint.h>

#include "backends/recorded/recorded.h"
#include "engine/search/replay.h"
#include "ui/theme.h"

enum { COMPARE_MAX_STRATEGIES = 32 };

struct compare_space {
    const char *file; /* as it was given */
    struct recorded *recorded;
    struct space space;
    struct replay replay;
    bool forbids; /* the file has configurations that are no evaluations */
    bool no_cost; /* the file has no costs: an evaluation counts one second */
};

/* A strategy on a space. */
struct compare_cell {
    double score, error; /* error: standard error over the runs */
    double p[SCORE_GRID];
    double evaluations; /* mean of a run */
    double optimum;     /* share of runs that found it */
};

struct compare_strategy {
    const struct strategy_class *class;
    struct compare_cell *cell; /* one a space */
    double score, error;       /* over the spaces */
    double p[SCORE_GRID];
    double propose_ns; /* its own time for an evaluation */
};

struct compare {
    struct compare_space *space;
    int nr_spaces;
    struct compare_strategy strategy[COMPARE_MAX_STRATEGIES];
    int nr_strategies;
    int runs, threads;
    uint64_t seed;
    const struct strategy_class *baseline; /* NULL: calculated random search */
    bool times; /* tell propose_ns, which no two runs of the program agree on */
    enum glyph_set glyphs;
};

/* Tables of spaces and scores, and the curves; `cols` is the width there is. */
void compare_print(const struct compare *c, int cols, struct strbuf *out);

/* {"strategies": {NAME: {"score", "spaces": {FILE: score}, "runs", ...}}, ...} */
void compare_json(const struct compare *c, struct strbuf *out);

#endif
