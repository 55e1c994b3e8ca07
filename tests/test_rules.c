/* SPDX-License-Identifier: Apache-2.0 */
/* Constraints of recorded spaces: the language, and spaces under them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/recorded/expr.h"
#include "backends/recorded/rules.h"
#include "engine/base/rng.h"
#include "engine/search/space_walk.h"
#include "tests/shared_files.h"

/* Variables of the tables below: a = 7, b = -3, c = 2.5, s = "row", t = True, z = 0, n = None. */
static const struct recorded_value variables[] = {
    {.type = RECORDED_INT, .i = 7, .num = 7},
    {.type = RECORDED_INT, .i = -3, .num = -3},
    {.type = RECORDED_REAL, .num = 2.5},
    {.type = RECORDED_TEXT, .text = "row"},
    {.type = RECORDED_BOOL, .i = 1, .num = 1},
    {.type = RECORDED_INT},
    {.type = RECORDED_NULL},
};
enum { NR_VARIABLES = sizeof variables / sizeof *variables };

static int resolve(void *ctx, const char *name, size_t len)
{
    (void)ctx;
    const char *p = len == 1 ? strchr("abcstzn", *name) : NULL;
    return p && *p ? (int)(p - "abcstzn") : -1;
}

static int parse(const char *text, struct arena *a, struct expr **x)
{
    struct err e = ERR_INIT;
    int rc = expr_parse(text, resolve, NULL, a, x, &e);
    assert_true(rc == 0 || (rc == ERR_INPUT && e.msg[0]));
    return rc;
}

/* "7", "2.5", "True", "row"; "zero" and "type" for the failures, "?" for what is no expression. */
static void result(const char *text, struct strbuf *out)
{
    struct arena a = {0};
    struct expr *x = NULL;
    struct recorded_value v;
    const struct recorded_value *value[NR_VARIABLES];
    for (int i = 0; i < NR_VARIABLES; i++)
        value[i] = &variables[i];
    if (parse(text, &a, &x)) {
        strbuf_adds(out, "?");
    } else {
        enum expr_status s = expr_eval(x, value, &v);
        if (s)
            strbuf_adds(out, s == EXPR_TYPE ? "type" : "zero");
        else
            recorded_value_str(&v, out);
        /* With all variables known to be what they are, a true expression is possible. */
        struct expr_range range[NR_VARIABLES];
        for (int i = 0; i < NR_VARIABLES; i++)
            range[i] = (struct expr_range){1, 0, &variables[i]};
        if (s == EXPR_ZERO_DIVISION || (!s && expr_truth(&v)))
            assert_true(expr_possible(x, range));
    }
    arena_release(&a);
}

static void test_expressions_as_python_has_them(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"1 + 2 * 3", "7"},
        {"(1 + 2) * 3", "9"},
        {"2 ** 3 ** 2", "512"},
        {"-2 ** 2", "-4"},
        {"2 ** -1", "0.5"},
        {"(-8) ** 3", "-512"},
        {"-a // 2", "-4"},
        {"-(a // 2)", "-3"},
        {"a % b", "-2"},
        {"-a % 3", "2"},
        {"a // b", "-3"},
        {"a / 2", "3.5"},
        {"8 / 2", "4.0"},
        {"7.5 % 2", "1.5"},
        {"-7.5 % 2", "0.5"},
        {"7.5 // -2", "-4.0"},
        {"32 % ((16*8)/32) == 0", "True"},
        {"1 < 2 < 3", "True"},
        {"1 < 3 < 2", "False"},
        {"3 > 2 == 2", "True"},
        {"32 <= a*8 <= 1024", "True"},
        {"not a == 7", "False"},
        {"not 0 and 5", "5"},
        {"0 or s", "row"},
        {"1 and 0 or 3", "3"},
        {"a > 100 and 1/z > 0", "False"},
        {"a < 100 or 1/z > 0", "True"},
        {"1 / z", "zero"},
        {"a % z == 0", "zero"},
        {"a // 0.0", "zero"},
        {"0 ** -1", "zero"},
        {"True + True", "2"},
        {"t == 1", "True"},
        {"t and a", "7"},
        {"s == 'row'", "True"},
        {"s != \"col\"", "True"},
        {"s == 7", "False"},
        {"s < 7", "type"},
        {"s + 1", "type"},
        {"-s", "type"},
        {"n == None", "True"},
        {"n < 1", "type"},
        {"a in (1, 7, 9)", "True"},
        {"a not in [1, 9]", "True"},
        {"s in ['row', 'col']", "True"},
        {"a in [] or 1", "1"},
        {"min(a, b, c)", "-3"},
        {"max(a, c)", "7"},
        {"abs(b)", "3"},
        {"int(c)", "2"},
        {"int(-c)", "-2"},
        {"round(c)", "2"},
        {"float(a)", "7.0"},
        {"a if z else b", "-3"},
        {"1 if a else 2 if b else 3", "1"},
        {"a & 3 | 8 ^ 1", "11"},
        {"a & (a + 1) == 0", "True"},
        {"1 << 4 >> 2", "4"},
        {"~a", "-8"},
        {"True ^ t", "False"},
        {"+t", "1"},
        {"0x10", "16"},
        {"1e3", "1000.0"},
        {".5 + 1.", "1.5"},
        {"1 == 1.0", "True"},
        {"  a\t*\n2 ", "14"},
        /* leaves 64 bits: a float instead of Python's long */
        {"9223372036854775807 + 1", "9.223372036854776e+18"},
        {"-9223372036854775807 - 2", "-9.223372036854776e+18"},
        {"2 ** 62 * 4", "1.8446744073709552e+19"},
        {"(-9223372036854775807 - 1) // -1", "9.223372036854776e+18"},
        {"(-9223372036854775807 - 1) % -1", "0"},
        {"10 ** 400", "inf"},
        {"1 << 100 > 5", "True"},
        {"1 << 5000000000", "inf"},
        {"-1 >> 200", "-1"},
        {"1 << -1", "type"},
        {"(-1) ** 0.5", "type"},
        {"~c", "type"},
        {"int(1e400)", "type"},
        {"99999999999999999999", "1e+20"},
        /* no expressions */
        {"", "?"},
        {"   ", "?"},
        {"1 +", "?"},
        {"* 2", "?"},
        {"(1", "?"},
        {"1)", "?"},
        {"1 2", "?"},
        {"a = 7", "?"},
        {"unknown > 1", "?"},
        {"aa", "?"},
        {"a.b", "?"},
        {"a[0]", "?"},
        {"__import__('os').system('true')", "?"},
        {"open('/etc/passwd')", "?"},
        {"lambda: 1", "?"},
        {"a is 7", "?"},
        {"a not 7", "?"},
        {"not", "?"},
        {"'row", "?"},
        {"'r\\ow'", "?"},
        {"1_000", "?"},
        {"0x", "?"},
        {"1.2.3", "?"},
        {"3e", "?"},
        {"a ! b", "?"},
        {"a && b", "?"},
        {"a @ b", "?"},
        {"min(a)", "?"},
        {"abs(1, 2)", "?"},
        {"(1, 2)", "?"},
        {"[1, 2] == 3", "?"},
        {"1 + [2]", "?"},
        {"a in 7", "?"},
        {"1 if 2", "?"},
        {"1 + not 2", "?"},
        {"a not", "?"},
        {"\x01", "?"},
        {"a \xff", "?"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf out = {0};
        result(rows[i].text, &out);
        if (strcmp(strbuf_text(&out), rows[i].want) != 0)
            fail_msg("%s is %s, not %s", rows[i].text, strbuf_text(&out), rows[i].want);
        strbuf_release(&out);
    }
}

static void repeat(struct strbuf *sb, const char *text, int n)
{
    for (int i = 0; i < n; i++)
        strbuf_adds(sb, text);
}

static void test_deep_and_long_expressions_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *open, *middle, *close;
    } rows[] = {
        {"(", "1", ")"}, {"not ", "1", ""},  {"-", "1", ""},     {"2 ** ", "1", ""},
        {"abs(", "1", ")"}, {"1 + ", "1", ""}, {"a < ", "1", ""}, {"a and ", "1", ""},
        {"1 if 1 else ", "1", ""}, {"[", "1", "]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf text = {0}, out = {0};
        repeat(&text, rows[i].open, 1500);
        repeat(&text, rows[i].middle, 1);
        repeat(&text, rows[i].close, 1500);
        result(strbuf_text(&text), &out);
        assert_string_equal(strbuf_text(&out), "?");
        strbuf_release(&text);
        strbuf_release(&out);
    }
    struct strbuf text = {0}, out = {0};
    repeat(&text, "a", 100000);
    result(strbuf_text(&text), &out);
    assert_string_equal(strbuf_text(&out), "?");
    strbuf_release(&text);
    strbuf_release(&out);
}

/* What is possible of a part of the variables contains all that is true of them. */
static void assert_possible(const struct expr *x, struct rng *r)
{
    const struct recorded_value *value[NR_VARIABLES];
    struct recorded_value a, b, out;
    struct expr_range range[NR_VARIABLES];
    int64_t lo = (int64_t)rng_below(r, 9) - 4, hi = lo + (int64_t)rng_below(r, 5);
    for (int i = 0; i < NR_VARIABLES; i++) {
        range[i] = (struct expr_range){1, 0, &variables[i]};
        value[i] = &variables[i];
    }
    range[0] = range[1] = (struct expr_range){(double)lo, (double)hi, NULL};
    value[0] = &a;
    value[1] = &b;
    bool possible = expr_possible(x, range);
    for (int64_t i = lo; i <= hi; i++) {
        for (int64_t k = lo; k <= hi; k++) {
            a = (struct recorded_value){.type = RECORDED_INT, .i = i, .num = (double)i};
            b = (struct recorded_value){.type = RECORDED_INT, .i = k, .num = (double)k};
            enum expr_status s = expr_eval(x, value, &out);
            if (s == EXPR_ZERO_DIVISION || (!s && expr_truth(&out)))
                assert_true(possible);
        }
    }
}

/* Texts of the language's own words in any order: a value, a failure or a sentence. */
static void test_any_words_are_answered(void **state)
{
    (void)state;
    static const char *const words[] = {
        "a", "b", "c", "s", "t", "z", "n", "0", "1", "2", "3.5", "'row'", "(", ")", "[", "]", ",",
        "+", "-", "*", "/", "//", "%", "**", "<", "<=", "==", "!=", ">", "and", "or", "not", "in",
        "if", "else", "&", "|", "^", "~", "<<", ">>", "min(", "abs(", "int(", "round(",
    };
    struct rng r;
    rng_seed(&r, 11);
    for (int i = 0; i < 30000; i++) {
        struct strbuf text = {0}, out = {0};
        for (uint64_t k = 1 + rng_below(&r, 12); k > 0; k--)
            strbuf_addf(&text, "%s ", words[rng_below(&r, sizeof words / sizeof *words)]);
        result(strbuf_text(&text), &out);
        assert_true(out.len > 0);
        struct arena arena = {0};
        struct expr *x;
        if (strcmp(strbuf_text(&out), "?") != 0 && !parse(strbuf_text(&text), &arena, &x))
            assert_possible(x, &r);
        arena_release(&arena);
        strbuf_release(&text);
        strbuf_release(&out);
    }
}

/* The same of expressions that are some: terms compared, joined by and, or, not. */
static void test_what_is_possible_contains_what_is_true(void **state)
{
    (void)state;
    static const char *const term[] = {"a", "b", "c", "z", "2", "-1", "(a + b)", "(a * b)",
                                       "(a - 3)", "(b // 2)", "(a % 3)", "(a / b)", "-b", "(b * c)",
                                       "min(a, b)", "max(a, 1)", "(a if b else 2)", "abs(a)",
                                       "(a % b)", "(a // b)", "a * a - b"};
    static const char *const cmp[] = {"<", "<=", ">", ">=", "==", "!="};
    static const char *const join[] = {"and", "or", "and not", "or not"};
    enum { TERMS = sizeof term / sizeof *term };
    struct rng r;
    rng_seed(&r, 13);
    for (int i = 0; i < 20000; i++) {
        struct strbuf text = {0};
        struct arena arena = {0};
        struct expr *x;
        for (uint64_t k = 1 + rng_below(&r, 3); k > 0; k--) {
            strbuf_addf(&text, "%s %s %s %s", text.len ? join[rng_below(&r, 4)] : "",
                        term[rng_below(&r, TERMS)], cmp[rng_below(&r, 6)],
                        term[rng_below(&r, TERMS)]);
            if (rng_below(&r, 3) == 0)
                strbuf_addf(&text, " %s %s", cmp[rng_below(&r, 6)], term[rng_below(&r, TERMS)]);
            strbuf_adds(&text, " ");
        }
        assert_int_equal(parse(strbuf_text(&text), &arena, &x), 0);
        assert_possible(x, &r);
        arena_release(&arena);
        strbuf_release(&text);
    }
}

/* ---- spaces */

/* A cachefile of ints, with one configuration: `knobs` is "name:1,2,4 name:..". */
static struct recorded *made(const char *knobs)
{
    struct strbuf keys = {0}, domains = {0}, entry = {0}, text = {0};
    char *copy = strdup(knobs), *save = NULL;
    for (char *p = strtok_r(copy, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
        char *values = strchr(p, ':');
        *values++ = '\0';
        strbuf_addf(&keys, "%s\"%s\"", keys.len ? "," : "", p);
        strbuf_addf(&domains, "%s\"%s\":[%s]", domains.len ? "," : "", p, values);
        strbuf_addf(&entry, "\"%s\":%.*s,", p, (int)strcspn(values, ","), values);
    }
    strbuf_addf(&text, "{\"tune_params_keys\":[%s],\"tune_params\":{%s},\"cache\":{\"1\":{%s"
                "\"time\":1}}}", strbuf_text(&keys), strbuf_text(&domains), strbuf_text(&entry));
    struct recorded_list l = {0};
    struct err e = ERR_INIT;
    if (recorded_parse("made.json", strbuf_text(&text), text.len, NULL, &l, &e))
        fail_msg("%s", e.msg);
    struct recorded *r = l.v[0];
    free(l.v);
    free(copy);
    strbuf_release(&keys);
    strbuf_release(&domains);
    strbuf_release(&entry);
    strbuf_release(&text);
    return r;
}

static int ruled(const struct recorded *r, const char *const *rule, struct space *s,
                 struct err *e)
{
    struct recorded_rules rules = {0};
    space_init(s);
    for (int i = 0; rule && rule[i]; i++)
        recorded_rules_add(&rules, rule[i]);
    int rc = recorded_ruled_space(r, &rules, s, e);
    recorded_rules_release(&rules);
    return rc;
}

static int64_t walked(const struct space *s)
{
    struct space_walk w;
    struct candidate c, before = {0};
    int64_t n = 0;
    space_walk_init(&w, s, -1);
    for (; space_walk_next(&w, &c); before = c) {
        assert_true(candidate_valid(s, &c, NULL));
        assert_false(n && candidate_equal(&c, &before));
        n++;
    }
    space_walk_release(&w);
    return n;
}

/* Every candidate is as likely as the other: chi-squared below its mean plus five deviations. */
static void assert_uniform(const struct space *s, int nr)
{
    enum { EACH = 50 };
    struct rng r;
    int *seen = calloc((size_t)nr, sizeof *seen), found = 0;
    struct candidate c, *all = calloc((size_t)nr, sizeof *all);
    rng_seed(&r, 3);
    for (int i = 0; i < nr * EACH; i++) {
        assert_true(space_sample(s, -1, &r, &c));
        assert_true(candidate_valid(s, &c, NULL));
        int k = 0;
        while (k < found && !candidate_equal(&all[k], &c))
            k++;
        if (k == found)
            all[found++] = c;
        assert_true(found <= nr);
        seen[k]++;
    }
    assert_int_equal(found, nr);
    double chi = 0;
    for (int i = 0; i < nr; i++)
        chi += (seen[i] - EACH) * (double)(seen[i] - EACH) / EACH;
    assert_true(chi < nr - 1 + 5 * sqrt(2.0 * (nr - 1)));
    free(seen);
    free(all);
}

static void test_space_under_rules(void **state)
{
    (void)state;
    struct recorded *r = made("x:1,2,3,4,5,6,7,8 y:1,2,4,8 z:0,1 fixed:4 w:1,2,3");
    static const char *const rules[] = {"x % y == 0", "z == 0 or x * y >= fixed", NULL};
    struct space s;
    struct err e = ERR_INIT;
    assert_int_equal(ruled(r, rules, &s, &e), 0);
    int want = 0;
    for (int x = 1; x <= 8; x++)
        for (int y = 1; y <= 8; y *= 2)
            for (int z = 0; z <= 1; z++)
                want += x % y == 0 && (z == 0 || x * y >= 4) ? 3 : 0;
    assert_int_equal(space_count(&s, INT64_MAX), want);
    assert_int_equal(walked(&s), want);
    assert_int_equal(space_product(&s, 0), 8 * 4 * 2 * 3);
    assert_int_equal(s.sketch[0]->constraint[0].knobs, 3);
    assert_int_equal(s.sketch[0]->constraint[1].knobs, 7);
    assert_uniform(&s, want);
    struct space_removal gone[2];
    space_removed(&s, 0, gone);
    assert_string_equal(gone[0].name, "x % y == 0");
    assert_int_equal(gone[0].alone, 192 - 15 * 6);
    assert_int_equal(gone[1].last, 15 * 6 - want);
    space_release(&s);
    recorded_free(r);
}

/* Counted by its states: 20 knobs of 8 values are 10^18 candidates. */
static void test_a_space_beyond_walking_is_counted(void **state)
{
    (void)state;
    struct strbuf knobs = {0};
    for (int i = 0; i < 20; i++)
        strbuf_addf(&knobs, "%sk%d:1,2,3,4,5,6,7,8", i ? " " : "", i);
    struct recorded *r = made(strbuf_text(&knobs));
    char *rule[20] = {0};
    for (int i = 0; i < 19; i++) {
        strbuf_reset(&knobs);
        strbuf_addf(&knobs, "k%d <= k%d", i, i + 1);
        rule[i] = strdup(strbuf_text(&knobs));
    }
    struct space s;
    struct err e = ERR_INIT;
    assert_int_equal(ruled(r, (const char *const *)rule, &s, &e), 0);
    assert_int_equal(space_count(&s, INT64_MAX), 888030); /* 27 over 7 */
    struct rng g;
    struct candidate c;
    rng_seed(&g, 1);
    for (int i = 0; i < 1000; i++)
        assert_true(space_sample(&s, 0, &g, &c) && candidate_valid(&s, &c, NULL));
    for (int i = 0; i < 19; i++)
        free(rule[i]);
    space_release(&s);
    recorded_free(r);
    strbuf_release(&knobs);
}

static void test_rules_that_make_no_space(void **state)
{
    (void)state;
    struct recorded *r = made("x:1,2,3 fixed:4");
    static const struct {
        const char *rule, *says;
    } rows[] = {
        {"y > 1", "is no knob"},
        {"x >", "a value is missing"},
        {"x < 'a'", "no meaning"},
        {"fixed == 5", "holds nowhere"},
        {"x > 5", "no configuration"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct space s;
        struct err e = ERR_INIT;
        assert_true(ruled(r, (const char *const[]){rows[i].rule, NULL}, &s, &e) < 0);
        if (!strstr(e.msg, rows[i].says))
            fail_msg("%s: %s", rows[i].rule, e.msg);
        space_release(&s);
    }
    /* What divides by zero is kept, as Kernel Tuner has it. */
    struct space s;
    struct err e = ERR_INIT;
    assert_int_equal(ruled(r, (const char *const[]){"1 / (x - 2) > 0", NULL}, &s, &e), ERR_INPUT);
    space_release(&s);
    assert_int_equal(ruled(r, (const char *const[]){"4 % (x - 2) == 0", NULL}, &s, &e), 0);
    assert_int_equal(space_count(&s, 10), 3);
    space_release(&s);
    recorded_free(r);
}

static void test_rules_from_files(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "# of the kernel\nx > 1\n\n  x < 3  # small\n",
        "{\"ConfigurationSpace\":{\"TuningParameters\":[{\"Name\":\"x\",\"Values\":\"[1]\"}],"
        "\"Conditions\":[{\"Parameters\":[\"x\"],\"Expression\":\"x > 1\"},"
        "{\"Parameters\":[],\"Expression\":\"x < 3\"}]},\"KernelSpecification\":{}}",
    };
    for (size_t i = 0; i < 2; i++) {
        char path[] = "/tmp/squall-rules-XXXXXX";
        int fd = mkstemp(path);
        assert_true(write(fd, texts[i], strlen(texts[i])) > 0);
        close(fd);
        struct recorded_rules l = {0};
        struct err e = ERR_INIT;
        assert_int_equal(recorded_rules_read(&l, path, &e), 0);
        assert_int_equal(l.nr, 2);
        assert_string_equal(l.v[0], "x > 1");
        recorded_rules_release(&l);
        unlink(path);
    }
}

/* ---- the expressions of the index reproduce the sets of the files */

#define GEMM                                                                                       \
    "KWG % KWI == 0", "MWG % (MDIMC*VWM) == 0", "NWG % (NDIMC*VWN) == 0",                          \
        "MWG % (MDIMA*VWM) == 0", "NWG % (NDIMB*VWN) == 0",                                        \
        "KWG % ((MDIMC*NDIMC)/MDIMA) == 0", "KWG % ((MDIMC*NDIMC)/NDIMB) == 0",                    \
        "MDIMC*NDIMC <= 1024"

static const struct set {
    const char *file;
    int64_t product, count;
    const char *rule[10];
} sets[] = {
    {"convolution_A100.json.gz", 10240, 4362,
     {"use_padding==0 or block_size_x % 32 != 0", "block_size_x*block_size_y<=1024",
      "use_padding==0 or use_shmem != 0",
      "use_shmem == 0 or (block_size_x*tile_size_x+filter_width-1)*"
      "(block_size_y*tile_size_y+filter_height-1) < 12*1024"}},
    {"convolution6_A6000.json.gz", 5120, 2442,
     {"use_padding==0 or block_size_x % 32 != 0", "block_size_x*block_size_y<=1024",
      "(block_size_x*tile_size_x+15-1)*(block_size_y*tile_size_y+15-1) < 12*1024"}},
    {"gemm_RTX3090_slim.json.gz", 82944, 17956, {GEMM}},
    {"dedispersion_W6600_slim.json.gz", 22272, 11130,
     {"32 <= block_size_x*block_size_y <= 1024", "tile_size_x > 1 or tile_stride_x == 0",
      "tile_size_y > 1 or tile_stride_y == 0"}},
    {"pnpoly_RTX3090.json.gz", 4092, 4092, {NULL}},
    {"coulomb3d_RTX2080Ti_ktt.json", 432, 210,
     {"INNER_UNROLL_FACTOR < Z_ITERATIONS", "WORK_GROUP_SIZE_X*WORK_GROUP_SIZE_Y >= 64"}},
    {"hotspot_W7800_sample.json.gz", 4440000, 105412,
     {"block_size_x*block_size_y>=32", "temporal_tiling_factor % loop_unroll_factor_t == 0",
      "block_size_x*block_size_y<=1024",
      "(block_size_x*tile_size_x+temporal_tiling_factor*2)*"
      "(block_size_y*tile_size_y+temporal_tiling_factor*2)*(2+sh_power)*4 <= 65536"}},
    {"expdist_A4000_sample.json", 9732096, 294000,
     {"use_column==1 or n_y_blocks<=1", "use_column==1 or use_shared_mem!=2",
      "tile_size_x % loop_unroll_factor_x == 0", "tile_size_y % loop_unroll_factor_y == 0",
      "block_size_x*block_size_y<=1024"}},
    {"gemm_power_A100_sample.json", 414720, 89780, {GEMM}},
};

static void check_set(const struct set *w)
{
    struct strbuf name = {0};
    struct err e = ERR_INIT;
    struct recorded *r = NULL;
    struct space s;
    strbuf_addf(&name, "recorded/%s", w->file);
    char *path = shared_path(strbuf_text(&name));
    strbuf_release(&name);
    if (access(path, R_OK) != 0) {
        print_message("%s is not there: skipped\n", path);
        free(path);
        skip();
    }
    assert_int_equal(recorded_load(path, NULL, &r, &e), 0);
    free(path);
    struct timespec from, to;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    if (ruled(r, w->rule, &s, &e))
        fail_msg("%s", e.msg);
    assert_int_equal(space_count(&s, INT64_MAX), w->count);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    assert_int_equal(space_product(&s, 0), w->product);
    assert_int_equal(recorded_outside(r, &s), 0);
    /* Some hundredths of a second; sanitizers take their share. */
    assert_true((double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9 < 1);
    assert_non_null(s.sketch[0]->tally);
    assert_int_equal(walked(&s), w->count);
    space_release(&s);

    /* Without expressions what is recorded is the space. */
    space_init(&s);
    assert_int_equal(recorded_space(r, &s, &e), 0);
    assert_int_equal(space_count(&s, INT64_MAX), r->nr_rows);
    assert_int_equal(walked(&s), r->nr_rows);
    for (int i = 0; i < r->nr_rows; i += 7) {
        struct candidate c, back;
        struct strbuf code = {0};
        recorded_candidate(r, i, &c);
        assert_int_equal(recorded_row_of(r, &c), i);
        candidate_code(&s, &c, &code);
        assert_int_equal(candidate_parse(&s, strbuf_text(&code), &back, &e), 0);
        assert_true(candidate_equal(&c, &back));
        strbuf_release(&code);
    }
    assert_true(candidate_valid(&s, &s.sketch[0]->start, NULL));
    if (r->nr_rows < 300)
        assert_uniform(&s, r->nr_rows);
    space_release(&s);
    recorded_free(r);
}

static void test_rules_of_the_index_reproduce_its_sets(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        check_set(&sets[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expressions_as_python_has_them),
        cmocka_unit_test(test_deep_and_long_expressions_are_refused),
        cmocka_unit_test(test_any_words_are_answered),
        cmocka_unit_test(test_what_is_possible_contains_what_is_true),
        cmocka_unit_test(test_space_under_rules),
        cmocka_unit_test(test_a_space_beyond_walking_is_counted),
        cmocka_unit_test(test_rules_that_make_no_space),
        cmocka_unit_test(test_rules_from_files),
        cmocka_unit_test(test_rules_of_the_index_reproduce_its_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
