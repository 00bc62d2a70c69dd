// The largest of many scores, chosen so that the choice is always defined.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>

namespace dsv4_decoder {

/// Finds the `k` largest of `n` scores; of equal scores the one with the lower index is the larger.
///
/// The order is total, NaN included (it counts as beyond infinity on the side of its sign), so that damaged weights
/// lead to a poor choice and not to undefined behaviour; -0 equals 0.
///
/// @param scores   [n]; n below 2^32
/// @param k        at most n; 0 finds nothing
/// @param scratch  [n]
/// @param indices  [k] best first
/// @par Cost       O(n + k log k) on average; never allocates
inline void largest(float const* scores, std::int64_t n, std::int64_t k, std::uint64_t* scratch,
                    std::int32_t* indices) {
  if (k <= 0) return;
  for (std::int64_t i = 0; i < n; ++i) {
    float const score = scores[i] + 0.0f;  // -0 becomes 0
    std::uint32_t bits;
    std::memcpy(&bits, &score, sizeof bits);
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;  // now unsigned integers compare like the floats
    scratch[i] = std::uint64_t{bits} << 32 | static_cast<std::uint32_t>(~i);
  }
  std::nth_element(scratch, scratch + (k - 1), scratch + n, std::greater<>());
  std::sort(scratch, scratch + k, std::greater<>());
  for (std::int64_t i = 0; i < k; ++i) indices[i] = static_cast<std::int32_t>(~static_cast<std::uint32_t>(scratch[i]));
}

}  // namespace dsv4_decoder
