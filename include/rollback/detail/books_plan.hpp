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
void Books::for_each_span(std::int32_t chunk, F f) const noexcept {
  std::int32_t const begin = chunk_begin(chunk);
  std::int32_t const end = chunk_ends_[static_cast<std::size_t>(chunk)];
  for (std::int32_t row = begin; row < end; ++row) {
    std::int32_t const e = entry_of_row_[static_cast<std::size_t>(row)];
    if (e < 0) continue;
    OpenSlot const& open = open_slots_[static_cast<std::size_t>(e)];
    if (open.closed) continue;
    Position const p = position_of_row_[static_cast<std::size_t>(row)];
    if (p > open.span.begin && row_of(open, p - 1) >= begin) continue;  // not its first row here
    auto const rows = rows_by_slot_.begin();
    auto const first = rows + open.order + static_cast<std::ptrdiff_t>(p - open.span.begin);
    auto const last = rows + open.order + static_cast<std::ptrdiff_t>(open.span.end - open.span.begin);
    f(open, ChunkSpan{p, p + (std::lower_bound(first, last, end) - first), p == open.span.begin});
  }
}

// The first kept place of a component's tier, as kept places are counted.
inline std::int32_t Books::kept_base(ComponentState const& c, Tier tier) const noexcept {
  Places const p = rollback::places(c.component, entry_copy_);
  return tier == Tier::aligned ? p.per_token + p.per_token_spares : 0;
}

// Calls f(kept source or -1, live source or -1, kept destination or -1, live destination or -1) for each plane copy
// that must precede the chunk; no source at all is the empty state. Sources and destinations never meet.
template <class F>
void Books::for_each_restore(ComponentState const& c, OpenSlot const& open, ChunkSpan const& span, F f) const noexcept {
  if (!span.first) return;
  Position const begin = open.span.begin;
  if (begin == 0) {
    f(-1, -1, -1, open.live_to);
    return;
  }
  std::int32_t kept_source = -1;
  if (open.span.armed) {
    if (c.per_token_tier >= 0) {
      kept_source = tiers_[static_cast<std::size_t>(c.per_token_tier)].place_of(open.slot, begin);
    }
    if (kept_source < 0 && c.aligned_tier >= 0) {
      std::int32_t const place = tiers_[static_cast<std::size_t>(c.aligned_tier)].place_of(open.slot, begin);
      if (place >= 0) kept_source = kept_base(c, Tier::aligned) + place;
    }
    // Of a ring of rows nothing is readable at an empty position, so there is nothing to reset either.
    if (kept_source >= 0 || !c.component.states_inside_chunk) f(kept_source, -1, -1, open.live_to);
  } else if (open.live_to != open.live_from) {
    f(-1, open.live_from, -1, open.live_to);
  }
  if (!c.component.states_inside_chunk && c.per_token_tier >= 0) {
    // A plane overwritten in place gives its state at entry only before it is advanced.
    std::int32_t const place = tiers_[static_cast<std::size_t>(c.per_token_tier)].staged_place(open.slot, begin);
    bool const empty = open.span.armed && kept_source < 0;
    if (place >= 0) f(kept_source, empty || kept_source >= 0 ? -1 : open.live_from, place, -1);
  }
}

// Calls f(position, kept place) for each state that is kept out of the chunk.
template <class F>
void Books::for_each_snapshot(ComponentState const& c, OpenSlot const& open, ChunkSpan const& span,
                              F f) const noexcept {
  if (c.per_token_tier >= 0) {
    detail::TierTable const& tier = tiers_[static_cast<std::size_t>(c.per_token_tier)];
    bool const entry = span.first && c.component.states_inside_chunk;
    Position const first = std::max(entry ? span.begin : span.begin + 1, open.span.end - c.component.per_token);
    for (Position q = first; q <= span.end; ++q) {
      std::int32_t const place = tier.staged_place(open.slot, q);
      if (place >= 0) f(q, place);
    }
  }
  if (c.aligned_tier >= 0) {
    detail::TierTable const& tier = tiers_[static_cast<std::size_t>(c.aligned_tier)];
    for (Position q = boundary_above(span.begin, c.component.quantum); q <= span.end; q += c.component.quantum) {
      std::int32_t const place = tier.staged_place(open.slot, q);
      if (place >= 0) f(q, kept_base(c, Tier::aligned) + place);
    }
  }
}

inline ComponentShape Books::count(ComponentState const& c, std::int32_t chunk) const noexcept {
  ComponentShape n;
  std::int32_t const block = c.component.geometry.block;
  for_each_span(chunk, [&](OpenSlot const& open, ChunkSpan const& span) {
    for_each_restore(c, open, span, [&n](std::int32_t, std::int32_t, std::int32_t, std::int32_t) { ++n.restores; });
    for_each_snapshot(c, open, span, [&n](Position, std::int32_t) { ++n.snapshots; });
    if (block > 0) n.blocks += static_cast<std::int32_t>(span.end / block - span.begin / block);
  });
  return n;
}

inline Verdict Books::shape(Ticket const& ticket, std::int32_t chunk, Shape& out) const noexcept {
  if (!is_open(ticket)) return Verdict::unknown_ticket;
  if (chunk < 0 || chunk >= chunks_) return Verdict::unknown_chunk;
  out = {};
  out.rows = chunk_ends_[static_cast<std::size_t>(chunk)] - chunk_begin(chunk);
  for_each_span(chunk, [&out](OpenSlot const&, ChunkSpan const&) { ++out.sequences; });
  for (std::size_t c = 0; c < components_.size(); ++c) {
    ComponentShape const n = count(components_[c], chunk);
    out.components[c] = {detail::power_of_two_at_least(n.restores), detail::power_of_two_at_least(n.snapshots),
                         detail::power_of_two_at_least(n.blocks)};
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
    Places const p = rollback::places(c, entry_copy_);
    std::int64_t const restores = !c.states_inside_chunk && c.per_token > 0 ? 2 * s : s;
    std::int64_t snapshots = 0;
    if (c.per_token > 0) snapshots += std::min(n + s, s * (c.per_token + std::int64_t{1}));
    if (c.aligned > 0) snapshots += std::min(n / c.quantum + s, s * (p.aligned + p.aligned_spares));
    std::int64_t const blocks = c.geometry.block > 0 ? std::min(n / c.geometry.block + s, n) : 0;
    out.components[i] = {detail::power_of_two_at_least(restores), detail::power_of_two_at_least(snapshots),
                         detail::power_of_two_at_least(blocks)};
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
  if (!is_open(ticket)) return Verdict::unknown_ticket;
  if (chunk < 0 || chunk >= chunks_) return Verdict::unknown_chunk;
  if (component < 0 || component >= components()) return Verdict::unknown_component;
  ComponentState const& c = components_[static_cast<std::size_t>(component)];
  RowGeometry const& geometry = c.component.geometry;
  std::int32_t const begin = chunk_begin(chunk);
  std::int32_t const rows = chunk_ends_[static_cast<std::size_t>(chunk)] - begin;
  ComponentShape const& room = shape.components[component];
  ComponentShape const used = count(c, chunk);
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
  auto const kept_row = [&map](std::int64_t slot, std::int64_t place) {
    return map.kept + slot * map.kept_slot_stride + place * map.kept_place_stride;
  };

  lists.restores = lists.snapshots = lists.persists = lists.blocks = 0;
  for_each_span(chunk, [&](OpenSlot const& open, ChunkSpan const& span) {
    std::int64_t const live = live_row(open.slot, open.live_to);
    // Where the row of position p is read: among the chunk's own rows, in the ring before the chunk, or nowhere.
    auto const source_row = [&](Position p, std::int64_t ring_row) -> std::int64_t {
      if (p >= span.begin) return std::int64_t{map.fresh} + row_of(open, p) - begin;
      return p >= 0 ? live + ring_row : std::int64_t{map.empty};
    };

    for_each_restore(
        c, open, span,
        [&](std::int32_t kept_source, std::int32_t live_source, std::int32_t kept_destination,
            std::int32_t live_destination) {
          std::int32_t const at = lists.restores++;
          put(lists.restore_source, at,
              kept_source >= 0   ? kept_row(open.slot, kept_source)
              : live_source >= 0 ? live_row(open.slot, live_source)
                                 : map.reset);
          put(lists.restore_destination, at,
              live_destination >= 0 ? live_row(open.slot, live_destination) : kept_row(open.slot, kept_destination));
        });

    for_each_snapshot(c, open, span, [&](Position q, std::int32_t place) {
      std::int64_t const at = std::int64_t{lists.snapshots++} * geometry.rows;
      std::int64_t const kept = kept_row(open.slot, place);
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
    std::int32_t const e = i < rows ? entry_of_row_[static_cast<std::size_t>(begin + i)] : -1;
    OpenSlot const* const open = e >= 0 ? &open_slots_[static_cast<std::size_t>(e)] : nullptr;
    bool const padding = open == nullptr || open->closed;
    Position const p = padding ? 0 : position_of_row_[static_cast<std::size_t>(begin + i)];
    Position const next = p + geometry.rows;  // the position that takes over the ring row
    bool const kept = !padding && (next >= open->span.end || row_of(*open, next) >= begin + rows);
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
