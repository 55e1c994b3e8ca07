/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/screen_index.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"

void index_init(struct index *ix)
{
    memset(ix, 0, sizeof *ix);
    ix->task = -1;
}

void index_release(struct index *ix)
{
    free(ix->pending);
    free(ix->member);
    free(ix->failed);
    index_init(ix);
}

bool trial_failed(enum trial_status s)
{
    return s != TRIAL_PENDING && s != TRIAL_OK && s != TRIAL_CUT;
}

/* Runs of digits (and hexadecimal addresses) differ between failures of one cause. */
static void pattern_of(const char *reason, char out[INDEX_PATTERN])
{
    size_t n = 0;
    for (const char *p = reason; *p && n + 1 < INDEX_PATTERN;) {
        if (!isdigit((unsigned char)*p)) {
            out[n++] = *p++;
            continue;
        }
        out[n++] = '#';
        if (p[0] == '0' && p[1] == 'x')
            for (p += 2; isxdigit((unsigned char)*p);)
                p++;
        while (isdigit((unsigned char)*p))
            p++;
    }
    out[n] = '\0';
}

static void count_failure(struct index *ix, const struct board_trial *t)
{
    char pattern[INDEX_PATTERN];
    pattern_of(t->reason ? t->reason : "", pattern);
    for (int i = 0; i < ix->nr_groups; i++) {
        struct failure_group *g = &ix->group[i];
        if (g->status == t->status && !strcmp(g->pattern, pattern)) {
            g->count++;
            g->last = t->id;
            return;
        }
    }
    if (ix->nr_groups == INDEX_GROUPS) {
        ix->nr_other++;
        return;
    }
    struct failure_group *g = &ix->group[ix->nr_groups++];
    g->status = t->status;
    g->count = 1;
    g->last = t->id;
    memcpy(g->pattern, pattern, sizeof pattern);
}

/* What an ended trial means for the selected task. */
static void end_member(struct index *ix, const struct board_trial *t)
{
    if (t->task != ix->task)
        return;
    if (t->ended_ns > ix->last_ended_ns)
        ix->last_ended_ns = t->ended_ns;
    if (!trial_failed(t->status))
        return;
    GROW(ix->failed, ix->nr_failed, ix->cap_failed);
    ix->failed[ix->nr_failed++] = t->id;
}

static void add_member(struct index *ix, const struct board_trial *t)
{
    if (t->task != ix->task)
        return;
    GROW(ix->member, ix->nr_members, ix->cap_members);
    ix->member[ix->nr_members++] = t->id;
    if (!ix->first_refine && t->phase == PHASE_REFINE)
        ix->first_refine = t->id;
}

static void select_task(struct index *ix, const struct board *b, int32_t task)
{
    ix->task = task;
    ix->nr_members = ix->nr_failed = 0;
    ix->first_refine = ix->last_ended_ns = 0;
    for (int64_t id = 1; id <= ix->scanned; id++) {
        const struct board_trial *t = board_trial(b, id);
        if (!t)
            continue;
        add_member(ix, t);
        if (t->status != TRIAL_PENDING)
            end_member(ix, t);
    }
}

void index_update(struct index *ix, const struct board *b, int32_t task)
{
    /* The ended ones first: select_task() below then sees each ended trial once. */
    int kept = 0;
    for (int i = 0; i < ix->nr_pending; i++) {
        const struct board_trial *t = board_trial(b, ix->pending[i]);
        if (!t || t->status == TRIAL_PENDING) {
            ix->pending[kept++] = ix->pending[i];
            continue;
        }
        if (trial_failed(t->status))
            count_failure(ix, t);
        end_member(ix, t);
    }
    ix->nr_pending = kept;
    if (task != ix->task)
        select_task(ix, b, task);
    while (ix->scanned < b->nr_trials) {
        const struct board_trial *t = board_trial(b, ++ix->scanned);
        if (t)
            add_member(ix, t);
        if (t && t->status != TRIAL_PENDING) {
            if (trial_failed(t->status))
                count_failure(ix, t);
            end_member(ix, t);
            continue;
        }
        GROW(ix->pending, ix->nr_pending, ix->cap_pending);
        ix->pending[ix->nr_pending++] = ix->scanned;
    }
}

int index_ordinal(const struct index *ix, int64_t trial)
{
    int lo = 0, hi = ix->nr_members;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (ix->member[mid] < trial)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < ix->nr_members && ix->member[lo] == trial ? lo + 1 : 0;
}
