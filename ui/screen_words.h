/* SPDX-License-Identifier: Apache-2.0 */
/* Words for states: each is a glyph, a word and a role, the same wherever the state is shown. */
#ifndef UI_SCREEN_WORDS_H
#define UI_SCREEN_WORDS_H

#include "ui/screen_view.h"

struct word {
    const char *glyph, *text;
    enum role role;
};

struct word word_session(const struct view *v, const struct board *b);
struct word word_task(const struct view *v, const struct board_task *t);
struct word word_rung(const struct view *v, enum rung_state s);
/* "ok", "build error", ... */
struct word word_trial(const struct view *v, const struct board_trial *t);
const char *word_phase(enum phase p);

/* How a trial came about: "neighbour of #398: tile_oc: 2 from level 0 to 3". */
void words_origin(struct strbuf *out, const struct board_trial *t);

#endif
