// How a batch fails: what each of its slots is offered.
#pragma once

#include <rollback/books.hpp>

#include <algorithm>

namespace rollback {
inline namespace v0_1 {

inline Verdict Books::fail(Ticket const& ticket, std::int32_t first_bad, BadChunk state, Outcomes& outcomes) noexcept {
  OpenBatch* const batch = find(ticket);
  if (batch == nullptr) return Verdict::unknown_ticket;
  if (first_bad < 0 || first_bad > batch->chunks) return Verdict::unknown_chunk;
  if (first_bad < batch->settled) return Verdict::below_settled;
  std::int32_t age = 0;
  while (by_age_[static_cast<std::size_t>(age)] != ticket.index) ++age;
  for (std::int32_t i = age; i < open_count_; ++i) {
    OpenBatch const& failing = batches_[static_cast<std::size_t>(by_age_[static_cast<std::size_t>(i)])];
    for (std::int32_t e = 0; e < failing.count; ++e) {
      OpenSlot const& open = failing.slots[static_cast<std::size_t>(e)];
      if (!open.closed && older_has(*batch, open.slot)) return Verdict::out_of_order;
    }
  }

  outcomes.count = 0;
  while (open_count_ > age) {  // slot by slot, until no batch from this one on is open
    OpenBatch& oldest = batches_[static_cast<std::size_t>(by_age_[static_cast<std::size_t>(age)])];
    OpenSlot const& open =
        *std::find_if(oldest.slots.begin(), oldest.slots.end(), [](auto const& o) { return !o.closed; });
    Outcome const outcome = fail_slot(open, first_bad, *batch, state);
    if (outcomes.count < outcomes.capacity) outcomes.data[outcomes.count] = outcome;
    ++outcomes.count;
  }
  return Verdict::accepted;
}

// Ends all batches that have the slot of `first`, its rows in the oldest of them: `failed` at its chunk `first_bad`,
// younger ones at what was settled.
inline Outcome Books::fail_slot(OpenSlot first, std::int32_t first_bad, OpenBatch const& failed,
                                BadChunk state) noexcept {
  std::int32_t const slot = first.slot;
  Position const entry = first.span.begin;
  SlotState& s = slot_states_[static_cast<std::size_t>(slot)];
  Position good_end = entry;  // rows below it ran, those up to torn_end may have, the others did not
  Position torn_end = entry;
  Position verified = entry;  // rows from here on may have been rejected
  bool nowhere = false;       // whether rows may have run of which nobody knows where they stand
  for (std::int32_t i = 0; i < open_count_; ++i) {
    OpenBatch const& batch = batches_[static_cast<std::size_t>(by_age_[static_cast<std::size_t>(i)])];
    OpenSlot const* const open = batch.find(slot);
    if (open == nullptr) continue;
    std::int32_t const bad = &batch == &failed ? first_bad : batch.settled;
    Position const good = batch.end_of_rows(*open, batch.chunk_begin(bad));
    Position const torn = state == BadChunk::may_have_run ? open->span.end
                          : state == BadChunk::ran_last && &batch == &failed
                              ? batch.end_of_rows(*open, batch.chunk_begin(bad + 1))
                              : good;
    if (open->pending) {
      nowhere = nowhere || torn > open->span.begin;
      continue;
    }
    if (verified == open->span.begin) verified = open->span.verified;
    if (torn > open->span.begin) torn_end = torn;
    if (good_end == open->span.begin) good_end = good;
  }
  if (nowhere) {  // they may have overwritten any state
    forget(slot);
    return {this->slot(slot), 0, false, 0};
  }
  bool const all_known = torn_end == good_end;
  bool const touched = torn_end > entry;

  bool entry_window = true;
  for (std::size_t w = 0; w < guards_.size(); ++w) {
    guards_[w].unwrite(slot, first.lowest_before[w]);  // rows that it restored are restored again
    if (touched) guards_[w].write(slot, torn_end);
    entry_window = entry_window && guards_[w].covers(slot, entry);
  }
  // The empty state needs no copy to be kept.
  bool const entry_copied = entry_window && (first.live_to != first.live_from || (entry_copy_ && entry == 0));
  // A younger batch may have been given the place of the restore's source, once the restore was known to have run.
  bool const entry_rows = entry_window || pins_.rows_page_of(slot, entry) >= 0;
  bool const entry_armed = entry_rows && first.span.armed && all_kept(slot, entry);
  // A slot that goes back to its entry lists nothing above it, or what it lists would push older states out, and a
  // spare might take the place of an armed restore's source.
  Position const limit = entry_copied || entry_armed ? entry : std::min(good_end, verified);

  std::int32_t live_to = first.live_to;  // of the youngest batch that ran, if all that ran is known
  close_all(slot, [&](std::int32_t index, OpenSlot const& open) {
    if (good_end > open.span.begin) live_to = open.live_to;
    resolve(index, open, limit, [&](Position q) {
      Position const row = std::max(q - 1, open.span.begin);  // writes it; the first row writes the state at entry
      return row < good_end   ? detail::Written::whole
             : row < torn_end ? detail::Written::torn
                              : detail::Written::untouched;
    });
  });
  Position tip = entry;
  s.live_place = first.live_from;
  if (!touched || entry_copied) {
    // the plane at entry was never written: nothing to do but to forget the copy
  } else if (entry_armed) {
    s.live = -1;  // the restore's source is still there, and so is the restore
  } else if (all_known && good_end <= verified) {
    tip = good_end;
    s.live = good_end;
    s.live_place = live_to;
  } else {
    tip = joint_floor(slot, limit).position;
    s.live = -1;
  }
  land(slot, tip);
  return {this->slot(slot), tip, armed(s), reach(this->slot(slot))};
}
}  // namespace v0_1
}  // namespace rollback
