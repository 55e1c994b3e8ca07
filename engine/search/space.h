/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Knobs, candidates, sketches, spaces.
 *
 * A *knob* is one tunable decision, a *sketch* one loop structure with its knobs open, a *space* the
 * sketches of a task. A *candidate* names a sketch and holds a value for each of its knobs in a flat
 * array of slots: a knob owns the slots slot .. slot + nr_slots - 1.
 *
 *   kind         slots        value                               neighbours
 *   split        levels       the factors, outermost first, whose one prime factor moved from one
 *                             product is the extent                level to another
 *   ordinal      1            index into the ordered values        one down, one up
 *   choice       1            index into the unordered values      every other one
 *   flag         1            0 or 1                               the other
 *   permutation  nr_values    an order of 0 .. nr_values-1         adjacent swaps
 *
 * A *constraint* is a named predicate that lists the knobs it reads, so that a space can prune a
 * prefix of knobs as soon as all of them are set. Constraints are pure functions of the candidate.
 *
 * Spaces are immutable once built and shared freely between threads. All memory is in the space.
 */
#ifndef ENGINE_SEARCH_SPACE_H
#define ENGINE_SEARCH_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/base/rng.h"
#include "engine/base/strbuf.h"

enum { CAND_MAX_SLOTS = 120, SKETCH_MAX_KNOBS = 48, SPLIT_MAX_LEVELS = 6 };

/* What a cost model sees of a candidate: at most so many rows of so many numbers. */
enum { FEATURE_ROWS = 12, FEATURES = 104, FEATURE_COST = 0 };

enum knob_kind { KNOB_SPLIT, KNOB_ORDINAL, KNOB_CHOICE, KNOB_FLAG, KNOB_PERMUTATION };

struct knob {
    char name[32];
    enum knob_kind kind;
    int64_t extent;        /* split: the product of the factors */
    int64_t max_inner;     /* split: largest last factor, 0 for no limit */
    int nr_values;         /* ordinal, choice: values; permutation: things to order */
    const int64_t *values; /* ordinal, choice */
    /* What the values stand for, as JSON ("0.25", "\"row\""); NULL: themselves. */
    const char *const *label;
    int slot, nr_slots;
};

struct candidate {
    int32_t sketch;
    int32_t nr; /* slots in use */
    int32_t v[CAND_MAX_SLOTS];
};

struct constraint {
    const char *name;   /* what is demanded, for people: "register tile fits" */
    uint64_t knobs;     /* bit k: reads knob k */
    bool (*ok)(const void *ctx, const struct candidate *c);
    /* NULL, or whether it can still hold when only the knobs of `set` are decided: what prunes early.
     * May say true in doubt. */
    bool (*possible)(const void *ctx, const struct candidate *c, uint64_t set);
    const void *ctx;    /* lives as long as the space */
};

struct sketch {
    char name[32];
    int nr_knobs, nr_slots, nr_constraints, cap_constraints;
    struct knob knob[SKETCH_MAX_KNOBS];
    struct constraint *constraint;
    /* NULL, or all candidates there are, sorted: rows of slots (space_list.h). */
    const int32_t *listed;
    int nr_listed;
    const char *list_name;
    struct tally *tally; /* NULL, or the counts by which to draw (space_weigh) */
    struct candidate start; /* the untuned default; must satisfy every constraint */
    void *user;             /* what the maker of the sketch needs to lower it */
    /* NULL, or the features of a valid candidate: fills rows from 0, the rest of them with 0, and
     * returns their number, at least 1. The sum of 2^x - 1, x in column FEATURE_COST, over the rows
     * is an estimate of the cost in some unit that all sketches of a space have in common. Pure; any
     * thread. */
    int (*features)(const struct sketch *k, const struct candidate *c, float (*row)[FEATURES]);
    /* NULL, or a number that valid candidates have in common which are the same program: they differ
     * in what makes no difference. Of the whole space, not only of the sketch. Pure; any thread. */
    uint64_t (*twins)(const struct sketch *k, const struct candidate *c);
};

struct space {
    int nr_sketches;
    struct sketch *sketch[16];
    struct arena arena;
};

void space_init(struct space *s);
void space_release(struct space *s);

/* Adds an empty sketch; it belongs to the space. */
struct sketch *space_sketch(struct space *s, const char *name);

/* Add a knob and return its number; values are copied. Programmers' mistakes (too many) assert. */
int sketch_split(struct space *s, struct sketch *k, const char *name, int64_t extent, int levels,
                 int64_t max_inner);
int sketch_ordinal(struct space *s, struct sketch *k, const char *name, int nr,
                   const int64_t *values);
int sketch_choice(struct space *s, struct sketch *k, const char *name, int nr,
                  const int64_t *values);
int sketch_flag(struct space *s, struct sketch *k, const char *name);
int sketch_permutation(struct space *s, struct sketch *k, const char *name, int nr);
void sketch_constraint(struct space *s, struct sketch *k, const char *name, uint64_t knobs,
                       bool (*ok)(const void *ctx, const struct candidate *c), const void *ctx);

/* Lets the constraint added last judge a part of the knobs too. */
void sketch_possible(struct sketch *k,
                     bool (*possible)(const void *ctx, const struct candidate *c, uint64_t set));

/* Gives the values of an ordinal or choice knob labels (JSON), which are copied. */
void sketch_labels(struct space *s, struct sketch *k, int knob, const char *const *label);

/* Only these `nr` > 0 rows of slots are candidates, where the constraints hold too; `name` says so as
 * a constraint's does. Once a sketch, after its knobs; copied. */
void sketch_list(struct space *s, struct sketch *k, const char *name, int nr,
                 const int32_t *slots);

/* Value of an ordinal, choice or flag knob (not the index); factor `level` of a split. */
int64_t knob_value(const struct knob *k, const struct candidate *c);
int64_t knob_factor(const struct knob *k, const struct candidate *c, int level);

/* The value of a knob as people write it: "4,8,2,16", "512", "on", "2,0,1". */
void knob_format(const struct knob *k, const struct candidate *c, struct strbuf *out);

/* {"tile_oc":[4,8,2,16],"unroll":512,...}; the knobs column of a trial. */
void candidate_json(const struct space *s, const struct candidate *c, struct strbuf *out);

/* Reads the slots back from candidate_code(); checks every value against its knob. */
int candidate_parse(const struct space *s, const char *code, struct candidate *c, struct err *e);

/* Canonical code, "1:4.8.2.16/512/1": equal candidates, equal text. */
void candidate_code(const struct space *s, const struct candidate *c, struct strbuf *out);
uint64_t candidate_hash(const struct candidate *c);
bool candidate_equal(const struct candidate *a, const struct candidate *b);

/* All values in their knobs' domains, and all constraints hold. `why` (may be NULL) gets the name
 * of the first constraint that does not. */
bool candidate_valid(const struct space *s, const struct candidate *c, const char **why);

/* A random valid candidate of a random sketch (or of `sketch` >= 0). Returns false where none was
 * found in a bounded number of tries, after a pruned depth-first search as the last resort. */
bool space_sample(const struct space *s, int sketch, struct rng *r, struct candidate *out);

/* One step away in one knob. dir < 0 is a smaller value or a factor moved outwards, dir > 0 the
 * reverse, 0 unordered. `text` says the step: "tile_oc: 2 from level 0 to 3". */
struct neighbour {
    struct candidate c;
    int knob, dir;
    char text[64];
};

/* All valid neighbours of `c`, in knob order. The caller frees *out. Returns their number. */
int space_neighbours(const struct space *s, const struct candidate *c, struct neighbour **out);

/* The neighbour's step done once more from `c` (the same knob, the same direction): what speculation
 * tries. False where there is none. */
bool space_step_again(const struct space *s, const struct candidate *before,
                      const struct candidate *after, struct candidate *out);

/* Number of valid candidates, at most `cap` (counting stops there). */
int64_t space_count(const struct space *s, int64_t cap);

/* The same without the constraints, of one sketch; INT64_MAX for that many or more. */
int64_t space_product(const struct space *s, int sketch);

/*
 * Counts a sketch so that space_sample() draws its valid candidates with equal chances from now on.
 * Once its knobs and constraints are all there and before the space is shared. False, and nothing
 * changes, where counting takes more than `nodes` steps or too much memory.
 */
bool space_weigh(struct space *s, int sketch, int64_t nodes);

/* What a constraint removes: from the product of all values, alone; and of what all the others leave.
 * -1: too many to count. */
struct space_removal {
    const char *name;
    int64_t alone, last;
};

/* Fills an element of `out` for each constraint of the sketch. */
void space_removed(const struct space *s, int sketch, struct space_removal *out);

#endif
