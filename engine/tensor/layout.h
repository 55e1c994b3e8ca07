/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout: how a logical array lies in memory.
 *
 * A stored array has nr_p dimensions, the last one contiguous. Stored dimension k of extent
 * p[k].extent moves the logical index `p[k].dim` by p[k].coef a step, so the element stored at
 * (i0, i1, ...) is the logical element whose index in dimension d is the sum of coef * i over the
 * stored dimensions with dim == d. Where that index is outside the logical extent the stored
 * element is padding, and zero. Examples for a logical [N, C, H, W]:
 *   plain     {N,d0,1} {C,d1,1} {H,d2,1} {W,d3,1}
 *   NCHW16c   {N,d0,1} {ceil(C/16),d1,16} {H,d2,1} {W,d3,1} {16,d1,1}
 * The same struct describes constants packed into the order in which a schedule reads them.
 */
#ifndef ENGINE_TENSOR_LAYOUT_H
#define ENGINE_TENSOR_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

enum { LAYOUT_MAX_DIMS = 8, LAYOUT_MAX_STORED = 24 };

/*
 * A constant may be transformed before it is stored: the weights of a 3x3 convolution, [K, C, 3, 3],
 * into the domain of Winograd's algorithm (winograd.h), [a*a, K, C] with a = 4 or 6. The dimensions
 * of p[] are then those of the transformed array, and l[] stays that of the weights.
 */
enum layout_transform { LAYOUT_AS_IS, LAYOUT_WINOGRAD_2 = 2, LAYOUT_WINOGRAD_4 = 4 };

struct layout_dim {
    int64_t extent, coef;
    int dim;
};

struct layout {
    int nr_l;                       /* logical dimensions; 0 is a scalar */
    int64_t l[LAYOUT_MAX_DIMS];     /* their extents */
    int nr_p;                       /* stored dimensions */
    struct layout_dim p[LAYOUT_MAX_STORED];
    enum layout_transform transform;
};

/* Row-major order of `nr` logical dimensions. */
struct layout layout_plain(int nr, const int64_t *dims);

/* Row-major, but logical dimension `dim` cut into blocks of `block`, stored last (NCHWc). */
struct layout layout_blocked(int nr, const int64_t *dims, int dim, int64_t block);

bool layout_is_plain(const struct layout *l);

/* Number of logical and of stored elements. */
int64_t layout_logical_size(const struct layout *l);
int64_t layout_stored_size(const struct layout *l);

bool layout_equal(const struct layout *a, const struct layout *b);

/*
 * Packing by a layout with a transform is transforming, which is packing by `first`, and then
 * packing what comes out by `rest`. False where there is no transform, or nothing to do after it.
 */
bool layout_split_transform(const struct layout *l, struct layout *first, struct layout *rest);

/* logical -> stored; padding becomes zero. Both float32, row-major logical. */
void layout_pack(const struct layout *l, const float *logical, float *stored);

/* stored -> logical. Each logical element must be stored at least once, and as it is. */
void layout_unpack(const struct layout *l, const float *stored, float *logical);

#endif
