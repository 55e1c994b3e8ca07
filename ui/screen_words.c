/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/screen_words.h"

#include <string.h>

struct word word_session(const struct view *v, const struct board *b)
{
    const struct glyphs *g = v->g;
    if (b->ended)
        return b->finished ? (struct word){g->done, "finished", ROLE_GOOD}
                           : (struct word){g->stop, "interrupted", ROLE_WARN};
    if (v->gone)
        return (struct word){g->failed, "failed", ROLE_BAD};
    if (v->replay)
        return (struct word){g->replay, "replay", ROLE_RUNNING};
    if (v->abandoning)
        return (struct word){g->stop, "abandoning", ROLE_WARN};
    if (v->stopping)
        return (struct word){g->stop, "stopping", ROLE_WARN};
    if (!b->has_session)
        return (struct word){g->waiting, "starting", ROLE_NORMAL};
    if (b->paused)
        return (struct word){g->pause, "paused", ROLE_WARN};
    return (struct word){g->running, "running", ROLE_RUNNING};
}

const char *word_phase(enum phase p)
{
    static const char *const words[] = {
        [PHASE_WAITING] = "waiting", [PHASE_DEFAULT] = "default",  [PHASE_EXPLORE] = "exploring",
        [PHASE_REFINE] = "refining", [PHASE_FINAL] = "final",      [PHASE_DONE] = "done",
    };
    return (unsigned)p < sizeof words / sizeof words[0] ? words[p] : "?";
}

struct word word_task(const struct view *v, const struct board_task *t)
{
    const struct glyphs *g = v->g;
    struct word w = {g->waiting, word_phase(t->phase), ROLE_DIM};
    switch (t->phase) {
    case PHASE_DEFAULT:
    case PHASE_EXPLORE:
        w.glyph = g->explore;
        w.role = ROLE_EXPLORE;
        break;
    case PHASE_REFINE:
    case PHASE_FINAL:
        w.glyph = g->refine;
        w.role = ROLE_REFINE;
        break;
    case PHASE_DONE:
        w.glyph = g->done;
        w.role = ROLE_NORMAL;
        break;
    default:
        break;
    }
    return w;
}

struct word word_rung(const struct view *v, enum rung_state s)
{
    const struct glyphs *g = v->g;
    switch (s) {
    case RUNG_QUEUED:
        return (struct word){g->waiting, "queued", ROLE_DIM};
    case RUNG_SPECULATIVE:
        return (struct word){g->speculate, "ahead", ROLE_DIM};
    case RUNG_MEASURING:
        return (struct word){g->running, "runs", ROLE_RUNNING};
    case RUNG_BETTER:
        return (struct word){g->better, "better", ROLE_GOOD};
    case RUNG_MOVED:
        return (struct word){g->moved, "moved", ROLE_GOOD};
    case RUNG_WORSE:
        return (struct word){g->worse, "worse", ROLE_NORMAL};
    case RUNG_NOISE:
        return (struct word){g->noise, "noise", ROLE_WARN};
    case RUNG_CUT:
        return (struct word){g->worse, "cut", ROLE_NORMAL};
    case RUNG_FAILED:
        return (struct word){g->failed, "failed", ROLE_BAD};
    case RUNG_MEASURED:
        break;
    }
    return (struct word){g->waiting, "measured", ROLE_NORMAL};
}

struct word word_trial(const struct view *v, const struct board_trial *t)
{
    static const char *const words[TRIAL_NR_STATUS] = {
        [TRIAL_PENDING] = "queued",
        [TRIAL_OK] = "ok",
        [TRIAL_INVALID] = "invalid",
        [TRIAL_BUILD_ERROR] = "build error",
        [TRIAL_BUILD_TIMEOUT] = "build timeout",
        [TRIAL_WRONG_RESULT] = "wrong result",
        [TRIAL_CRASHED] = "crashed",
        [TRIAL_RUN_TIMEOUT] = "run timeout",
        [TRIAL_CUT] = "cut: far above the best",
        [TRIAL_DEVICE_ERROR] = "device error",
    };
    const struct glyphs *g = v->g;
    struct word w = {g->failed, t->status < TRIAL_NR_STATUS ? words[t->status] : "?", ROLE_BAD};
    if (t->status == TRIAL_PENDING) {
        w.glyph = t->measuring ? g->running : g->waiting;
        w.role = t->measuring ? ROLE_RUNNING : ROLE_DIM;
        if (t->measuring)
            w.text = "measuring";
    } else if (t->status == TRIAL_OK) {
        w.glyph = g->done;
        w.role = ROLE_NORMAL;
    } else if (t->status == TRIAL_CUT) {
        w.glyph = g->worse;
        w.role = ROLE_NORMAL;
    }
    return w;
}

void words_origin(struct strbuf *out, const struct board_trial *t)
{
    static const char *const words[] = {
        [ORIGIN_DEFAULT] = "the untuned schedule",
        [ORIGIN_SAMPLE] = "drawn at random",
        [ORIGIN_MUTATE] = "mutation",
        [ORIGIN_NEIGHBOUR] = "neighbour",
        [ORIGIN_SPECULATE] = "winning step repeated",
        [ORIGIN_PAIR] = "two steps at once",
        [ORIGIN_START] = "start of a descent",
        [ORIGIN_ENUMERATE] = "next of the enumeration",
        [ORIGIN_FINAL] = "measured for the result",
    };
    strbuf_adds(out, t->origin < sizeof words / sizeof words[0] ? words[t->origin] : "?");
    if (t->parent > 0)
        strbuf_addf(out, t->origin == ORIGIN_MUTATE || t->origin == ORIGIN_NEIGHBOUR ? " of #%lld"
                                                                                   : " from #%lld",
                    (long long)t->parent);
    if (t->note && *t->note)
        strbuf_addf(out, ": %s", t->note);
}
