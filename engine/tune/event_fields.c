/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tune/event_fields.h"

#include <stddef.h>

const char *event_kind_name(enum event_kind k)
{
    static const char *const names[] = {
#define EVENT_NAME_OF(name, text) text,
        EVENT_LIST(EVENT_NAME_OF)
#undef EVENT_NAME_OF
    };
    return (unsigned)k < EV_NR_KINDS ? names[k] : "unknown";
}

const char *phase_name(enum phase p)
{
    static const char *const names[] = {"waiting", "default", "explore", "refine", "final", "done"};
    return (unsigned)p <= PHASE_DONE ? names[p] : "unknown";
}

static const char *name_of_phase(int v)
{
    return phase_name((enum phase)v);
}

static const char *name_of_status(int v)
{
    return trial_status_name((enum trial_status)v);
}

static const char *name_of_origin(int v)
{
    return origin_name((enum origin)v);
}

static const char *name_of_verdict(int v)
{
    return verdict_name((enum verdict)v);
}

const char *final_verdict_name(enum final_verdict v)
{
    static const char *const names[] = {"none", "separated", "tied", "open"};
    return (unsigned)v <= FINAL_OPEN ? names[v] : "unknown";
}

static const char *name_of_final_verdict(int v)
{
    return final_verdict_name((enum final_verdict)v);
}

static const char *name_of_knob_kind(int v)
{
    static const char *const names[] = {"split", "ordinal", "choice", "flag", "permutation"};
    return names[v];
}

static const struct event_names phases = {name_of_phase, PHASE_DONE + 1};
static const struct event_names statuses = {name_of_status, TRIAL_NR_STATUS};
static const struct event_names origins = {name_of_origin, ORIGIN_FINAL + 1};
static const struct event_names verdicts = {name_of_verdict, VERDICT_MOVED + 1};
static const struct event_names final_verdicts = {name_of_final_verdict, FINAL_OPEN + 1};
static const struct event_names knob_kinds = {name_of_knob_kind, KNOB_PERMUTATION + 1};

#define NAMED(m) #m, sizeof #m - 1
#define AT(part, m) offsetof(struct event, u.part.m)
#define SIZE_OF(part, m) sizeof(((struct event *)0)->u.part.m)
#define TEXT(k, part, m)                                                                           \
    {                                                                                              \
        k, T_TEXT, false, NAMED(m), AT(part, m), SIZE_OF(part, m), NULL, 0                         \
    }
#define TEXT_MUST(k, part, m)                                                                      \
    {                                                                                              \
        k, T_TEXT, true, NAMED(m), AT(part, m), SIZE_OF(part, m), NULL, 0                          \
    }
#define NUMBER(k, part, m, type)                                                                   \
    {                                                                                              \
        k, type, false, NAMED(m), AT(part, m), SIZE_OF(part, m), NULL, 0                           \
    }
#define NUMBER_MUST(k, part, m, type)                                                              \
    {                                                                                              \
        k, type, true, NAMED(m), AT(part, m), SIZE_OF(part, m), NULL, 0                            \
    }
#define NAME_OF(k, part, m, names, must)                                                           \
    {                                                                                              \
        k, T_NAME, must, NAMED(m), AT(part, m), SIZE_OF(part, m), &names, 0                        \
    }
#define NAME(k, part, m, names) NAME_OF(k, part, m, names, true)
#define REALS(k, part, m, nr)                                                                      \
    {                                                                                              \
        k, T_REALS, false, NAMED(m), AT(part, m), SIZE_OF(part, m) / sizeof(double), NULL,         \
            AT(part, nr)                                                                           \
    }

static const struct event_field fields[] = {
    TEXT(EV_SESSION, session, input),
    TEXT(EV_SESSION, session, model),
    TEXT(EV_SESSION, session, target),
    TEXT(EV_SESSION, session, hardware),
    TEXT(EV_SESSION, session, compiler),
    TEXT(EV_SESSION, session, version),
    TEXT(EV_SESSION, session, strategy),
    NUMBER(EV_SESSION, session, trials, T_I64),
    NUMBER(EV_SESSION, session, explore, T_I64),
    NUMBER(EV_SESSION, session, refine, T_I64),
    NUMBER(EV_SESSION, session, seconds, T_REAL),
    NUMBER(EV_SESSION, session, peak_gflops, T_REAL),
    NUMBER(EV_SESSION, session, seed, T_U64),
    NUMBER(EV_SESSION, session, jobs, T_I32),
    NUMBER(EV_SESSION, session, cold, T_I32),
    NUMBER(EV_SESSION, session, threads, T_I32),
    NUMBER(EV_SESSION, session, nr_tasks, T_I32),
    NUMBER(EV_SESSION, session, resumed, T_I32),

    TEXT_MUST(EV_TASK, task, name),
    TEXT(EV_TASK, task, workload),
    TEXT(EV_TASK, task, where),
    TEXT(EV_TASK, task, kind),
    NUMBER_MUST(EV_TASK, task, weight, T_REAL),
    NUMBER(EV_TASK, task, flops, T_REAL),
    NUMBER(EV_TASK, task, bytes, T_REAL),
    NUMBER(EV_TASK, task, space, T_REAL),
    NUMBER(EV_TASK, task, nr_sketches, T_I32),

    NUMBER_MUST(EV_KNOB, knob, sketch, T_I32),
    NUMBER_MUST(EV_KNOB, knob, knob, T_I32),
    NAME(EV_KNOB, knob, kind, knob_kinds),
    NUMBER(EV_KNOB, knob, extent, T_I64),
    TEXT(EV_KNOB, knob, sketch_name),
    TEXT_MUST(EV_KNOB, knob, name),
    TEXT(EV_KNOB, knob, values),

    NAME(EV_PHASE, phase, phase, phases),
    TEXT(EV_PHASE, phase, strategy),
    TEXT(EV_PHASE, phase, why),
    NUMBER(EV_PHASE, phase, budget, T_I64),
    NUMBER(EV_PHASE, phase, used, T_I64),

    TEXT_MUST(EV_PROPOSED, proposed, code),
    TEXT(EV_PROPOSED, proposed, sketch),
    TEXT(EV_PROPOSED, proposed, knobs),
    TEXT(EV_PROPOSED, proposed, strategy),
    TEXT(EV_PROPOSED, proposed, note),
    NAME(EV_PROPOSED, proposed, phase, phases),
    NAME(EV_PROPOSED, proposed, origin, origins),
    NUMBER(EV_PROPOSED, proposed, parent, T_I64),
    NUMBER(EV_PROPOSED, proposed, knob, T_I32),
    NUMBER(EV_PROPOSED, proposed, dir, T_I32),
    NUMBER(EV_PROPOSED, proposed, compare, T_BOOL),

    NAME(EV_TRIAL, trial, status, statuses),
    TEXT(EV_TRIAL, trial, reason),
    NUMBER(EV_TRIAL, trial, cost_ns, T_REAL),
    NUMBER(EV_TRIAL, trial, median_ns, T_REAL),
    REALS(EV_TRIAL, trial, sample_ns, nr_samples),
    REALS(EV_TRIAL, trial, ref_ns, nr_ref),
    NUMBER(EV_TRIAL, trial, checked, T_BOOL),
    NUMBER(EV_TRIAL, trial, error, T_REAL),
    NUMBER(EV_TRIAL, trial, build_ns, T_I64),
    NUMBER(EV_TRIAL, trial, measure_ns, T_I64),
    NUMBER(EV_TRIAL, trial, code_bytes, T_I64),
    NUMBER(EV_TRIAL, trial, started_ns, T_I64),
    NUMBER(EV_TRIAL, trial, ended_ns, T_I64),
    NUMBER(EV_TRIAL, trial, canary_ns, T_REAL),
    NUMBER(EV_TRIAL, trial, drift, T_REAL),

    NAME(EV_INCUMBENT, incumbent, phase, phases),
    NUMBER(EV_INCUMBENT, incumbent, cost_ns, T_REAL),
    NUMBER(EV_INCUMBENT, incumbent, centre, T_BOOL),

    NUMBER(EV_DECISION, decision, incumbent, T_I64),
    NAME(EV_DECISION, decision, verdict, verdicts),
    NUMBER(EV_DECISION, decision, p_value, T_REAL),
    NUMBER(EV_DECISION, decision, gain, T_REAL),
    TEXT(EV_DECISION, decision, text),

    NUMBER(EV_RESULT, result, default_ns, T_REAL),
    NUMBER(EV_RESULT, result, default_lo, T_REAL),
    NUMBER(EV_RESULT, result, default_hi, T_REAL),
    NUMBER(EV_RESULT, result, explored_ns, T_REAL),
    NUMBER(EV_RESULT, result, explored_lo, T_REAL),
    NUMBER(EV_RESULT, result, explored_hi, T_REAL),
    NUMBER(EV_RESULT, result, refined_ns, T_REAL),
    NUMBER(EV_RESULT, result, refined_lo, T_REAL),
    NUMBER(EV_RESULT, result, refined_hi, T_REAL),
    NUMBER(EV_RESULT, result, default_trial, T_I64),
    NUMBER(EV_RESULT, result, explored_trial, T_I64),
    NUMBER(EV_RESULT, result, refined_trial, T_I64),
    NUMBER(EV_RESULT, result, error, T_REAL),
    TEXT(EV_RESULT, result, why),
    NAME_OF(EV_RESULT, result, verdict, final_verdicts, false),
    NUMBER(EV_RESULT, result, rounds, T_I32),
    NUMBER(EV_RESULT, result, pairs, T_I32),
    NUMBER(EV_RESULT, result, p_value, T_REAL),
    NUMBER(EV_RESULT, result, gain, T_REAL),
    NUMBER(EV_RESULT, result, gain_lo, T_REAL),
    NUMBER(EV_RESULT, result, gain_hi, T_REAL),

    TEXT_MUST(EV_COMMAND, command, verb),
    TEXT(EV_COMMAND, command, text),
    NUMBER(EV_COMMAND, command, after, T_I64),
    NUMBER(EV_COMMAND, command, value, T_REAL),

    NUMBER(EV_NOTE, note, level, T_I32),
    TEXT_MUST(EV_NOTE, note, text),

    NUMBER(EV_USAGE, usage, active_ns, T_I64),
    NUMBER(EV_USAGE, usage, build_ns, T_I64),
    NUMBER(EV_USAGE, usage, measure_ns, T_I64),
    NUMBER(EV_USAGE, usage, search_ns, T_I64),
    NUMBER(EV_USAGE, usage, prepare_ns, T_I64),
    NUMBER(EV_USAGE, usage, wait_ns, T_I64),
    NUMBER(EV_USAGE, usage, trials, T_I64),
    NUMBER(EV_USAGE, usage, restarts, T_I64),
    NUMBER(EV_USAGE, usage, canary_ns, T_REAL),
    NUMBER(EV_USAGE, usage, drift, T_REAL),

    NUMBER_MUST(EV_ENDED, ended, finished, T_BOOL),
    TEXT(EV_ENDED, ended, why),
};

enum { NR_FIELDS = sizeof fields / sizeof *fields };

#define COMMON(m, type, must)                                                                      \
    {                                                                                              \
        EV_SESSION, type, must, NAMED(m), offsetof(struct event, m), 0, NULL, 0                    \
    }

const struct event_field event_common[EVENT_NR_COMMON] = {
    COMMON(seq, T_I64, false), COMMON(wall_ns, T_I64, false), COMMON(t_ns, T_I64, false),
    COMMON(task, T_I32, true), COMMON(trial, T_I64, true),
};

/* The table is in the order of the kinds. */
int event_fields(enum event_kind kind, const struct event_field **first)
{
    int at = 0, nr = 0;
    while (at < NR_FIELDS && fields[at].kind < kind)
        at++;
    while (at + nr < NR_FIELDS && fields[at + nr].kind == kind)
        nr++;
    *first = &fields[at];
    return nr;
}

bool event_plausible(const struct event *ev)
{
    return ev->task >= -1 && ev->trial >= 0 && ev->seq >= 0;
}
