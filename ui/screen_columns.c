/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/screen_columns.h"

const struct column task_columns[TC_NR] = {
    [TC_NUMBER] = {"#", 3, 8, false, false},
    [TC_NAME] = {"1 Tasks", 10, 0, true, true},
    [TC_STATE] = {"state", 11, 0, true, false},
    [TC_PHASE] = {"trials", 7, 3, false, false},
    [TC_WEIGHT] = {"weight", 6, 7, false, false},
    [TC_DEFAULT] = {"default", 8, 2, false, false},
    [TC_BEST] = {"best", 8, 0, false, false},
    [TC_SPEEDUP] = {"speedup", 7, 1, false, false},
    [TC_GFLOPS] = {"GFLOP/s", 7, 5, false, false},
    [TC_PEAK] = {"peak", 4, 4, false, false},
    [TC_SHARE] = {"share", 5, 7, false, false},
    [TC_TRIALS] = {"total", 6, 6, false, false},
};

/* Drops the columns of a priority of at least `least` until no more than `cols` are needed. */
static void drop(const struct column *c, int nr, int least, int cols, int *need,
                 struct column_place *out)
{
    while (*need > cols) {
        int at = -1;
        for (int i = 0; i < nr; i++)
            if (out[i].width && c[i].priority >= least &&
                (at < 0 || c[i].priority >= c[at].priority))
                at = i;
        if (at < 0)
            return;
        *need -= out[at].width + 1;
        out[at].width = 0;
    }
}

void columns_fit(const struct column *c, int nr, int cols, int wanted, struct column_place *out)
{
    int need = -1, flex = -1; /* no gap behind the last */
    for (int i = 0; i < nr; i++) {
        out[i].width = c[i].width;
        need += c[i].width + 1;
        if (c[i].flex)
            flex = i;
    }
    int more = flex >= 0 && wanted > c[flex].width ? wanted - c[flex].width : 0;
    drop(c, nr, COLUMN_LUXURY, cols - more, &need, out);
    drop(c, nr, 1, cols, &need, out);
    if (flex >= 0)
        out[flex].width += cols - need > -out[flex].width ? cols - need : -out[flex].width;
    for (int i = 0, x = 0; i < nr; i++) {
        out[i].x = x;
        if (out[i].width)
            x += out[i].width + 1;
    }
}
