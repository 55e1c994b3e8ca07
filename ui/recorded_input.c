/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/recorded_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/recorded/device.h"

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

bool recorded_inputs(const struct cli_options *o)
{
    const char *path = o->nr_inputs ? o->input[0] : "";
    if (!*path || !input_is_file(path))
        return false;
    return ends_with(path, ".json") || ends_with(path, ".json.gz") || recorded_is_file(path);
}

int recorded_input_rules(const struct cli_options *o, struct recorded_rules *out, struct err *e)
{
    for (int i = 0; i < o->nr_constraints; i++)
        recorded_rules_add(out, o->constraint[i]);
    return o->constraints_file ? recorded_rules_read(out, o->constraints_file, e) : 0;
}

struct recorded_options recorded_input_options(const struct cli_options *o)
{
    return (struct recorded_options){.objective = o->objective, .direction = o->direction};
}

/* What a reader should know of the files, before the first line of the run. Workloads of one file have
 * the same to say. */
static void print_notes(const struct task_list *tasks)
{
    const char *path = "";
    for (int i = 0; i < tasks->nr; i++) {
        const struct recorded *r = recorded_of_task(tasks->task[i]);
        struct strbuf notes = {0};
        char *save = NULL;
        if (strcmp(r->path, path) != 0)
            recorded_notes(r, &notes);
        path = r->path;
        for (char *line = notes.len ? strtok_r(notes.buf, "\n", &save) : NULL; line;
             line = strtok_r(NULL, "\n", &save))
            fprintf(stderr, "squall: \"%s\": %s\n", path, line);
        strbuf_release(&notes);
    }
}

int recorded_prepare(const struct cli_options *o, struct device **device, struct task_list *tasks,
                     struct err *e)
{
    struct recorded_rules rules = {0};
    struct recorded_device_options d = {.load = recorded_input_options(o),
                                        .rules = &rules,
                                        .speed = o->given_speed ? o->speed : 0};
    int rc = recorded_input_rules(o, &rules, e);
    if (!rc)
        rc = recorded_device_open(o->nr_inputs, o->input, &d, tasks, device, e);
    recorded_rules_release(&rules);
    if (rc)
        return rc;
    if (o->task_glob && (rc = select_tasks(tasks, o->task_glob, e))) {
        task_list_release(tasks);
        (*device)->class->close(*device);
        return rc;
    }
    if (!cli_wants_screen(o) && !o->json)
        print_notes(tasks);
    return 0;
}

int recorded_store(struct session *s, const struct cli_options *o, struct err *e)
{
    struct recorded_rules rules = {0};
    struct strbuf lines = {0};
    int rc = recorded_input_rules(o, &rules, e);
    for (int i = 0; i < rules.nr; i++) {
        for (char *p = rules.v[i]; *p; p++)
            *p = *p == '\n' || *p == '\r' ? ' ' : *p;
        strbuf_addf(&lines, "%s\n", rules.v[i]);
    }
    if (rules.nr)
        rc = rc ? rc : session_set(s, KEY_CONSTRAINTS, strbuf_text(&lines), e);
    if (o->objective)
        rc = rc ? rc : session_set(s, KEY_OBJECTIVE, o->objective, e);
    if (o->direction)
        rc = rc ? rc : session_set(s, KEY_DIRECTION, o->direction > 0 ? "max" : "min", e);
    strbuf_release(&lines);
    recorded_rules_release(&rules);
    return rc;
}

void recorded_restore(struct session *s, struct cli_options *o, struct strbuf text[2])
{
    struct strbuf direction = {0};
    o->nr_constraints = 0;
    o->constraints_file = NULL;
    if (session_get(s, KEY_CONSTRAINTS, &text[0], NULL) == 1) {
        char *save = NULL;
        for (char *p = strtok_r(text[0].buf, "\n", &save); p && o->nr_constraints < CLI_MAX_INPUTS;
             p = strtok_r(NULL, "\n", &save))
            o->constraint[o->nr_constraints++] = p;
    }
    o->objective = session_get(s, KEY_OBJECTIVE, &text[1], NULL) == 1 ? strbuf_text(&text[1]) : NULL;
    if (session_get(s, KEY_DIRECTION, &direction, NULL) == 1)
        o->direction = strcmp(strbuf_text(&direction), "max") == 0 ? 1 : -1;
    strbuf_release(&direction);
}
