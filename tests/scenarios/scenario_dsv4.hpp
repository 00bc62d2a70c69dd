// The books of a small DSV4 model's memory, fed without a model, for the recipes that are about landings alone.
#pragma once

#include <rollback/feed.hpp>

#include "dsv4_small.hpp"
#include "scenario.hpp"

#include <cstdint>

namespace scenario {

using rollback::dsv4::Memory;
using rollback::dsv4::MemoryOptions;

/// One sequence of up to 2,048 tokens, with layers of every ratio and a window of 128.
inline Memory small_memory(Depths d, std::int32_t chunk = whole, Position raw_rows = 0) {
  auto shape = dsv4_small::small_shape({0, 4, 128});
  shape.window = 128;
  MemoryOptions o;
  o.per_token = d.per_token;
  o.aligned = d.aligned;
  o.quantum = d.aligned > 0 ? d.quantum : 128;
  o.max_context = 2048;
  o.max_rows = whole;
  o.max_chunk_rows = chunk;
  o.raw_rows = raw_rows;
  return Memory(shape, o);
}

/// Feeds rows to the books alone, all of which are accepted.
inline void feed_books(Books& books, Slot slot, std::int32_t rows, std::int32_t chunk = whole) {
  rollback::Feed feeder(books, rows, chunk);
  REQUIRE(feeder.run(slot, rows, [](rollback::FeedChunk const&) { return true; }) == Verdict::accepted);
}

}  // namespace scenario
