// RollbackRing: one plane that its engine advances in place, and all it takes to go back. For engines that need no
// more.
#pragma once

#include <rollback/books.hpp>
#include <rollback/feed.hpp>
#include <rollback/plane.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rollback {
inline namespace v0_1 {

/// As `Depth` of a `RollbackRing`: the depth is given to the constructor.
inline constexpr int dynamic_depth = -1;

/// Sizes of a ring, fixed when it is made.
struct RingOptions {
  std::int32_t slots = 1;      // sequences kept at once
  std::int32_t depth = 0;      // boundaries kept a slot, where `Depth` is `dynamic_depth`; else 0
  std::int32_t per_token = 0;  // with a quantum above 1: a per-token tier as well, the states at tip-1 .. tip-per_token
  std::int32_t max_rows = 1;   // the most tokens of one `feed`
  bool entry_copy = false;     // one more state a slot: a feed that fails leaves the slot where it was
  std::int32_t pins = 0;       // landings a slot that the engine places, in [0, 4096]: a state each, and a spare each
                               // with a per-token tier; 0 is off
};

/// Keeps the last `Depth` boundaries of a `Plane`, one every `Quantum` tokens, and goes back to them.
///
/// The plane is overwritten in place, and a kept state is a copy of it. `Quantum` 1 keeps the states at tip-1 ..
/// tip-Depth; any other keeps the states at its last `Depth` multiples. Feeds are cut where a state must be kept.
///
/// State numbers, [slots, places]: `live(slot)` is the one to advance; the plane needs `states(options)` of them.
///
/// @tparam Plane    a plane (see plane.hpp)
/// @tparam Quantum  tokens between two kept states, at least 1
/// @tparam Depth    how many are kept, at least 1, or `dynamic_depth`
template <class Plane, int Quantum, int Depth>
class RollbackRing {
  static_assert(Quantum >= 1, "RollbackRing: Quantum is the tokens between two kept states; it must be at least 1");
  static_assert(Depth >= 1 || Depth == dynamic_depth,
                "RollbackRing: Depth is how many boundaries are kept: at least 1, or dynamic_depth");
  static_assert(detail::has_copy<Plane>::value,
                "RollbackRing: Plane needs `void copy(std::int32_t source, std::int32_t destination) noexcept`");
  static_assert(detail::has_clear<Plane>::value,
                "RollbackRing: Plane needs `void clear(std::int32_t destination) noexcept`");
  static_assert(detail::has_states<Plane>::value, "RollbackRing: Plane needs `std::int64_t states() const`");
  static_assert(detail::has_state_bytes<Plane>::value, "RollbackRing: Plane needs `std::size_t state_bytes() const`");

 public:
  /// How many states the plane must have room for.
  /// @throws std::invalid_argument naming the option and its allowed range
  [[nodiscard]] static std::int64_t states(RingOptions const& options) {
    return std::int64_t{options.slots} *
           places(component(checked(options)), options.entry_copy, 1, options.pins).total();
  }
  /// The bytes of all states, for states of `state_bytes`; asked before anything exists. @throws as `states`
  [[nodiscard]] static std::size_t bytes(RingOptions const& options, std::size_t state_bytes) {
    auto const count = static_cast<std::size_t>(states(options));
    if (state_bytes > SIZE_MAX / count) {
      detail::refuse_setup("RollbackRing: state_bytes times states(options) is more than memory can hold");
    }
    return count * state_bytes;
  }

  /// @throws std::invalid_argument as `states`, and for a plane with fewer states
  RollbackRing(Plane plane, RingOptions const& options)
      : plane_(std::move(plane)),
        books_(books_options(checked(options))),
        feed_(books_, options.max_rows, options.max_rows),
        map_(RowMap::packed(RowGeometry{}, books_.places(0), options.slots)) {
    if (plane_.states() < states(options)) {
      detail::refuse_setup("RollbackRing: the plane must have room for states(options) states");
    }
    Lengths const n = books_.lengths(0, books_.worst_shape(options.max_rows, 1));
    lists_.resize(2 * static_cast<std::size_t>(n.restores) + 2 * static_cast<std::size_t>(n.snapshots));
  }
  RollbackRing(RollbackRing const&) = delete;
  RollbackRing& operator=(RollbackRing const&) = delete;

  [[nodiscard]] Books const& books() const noexcept { return books_; }
  [[nodiscard]] Plane const& plane() const noexcept { return plane_; }
  [[nodiscard]] Slot slot(std::int32_t index) const noexcept { return books_.slot(index); }
  [[nodiscard]] Position tip(Slot slot) const noexcept { return books_.tip(slot); }
  [[nodiscard]] bool is_armed(Slot slot) const noexcept { return books_.is_armed(slot); }
  [[nodiscard]] Position alignment() const noexcept { return Quantum; }
  [[nodiscard]] Position reach(Slot slot) const noexcept { return books_.reach(slot); }
  [[nodiscard]] Verdict can_land(Slot slot, Position p) const noexcept { return books_.can_land(slot, p); }
  [[nodiscard]] Landing nearest(Slot slot, Position wanted) const noexcept { return books_.nearest(slot, wanted); }
  [[nodiscard]] std::int32_t landings(Slot slot, Landing* out, std::int32_t capacity) const noexcept {
    return books_.landings(slot, out, capacity);
  }
  /// The state that holds a slot now, unless `is_armed` or the tip is 0; -1 for an unknown slot. The next feed restores
  /// or empties it first.
  [[nodiscard]] std::int32_t live(Slot slot) const noexcept {
    std::int32_t const place = books_.live_place(slot);
    return place < 0 ? -1 : map_.live + slot.index * map_.live_slot_stride + place * map_.live_place_stride;
  }

  /// As `Books::roll_back`. Copies nothing: the next feed restores.
  [[nodiscard]] Verdict roll_back(Slot slot, Position p) noexcept { return books_.roll_back(slot, p); }
  /// As `Books::clear`.
  [[nodiscard]] Verdict clear(Slot& slot) noexcept { return books_.clear(slot); }

  /// As `Books::pin`. Copies nothing: the next feed that starts at `p`, or crosses it and is cut there, does, or the
  /// next one where `p` was passed.
  [[nodiscard]] Verdict pin(Slot slot, Position p) noexcept { return books_.pin(slot, p); }
  /// As `Books::unpin`.
  [[nodiscard]] Verdict unpin(Slot slot, Position p) noexcept { return books_.unpin(slot, p); }
  /// As `Books::is_pinned`.
  [[nodiscard]] bool is_pinned(Slot slot, Position p) const noexcept { return books_.is_pinned(slot, p); }
  /// As `Books::fork`. Copies nothing: the next feed of `to` restores.
  [[nodiscard]] Verdict fork(Slot from, Position p, Slot& to) noexcept { return books_.fork(from, p, to); }
  /// As `Books::nearest_over`.
  [[nodiscard]] Slot nearest_over(Position const* wanted, std::int32_t count, Landing& landing) const noexcept {
    return books_.nearest_over(wanted, count, landing);
  }
  /// As `Books::lost`.
  [[nodiscard]] std::int32_t lost(Slot slot, Position const* positions, std::int32_t count,
                                  Position* lost) const noexcept {
    return books_.lost(slot, positions, count, lost);
  }

  /// Feeds `rows` tokens. `step(state, begin, end)` advances state number `state` by positions [begin, end) and returns
  /// whether it did; it is called once a stretch between two kept states.
  /// @return as `Feed::run`; after `chunk_failed` or an exception `outcome` tells where the slot is
  template <class Step>
  [[nodiscard]] Verdict feed(Slot slot, std::int32_t rows, Step&& step) {
    return feed_.run(slot, rows, carrying_out(step));
  }
  /// Feeds `rows` tokens of which the last `unverified` may be rejected; `accept()` gives the tip that stands.
  template <class Step, class Accept>
  [[nodiscard]] Verdict verify(Slot slot, std::int32_t rows, std::int32_t unverified, Step&& step, Accept&& accept) {
    return feed_.verify(slot, rows, unverified, carrying_out(step), std::forward<Accept>(accept));
  }
  [[nodiscard]] Outcome const& outcome() const noexcept { return feed_.outcome(); }

 private:
  [[nodiscard]] static RingOptions const& checked(RingOptions const& o) {
    if (o.slots < 1) detail::refuse_setup("RollbackRing: slots must be at least 1");
    if (Depth == dynamic_depth && o.depth < 1) {
      detail::refuse_setup(
          "RollbackRing: depth is how many boundaries are kept; with dynamic_depth it must be at least 1");
    }
    if (Depth != dynamic_depth && o.depth != 0 && o.depth != Depth) {
      detail::refuse_setup("RollbackRing: depth is a template argument here; the option must be 0 or the same");
    }
    if (o.per_token < 0 || (Quantum == 1 && o.per_token != 0)) {
      detail::refuse_setup("RollbackRing: per_token must be at least 0, and 0 where Quantum is 1 (Depth says it then)");
    }
    if (o.max_rows < 1) detail::refuse_setup("RollbackRing: max_rows is the most tokens of a feed; at least 1");
    if (o.pins < 0 || o.pins > 4096) detail::refuse_setup("RollbackRing: pins must be in [0, 4096]");
    // Twice the per-token tier and the pins: no more spares than that can be needed.
    std::int64_t const most = std::int64_t{Depth == dynamic_depth ? o.depth : Depth} + 2 * std::int64_t{o.per_token} +
                              2 * std::int64_t{o.pins} + 4;
    if (most > (max_state_rows - o.max_rows) / o.slots) {
      detail::refuse_setup(
          "RollbackRing: slots, depth, per_token and pins make more than 2^30 states: they are 32-bit indices");
    }
    return o;
  }

  [[nodiscard]] static Component component(RingOptions const& o) noexcept {
    std::int32_t const depth = Depth == dynamic_depth ? o.depth : Depth;
    Component c;
    c.per_token = Quantum == 1 ? depth : o.per_token;
    c.quantum = Quantum == 1 ? 0 : Quantum;
    c.aligned = Quantum == 1 ? 0 : depth;
    return c;
  }

  [[nodiscard]] static BooksOptions books_options(RingOptions const& o) {
    BooksOptions books;
    books.slots = o.slots;
    books.max_rows = o.max_rows;
    books.max_chunks = o.max_rows;
    books.entry_copy = o.entry_copy;
    books.pins = o.pins;
    books.components = {component(o)};
    return books;
  }

  // The callback of a feed: copies what the plan says before and after the step.
  template <class Step>
  [[nodiscard]] auto carrying_out(Step& step) {
    return [this, &step](FeedChunk const& chunk) {
      Shape shape;
      Lists lists;
      if (books_.shape(chunk.ticket, chunk.index, shape) != Verdict::accepted) return false;
      Lengths const n = books_.lengths(0, shape);
      lists.restore_source = lists_.data();
      lists.restore_destination = lists.restore_source + n.restores;
      lists.snapshot_source = lists.restore_destination + n.restores;
      lists.snapshot_destination = lists.snapshot_source + n.snapshots;
      if (books_.plan(chunk.ticket, chunk.index, 0, shape, map_, lists) != Verdict::accepted) return false;
      for (std::int32_t i = 0; i < lists.restores; ++i) {
        if (lists.restore_source[i] == map_.reset) {
          plane_.clear(lists.restore_destination[i]);
        } else {
          plane_.copy(lists.restore_source[i], lists.restore_destination[i]);
        }
      }
      if (!step(live(chunk.slot), chunk.begin, chunk.end)) return false;
      for (std::int32_t i = 0; i < lists.snapshots; ++i) {
        plane_.copy(lists.snapshot_source[i], lists.snapshot_destination[i]);
      }
      return true;
    };
  }

  Plane plane_;
  Books books_;
  Feed feed_;
  RowMap map_;
  std::vector<std::int32_t> lists_;
};

}  // namespace v0_1
}  // namespace rollback
