// What the toy engine is made for, and all that it owns.
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
  Position context = 2048;    // positions that the caches have room for
  bool sinks = false;         // unused entries point at rows of their own; else they are -1 and places are packed
  bool worst_shapes = false;  // lists as long as any chunk can need
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

}  // namespace toy
