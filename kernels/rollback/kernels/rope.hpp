// Rotary position embedding of the trailing values of a row: the frequencies, plain or YaRN, and the rotation.
#pragma once

#include <rollback/config.hpp>
#include <rollback/position.hpp>

#include <cmath>
#include <cstdint>

namespace rollback {
inline namespace v0_1 {
namespace kernels {

/// How YaRN stretches rotary frequencies to a context longer than the one that a model was first trained on.
struct Yarn {
  double factor;            // low frequencies are divided by it
  double original_context;  // in tokens
  double beta_fast = 32;    // pairs that turn more often than this in the original context keep their frequency
  double beta_slow = 1;     // pairs that turn less often get the whole factor; in between a linear ramp
};

/// The rotation of the last `2 * pairs` values of a row, in adjacent pairs; values before them stay as they are.
///
/// A plain value that a kernel's parameters hold by copy, so nothing has to outlive a launch. One without pairs, as
/// constructed by default, rotates nothing.
struct Rope {
  static constexpr int max_pairs = 64;  // twice what the released models rotate

  double frequency[max_pairs] = {};  // radians a token; [pairs] of them are used
  std::int32_t pairs = 0;

  /// Frequency of pair i of n = rotary_width values: theta^(-2i/n).
  ///
  /// @param rotary_width  values that are rotated: even, in [0, 2 * max_pairs]
  /// @param theta         the base, above 1
  /// Refuses anything else as a set-up error.
  [[nodiscard]] static Rope plain(int rotary_width, double theta) {
    if (rotary_width < 0 || rotary_width % 2 != 0 || rotary_width > 2 * max_pairs) {
      rollback::detail::refuse_setup("Rope: rotary_width must be even and at most 128");
    }
    if (!(theta > 1)) rollback::detail::refuse_setup("Rope: theta must be above 1");
    Rope rope;
    rope.pairs = rotary_width / 2;
    for (int i = 0; i < rope.pairs; ++i) rope.frequency[i] = std::pow(theta, -2.0 * i / rotary_width);
    return rope;
  }

  /// The plain frequencies, stretched as YaRN does (Peng et al. 2023, "NTK-by-parts"): with
  /// dim(beta) = n ln(original_context / (2 pi beta)) / (2 ln theta), low = max(0, floor dim(beta_fast)),
  /// high = min(n - 1, ceil dim(beta_slow)) and ramp r_i = clamp((i - low) / max(0.001, high - low), 0, 1),
  /// pair i gets f_i (1 - r_i) + f_i / factor * r_i. Angles only: no magnitude factor.
  ///
  /// As `plain`; refuses a scaling that is not positive.
  [[nodiscard]] static Rope yarn(int rotary_width, double theta, Yarn const& scaling) {
    if (!(scaling.factor > 0 && scaling.original_context > 0 && scaling.beta_fast > 0 && scaling.beta_slow > 0)) {
      rollback::detail::refuse_setup("Rope: factor, original_context and both betas of YaRN must be positive");
    }
    Rope rope = plain(rotary_width, theta);
    constexpr double pi = 3.14159265358979323846;
    auto const dim = [&](double beta) {
      return rotary_width * std::log(scaling.original_context / (2 * pi * beta)) / (2 * std::log(theta));
    };
    double const low = std::fmax(0.0, std::floor(dim(scaling.beta_fast)));
    double const high = std::fmin(rotary_width - 1.0, std::ceil(dim(scaling.beta_slow)));
    for (int i = 0; i < rope.pairs; ++i) {
      double const ramp = std::fmin(1.0, std::fmax(0.0, (i - low) / std::fmax(0.001, high - low)));
      rope.frequency[i] = rope.frequency[i] * (1 - ramp) + rope.frequency[i] / scaling.factor * ramp;
    }
    return rope;
  }

  /// Turns pair i of the row that starts at `row` and has `width` values, by frequency[i] * position, or back by as
  /// much. The angle is a double: at position 1e6 a float would be off by 3 % of a radian.
  ROLLBACK_HD void rotate_pair(float* row, std::int64_t width, std::int64_t i, Position position, bool inverse) const {
    double const angle = static_cast<double>(position) * frequency[i];
    float const cosine = static_cast<float>(std::cos(angle));
    float const forward = static_cast<float>(std::sin(angle));
    float const sine = inverse ? -forward : forward;
    float* pair = row + width - 2 * pairs + 2 * i;
    float const x = pair[0];
    float const y = pair[1];
    pair[0] = x * cosine - y * sine;
    pair[1] = x * sine + y * cosine;
  }

  /// Turns the trailing values of one row in place. Requires width >= 2 * pairs.
  ROLLBACK_HD void rotate(float* row, std::int64_t width, Position position, bool inverse = false) const {
    for (std::int64_t i = 0; i < pairs; ++i) rotate_pair(row, width, i, position, inverse);
  }
};

}  // namespace kernels
}  // namespace v0_1
}  // namespace rollback
