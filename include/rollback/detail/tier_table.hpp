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
///
/// With common pages there are no spares, and an entry has a page as long as it keeps a state. What a batch keeps goes
/// to a page of the pool unless it may overwrite that of its entry, and becomes the entry's when it is accepted. What
/// lies above the tip is forgotten at once, so that its page is free.
class TierTable {
 public:
  static constexpr Position none = -1;

  /// @param pages  how many common pages there are; 0: every slot has places of its own
  TierTable(std::int32_t slots, Position quantum, std::int32_t depth, std::int32_t spares, std::int32_t pages = 0)
      : quantum_(quantum),
        depth_(depth),
        spares_(spares),
        entries_(static_cast<std::size_t>(slots) * static_cast<std::size_t>(depth)),
        spare_(static_cast<std::size_t>(slots) * static_cast<std::size_t>(spares)),
        oldest_(static_cast<std::size_t>(slots), 0),
        newest_(static_cast<std::size_t>(slots), 0),
        listed_(slots, depth),
        common_(pages > 0),
        pages_(page_count(slots, depth, spares, pages), common_) {
    if (common_) return;
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
  [[nodiscard]] bool common() const noexcept { return common_; }
  [[nodiscard]] static std::size_t bytes(std::int32_t slots, std::int32_t depth, std::int32_t spares,
                                         std::int32_t pages = 0) noexcept {
    if (depth == 0) return 0;
    auto const d = static_cast<std::size_t>(depth);
    auto const s = static_cast<std::size_t>(spares);
    return static_cast<std::size_t>(slots) * (d * sizeof(Entry) + s * sizeof(Spare) + 2 * sizeof(Position)) +
           RingBits::bytes(slots, depth) + PagePool::bytes(page_count(slots, depth, spares, pages));
  }

  /// The page of the state at `p`; negative where it is not kept, or an open batch may overwrite it. Requires p >= 0.
  [[nodiscard]] std::int32_t page_of(std::int32_t slot, Position p) const noexcept {
    Entry const& e = entry(slot, p);
    return e.kept == p && !pages_.written(e.page) ? e.page : -1;
  }

  /// The largest kept position at or below `p`, or `none`, holes or not.
  [[nodiscard]] Position floor(std::int32_t slot, Position p) const noexcept {
    auto const i = static_cast<std::size_t>(slot);
    Position const newest = boundary_at_or_below(std::min(p, newest_[i]), quantum_);
    auto const index = index_of(newest);
    std::int32_t at = listed_.floor(slot, index);
    if (at == RingBits::none) at = listed_.floor(slot, depth_ - 1);
    if (at == RingBits::none) return none;
    Position const kept = newest - (at <= index ? index - at : index + depth_ - at) * quantum_;
    return kept >= oldest_[i] ? kept : none;
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
      std::int32_t claimed = PagePool::none;
      bool const unverified_boundary = !per_token() && q > span.certain;
      bool const in_place =
          !unverified_boundary && e.page >= 0 && pages_.writable(e.page) && !(e.kept > 0 && held(e.kept));
      if (!in_place && common_) {
        claimed = pages_.claim();
        if (claimed < 0) return;  // the new state is the one that is not kept
        page = &claimed;
      } else if (!in_place) {
        // An older open batch may have gone to a spare for the same entry: its state would be evicted in any case.
        Spare* const last = spares_of(slot) + spares_;
        Spare* spare = std::find_if(spares_of(slot), last, [&](Spare const& x) {
          return !unverified_boundary && pages_.written(x.page) && (q - x.staged) % (depth_ * quantum_) == 0;
        });
        if (spare == last) {
          spare = std::find_if(spares_of(slot), last,
                               [this](Spare const& x) { return !pages_.written(x.page) && pages_.writable(x.page); });
        }
        if (spare == last) return;
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
      if (e.kept > span.begin) forget(e);
      list(slot, q);
    });
    for_each_candidate(span, [&](Position q) {
      std::int32_t const page = page_of_staged(q);
      Entry& e = entry(slot, q);
      Written const w = written(q);
      bool const keep = w == Written::whole && q <= limit;
      if (page >= 0) {
        if (keep && e.page != page) take_over(slot, e, page);
        if (e.page == page && w != Written::untouched) {
          if (keep) {
            e.kept = q;
          } else {
            forget(e);
          }
        }
        pages_.end_write(page);
        if (keep) note_kept(slot, q);
      } else if (keep && q > span.begin) {
        forget(e);  // a state that could not be kept evicts all the same: the last ones count
      }
      list(slot, q);
    });
  }

  /// Whether nobody else keeps, or holds, what the slot's places hold: they change by the slot's batches alone. Common
  /// pages do not. O(depth).
  [[nodiscard]] bool exclusive(std::int32_t slot) const noexcept {
    if (common_) return false;
    auto const alone = [this](auto const& x) { return pages_.exclusive(x.page); };
    Spare const* const first = spare_.data() + static_cast<std::size_t>(slot) * static_cast<std::size_t>(spares_);
    return std::all_of(entries_of(slot), entries_of(slot) + depth_, alone) &&
           std::all_of(first, first + spares_, alone);
  }

  /// Keeps a page from being written until it is released.
  void hold(std::int32_t page) noexcept { pages_.hold(page); }
  void release(std::int32_t page) noexcept { pages_.release(page); }

  /// Common pages: see `PagePool`.
  [[nodiscard]] bool give(std::int32_t page) noexcept { return pages_.give(page); }
  [[nodiscard]] std::int32_t take() noexcept { return pages_.take(); }
  [[nodiscard]] std::int32_t free_pages() const noexcept { return pages_.free_count(); }

  /// Gives up the state at `p`, which is kept, of a slot without an open batch.
  void evict(std::int32_t slot, Position p) noexcept {
    forget(entry(slot, p));
    list(slot, p);
  }

  /// With common pages, gives up what the slot keeps above its new tip. O(log depth) for each such state.
  void land(std::int32_t slot, Position tip) noexcept {
    if (!common_) return;
    Position const newest = newest_[static_cast<std::size_t>(slot)];
    for (Position q = floor(slot, newest); q > tip; q = floor(slot, newest)) evict(slot, q);
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

  /// Whether a slot at `tip` keeps the state at `p` <= tip in the tier, all going well.
  [[nodiscard]] bool fits(Position p, Position tip) const noexcept {
    if (per_token()) return p >= tip - depth_;
    return remainder(p, quantum_) == 0 && p > boundary_at_or_below(tip, quantum_) - depth_ * quantum_;
  }

  /// Whether the state at `p` has a place: one that nobody reads, and where no newer state of a slot at `tip` is kept.
  [[nodiscard]] bool has_room(std::int32_t slot, Position p, Position tip) const noexcept {
    Entry const& e = entry(slot, p);
    if (e.kept > p && e.kept <= tip) return false;
    if (common_ && e.kept == p) return !pages_.held(e.page);  // written again where it is
    return (e.page >= 0 && pages_.writable(e.page)) || (common_ && free_pages() > 0);
  }

  /// The slot, without an open batch, goes on from `to` >= tip although nobody fed it: forgets abandoned timelines, and
  /// what is too old there. O(depth).
  void skip(std::int32_t slot, Position tip, Position to) noexcept {
    for (std::int32_t i = 0; i < depth_; ++i) {
      Entry& e = entries_of(slot)[i];
      if (e.kept <= tip && fits(e.kept, to)) continue;
      forget(e);
      listed_.set(slot, i, false);
    }
    Position& newest = newest_[static_cast<std::size_t>(slot)];
    newest = std::min(newest, boundary_at_or_below(tip, quantum_));
  }

  /// Lists the state at `p`, which fits, of a slot without an open batch, after `skip`: whoever calls writes it.
  void adopt(std::int32_t slot, Position p) noexcept {
    Entry& e = entry(slot, p);
    if (e.kept == p) return;
    if (common_) {
      pages_.exchange(e.page, pages_.claim());  // `skip` has forgotten what the entry kept
    } else if (pages_.shared(e.page)) {
      pages_.unshare(e.page);
    }
    e.kept = p;
    if (p > newest_[static_cast<std::size_t>(slot)]) note_kept(slot, p);
    Position& oldest = oldest_[static_cast<std::size_t>(slot)];
    oldest = std::min(oldest, p);
    list(slot, p);
  }

  /// Forgets all of a slot that no open batch has. If its pages are its own they are in rising order again: books that
  /// were told of the clear before or after a spare was swapped in come to the same places. O(depth log depth).
  void clear(std::int32_t slot) noexcept {
    Entry* const first = entries_of(slot);
    Entry* const last = first + depth_;
    for (std::int32_t i = 0; i < depth_; ++i) {
      forget(first[i]);
      listed_.set(slot, i, false);
    }
    if (exclusive(slot)) {
      auto const below = [](auto const& a, auto const& b) { return a.page < b.page; };
      std::sort(first, last, below);
      for (std::int32_t i = 0; i < spares_; ++i) {  // each in exchange for the last, which goes where it belongs
        Spare& spare = spares_of(slot)[i];
        if (spare.page > (last - 1)->page) continue;
        std::swap(spare.page, (last - 1)->page);
        Entry const moved = *(last - 1);
        Entry* const to = std::lower_bound(first, last - 1, moved, below);
        std::move_backward(to, last - 1, last);
        *to = moved;
      }
      std::sort(spares_of(slot), spares_of(slot) + spares_, below);
    }
    oldest_[static_cast<std::size_t>(slot)] = newest_[static_cast<std::size_t>(slot)] = 0;
  }

 private:
  struct Entry {
    Position kept = none;  // the position whose state the page holds
    std::int32_t page = PagePool::none;
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
  [[nodiscard]] std::int32_t index_of(Position q) const noexcept {
    return static_cast<std::int32_t>(remainder(quotient(q, quantum_), depth_));
  }
  [[nodiscard]] Entry& entry(std::int32_t slot, Position q) noexcept { return entries_of(slot)[index_of(q)]; }
  [[nodiscard]] Entry const& entry(std::int32_t slot, Position q) const noexcept {
    return entries_of(slot)[index_of(q)];
  }

  [[nodiscard]] static std::size_t page_count(std::int32_t slots, std::int32_t depth, std::int32_t spares,
                                              std::int32_t pages) noexcept {
    if (pages > 0) return static_cast<std::size_t>(pages);
    return static_cast<std::size_t>(slots) * (static_cast<std::size_t>(depth) + static_cast<std::size_t>(spares));
  }

  // The entry keeps nothing any more.
  void forget(Entry& e) noexcept {
    e.kept = none;
    if (!common_ || e.page < 0) return;
    pages_.leave(e.page);
    e.page = PagePool::none;
  }

  // Makes `page`, which a batch wrote for the entry elsewhere, the entry's own.
  void take_over(std::int32_t slot, Entry& e, std::int32_t page) noexcept {
    if (common_) {
      pages_.exchange(e.page, page);
      return;
    }
    Spare* const first = spares_of(slot);
    std::swap(e.page, std::find_if(first, first + spares_, [page](Spare const& x) { return x.page == page; })->page);
  }

  // Brings `listed_` up to date with the entry of `q`.
  void list(std::int32_t slot, Position q) noexcept {
    Entry const& e = entry(slot, q);
    listed_.set(slot, index_of(q), e.kept > 0 && !pages_.written(e.page));
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

  // Keeps what is served among `depth` boundaries in a row, the last of them `q`: it took the entry of the one before
  // these. Those between the last one kept and `q` were crossed and not kept, and older ones stand in their entries.
  void note_kept(std::int32_t slot, Position q) noexcept {
    Position& oldest = oldest_[static_cast<std::size_t>(slot)];
    Position& newest = newest_[static_cast<std::size_t>(slot)];
    Position const first = q - (depth_ - 1) * quantum_;
    for (Position hole = std::max(newest + quantum_, first); hole < q; hole += quantum_) {
      forget(entry(slot, hole));
      list(slot, hole);
    }
    oldest = std::max(std::min(oldest, q), first);
    newest = q;
  }

  Position quantum_;
  std::int32_t depth_;
  std::int32_t spares_;
  std::vector<Entry> entries_;    // [slots, depth]
  std::vector<Spare> spare_;      // [slots, spares]
  std::vector<Position> oldest_;  // [slots] nothing below is served
  std::vector<Position> newest_;  // [slots] the last state that was kept; nothing above is served
  RingBits listed_;               // entries that are served, or would be if their positions were below the tip
  bool common_;
  PagePool pages_;
};

}  // namespace detail
}  // namespace v0_1
}  // namespace rollback
