/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/restore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/flow.h"
#include "ui/recorded_input.h"

static bool stored(struct session *s, const char *key, struct strbuf *value)
{
    strbuf_reset(value);
    return session_get(s, key, value, NULL) == 1;
}

int restore_inputs(struct session *s, struct cli_options *o, struct strbuf text[RESTORE_TEXTS],
                   struct err *e)
{
    o->target = stored(s, KEY_TARGET, &text[0]) ? strbuf_text(&text[0]) : "llvm";
    if (stored(s, KEY_THREADS, &text[1]))
        o->threads = (int)strtol(strbuf_text(&text[1]), NULL, 10);
    if (o->threads < 1)
        return err_set(e, ERR_SESSION, "session \"%s\" names no thread count", session_path(s));
    if (stored(s, KEY_SHAPES, &text[1]))
        snprintf(o->shapes, sizeof o->shapes, "%s", strbuf_text(&text[1]));
    o->task_glob = stored(s, KEY_TASK_GLOB, &text[1]) ? strbuf_text(&text[1]) : NULL;
    if (!stored(s, KEY_INPUTS, &text[2]))
        return err_set(e, ERR_SESSION, "session \"%s\" does not say what it tunes",
                       session_path(s));
    o->nr_inputs = 0;
    char *save = NULL;
    for (char *p = strtok_r(text[2].buf, "\n", &save); p && o->nr_inputs < CLI_MAX_INPUTS;
         p = strtok_r(NULL, "\n", &save))
        o->input[o->nr_inputs++] = p;
    recorded_restore(s, o, &text[3]);
    o->flow = stored(s, KEY_LAYOUT, &text[5]) ? strbuf_text(&text[5]) : NULL;
    int rc = o->flow ? flow_check(o->flow, o->nr_inputs, e) : 0;
    if (rc)
        err_prefix(e, "session \"%s\" is damaged", session_path(s));
    return rc ? rc : session_check_inputs(s, e);
}
