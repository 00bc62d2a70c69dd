// A small DSV4 model and batches of one slot, for the tests of its memory.
#pragma once

#include <rollback/dsv4/memory.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace dsv4_small {

using rollback::Batch;
using rollback::Position;
using rollback::Slot;
using rollback::Unverified;
using rollback::dsv4::MemoryOptions;
using rollback::dsv4::ModelShape;

inline ModelShape small_shape(std::vector<int> ratios) {
  ModelShape shape;
  shape.ratios = std::move(ratios);
  shape.head_width = 8;
  shape.rotary_width = 4;
  shape.indexer_width = 4;
  shape.window = 6;
  return shape;
}

inline MemoryOptions small_options() {
  MemoryOptions options;
  options.slots = 2;
  options.per_token = 3;
  options.aligned = 2;
  options.quantum = 16;
  options.max_context = 1001;
  options.max_rows = 12;
  return options;
}

// A batch of the next rows of slot 0, in chunks of at most `chunk` rows.
struct Rows {
  std::vector<Slot> slots;
  std::vector<Position> positions;
  std::vector<std::int32_t> ends;
  Unverified unverified;
  Batch batch;
  Rows(Slot slot, Position tip, std::int32_t rows, std::int32_t rejectable, std::int32_t chunk) {
    for (std::int32_t i = 0; i < rows; ++i) {
      slots.push_back(slot);
      positions.push_back(tip + i);
      if ((i + 1) % chunk == 0 || i + 1 == rows) ends.push_back(i + 1);
    }
    unverified = {slot, rejectable};
    batch = {slots.data(), positions.data(), rows, ends.data(), static_cast<std::int32_t>(ends.size()), &unverified, 1};
  }
};

}  // namespace dsv4_small
