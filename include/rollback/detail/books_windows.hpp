// What a chunk must copy of raw window rows, so that a pin is a landing wherever the slot's ring has gone on to.
#pragma once

#include <rollback/books.hpp>

#include <algorithm>

namespace rollback {
inline namespace v0_1 {

// Calls f(position, kept source or none, kept destination or none) for each copy of the rows below a position that must
// precede the chunk's own rows; none is the slot's ring. No copy reads what another one writes: where the ring is
// restored it lacked rows below the entry, so it lacked some of every older position too, and a pin that would be
// copied out of it was given up. A pin's place is written by the one batch that keeps it, and read only once it is
// kept.
template <class F>
void Books::for_each_window_restore(OpenBatch const& batch, std::int32_t window, OpenSlot const& open,
                                    ChunkSpan const& span, F f) const noexcept {
  if (!span.first || !pin_windows_ || this->window(window).window == 1) return;
  if (open.window_source[window].place >= 0) f(span.begin, open.window_source[window], KeptPlace{});
  for_each_staged(batch, open, [&](detail::Pin const& pin) {
    if (pin.position < span.begin) f(pin.position, KeptPlace{}, KeptPlace{pin.page / pins(), pin.page % pins()});
  });
}

// Calls f(position, kept place) for each pin whose rows are copied out of the ring once it has the chunk's own.
//
// They are all there. Those below the entry were there before the batch, or were restored. Since then the ring has lost
// the rows below the highest position written, less its size; and that position is less than the pin's + the rows of a
// chunk + the rows that may have been rejected, which with window - 1 is no more than the size (see `WindowGuard`).
template <class F>
void Books::for_each_window_snapshot(OpenBatch const& batch, std::int32_t window, OpenSlot const& open,
                                     ChunkSpan const& span, F f) const noexcept {
  if (!pin_windows_ || this->window(window).window == 1) return;
  for_each_staged(batch, open, [&](detail::Pin const& pin) {
    bool const here = pin.position > span.begin || (span.first && pin.position == span.begin);
    if (here && pin.position <= span.end) f(pin.position, KeptPlace{pin.page / pins(), pin.page % pins()});
  });
}

inline ComponentShape Books::count_window(OpenBatch const& batch, std::int32_t window,
                                          std::int32_t chunk) const noexcept {
  ComponentShape n;
  for_each_span(batch, chunk, [&](OpenSlot const& open, ChunkSpan const& span) {
    for_each_window_restore(batch, window, open, span, [&n](Position, KeptPlace, KeptPlace) { ++n.restores; });
    for_each_window_snapshot(batch, window, open, span, [&n](Position, KeptPlace) { ++n.snapshots; });
  });
  return n;
}

inline Lengths Books::window_lengths(std::int32_t window, Shape const& shape) const noexcept {
  Lengths n;
  if (window < 0 || window >= windows()) return n;
  Position const rows = this->window(window).window - 1;
  // No books are made whose own shapes pass 32 bits here; a shape of other books must not overflow.
  auto const times = [rows](std::int32_t count) {
    bool const fits = rows == 0 || count <= INT32_MAX / rows;
    return fits ? static_cast<std::int32_t>(count * rows) : INT32_MAX;
  };
  n.restores = times(shape.windows[window].restores);
  n.snapshots = times(shape.windows[window].snapshots);
  return n;
}

inline Verdict Books::plan_window(Ticket const& ticket, std::int32_t chunk, std::int32_t window, Shape const& shape,
                                  RowMap const& map, Lists& lists) const noexcept {
  OpenBatch const* const batch = find(ticket);
  if (batch == nullptr) return Verdict::unknown_ticket;
  if (chunk < 0 || chunk >= batch->chunks) return Verdict::unknown_chunk;
  if (window < 0 || window >= windows()) return Verdict::unknown_window;
  if (is_pending(*batch, chunk)) return Verdict::in_flight;
  Window const& kind = this->window(window);
  ComponentShape const& room = shape.windows[window];
  ComponentShape const used = count_window(*batch, window, chunk);
  if (used.restores > room.restores || used.snapshots > room.snapshots) return Verdict::shape_too_small;

  Position const rows = kind.window - 1;
  // The row of position q in the ring of a slot, or where a pin keeps it.
  auto const row = [&](std::int32_t slot, KeptPlace kept, Position q) {
    if (kept.place < 0) return map.live + std::int64_t{slot} * map.live_slot_stride + q % kind.rows;
    return map.kept + std::int64_t{kept.slot} * map.kept_slot_stride +
           std::int64_t{kept.place} * map.kept_place_stride + q % rows;
  };
  auto const put = [](std::int32_t* list, Position index, std::int64_t value) {
    if (list != nullptr) list[index] = static_cast<std::int32_t>(value);
  };
  lists.restores = lists.snapshots = lists.persists = lists.blocks = 0;
  for_each_span(*batch, chunk, [&](OpenSlot const& open, ChunkSpan const& span) {
    auto const copy = [&](std::int32_t* sources, std::int32_t* destinations, Position at, Position p, KeptPlace from,
                          KeptPlace to) {
      for (Position i = 0; i < rows; ++i) {
        Position const q = p - rows + i;
        put(sources, at * rows + i, q < 0 ? map.sink : row(open.slot, from, q));
        put(destinations, at * rows + i, q < 0 ? map.sink : row(open.slot, to, q));
      }
    };
    for_each_window_restore(*batch, window, open, span, [&](Position p, KeptPlace from, KeptPlace to) {
      copy(lists.restore_source, lists.restore_destination, lists.restores++, p, from, to);
    });
    for_each_window_snapshot(*batch, window, open, span, [&](Position p, KeptPlace to) {
      copy(lists.snapshot_source, lists.snapshot_destination, lists.snapshots++, p, KeptPlace{}, to);
    });
  });
  for (Position i = lists.restores * rows; i < room.restores * rows; ++i) {
    put(lists.restore_source, i, map.sink);
    put(lists.restore_destination, i, map.sink);
  }
  for (Position i = lists.snapshots * rows; i < room.snapshots * rows; ++i) {
    put(lists.snapshot_source, i, map.sink);
    put(lists.snapshot_destination, i, map.sink);
  }
  return Verdict::accepted;
}

}  // namespace v0_1
}  // namespace rollback
