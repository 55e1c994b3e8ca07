/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of trees, for those who grow them.
 *
 * A tree is complete: all leaves are at the same depth, and the nodes lie level by level, so that
 * the children of node i are 2i+1 and 2i+2 and no tree can lead out of its arrays, whoever wrote
 * it. A branch that ends early goes on with nodes of PASS, whose rows all go left.
 */
#ifndef ENGINE_SEARCH_TREES_NODES_H
#define ENGINE_SEARCH_TREES_NODES_H

#include <stdint.h>

#include "engine/search/trees.h"

enum { TREE_DEPTH = 6, TREE_NODES = (1 << TREE_DEPTH) - 1, TREE_LEAVES = 1 << TREE_DEPTH };

struct tree_node {
    float below; /* a row whose feature is below goes left */
    int32_t feature;
};

struct tree {
    struct tree_node node[TREE_NODES];
    float leaf[TREE_LEAVES];
};

struct trees {
    int nr;
    struct tree *tree;
};

/* `nr` trees that say 0 of everything; the caller frees. */
struct trees *trees_new(int nr);

/* Ends the branch at node `at` (a leaf where it is TREE_NODES or more) with `value`. */
void tree_end(struct tree *t, int at, float value);

#endif
