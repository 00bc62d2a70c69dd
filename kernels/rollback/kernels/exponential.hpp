// An exponential that compilers put into vector registers, for the weights of a softmax.
#pragma once

#include <rollback/config.hpp>

#include <cstdint>
#include <cstring>

namespace rollback {
inline namespace v0_1 {
namespace kernels {

/// Where `exponentials` has reached 0: what is smaller still must be raised to it.
inline constexpr float least_exponent = -88.0f;

/// Replaces each of `values`, all in [least_exponent, 0] or NaN, by its exponential, within 2 units in the last place:
/// 1 at 0, 0 below -87.7, where floats stop being normal, NaN for NaN. Each result depends on its value alone.
///
/// Straight-line arithmetic, unlike `std::exp`, which is a call for each value. e^x = 2^k e^r with k the whole number
/// nearest to x / ln 2, so that |r| <= ln(2) / 2, and e^r by its Taylor series up to r^7, whose first term left out is
/// below 6e-9. The loop stands in here, since a body of this size may not be inlined into one; the lower bound is the
/// caller's, since g++ makes a branch of it here, and then no vectors.
template <int Count>
ROLLBACK_HD void exponentials(float (&values)[Count]) {
  for (int i = 0; i < Count; ++i) {
    // 1.5 * 2^23 leaves no bits behind the point: the sum rounds x / ln 2 and keeps it in the low bits of its mantissa.
    float const shifted = values[i] * 1.44269504f + 12582912.0f;
    float const k = shifted - 12582912.0f;
    // ln 2 in two parts, the first so short that its product with k is exact.
    float const r = (values[i] - k * 0.693359375f) + k * 2.12194440e-4f;
    float series = 1.0f / 5040;
    series = series * r + 1.0f / 720;
    series = series * r + 1.0f / 120;
    series = series * r + 1.0f / 24;
    series = series * r + 1.0f / 6;
    series = series * r + 1.0f / 2;
    series = series * r + 1.0f;
    series = series * r + 1.0f;
    std::uint32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127) << 23;  // the exponent field of 2^k, 0 for k = -127; the rest of `shifted` falls out at the top
    float power;
    std::memcpy(&power, &bits, sizeof power);
    values[i] = series * power;
  }
}

}  // namespace kernels
}  // namespace v0_1
}  // namespace rollback
