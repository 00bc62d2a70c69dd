// A toy engine's fork: the books share what has history, the engine copies the rest.
#pragma once

#include "toy_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace toy {

/// Forks a slot; what has no history, compressed caches and window rows, is copied, as an engine does.
inline Verdict fork(Engine& engine, std::size_t from, Position p, std::size_t to) {
  Verdict const verdict = engine.books.fork(engine.slots[from], p, engine.slots[to]);
  if (verdict != Verdict::accepted) return verdict;
  engine.history[to] = engine.history[from];
  engine.history[to].truncate(p);
  engine.expected[to].fork(engine.expected[from], p);
  auto const copy = [from, to](std::vector<Row>& rows, std::int64_t base, std::int64_t stride) {
    auto const source = rows.begin() + base + static_cast<std::int64_t>(from) * stride;
    std::copy(source, source + stride, rows.begin() + base + static_cast<std::int64_t>(to) * stride);
  };
  for (std::size_t c = 0; c < engine.maps.size(); ++c) {
    copy(engine.storage.caches[c], engine.maps[c].cache, engine.maps[c].cache_slot_stride);
  }
  for (std::size_t w = 0; w < engine.storage.windows.size(); ++w) {
    copy(engine.storage.windows[w], 0, engine.options.books.windows[w].rows);
  }
  return verdict;
}

}  // namespace toy
