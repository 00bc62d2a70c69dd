// Rounds a row to what it would be after a trip through a narrow float format, one power-of-two scale a block.
#pragma once

#include <rollback/config.hpp>

#include <cmath>
#include <cstdint>

namespace rollback {
inline namespace v0_1 {
namespace kernels {

/// What a finished row is rounded to before it is stored. The stored values stay floats.
enum class Rounding : std::int32_t {
  none,
  fp8,  // E4M3 in blocks of 64, the rotated values left out
  fp4,  // E2M1 in blocks of 32, all values
};

namespace detail {

/// The smallest power of two that is at least `x`. Requires a finite x > 0.
[[nodiscard]] ROLLBACK_HD inline float power_of_two_at_least(float x) {
  int exponent = 0;
  float const fraction = std::frexp(x, &exponent);  // x = fraction * 2^exponent, fraction in [0.5, 1)
  return std::ldexp(1.0f, fraction == 0.5f ? exponent - 1 : exponent);
}

/// The nearest value of a binary format with `MantissaBits` behind the point and normal exponents from `LeastExponent`
/// up, ties to the even code. Below the normal range the steps stay as wide as at its lower end.
template <int MantissaBits, int LeastExponent>
[[nodiscard]] ROLLBACK_HD float round_to_format(float x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  int const binade = exponent - 1 > LeastExponent ? exponent - 1 : LeastExponent;
  float const step = std::ldexp(1.0f, binade - MantissaBits);
  return std::rint(x / step) * step;  // an even multiple of the step is an even code
}

/// Blocks of `Block` values, the last one shorter where n is no multiple: each divided by the power of two that brings
/// its largest magnitude, taken as at least `floor`, to `limit` or below, rounded, and multiplied back.
template <int Block, int MantissaBits, int LeastExponent, class Team>
ROLLBACK_HD void round_blocks(Team const& team, float* values, std::int64_t n, float limit, float floor) {
  team.for_each((n + Block - 1) / Block, [values, n, limit, floor](std::int64_t block) {
    float* const first = values + block * Block;
    std::int64_t const count = n - block * Block < Block ? n - block * Block : Block;
    float largest = floor;
    for (std::int64_t i = 0; i < count; ++i) {
      float const magnitude = std::fabs(first[i]);
      if (magnitude > largest) largest = magnitude;
    }
    float const scale = power_of_two_at_least(largest / limit);
    for (std::int64_t i = 0; i < count; ++i) {
      float x = first[i] / scale;
      if (x > limit) x = limit;  // comparisons, not fmin and fmax, which would turn a NaN into a number
      if (x < -limit) x = -limit;
      first[i] = round_to_format<MantissaBits, LeastExponent>(x) * scale;
    }
  });
}

}  // namespace detail

/// The team rounds `values` [n] to E4M3 (4 exponent bits, 3 of mantissa, largest 448, no infinity) in blocks of 64.
/// A block of nothing but tiny values counts as having a magnitude of 1e-4.
template <class Team>
ROLLBACK_HD void round_fp8_64(Team const& team, float* values, std::int64_t n) {
  detail::round_blocks<64, 3, -6>(team, values, n, 448.0f, 1e-4f);
}

/// The team rounds `values` [n] to E2M1 (magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6) in blocks of 32.
/// The scale is never below 2^-126, the smallest normal float.
template <class Team>
ROLLBACK_HD void round_fp4_32(Team const& team, float* values, std::int64_t n) {
  detail::round_blocks<32, 1, 0>(team, values, n, 6.0f, 6.0f * 0x1p-126f);
}

}  // namespace kernels
}  // namespace v0_1
}  // namespace rollback
