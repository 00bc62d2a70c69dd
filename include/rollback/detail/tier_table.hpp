// One tier of every slot: which position each place holds. The only code that decides what is kept and what is evicted.
#pragma once

#include <rollback/position.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace detail {

/// What became of a state that an open batch planned to keep.
enum class Written : std::uint8_t {
  whole,      // its chunk ran: the place holds the state
  untouched,  // its chunk never started: the place holds what it held before
  torn,       // nobody knows
};

/// The rows of one slot in one batch, as far as tiers are concerned.
struct Span {
  Position begin;     // the tip when the batch began
  Position verified;  // rows from here on are unverified
  Position end;       // the tip if all is accepted
  bool armed;         // the batch restores the state at `begin` from a kept place
};

/// For each slot a table of `depth` entries: entry `p / quantum % depth` names the place of position p's state.
///
/// Invariant: an entry whose `kept` is at or below the slot's tip is served; one above the tip is of an abandoned
/// timeline and is cleared or overwritten when the tip crosses it. So nothing has to be visited in a rollback.
///
/// Quantum 1 is the per-token tier: of a batch it keeps the states at end-1 .. end-depth. Any other quantum keeps the
/// last `depth` boundaries up to `end` included. All members are O(1) or O(min(rows of the batch / quantum, depth)).
class TierTable {
 public:
  static constexpr Position none = -1;

  TierTable(std::int32_t slots, Position quantum, std::int32_t depth, std::int32_t spares)
      : quantum_(quantum),
        depth_(depth),
        spares_(spares),
        entries_(static_cast<std::size_t>(slots) * static_cast<std::size_t>(depth)),
        spare_(static_cast<std::size_t>(slots) * static_cast<std::size_t>(spares)),
        oldest_(static_cast<std::size_t>(slots), 0) {
    for (std::int32_t slot = 0; slot < slots; ++slot) {
      for (std::int32_t i = 0; i < depth_; ++i) entries_of(slot)[i].place = i;
      for (std::int32_t i = 0; i < spares_; ++i) spares_of(slot)[i].place = depth_ + i;
    }
  }

  [[nodiscard]] Position quantum() const noexcept { return quantum_; }
  [[nodiscard]] std::int32_t depth() const noexcept { return depth_; }
  [[nodiscard]] std::int32_t spares() const noexcept { return spares_; }
  [[nodiscard]] bool per_token() const noexcept { return quantum_ == 1; }
  [[nodiscard]] static std::size_t bytes(std::int32_t slots, std::int32_t depth, std::int32_t spares) noexcept {
    if (depth == 0) return 0;
    return static_cast<std::size_t>(slots) * (static_cast<std::size_t>(depth) * sizeof(Entry) +
                                              static_cast<std::size_t>(spares) * sizeof(Spare) + sizeof(Position));
  }

  /// The place, within the tier, of the state at `p`; negative where it is not kept.
  [[nodiscard]] std::int32_t place_of(std::int32_t slot, Position p) const noexcept {
    if (p <= 0 || p % quantum_ != 0) return -1;
    Entry const& e = entry(slot, p);
    return e.kept == p && e.staged == none ? e.place : -1;
  }

  /// The largest kept position at or below `p`, or `none`. O(1) where the tier has no holes.
  [[nodiscard]] Position floor(std::int32_t slot, Position p) const noexcept {
    Position const oldest = std::max(oldest_[static_cast<std::size_t>(slot)], Position{1});
    for (Position b = boundary_at_or_below(p, quantum_); b >= oldest; b -= quantum_) {
      if (place_of(slot, b) >= 0) return b;
    }
    return none;
  }

  /// Opens a batch: chooses a place for every state that the batch will keep and unlists what they overwrite.
  void stage(std::int32_t slot, Span const& span) noexcept {
    for_each_candidate(span, [&](Position q) {
      if (span.armed && q == span.begin && place_of(slot, q) >= 0) return;  // restored from there: kept already
      Entry& e = entry(slot, q);
      bool const is_source = span.armed && e.kept == span.begin && e.staged == none;
      bool const unverified_boundary = !per_token() && q > span.verified;
      if (is_source || unverified_boundary) {
        for (std::int32_t i = 0; i < spares_; ++i) {
          Spare& spare = spares_of(slot)[i];
          if (spare.staged != none) continue;
          spare.staged = q;
          return;
        }
        return;  // no spare is left: the new state is the one that is not kept
      }
      e.staged = q;
    });
  }

  /// The place that the open batch writes the state at `q` to; negative where the batch does not keep it.
  [[nodiscard]] std::int32_t staged_place(std::int32_t slot, Position q) const noexcept {
    if (q <= 0 || q % quantum_ != 0) return -1;
    Entry const& e = entry(slot, q);
    if (e.staged == q) return e.place;
    for (std::int32_t i = 0; i < spares_; ++i) {
      Spare const& spare = spares_of(slot)[i];
      if (spare.staged == q) return spare.place;
    }
    return -1;
  }

  /// Closes a batch whose tip will be at or below `limit`: lists what was written whole and lies at or below it.
  ///
  /// @param written  what became of the state at a position in [span.begin, span.end]
  template <class WrittenAt>
  void resolve(std::int32_t slot, Span const& span, Position limit, WrittenAt written) noexcept {
    // An abandoned timeline's state must not come back to life where the tip crosses its position.
    for_each_crossed(span, [&](Position q) {
      Entry& e = entry(slot, q);
      if (e.kept > span.begin && e.kept <= limit) e.kept = none;
    });
    for_each_crossed(span, [&](Position q) {
      Entry& e = entry(slot, q);
      if (e.staged != q) return;
      Written const w = written(q);
      if (w != Written::untouched) {
        e.kept = w == Written::whole && q <= limit ? q : none;
        // Only what is listed moves the bound: an armed source older than what was torn is still kept.
        if (e.kept == q) note_kept(slot, q);
      }
      e.staged = none;
    });
    for (std::int32_t i = 0; i < spares_; ++i) {
      Spare& spare = spares_of(slot)[i];
      Position const q = std::exchange(spare.staged, none);
      if (q == none || q > limit || written(q) != Written::whole) continue;
      Entry& e = entry(slot, q);
      std::swap(e.place, spare.place);
      e.kept = q;
      note_kept(slot, q);
    }
    for_each_candidate(span,
                       [&](Position q) {  // a state that could not be kept evicts all the same: the last ones count
                         Entry& e = entry(slot, q);
                         if (q > span.begin && q <= limit && written(q) == Written::whole && e.kept < q) e.kept = none;
                       });
  }

  /// Forgets all of a slot. O(depth).
  void clear(std::int32_t slot) noexcept {
    for (std::int32_t i = 0; i < depth_; ++i) {
      entries_of(slot)[i].kept = none;
      entries_of(slot)[i].staged = none;
    }
    for (std::int32_t i = 0; i < spares_; ++i) spares_of(slot)[i].staged = none;
  }

 private:
  struct Entry {
    Position kept = none;    // the position whose state the place holds
    Position staged = none;  // the position that the open batch writes there; the entry is unlisted meanwhile
    std::int32_t place = 0;
  };
  struct Spare {
    Position staged = none;
    std::int32_t place = 0;
  };

  [[nodiscard]] Entry* entries_of(std::int32_t slot) noexcept {
    return entries_.data() + static_cast<std::size_t>(slot) * static_cast<std::size_t>(depth_);
  }
  [[nodiscard]] Entry const* entries_of(std::int32_t slot) const noexcept {
    return entries_.data() + static_cast<std::size_t>(slot) * static_cast<std::size_t>(depth_);
  }
  [[nodiscard]] Spare* spares_of(std::int32_t slot) noexcept {
    return spare_.data() + static_cast<std::size_t>(slot) * static_cast<std::size_t>(spares_);
  }
  [[nodiscard]] Spare const* spares_of(std::int32_t slot) const noexcept {
    return spare_.data() + static_cast<std::size_t>(slot) * static_cast<std::size_t>(spares_);
  }
  [[nodiscard]] Entry& entry(std::int32_t slot, Position q) noexcept { return entries_of(slot)[q / quantum_ % depth_]; }
  [[nodiscard]] Entry const& entry(std::int32_t slot, Position q) const noexcept {
    return entries_of(slot)[q / quantum_ % depth_];
  }

  // The states that a batch keeps, in rising order: per-token, the last `depth` below the end; aligned, the last
  // `depth` verified boundaries and every unverified one.
  template <class F>
  void for_each_candidate(Span const& span, F f) const noexcept {
    if (per_token()) {
      Position const first = std::max({span.begin, span.end - depth_, Position{1}});
      for (Position q = first; q < span.end; ++q) f(q);
      return;
    }
    Position const last_verified = boundary_at_or_below(span.verified, quantum_);
    Position const first = std::max(boundary_above(span.begin, quantum_), last_verified - (depth_ - 1) * quantum_);
    for (Position q = first; q <= span.end; q += quantum_) f(q);
  }

  // Every position whose entry a batch may have staged or crossed: the candidates, and the end of a per-token span (its
  // state is live, not kept; but an abandoned timeline may have left one there).
  template <class F>
  void for_each_crossed(Span const& span, F f) const noexcept {
    for_each_candidate(span, f);
    if (per_token() && span.end > 0) f(span.end);
  }

  // Keeps `oldest_` a lower bound of what is listed: `q` took the entry of q - depth * quantum.
  void note_kept(std::int32_t slot, Position q) noexcept {
    Position& oldest = oldest_[static_cast<std::size_t>(slot)];
    oldest = std::max(std::min(oldest, q), q - (depth_ - 1) * quantum_);
  }

  Position quantum_;
  std::int32_t depth_;
  std::int32_t spares_;
  std::vector<Entry> entries_;    // [slots, depth]
  std::vector<Spare> spare_;      // [slots, spares]
  std::vector<Position> oldest_;  // [slots]
};

}  // namespace detail
}  // namespace v0_1
}  // namespace rollback
