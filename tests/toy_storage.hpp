// What the toy engine is made for, all that it owns, and where in it its planes are.
#pragma once

#include <rollback/books.hpp>

#include "toy_planes.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace toy {

using rollback::BooksOptions;

struct EngineOptions {
  BooksOptions books;
  Position context = 2048;         // positions that the caches have room for
  bool sinks = false;              // unused entries point at rows of their own; else they are -1 and places are packed
  bool worst_shapes = false;       // lists as long as any chunk can need
  std::int32_t given = INT32_MAX;  // pages of every tier that are handed out at once
  bool holes = false;              // there are not pages for all boundaries
};

/// Options of an engine whose chunks may have `chunk_rows` rows and whose batches `rows`.
inline EngineOptions engine_options(std::vector<Component> components, std::int32_t n, std::int32_t rows,
                                    std::int32_t chunk_rows, std::vector<Window> windows = {}) {
  EngineOptions o;
  o.books.slots = n;
  o.books.max_rows = o.books.max_chunks = rows;
  o.books.max_chunk_rows = chunk_rows;
  o.books.components = std::move(components);
  o.books.windows = std::move(windows);
  return o;
}

/// All that an engine owns: [component or window][row].
struct Storage {
  std::vector<std::vector<Row>> planes, caches, windows;

  friend bool operator==(Storage const& a, Storage const& b) {
    return a.planes == b.planes && a.caches == b.caches && a.windows == b.windows;
  }
};

inline std::vector<Row> storage_rows(std::int64_t rows) {
  return std::vector<Row>(static_cast<std::size_t>(rows), Row{0x3e3e3e3e, 0x3e3e3e3e, 0x3e3e3e3e, 0x3e3e3e3e});
}

/// A store full of 0x3e for the planes of a component, and one for its emitted blocks; where their rows are.
inline rollback::RowMap make_planes(rollback::Books const& books, std::int32_t c, EngineOptions const& o,
                                    Storage& storage) {
  rollback::RowGeometry const& g = books.component(c).geometry;
  rollback::Places const places = books.places(c);
  std::int32_t const n = books.slots();
  Position const cache_rows = g.block > 0 ? o.context / g.block : 0;
  rollback::RowMap map = rollback::RowMap::packed(g, places, n, cache_rows, books.pages(c));
  if (o.sinks) {  // sink, reset and empty rows; all live places; pages; all kept places; fresh rows
    map.sink = 0;
    map.reset = g.rows;
    map.empty = 2 * g.rows;
    map.live = 2 * g.rows + 1;
    map.live_slot_stride = places.live * g.rows;
    map.page = map.live + n * map.live_slot_stride;
    map.kept = map.page + books.pages(c) * map.page_stride;
    map.kept_slot_stride = (places.total() - places.live) * g.rows;
    map.fresh = map.kept + n * map.kept_slot_stride;
    map.cache = 1;
    map.cache_sink = 0;
  }
  storage.planes.push_back(storage_rows(map.fresh + o.books.max_rows));
  storage.caches.push_back(storage_rows(map.cache + n * cache_rows));
  for (std::int32_t r = 0; r < g.rows && o.sinks; ++r) {
    storage.planes.back()[static_cast<std::size_t>(map.reset + r)] = Row{};
  }
  return map;
}

}  // namespace toy
