// Two things measured in turn, so that what else goes on meets both; medians and quartiles of what came out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace pairs {

/// The value below which a part `q` of the values lies; the values must not be empty.
inline double quantile(std::vector<double> values, double q) {
  auto const at = static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

/// What pairs of a baseline and a variant came to.
struct Result {
  std::vector<double> baseline;  // ns, one a pair
  std::vector<double> variant;
  std::vector<double> ratio;  // variant by baseline, pair by pair

  /// Whether three quarters of the values are beyond the limit: by more than noise.
  [[nodiscard]] static bool beyond(std::vector<double> const& values, double limit) {
    return quantile(values, 0.25) > limit;
  }
};

/// Calls `baseline(i)` and `variant(i)`, which return ns, for each of `count` pairs. Which goes first alternates.
template <class Baseline, class Variant>
Result measure(int count, Baseline baseline, Variant variant) {
  Result r;
  for (int i = 0; i < count; ++i) {
    bool const swapped = i % 2 == 1;
    double const first = swapped ? variant(i) : baseline(i);
    double const second = swapped ? baseline(i) : variant(i);
    r.baseline.push_back(swapped ? second : first);
    r.variant.push_back(swapped ? first : second);
    r.ratio.push_back(r.variant.back() / r.baseline.back());
  }
  return r;
}

}  // namespace pairs
