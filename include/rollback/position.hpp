// Positions of tokens and slots of sequences: the two things every call names, and the arithmetic of boundaries.
#pragma once

#include <rollback/config.hpp>

#include <cstdint>

namespace rollback {
inline namespace v0_1 {

/// Index of a token in its sequence, and also the number of tokens before it. Counted from 0, 64-bit.
using Position = std::int64_t;

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

/// The largest boundary of `quantum` tokens that is at or below `p`. Requires p >= 0 and quantum >= 1.
[[nodiscard]] ROLLBACK_HD constexpr Position boundary_at_or_below(Position p, Position quantum) noexcept {
  return p - p % quantum;
}

/// The smallest boundary of `quantum` tokens that is above `p`. Requires p >= 0 and quantum >= 1.
[[nodiscard]] ROLLBACK_HD constexpr Position boundary_above(Position p, Position quantum) noexcept {
  return p - p % quantum + quantum;
}

}  // namespace v0_1
}  // namespace rollback
