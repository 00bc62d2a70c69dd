// Relative batches: the device knows where they start, and the books are told later.
#pragma once

#include <rollback/books.hpp>

#include <algorithm>

namespace rollback {
inline namespace v0_1 {

// Whether the slot's rows follow those of an open batch, of which the device may accept a part; and whether the books
// can wait to be told.
inline Verdict Books::check_pending(Batch const& batch, OpenSlot& open) const noexcept {
  if (!batch.relative) {
    return slot_states_[static_cast<std::size_t>(open.slot)].pending > 0 ? Verdict::in_flight : Verdict::accepted;
  }
  bool went_on = false;  // whether an open batch was planned as if all before it were accepted
  for (std::int32_t i = 0; i < open_count_; ++i) {
    OpenSlot const* const older =
        batches_[static_cast<std::size_t>(by_age_[static_cast<std::size_t>(i)])].find(open.slot);
    if (older == nullptr) continue;
    went_on = went_on || (open.pending && !older->pending);
    open.pending = true;
  }
  if (!open.pending) return Verdict::accepted;
  if (went_on) return Verdict::in_flight;
  // The device has no table of who shares what: only the slot's own batches may move its places meanwhile.
  bool const own = std::all_of(tiers_.begin(), tiers_.end(),
                               [&open](detail::TierTable const& tier) { return tier.exclusive(open.slot); });
  return own && pins_.exclusive(open.slot) ? Verdict::accepted : Verdict::shared_places;
}

inline bool Books::is_pending(OpenBatch const& batch, std::int32_t chunk) const noexcept {
  bool pending = false;
  if (batch.pending == 0) return pending;
  for_each_span(batch, chunk,
                [&pending](OpenSlot const& open, ChunkSpan const&) { pending = pending || open.pending; });
  return pending;
}

// Takes back what the slot's pending batches were thought to write at most.
inline void Books::forget_pending_rows(std::int32_t slot) noexcept {
  for (std::int32_t i = 0; i < open_count_; ++i) {
    OpenSlot const* const open = batches_[static_cast<std::size_t>(by_age_[static_cast<std::size_t>(i)])].find(slot);
    if (open == nullptr || !open->pending) continue;
    for (std::size_t w = 0; w < guards_.size(); ++w) guards_[w].unwrite(slot, open->lowest_before[w]);
    return;
  }
}

// Moves the slot's pending batches by `shift` <= 0 to where they start if all is accepted from here on, and opens the
// oldest if none is older.
inline void Books::place_pending(std::int32_t slot, Position shift) noexcept {
  SlotState& s = slot_states_[static_cast<std::size_t>(slot)];
  if (s.pending == 0) return;
  s.head += shift;
  for (std::int32_t i = 0; i < open_count_; ++i) {
    std::int32_t const index = by_age_[static_cast<std::size_t>(i)];
    OpenBatch& batch = batches_[static_cast<std::size_t>(index)];
    OpenSlot* const open = batch.find(slot);
    if (open == nullptr || !open->pending) continue;
    for (Position p = open->span.begin; p < open->span.end; ++p) {
      batch.position_of_row[static_cast<std::size_t>(batch.row_of(*open, p))] = p + shift;
    }
    for (Position* const p : {&open->span.begin, &open->span.verified, &open->span.end, &open->span.certain}) {
      *p += shift;
    }
    if (!older_has(batch, slot)) {
      open->pending = false;
      --s.pending;
      --batch.pending;
    }
    open_slot(batch, index, *open);
  }
}

inline Verdict Books::observe(Ticket const& ticket, Slot slot, Position accepted) noexcept {
  Verdict const verdict = can_commit(ticket, slot, accepted);
  if (verdict == Verdict::accepted) accept(ticket, slot, accepted);
  return verdict;
}

}  // namespace v0_1
}  // namespace rollback
