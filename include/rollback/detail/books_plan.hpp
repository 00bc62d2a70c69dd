// What a chunk must do, for one component, as index lists; and how long these lists are.
#pragma once

#include <rollback/books.hpp>

#include <algorithm>
#include <type_traits>

namespace rollback {
inline namespace v0_1 {

namespace detail {

[[nodiscard]] constexpr std::int32_t power_of_two_at_least(std::int64_t n) noexcept {
  if (n <= 0) return 0;
  std::int64_t p = 1;
  while (p < n && p < (std::int64_t{1} << 30)) p *= 2;
  return static_cast<std::int32_t>(p);
}

}  // namespace detail

// Calls f(open slot, its rows in the chunk) for every slot with rows in the chunk, in order of their first rows.
template <class F>
void Books::for_each_span(OpenBatch const& batch, std::int32_t chunk, F f) const noexcept {
  std::int32_t const begin = batch.chunk_begin(chunk);
  std::int32_t const end = batch.chunk_ends[static_cast<std::size_t>(chunk)];
  for (std::int32_t row = begin; row < end; ++row) {
    std::int32_t const e = batch.entry_of_row[static_cast<std::size_t>(row)];
    if (e < 0) continue;
    OpenSlot const& open = batch.slots[static_cast<std::size_t>(e)];
    if (open.closed) continue;
    Position const p = batch.position_of_row[static_cast<std::size_t>(row)];
    if (p > open.span.begin && batch.row_of(open, p - 1) >= begin) continue;  // not its first row here
    f(open, ChunkSpan{p, batch.end_of_rows(open, end), p == open.span.begin});
  }
}

// A page of a tier as a place of a component; `base` is the tier's first kept place there.
inline Books::KeptPlace Books::place_in(std::int32_t tier, std::int32_t page, std::int32_t base) const noexcept {
  detail::TierTable const& table = tiers_[static_cast<std::size_t>(tier)];
  if (table.common()) return {-1, page};
  return {page / table.places(), base + page % table.places()};
}

// The first row of a kept place. In 64 bits: a map of rows that 32 bits cannot name is wrong, but must not be
// undefined.
inline std::int64_t Books::kept_row(RowMap const& map, KeptPlace kept) noexcept {
  if (kept.slot < 0) return map.page + std::int64_t{kept.place} * map.page_stride;
  return map.kept + std::int64_t{kept.slot} * map.kept_slot_stride + std::int64_t{kept.place} * map.kept_place_stride;
}

// Where a component keeps the state at p: in whichever tier, or in a pin; nowhere where it is empty there.
inline Books::KeptPlace Books::kept_place(std::int32_t component, std::int32_t slot, Position p) const noexcept {
  KeptPlace places[max_kept_places];
  return kept_places(component, slot, p, places) > 0 ? places[0] : KeptPlace{};
}

// All places where a component keeps the state at p; how many there are. The empty state is kept nowhere.
inline std::int32_t Books::kept_places(std::int32_t component, std::int32_t slot, Position p,
                                       KeptPlace* places) const noexcept {
  ComponentState const& c = components_[static_cast<std::size_t>(component)];
  if (c.component.empty_at > 0 && p % c.component.empty_at == 0) return 0;
  std::int32_t count = 0;
  auto const add_tier = [&](std::int32_t tier, std::int32_t base) {
    std::int32_t const page = tier >= 0 ? tiers_[static_cast<std::size_t>(tier)].page_of(slot, p) : -1;
    if (page >= 0) places[count++] = place_in(tier, page, base);
  };
  add_tier(c.aligned_tier, c.aligned_base);  // first what can be held
  std::int32_t const page = pins() > 0 ? pins_.page_of(slot, p) : -1;
  if (page >= 0) places[count++] = {page / pins(), c.pin_base + page % pins()};
  add_tier(c.per_token_tier, 0);
  return count;
}

// Whether every component has the state at p, or is empty there.
inline bool Books::all_kept(std::int32_t slot, Position p) const noexcept {
  for (std::int32_t c = 0; c < components(); ++c) {
    Position const empty_at = component(c).empty_at;
    if ((empty_at == 0 || p % empty_at != 0) && kept_place(c, slot, p).place < 0) return false;
  }
  return true;
}

// Calls f(kept source, live source or -1, kept destination, live destination or -1) for each plane copy that must
// precede the chunk; no source at all is the empty state. Sources and destinations never meet.
template <class F>
void Books::for_each_restore(OpenBatch const& batch, std::int32_t component, OpenSlot const& open,
                             ChunkSpan const& span, F f) const noexcept {
  if (!span.first) return;
  ComponentState const& c = components_[static_cast<std::size_t>(component)];
  Position const begin = open.span.begin;
  KeptPlace const none;
  KeptPlace const source = open.source[component];
  bool const empty = begin == 0 || (c.component.empty_at > 0 && begin % c.component.empty_at == 0);
  // A plane that is overwritten in place starts anew wherever it is empty: a state that was loaded there has no bytes.
  // Of a ring of rows nothing is readable at an empty position, so there is nothing to reset either, but at 0.
  if (begin == 0 || source.place >= 0 || (empty && !c.component.states_inside_chunk)) {
    f(source, -1, none, open.live_to);
  } else if (!empty && open.live_to != open.live_from) {
    f(none, open.live_from, none, open.live_to);
  }
  // A plane overwritten in place gives its state at entry only before it is advanced.
  std::int32_t const live_source = source.place >= 0 ? -1 : open.live_from;
  if (!empty && !c.component.states_inside_chunk && c.per_token_tier >= 0) {
    std::int32_t const page = batch.page(static_cast<std::size_t>(c.per_token_tier), open, begin);
    if (page >= 0) f(source, live_source, place_in(c.per_token_tier, page, 0), -1);
  }
  for_each_pin(batch, component, open, [&](Position p, KeptPlace place) {
    if (p < begin) f(kept_place(component, open.slot, p), -1, place, -1);
    if (p == begin && !c.component.states_inside_chunk) f(source, live_source, place, -1);
  });
}

// Calls f(pin) for each pin that the batch keeps.
template <class F>
void Books::for_each_staged(OpenBatch const& batch, OpenSlot const& open, F f) const noexcept {
  auto const index = static_cast<std::int32_t>(&batch - batches_.data());
  for (detail::Pin const* pin = pins_.begin(open.slot); pin != pins_.end(open.slot); ++pin) {
    if (pin->phase == detail::Pin::Phase::staged && pin->ticket == index) f(*pin);
  }
}

// Calls f(position, kept place) for each pin that the batch keeps a component's state for.
template <class F>
void Books::for_each_pin(OpenBatch const& batch, std::int32_t component, OpenSlot const& open, F f) const noexcept {
  ComponentState const& c = components_[static_cast<std::size_t>(component)];
  for_each_staged(batch, open, [&](detail::Pin const& pin) {
    if (c.component.empty_at > 0 && pin.position % c.component.empty_at == 0) return;
    f(pin.position, KeptPlace{pin.page / pins(), c.pin_base + pin.page % pins()});
  });
}

// Calls f(position, kept place) for each state that is kept out of the chunk.
template <class F>
void Books::for_each_snapshot(OpenBatch const& batch, std::int32_t component, OpenSlot const& open,
                              ChunkSpan const& span, F f) const noexcept {
  ComponentState const& c = components_[static_cast<std::size_t>(component)];
  bool const entry = span.first && c.component.states_inside_chunk;
  if (c.per_token_tier >= 0) {
    Position const first = std::max(entry ? span.begin : span.begin + 1, open.span.end - c.component.per_token);
    for (Position q = first; q <= span.end; ++q) {
      std::int32_t const page = batch.page(static_cast<std::size_t>(c.per_token_tier), open, q);
      if (page >= 0) f(q, place_in(c.per_token_tier, page, 0));
    }
  }
  if (c.aligned_tier >= 0) {
    for (Position q = boundary_above(span.begin, c.component.quantum); q <= span.end; q += c.component.quantum) {
      std::int32_t const page = batch.page(static_cast<std::size_t>(c.aligned_tier), open, q);
      if (page >= 0) f(q, place_in(c.aligned_tier, page, c.aligned_base));
    }
  }
  for_each_pin(batch, component, open, [&](Position p, KeptPlace place) {
    if (p <= span.end && (p > span.begin || (entry && p == span.begin))) f(p, place);
  });
}

inline ComponentShape Books::count(OpenBatch const& batch, std::int32_t component, std::int32_t chunk) const noexcept {
  ComponentShape n;
  std::int32_t const block = this->component(component).geometry.block;
  for_each_span(batch, chunk, [&](OpenSlot const& open, ChunkSpan const& span) {
    for_each_restore(batch, component, open, span,
                     [&n](KeptPlace, std::int32_t, KeptPlace, std::int32_t) { ++n.restores; });
    for_each_snapshot(batch, component, open, span, [&n](Position, KeptPlace) { ++n.snapshots; });
    if (block > 0) n.blocks += static_cast<std::int32_t>(span.end / block - span.begin / block);
  });
  return n;
}

inline Verdict Books::shape(Ticket const& ticket, std::int32_t chunk, Shape& out) const noexcept {
  OpenBatch const* const batch = find(ticket);
  if (batch == nullptr) return Verdict::unknown_ticket;
  if (chunk < 0 || chunk >= batch->chunks) return Verdict::unknown_chunk;
  if (is_pending(*batch, chunk)) return Verdict::in_flight;
  out = {};
  out.rows = batch->chunk_ends[static_cast<std::size_t>(chunk)] - batch->chunk_begin(chunk);
  for_each_span(*batch, chunk, [&out](OpenSlot const&, ChunkSpan const&) { ++out.sequences; });
  for (std::int32_t c = 0; c < components(); ++c) {
    ComponentShape const n = count(*batch, c, chunk);
    out.components[c] = {detail::power_of_two_at_least(n.restores), detail::power_of_two_at_least(n.snapshots),
                         detail::power_of_two_at_least(n.blocks)};
  }
  for (std::int32_t w = 0; w < windows(); ++w) {
    ComponentShape const n = count_window(*batch, w, chunk);
    out.windows[w] = {detail::power_of_two_at_least(n.restores), detail::power_of_two_at_least(n.snapshots), 0};
  }
  return Verdict::accepted;
}

inline Shape Books::worst_shape(std::int32_t rows, std::int32_t sequences) const noexcept {
  Shape out;
  out.rows = std::clamp(rows, 0, max_chunk_rows_);
  out.sequences = std::max(std::min(sequences, out.rows), 0);
  std::int64_t const n = out.rows;
  std::int64_t const s = out.sequences;
  for (std::size_t i = 0; i < components_.size(); ++i) {
    Component const& c = components_[i].component;
    std::int64_t const restores = (!c.states_inside_chunk && c.per_token > 0 ? 2 * s : s) + s * pins();
    std::int64_t snapshots = s * pins();
    if (c.per_token > 0) snapshots += std::min(n + s, s * (c.per_token + std::int64_t{1}));
    if (c.aligned > 0) {
      Places const p = rollback::places(c, entry_copy_);  // as if the slots had their own: as many boundaries are kept
      std::int64_t const aligned = std::min(n / c.quantum + s, s * (p.aligned + p.aligned_spares));
      snapshots += pages_ > 0 ? std::min(aligned, std::int64_t{pages_}) : aligned;
    }
    std::int64_t const blocks = c.geometry.block > 0 ? std::min(n / c.geometry.block + s, n) : 0;
    out.components[i] = {detail::power_of_two_at_least(restores), detail::power_of_two_at_least(snapshots),
                         detail::power_of_two_at_least(blocks)};
  }
  for (std::int32_t w = 0; w < windows() && pin_windows_; ++w) {
    if (window(w).window == 1) continue;
    out.windows[w] = {detail::power_of_two_at_least(s + s * pins()), detail::power_of_two_at_least(s * pins()), 0};
  }
  return out;
}

inline Lengths Books::lengths(std::int32_t component, Shape const& shape) const noexcept {
  Lengths n;
  if (component < 0 || component >= components()) return n;
  Component const& c = this->component(component);
  ComponentShape const& s = shape.components[component];
  n.restores = s.restores;
  // No books are made whose own shapes pass 32 bits here; a shape of other books must not overflow.
  auto const times = [](std::int32_t count, std::int32_t each) {
    return static_cast<std::int32_t>(std::min(std::int64_t{count} * each, std::int64_t{INT32_MAX}));
  };
  n.snapshots = times(s.snapshots, c.geometry.rows);
  n.rows = c.states_inside_chunk ? shape.rows : 0;
  n.blocks = s.blocks;
  n.block_reads = times(s.blocks, c.geometry.block);
  return n;
}

inline Verdict Books::plan(Ticket const& ticket, std::int32_t chunk, std::int32_t component, Shape const& shape,
                           RowMap const& map, Lists& lists) const noexcept {
  OpenBatch const* const found = find(ticket);
  if (found == nullptr) return Verdict::unknown_ticket;
  OpenBatch const& batch = *found;
  if (chunk < 0 || chunk >= batch.chunks) return Verdict::unknown_chunk;
  if (component < 0 || component >= components()) return Verdict::unknown_component;
  if (is_pending(batch, chunk)) return Verdict::in_flight;
  ComponentState const& c = components_[static_cast<std::size_t>(component)];
  RowGeometry const& geometry = c.component.geometry;
  std::int32_t const begin = batch.chunk_begin(chunk);
  std::int32_t const rows = batch.chunk_ends[static_cast<std::size_t>(chunk)] - begin;
  ComponentShape const& room = shape.components[component];
  ComponentShape const used = count(batch, component, chunk);
  if (rows > shape.rows || used.restores > room.restores || used.snapshots > room.snapshots ||
      used.blocks > room.blocks) {
    return Verdict::shape_too_small;
  }

  auto const put = [](auto* list, std::int64_t index, auto value) {
    if (list != nullptr) list[index] = static_cast<std::remove_reference_t<decltype(*list)>>(value);
  };
  // In 64 bits: a map of rows that 32 bits cannot name is wrong, but must not be undefined.
  auto const live_row = [&map](std::int64_t slot, std::int64_t place) {
    return map.live + slot * map.live_slot_stride + place * map.live_place_stride;
  };

  lists.restores = lists.snapshots = lists.persists = lists.blocks = 0;
  for_each_span(batch, chunk, [&](OpenSlot const& open, ChunkSpan const& span) {
    std::int64_t const live = live_row(open.slot, open.live_to);
    // Where the row of position p is read: among the chunk's own rows, in the ring before the chunk, or nowhere.
    auto const source_row = [&](Position p, std::int64_t ring_row) -> std::int64_t {
      if (p >= span.begin) return std::int64_t{map.fresh} + batch.row_of(open, p) - begin;
      return p >= 0 ? live + ring_row : std::int64_t{map.empty};
    };

    for_each_restore(
        batch, component, open, span,
        [&](KeptPlace kept_source, std::int32_t live_source, KeptPlace kept_destination,
            std::int32_t live_destination) {
          std::int32_t const at = lists.restores++;
          put(lists.restore_source, at,
              kept_source.place >= 0 ? kept_row(map, kept_source)
              : live_source >= 0     ? live_row(open.slot, live_source)
                                     : map.reset);
          put(lists.restore_destination, at,
              live_destination >= 0 ? live_row(open.slot, live_destination) : kept_row(map, kept_destination));
        });

    for_each_snapshot(batch, component, open, span, [&](Position q, KeptPlace place) {
      std::int64_t const at = std::int64_t{lists.snapshots++} * geometry.rows;
      std::int64_t const kept = kept_row(map, place);
      if (!c.component.states_inside_chunk) {
        for (std::int32_t row = 0; row < geometry.rows; ++row) {
          put(lists.snapshot_source, at + row, live + row);
          put(lists.snapshot_destination, at + row, kept + row);
        }
        return;
      }
      std::int64_t row = (q - 1) % geometry.rows;
      for (Position p = q - 1; p >= q - geometry.rows; --p) {  // the ring's rows, newest first
        bool const exists = p >= 0;
        put(lists.snapshot_source, at + row, exists ? source_row(p, row) : std::int64_t{map.sink});
        put(lists.snapshot_destination, at + row, exists ? kept + row : std::int64_t{map.sink});
        row = row == 0 ? geometry.rows - 1 : row - 1;
      }
    });

    std::int32_t const block = geometry.block;
    if (block == 0) return;
    for (Position w = span.begin / block; w < span.end / block; ++w) {
      std::int64_t const at = lists.blocks++;
      for (std::int32_t j = 0; j < block; ++j) {
        Position const current = w * block + j;
        put(lists.block_current, at * block + j, source_row(current, current % geometry.rows));
        Position const previous = current - block;
        if (geometry.overlap) {
          put(lists.block_previous, at * block + j, source_row(previous, previous >= 0 ? previous % geometry.rows : 0));
        }
      }
      put(lists.block_row, at, map.cache + open.slot * map.cache_slot_stride + w);
      put(lists.block_position, at, w * block);
      put(lists.block_slot, at, open.slot);
    }
  });

  for (std::int32_t i = 0; c.component.states_inside_chunk && i < shape.rows; ++i) {
    std::int32_t const e = i < rows ? batch.entry_of_row[static_cast<std::size_t>(begin + i)] : -1;
    OpenSlot const* const open = e >= 0 ? &batch.slots[static_cast<std::size_t>(e)] : nullptr;
    bool const padding = open == nullptr || open->closed;
    Position const p = padding ? 0 : batch.position_of_row[static_cast<std::size_t>(begin + i)];
    Position const next = p + geometry.rows;  // the position that takes over the ring row
    bool const kept = !padding && (next >= open->span.end || batch.row_of(*open, next) >= begin + rows);
    lists.persists += padding ? 0 : 1;
    put(lists.persist_source, i, kept ? i : map.sink >= 0 ? 0 : -1);
    put(lists.persist_destination, i,
        kept ? live_row(open->slot, open->live_to) + p % geometry.rows : std::int64_t{map.sink});
    put(lists.visible, i, padding || geometry.block == 0 ? 0 : (p + 1) / geometry.block);
  }

  for (std::int32_t i = lists.restores; i < room.restores; ++i) {
    put(lists.restore_source, i, map.sink);
    put(lists.restore_destination, i, map.sink);
  }
  for (std::int64_t i = std::int64_t{lists.snapshots} * geometry.rows; i < std::int64_t{room.snapshots} * geometry.rows;
       ++i) {
    put(lists.snapshot_source, i, map.sink);
    put(lists.snapshot_destination, i, map.sink);
  }
  for (std::int64_t i = lists.blocks; i < room.blocks; ++i) {
    for (std::int32_t j = 0; j < geometry.block; ++j) {
      if (geometry.overlap) put(lists.block_previous, i * geometry.block + j, map.empty);
      put(lists.block_current, i * geometry.block + j, map.empty);
    }
    put(lists.block_row, i, map.cache_sink);
    put(lists.block_position, i, 0);
    put(lists.block_slot, i, -1);
  }
  return Verdict::accepted;
}

}  // namespace v0_1
}  // namespace rollback
