/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "backends/recorded/json.h"
#include "backends/recorded/recorded.h"
#include "backends/recorded/write.h"
#include "engine/base/rng.h"
#include "tests/recorded_texts.h"
#include "tests/shared_files.h"

static struct recorded *parsed(const char *text, size_t len, const struct recorded_options *o)
{
    struct recorded_list l = {0};
    struct err e = ERR_INIT;
    /* Of just this size, so that a sanitizer sees a read past the end. */
    char *copy = malloc(len ? len : 1);
    memcpy(copy, text, len);
    struct recorded *r = NULL;
    if (recorded_parse("made/up.json", copy, len, o, &l, &e) == 0) {
        r = l.v[0];
        l.v[0] = NULL;
    } else {
        assert_true(e.code < 0 && e.msg[0]);
    }
    free(copy);
    recorded_list_release(&l);
    return r;
}

/* The row with these values, as str() writes them. */
static const struct recorded_row *row_of(const struct recorded *r, const char *key)
{
    for (int i = 0; i < r->nr_rows; i++) {
        struct strbuf sb = {0};
        for (int k = 0; k < r->nr_knobs; k++) {
            strbuf_adds(&sb, k ? "," : "");
            recorded_value_str(&r->knob[k].value[recorded_index(r, i)[k]], &sb);
        }
        bool same = strcmp(strbuf_text(&sb), key) == 0;
        strbuf_release(&sb);
        if (same) {
            assert_int_equal(recorded_find(r, recorded_index(r, i)), i);
            return &r->row[i];
        }
    }
    fail_msg("no row %s", key);
    return NULL;
}

/* ---- Kernel Tuner */

static void test_cachefile(void **state)
{
    (void)state;
    struct recorded *r = parsed(cachefile, sizeof cachefile - 1, NULL);
    assert_non_null(r);
    assert_string_equal(r->device, "ACME GPU 1");
    assert_string_equal(r->kernel, "saxpy");
    assert_string_equal(r->problem, "[1048576]");
    assert_false(r->closed);
    assert_int_equal(r->nr_damaged, 0);
    assert_int_equal(r->nr_knobs, 4);
    assert_int_equal(r->nr_rows, 6);
    assert_int_equal(r->nr_ok, 2);
    /* Domains as stated: numbers are ordinal, in the file's order where that is one. */
    assert_true(r->knob[0].ordinal && r->knob[0].value[0].i == 256);
    assert_true(r->knob[1].ordinal && r->knob[1].value[1].num == 2.5);
    assert_false(r->knob[2].ordinal || r->knob[3].ordinal);
    assert_false(r->knob[0].inferred);

    const struct recorded_row *q = row_of(r, "64,1,False,row");
    assert_int_equal(q->status, RECORDED_OK);
    assert_true(q->value == 0.25 && q->nr_samples == 2 && q->sample_ms[1] == 0.24);
    assert_true(fabs(q->cost_s - 0.317) < 1e-12);
    assert_string_equal(q->timestamp, "2026-01-02 03:04:05.678901+00:00");
    assert_true(recorded_metric(r, (int)(q - r->row), "GB/s")->num == 50.3);

    q = row_of(r, "128,2.5,True,a,b"); /* the comma is part of the value */
    assert_int_equal(q->status, RECORDED_COMPILE);
    assert_true(isinf(q->value) && fabs(q->cost_s - 0.095) < 1e-12);
    assert_int_equal(row_of(r, "256,2.5,True,row")->status, RECORDED_RUNTIME);
    assert_int_equal(row_of(r, "256,1,True,row")->status, RECORDED_CONSTRAINTS);
    assert_int_equal(row_of(r, "64,1,True,row")->status, RECORDED_RUNTIME); /* NaN */
    q = row_of(r, "128,1,False,row");
    assert_true(r->zero_pairs && q->nr_samples == 2 && q->sample_ms[0] == 0.25);
    assert_true(isnan(q->cost_s));
    assert_int_equal(q - r->row, r->best);
    recorded_free(r);
}

/* A run with the objective GFLOP/s writes its errors there, and no time. */
static void test_error_in_the_objectives_field(void **state)
{
    (void)state;
    static const char text[] = CACHE_HEADER "\"objective\": \"GFLOP/s\",\n\"cache\": {"
        CACHE_ROW("a", "\"block\": 64, \"vec\": 1, \"ldg\": false, \"how\": \"row\"",
                  "\"time\": 2.0, \"GFLOP/s\": 10.5")
        CACHE_ROW("b", "\"block\": 128, \"vec\": 1, \"ldg\": false, \"how\": \"row\"",
                  "\"GFLOP/s\": \"CompilationFailedConfig\"")
        CACHE_ROW("c", "\"block\": 256, \"vec\": 1, \"ldg\": false, \"how\": \"row\"",
                  "\"time\": \"RuntimeFailedConfig\", \"GFLOP/s\": 99.0")
        CACHE_ROW("d", "\"block\": 64, \"vec\": 2.5, \"ldg\": false, \"how\": \"row\"",
                  "\"time\": 9.0, \"GFLOP/s\": 20");
    struct recorded *r = parsed(text, sizeof text - 1, NULL);
    assert_true(r->maximise && !r->direction_guessed);
    assert_int_equal(r->nr_ok, 2);
    assert_true(recorded_shown(r, r->row[r->best].value) == 20);
    assert_int_equal(row_of(r, "256,1,False,row")->status, RECORDED_RUNTIME); /* stale 99 */
    recorded_free(r);
    r = parsed(text, sizeof text - 1, &(struct recorded_options){.objective = "time"});
    assert_true(!r->maximise && r->row[r->best].value == 2);
    recorded_free(r);
}

static void test_last_of_equal_keys_counts(void **state)
{
    (void)state;
    static const char text[] = CACHE_HEADER "\"cache\": {"
        CACHE_ROW("a", "\"block\": 64, \"vec\": 1, \"ldg\": false, \"how\": \"row\"",
                  "\"time\": 2.0")
        CACHE_ROW("a", "\"block\": 64, \"vec\": 1.0, \"ldg\": 0, \"how\": \"row\"",
                  "\"time\": 3.0") "\n}\n}";
    struct recorded *r = parsed(text, sizeof text - 1, NULL);
    assert_int_equal(r->nr_rows, 1); /* 1 and 1.0 are the same number */
    assert_int_equal(r->nr_duplicates, 1);
    assert_true(r->closed && r->row[0].value == 3 && !r->has_cost);
    recorded_free(r);
}

/* Each prefix of the file gives the rows that are whole in it. */
static void test_torn_cachefile(void **state)
{
    (void)state;
    const char *first = strstr(cachefile, "\"64,1,False,row\"");
    size_t from = (size_t)(first - cachefile);
    int rows = 0;
    for (size_t n = 0; n < sizeof cachefile; n++) {
        struct recorded *r = parsed(cachefile, n, NULL);
        if (n < from)
            assert_null(r);
        if (!r)
            continue;
        assert_true(r->nr_rows >= rows && !r->closed);
        /* Behind a row, a comma or the line break nothing is torn. */
        bool clean = cachefile[n - 1] == '}' || cachefile[n - 1] == ',' || cachefile[n - 1] == '\n';
        if (r->nr_rows > rows)
            assert_true(clean && r->nr_damaged == 0);
        rows = r->nr_rows;
        recorded_free(r);
    }
    assert_int_equal(rows, 6);
}

/* A run that was killed in a write and went on behind the half line. */
static void test_torn_in_the_middle(void **state)
{
    (void)state;
    static const char text[] = CACHE_HEADER "\"cache\": {"
        CACHE_ROW("a", "\"block\": 64, \"vec\": 1, \"ldg\": false, \"how\": \"row\"", "\"time\": 2")
        "\n\"64,2.5,False,row\": {\"block\": 64, \"vec\": 2."
        CACHE_ROW("c", "\"block\": 128, \"vec\": 1, \"ldg\": false, \"how\": \"row\"",
                  "\"time\": 4") "\n}\n}";
    struct recorded *r = parsed(text, sizeof text - 1, NULL);
    assert_int_equal(r->nr_rows, 2);
    assert_int_equal(r->nr_damaged, 1);
    struct strbuf notes = {0};
    recorded_notes(r, &notes);
    assert_non_null(strstr(strbuf_text(&notes), "1 row could not be read"));
    strbuf_release(&notes);
    recorded_free(r);
}

/* ---- the others */

static void test_t4(void **state)
{
    (void)state;
    struct recorded *r = parsed(t4_file, sizeof t4_file - 1, NULL);
    assert_string_equal(r->format, "T4 1.0.0");
    assert_string_equal(r->unit, "ms");
    assert_int_equal(r->nr_rows, 4);
    assert_true(r->knob[0].inferred && r->knob[0].value[0].i == 64); /* in order */
    const struct recorded_row *q = row_of(r, "128,2");
    assert_true(fabs(q->value - 0.25) < 1e-12 && fabs(q->sample_ms[0] - 0.26) < 1e-12);
    /* Without "benchmark" the runs themselves are the cost. */
    assert_true(fabs(q->cost_s - (0.3105 + 0.0007 + 0.0012 + 0.0005)) < 1e-12);
    assert_int_equal(row_of(r, "64,4")->status, RECORDED_COMPILE);
    assert_int_equal(row_of(r, "128,4")->status, RECORDED_CORRECTNESS);
    assert_true(fabs(row_of(r, "64,None")->value - 3) < 1e-12); /* a knob is missing, and a value */
    recorded_free(r);
}

static void test_ktt(void **state)
{
    (void)state;
    struct recorded *r = parsed(ktt_file, sizeof ktt_file - 1, NULL);
    assert_string_equal(r->device, "ACME");
    assert_int_equal(r->nr_rows, 3);
    const struct recorded_row *q = row_of(r, "16,fast"); /* two runs */
    assert_true(q->value == 2 && q->nr_samples == 2 && q->sample_ms[1] == 3);
    /* Twice: compiling is what the overhead has left, 8 of 10 ms. */
    assert_true(fabs(q->part_ms[PART_COMPILE] - 16) < 1e-9);
    assert_true(fabs(q->cost_s - 0.024) < 1e-12);
    assert_true(recorded_metric(r, (int)(q - r->row), "RegistersCount")->num == 66);
    assert_int_equal(row_of(r, "8,fast")->status, RECORDED_CORRECTNESS);
    recorded_free(r);
}

static void test_autotvm(void **state)
{
    (void)state;
    struct recorded_list l = {0};
    struct err e = ERR_INIT;
    assert_int_equal(recorded_parse("a.log", autotvm_log, sizeof autotvm_log - 1, NULL, &l, &e), 0);
    assert_int_equal(l.nr, 2);
    const struct recorded *r = l.v[0];
    assert_string_equal(r->kernel, "matmul");
    assert_int_equal(r->nr_rows, 2);
    assert_int_equal(r->nr_damaged, 1);
    assert_false(r->closed);
    const struct recorded_row *q = row_of(r, "[-1,8,2],512");
    assert_true(fabs(q->value - 0.3) < 1e-12 && q->cost_s == 1.5);
    assert_string_equal(q->timestamp, "2023-03-17 04:02:42.500000+00:00");
    assert_int_equal(row_of(r, "[-1,4,2],0")->status, RECORDED_TIMEOUT);
    assert_string_equal(l.v[1]->kernel, "dense"); /* 0.1 */
    assert_true(l.v[1]->row[0].value == 1);
    recorded_list_release(&l);
}

static void test_ansor(void **state)
{
    (void)state;
    struct recorded *r = parsed(ansor_log, sizeof ansor_log - 1, NULL);
    assert_string_equal(r->kernel, "matmul_layer");
    assert_int_equal(r->nr_rows, 2);
    assert_string_equal(r->knob[0].name, "SP2.0");
    assert_string_equal(r->knob[1].name, "SP2.0b");
    assert_string_equal(r->knob[2].name, "PR2.0");
    assert_true(r->row[0].status == RECORDED_OK && r->row[1].status == RECORDED_RUNTIME);
    recorded_free(r);
}

static void test_metaschedule(void **state)
{
    (void)state;
    struct recorded *r = parsed(metaschedule_records, sizeof metaschedule_records - 1, NULL);
    assert_string_equal(r->name, "workload_0"); /* the other never ran */
    assert_int_equal(r->nr_rows, 2);
    assert_string_equal(r->knob[1].name, "categorical_0");
    assert_true(r->knob[1].ordinal && r->knob[1].value[1].i == 64); /* the value, not its index */
    assert_true(fabs(r->row[0].value - 0.22) < 1e-12);
    assert_int_equal(r->row[1].status, RECORDED_UNKNOWN);
    recorded_free(r);
}

/* ---- round trips */

static void assert_same_number(double a, double b)
{
    assert_true((isnan(a) && isnan(b)) || a == b);
}

static void assert_same_rows(const struct recorded *a, const struct recorded *b)
{
    assert_int_equal(a->nr_rows, b->nr_rows);
    assert_int_equal(a->nr_knobs, b->nr_knobs);
    assert_int_equal(a->nr_ok, b->nr_ok);
    for (int i = 0; i < a->nr_rows; i++) {
        const struct recorded_row *x = &a->row[i], *y = &b->row[i];
        for (int k = 0; k < a->nr_knobs; k++) {
            struct strbuf s = {0}, t = {0};
            recorded_value_json(&a->knob[k].value[recorded_index(a, i)[k]], &s);
            recorded_value_json(&b->knob[k].value[recorded_index(b, i)[k]], &t);
            assert_string_equal(strbuf_text(&s), strbuf_text(&t));
            strbuf_release(&s);
            strbuf_release(&t);
        }
        assert_int_equal(x->status, y->status);
        assert_same_number(x->value, y->value);
        for (int p = 0; p < RECORDED_NR_PARTS; p++)
            assert_same_number(x->part_ms[p], y->part_ms[p]);
        if (x->timestamp)
            assert_string_equal(x->timestamp, y->timestamp);
        if (x->status == RECORDED_OK) {
            assert_int_equal(x->nr_samples, y->nr_samples);
            for (int s = 0; s < x->nr_samples; s++)
                assert_same_number(x->sample_ms[s], y->sample_ms[s]);
        }
        for (int m = 0; m < x->nr_metrics; m++) {
            const char *name = a->word[x->metric[m].name];
            if (strcmp(name, a->objective) == 0)
                continue;
            const struct recorded_metric *n = recorded_metric(b, i, name);
            assert_non_null(n);
            if (!x->metric[m].text && !x->metric[m].list)
                assert_same_number(n->num, x->metric[m].num);
            assert_int_equal(n->nr, x->metric[m].nr);
        }
    }
}

static void round_trip(const struct recorded *r, recorded_writer *write)
{
    struct strbuf out = {0};
    struct recorded_options o = {.direction = r->maximise ? 1 : -1};
    write(r, &out);
    struct recorded *back = parsed(strbuf_text(&out), out.len, &o);
    assert_non_null(back);
    assert_true(back->closed);
    assert_same_rows(r, back);
    recorded_free(back);
    strbuf_release(&out);
}

static void test_made_up_files_survive_writing(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
    } files[] = {
        {cachefile, sizeof cachefile - 1},
        {t4_file, sizeof t4_file - 1},
        {ktt_file, sizeof ktt_file - 1},
        {ansor_log, sizeof ansor_log - 1},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct recorded *r = parsed(files[i].text, files[i].len, NULL);
        round_trip(r, recorded_write_t4);
        struct strbuf out = {0};
        recorded_write_json(r, &out); /* is what it says it is */
        struct jread j;
        jread_init(&j, strbuf_text(&out), out.len);
        assert_true(jread_skip(&j) && !jread_peek(&j));
        jread_release(&j);
        strbuf_release(&out);
        recorded_free(r);
    }
}

/* ---- real files */

static const struct real {
    const char *file;
    int rows, ok, open;
    double product;
    const char *metric; /* of the figures; NULL: the objective */
    double best, median, worst;
    bool closed;
} real[] = {
    {"convolution_A100.json.gz", 4362, 4201, 7, 10240, NULL, 0.553600, 1.83395, 32.2257, true},
    {"convolution_MI250X.json.gz", 4362, 4362, 7, 10240, NULL, 0.658796, 19.8442, 100.295, true},
    {"convolution6_A6000.json.gz", 2442, 2266, 6, 5120, NULL, 0.774653, 1.59702, 16.1762, true},
    {"convolution6_A6000_T4.json.gz", 2442, 2266, 6, 5120, NULL, 0.774653, 1.59702, 16.1762, true},
    {"gemm_RTX3090_slim.json.gz", 17956, 17956, 10, 82944, NULL, 5.65784, 14.5785, 96.3433, true},
    {"dedispersion_W6600_slim.json.gz", 11130, 11130, 6, 22272, NULL, 135.081, 184.059, 429.528,
     true},
    {"pnpoly_RTX3090.json.gz", 4092, 3774, 4, 4092, NULL, 8.71424, 13.5350, 46.8083, true},
    {"coulomb3d_RTX2080Ti_ktt.json", 210, 210, 5, 432, NULL, 0.769696, 2.24421, 11.7827, true},
    {"hotspot_W7800_sample.json.gz", 2082, 2082, 7, 4440000, "time", 0.638154, 13.3872, 114.639,
     false},
    {"hotspot_W7800_sample.json.gz", 2082, 2082, 7, 4440000, NULL, 448.787, 122.092, NAN, false},
    {"expdist_A4000_sample.json", 2885, 1505, 9, 9732096, "time", 368.740, 381.185, 1676.88, false},
    {"expdist_A4000_sample.json", 2885, 1505, 9, 9732096, NULL, 102.405, 99.240, NAN, false},
    {"gemm_power_A100_sample.json", 898, 898, 11, 414720, NULL, 10.1596, 21.1832, 57.6210, false},
    {"hyper_firefly_T4.json", 243, 243, 5, 243, NULL, -0.271, -0.741, -1.837, true},
};

static struct recorded *load_real(const char *file, const struct recorded_options *o)
{
    struct strbuf name = {0};
    struct err e = ERR_INIT;
    struct recorded *r = NULL;
    strbuf_addf(&name, "recorded/%s", file);
    char *path = shared_path(strbuf_text(&name));
    strbuf_release(&name);
    bool there = access(path, R_OK) == 0;
    if (there && recorded_load(path, o, &r, &e) != 0)
        fail_msg("%s", e.msg);
    if (there)
        assert_true(recorded_is_file(path));
    else
        print_message("%s is not there: skipped\n", path);
    free(path);
    if (!there)
        skip();
    return r;
}

static void assert_near(double got, double want)
{
    if (!isnan(want) && fabs(got - want) > 1e-5 * fabs(want))
        fail_msg("%.9g is not %.9g", got, want);
}

static void test_real_files_have_the_numbers_of_their_index(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
        const struct real *w = &real[i];
        struct recorded *r = load_real(w->file, &(struct recorded_options){.objective = w->metric});
        double product = 1;
        int open = 0, n = r->nr_ok;
        for (int k = 0; k < r->nr_knobs; k++) {
            product *= r->knob[k].nr_values;
            open += r->knob[k].nr_values > 1;
        }
        double *v = recorded_sorted(r);
        assert_int_equal(r->nr_rows, w->rows);
        assert_int_equal(r->nr_ok, w->ok);
        assert_int_equal(open, w->open);
        assert_true(product == w->product);
        assert_near(recorded_shown(r, v[0]), w->best);
        assert_near(recorded_shown(r, n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2), w->median);
        assert_near(recorded_shown(r, v[n - 1]), w->worst);
        assert_true(v[0] == r->row[r->best].value);
        assert_int_equal(r->closed, w->closed);
        assert_int_equal(r->nr_damaged + r->nr_duplicates, 0);
        free(v);
        recorded_free(r);
    }
}

static void test_a_t4_file_is_the_cachefile_it_was_made_of(void **state)
{
    (void)state;
    struct recorded *kt = load_real("convolution6_A6000.json.gz", NULL);
    struct recorded *t4 = load_real("convolution6_A6000_T4.json.gz", NULL);
    for (int i = 0; i < kt->nr_rows; i++) {
        assert_int_equal(kt->row[i].status, t4->row[i].status);
        assert_same_number(kt->row[i].value, t4->row[i].value);
        assert_int_equal(kt->row[i].nr_samples, t4->row[i].nr_samples);
    }
    recorded_free(kt);
    recorded_free(t4);
}

static void test_real_files_survive_writing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
        if (i && strcmp(real[i].file, real[i - 1].file) == 0)
            continue;
        struct recorded *r = load_real(real[i].file, NULL);
        round_trip(r, recorded_write_t4);
        if (r->zero_pairs == false && strncmp(r->format, "Kernel", 6) == 0)
            round_trip(r, recorded_write_kt);
        recorded_free(r);
    }
}

static void test_tvm_files(void **state)
{
    (void)state;
    struct recorded *r = load_real("tvm/ansor_matmul_A100.log.gz", NULL);
    assert_int_equal(r->nr_rows, 1000);
    assert_int_equal(r->nr_ok, 990);
    recorded_free(r);
    char *path = shared_path("recorded/tvm/metaschedule_resnet34_A100_tuning_record.json.gz");
    struct recorded_list l = {0};
    struct err e = ERR_INIT;
    int ok = 0;
    assert_int_equal(recorded_load_all(path, NULL, &l, &e), 0);
    free(path);
    for (int i = 0; i < l.nr; i++)
        ok += l.v[i]->nr_ok;
    assert_int_equal(l.nr, 14); /* of 20: in six nothing ran */
    assert_int_equal(ok, 1896);
    recorded_list_release(&l);
}

/* ---- damage */

/* Whatever the bytes, it is an answer or an error; the sanitizers look on. */
static void bend(const char *text, size_t len, int rounds, uint64_t seed)
{
    struct rng r;
    rng_seed(&r, seed);
    char *copy = malloc(len);
    for (int i = 0; i < rounds; i++) {
        memcpy(copy, text, len);
        size_t n = 1 + rng_below(&r, len);
        for (uint64_t k = rng_below(&r, 8) + (i % 2 == 0); k > 0; k--) {
            static const char nasty[] = "{}[]\",:\\-0e9ntfNI\n\0 $";
            size_t at = rng_below(&r, n);
            copy[at] = rng_below(&r, 2) ? nasty[rng_below(&r, sizeof nasty - 1)]
                                        : (char)rng_below(&r, 256);
        }
        recorded_free(parsed(copy, i % 3 ? len : n, NULL));
    }
    free(copy);
}

static void test_bent_files_never_crash(void **state)
{
    (void)state;
    bend(cachefile, sizeof cachefile - 1, 3000, 1);
    bend(t4_file, sizeof t4_file - 1, 3000, 2);
    bend(ktt_file, sizeof ktt_file - 1, 3000, 3);
    bend(autotvm_log, sizeof autotvm_log - 1, 3000, 4);
    bend(ansor_log, sizeof ansor_log - 1, 3000, 5);
    bend(metaschedule_records, sizeof metaschedule_records - 1, 3000, 6);
}

static void test_hostile_texts(void **state)
{
    (void)state;
    struct strbuf deep = {0};
    strbuf_adds(&deep, "{\"results\":");
    for (int i = 0; i < 100000; i++)
        strbuf_addc(&deep, '[');
    assert_null(parsed(strbuf_text(&deep), deep.len, NULL));
    strbuf_release(&deep);
    static const char *const texts[] = {
        "", "{", "[", "{}", "[]", "{\"cache\":{}}", "{\"results\":[]}", "{\"Results\":[]}", "null",
        "{\"tune_params_keys\":[],\"cache\":{\"a\":{}}}", "\xff\xfe", "#", "# only\n", "[0,[",
        "{\"i\":[[\"k\",\"t\"],[[],[]]],\"r\":[]}", "{\"i\":[],\"r\":[]}",
        "{\"tune_params_keys\":[\"a\"],\"cache\":{\"1\":{\"a\":1,\"time\":1e400}}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_null(parsed(texts[i], strlen(texts[i]), NULL));
}

static void test_gzip_and_what_is_not(void **state)
{
    (void)state;
    char path[] = "/tmp/squall-rec-XXXXXX";
    int fd = mkstemp(path);
    gzFile f = gzdopen(fd, "wb");
    gzwrite(f, cachefile, sizeof cachefile - 1);
    gzclose(f);
    struct recorded *r = NULL;
    struct err e = ERR_INIT;
    assert_int_equal(recorded_load(path, NULL, &r, &e), 0);
    assert_int_equal(r->nr_rows, 6);
    recorded_free(r);
    assert_int_equal(truncate(path, 350), 0); /* torn, packed: what there is of it counts */
    err_clear(&e);
    if (recorded_load(path, NULL, &r, &e) == 0)
        recorded_free(r);
    assert_int_equal(unlink(path), 0);
    err_clear(&e);
    assert_int_equal(recorded_load(path, NULL, &r, &e), ERR_IO);
    assert_false(recorded_is_file(path));
}

/* ---- numbers */

static void test_numbers_as_python_writes_them(void **state)
{
    (void)state;
    static const struct {
        double x;
        const char *text;
    } rows[] = {
        {1, "1.0"},         {0.25, "0.25"},   {1e-5, "1e-05"},     {0.0001, "0.0001"},
        {1e16, "1e+16"},    {1e15, "1000000000000000.0"},          {0.1, "0.1"},
        {-0.0, "-0.0"},     {1e300, "1e+300"}, {123456.789, "123456.789"},
        {5e-324, "5e-324"}, {1.0 / 3, "0.3333333333333333"},       {2.5e-7, "2.5e-07"},
        {0.1 + 0.2, "0.30000000000000004"},    {1e22, "1e+22"},    {100, "100.0"},
        {INFINITY, "Infinity"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf sb = {0};
        jwrite_real(rows[i].x, &sb);
        assert_string_equal(strbuf_text(&sb), rows[i].text);
        struct jread j;
        struct jread_number n;
        jread_init(&j, sb.buf, sb.len);
        assert_true(jread_number(&j, &n) && n.num == rows[i].x && !n.is_int);
        jread_release(&j);
        strbuf_release(&sb);
    }
}

static void test_numbers_read_as_the_library_reads_them(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 7);
    for (int i = 0; i < 20000; i++) {
        char text[64];
        int digits = 1 + (int)rng_below(&r, 18);
        snprintf(text, sizeof text, "%.*g", digits,
                 (rng_unit(&r) - 0.5) * pow(10, (double)rng_below(&r, 60) - 30));
        struct jread j;
        struct jread_number n;
        jread_init(&j, text, strlen(text));
        assert_true(jread_number(&j, &n));
        assert_true(n.num == strtod(text, NULL));
        jread_release(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cachefile),
        cmocka_unit_test(test_error_in_the_objectives_field),
        cmocka_unit_test(test_last_of_equal_keys_counts),
        cmocka_unit_test(test_torn_cachefile),
        cmocka_unit_test(test_torn_in_the_middle),
        cmocka_unit_test(test_t4),
        cmocka_unit_test(test_ktt),
        cmocka_unit_test(test_autotvm),
        cmocka_unit_test(test_ansor),
        cmocka_unit_test(test_metaschedule),
        cmocka_unit_test(test_made_up_files_survive_writing),
        cmocka_unit_test(test_real_files_have_the_numbers_of_their_index),
        cmocka_unit_test(test_a_t4_file_is_the_cachefile_it_was_made_of),
        cmocka_unit_test(test_real_files_survive_writing),
        cmocka_unit_test(test_tvm_files),
        cmocka_unit_test(test_bent_files_never_crash),
        cmocka_unit_test(test_hostile_texts),
        cmocka_unit_test(test_gzip_and_what_is_not),
        cmocka_unit_test(test_numbers_as_python_writes_them),
        cmocka_unit_test(test_numbers_read_as_the_library_reads_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
