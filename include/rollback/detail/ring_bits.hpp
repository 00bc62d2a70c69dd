// A set of small numbers, one a slot, that answers "the largest at or below" in a few steps however many are missing.
#pragma once

#include <rollback/config.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace detail {

/// For each slot a set of numbers in [0, size), as a tree of 64-bit words: a bit of a word says whether the word below
/// it has any bit. All members are O(log64 size).
class RingBits {
 public:
  static constexpr std::int32_t none = -1;

  RingBits(std::int32_t slots, std::int32_t size) {
    std::int64_t words = size;
    do {
      words = (words + 63) / 64;
      first_[levels_++] = stride_;
      stride_ += words;
    } while (words > 1);
    words_.resize(static_cast<std::size_t>(slots) * static_cast<std::size_t>(stride_), 0);
  }

  [[nodiscard]] static std::size_t bytes(std::int32_t slots, std::int32_t size) noexcept {
    std::size_t words = static_cast<std::size_t>(size);
    std::size_t stride = 0;
    do {
      words = (words + 63) / 64;
      stride += words;
    } while (words > 1);
    return static_cast<std::size_t>(slots) * stride * sizeof(std::uint64_t);
  }

  void set(std::int32_t slot, std::int32_t i, bool to) noexcept {
    for (int level = 0; level < levels_; ++level) {
      std::uint64_t& w = word(slot, level, i / 64);
      std::uint64_t const bit = std::uint64_t{1} << (i % 64);
      w = to ? w | bit : w & ~bit;
      to = w != 0;
      i /= 64;
    }
  }

  /// The largest number of the slot's set that is at or below `i`, or `none`.
  [[nodiscard]] std::int32_t floor(std::int32_t slot, std::int32_t i) const noexcept {
    for (int level = 0; level < levels_; ++level) {
      if (i < 0) return none;
      std::uint64_t const at_or_below = word(slot, level, i / 64) & (~std::uint64_t{0} >> (63 - i % 64));
      i /= 64;
      if (at_or_below == 0) {
        --i;  // look among the words before this one
        continue;
      }
      i = i * 64 + highest(at_or_below);
      for (; level > 0; --level) i = i * 64 + highest(word(slot, level - 1, i));
      return i;
    }
    return none;
  }

 private:
  static constexpr int max_levels = 6;  // 64^6 is more than 32 bits

  // Which bits are set is as good as random to a branch predictor: an instruction where there is one.
  [[nodiscard]] static std::int32_t highest(std::uint64_t w) noexcept {
#if defined(__GNUC__)
    return 63 - __builtin_clzll(w);
#else
    std::int32_t bit = 0;
    for (int step = 32; step > 0; step /= 2) {
      if ((w >> step) != 0) {
        w >>= step;
        bit += step;
      }
    }
    return bit;
#endif
  }
  [[nodiscard]] std::uint64_t& word(std::int32_t slot, int level, std::int64_t i) noexcept {
    return words_[static_cast<std::size_t>(slot * stride_ + first_[level] + i)];
  }
  [[nodiscard]] std::uint64_t word(std::int32_t slot, int level, std::int64_t i) const noexcept {
    return words_[static_cast<std::size_t>(slot * stride_ + first_[level] + i)];
  }

  int levels_ = 0;
  std::int64_t stride_ = 0;              // words a slot
  std::int64_t first_[max_levels] = {};  // of a level, in words
  std::vector<std::uint64_t> words_;
};

}  // namespace detail
}  // namespace v0_1
}  // namespace rollback
