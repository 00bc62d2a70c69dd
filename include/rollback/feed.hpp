// A small wrapper for simple engines: cuts a slot's rows into chunks, runs a callback a chunk, settles and commits.
#pragma once

#include <rollback/books.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace rollback {
inline namespace v0_1 {

/// One chunk of a feed, handed to the callback that runs it.
struct FeedChunk {
  Slot slot;
  Position begin;  // positions [begin, end) are the chunk's rows
  Position end;
  Ticket ticket;       // for `Books::shape` and `Books::plan`
  std::int32_t index;  // of the chunk
  Batch const* batch;  // as it was begun
};

/// Feeds rows of one slot through the books, as one batch, and never leaves it open: what did not finish is failed.
///
/// The callback gets a `FeedChunk`, plans and runs it, and returns whether it ran. Chunks have at most `max_chunk_rows`
/// rows and end where the books ask for a cut. Allocates in the constructor only. Holds one batch at a time.
class Feed {
 public:
  /// @param max_rows        the most rows of a feed; what the books cannot take in one batch they refuse
  /// @param max_chunk_rows  the most rows of a chunk; at most the books' max_chunk_rows, or they refuse
  /// @throws std::invalid_argument naming the parameter and the allowed range
  Feed(Books& books, std::int32_t max_rows, std::int32_t max_chunk_rows)
      : books_(&books), max_chunk_rows_(max_chunk_rows) {
    if (max_rows < 1) detail::refuse_setup("Feed: max_rows is the most rows of a feed; it must be at least 1");
    if (max_chunk_rows < 1) {
      detail::refuse_setup("Feed: max_chunk_rows is the most rows of a chunk; it must be at least 1");
    }
    slots_.resize(static_cast<std::size_t>(max_rows));
    positions_.resize(static_cast<std::size_t>(max_rows));
    chunk_ends_.resize(static_cast<std::size_t>(max_rows));
  }

  /// Feeds the next `rows` rows of `slot`, all of which are accepted.
  /// @param step  bool(FeedChunk const&): runs a chunk; false, or an exception, fails the batch
  /// @return accepted; what `begin` refused; or `chunk_failed`, see `outcome`. An exception of `step` is passed on.
  template <class Step>
  [[nodiscard]] Verdict run(Slot slot, std::int32_t rows, Step&& step) {
    return verify(slot, rows, 0, std::forward<Step>(step), [end = books_->tip(slot) + rows] { return end; });
  }

  /// Feeds `rows` rows of which the last `unverified` may be rejected.
  /// @param accept  Position(): called once all chunks ran; the tip up to which the rows are accepted
  /// @return as `run`; or what `commit` refused, `outside_batch` for one: then the batch was failed, see `outcome`
  template <class Step, class Accept>
  [[nodiscard]] Verdict verify(Slot slot, std::int32_t rows, std::int32_t unverified, Step&& step, Accept&& accept) {
    Verdict const verdict = begin(slot, rows, unverified);
    if (verdict != Verdict::accepted) return verdict;
    open_ = true;
    Scope scope{*this};
    for (std::int32_t k = 0; k < batch_.chunks; ++k) {
      Position const first = k == 0 ? 0 : chunk_ends_[static_cast<std::size_t>(k - 1)];
      Position const last = chunk_ends_[static_cast<std::size_t>(k)];
      scope.running = k;
      if (!step(FeedChunk{slot, positions_[0] + first, positions_[0] + last, ticket_, k, &batch_})) {
        return Verdict::chunk_failed;
      }
      static_cast<void>(books_->settle(ticket_, k));
    }
    scope.running = batch_.chunks;
    Verdict const committed = books_->commit(ticket_, slot, accept());
    scope.done = committed == Verdict::accepted;
    return committed;
  }

  /// What became of the slot in the last feed that failed; of no slot where the callback cleared it.
  [[nodiscard]] Outcome const& outcome() const noexcept { return outcome_; }

 private:
  // Fails the batch on the way out, whether by return or by exception. The chunk at work may have run.
  struct Scope {
    Feed& feed;
    std::int32_t running = 0;
    bool done = false;
    ~Scope() {
      if (!done) feed.fail(running);
      feed.open_ = false;
    }
  };

  [[nodiscard]] Verdict begin(Slot slot, std::int32_t rows, std::int32_t unverified) noexcept {
    if (open_) return Verdict::too_many_in_flight;     // called from inside its own callback
    if (slot.index < 0) return Verdict::unknown_slot;  // in a batch such rows would be padding
    if (rows < 1) return Verdict::no_rows;
    if (rows > static_cast<std::int32_t>(slots_.size())) return Verdict::batch_too_large;
    Position const tip = books_->tip(slot);
    std::fill_n(slots_.begin(), rows, slot);
    for (std::int32_t i = 0; i < rows; ++i) positions_[static_cast<std::size_t>(i)] = std::max(tip, Position{0}) + i;
    std::int32_t chunks = 0;
    for (Position at = tip; at < tip + rows;) {
      at = std::min(books_->next_cut(slot, at, tip + rows), at + max_chunk_rows_);
      chunk_ends_[static_cast<std::size_t>(chunks++)] = static_cast<std::int32_t>(at - tip);
    }
    unverified_ = {slot, unverified};
    batch_ = {slots_.data(), positions_.data(), rows, chunk_ends_.data(), chunks, &unverified_, 1};
    return books_->begin(batch_, ticket_);
  }

  void fail(std::int32_t first_bad) noexcept {
    outcome_ = {};
    Outcomes outcomes{&outcome_, 1, 0};
    static_cast<void>(books_->fail(ticket_, first_bad, BadChunk::ran_last, outcomes));
  }

  Books* books_;
  std::int32_t max_chunk_rows_;
  bool open_ = false;
  std::vector<Slot> slots_;               // [max_rows]
  std::vector<Position> positions_;       // [max_rows]
  std::vector<std::int32_t> chunk_ends_;  // [max_rows]
  Unverified unverified_;
  Batch batch_;
  Ticket ticket_;
  Outcome outcome_;
};

}  // namespace v0_1
}  // namespace rollback
