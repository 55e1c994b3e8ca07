/* SPDX-License-Identifier: Apache-2.0 */
/* Failures by status and reason, and the notes of the session. */
#include "ui/screen_draw.h"

#include <stdio.h>
#include <string.h>

#include "ui/format.h"
#include "ui/screen_words.h"

static void group_row(const struct draw *d, const struct rect *r, int y,
                      const struct failure_group *g)
{
    const struct board_trial *last = board_trial(d->b, g->last);
    const char *reason = last && last->reason ? last->reason : "";
    char text[128], a[FORMAT_MAX];
    snprintf(text, sizeof text, "%s %4s  %-13s", d->t->g->failed,
             format_count(a, (double)g->count), last ? word_trial(d->v, last).text : "");
    int used = draw_text(d, y, r->x + 1, r->cols - 1, ROLE_BAD, text);
    draw_text(d, y, r->x + 2 + used, r->cols - 2 - used, ROLE_NORMAL, reason);
}

static void event_row(const struct draw *d, const struct rect *r, int y, const struct event *ev)
{
    static const enum role roles[] = {ROLE_NORMAL, ROLE_WARN, ROLE_BAD};
    char text[64], a[FORMAT_MAX];
    int level = ev->kind == EV_NOTE && ev->u.note.level > 0 ? ev->u.note.level : 0;
    level = level > 2 ? 2 : level;
    snprintf(text, sizeof text, "%s %8s ", level == 2 ? d->t->g->failed : level ? "!" : " ",
             format_elapsed(a, ev->t_ns));
    int used = draw_text(d, y, r->x + 1, r->cols - 1, roles[level], text);
    draw_text(d, y, r->x + 1 + used, r->cols - 2 - used, roles[level], ev->u.note.text);
}

static void heads(const struct draw *d, const struct rect *r)
{
    const struct index *ix = &d->v->index;
    enum role role = d->v->active == PANE_NOTES ? ROLE_ACTIVE : ROLE_TITLE;
    char text[96], a[FORMAT_MAX];
    int64_t failed = ix->nr_other;
    for (int i = 0; i < ix->nr_groups; i++)
        failed += ix->group[i].count;
    int used = draw_text(d, r->y, r->x + 1, r->cols - 2, role, "5 Failures and notes");
    if (failed) {
        snprintf(text, sizeof text, "%s failed, %d kinds", format_count(a, (double)failed),
                 ix->nr_groups + (ix->nr_other > 0));
        draw_right(d, r->y, r->x + 3 + used, r->cols - 4 - used, role, text);
    }
    draw_title(d, r, PANE_NOTES);
}

void draw_notes(const struct draw *d, const struct rect *r)
{
    const struct view *v = d->v;
    int nr = view_nr_rows(v, d->b, PANE_NOTES), top = v->top[PANE_NOTES];
    heads(d, r);
    for (int i = 0; i + 1 < r->rows && top + i < nr; i++) {
        struct note_row n = view_note(v, d->b, top + i);
        int y = r->y + 1 + i;
        if (n.group)
            group_row(d, r, y, n.group);
        else if (n.log)
            draw_text(d, y, r->x + 3, r->cols - 3, ROLE_DIM, n.log->text);
        else if (n.event)
            event_row(d, r, y, n.event);
        if (v->active == PANE_NOTES && top + i == view_cursor(v, d->b, PANE_NOTES))
            draw_cursor(d, r, PANE_NOTES, y);
    }
    if (!nr)
        draw_empty(d, r, "no failures, no notes");
}
