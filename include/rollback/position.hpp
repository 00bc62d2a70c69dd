// Positions of tokens and slots of sequences: the two things every call names, and the arithmetic of boundaries.
#pragma once

#include <rollback/config.hpp>

#include <cstdint>

namespace rollback {
inline namespace v0_1 {

/// Index of a token in its sequence, and also the number of tokens before it. Counted from 0, 64-bit.
using Position = std::int64_t;

/// No position of any sequence is beyond this, so that no sum of positions overflows.
inline constexpr Position max_position = Position{1} << 56;

/// Where an engine keeps one sequence: an index it chose, and a generation that `Books::clear` raises.
/// A handle of an older generation is refused (`Verdict::stale_slot`), so a late result never touches the slot's next
/// user.
struct Slot {
  std::int32_t index = -1;       // [0, slots); negative: no slot, as in a padded row
  std::uint32_t generation = 0;  // 0 is never a live generation

  friend constexpr bool operator==(Slot a, Slot b) noexcept {
    return a.index == b.index && a.generation == b.generation;
  }
  friend constexpr bool operator!=(Slot a, Slot b) noexcept { return !(a == b); }
};

namespace detail {

/// `p / quantum` and `p % quantum`, quantum >= 1. Positions below 2^32, nearly all, are divided as 32-bit numbers,
/// which takes half the time and on many processors the same time for each: far tips must not cost more.
[[nodiscard]] ROLLBACK_HD constexpr Position quotient(Position p, Position quantum) noexcept {
  if (((p | quantum) >> 32) != 0) return p / quantum;
  return static_cast<std::uint32_t>(p) / static_cast<std::uint32_t>(quantum);
}
[[nodiscard]] ROLLBACK_HD constexpr Position remainder(Position p, Position quantum) noexcept {
  if (((p | quantum) >> 32) != 0) return p % quantum;
  return static_cast<std::uint32_t>(p) % static_cast<std::uint32_t>(quantum);
}

}  // namespace detail

/// The largest boundary of `quantum` tokens that is at or below `p`. Requires p >= 0 and quantum >= 1.
[[nodiscard]] ROLLBACK_HD constexpr Position boundary_at_or_below(Position p, Position quantum) noexcept {
  return p - detail::remainder(p, quantum);
}

/// The smallest boundary of `quantum` tokens that is above `p`. Requires p >= 0 and quantum >= 1.
[[nodiscard]] ROLLBACK_HD constexpr Position boundary_above(Position p, Position quantum) noexcept {
  return p - detail::remainder(p, quantum) + quantum;
}

}  // namespace v0_1
}  // namespace rollback
