/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded files and constraints on whatever bytes: refused, or read; what was read is a space with
 * rows in it, and survives being written. What stands behind a zero byte is a constraint.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/recorded/rules.h"
#include "backends/recorded/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void use(const struct recorded *r, const char *rule)
{
    static recorded_writer *const writers[] = {recorded_write_t4, recorded_write_kt,
                                               recorded_write_csv, recorded_write_json};
    struct space s;
    struct err e = ERR_INIT;
    struct candidate c;
    struct rng g;
    rng_seed(&g, 1);
    require(r->nr_rows > 0 && r->nr_ok > 0 && r->best >= 0);
    for (int i = 0; i < r->nr_rows; i++)
        require(recorded_find(r, recorded_index(r, i)) == i);
    space_init(&s);
    if (recorded_space(r, &s, &e) == 0) {
        require(space_count(&s, INT64_MAX) == r->nr_rows && space_sample(&s, 0, &g, &c));
        require(recorded_row_of(r, &c) >= 0 && candidate_valid(&s, &s.sketch[0]->start, NULL));
    }
    space_release(&s);
    space_init(&s);
    struct recorded_rules rules = {0};
    recorded_rules_add(&rules, rule);
    err_clear(&e);
    if (recorded_ruled_space(r, &rules, &s, &e) == 0)
        require(space_count(&s, 1) == 1 && space_sample(&s, 0, &g, &c) &&
                candidate_valid(&s, &c, NULL));
    recorded_rules_release(&rules);
    space_release(&s);
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        struct strbuf out = {0};
        struct recorded_list back = {0};
        writers[i](r, &out);
        err_clear(&e);
        if (i < 2 && recorded_parse("back", out.buf, out.len, NULL, &back, &e) == 0)
            require(back.nr == 1);
        recorded_list_release(&back);
        strbuf_release(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct recorded_list l = {0};
    struct err e = ERR_INIT;
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t len = zero ? (size_t)(zero - data) : size;
    char *rule = zero ? strndup((const char *)zero + 1, size - len - 1) : strdup("1");
    if (recorded_parse("fuzz", (const char *)data, len, NULL, &l, &e) == 0) {
        for (int i = 0; i < l.nr; i++)
            use(l.v[i], rule);
    }
    recorded_list_release(&l);
    free(rule);
    return 0;
}
