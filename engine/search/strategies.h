/* SPDX-License-Identifier: Apache-2.0 */
/* The strategies that are built in; others ask strategy_find() and strategy_at(). */
#ifndef ENGINE_SEARCH_STRATEGIES_H
#define ENGINE_SEARCH_STRATEGIES_H

#include "engine/search/strategy.h"

extern const struct strategy_class strategy_annealing;
extern const struct strategy_class strategy_auto;
extern const struct strategy_class strategy_differential;
extern const struct strategy_class strategy_droplet;
extern const struct strategy_class strategy_evolutionary;
extern const struct strategy_class strategy_forest;
extern const struct strategy_class strategy_genetic;
extern const struct strategy_class strategy_grid;
extern const struct strategy_class strategy_portfolio;
extern const struct strategy_class strategy_random;
extern const struct strategy_class strategy_swarm;
extern const struct strategy_class strategy_tabu;

#endif
