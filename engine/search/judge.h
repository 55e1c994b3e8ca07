/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judge: is a challenger faster than the incumbent?
 *
 * Where both were measured interleaved, pair by pair, the challenger is better if two things hold:
 *
 *   - the median of the pairwise ratios shows a gain of at least MIN_GAIN, for below that a move is
 *     not worth the trials of a new neighbourhood;
 *   - p <= FAMILY_ALPHA / family. p is one-sided, of Wilcoxon's signed-rank test on the pairs, and
 *     `family` the number of challengers that meet this incumbent (Bonferroni): of neighbourhoods
 *     in which nothing is faster, at most one in twenty makes a false move, however large.
 *
 * The signed-rank test cannot give less than 2^-n for n pairs, which is not enough for small n: a
 * family of 30 needs 10 pairs, of 200 needs 12. Where n is too small for the family, and only
 * there, all pairs must agree and p is Student's, of the logarithms of the ratios. That assumes
 * what the signed-rank test does not, a noise without a long tail on the side of the challenger,
 * but slow outliers, the usual ones, widen the spread and make it cautious.
 *
 * Power, the share of truly faster challengers accepted, family 30, by gain over the standard
 * deviation of one pair's ratio (normal noise, 20000 draws; the level is .05 / 30 = .0017):
 *
 *     gain/sd      0     0.5    1    1.5    2     3
 *      5 pairs   .0019   .01   .05   .14   .30   .68
 *      8 pairs   .0014   .02   .16   .48   .81   .99
 *     10 pairs   .0010   .03   .19   .54   .83   .99
 *     12 pairs   .0009   .05   .38   .84   .99    1
 *     16 pairs   .0016   .10   .65   .98    1     1
 *     32 pairs   .0019   .37   .99    1     1     1
 *
 * A measurement ends when most of three pairs or more show the challenger slower (timing.h), so that
 * some of those that are faster by less than the noise get no further: of a gain of half a standard
 * deviation of 2 % an eighth at the third pair, of a whole one 3 %, of one and a half .5 %.
 *
 * That it is worse moves nothing and is only told: a signed-rank test at 0.05 the other way, or,
 * for the few pairs with which none can be that small, all of them slower and a median loss of
 * MIN_GAIN.
 *
 * Without pairs (fewer than MIN_PAIRS: a recorded space, or a stored result) there is nothing to
 * test, and the costs are compared: MIN_GAIN decides. Private to engine/search.
 */
#ifndef ENGINE_SEARCH_JUDGE_H
#define ENGINE_SEARCH_JUDGE_H

#include <stdint.h>

#include "engine/search/strategy.h"

#define MIN_GAIN 0.005
#define FAMILY_ALPHA 0.05
enum { MIN_PAIRS = 3 };

struct judgement {
    enum verdict verdict; /* BETTER, WORSE, NOISE or FAILED */
    double p;             /* NAN where nothing was tested */
    double gain;          /* (incumbent - challenger) / incumbent; NAN where it did not run */
    bool paired;
};

struct judgement judge(const struct observation *o, int64_t incumbent, double incumbent_ns,
                       int family);

/* "tile_oc: 2 from level 0 to 3: 4.1 % faster, p = 0.0002" */
void judgement_text(const struct judgement *j, const struct observation *o, const char *step,
                    char *out, int size);

#endif
