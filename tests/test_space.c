/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/search/space_domain.h"
#include "engine/search/space_walk.h"

#define LEN(a) ((int)(sizeof(a) / sizeof *(a)))

static bool never(const void *ctx, const struct candidate *c)
{
    (void)ctx;
    (void)c;
    return false;
}

/* sketch 0, slots: m 0..2, n 3..4, unroll 5, layout 6, pack 7, order 8..10 */
static bool tile_fits(const void *ctx, const struct candidate *c)
{
    return c->v[2] * c->v[4] <= *(const int *)ctx;
}

static bool packed_needs_layout(const void *ctx, const struct candidate *c)
{
    (void)ctx;
    return !c->v[7] || c->v[6] != 0;
}

static const int tile_limit = 16;

/* Every kind of knob, two linked by a constraint, two by another; and a small second sketch. */
static struct space mixed_space(void)
{
    static const int64_t unroll[] = {0, 16, 64, 512}, layout[] = {7, -3, 100};
    struct space s;
    space_init(&s);
    struct sketch *k = space_sketch(&s, "mixed");
    int m = sketch_split(&s, k, "tile_m", 12, 3, 0);
    int n = sketch_split(&s, k, "tile_n", 30, 2, 10);
    sketch_ordinal(&s, k, "unroll", LEN(unroll), unroll);
    int l = sketch_choice(&s, k, "layout", LEN(layout), layout);
    int p = sketch_flag(&s, k, "pack");
    sketch_permutation(&s, k, "order", 3);
    sketch_constraint(&s, k, "tile fits", 1u << m | 1u << n, tile_fits, &tile_limit);
    sketch_constraint(&s, k, "packing has a layout", 1u << l | 1u << p, packed_needs_layout, NULL);
    struct sketch *small = space_sketch(&s, "small");
    sketch_flag(&s, small, "on");
    sketch_split(&s, small, "tile", 7, 2, 0);
    return s;
}

/* A split of one extent, alone. */
static struct space split_space(int64_t extent, int levels, int64_t max_inner)
{
    struct space s;
    space_init(&s);
    sketch_split(&s, space_sketch(&s, "split"), "tile", extent, levels, max_inner);
    return s;
}

static void expect_code(const struct space *s, const struct candidate *c, const char *want)
{
    struct strbuf sb = {0};
    candidate_code(s, c, &sb);
    assert_string_equal(strbuf_text(&sb), want);
    strbuf_release(&sb);
}

static struct candidate parsed(const struct space *s, const char *code)
{
    struct candidate c;
    struct err e = ERR_INIT;
    if (candidate_parse(s, code, &c, &e))
        fail_msg("%s", e.msg);
    return c;
}

/* Is it one prime moved between two levels of a perfect tile? */
static void expect_one_prime_moved(const int32_t *a, const int32_t *b, int levels, int dir)
{
    int from = -1, to = -1;
    for (int i = 0; i < levels; i++) {
        if (b[i] < a[i]) {
            assert_int_equal(from, -1);
            from = i;
        } else if (b[i] > a[i]) {
            assert_int_equal(to, -1);
            to = i;
        }
    }
    assert_true(from >= 0 && to >= 0);
    struct prime_power f[MAX_PRIMES];
    assert_int_equal(a[from] % b[from], 0);
    assert_int_equal(factorise(a[from] / b[from], f), 1);
    assert_int_equal(f[0].e, 1);
    assert_int_equal(dir, to < from ? -1 : 1);
}

static void neighbours_of_a_split_are_perfect_distinct_tiles(void **state)
{
    (void)state;
    static const int64_t extent[] = {1, 2, 7, 12, 36, 56, 97, 112, 224, 360, 1001, 4096};
    struct rng r;
    rng_seed(&r, 3);
    for (int i = 0; i < LEN(extent); i++) {
        for (int levels = 1; levels <= SPLIT_MAX_LEVELS; levels++) {
            struct space s = split_space(extent[i], levels, 8);
            struct candidate c;
            assert_true(space_sample(&s, 0, &r, &c));
            struct neighbour *ring;
            int nr = space_neighbours(&s, &c, &ring);
            for (int j = 0; j < nr; j++) {
                assert_true(candidate_valid(&s, &ring[j].c, NULL));
                assert_true(levels == 1 || ring[j].c.v[levels - 1] <= 8);
                expect_one_prime_moved(c.v, ring[j].c.v, levels, ring[j].dir);
                for (int l = 0; l < j; l++)
                    assert_false(candidate_equal(&ring[l].c, &ring[j].c));
            }
            free(ring);
            space_release(&s);
        }
    }
}

static void ring_of_a_prime_extent_moves_the_whole_extent(void **state)
{
    (void)state;
    struct space s = split_space(7, 3, 0);
    struct candidate c = parsed(&s, "0:1.7.1");
    struct neighbour *ring;
    assert_int_equal(space_neighbours(&s, &c, &ring), 2);
    expect_code(&s, &ring[0].c, "0:7.1.1");
    assert_string_equal(ring[0].text, "tile: 7 from level 1 to 0");
    assert_int_equal(ring[0].dir, -1);
    expect_code(&s, &ring[1].c, "0:1.1.7");
    assert_int_equal(ring[1].dir, 1);
    free(ring);
    space_release(&s);
}

static void ring_of_a_split_has_every_prime_from_every_level(void **state)
{
    (void)state;
    struct space s = split_space(24, 3, 4);
    struct candidate c = parsed(&s, "0:6.2.2");
    static const char *want[] = {"0:3.4.2", "0:2.6.2",  "0:3.2.4", "0:12.1.2",
                                 "0:6.1.4", "0:12.2.1", "0:6.4.1"};
    struct neighbour *ring;
    int nr = space_neighbours(&s, &c, &ring);
    assert_int_equal(nr, LEN(want)); /* 3 to the last level would make 6 > 4 */
    for (int i = 0; i < LEN(want); i++) {
        struct candidate w = parsed(&s, want[i]);
        int found = 0;
        for (int j = 0; j < nr; j++)
            found += candidate_equal(&w, &ring[j].c);
        assert_int_equal(found, 1);
    }
    free(ring);
    space_release(&s);
}

static void neighbours_step_as_their_kind_says(void **state)
{
    (void)state;
    struct space s = mixed_space();
    struct candidate c = parsed(&s, "0:12.1.1/30.1/16/-3/1/0.1.2");
    struct neighbour *ring;
    int nr = space_neighbours(&s, &c, &ring), of[6] = {0};
    for (int i = 0; i < nr; i++) {
        assert_true(candidate_valid(&s, &ring[i].c, NULL));
        assert_true(i == 0 || ring[i - 1].knob <= ring[i].knob);
        of[ring[i].knob]++;
    }
    assert_int_equal(of[0], 4); /* 2 and 3 to two levels */
    assert_int_equal(of[1], 3); /* 2, 3, 5 inwards */
    assert_int_equal(of[2], 2);
    assert_int_equal(of[3], 1); /* layout 7 is refused while packed */
    assert_int_equal(of[4], 1);
    assert_int_equal(of[5], 2);
    assert_string_equal(ring[7].text, "unroll: 16 to 0");
    assert_string_equal(ring[8].text, "unroll: 16 to 64");
    assert_int_equal(ring[7].dir, -1);
    assert_int_equal(ring[8].dir, 1);
    assert_string_equal(ring[9].text, "layout: -3 to 100");
    assert_int_equal(ring[9].dir, 0);
    assert_string_equal(ring[10].text, "pack: on to off");
    assert_string_equal(ring[11].text, "order: 1 before 0");
    free(ring);
    space_release(&s);
}

static void step_again_goes_on_in_the_same_direction(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *again;
    } row[] = {
        {"0:12.1.1/30.1/16/7/0/0.1.2", "0:6.2.1/30.1/16/7/0/0.1.2", "0:3.4.1/30.1/16/7/0/0.1.2"},
        {"0:6.2.1/30.1/16/7/0/0.1.2", "0:3.4.1/30.1/16/7/0/0.1.2", NULL},
        {"0:12.1.1/30.1/16/7/0/0.1.2", "0:12.1.1/30.1/64/7/0/0.1.2", "0:12.1.1/30.1/512/7/0/0.1.2"},
        {"0:12.1.1/30.1/64/7/0/0.1.2", "0:12.1.1/30.1/512/7/0/0.1.2", NULL},
        {"0:12.1.1/30.1/16/7/0/0.1.2", "0:12.1.1/30.1/16/-3/0/0.1.2", NULL},
        {"0:12.1.1/30.1/16/7/0/0.1.2", "0:12.1.1/30.1/16/7/0/1.0.2", NULL},
        {"0:12.1.1/30.1/16/7/0/0.1.2", "0:12.1.1/30.1/16/7/0/0.1.2", NULL},
        {"0:12.1.1/30.1/16/7/0/0.1.2", "0:6.2.1/30.1/64/7/0/0.1.2", NULL},
        {"1:0/7.1", "0:12.1.1/30.1/16/7/0/0.1.2", NULL},
    };
    struct space s = mixed_space();
    for (int i = 0; i < LEN(row); i++) {
        struct candidate a = parsed(&s, row[i].before), b = parsed(&s, row[i].after), out;
        assert_int_equal(space_step_again(&s, &a, &b, &out), row[i].again != NULL);
        if (row[i].again)
            expect_code(&s, &out, row[i].again);
    }
    space_release(&s);
}

static void step_again_refuses_what_a_constraint_refuses(void **state)
{
    (void)state;
    struct space s = mixed_space();
    struct candidate a = parsed(&s, "0:12.1.1/5.6/0/7/0/0.1.2"), out;
    struct candidate b = parsed(&s, "0:6.1.2/5.6/0/7/0/0.1.2");
    assert_false(space_step_again(&s, &a, &b, &out)); /* 4 x 6 > 16 */
    space_release(&s);
}

/* The whole Cartesian product, one knob after the other, with nothing pruned. */
static int64_t brute_force(const struct space *s, int sketch)
{
    const struct sketch *k = s->sketch[sketch];
    struct candidate c = {.sketch = sketch, .nr = k->nr_slots};
    for (int i = 0; i < k->nr_knobs; i++)
        domain_first(&k->knob[i], c.v + k->knob[i].slot);
    int64_t n = 0;
    for (int i = 0; i < k->nr_knobs;) {
        n += candidate_valid(s, &c, NULL);
        for (i = 0; i < k->nr_knobs && !domain_next(&k->knob[i], c.v + k->knob[i].slot); i++)
            ;
    }
    return n;
}

static void count_is_that_of_the_filtered_product(void **state)
{
    (void)state;
    struct space s = mixed_space();
    int64_t want = brute_force(&s, 0) + brute_force(&s, 1);
    assert_int_equal(space_count(&s, INT64_MAX), want);
    assert_int_equal(space_count(&s, 100), 100);
    assert_int_equal(space_count(&s, want), want);
    space_release(&s);
}

static void count_of_a_split_is_that_of_its_factorisations(void **state)
{
    (void)state;
    static const struct {
        int64_t extent;
        int levels;
        int64_t max_inner, want;
    } row[] = {
        {1, 4, 0, 1},  {7, 3, 0, 3}, {8, 3, 0, 10}, {4096, 5, 0, 1820},
        {12, 1, 4, 1}, {8, 2, 4, 3}, {7, 2, 6, 1},  {2147483647, 2, 0, 2},
    };
    for (int i = 0; i < LEN(row); i++) {
        struct space s = split_space(row[i].extent, row[i].levels, row[i].max_inner);
        assert_int_equal(space_count(&s, INT64_MAX), row[i].want);
        assert_int_equal(brute_force(&s, 0), row[i].want);
        space_release(&s);
    }
}

static void huge_spaces_are_counted_by_multiplication(void **state)
{
    (void)state;
    struct space s;
    space_init(&s);
    struct sketch *k = space_sketch(&s, "huge");
    for (int i = 0; i < 20; i++)
        sketch_split(&s, k, "tile", 4096, 5, 0);
    assert_int_equal(space_count(&s, INT64_MAX), INT64_MAX);
    assert_int_equal(space_count(&s, 1000), 1000);
    space_release(&s);
}

static void walk_gives_every_valid_candidate_once(void **state)
{
    (void)state;
    struct space s = mixed_space();
    int nr = (int)space_count(&s, INT64_MAX), i = 0;
    struct candidate *all = calloc((size_t)nr + 1, sizeof *all);
    struct space_walk w;
    space_walk_init(&w, &s, -1);
    while (i <= nr && space_walk_next(&w, &all[i])) {
        assert_true(candidate_valid(&s, &all[i], NULL));
        for (int j = 0; j < i; j++)
            assert_false(candidate_equal(&all[i], &all[j]));
        i++;
    }
    assert_int_equal(i, nr);
    assert_false(space_walk_next(&w, &all[0]));
    space_walk_release(&w);
    free(all);
    space_release(&s);
}

static void an_impossible_group_ends_a_sketch_at_once(void **state)
{
    (void)state;
    /* Ten large splits before the impossible flag: without groups this would never end. */
    struct space s;
    space_init(&s);
    struct sketch *k = space_sketch(&s, "impossible");
    for (int i = 0; i < 10; i++)
        sketch_split(&s, k, "tile", 4096, 5, 0);
    int f = sketch_flag(&s, k, "flag");
    sketch_constraint(&s, k, "never", UINT64_C(1) << f, never, NULL);
    struct rng r;
    rng_seed(&r, 1);
    struct candidate c;
    assert_int_equal(space_count(&s, 10), 0);
    assert_false(space_sample(&s, -1, &r, &c));
    const char *why = NULL;
    assert_false(candidate_valid(&s, &k->start, &why));
    assert_string_equal(why, "never");
    space_release(&s);
}

static void samples_are_valid_and_reach_the_whole_space(void **state)
{
    (void)state;
    struct space s = mixed_space();
    int nr = (int)space_count(&s, INT64_MAX), seen = 0;
    uint64_t *had = calloc((size_t)nr, sizeof *had);
    struct rng r;
    rng_seed(&r, 11);
    for (int i = 0; i < 60 * nr && seen < nr; i++) {
        struct candidate c;
        assert_true(space_sample(&s, -1, &r, &c));
        assert_true(candidate_valid(&s, &c, NULL));
        uint64_t h = candidate_hash(&c);
        int j = 0;
        while (j < seen && had[j] != h)
            j++;
        if (j == seen)
            had[seen++] = h;
    }
    assert_int_equal(seen, nr);
    free(had);
    space_release(&s);
}

static bool all_tiles_4_and_16(const void *ctx, const struct candidate *c)
{
    (void)ctx;
    for (int i = 0; i < 8; i++) {
        if (c->v[i * 4 + 3] != 16 || c->v[i * 4] != 4)
            return false;
    }
    return true;
}

static bool tile_4_and_16(const void *ctx, const struct candidate *c)
{
    return c->v[*(const int *)ctx * 4 + 3] == 16 && c->v[*(const int *)ctx * 4] == 4;
}

static void sampling_finds_the_needle_that_rejection_misses(void **state)
{
    (void)state;
    static const int index[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct space s;
    space_init(&s);
    struct sketch *k = space_sketch(&s, "needle");
    for (int i = 0; i < 8; i++)
        sketch_split(&s, k, "tile", 1024, 4, 64);
    for (int i = 0; i < 8; i++)
        sketch_constraint(&s, k, "one", UINT64_C(1) << i, tile_4_and_16, &index[i]);
    sketch_constraint(&s, k, "all", 0xff, all_tiles_4_and_16, NULL);
    struct rng r;
    rng_seed(&r, 5);
    for (int i = 0; i < 10; i++) {
        struct candidate c;
        assert_true(space_sample(&s, -1, &r, &c));
        assert_true(candidate_valid(&s, &c, NULL));
    }
    space_release(&s);
}

static void a_tight_inner_limit_still_samples_perfect_tiles(void **state)
{
    (void)state;
    struct space s = split_space(2147483647, 2, 3);
    struct rng r;
    rng_seed(&r, 5);
    struct candidate c;
    assert_true(space_sample(&s, 0, &r, &c));
    expect_code(&s, &c, "0:2147483647.1");
    space_release(&s);
}

static void sample_of_a_dead_sketch_falls_to_the_others(void **state)
{
    (void)state;
    struct space s;
    space_init(&s);
    struct sketch *dead = space_sketch(&s, "dead"), *live = space_sketch(&s, "live");
    sketch_flag(&s, dead, "f");
    sketch_constraint(&s, dead, "never", 1, never, NULL);
    sketch_flag(&s, live, "f");
    struct rng r;
    rng_seed(&r, 9);
    struct candidate c;
    for (int i = 0; i < 20; i++) {
        assert_true(space_sample(&s, -1, &r, &c));
        assert_int_equal(c.sketch, 1);
    }
    assert_false(space_sample(&s, 0, &r, &c));
    assert_false(space_sample(&s, 2, &r, &c));
    space_release(&s);
}

static void codes_are_read_back_as_the_same_candidate(void **state)
{
    (void)state;
    struct space s = mixed_space();
    struct rng r;
    rng_seed(&r, 2);
    struct strbuf sb = {0};
    for (int i = 0; i < 500; i++) {
        struct candidate c;
        assert_true(space_sample(&s, -1, &r, &c));
        strbuf_reset(&sb);
        candidate_code(&s, &c, &sb);
        struct candidate back = parsed(&s, strbuf_text(&sb));
        assert_true(candidate_equal(&c, &back));
        assert_true(candidate_hash(&c) == candidate_hash(&back));
    }
    strbuf_release(&sb);
    space_release(&s);
}

static void parse_refuses_rubbish(void **state)
{
    (void)state;
    static const char *bad[] = {
        "",
        ":",
        "0",
        "0:",
        "x",
        "-1:0/7.1",
        "2:0/7.1",
        "99999999999999999999:0/7.1",
        "1:0",
        "1:0/",
        "1:0/7",
        "1:0/7.",
        "1:0/7.1.1",
        "1:0/7.1/",
        "1:0/7.1 ",
        " 1:0/7.1",
        "1:2/7.1",
        "1:-1/7.1",
        "1:0/3.2",
        "1:0/-7.-1",
        "1:0/0.7",
        "1:0/7,1",
        "1:0.7.1",
        "01:0/7.1",
        "1:00/7.1",
        "1:0/07.1",
        "1:+0/7.1",
        "1:-0/7.1",
        "1:0/7.1\n",
        "1:0/4294967303.1",
        "1:0/2147483647.2147483647",
        "0:12.1.1/30.1/17/7/0/0.1.2",
        "0:12.1.1/30.1/16/8/0/0.1.2",
        "0:12.1.1/30.1/16/7/0/0.1.3",
        "0:12.1.1/30.1/16/7/0/0.1.1",
        "0:12.1.1/2.15/16/7/0/0.1.2",
        "0:12.1.1/30.1/16/7/0/0.1",
        "0:12.1.1/30.1/-9223372036854775809/7/0/0.1.2",
        "0:12.1.1/30.1/9223372036854775808/7/0/0.1.2",
        "\x01\x02\xff",
        "1:0/7.1\x1b[2J",
    };
    struct space s = mixed_space();
    for (int i = 0; i < LEN(bad); i++) {
        struct candidate c;
        struct err e = ERR_INIT;
        if (candidate_parse(&s, bad[i], &c, &e) != ERR_INPUT)
            fail_msg("accepted '%s'", bad[i]);
        assert_int_equal(e.code, ERR_INPUT);
        for (const char *p = e.msg; *p; p++)
            assert_in_range(*p, 0x20, 0x7e);
    }
    space_release(&s);
}

static void parse_survives_every_cut_and_flip_of_a_code(void **state)
{
    (void)state;
    static const char code[] = "0:12.1.1/30.1/16/-3/1/0.1.2";
    struct space s = mixed_space();
    for (size_t at = 0; at + 1 < sizeof code; at++) {
        for (int byte = 0; byte < 256; byte++) {
            char *text = strdup(code); /* its own block: an overrun is seen */
            text[at] = (char)byte;
            struct candidate c;
            if (candidate_parse(&s, text, &c, NULL) == 0) {
                struct strbuf sb = {0};
                candidate_code(&s, &c, &sb);
                assert_string_equal(strbuf_text(&sb), text);
                strbuf_release(&sb);
            }
            free(text);
        }
    }
    space_release(&s);
}

static void extreme_values_are_read_back(void **state)
{
    (void)state;
    static const int64_t v[] = {INT64_MIN, INT64_MAX, -1, 0};
    struct space s;
    space_init(&s);
    sketch_choice(&s, space_sketch(&s, "x"), "x", LEN(v), v);
    static const char *code[] = {"0:-9223372036854775808", "0:9223372036854775807", "0:-1", "0:0"};
    for (int i = 0; i < LEN(v); i++) {
        struct candidate c = parsed(&s, code[i]);
        assert_int_equal(c.v[0], i);
        assert_true(knob_value(&s.sketch[0]->knob[0], &c) == v[i]);
        expect_code(&s, &c, code[i]);
    }
    space_release(&s);
}

static void values_are_written_for_people_and_as_json(void **state)
{
    (void)state;
    struct space s = mixed_space();
    struct candidate c = parsed(&s, "0:3.2.2/15.2/512/100/1/2.0.1");
    static const char *want[] = {"3,2,2", "15,2", "512", "100", "on", "2,0,1"};
    struct strbuf sb = {0};
    for (int i = 0; i < LEN(want); i++) {
        strbuf_reset(&sb);
        knob_format(&s.sketch[0]->knob[i], &c, &sb);
        assert_string_equal(strbuf_text(&sb), want[i]);
    }
    strbuf_reset(&sb);
    candidate_json(&s, &c, &sb);
    assert_string_equal(strbuf_text(&sb), "{\"tile_m\":[3,2,2],\"tile_n\":[15,2],\"unroll\":512,"
                                          "\"layout\":100,\"pack\":true,\"order\":[2,0,1]}");
    assert_int_equal(knob_factor(&s.sketch[0]->knob[1], &c, 1), 2);
    strbuf_release(&sb);
    space_release(&s);
}

static void names_of_knobs_are_escaped_and_cut_at_a_character(void **state)
{
    (void)state;
    struct space s;
    space_init(&s);
    struct sketch *k = space_sketch(&s, "a sketch with a very, very long name");
    assert_int_equal(strlen(k->name), 31);
    sketch_flag(&s, k, "a\"b\\c\n");
    sketch_flag(&s, k, "123456789012345678901234567890\xc3\xa9");
    struct strbuf sb = {0};
    candidate_json(&s, &k->start, &sb);
    assert_string_equal(strbuf_text(&sb), "{\"a\\\"b\\\\c\\u000a\":false,"
                                          "\"123456789012345678901234567890\":false}");
    strbuf_release(&sb);
    space_release(&s);
}

static void start_of_a_sketch_is_plain_until_its_maker_sets_it(void **state)
{
    (void)state;
    struct space s = mixed_space();
    expect_code(&s, &s.sketch[0]->start, "0:12.1.1/30.1/0/7/0/0.1.2");
    assert_true(candidate_valid(&s, &s.sketch[0]->start, NULL));
    expect_code(&s, &s.sketch[1]->start, "1:0/7.1");
    space_release(&s);
}

static void a_value_given_twice_counts_once(void **state)
{
    (void)state;
    static const int64_t v[] = {4, 8, 4, 8, 2};
    struct space s;
    space_init(&s);
    struct sketch *k = space_sketch(&s, "x");
    sketch_ordinal(&s, k, "x", LEN(v), v);
    assert_int_equal(k->knob[0].nr_values, 3);
    assert_int_equal(space_count(&s, 100), 3);
    space_release(&s);
}

static void valid_names_the_constraint_that_is_broken(void **state)
{
    (void)state;
    struct space s = mixed_space();
    struct candidate c = parsed(&s, "0:2.2.3/5.6/0/7/1/0.1.2");
    const char *why;
    assert_false(candidate_valid(&s, &c, &why));
    assert_string_equal(why, "tile fits");
    c = parsed(&s, "0:12.1.1/5.6/0/7/1/0.1.2");
    assert_false(candidate_valid(&s, &c, &why));
    assert_string_equal(why, "packing has a layout");
    c.v[7] = 0;
    assert_true(candidate_valid(&s, &c, &why));
    assert_null(why);
    c.v[0] = 11;
    assert_false(candidate_valid(&s, &c, &why));
    c.sketch = 5;
    assert_false(candidate_valid(&s, &c, &why));
    space_release(&s);
}

static void a_sketch_without_knobs_is_one_candidate(void **state)
{
    (void)state;
    struct space s;
    space_init(&s);
    struct sketch *k = space_sketch(&s, "bare");
    struct rng r;
    rng_seed(&r, 1);
    struct candidate c;
    assert_int_equal(space_count(&s, 10), 1);
    assert_true(space_sample(&s, -1, &r, &c));
    expect_code(&s, &c, "0:");
    c = parsed(&s, "0:");
    assert_true(candidate_equal(&c, &k->start));
    struct neighbour *ring;
    assert_int_equal(space_neighbours(&s, &c, &ring), 0);
    free(ring);
    space_release(&s);
}

static void constraints_may_be_many(void **state)
{
    (void)state;
    struct space s;
    space_init(&s);
    struct sketch *k = space_sketch(&s, "x");
    static const int limit = 4;
    sketch_split(&s, k, "a", 64, 3, 0);
    sketch_split(&s, k, "b", 64, 2, 0);
    for (int i = 0; i < 100; i++)
        sketch_constraint(&s, k, "fits", 3, tile_fits, &limit);
    sketch_constraint(&s, k, "reads all", 0, tile_fits, &limit);
    assert_int_equal(space_count(&s, INT64_MAX), brute_force(&s, 0));
    space_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_of_a_split_are_perfect_distinct_tiles),
        cmocka_unit_test(ring_of_a_prime_extent_moves_the_whole_extent),
        cmocka_unit_test(ring_of_a_split_has_every_prime_from_every_level),
        cmocka_unit_test(neighbours_step_as_their_kind_says),
        cmocka_unit_test(step_again_goes_on_in_the_same_direction),
        cmocka_unit_test(step_again_refuses_what_a_constraint_refuses),
        cmocka_unit_test(count_is_that_of_the_filtered_product),
        cmocka_unit_test(count_of_a_split_is_that_of_its_factorisations),
        cmocka_unit_test(huge_spaces_are_counted_by_multiplication),
        cmocka_unit_test(walk_gives_every_valid_candidate_once),
        cmocka_unit_test(an_impossible_group_ends_a_sketch_at_once),
        cmocka_unit_test(samples_are_valid_and_reach_the_whole_space),
        cmocka_unit_test(sampling_finds_the_needle_that_rejection_misses),
        cmocka_unit_test(a_tight_inner_limit_still_samples_perfect_tiles),
        cmocka_unit_test(sample_of_a_dead_sketch_falls_to_the_others),
        cmocka_unit_test(codes_are_read_back_as_the_same_candidate),
        cmocka_unit_test(parse_refuses_rubbish),
        cmocka_unit_test(parse_survives_every_cut_and_flip_of_a_code),
        cmocka_unit_test(extreme_values_are_read_back),
        cmocka_unit_test(values_are_written_for_people_and_as_json),
        cmocka_unit_test(names_of_knobs_are_escaped_and_cut_at_a_character),
        cmocka_unit_test(start_of_a_sketch_is_plain_until_its_maker_sets_it),
        cmocka_unit_test(a_value_given_twice_counts_once),
        cmocka_unit_test(valid_names_the_constraint_that_is_broken),
        cmocka_unit_test(a_sketch_without_knobs_is_one_candidate),
        cmocka_unit_test(constraints_may_be_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
