/* SPDX-License-Identifier: Apache-2.0 */
/* `space`: what a recorded space is made of. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/recorded/device.h"
#include "ui/cli.h"
#include "ui/recorded_input.h"

static void add_knobs(const struct recorded *r, struct strbuf *out)
{
    enum { SHOWN = 12 };
    size_t width = 4;
    for (int k = 0; k < r->nr_knobs; k++)
        width = strlen(r->knob[k].name) > width ? strlen(r->knob[k].name) : width;
    for (int k = 0; k < r->nr_knobs; k++) {
        const struct recorded_knob *n = &r->knob[k];
        const char *kind = n->nr_values == 1 ? "fixed" : n->ordinal ? "ordinal" : "choice";
        strbuf_addf(out, "  %-*s  %-7s  %4d  ", (int)width, n->name, kind, n->nr_values);
        for (int i = 0; i < n->nr_values; i++) {
            if (i >= SHOWN - 2 && i < n->nr_values - 1 && n->nr_values > SHOWN) {
                strbuf_adds(out, i == SHOWN - 2 ? "... " : "");
                continue;
            }
            recorded_value_str(&n->value[i], out);
            strbuf_addc(out, ' ');
        }
        out->buf[--out->len] = '\0';
        strbuf_addc(out, '\n');
    }
}

static void add_rows(const struct recorded *r, struct strbuf *out)
{
    int by[RECORDED_NR_STATUS] = {0};
    double *v = recorded_sorted(r), cost_s = 0;
    int n = r->nr_ok;
    for (int i = 0; i < r->nr_rows; i++) {
        by[r->row[i].status]++;
        cost_s += isfinite(r->row[i].cost_s) ? r->row[i].cost_s : 0;
    }
    strbuf_addf(out, "recorded  %d configurations:", r->nr_rows);
    for (int s = 0; s < RECORDED_NR_STATUS; s++) {
        if (by[s])
            strbuf_addf(out, " %d %s", by[s], recorded_status_name((enum recorded_status)s));
    }
    if (r->has_cost)
        strbuf_addf(out, "; %.2f h", cost_s / 3600);
    double median = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
    strbuf_addf(out, "\nobjective %s%s%s, %s: best %.6g, median %.6g, worst %.6g\nbest      ",
                r->objective, *r->unit ? " in " : "", r->unit,
                r->maximise ? "maximised" : "minimised", recorded_shown(r, v[0]),
                recorded_shown(r, median), recorded_shown(r, v[n - 1]));
    for (int k = 0; k < r->nr_knobs; k++) {
        strbuf_addf(out, "%s%s=", k ? " " : "", r->knob[k].name);
        recorded_value_str(&r->knob[k].value[recorded_index(r, r->best)[k]], out);
    }
    strbuf_addc(out, '\n');
    free(v);
}

static void add_count(int64_t n, struct strbuf *out)
{
    if (n < 0 || n == INT64_MAX)
        strbuf_addf(out, "%14s", "too many");
    else
        strbuf_addf(out, "%14" PRId64, n);
}

static int add_constraints(const struct recorded *r, const struct recorded_rules *rules,
                           struct strbuf *out, struct err *e)
{
    struct space s;
    space_init(&s);
    int rc = rules->nr ? recorded_ruled_space(r, rules, &s, e) : recorded_space(r, &s, e);
    if (rc) {
        space_release(&s);
        return rc;
    }
    const struct sketch *k = s.sketch[0];
    strbuf_adds(out, "product   ");
    add_count(space_product(&s, 0), out);
    strbuf_adds(out, "\nspace     ");
    add_count(space_count(&s, INT64_MAX), out);
    strbuf_addf(out, rules->nr ? "  %d of the recorded ones are outside\n"
                               : "  what is recorded, for no constraints are given\n",
                recorded_outside(r, &s));
    struct space_removal *gone = xcalloc((size_t)k->nr_constraints, sizeof *gone);
    space_removed(&s, 0, gone);
    if (k->nr_constraints)
        strbuf_addf(out, "%14s%14s  constraint\n", "removes alone", "besides all");
    for (int i = 0; i < k->nr_constraints; i++) {
        add_count(gone[i].alone, out);
        add_count(gone[i].last, out);
        strbuf_addf(out, "  %s\n", gone[i].name);
    }
    free(gone);
    space_release(&s);
    return 0;
}

static int describe(const struct recorded *r, const struct recorded_rules *rules,
                    struct strbuf *out, struct err *e)
{
    strbuf_addf(out, "%s  %s%s%s%s%s\n", r->name, r->format, *r->kernel ? "  " : "", r->kernel,
                *r->device ? " on " : "", r->device);
    add_knobs(r, out);
    add_rows(r, out);
    int rc = add_constraints(r, rules, out, e);
    recorded_notes(r, out);
    return rc;
}

int cmd_space(int argc, char **argv)
{
    struct cli_options o;
    int code = cli_parse(command_find("space"), argc, argv, &o);
    if (code >= 0)
        return code;
    if (o.nr_inputs != 1) {
        fprintf(stderr, "squall space: wants one file; see squall space --help\n");
        return EXIT_USAGE;
    }
    struct err e = ERR_INIT;
    struct recorded_options ro = recorded_input_options(&o);
    struct recorded_rules rules = {0};
    struct recorded_list l = {0};
    struct strbuf out = {0};
    int rc = recorded_input_rules(&o, &rules, &e);
    rc = rc ? rc : recorded_load_all(o.input[0], &ro, &l, &e);
    for (int i = 0; i < l.nr && !rc; i++) {
        if (i)
            strbuf_addc(&out, '\n');
        rc = describe(l.v[i], &rules, &out, &e);
    }
    if (rc)
        cli_error(&e);
    else
        fputs(strbuf_text(&out), stdout);
    strbuf_release(&out);
    recorded_list_release(&l);
    recorded_rules_release(&rules);
    return rc ? EXIT_FAILED : EXIT_DONE;
}
