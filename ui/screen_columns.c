/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/screen_columns.h"

const struct column task_columns[TC_NR] = {
    [TC_NUMBER] = {"#", 3, 7, false, false},
    [TC_NAME] = {"1 Tasks", 10, 0, true, true},
    [TC_STATE] = {"state", 11, 0, true, false},
    [TC_PHASE] = {"phase", 7, 3, false, false},
    [TC_WEIGHT] = {"weight", 6, 6, false, false},
    [TC_DEFAULT] = {"default", 8, 2, false, false},
    [TC_BEST] = {"best", 8, 0, false, false},
    [TC_SPEEDUP] = {"speedup", 7, 1, false, false},
    [TC_GFLOPS] = {"GFLOP/s", 7, 4, false, false},
    [TC_PEAK] = {"peak", 4, 5, false, false},
    [TC_SHARE] = {"share", 5, 6, false, false},
    [TC_TRIALS] = {"trials", 6, 5, false, false},
};

void columns_fit(const struct column *c, int nr, int cols, struct column_place *out)
{
    int need = 0, flex = -1;
    for (int i = 0; i < nr; i++) {
        out[i].width = c[i].width;
        need += c[i].width + 1;
        if (c[i].flex)
            flex = i;
    }
    need--; /* no gap behind the last */
    while (need > cols) {
        int drop = -1;
        for (int i = 0; i < nr; i++)
            if (out[i].width && c[i].priority > 0 &&
                (drop < 0 || c[i].priority >= c[drop].priority))
                drop = i;
        if (drop < 0)
            break;
        need -= out[drop].width + 1;
        out[drop].width = 0;
    }
    if (flex >= 0)
        out[flex].width += cols - need > -out[flex].width ? cols - need : -out[flex].width;
    int x = 0;
    for (int i = 0; i < nr; i++) {
        out[i].x = x;
        if (out[i].width)
            x += out[i].width + 1;
    }
}
