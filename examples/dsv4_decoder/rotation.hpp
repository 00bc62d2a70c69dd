// The rotary embedding of one token: its angles are the same for all heads, so sines and cosines are computed once.
#pragma once

#include <rollback/kernels/rope.hpp>

#include <array>
#include <cmath>
#include <cstdint>

namespace dsv4_decoder {

/// `rollback::kernels::Rope` at one position. Rotates bit for bit as `Rope::rotate` does.
class Rotation {
 public:
  Rotation(rollback::kernels::Rope const& rope, rollback::Position position) : pairs_(rope.pairs) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(pairs_); ++i) {
      double const angle = static_cast<double>(position) * rope.frequency[i];
      cosine_[i] = static_cast<float>(std::cos(angle));
      sine_[i] = static_cast<float>(std::sin(angle));
    }
  }

  /// Turns the trailing values of one row in place, or back by as much.
  void rotate(float* row, std::int64_t width, bool inverse = false) const {
    float* tail = row + width - 2 * pairs_;
    for (std::size_t i = 0; i < static_cast<std::size_t>(pairs_); ++i) {
      float const sine = inverse ? -sine_[i] : sine_[i];
      float const x = tail[2 * i];
      float const y = tail[2 * i + 1];
      tail[2 * i] = x * cosine_[i] - y * sine;
      tail[2 * i + 1] = x * sine + y * cosine_[i];
    }
  }

 private:
  std::int64_t pairs_;
  std::array<float, rollback::kernels::Rope::max_pairs> cosine_;
  std::array<float, rollback::kernels::Rope::max_pairs> sine_;
};

}  // namespace dsv4_decoder
