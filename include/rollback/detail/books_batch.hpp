// The way of a batch: opened, settled chunk by chunk, committed slot by slot.
#pragma once

#include <rollback/books.hpp>

#include <algorithm>

namespace rollback {
inline namespace v0_1 {

inline Position Books::next_cut(Slot slot, Position from, Position end) const noexcept {
  if (known(slot) != Verdict::accepted || from < 0 || from >= end) return end;
  Position cut = end;
  bool in_place = false;
  for (ComponentState const& c : components_) {
    if (c.component.states_inside_chunk) continue;
    in_place = true;
    if (c.aligned_tier >= 0) {
      Position const to_boundary = c.component.quantum - from % c.component.quantum;
      if (to_boundary < end - from) cut = std::min(cut, from + to_boundary);
    }
    if (c.per_token_tier >= 0) cut = std::min(cut, std::max(from + 1, end - c.component.per_token));
  }
  for (detail::Pin const* pin = pins_.begin(slot.index); in_place && pin != pins_.end(slot.index); ++pin) {
    if (pin->phase == detail::Pin::Phase::wanted && pin->position > from) cut = std::min(cut, pin->position);
  }
  return cut;
}

inline Books::OpenBatch* Books::find(Ticket const& ticket) noexcept {
  if (ticket.index < 0 || ticket.index >= steps_in_flight()) return nullptr;
  OpenBatch& batch = batches_[static_cast<std::size_t>(ticket.index)];
  return batch.is_open && batch.serial == ticket.serial ? &batch : nullptr;
}

inline Books::OpenBatch const* Books::find(Ticket const& ticket) const noexcept {
  if (ticket.index < 0 || ticket.index >= steps_in_flight()) return nullptr;
  OpenBatch const& batch = batches_[static_cast<std::size_t>(ticket.index)];
  return batch.is_open && batch.serial == ticket.serial ? &batch : nullptr;
}

// Whether a batch older than this one still has the slot.
inline bool Books::older_has(OpenBatch const& batch, std::int32_t slot) const noexcept {
  for (std::int32_t i = 0; i < open_count_; ++i) {
    OpenBatch const& other = batches_[static_cast<std::size_t>(by_age_[static_cast<std::size_t>(i)])];
    if (&other == &batch) return false;
    if (other.find(slot) != nullptr) return true;
  }
  return false;
}

inline Verdict Books::check_chunks(Batch const& batch, OpenBatch& open) const noexcept {
  if (batch.rows < 1) return Verdict::no_rows;
  if (batch.rows > max_rows_ || batch.chunks > max_chunks_) return Verdict::batch_too_large;
  if (batch.chunks < 1 || batch.chunk_ends[batch.chunks - 1] != batch.rows) return Verdict::bad_chunk_ends;
  for (std::int32_t k = 0, end = 0; k < batch.chunks; ++k) {
    if (batch.chunk_ends[k] <= end || batch.chunk_ends[k] > batch.rows) return Verdict::bad_chunk_ends;
    if (batch.chunk_ends[k] - end > max_chunk_rows_) return Verdict::batch_too_large;
    end = batch.chunk_ends[k];
    open.chunk_ends[static_cast<std::size_t>(k)] = end;
  }
  open.chunks = batch.chunks;
  return Verdict::accepted;
}

// Copies the batch's rows into the books' own memory, slot by slot positions checked. A refusal leaves only scratch.
inline Verdict Books::check_rows(Batch const& batch, OpenBatch& open_batch, std::int32_t* bad_row) noexcept {
  for (std::int32_t i = 0; i < batch.rows; ++i) {
    auto const row = static_cast<std::size_t>(i);
    Slot const slot = batch.slots[i];
    open_batch.entry_of_row[row] = OpenBatch::none;
    if (slot.index < 0) continue;
    Position const p = batch.positions[i];
    if (bad_row != nullptr) *bad_row = i;
    Verdict const verdict = known(slot);
    if (verdict != Verdict::accepted) return verdict;
    std::int32_t& entry = open_batch.entry_of_slot[static_cast<std::size_t>(slot.index)];
    if (entry < 0) {
      entry = open_batch.count++;
      OpenSlot& open = open_batch.slots[static_cast<std::size_t>(entry)];
      open = {};
      open.slot = slot.index;
      open.span.begin = open.span.end = head(slot);
      Verdict const waits = check_pending(batch, open);
      if (waits != Verdict::accepted) return waits;
    }
    OpenSlot& open = open_batch.slots[static_cast<std::size_t>(entry)];
    Position const next = batch.relative ? open.span.end - open.span.begin : open.span.end;
    if (p < 0) return Verdict::negative_position;
    if (p < next) return Verdict::position_repeated;
    if (p > next) return Verdict::position_gap;
    if (open.span.end >= end_of_context()) return Verdict::beyond_context;
    open_batch.position_of_row[row] = open.span.end++;
    open_batch.entry_of_row[row] = entry;
  }
  if (bad_row != nullptr) *bad_row = -1;
  return open_batch.count > 0 ? Verdict::accepted : Verdict::no_rows;
}

// Whether unverified rows stand where a commit of a prefix can be served. What follows unverified rows in flight falls
// with them, so the per-token tier has to reach from the end of the youngest batch to the oldest unverified row.
inline Verdict Books::check_unverified(Batch const& batch, OpenBatch& open_batch) noexcept {
  for (std::int32_t e = 0; e < open_batch.count; ++e) {
    OpenSlot& open = open_batch.slots[static_cast<std::size_t>(e)];
    open.span.verified = open.span.certain = open.span.end;
    open.unverified = -1;  // not named yet
  }
  if (batch.unverified_count < 0) return Verdict::bad_unverified;
  for (std::int32_t i = 0; i < batch.unverified_count; ++i) {
    Unverified const& u = batch.unverified[i];
    Verdict const verdict = known(u.slot);
    if (verdict != Verdict::accepted) return verdict;
    OpenSlot* const open = open_batch.find(u.slot.index);
    if (open == nullptr) return Verdict::bad_unverified;
    if (open->unverified >= 0 || u.rows < 0 || u.rows > open->span.end - open->span.begin) {
      return Verdict::bad_unverified;
    }
    open->unverified = u.rows;
    open->span.verified = open->span.certain = open->span.end - u.rows;
  }
  for (std::int32_t e = 0; e < open_batch.count; ++e) {
    OpenSlot& open = open_batch.slots[static_cast<std::size_t>(e)];
    for (std::int32_t i = 0; i < open_count_ && !open.pending; ++i) {
      OpenSlot const* const older =
          batches_[static_cast<std::size_t>(by_age_[static_cast<std::size_t>(i)])].find(open.slot);
      if (older != nullptr && older->unverified > 0) {
        open.span.certain = std::min(open.span.certain, older->span.verified);
      }
    }
    if (open.span.end - open.span.certain > per_token_) return Verdict::too_many_unverified;
    open.unverified = std::max(open.unverified, 0);
  }
  return Verdict::accepted;
}

// Sorts the rows by slot: a counting sort, since a slot's rows already stand in rising order.
inline void Books::index_rows(OpenBatch& batch) noexcept {
  std::int32_t at = 0;
  for (std::int32_t e = 0; e < batch.count; ++e) {
    OpenSlot& open = batch.slots[static_cast<std::size_t>(e)];
    open.order = at;
    at += static_cast<std::int32_t>(open.span.end - open.span.begin);
  }
  std::int32_t const rows = batch.rows();
  for (std::int32_t i = 0; i < rows; ++i) {
    std::int32_t const e = batch.entry_of_row[static_cast<std::size_t>(i)];
    if (e < 0) continue;
    OpenSlot const& open = batch.slots[static_cast<std::size_t>(e)];
    Position const p = batch.position_of_row[static_cast<std::size_t>(i)];
    batch.rows_by_slot[static_cast<std::size_t>(open.order + (p - open.span.begin))] = i;
  }
}

// Whether the chunks end where a plane that is overwritten in place must be copied: if pending, anywhere.
inline Verdict Books::check_cuts(OpenBatch const& batch) const noexcept {
  bool const in_place = std::any_of(components_.begin(), components_.end(),
                                    [](ComponentState const& c) { return !c.component.states_inside_chunk; });
  for (std::int32_t e = 0; e < batch.count; ++e) {
    OpenSlot const& open = batch.slots[static_cast<std::size_t>(e)];
    Slot const slot = this->slot(open.slot);
    for (Position from = open.span.begin; from < open.span.end;) {
      Position const cut = open.pending && in_place ? from + 1 : next_cut(slot, from, open.span.end);
      if (cut < open.span.end &&
          batch.chunk_of_row(batch.row_of(open, cut - 1)) == batch.chunk_of_row(batch.row_of(open, cut))) {
        return Verdict::cut_needed;
      }
      from = cut;
    }
  }
  return Verdict::accepted;
}

inline Verdict Books::begin(Batch const& batch, Ticket& ticket, std::int32_t* bad_row) noexcept {
  if (bad_row != nullptr) *bad_row = -1;
  if (open_count_ == steps_in_flight()) return Verdict::too_many_in_flight;
  std::int32_t index = 0;
  while (batches_[static_cast<std::size_t>(index)].is_open) ++index;
  OpenBatch& open_batch = batches_[static_cast<std::size_t>(index)];
  open_batch.count = 0;
  Verdict verdict = check_chunks(batch, open_batch);
  if (verdict == Verdict::accepted) verdict = check_rows(batch, open_batch, bad_row);
  if (verdict == Verdict::accepted) verdict = check_unverified(batch, open_batch);
  if (verdict == Verdict::accepted) {
    index_rows(open_batch);
    verdict = check_cuts(open_batch);
  }
  if (verdict != Verdict::accepted) {
    for (std::int32_t e = 0; e < open_batch.count; ++e) {
      std::int32_t const slot = open_batch.slots[static_cast<std::size_t>(e)].slot;
      open_batch.entry_of_slot[static_cast<std::size_t>(slot)] = OpenBatch::none;
    }
    return verdict;
  }

  open_batch.forget_pages(tiers_.size());
  open_batch.pending = 0;
  for (std::int32_t e = 0; e < open_batch.count; ++e) {
    OpenSlot& open = open_batch.slots[static_cast<std::size_t>(e)];
    SlotState& s = slot_states_[static_cast<std::size_t>(open.slot)];
    if (open.pending) ++open_batch.pending, ++s.pending;
    open_slot(open_batch, index, open);
    ++s.open;
    s.head = open.span.end;
  }
  open_batch.is_open = true;
  open_batch.settled = 0;
  open_batch.unclosed = open_batch.count;
  open_batch.serial = ++serial_;
  by_age_[static_cast<std::size_t>(open_count_++)] = index;
  ticket = {index, serial_};
  return Verdict::accepted;
}

// Chooses where the batch keeps what states of the slot, and unlists what it may overwrite. Where it starts must be
// known, or else only the window rows are unlisted.
inline void Books::open_slot(OpenBatch& batch, std::int32_t index, OpenSlot& open) noexcept {
  for (std::size_t w = 0; w < guards_.size(); ++w) {
    open.lowest_before[w] = guards_[w].lowest(open.slot);
    if (open.pending) guards_[w].write(open.slot, open.span.end);
  }
  if (open.pending) return;
  SlotState& s = slot_states_[static_cast<std::size_t>(open.slot)];
  Position const begin = open.span.begin;
  bool const first = !older_has(batch, open.slot);  // nothing of the slot is in flight
  open.span.armed = first && armed(s);
  open.first_chunk = batch.chunk_of_row(batch.row_of(open, begin));
  open.last_chunk = batch.chunk_of_row(batch.row_of(open, open.span.end - 1));
  open.live_from = open.live_to = s.live_place;
  if (entry_copy_ && !open.span.armed && begin > 0) open.live_to = (s.live_place + 1) % (1 + steps_in_flight());
  for (std::int32_t c = 0; c < components(); ++c) {
    open.source[c] = open.span.armed ? kept_place(c, open.slot, begin) : KeptPlace{};
  }

  detail::Pin* const pins_begin = pins_.begin(open.slot);
  detail::Pin* const pins_end = pins_.end(open.slot);
  for (detail::Pin* pin = pins_begin; pin != pins_end; ++pin) {
    bool const due = pin->phase == detail::Pin::Phase::wanted && pin->position <= open.span.end;
    if (!due || !pins_.writable(*pin)) continue;
    bool const passed = pin->position < begin;
    if (passed && !first) continue;  // an older batch may give the state up before the copy is made
    bool const rows_lost = pin_windows_ && uncovered_window(open.slot, pin->position) >= 0;
    if (passed && (rows_lost || !all_kept(open.slot, pin->position))) {
      pins_.remove(*pin);  // the state, or a window row, was lost before it could be copied
    } else {
      pins_.stage(*pin, index, pin_windows_);
    }
  }
  // Sources of copies stay until the copies are made: of restores that have yet to run, and of pins.
  auto const held = [&](Position p) {
    if (open.span.armed && p == begin) return true;
    for (std::int32_t i = 0; i < open_count_; ++i) {
      OpenBatch const& older = batches_[static_cast<std::size_t>(by_age_[static_cast<std::size_t>(i)])];
      OpenSlot const* const o = older.find(open.slot);
      if (o != nullptr && o->span.armed && p == o->span.begin && o->first_chunk >= older.settled) return true;
    }
    return std::any_of(pins_begin, pins_end, [p, begin](detail::Pin const& pin) {
      return pin.position == p && p < begin && pin.phase == detail::Pin::Phase::staged;
    });
  };
  for (std::size_t t = 0; t < tiers_.size(); ++t) {
    tiers_[t].stage(open.slot, open.span, held,
                    [&](Position q, std::int32_t page) { batch.set_page(t, open, q, page); });
  }
  for (std::size_t w = 0; w < guards_.size(); ++w) {
    open.window_source[w] = {};
    if (pin_windows_ && open.span.armed &&
        !guards_[w].covers(open.slot, begin)) {  // a pin was landed on that has the rows
      std::int32_t const page = pins_.rows_page_of(open.slot, begin);
      open.window_source[w] = {page / pins(), page % pins()};
      guards_[w].restore(open.slot, begin);
    }
    guards_[w].write(open.slot, open.span.end);
  }
  s.live_place = open.live_to;
}

inline Verdict Books::settle(Ticket const& ticket, std::int32_t chunk) noexcept {
  OpenBatch* const batch = find(ticket);
  if (batch == nullptr) return Verdict::unknown_ticket;
  if (chunk < 0 || chunk >= batch->chunks) return Verdict::unknown_chunk;
  if (chunk != batch->settled) return Verdict::out_of_order;
  for (std::int32_t i = 0; i < open_count_; ++i) {
    OpenBatch const& older = batches_[static_cast<std::size_t>(by_age_[static_cast<std::size_t>(i)])];
    if (&older == batch) break;
    if (older.settled < older.chunks) return Verdict::out_of_order;
  }
  ++batch->settled;
  return Verdict::accepted;
}

// The batch is over for the slot: what it kept up to `limit` is listed, in every tier and pin.
template <class WrittenAt>
void Books::resolve(std::int32_t batch, OpenSlot const& open, Position limit, WrittenAt written) noexcept {
  if (open.pending) return;
  OpenBatch const& b = batches_[static_cast<std::size_t>(batch)];
  for (std::size_t t = 0; t < tiers_.size(); ++t) {
    tiers_[t].resolve(
        open.slot, open.span, limit, [&](Position q) { return b.page(t, open, q); }, written);
  }
  for (detail::Pin* pin = pins_.begin(open.slot); pin != pins_.end(open.slot); ++pin) {
    if (pin->phase != detail::Pin::Phase::staged || pin->ticket != batch) continue;
    Position const row = std::max(pin->position, open.span.begin);  // older ones are copied with the first row
    pins_.resolve(*pin, written(row) == detail::Written::whole && row <= std::max(limit, open.span.begin));
  }
}

inline void Books::close(OpenBatch& batch, OpenSlot& open) noexcept {
  SlotState& s = slot_states_[static_cast<std::size_t>(open.slot)];
  open.closed = true;
  if (open.pending) --s.pending, --batch.pending;
  batch.entry_of_slot[static_cast<std::size_t>(open.slot)] = OpenBatch::none;
  if (--s.open == 0) s.head = s.tip;
  if (--batch.unclosed > 0) return;
  batch.is_open = false;
  auto const index = static_cast<std::int32_t>(&batch - batches_.data());
  auto const end = by_age_.begin() + open_count_;
  std::copy(std::find(by_age_.begin(), end, index) + 1, end, std::find(by_age_.begin(), end, index));
  --open_count_;
}

// Calls f(index of the batch, open slot) for every batch that still has the slot, the oldest first, and closes it
// there.
template <class F>
void Books::close_all(std::int32_t slot, F f) noexcept {
  for (std::int32_t i = 0; i < open_count_;) {
    std::int32_t const index = by_age_[static_cast<std::size_t>(i)];
    OpenBatch& batch = batches_[static_cast<std::size_t>(index)];
    OpenSlot* const open = batch.find(slot);
    if (open != nullptr) f(index, *open);
    if (open == nullptr || batch.unclosed > 1) ++i;  // else the batch is open no more
    if (open != nullptr) close(batch, *open);
  }
}

// Takes the slot out of every batch that still has it. What these write, now or later, nobody lists.
inline void Books::abandon(std::int32_t slot) noexcept {
  close_all(slot, [&](std::int32_t index, OpenSlot const& open) {
    resolve(index, open, slot_states_[static_cast<std::size_t>(slot)].tip,
            [](Position) { return detail::Written::torn; });
  });
}

inline Verdict Books::commit(Ticket const& ticket, Slot slot, Position accepted) noexcept {
  Verdict const verdict = can_commit(ticket, slot, accepted);
  if (verdict != Verdict::accepted) return verdict;
  if (slot_states_[static_cast<std::size_t>(slot.index)].pending > 0) return Verdict::in_flight;
  accept(ticket, slot, accepted);
  return Verdict::accepted;
}

inline Verdict Books::can_commit(Ticket const& ticket, Slot slot, Position accepted) const noexcept {
  OpenBatch const* const batch = find(ticket);
  if (batch == nullptr) return Verdict::unknown_ticket;
  Verdict const verdict = known(slot);
  if (verdict != Verdict::accepted) return verdict;
  OpenSlot const* const open = batch->find(slot.index);
  if (open == nullptr) return Verdict::slot_not_open;
  if (open->last_chunk >= batch->settled) return Verdict::not_settled;
  if (accepted < open->span.verified || accepted > open->span.end) return Verdict::outside_batch;
  return older_has(*batch, slot.index) ? Verdict::out_of_order : Verdict::accepted;
}

// Commits what can be. Pending batches go on from the position; others fall with what they went on from.
inline void Books::accept(Ticket const& ticket, Slot slot, Position accepted) noexcept {
  OpenBatch* const batch = find(ticket);
  OpenSlot* const open = batch->find(slot.index);
  SlotState& s = slot_states_[static_cast<std::size_t>(slot.index)];
  resolve(ticket.index, *open, accepted, [](Position) { return detail::Written::whole; });
  bool const copy_undoes = accepted == open->span.begin && open->live_to != open->live_from;
  Position const end = open->span.end;
  if (accepted < end) s.live_place = copy_undoes ? open->live_from : open->live_to;
  s.live = copy_undoes ? open->span.begin : end;
  s.tip = accepted;
  close(*batch, *open);
  if (accepted < end && s.pending == 0) abandon(slot.index);  // younger batches went on from rows that are rejected
  Position const shift = accepted - end;
  forget_pending_rows(slot.index);
  land(slot.index, accepted);
  place_pending(slot.index, shift);
}

}  // namespace v0_1
}  // namespace rollback
