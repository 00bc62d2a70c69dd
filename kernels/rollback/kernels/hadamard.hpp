// The normalised Walsh-Hadamard transform, which spreads a row's outliers evenly before it is rounded.
#pragma once

#include <rollback/config.hpp>

#include <cmath>
#include <cstdint>

namespace rollback {
inline namespace v0_1 {
namespace kernels {

/// The team replaces `values` [n] by H values / sqrt(n), H[i][j] = (-1)^popcount(i & j): natural order, its own
/// inverse. Requires n to be a power of two. Cost: n log2(n) additions.
template <class Team>
ROLLBACK_HD void hadamard(Team const& team, float* values, std::int64_t n) {
  for (std::int64_t stride = 1; stride < n; stride *= 2) {
    team.for_each(n / 2, [values, stride](std::int64_t i) {
      std::int64_t const within = i & (stride - 1);
      float* pair = values + 2 * (i - within) + within;
      float const a = pair[0];
      float const b = pair[stride];
      pair[0] = a + b;
      pair[stride] = a - b;
    });
  }
  float const scale = 1.0f / std::sqrt(static_cast<float>(n));
  team.for_each(n, [values, scale](std::int64_t i) { values[i] *= scale; });
}

}  // namespace kernels
}  // namespace v0_1
}  // namespace rollback
