/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "backends/artifact.h"
#include "engine/base/arena.h"
#include "engine/base/rng.h"

static struct artifact sample(void)
{
    const int64_t dims[] = {2, 20, 5, 5};
    struct artifact a = {.backend = "llvm", .entry = "kernel_7", .threads = 2, .nr_buffers = 3};
    a.buf[0] = (struct buffer){.role = BUF_INPUT, .tensor = 0, .layout = layout_plain(4, dims)};
    a.buf[1] =
        (struct buffer){.role = BUF_CONST, .tensor = 3, .layout = layout_blocked(4, dims, 1, 16)};
    for (int i = 0; i < 2; i++)
        a.buf[i].bytes = layout_stored_size(&a.buf[i].layout) * 4;
    a.buf[2] = (struct buffer){.role = BUF_SCRATCH, .tensor = -1, .bytes = 4096};
    a.code = xstrdup("\x7f"
                     "ELF and so on");
    a.code_bytes = strlen(a.code);
    return a;
}

static void assert_same_layout(const struct layout *a, const struct layout *b)
{
    assert_int_equal(a->nr_l, b->nr_l);
    assert_int_equal(a->nr_p, b->nr_p);
    for (int i = 0; i < a->nr_l; i++)
        assert_int_equal(a->l[i], b->l[i]);
    for (int i = 0; i < a->nr_p; i++) {
        assert_int_equal(a->p[i].extent, b->p[i].extent);
        assert_int_equal(a->p[i].coef, b->p[i].coef);
        assert_int_equal(a->p[i].dim, b->p[i].dim);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    struct artifact a = sample(), b;
    struct strbuf blob = {0};
    struct err e = ERR_INIT;
    artifact_encode(&a, &blob);
    assert_int_equal(artifact_decode(blob.buf, blob.len, &b, &e), 0);
    assert_string_equal(a.backend, b.backend);
    assert_string_equal(a.entry, b.entry);
    assert_int_equal(a.threads, b.threads);
    assert_int_equal(a.nr_buffers, b.nr_buffers);
    for (int i = 0; i < a.nr_buffers; i++) {
        assert_int_equal(a.buf[i].role, b.buf[i].role);
        assert_int_equal(a.buf[i].tensor, b.buf[i].tensor);
        assert_int_equal(a.buf[i].bytes, b.buf[i].bytes);
        assert_same_layout(&a.buf[i].layout, &b.buf[i].layout);
    }
    assert_int_equal(a.code_bytes, b.code_bytes);
    assert_memory_equal(a.code, b.code, a.code_bytes);
    artifact_release(&a);
    artifact_release(&b);
    strbuf_release(&blob);
}

static void test_without_code(void **state)
{
    (void)state;
    struct artifact a = {.backend = "x", .entry = "y"}, b;
    struct strbuf blob = {0};
    artifact_encode(&a, &blob);
    assert_int_equal(artifact_decode(blob.buf, blob.len, &b, NULL), 0);
    assert_int_equal(b.code_bytes, 0);
    artifact_release(&b);
    strbuf_release(&blob);
}

/* A copy of its own, so that a sanitizer sees a read past the end. */
static int decode_copy(const char *data, size_t len, struct artifact *a, struct err *e)
{
    char *copy = xmalloc(len ? len : 1);
    memcpy(copy, data, len);
    int rc = artifact_decode(copy, len, a, e);
    free(copy);
    return rc;
}

static void test_every_truncation_is_refused(void **state)
{
    (void)state;
    struct artifact a = sample(), b;
    struct strbuf blob = {0};
    artifact_encode(&a, &blob);
    for (size_t len = 0; len < blob.len; len++) {
        struct err e = ERR_INIT;
        assert_int_equal(decode_copy(blob.buf, len, &b, &e), ERR_INPUT);
        assert_true(e.msg[0] != '\0');
        assert_null(b.code);
    }
    strbuf_addc(&blob, 0);
    assert_int_equal(decode_copy(blob.buf, blob.len, &b, NULL), ERR_INPUT);
    artifact_release(&a);
    strbuf_release(&blob);
}

/* What is decoded all the same must be safe to use: sizes that can be computed, small enough ones
 * that can be packed. */
static void use(const struct artifact *a)
{
    for (int i = 0; i < a->nr_buffers; i++) {
        const struct layout *l = &a->buf[i].layout;
        int64_t logical = layout_logical_size(l), stored = layout_stored_size(l);
        assert_true(logical > 0 && stored > 0);
        assert_true(a->buf[i].role <= BUF_SCRATCH);
        if (logical > 100000 || stored > 100000)
            continue;
        float *from = xcalloc((size_t)logical, sizeof *from);
        float *to = xcalloc((size_t)stored, sizeof *to);
        layout_pack(l, from, to);
        free(from);
        free(to);
    }
}

static void test_random_changes_are_survived(void **state)
{
    (void)state;
    struct artifact a = sample(), b;
    struct strbuf blob = {0};
    struct rng rng;
    rng_seed(&rng, 1);
    artifact_encode(&a, &blob);
    char *copy = xmalloc(blob.len);
    for (int n = 0; n < 20000; n++) {
        memcpy(copy, blob.buf, blob.len);
        for (uint64_t i = rng_below(&rng, 4) + 1; i > 0; i--)
            copy[rng_below(&rng, blob.len)] = (char)rng_u64(&rng);
        if (decode_copy(copy, blob.len, &b, NULL) == 0) {
            use(&b);
            artifact_release(&b);
        }
    }
    free(copy);
    artifact_release(&a);
    strbuf_release(&blob);
}

static void test_random_bytes_are_refused(void **state)
{
    (void)state;
    struct artifact a = sample(), b;
    struct strbuf blob = {0};
    struct rng rng;
    rng_seed(&rng, 2);
    artifact_encode(&a, &blob);
    char noise[600];
    for (int n = 0; n < 5000; n++) {
        for (size_t i = 0; i < sizeof noise; i++)
            noise[i] = (char)rng_u64(&rng);
        /* every other one gets past the first check */
        if (n % 2)
            memcpy(noise, blob.buf, 4);
        assert_int_equal(decode_copy(noise, rng_below(&rng, sizeof noise), &b, NULL), ERR_INPUT);
    }
    artifact_release(&a);
    strbuf_release(&blob);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_without_code),
        cmocka_unit_test(test_every_truncation_is_refused),
        cmocka_unit_test(test_random_changes_are_survived),
        cmocka_unit_test(test_random_bytes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
