// SPDX-License-Identifier: Apache-2.0
// Planes that measured peaks lie on exactly.
//
// The live bytes of a deterministic allocator at one point of a program are linear in the features, so the
// peaks which that point decides lie on one plane to the byte, while a plane through a few peaks by chance
// meets no others. Where the program itself changes with the shape (another algorithm for one row, without
// its scratch) some peaks lie below: they are exceptions, predicted too high rather than allowed to bend the
// planes. Source: consensus of samples, Fischler & Bolles 1981; here every sample is tried, so nothing is
// random. Pure.
#pragma once

#include <optional>
#include <span>

#include "cost/detail/planes.h"

namespace tonnage::cost::detail {

// At most three planes, of as few terms as will do, whose maximum meets at least three of four points within
// `tolerance` (relative) and is below none. Nothing where there are no such planes.
std::optional<Planes> exact_planes(std::span<const Point> points, double tolerance);

}  // namespace tonnage::cost::detail
