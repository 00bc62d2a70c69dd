// What one chunk must do, as flat lists of row indices in the engine's own row space, and how long the lists are.
#pragma once

#include <rollback/component.hpp>
#include <rollback/position.hpp>

#include <cstdint>

namespace rollback {
inline namespace v0_1 {

/// How long the lists of one component or window are, apart from those with an entry a row.
struct ComponentShape {
  std::int32_t restores = 0;   // plane copies before the chunk; of a window, copies of its rows
  std::int32_t snapshots = 0;  // states kept out of the chunk; of a window, copies of its rows after the chunk
  std::int32_t blocks = 0;     // blocks emitted

  friend constexpr bool operator==(ComponentShape a, ComponentShape b) noexcept {
    return a.restores == b.restores && a.snapshots == b.snapshots && a.blocks == b.blocks;
  }
  friend constexpr bool operator!=(ComponentShape a, ComponentShape b) noexcept { return !(a == b); }
};

/// The key on which list lengths depend, and nothing else: graphs that were built for one shape serve every chunk that
/// fits it. `Books::shape` gives the smallest of a chunk, its counts rounded up to a power of two; `Books::worst_shape`
/// one that fits every chunk of so many rows and sequences. Unused entries are filled as the `RowMap` says.
struct Shape {
  std::int32_t rows = 0;
  std::int32_t sequences = 0;
  ComponentShape components[max_components] = {};
  ComponentShape windows[max_windows] = {};  // of rows that pins keep; see `BooksOptions::pin_windows`

  friend constexpr bool operator==(Shape const& a, Shape const& b) noexcept {
    if (a.rows != b.rows || a.sequences != b.sequences) return false;
    for (int c = 0; c < max_components; ++c) {
      if (a.components[c] != b.components[c]) return false;
    }
    for (int w = 0; w < max_windows; ++w) {
      if (a.windows[w] != b.windows[w]) return false;
    }
    return true;
  }
  friend constexpr bool operator!=(Shape const& a, Shape const& b) noexcept { return !(a == b); }
};

/// Where an engine keeps the rows of one component or window: the numbers that lists are written in.
///
/// Row r of the plane at a live place is `live + slot * live_slot_stride + place * live_place_stride + r`, at a kept
/// place `kept + slot * kept_slot_stride + place * kept_place_stride + r` (kept places count from 0 again), on a page
/// that the engine handed out `page + number * page_stride + r`. Source rows of a chunk continue at `fresh`, one a row
/// of the chunk. Strides are in rows.
///
/// Of a window, the row of position q is `live + slot * live_slot_stride + q % Window::rows` in the slot's ring, and
/// `kept + slot * kept_slot_stride + pin * kept_place_stride + q % (window - 1)` where a pin keeps it. Of the rest only
/// `sink` matters, a row there.
struct RowMap {
  std::int32_t live = 0;
  std::int32_t live_slot_stride = 0;
  std::int32_t live_place_stride = 0;
  std::int32_t kept = 0;
  std::int32_t kept_slot_stride = 0;
  std::int32_t kept_place_stride = 0;
  std::int32_t page = 0;
  std::int32_t page_stride = 0;
  std::int32_t fresh = 0;   // source row of the chunk's first own row
  std::int32_t empty = -1;  // source row that stands for "no such position": value 0, score minus infinity
  std::int32_t reset = -1;  // source plane of a restore that empties: first row of a plane in the empty state; or -1
  std::int32_t sink = -1;   // where unused entries point, as source and destination: first row of a plane that nobody
                            // reads, counted in the budget; or -1
  std::int64_t cache = 0;   // row of a slot's emitted block w: cache + slot * cache_slot_stride + w
  std::int64_t cache_slot_stride = 0;
  std::int64_t cache_sink = -1;  // where unused block entries point; or -1

  /// All places of a slot together, slot by slot: [slots, places, rows]; then `pages` pages; fresh rows follow; unused
  /// entries are -1.
  [[nodiscard]] static constexpr RowMap packed(RowGeometry const& geometry, Places const& places, std::int32_t slots,
                                               std::int64_t cache_rows = 0, std::int32_t pages = 0) noexcept {
    RowMap map;
    map.live_place_stride = map.kept_place_stride = map.page_stride = geometry.rows;
    map.live_slot_stride = map.kept_slot_stride = places.total() * geometry.rows;
    map.kept = places.live * geometry.rows;
    map.page = slots * map.live_slot_stride;
    map.fresh = map.page + pages * map.page_stride;
    map.cache_slot_stride = cache_rows;
    return map;
  }
  /// Of a window: the rings of all slots, [slots, Window::rows], then what pins keep, [slots, pins, window - 1].
  [[nodiscard]] static constexpr RowMap packed_window(Window const& window, std::int32_t slots,
                                                      std::int32_t pins) noexcept {
    RowMap map;
    map.live_slot_stride = static_cast<std::int32_t>(window.rows);
    map.kept = slots * map.live_slot_stride;
    map.kept_place_stride = static_cast<std::int32_t>(window.window - 1);
    map.kept_slot_stride = pins * map.kept_place_stride;
    return map;
  }
};

/// How many entries each list of one component has, for one shape. Of a window only the first two, both row by row.
struct Lengths {
  std::int32_t restores = 0;   // restore_source, restore_destination
  std::int32_t snapshots = 0;  // snapshot_source, snapshot_destination: states * rows of a plane
  std::int32_t rows = 0;    // persist_source, persist_destination, visible; 0 where nothing is emitted or kept by row
  std::int32_t blocks = 0;  // block_row, block_position, block_slot
  std::int32_t block_reads = 0;  // block_current, and block_previous with overlap: blocks * block
};

/// The lists of one component for one chunk, in memory that the engine provides (lengths: `Books::lengths`).
///
/// Order of work: the restores; then the chunk's own rows are computed; then blocks are emitted and states are kept,
/// both of which read the rows before the chunk and the chunk's own; then the chunk's rows are persisted; then
/// attention reads. A plane that is overwritten in place (one row, no blocks) keeps its states after it was advanced
/// instead. Of a window the restores come before the chunk's rows go into the rings, and the snapshots after. Within a
/// list no entry reads what another one writes, so any order, or all at once, is right.
struct Lists {
  // Plane copies before anything else.
  std::int32_t* restore_source = nullptr;  // [restores] first row of the plane, or `reset`: becomes the empty state
  std::int32_t* restore_destination = nullptr;  // [restores] first row of the plane

  // States to keep, row by row: [snapshots, rows of a plane], plane after plane.
  std::int32_t* snapshot_source = nullptr;       // a state row or a fresh row
  std::int32_t* snapshot_destination = nullptr;  // a row of a kept place

  // The chunk's rows into the ring. Where two rows of the chunk share a ring row, the later one has it.
  std::int32_t* persist_source = nullptr;       // [rows] row of the chunk, from 0
  std::int32_t* persist_destination = nullptr;  // [rows] live ring row

  // Emitted blocks: slot after slot, in rising positions.
  std::int32_t* block_previous = nullptr;  // [blocks, block] rows of the block before, with overlap only
  std::int32_t* block_current = nullptr;   // [blocks, block]
  std::int64_t* block_row = nullptr;       // [blocks] where the block goes in the cache
  Position* block_position = nullptr;      // [blocks] first position of the block: its rotary position
  std::int32_t* block_slot = nullptr;      // [blocks] slot index; -1 in unused entries

  std::int64_t* visible = nullptr;  // [rows] emitted blocks that the row's token may read: (position + 1) / block

  // How many entries are used; the others are filled.
  std::int32_t restores = 0;   // of a window, copies: window - 1 entries each
  std::int32_t snapshots = 0;  // states, not rows; of a window, copies
  std::int32_t persists = 0;   // rows that are not padding
  std::int32_t blocks = 0;
};

}  // namespace v0_1
}  // namespace rollback
