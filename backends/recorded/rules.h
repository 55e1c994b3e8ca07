/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules: the constraints of a recorded space, as expressions over its knobs (expr.h).
 *
 * A rule that divides by zero counts as kept, as Kernel Tuner has it; one whose types do not fit
 * ("row" < 3) as broken.
 */
#ifndef BACKENDS_RECORDED_RULES_H
#define BACKENDS_RECORDED_RULES_H

#include "backends/recorded/recorded.h"
#include "engine/search/space.h"

/* Texts of rules; a zeroed struct is valid and empty. */
struct recorded_rules {
    char **v;
    int nr, cap;
};

void recorded_rules_add(struct recorded_rules *l, const char *text);
/* One rule a line, '#' begins a comment; or a T1 file, whose Conditions are taken. */
int recorded_rules_read(struct recorded_rules *l, const char *path, struct err *e);
void recorded_rules_release(struct recorded_rules *l);

/*
 * The space of all values of the knobs that keep the rules, of which the file may hold a part only:
 * without rules the whole product. Knobs, order and codes of candidates are those of
 * recorded_space(). It draws with equal chances where counting is affordable.
 */
int recorded_ruled_space(const struct recorded *r, const struct recorded_rules *rules,
                         struct space *out, struct err *e);

/* How many of the file's rows break the rules of such a space. */
int recorded_outside(const struct recorded *r, const struct space *s);

#endif
