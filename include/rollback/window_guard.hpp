// Keeps nothing and only limits: a landing needs the raw window rows below it, and a ring of rows loses old ones.
#pragma once

#include <rollback/component.hpp>
#include <rollback/position.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rollback {
inline namespace v0_1 {

/// Knows, for every slot, the oldest position whose raw row still exists.
///
/// A store of C rows has lost everything below the highest position ever written, less C, whether or not that position
/// was rolled back since: the guard follows what was written, never the tip. All members are O(1).
class WindowGuard {
 public:
  /// @param slots   how many sequences; at least 1
  /// @param window  its `window` at least 1, its `rows` at least `window - 1 + chunk + unverified`
  /// @param chunk   the most rows of a slot that run at once: they are written before the first of them is read
  /// @param unverified  the most rows of a slot that may be rejected
  /// @throws std::invalid_argument naming the parameter and the allowed range
  WindowGuard(std::int32_t slots, Window const& window, Position chunk, Position unverified)
      : window_(window), lowest_((check(slots, window, chunk, unverified), static_cast<std::size_t>(slots)), 0) {}

  /// Refuses what the constructor refuses. @throws as the constructor
  static void check(std::int32_t slots, Window const& window, Position chunk, Position unverified) {
    if (slots < 1) detail::refuse_setup("WindowGuard: slots is how many sequences there are; it must be at least 1");
    if (window.window < 1) {
      detail::refuse_setup("WindowGuard: window is the rows that a query sees; it must be at least 1");
    }
    if (chunk < 0) detail::refuse_setup("WindowGuard: chunk is the most rows that run at once; it must be at least 0");
    if (unverified < 0) {
      detail::refuse_setup("WindowGuard: unverified is the most rows that may be rejected; it must be at least 0");
    }
    // Differences, since the sum may be more than 64 bits hold.
    if (window.rows < 1 || chunk > window.rows || unverified > window.rows - chunk ||
        window.window - 1 > window.rows - chunk - unverified) {
      detail::refuse_setup(
          "WindowGuard: rows must be at least window - 1 + rows of a chunk + unverified rows, or a query would read "
          "rows that its own chunk overwrote");
    }
  }

  [[nodiscard]] Window const& window() const noexcept { return window_; }

  /// Whether every row that a query at `p` reads below itself still exists. Requires p >= 0.
  [[nodiscard]] bool covers(std::int32_t slot, Position p) const noexcept { return p >= lowest_covered(slot); }

  /// The oldest position whose row exists.
  [[nodiscard]] Position lowest(std::int32_t slot) const noexcept { return lowest_[static_cast<std::size_t>(slot)]; }

  /// The smallest position that is covered.
  [[nodiscard]] Position lowest_covered(std::int32_t slot) const noexcept {
    return lowest(slot) == 0 ? 0 : lowest(slot) + window_.window - 1;
  }

  /// Rows up to `end` (not included) are written, or may be.
  void write(std::int32_t slot, Position end) noexcept {
    Position& lowest = lowest_[static_cast<std::size_t>(slot)];
    lowest = std::max(lowest, end - window_.rows);
  }

  /// The sequence goes back to `p`: at or below the oldest row nothing older is missed any more.
  void land(std::int32_t slot, Position p) noexcept {
    Position& lowest = lowest_[static_cast<std::size_t>(slot)];
    lowest = std::min(lowest, p);
  }

  /// The sequence goes on from `end`, which nobody fed: rows [oldest, end) are the engine's word.
  void adopt(std::int32_t slot, Position oldest, Position end) noexcept {
    lowest_[static_cast<std::size_t>(slot)] = std::max(oldest, end - window_.rows);
  }

  /// The rows that a query at `p` reads below itself are there again: copied into the ring.
  void restore(std::int32_t slot, Position p) noexcept {
    Position& lowest = lowest_[static_cast<std::size_t>(slot)];
    lowest = std::min(lowest, std::max(p - (window_.window - 1), Position{0}));
  }

  /// Takes back a `write` that never happened.
  void unwrite(std::int32_t slot, Position lowest_before) noexcept {
    lowest_[static_cast<std::size_t>(slot)] = lowest_before;
  }

 private:
  Window window_;
  std::vector<Position> lowest_;  // [slots]
};

}  // namespace v0_1
}  // namespace rollback
