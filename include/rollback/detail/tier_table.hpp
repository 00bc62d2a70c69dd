// One tier of every slot: which position each place holds. The only code that decides what is kept and what is evicted.
#pragma once

#include <rollback/detail/page_pool.hpp>
#include <rollback/detail/ring_bits.hpp>
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
  Position begin;     // the end of what was in, or in flight, when the batch began
  Position verified;  // rows from here on are unverified
  Position end;       // the tip if all is accepted
  Position certain;   // rows from here on are unverified, or follow unverified rows of an older open batch
  bool armed;         // the batch restores the state at `begin` from a kept place
};

/// For each slot a table of `depth` entries: entry `p / quantum % depth` names the place of position p's state.
///
/// Invariant: an entry whose `kept` is at or below the slot's tip is served, unless an open batch writes its page; one
/// above the tip is of an abandoned timeline and is cleared or overwritten when the tip crosses it. So nothing has to
/// be visited in a rollback. What is served lies among `depth` boundaries in a row.
///
/// Quantum 1 is the per-token tier: of a batch it keeps the states at end-1 .. end-depth. Any other quantum keeps the
/// last `depth` boundaries up to `end` included. A page is a place of some slot: `slot * places() + place`, a slot's
/// own until a fork shares it. All members are O(log depth) or O(min(rows of the batch / quantum, depth)).
class TierTable {
 public:
  static constexpr Position none = -1;

  TierTable(std::int32_t slots, Position quantum, std::int32_t depth, std::int32_t spares)
      : quantum_(quantum),
        depth_(depth),
        spares_(spares),
        entries_(static_cast<std::size_t>(slots) * static_cast<std::size_t>(depth)),
        spare_(static_cast<std::size_t>(slots) * static_cast<std::size_t>(spares)),
        oldest_(static_cast<std::size_t>(slots), 0),
        newest_(static_cast<std::size_t>(slots), 0),
        listed_(slots, depth),
        pages_(static_cast<std::size_t>(slots) * static_cast<std::size_t>(depth + spares)) {
    for (std::int32_t slot = 0; slot < slots; ++slot) {
      for (std::int32_t i = 0; i < depth_; ++i) entries_of(slot)[i].page = slot * places() + i;
      for (std::int32_t i = 0; i < spares_; ++i) spares_of(slot)[i].page = slot * places() + depth_ + i;
    }
  }

  [[nodiscard]] Position quantum() const noexcept { return quantum_; }
  [[nodiscard]] std::int32_t depth() const noexcept { return depth_; }
  [[nodiscard]] std::int32_t spares() const noexcept { return spares_; }
  [[nodiscard]] std::int32_t places() const noexcept { return depth_ + spares_; }
  [[nodiscard]] bool per_token() const noexcept { return quantum_ == 1; }
  [[nodiscard]] static std::size_t bytes(std::int32_t slots, std::int32_t depth, std::int32_t spares) noexcept {
    if (depth == 0) return 0;
    auto const d = static_cast<std::size_t>(depth);
    auto const s = static_cast<std::size_t>(spares);
    return static_cast<std::size_t>(slots) * (d * sizeof(Entry) + s * sizeof(Spare) + 2 * sizeof(Position)) +
           RingBits::bytes(slots, depth) + PagePool::bytes(static_cast<std::size_t>(slots) * (d + s));
  }

  /// The page of the state at `p`; negative where it is not kept, or an open batch may overwrite it.
  [[nodiscard]] std::int32_t page_of(std::int32_t slot, Position p) const noexcept {
    if (p <= 0 || p % quantum_ != 0) return -1;
    Entry const& e = entry(slot, p);
    return e.kept == p && !pages_.written(e.page) ? e.page : -1;
  }

  /// The largest kept position at or below `p`, or `none`, holes or not.
  [[nodiscard]] Position floor(std::int32_t slot, Position p) const noexcept {
    auto const i = static_cast<std::size_t>(slot);
    Position const oldest = std::max(oldest_[i], quantum_);
    for (Position b = boundary_at_or_below(std::min(p, newest_[i]), quantum_); b >= oldest; b -= quantum_) {
      auto const index = static_cast<std::int32_t>(b / quantum_ % depth_);
      std::int32_t at = listed_.floor(slot, index);
      if (at == RingBits::none) at = listed_.floor(slot, depth_ - 1);
      if (at == RingBits::none) return none;
      b -= (at <= index ? index - at : index + depth_ - at) * quantum_;
      if (entries_of(slot)[at].kept == b) return b >= oldest ? b : none;
    }
    return none;
  }

  /// Opens a batch: chooses a page for every state that the batch will keep and unlists what they overwrite.
  ///
  /// @param held    whether the state at a position is the source of a copy yet to be made
  /// @param record  called with each position and the page that its state goes to
  template <class Held, class Record>
  void stage(std::int32_t slot, Span const& span, Held held, Record record) noexcept {
    for_each_candidate(span, [&](Position q) {
      if (span.armed && q == span.begin && page_of(slot, q) >= 0) return;  // restored from there: kept already
      Entry& e = entry(slot, q);
      std::int32_t* page = &e.page;
      bool const unverified_boundary = !per_token() && q > span.certain;
      if (unverified_boundary || (e.kept > 0 && held(e.kept))) {
        // An older open batch may have gone to a spare for the same entry: its state would be evicted in any case.
        Spare* const last = spares_of(slot) + spares_;
        Spare* spare = std::find_if(spares_of(slot), last, [&](Spare const& x) {
          return !unverified_boundary && pages_.written(x.page) && (q - x.staged) % (depth_ * quantum_) == 0;
        });
        if (spare == last) {
          spare = std::find_if(spares_of(slot), last, [this](Spare const& x) { return !pages_.written(x.page); });
        }
        if (spare == last) return;  // the new state is the one that is not kept
        spare->staged = q;
        page = &spare->page;
      }
      if (pages_.shared(*page)) {
        pages_.unshare(*page);
        if (page == &e.page) e.kept = none;
      }
      pages_.begin_write(*page);
      list(slot, q);
      record(q, *page);
    });
  }

  /// Closes a batch whose tip will be at or below `limit`: lists what was written whole and lies at or below it.
  ///
  /// @param page_of_staged  the page that `stage` recorded for a position, or a negative number
  /// @param written         what became of the state at a position in [span.begin, span.end]
  template <class PageOf, class WrittenAt>
  void resolve(std::int32_t slot, Span const& span, Position limit, PageOf page_of_staged, WrittenAt written) noexcept {
    // An abandoned timeline's state must not come back to life where the tip crosses its position.
    for_each_crossed(span, [&](Position q) {
      Entry& e = entry(slot, q);
      if (e.kept > span.begin) e.kept = none;
      list(slot, q);
    });
    for_each_candidate(span, [&](Position q) {
      std::int32_t const page = page_of_staged(q);
      Entry& e = entry(slot, q);
      Written const w = written(q);
      bool const keep = w == Written::whole && q <= limit;
      if (page >= 0) {
        pages_.end_write(page);
        if (keep && e.page != page) {
          Spare* const first = spares_of(slot);
          std::swap(e.page,
                    std::find_if(first, first + spares_, [page](Spare const& x) { return x.page == page; })->page);
        }
        if (e.page == page && w != Written::untouched) e.kept = keep ? q : none;
        if (keep) note_kept(slot, q);
      } else if (keep && q > span.begin) {
        e.kept = none;  // a state that could not be kept evicts all the same: the last ones count
      }
      list(slot, q);
    });
  }

  /// Shares with slot `to`, which keeps nothing, all that slot `from` keeps at or below `p`. O(depth).
  void fork(std::int32_t from, std::int32_t to, Position p) noexcept {
    for (std::int32_t i = 0; i < depth_; ++i) {
      Entry const& source = entries_of(from)[i];
      if (source.kept <= 0 || source.kept > p || pages_.written(source.page)) continue;
      Entry& e = entries_of(to)[i];
      pages_.exchange(e.page, source.page);
      e.kept = source.kept;
      listed_.set(to, i, true);
    }
    oldest_[static_cast<std::size_t>(to)] = oldest_[static_cast<std::size_t>(from)];
    newest_[static_cast<std::size_t>(to)] = newest_[static_cast<std::size_t>(from)];
  }

  /// Forgets all of a slot that no open batch has. O(depth).
  void clear(std::int32_t slot) noexcept {
    for (std::int32_t i = 0; i < depth_; ++i) {
      entries_of(slot)[i].kept = none;
      listed_.set(slot, i, false);
    }
    oldest_[static_cast<std::size_t>(slot)] = newest_[static_cast<std::size_t>(slot)] = 0;
  }

 private:
  struct Entry {
    Position kept = none;  // the position whose state the page holds
    std::int32_t page = 0;
  };
  struct Spare {
    Position staged = none;  // the last position whose state an open batch was to write there
    std::int32_t page = 0;
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
  [[nodiscard]] Entry& entry(std::int32_t slot, Position q) noexcept { return entries_of(slot)[q / quantum_ % depth_]; }
  [[nodiscard]] Entry const& entry(std::int32_t slot, Position q) const noexcept {
    return entries_of(slot)[q / quantum_ % depth_];
  }

  // Brings `listed_` up to date with the entry of `q`.
  void list(std::int32_t slot, Position q) noexcept {
    Entry const& e = entry(slot, q);
    listed_.set(slot, static_cast<std::int32_t>(q / quantum_ % depth_), e.kept > 0 && !pages_.written(e.page));
  }

  // The states that a batch keeps, in rising order: per-token, the last `depth` below the end; aligned, the last
  // `depth` certain boundaries and every other one.
  template <class F>
  void for_each_candidate(Span const& span, F f) const noexcept {
    if (per_token()) {
      Position const first = std::max({span.begin, span.end - depth_, Position{1}});
      for (Position q = first; q < span.end; ++q) f(q);
      return;
    }
    Position const last_certain = boundary_at_or_below(span.certain, quantum_);
    Position const first = std::max(boundary_above(span.begin, quantum_), last_certain - (depth_ - 1) * quantum_);
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
    newest_[static_cast<std::size_t>(slot)] = q;
  }

  Position quantum_;
  std::int32_t depth_;
  std::int32_t spares_;
  std::vector<Entry> entries_;    // [slots, depth]
  std::vector<Spare> spare_;      // [slots, spares]
  std::vector<Position> oldest_;  // [slots] nothing below is served
  std::vector<Position> newest_;  // [slots] the last state that was kept; nothing above is served
  RingBits listed_;               // entries that are served, or would be if their positions were below the tip
  PagePool pages_;
};

}  // namespace detail
}  // namespace v0_1
}  // namespace rollback
