// What the books have to know of one kind of state: how much of its past is kept, and which rows make it up.
#pragma once

#include <rollback/position.hpp>

#include <cstdint>

namespace rollback {
inline namespace v0_1 {

inline constexpr int max_components = 8;  // of one `Books`
inline constexpr int max_windows = 4;     // of one `Books`

/// The most rows that the planes of all slots and places of one component, and a chunk, have together: lists name them
/// by 32-bit indices, and shapes round counts up to powers of two.
inline constexpr std::int32_t max_state_rows = 1 << 30;

/// How a plane is made of rows, and when rows become an emitted block.
///
/// A plane that a kernel advances as one piece (a matrix, a convolution buffer) is one row and emits nothing. A ring of
/// rows keeps the row of position p in ring row `p % rows`; where `(p + 1) % block == 0` a block is emitted from the
/// last `block` rows, with `overlap` from the `block` rows before those as well.
struct RowGeometry {
  std::int32_t rows = 1;   // of one plane; with blocks at least `block`, with overlap at least `2 * block`
  std::int32_t block = 0;  // tokens in an emitted block; 0: nothing is emitted
  bool overlap = false;    // a block reads the previous block's rows too
};

/// One component: a kind of state with a plane of its own a slot. Depths are in states, quanta in tokens.
struct Component {
  char const* name = "state";  // for messages; must outlive the books
  RowGeometry geometry;
  std::int32_t per_token = 0;  // per-token tier: the states at tip-1 .. tip-per_token; 0 is off
  Position quantum = 0;        // aligned tier: a state every `quantum` tokens, in [2, 2^31); unused without the tier
  std::int32_t aligned = 0;    // aligned tier: how many boundaries are kept; 0 is off
  Position empty_at = 0;       // at multiples of this nothing has to be kept: the state is the empty one; 0 is never
  /// Whether the states inside a chunk can be had: true for a ring of rows (each state is gathered from the ring before
  /// the chunk and the chunk's own rows), false for a plane overwritten in place. With false the engine cuts chunks
  /// where states are kept (`Books::next_cut`).
  bool states_inside_chunk = false;
};

/// Raw sliding-window rows that a landing needs: a query at p reads the rows of positions [p - (window - 1), p].
struct Window {
  char const* name = "window";  // for messages; must outlive the books
  Position window = 0;          // rows that a query sees, itself included; at least 1
  Position rows = 0;            // rows that a slot's raw store holds; position p lives in row `p % rows`;
                                // at least window - 1 + the rows of a chunk + the least per-token depth
};

/// How many planes a slot has of one component, by what they are for. A place is one of them: live places first, then
/// the per-token tier's, then the aligned tier's, each tier with its spares behind its depth, then the pins'.
struct Places {
  std::int32_t live = 0;              // 1, and with entry copies one more for each batch that may be open
  std::int32_t per_token = 0;         // the tier's depth
  std::int32_t per_token_spares = 0;  // 1 where the tier is on, and one a pin: its source waits to be copied
  std::int32_t aligned = 0;           // the tier's depth; 0 where the engine hands pages out
  std::int32_t aligned_spares = 0;    // at least 1 where the tier is on; 0 where the engine hands pages out
  std::int32_t pins = 0;

  [[nodiscard]] constexpr std::int32_t total() const noexcept {
    return live + per_token + per_token_spares + aligned + aligned_spares + pins;
  }
};

/// The places of a slot of `component`, with `pins` pins and batches of which `steps_in_flight` may be open. With
/// `pages` that the engine hands out the aligned tier has none: its pages are common to all slots.
///
/// A tier has a spare: a boundary that only unverified rows cross is written there and swapped in when it is accepted,
/// so that a rejected verify never costs a boundary; and a state whose place the batch's own restore reads goes there,
/// or is not kept where unverified boundaries need every spare.
/// The aligned tier has as many spares as the per-token tier's unverified rows can cross boundaries, at least one.
[[nodiscard]] constexpr Places places(Component const& component, bool entry_copy, std::int32_t steps_in_flight = 1,
                                      std::int32_t pins = 0, std::int32_t pages = 0) noexcept {
  Places p;
  p.live = entry_copy ? 1 + steps_in_flight : 1;
  p.pins = pins;
  if (component.per_token > 0) {
    p.per_token = component.per_token;
    p.per_token_spares = 1 + pins;
  }
  if (component.aligned > 0 && pages == 0) {
    p.aligned = component.aligned;
    Position const crossings =
        component.quantum > 0 ? (component.per_token + component.quantum - 1) / component.quantum : 0;
    p.aligned_spares = crossings > 1 ? static_cast<std::int32_t>(crossings) : 1;
  }
  return p;
}

}  // namespace v0_1
}  // namespace rollback
