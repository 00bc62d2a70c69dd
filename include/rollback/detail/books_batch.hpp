// The way of a batch: opened, settled chunk by chunk, committed slot by slot, or failed.
#pragma once

#include <rollback/books.hpp>

#include <algorithm>

namespace rollback {
inline namespace v0_1 {

inline Position Books::next_cut(Slot slot, Position from, Position end) const noexcept {
  if (known(slot) != Verdict::accepted || from < 0 || from >= end) return end;
  Position cut = end;
  for (ComponentState const& c : components_) {
    if (c.component.states_inside_chunk) continue;
    if (c.aligned_tier >= 0) {
      Position const to_boundary = c.component.quantum - from % c.component.quantum;
      if (to_boundary < end - from) cut = std::min(cut, from + to_boundary);
    }
    if (c.per_token_tier >= 0) cut = std::min(cut, std::max(from + 1, end - c.component.per_token));
  }
  return cut;
}

inline bool Books::is_open(Ticket const& ticket) const noexcept {
  return open_ && ticket.index == 0 && ticket.serial == serial_;
}

// The first row of a chunk; of the number of chunks, or beyond, the number of rows.
inline std::int32_t Books::chunk_begin(std::int32_t chunk) const noexcept {
  return chunk == 0 ? 0 : chunk_ends_[static_cast<std::size_t>(std::min(chunk, chunks_) - 1)];
}

inline std::int32_t Books::chunk_of_row(std::int32_t row) const noexcept {
  auto const first = chunk_ends_.begin();
  return static_cast<std::int32_t>(std::upper_bound(first, first + chunks_, row) - first);
}

inline std::int32_t Books::row_of(OpenSlot const& open, Position p) const noexcept {
  return rows_by_slot_[static_cast<std::size_t>(open.order + (p - open.span.begin))];
}

// Copies the batch's rows into the books' own memory, slot by slot positions checked. A refusal leaves only scratch.
inline Verdict Books::check_rows(Batch const& batch, std::int32_t* bad_row) noexcept {
  for (std::int32_t i = 0; i < batch.rows; ++i) {
    auto const row = static_cast<std::size_t>(i);
    Slot const slot = batch.slots[i];
    entry_of_row_[row] = -1;
    if (slot.index < 0) continue;
    Position const p = batch.positions[i];
    position_of_row_[row] = p;
    if (bad_row != nullptr) *bad_row = i;
    Verdict const verdict = known(slot);
    if (verdict != Verdict::accepted) return verdict;
    SlotState& s = slot_states_[static_cast<std::size_t>(slot.index)];
    if (s.open < 0) {
      s.open = open_count_++;
      OpenSlot& open = open_slots_[static_cast<std::size_t>(s.open)];
      open = {};
      open.slot = slot.index;
      open.span.begin = open.span.end = s.tip;
    }
    OpenSlot& open = open_slots_[static_cast<std::size_t>(s.open)];
    if (p < 0) return Verdict::negative_position;
    if (p < open.span.end) return Verdict::position_repeated;
    if (p > open.span.end) return Verdict::position_gap;
    if (max_context_ > 0 && p >= max_context_) return Verdict::beyond_context;
    ++open.span.end;
    entry_of_row_[row] = s.open;
  }
  if (bad_row != nullptr) *bad_row = -1;
  return open_count_ > 0 ? Verdict::accepted : Verdict::no_rows;
}

inline Verdict Books::check_unverified(Batch const& batch) noexcept {
  for (std::int32_t e = 0; e < open_count_; ++e) {
    OpenSlot& open = open_slots_[static_cast<std::size_t>(e)];
    open.span.verified = open.span.end;
    open.unverified = -1;  // not named yet
  }
  if (batch.unverified_count < 0) return Verdict::bad_unverified;
  for (std::int32_t i = 0; i < batch.unverified_count; ++i) {
    Unverified const& u = batch.unverified[i];
    Verdict const verdict = known(u.slot);
    if (verdict != Verdict::accepted) return verdict;
    std::int32_t const e = slot_states_[static_cast<std::size_t>(u.slot.index)].open;
    if (e < 0) return Verdict::bad_unverified;
    OpenSlot& open = open_slots_[static_cast<std::size_t>(e)];
    if (open.unverified >= 0 || u.rows < 0 || u.rows > open.span.end - open.span.begin) return Verdict::bad_unverified;
    if (u.rows > per_token_) return Verdict::too_many_unverified;
    open.unverified = u.rows;
    open.span.verified = open.span.end - u.rows;
  }
  return Verdict::accepted;
}

// Sorts the rows by slot: a counting sort, since a slot's rows already stand in rising order.
inline void Books::index_rows(std::int32_t rows) noexcept {
  std::int32_t at = 0;
  for (std::int32_t e = 0; e < open_count_; ++e) {
    OpenSlot& open = open_slots_[static_cast<std::size_t>(e)];
    open.order = at;
    at += static_cast<std::int32_t>(open.span.end - open.span.begin);
  }
  for (std::int32_t i = 0; i < rows; ++i) {
    std::int32_t const e = entry_of_row_[static_cast<std::size_t>(i)];
    if (e < 0) continue;
    OpenSlot const& open = open_slots_[static_cast<std::size_t>(e)];
    Position const p = position_of_row_[static_cast<std::size_t>(i)];
    rows_by_slot_[static_cast<std::size_t>(open.order + (p - open.span.begin))] = i;
  }
}

// Whether the chunks end where a plane that is overwritten in place must be copied.
inline Verdict Books::check_cuts() const noexcept {
  for (std::int32_t e = 0; e < open_count_; ++e) {
    OpenSlot const& open = open_slots_[static_cast<std::size_t>(e)];
    Slot const slot = this->slot(open.slot);
    for (Position from = open.span.begin; from < open.span.end;) {
      Position const cut = next_cut(slot, from, open.span.end);
      if (cut < open.span.end && chunk_of_row(row_of(open, cut - 1)) == chunk_of_row(row_of(open, cut))) {
        return Verdict::cut_needed;
      }
      from = cut;
    }
  }
  return Verdict::accepted;
}

inline Verdict Books::begin(Batch const& batch, Ticket& ticket, std::int32_t* bad_row) noexcept {
  if (bad_row != nullptr) *bad_row = -1;
  if (open_) return Verdict::too_many_in_flight;
  if (batch.rows < 1) return Verdict::no_rows;
  if (batch.rows > max_rows_ || batch.chunks > max_chunks_) return Verdict::batch_too_large;
  if (batch.chunks < 1 || batch.chunk_ends[batch.chunks - 1] != batch.rows) return Verdict::bad_chunk_ends;
  for (std::int32_t k = 0, end = 0; k < batch.chunks; ++k) {
    if (batch.chunk_ends[k] <= end || batch.chunk_ends[k] > batch.rows) return Verdict::bad_chunk_ends;
    if (batch.chunk_ends[k] - end > max_chunk_rows_) return Verdict::batch_too_large;
    end = batch.chunk_ends[k];
    chunk_ends_[static_cast<std::size_t>(k)] = end;
  }
  chunks_ = batch.chunks;
  open_count_ = 0;
  Verdict verdict = check_rows(batch, bad_row);
  if (verdict == Verdict::accepted) verdict = check_unverified(batch);
  if (verdict == Verdict::accepted) {
    index_rows(batch.rows);
    verdict = check_cuts();
  }
  if (verdict != Verdict::accepted) {
    for (std::int32_t e = 0; e < open_count_; ++e) {
      slot_states_[static_cast<std::size_t>(open_slots_[static_cast<std::size_t>(e)].slot)].open = -1;
    }
    open_count_ = 0;
    return verdict;
  }

  for (std::int32_t e = 0; e < open_count_; ++e) {
    OpenSlot& open = open_slots_[static_cast<std::size_t>(e)];
    SlotState const& s = slot_states_[static_cast<std::size_t>(open.slot)];
    open.span.armed = armed(s);
    open.unverified = std::max(open.unverified, 0);
    open.last_chunk = chunk_of_row(row_of(open, open.span.end - 1));
    open.live_from = open.live_to = s.live_place;
    if (entry_copy_ && !open.span.armed && open.span.begin > 0) open.live_to = 1 - s.live_place;
    open.closed = false;
    for (detail::TierTable& tier : tiers_) tier.stage(open.slot, open.span);
    for (std::size_t w = 0; w < guards_.size(); ++w) {
      open.lowest_before[w] = guards_[w].lowest(open.slot);
      guards_[w].write(open.slot, open.span.end);
    }
  }
  open_ = true;
  settled_ = 0;
  unclosed_ = open_count_;
  ticket = {0, ++serial_};
  return Verdict::accepted;
}

inline Verdict Books::settle(Ticket const& ticket, std::int32_t chunk) noexcept {
  if (!is_open(ticket)) return Verdict::unknown_ticket;
  if (chunk < 0 || chunk >= chunks_) return Verdict::unknown_chunk;
  if (chunk != settled_) return Verdict::out_of_order;
  ++settled_;
  return Verdict::accepted;
}

inline void Books::close(OpenSlot& open) noexcept {
  open.closed = true;
  slot_states_[static_cast<std::size_t>(open.slot)].open = -1;
  if (--unclosed_ == 0) open_ = false;
}

inline Verdict Books::commit(Ticket const& ticket, Slot slot, Position accepted) noexcept {
  if (!is_open(ticket)) return Verdict::unknown_ticket;
  Verdict const verdict = known(slot);
  if (verdict != Verdict::accepted) return verdict;
  SlotState& s = slot_states_[static_cast<std::size_t>(slot.index)];
  if (s.open < 0) return Verdict::slot_not_open;
  OpenSlot& open = open_slots_[static_cast<std::size_t>(s.open)];
  if (open.last_chunk >= settled_) return Verdict::not_settled;
  if (accepted < open.span.verified || accepted > open.span.end) return Verdict::outside_batch;

  for (detail::TierTable& tier : tiers_) {
    tier.resolve(open.slot, open.span, accepted, [](Position) { return detail::Written::whole; });
  }
  bool const copy_undoes = accepted == open.span.begin && open.live_to != open.live_from;
  s.live_place = copy_undoes ? open.live_from : open.live_to;
  s.live = copy_undoes ? open.span.begin : open.span.end;
  land(open.slot, accepted);
  close(open);
  return Verdict::accepted;
}

// The end of the slot's rows that stand before `row` of the batch.
inline Position Books::end_of_rows(OpenSlot const& open, std::int32_t row) const noexcept {
  Position end = open.span.begin;
  while (end < open.span.end && row_of(open, end) < row) ++end;
  return end;
}

inline Verdict Books::fail(Ticket const& ticket, std::int32_t first_bad, BadChunk state, Outcomes& outcomes) noexcept {
  if (!is_open(ticket)) return Verdict::unknown_ticket;
  if (first_bad < 0 || first_bad > chunks_) return Verdict::unknown_chunk;
  if (first_bad < settled_) return Verdict::below_settled;

  outcomes.count = 0;
  for (std::int32_t e = 0; e < open_count_; ++e) {
    OpenSlot& open = open_slots_[static_cast<std::size_t>(e)];
    if (open.closed) continue;
    SlotState& s = slot_states_[static_cast<std::size_t>(open.slot)];
    Position const entry = open.span.begin;
    // Rows below good_end ran; those up to torn_end may have; the others did not.
    Position const good_end = end_of_rows(open, chunk_begin(first_bad));
    Position const torn_end = state == BadChunk::never_started ? good_end
                              : state == BadChunk::ran_last    ? end_of_rows(open, chunk_begin(first_bad + 1))
                                                               : open.span.end;
    bool const all_known = torn_end == good_end;
    bool const touched = torn_end > entry;

    bool entry_window = true;
    for (std::size_t w = 0; w < guards_.size(); ++w) {
      guards_[w].unwrite(open.slot, open.lowest_before[w]);
      if (touched) guards_[w].write(open.slot, torn_end);
      entry_window = entry_window && guards_[w].covers(open.slot, entry);
    }
    // The empty state needs no copy to be kept.
    bool const entry_copied = entry_window && (open.live_to != open.live_from || (entry_copy_ && entry == 0));
    bool const entry_armed = entry_window && open.span.armed;
    // A slot that goes back to its entry lists nothing above it, or what it lists would push older states out, and a
    // spare might take the place of an armed restore's source.
    Position const limit = entry_copied || entry_armed ? entry : std::min(good_end, open.span.verified);

    for (detail::TierTable& tier : tiers_) {
      tier.resolve(open.slot, open.span, limit, [&](Position q) {
        Position const row = std::max(q - 1, entry);  // writes it; the state at entry is written by the first row
        return row < good_end   ? detail::Written::whole
               : row < torn_end ? detail::Written::torn
                                : detail::Written::untouched;
      });
    }
    Position tip = entry;
    if (!touched || entry_copied) {
      // the plane at entry was never written: nothing to do but to forget the copy
    } else if (entry_armed) {
      s.live = -1;  // the restore's source is still there, and so is the restore
    } else if (all_known && good_end <= open.span.verified) {
      tip = good_end;
      s.live = good_end;
      s.live_place = open.live_to;
    } else {
      tip = joint_floor(open.slot, limit).position;
      s.live = -1;
    }
    land(open.slot, tip);
    close(open);
    if (outcomes.count < outcomes.capacity) {
      Slot const slot = this->slot(open.slot);
      outcomes.data[outcomes.count] = {slot, tip, is_armed(slot), reach(slot)};
    }
    ++outcomes.count;
  }
  return Verdict::accepted;
}

}  // namespace v0_1
}  // namespace rollback
