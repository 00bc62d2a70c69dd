// The model of batches: whether one is refused and why, and what its end leaves of its slots.
#pragma once

#include "model.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace model {

/// What `begin` must answer; of an accepted batch its rows slot by slot.
inline Verdict judge(Model const& m, ModelBatch const& b, std::vector<Unverified> const& unverified,
                     std::vector<OpenRows>& out) {
  BooksOptions const& o = m.options;
  auto const rows = static_cast<std::int32_t>(b.row_slots.size());
  if (static_cast<std::int32_t>(m.batches.size()) == o.steps_in_flight) return Verdict::too_many_in_flight;
  if (rows < 1) return Verdict::no_rows;
  if (rows > o.max_rows || b.chunks() > o.max_chunks) return Verdict::batch_too_large;
  if (b.chunks() < 1 || b.chunk_ends.back() != rows) return Verdict::bad_chunk_ends;
  for (std::int32_t k = 0; k < b.chunks(); ++k) {
    std::int32_t const n = b.chunk_ends[static_cast<std::size_t>(k)] - b.chunk_begin(k);
    if (n <= 0 || b.chunk_ends[static_cast<std::size_t>(k)] > rows) return Verdict::bad_chunk_ends;
    if (n > o.max_chunk_rows) return Verdict::batch_too_large;
  }
  out.clear();
  auto const find = [&out](std::int32_t slot) {
    return std::find_if(out.begin(), out.end(),
                        [slot](OpenRows const& x) { return static_cast<std::int32_t>(x.slot) == slot; });
  };
  for (std::int32_t i = 0, k = 0; i < rows; ++i) {
    while (i >= b.chunk_ends[static_cast<std::size_t>(k)]) ++k;
    Slot const slot = b.row_slots[static_cast<std::size_t>(i)];
    if (slot.index < 0) continue;
    if (m.known(slot) != Verdict::accepted) return m.known(slot);
    auto const s = static_cast<std::size_t>(slot.index);
    auto r = find(slot.index);
    if (r == out.end()) {
      Position const head = m.head(s);
      r = out.insert(out.end(), {s, {head, head, head, head, false}, 0, {}, false, {}, {}, {}});
    }
    Position const p = b.positions[static_cast<std::size_t>(i)];
    if (p < 0) return Verdict::negative_position;
    if (p != r->rows.end) return p < r->rows.end ? Verdict::position_repeated : Verdict::position_gap;
    if (o.max_context > 0 && p >= o.max_context) return Verdict::beyond_context;
    ++r->rows.end;
    r->chunk.push_back(k);
  }
  if (out.empty()) return Verdict::no_rows;
  std::vector<std::int32_t> named;
  for (Unverified const& u : unverified) {
    if (m.known(u.slot) != Verdict::accepted) return m.known(u.slot);
    auto const r = find(u.slot.index);
    bool const twice = std::find(named.begin(), named.end(), u.slot.index) != named.end();
    if (r == out.end() || twice || u.rows < 0 || u.rows > r->rows.end - r->rows.begin) return Verdict::bad_unverified;
    named.push_back(u.slot.index);
    r->unverified = u.rows;
  }
  for (OpenRows& r : out) {
    r.rows.verified = r.rows.certain = r.rows.end - r.unverified;
    for (ModelBatch const& older : m.batches) {
      OpenRows const* const x = older.find(r.slot);
      if (x != nullptr && x->unverified > 0) r.rows.certain = std::min(r.rows.certain, x->rows.verified);
    }
    if (r.rows.end - r.rows.certain > m.per_token) return Verdict::too_many_unverified;
  }
  for (OpenRows const& r : out) {
    for (Position q = r.rows.begin + 1; q < r.rows.end; ++q) {
      bool const cut = r.chunk_of(q - 1) != r.chunk_of(q);
      if (!cut && m.must_cut(r.slot, q, r.rows.begin, r.rows.end)) return Verdict::cut_needed;
    }
  }
  return Verdict::accepted;
}

/// The batch was accepted: what its slots keep of it, and what they cannot be sure of while it is open.
inline void open(Model& m, ModelBatch b, std::vector<OpenRows> rows) {
  for (OpenRows& o : rows) {
    ModelSlot& s = m.slots[o.slot];
    Position const begin = o.rows.begin;
    o.rows.armed = !m.in_flight(o.slot) && m.armed(o.slot);
    o.copied = m.options.entry_copy && !o.rows.armed && begin > 0;
    m.remove_pins(o.slot, [&](ModelPin const& pin) {  // lost before it could be copied
      bool const rows_lost = m.options.pin_windows && !m.covered(o.slot, pin.position);
      bool const lost = rows_lost || !m.all_kept(o.slot, pin.position);
      return pin.phase == ModelPin::Phase::wanted && pin.position < begin && lost;
    });
    for (ModelPin& pin : s.pins) {
      if (pin.phase != ModelPin::Phase::wanted || pin.position > o.rows.end) continue;
      pin.phase = ModelPin::Phase::staged;
      pin.batch = b.ticket.serial;
    }
    // A state that is yet to be copied, by a restore or into a pin, must stay where it is.
    auto const held = [&](Position p) {
      if (o.rows.armed && p == begin) return true;
      for (ModelBatch const& older : m.batches) {
        OpenRows const* const x = older.find(o.slot);
        if (x != nullptr && x->rows.armed && p == x->rows.begin && x->chunk.front() >= older.settled) return true;
      }
      return std::any_of(s.pins.begin(), s.pins.end(), [&](ModelPin const& pin) {
        return pin.position == p && p < begin && pin.phase == ModelPin::Phase::staged;
      });
    };
    for (KeptStates& t : m.tiers) o.writes.push_back(t.open(o.slot, o.rows, held));
    o.lowest_before = s.lowest;
    for (std::size_t w = 0; w < s.lowest.size(); ++w) {
      o.restored.push_back(m.window_armed(o.slot, w));
      if (o.restored[w]) s.lowest[w] = m.rows_from(w, begin);
      s.lowest[w] = std::max(s.lowest[w], o.rows.end - m.options.windows[w].rows);
    }
  }
  b.slots = std::move(rows);
  m.batches.push_back(std::move(b));
}

inline Verdict settle(Model& m, ModelBatch& b, std::int32_t chunk) {
  if (chunk < 0 || chunk >= b.chunks()) return Verdict::unknown_chunk;
  if (chunk != b.settled) return Verdict::out_of_order;
  for (ModelBatch const& older : m.batches) {
    if (&older == &b) break;
    if (older.settled < older.chunks()) return Verdict::out_of_order;
  }
  ++b.settled;
  return Verdict::accepted;
}

inline bool older_has(Model const& m, ModelBatch const& b, std::size_t slot) {
  for (ModelBatch const& older : m.batches) {
    if (&older == &b) return false;
    if (older.find(slot) != nullptr) return true;
  }
  return false;
}

inline Verdict commit(Model& m, ModelBatch& b, Slot slot, Position accepted) {
  if (m.known(slot) != Verdict::accepted) return m.known(slot);
  auto const s = static_cast<std::size_t>(slot.index);
  OpenRows const* const found = b.find(s);
  if (found == nullptr) return Verdict::slot_not_open;
  if (found->chunk.back() >= b.settled) return Verdict::not_settled;
  if (accepted < found->rows.verified || accepted > found->rows.end) return Verdict::outside_batch;
  if (older_has(m, b, s)) return Verdict::out_of_order;
  OpenRows const o = *found;
  m.close(b, s, accepted, [](Position) { return Ran::whole; });
  m.forget_closed();
  m.slots[s].tip = accepted;
  m.slots[s].live_known = accepted == o.rows.end || (accepted == o.rows.begin && o.copied);
  if (accepted < o.rows.end) m.abandon(s);
  m.land(s, accepted);
  return Verdict::accepted;
}

/// What `fail` leaves of one slot: `failed` ran up to its chunk `first_bad`, younger batches as far as they settled.
inline void fail_slot(Model& m, std::size_t s, ModelBatch const* failed, std::int32_t first_bad, BadChunk state) {
  struct Fate {
    Ran ran;
    bool verified;
  };
  std::vector<Fate> rows;  // in flight, from the entry on
  OpenRows first{};
  bool any = false;
  for (ModelBatch const& b : m.batches) {
    OpenRows const* const o = b.find(s);
    if (o == nullptr) continue;
    if (!any) first = *o;
    any = true;
    for (Position p = o->rows.begin; p < o->rows.end; ++p) {
      std::int32_t const chunk = o->chunk_of(p);
      bool const whole = chunk < (&b == failed ? first_bad : b.settled);
      bool const torn =
          state == BadChunk::may_have_run || (state == BadChunk::ran_last && &b == failed && chunk == first_bad);
      rows.push_back({whole ? Ran::whole : torn ? Ran::torn : Ran::untouched, p < o->rows.verified});
    }
  }
  Position const entry = first.rows.begin;
  Position good_end = entry, torn_end = entry, verified = entry;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Position const end = entry + static_cast<Position>(i) + 1;
    if (rows[i].ran == Ran::whole && good_end == end - 1) good_end = end;
    if (rows[i].ran != Ran::untouched) torn_end = end;
    if (rows[i].verified && verified == end - 1) verified = end;
  }
  auto const what_ran = [&](Position row) { return rows[static_cast<std::size_t>(row - entry)].ran; };

  ModelSlot& slot = m.slots[s];
  slot.lowest = first.lowest_before;
  for (std::size_t w = 0; w < slot.lowest.size() && torn_end > entry; ++w) {
    slot.lowest[w] = std::max(slot.lowest[w], torn_end - m.options.windows[w].rows);
  }
  bool entry_window = true;
  for (std::size_t w = 0; w < slot.lowest.size(); ++w) entry_window = entry_window && m.ring_covers(s, w, entry);
  bool const entry_copied = entry_window && (first.copied || (m.options.entry_copy && entry == 0));
  bool const entry_rows = entry_window || m.pin_has_rows(s, entry);
  bool const entry_armed = entry_rows && first.rows.armed && m.all_kept(s, entry);
  Position const limit = entry_copied || entry_armed ? entry : std::min(good_end, verified);
  for (ModelBatch& b : m.batches) {
    if (b.find(s) != nullptr) m.close(b, s, limit, what_ran);
  }
  Position tip = entry;
  if (torn_end == entry || entry_copied) {
    // nothing was touched, or only a copy
  } else if (entry_armed) {
    slot.live_known = false;
  } else if (torn_end == good_end && good_end <= verified) {
    tip = good_end;
    slot.live_known = true;
  } else {
    tip = m.floor(s, limit);
    slot.live_known = false;
  }
  m.land(s, tip);
}

inline Verdict fail(Model& m, ModelBatch& b, std::int32_t first_bad, BadChunk state, std::vector<std::size_t>& failed) {
  if (first_bad < 0 || first_bad > b.chunks()) return Verdict::unknown_chunk;
  if (first_bad < b.settled) return Verdict::below_settled;
  bool seen = false;
  for (ModelBatch const& x : m.batches) {
    seen = seen || &x == &b;
    for (OpenRows const& o : x.slots) {
      if (!seen) continue;
      if (older_has(m, b, o.slot)) return Verdict::out_of_order;
      if (std::find(failed.begin(), failed.end(), o.slot) == failed.end()) failed.push_back(o.slot);
    }
  }
  for (std::size_t s : failed) fail_slot(m, s, &b, first_bad, state);
  m.forget_closed();
  return Verdict::accepted;
}

}  // namespace model
