/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of events: what event.c writes and reads, and event_scan.c reads fast. Not for others.
 */
#ifndef ENGINE_TUNE_EVENT_FIELDS_H
#define ENGINE_TUNE_EVENT_FIELDS_H

#include "engine/tune/event.h"

struct event_names {
    const char *(*name)(int);
    int nr;
};

enum event_type { T_TEXT, T_I32, T_I64, T_U64, T_REAL, T_BOOL, T_NAME, T_REALS };

struct event_field {
    enum event_kind kind;
    enum event_type type;
    bool must;
    const char *name;
    size_t name_len;
    size_t offset;
    size_t size;                     /* T_TEXT: bytes; T_REALS: elements */
    const struct event_names *names; /* T_NAME */
    size_t count_offset;             /* T_REALS: where their number is (int32_t) */
};

enum { EVENT_NR_COMMON = 5 };

/* The fields that every event has; they are written first. */
extern const struct event_field event_common[EVENT_NR_COMMON];

/* The fields of a kind, in the order they are written; returns their number. */
int event_fields(enum event_kind kind, const struct event_field **first);

/* Is it within what an event may say of itself? */
bool event_plausible(const struct event *ev);

/*
 * Reads what event_to_json() wrote, or wrote when the last fields of the kind did not exist yet:
 * the fields in their order, without blanks, in ASCII. False for
 * any other text, which may be an event all the same; *ev is undefined then. Ten times as fast as
 * event_parse(), and never of another opinion.
 */
bool event_scan(const char *text, size_t len, struct event *ev);

/* Reads any JSON. */
int event_parse(const char *text, size_t len, struct event *ev, struct err *e);

#endif
