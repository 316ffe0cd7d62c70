// SPDX-License-Identifier: Apache-2.0
// sweep_grid: runs the points of a grid on a lone model, small first, and writes down what was seen.
//
// Promises: a point whose grant does not fit is not run; none is begun after `duration`. A shape that
// fails (over its grant, by an error of the model) stays unseen. Error: the worker was lost.
#pragma once

#include <vector>

#include "server/inspect.h"
#include "server/lone_model.h"

namespace tonnage::server::detail {

Status sweep_grid(LoneModel& lone, std::vector<GridPoint>& grid, Duration duration, const Progress& progress);

}  // namespace tonnage::server::detail
