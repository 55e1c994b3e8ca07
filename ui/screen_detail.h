/* SPDX-License-Identifier: Apache-2.0 */
/* Detail: help, and all there is to say of a task or a trial, as lines. Pure. */
#ifndef UI_SCREEN_DETAIL_H
#define UI_SCREEN_DETAIL_H

#include "ui/screen_view.h"

/* Fills v->page for v->overlay, `cols` wide. */
void detail_build(struct view *v, const struct board *b, int cols);

/* The title of what is shown. */
void detail_title(const struct view *v, const struct board *b, struct strbuf *out);

#endif
