// Saved states of a toy engine: its layout, and a sink and a source that copy between its storage and a block of bytes.
#pragma once

#include <rollback/state_io.hpp>

#include "toy_engine.hpp"
#include "toy_storage.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace toy {

using Blob = std::vector<unsigned char>;

/// Every row as two tensors: a layer's keys, and its scores.
struct ToyLayout {
  static constexpr std::uint64_t row_bytes[2] = {sizeof(Row) / 2, sizeof(Row) / 2};
  rollback::StateLayout layout;

  ToyLayout(Books const& books, std::vector<RowMap> const& maps, std::vector<RowMap> const& window_maps) {
    layout.model = 7;
    for (std::size_t c = 0; c < maps.size(); ++c) {
      layout.states[c] = {2, row_bytes};
      if (books.component(static_cast<std::int32_t>(c)).geometry.block > 0) layout.caches[c] = {2, row_bytes};
      layout.maps[c] = maps[c];
    }
    for (std::int32_t w = 0; w < books.windows(); ++w) layout.windows[w] = {2, row_bytes};
    std::copy(window_maps.begin(), window_maps.end(), layout.window_maps);
  }
};

/// Where a row of a layer is; null where the storage has no such row.
inline unsigned char* state_row(Storage& storage, rollback::StateRows const& rows, std::int64_t row) {
  using Store = rollback::StateRows::Store;
  auto& store = rows.store == Store::state   ? storage.planes
                : rows.store == Store::cache ? storage.caches
                                             : storage.windows;
  std::vector<Row>& all = store[static_cast<std::size_t>(rows.index)];
  if (row < 0 || row >= static_cast<std::int64_t>(all.size())) return nullptr;
  auto* const words = all[static_cast<std::size_t>(row)].data();
  return reinterpret_cast<unsigned char*>(words) + static_cast<std::size_t>(rows.layer) * rows.row_bytes;
}

struct StateSink {
  Storage const& storage;
  Blob& blob;
  std::int64_t fails_after = INT64_MAX;  // calls

  bool bytes(void const* data, std::size_t size) {
    auto const* const first = static_cast<unsigned char const*>(data);
    if (fails_after-- <= 0) return false;
    blob.insert(blob.end(), first, first + size);
    return true;
  }
  bool rows(rollback::StateRows const& rows, rollback::Checksum& checksum) {
    for (std::int64_t i = 0; i < rows.count; ++i) {
      auto const* const row = state_row(const_cast<Storage&>(storage), rows, rows.first[0] + i);
      if (row == nullptr || !bytes(row, rows.row_bytes)) return false;
      checksum.update(row, rows.row_bytes);
    }
    return true;
  }
};

struct StateSource {
  Storage& storage;
  Blob const& blob;
  std::size_t at = 0;

  bool bytes(void* data, std::size_t size) {
    if (size > blob.size() - at) return false;
    std::memcpy(data, blob.data() + at, size);
    at += size;
    return true;
  }
  bool rows(rollback::StateRows const& rows, rollback::Checksum& checksum) {
    for (std::int64_t i = 0; i < rows.count; ++i) {
      unsigned char bytes_of_row[sizeof(Row)];
      if (!bytes(bytes_of_row, rows.row_bytes)) return false;
      checksum.update(bytes_of_row, rows.row_bytes);
      for (std::int32_t copy = 0; copy < rows.copies; ++copy) {
        auto* const row = state_row(storage, rows, rows.first[copy] + i);
        if (row == nullptr) return false;
        std::memcpy(row, bytes_of_row, rows.row_bytes);
      }
    }
    return true;
  }
};

/// Saves a slot of the toy engine, and sees that its size was foretold.
inline Verdict save(Engine const& engine, std::size_t s, Position p, Blob& blob, rollback::SaveOptions options = {}) {
  ToyLayout const toy(engine.books, engine.maps, engine.window_maps);
  blob.clear();
  StateSink sink{engine.storage, blob};
  std::uint64_t const foretold = rollback::saved_bytes(engine.books, engine.slots[s], p, toy.layout, options);
  Verdict const verdict = rollback::save(engine.books, engine.slots[s], p, toy.layout, options, sink);
  return foretold == blob.size() ? verdict : Verdict::damaged;
}

/// The landings below `p` that a save with history names, in falling order.
inline std::vector<Position> saved_landings(Engine const& engine, std::size_t s, Position p) {
  std::vector<Position> landings;
  while ((p = engine.books.landing_before(engine.slots[s], p)) > 0) landings.push_back(p);
  return landings;
}

/// Loads what a slot with that history was saved as at `p` with `landings` (falling) into slot `s`.
inline Verdict load(Engine& engine, std::size_t s, Blob const& blob, History const& history, Position p,
                    std::vector<Position> const& landings, rollback::LoadAs as = rollback::LoadAs::state) {
  ToyLayout const toy(engine.books, engine.maps, engine.window_maps);
  StateSource checked{engine.storage, blob};
  Verdict const would = rollback::check(engine.books, toy.layout, as, checked);
  StateSource source{engine.storage, blob};
  Verdict const verdict = rollback::load(engine.books, engine.slots[s], toy.layout, as, source);
  if (verdict == Verdict::accepted) {
    engine.history[s] = history;
    engine.history[s].truncate(p);
    engine.expected[s].load(p, landings, as == rollback::LoadAs::landing);
  }
  return would == verdict || verdict == Verdict::in_flight ? verdict : Verdict::damaged;
}

}  // namespace toy
