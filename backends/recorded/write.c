/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/recorded/write.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/recorded/private.h"

recorded_writer *recorded_writer_of(const char *format)
{
    static const struct {
        const char *name;
        recorded_writer *write;
    } writers[] = {
        {"t4", recorded_write_t4},
        {"kt", recorded_write_kt},
        {"csv", recorded_write_csv},
        {"json", recorded_write_json},
    };
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        if (strcmp(format, writers[i].name) == 0)
            return writers[i].write;
    }
    return NULL;
}

/* A whole number is written as one: that is how the files have counts and ids. */
static void add_number(double x, struct strbuf *out)
{
    if (x == floor(x) && fabs(x) < 9007199254740992.0)
        strbuf_addf(out, "%" PRId64, (int64_t)x);
    else
        jwrite_real(x, out);
}

static void add_list(const double *v, int nr, struct strbuf *out)
{
    strbuf_addc(out, '[');
    for (int i = 0; i < nr; i++) {
        if (i)
            strbuf_adds(out, ", ");
        jwrite_real(v[i], out);
    }
    strbuf_addc(out, ']');
}

static void add_metric(const struct recorded_metric *m, struct strbuf *out)
{
    if (m->text)
        jwrite_quote(m->text, out);
    else if (m->list)
        add_list(m->list, m->nr, out);
    else
        add_number(m->num, out);
}

static void add_configuration(const struct recorded *r, int row, struct strbuf *out)
{
    for (int k = 0; k < r->nr_knobs; k++) {
        if (k)
            strbuf_adds(out, ", ");
        jwrite_quote(r->knob[k].name, out);
        strbuf_adds(out, ": ");
        recorded_value_json(&r->knob[k].value[recorded_index(r, row)[k]], out);
    }
}

static bool is_objective(const struct recorded *r, const struct recorded_metric *m)
{
    return strcmp(r->word[m->name], r->objective) == 0;
}

/* The name that Kernel Tuner and its converters write for a failure. */
static const char *failure_name(const struct recorded_row *row)
{
    enum recorded_status s;
    if (row->reason && kernel_tuner_error(row->reason, &s))
        return row->reason;
    switch (row->status) {
    case RECORDED_COMPILE:
        return "CompilationFailedConfig";
    case RECORDED_CONSTRAINTS:
        return "InvalidConfig";
    default:
        return "RuntimeFailedConfig";
    }
}

/* ---- T4 */

static const char *const t4_parts[RECORDED_NR_PARTS] = {
    [PART_COMPILE] = "compilation",       [PART_BENCHMARK] = "benchmark",
    [PART_FRAMEWORK] = "framework",       [PART_STRATEGY] = "search_algorithm",
    [PART_VERIFY] = "validation",
};

static void t4_times(const struct recorded_row *row, struct strbuf *out)
{
    const char *comma = "";
    strbuf_adds(out, "\"times\": {");
    for (int p = 0; p < RECORDED_NR_PARTS; p++) {
        if (!isfinite(row->part_ms[p]))
            continue;
        strbuf_addf(out, "%s\"%s\": ", comma, t4_parts[p]);
        add_number(row->part_ms[p], out);
        comma = ", ";
    }
    if (row->nr_samples) {
        strbuf_addf(out, "%s\"runtimes\": ", comma);
        add_list(row->sample_ms, row->nr_samples, out);
    }
    strbuf_addc(out, '}');
}

static void t4_measurement(const char *name, const char *unit, struct strbuf *out)
{
    strbuf_adds(out, "{\"name\": ");
    jwrite_quote(name, out);
    strbuf_adds(out, ", \"unit\": ");
    jwrite_quote(unit, out);
    strbuf_adds(out, ", \"value\": ");
}

/* The objective comes first, of failed rows too: readers look it up by its name. */
static void t4_measurements(const struct recorded *r, int i, struct strbuf *out)
{
    const struct recorded_row *row = &r->row[i];
    strbuf_adds(out, "\"measurements\": [");
    t4_measurement(r->objective, row->status == RECORDED_OK ? r->unit : "", out);
    if (row->status == RECORDED_OK)
        jwrite_real(recorded_shown(r, row->value), out);
    else
        jwrite_quote(failure_name(row), out);
    strbuf_addc(out, '}');
    for (int k = 0; k < row->nr_metrics; k++) {
        const struct recorded_metric *m = &row->metric[k];
        if (is_objective(r, m))
            continue;
        strbuf_adds(out, ", ");
        t4_measurement(r->word[m->name], m->unit >= 0 ? r->word[m->unit] : "", out);
        add_metric(m, out);
        strbuf_addc(out, '}');
    }
    strbuf_addc(out, ']');
}

void recorded_write_t4(const struct recorded *r, struct strbuf *out)
{
    strbuf_adds(out, "{\"schema_version\": \"1.0.0\",\n\"metadata\": {\"timeunit\": "
                     "\"milliseconds\"},\n\"results\": [");
    for (int i = 0; i < r->nr_rows; i++) {
        const struct recorded_row *row = &r->row[i];
        const char *invalidity = row->status == RECORDED_UNKNOWN
                                     ? "runtime"
                                     : recorded_status_name(row->status);
        strbuf_adds(out, i ? ",\n{" : "\n{");
        if (row->timestamp) {
            strbuf_adds(out, "\"timestamp\": ");
            jwrite_quote(row->timestamp, out);
            strbuf_adds(out, ", ");
        }
        strbuf_adds(out, "\"configuration\": {");
        add_configuration(r, i, out);
        strbuf_adds(out, "}, ");
        t4_times(row, out);
        strbuf_addf(out, ", \"invalidity\": \"%s\", \"correctness\": %d, ", invalidity,
                    row->status == RECORDED_OK);
        t4_measurements(r, i, out);
        strbuf_adds(out, ", \"objectives\": [");
        jwrite_quote(r->objective, out);
        strbuf_adds(out, "]}");
    }
    strbuf_adds(out, "\n]}\n");
}

/* ---- Kernel Tuner */

static const char *const kt_parts[RECORDED_NR_PARTS] = {
    [PART_COMPILE] = "compile_time",     [PART_BENCHMARK] = "benchmark_time",
    [PART_FRAMEWORK] = "framework_time", [PART_STRATEGY] = "strategy_time",
    [PART_VERIFY] = "verification_time",
};

/* Every token on a line of its own, as json.dumps(indent="") has it. */
static void kt_header(const struct recorded *r, struct strbuf *out)
{
    strbuf_adds(out, "{\n\"device_name\": ");
    jwrite_quote(r->device, out);
    strbuf_adds(out, ",\n\"kernel_name\": ");
    jwrite_quote(r->kernel, out);
    strbuf_addf(out, ",\n\"problem_size\": %s,\n\"tune_params_keys\": [", r->problem ? r->problem : "[]");
    for (int k = 0; k < r->nr_knobs; k++) {
        strbuf_adds(out, k ? ",\n" : "\n");
        jwrite_quote(r->knob[k].name, out);
    }
    strbuf_adds(out, "\n],\n\"tune_params\": {");
    for (int k = 0; k < r->nr_knobs; k++) {
        strbuf_adds(out, k ? ",\n" : "\n");
        jwrite_quote(r->knob[k].name, out);
        strbuf_adds(out, ": [");
        for (int i = 0; i < r->knob[k].nr_values; i++) {
            strbuf_adds(out, i ? ",\n" : "\n");
            recorded_value_json(&r->knob[k].value[i], out);
        }
        strbuf_adds(out, "\n]");
    }
    strbuf_adds(out, "\n},\n\"objective\": ");
    jwrite_quote(r->objective, out);
    strbuf_adds(out, ",\n\"cache\": {");
}

static void kt_key(const struct recorded *r, int row, struct strbuf *out)
{
    struct strbuf key = {0};
    for (int k = 0; k < r->nr_knobs; k++) {
        if (k)
            strbuf_addc(&key, ',');
        recorded_value_str(&r->knob[k].value[recorded_index(r, row)[k]], &key);
    }
    jwrite_quote(strbuf_text(&key), out);
    strbuf_release(&key);
}

/* The error's name in the objective's field and no times: all versions from 0.4.2 on read that. */
static void kt_entry(const struct recorded *r, int i, struct strbuf *out)
{
    const struct recorded_row *row = &r->row[i];
    bool ok = row->status == RECORDED_OK;
    add_configuration(r, i, out);
    strbuf_adds(out, ", ");
    jwrite_quote(r->objective, out);
    strbuf_adds(out, ": ");
    if (ok)
        jwrite_real(recorded_shown(r, row->value), out);
    else
        jwrite_quote(failure_name(row), out);
    if (ok && row->nr_samples) {
        strbuf_adds(out, ", \"times\": ");
        add_list(row->sample_ms, row->nr_samples, out);
    }
    for (int p = 0; p < RECORDED_NR_PARTS; p++) {
        if (!isfinite(row->part_ms[p]))
            continue;
        strbuf_addf(out, ", \"%s\": ", kt_parts[p]);
        add_number(row->part_ms[p], out);
    }
    for (int k = 0; k < row->nr_metrics; k++) {
        const struct recorded_metric *m = &row->metric[k];
        if (is_objective(r, m))
            continue;
        strbuf_adds(out, ", ");
        jwrite_quote(r->word[m->name], out);
        strbuf_adds(out, ": ");
        add_metric(m, out);
    }
    if (row->timestamp) {
        strbuf_adds(out, ", \"timestamp\": ");
        jwrite_quote(row->timestamp, out);
    }
}

void recorded_write_kt(const struct recorded *r, struct strbuf *out)
{
    kt_header(r, out);
    for (int i = 0; i < r->nr_rows; i++) {
        strbuf_adds(out, i ? ",\n" : "\n");
        kt_key(r, i, out);
        strbuf_adds(out, ": {");
        kt_entry(r, i, out);
        strbuf_addc(out, '}');
    }
    strbuf_adds(out, "}\n}\n");
}

/* ---- CSV */

static void csv_text(const char *text, struct strbuf *out)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        strbuf_adds(out, text);
        return;
    }
    strbuf_addc(out, '"');
    for (; *text; text++) {
        if (*text == '"')
            strbuf_addc(out, '"');
        strbuf_addc(out, *text);
    }
    strbuf_addc(out, '"');
}

static bool is_scalar(const struct recorded *r, const struct recorded_metric *m)
{
    return !m->text && !m->list && !is_objective(r, m);
}

/* Words that are the name of a measurement of one number in some row. */
static bool *scalar_words(const struct recorded *r)
{
    bool *scalar = xcalloc((size_t)r->nr_words, sizeof *scalar);
    for (int i = 0; i < r->nr_rows; i++) {
        for (int k = 0; k < r->row[i].nr_metrics; k++) {
            const struct recorded_metric *m = &r->row[i].metric[k];
            scalar[m->name] = scalar[m->name] || is_scalar(r, m);
        }
    }
    return scalar;
}

static void csv_row(const struct recorded *r, int i, const bool *scalar,
                    const struct recorded_metric **by_word, struct strbuf *out)
{
    const struct recorded_row *row = &r->row[i];
    struct strbuf value = {0};
    for (int k = 0; k < r->nr_knobs; k++) {
        strbuf_reset(&value);
        recorded_value_str(&r->knob[k].value[recorded_index(r, i)[k]], &value);
        csv_text(strbuf_text(&value), out);
        strbuf_addc(out, ',');
    }
    strbuf_release(&value);
    strbuf_addf(out, "%s,", recorded_status_name(row->status));
    if (row->status == RECORDED_OK)
        jwrite_real(recorded_shown(r, row->value), out);
    strbuf_addc(out, ',');
    if (isfinite(row->cost_s))
        jwrite_real(row->cost_s, out);
    strbuf_addc(out, ',');
    csv_text(row->reason ? row->reason : "", out);
    memset(by_word, 0, (size_t)r->nr_words * sizeof *by_word);
    for (int k = 0; k < row->nr_metrics; k++)
        by_word[row->metric[k].name] = &row->metric[k];
    for (int w = 0; w < r->nr_words; w++) {
        if (!scalar[w])
            continue;
        strbuf_addc(out, ',');
        if (by_word[w] && is_scalar(r, by_word[w]) && isfinite(by_word[w]->num))
            add_number(by_word[w]->num, out);
    }
    strbuf_addc(out, '\n');
}

void recorded_write_csv(const struct recorded *r, struct strbuf *out)
{
    bool *scalar = scalar_words(r);
    const struct recorded_metric **by_word = xcalloc((size_t)r->nr_words, sizeof *by_word);
    for (int k = 0; k < r->nr_knobs; k++) {
        csv_text(r->knob[k].name, out);
        strbuf_addc(out, ',');
    }
    strbuf_adds(out, "status,");
    csv_text(r->objective, out);
    strbuf_adds(out, ",cost_s,reason");
    for (int w = 0; w < r->nr_words; w++) {
        if (!scalar[w])
            continue;
        strbuf_addc(out, ',');
        csv_text(r->word[w], out);
    }
    strbuf_addc(out, '\n');
    for (int i = 0; i < r->nr_rows; i++)
        csv_row(r, i, scalar, by_word, out);
    free(scalar);
    free(by_word);
}

/* ---- JSON */

static void json_row(const struct recorded *r, int i, struct strbuf *out)
{
    const struct recorded_row *row = &r->row[i];
    strbuf_adds(out, "{\"knobs\": {");
    add_configuration(r, i, out);
    strbuf_addf(out, "}, \"status\": \"%s\", \"value\": ", recorded_status_name(row->status));
    if (row->status == RECORDED_OK)
        jwrite_real(recorded_shown(r, row->value), out);
    else
        strbuf_adds(out, "null");
    strbuf_adds(out, ", \"cost_s\": ");
    if (isfinite(row->cost_s))
        jwrite_real(row->cost_s, out);
    else
        strbuf_adds(out, "null");
    if (row->reason) {
        strbuf_adds(out, ", \"reason\": ");
        jwrite_quote(row->reason, out);
    }
    if (row->timestamp) {
        strbuf_adds(out, ", \"timestamp\": ");
        jwrite_quote(row->timestamp, out);
    }
    strbuf_adds(out, ", \"samples_ms\": ");
    add_list(row->sample_ms, row->nr_samples, out);
    strbuf_adds(out, ", \"measurements\": {");
    const char *comma = "";
    for (int k = 0; k < row->nr_metrics; k++) {
        const struct recorded_metric *m = &row->metric[k];
        if (!m->text && !m->list && !isfinite(m->num))
            continue; /* no number in strict JSON */
        strbuf_adds(out, comma);
        jwrite_quote(r->word[m->name], out);
        strbuf_adds(out, ": ");
        add_metric(m, out);
        comma = ", ";
    }
    strbuf_adds(out, "}}");
}

void recorded_write_json(const struct recorded *r, struct strbuf *out)
{
    const struct {
        const char *name, *text;
    } fields[] = {
        {"name", r->name},     {"format", r->format},       {"device", r->device},
        {"kernel", r->kernel}, {"objective", r->objective}, {"unit", r->unit},
        {"direction", r->maximise ? "maximise" : "minimise"},
    };
    strbuf_addc(out, '{');
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        strbuf_addf(out, "\"%s\": ", fields[i].name);
        jwrite_quote(fields[i].text, out);
        strbuf_adds(out, ", ");
    }
    strbuf_adds(out, "\n\"knobs\": [");
    for (int k = 0; k < r->nr_knobs; k++) {
        strbuf_adds(out, k ? ",\n{\"name\": " : "\n{\"name\": ");
        jwrite_quote(r->knob[k].name, out);
        strbuf_addf(out, ", \"ordinal\": %s, \"values\": [", r->knob[k].ordinal ? "true" : "false");
        for (int i = 0; i < r->knob[k].nr_values; i++) {
            strbuf_adds(out, i ? ", " : "");
            recorded_value_json(&r->knob[k].value[i], out);
        }
        strbuf_adds(out, "]}");
    }
    strbuf_adds(out, "],\n\"rows\": [");
    for (int i = 0; i < r->nr_rows; i++) {
        strbuf_adds(out, i ? ",\n" : "\n");
        json_row(r, i, out);
    }
    strbuf_adds(out, "]}\n");
}
