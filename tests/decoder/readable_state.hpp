// What of a DSV4 memory a later step can read, and a poison for all of it.
#pragma once

#include <rollback/dsv4/memory.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

/// Every value of slot `slot` that a token at its tip or later can read, in a fixed order. The state must be in the
/// live planes: no restore armed.
///
/// Of the raw rows the last window - 1; of the compressed caches all finished rows; of CSA and LID the rows of the
/// open block, and of the block before it the half that the next block pools (the first); of HCA the open block.
inline std::vector<float> readable_state(rollback::dsv4::Memory& memory, std::int32_t slot) {
  using rollback::Position;
  using rollback::dsv4::Compressor;
  std::vector<float> values;
  auto const take = [&values](float const* first, std::int64_t count) {
    values.insert(values.end(), first, first + count);
  };
  rollback::Books const& books = memory.books();
  Position const tip = books.tip(books.slot(slot));
  for (int layer = 0; layer < memory.shape().layers(); ++layer) {
    int const ratio = memory.shape().ratios[static_cast<std::size_t>(layer)];
    for (Position p = std::max(Position{0}, tip - (memory.shape().window - 1)); p < tip; ++p) {
      take(memory.raw_row(layer, slot, p), memory.shape().head_width);
    }
    if (ratio == 0) continue;
    take(memory.compressed_rows(layer, slot), tip / ratio * memory.shape().head_width);
    if (ratio == 4) take(memory.indexer_rows(layer, slot), tip / ratio * memory.shape().indexer_width);

    auto const state = [&](Compressor compressor) {
      rollback::dsv4::Memory::LayerView const& view = memory.view(compressor, layer);
      rollback::RowMap const& map = memory.row_map(compressor);
      rollback::RowGeometry const g = rollback::dsv4::Memory::geometry(compressor);
      std::int64_t const width = memory.width(compressor);
      std::int64_t const plane =
          map.live + slot * map.live_slot_stride + books.live_place(books.slot(slot)) * map.live_place_stride;
      Position const block = tip / g.block * g.block;
      for (Position p = std::max(Position{0}, g.overlap ? block - g.block : block); p < tip; ++p) {
        std::int64_t const at = (plane + p % g.rows) * width;
        std::int64_t const count = p < block ? width / 2 : width;
        take(view.kv + at, count);
        take(view.score + at, count);
      }
    };
    if (ratio == 4) {
      state(Compressor::csa);
      state(Compressor::lid);
    } else {
      state(Compressor::hca);
    }
  }
  return values;
}

/// Whether two lists of values are the same bit by bit.
inline bool same_bits(std::vector<float> const& a, std::vector<float> const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// Overwrites every value of the memory, of all slots.
inline void fill_all(rollback::dsv4::Memory& memory, float value) {
  using rollback::dsv4::Compressor;
  auto const& options = memory.options();
  for (int layer = 0; layer < memory.shape().layers(); ++layer) {
    std::fill_n(memory.raw_row(layer, 0, 0), options.slots * options.raw_rows * memory.shape().head_width, value);
    for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
      int const ratio = memory.shape().ratios[static_cast<std::size_t>(layer)];
      if (ratio != (compressor == Compressor::hca ? 128 : 4)) continue;
      auto const& view = memory.view(compressor, layer);
      std::fill_n(view.kv, view.state_rows * memory.width(compressor), value);
      std::fill_n(view.score, view.state_rows * memory.width(compressor), value);
      std::fill_n(view.cache, options.slots * view.cache_rows * memory.pooled(compressor), value);
    }
  }
}

/// Right after a rollback to `tip` was accepted: overwrites what a later step may not read. That is every live plane,
/// since the armed restore brings what is needed of it, raw rows and compressed rows past the tip, and raw rows that
/// have left the window.
inline void poison_unreadable(rollback::dsv4::Memory& memory, std::int32_t slot, float value) {
  using rollback::Position;
  using rollback::dsv4::Compressor;
  rollback::Books const& books = memory.books();
  Position const tip = books.tip(books.slot(slot));
  auto const& options = memory.options();
  for (int layer = 0; layer < memory.shape().layers(); ++layer) {
    int const ratio = memory.shape().ratios[static_cast<std::size_t>(layer)];
    std::vector<bool> kept(static_cast<std::size_t>(options.raw_rows), false);
    for (Position p = std::max(Position{0}, tip - (memory.shape().window - 1)); p < tip; ++p) {
      kept[static_cast<std::size_t>(p % options.raw_rows)] = true;
    }
    for (Position row = 0; row < options.raw_rows; ++row) {
      if (!kept[static_cast<std::size_t>(row)]) {
        std::fill_n(memory.raw_row(layer, slot, row), memory.shape().head_width, value);
      }
    }
    for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
      if (ratio != (compressor == Compressor::hca ? 128 : 4)) continue;
      auto const& view = memory.view(compressor, layer);
      rollback::RowMap const& map = memory.row_map(compressor);
      std::int64_t const width = memory.width(compressor);
      std::int64_t const first = map.live + slot * map.live_slot_stride;
      std::int64_t const rows =
          (options.entry_copy ? 1 + options.steps_in_flight : 1) * rollback::dsv4::Memory::geometry(compressor).rows;
      std::fill_n(view.kv + first * width, rows * width, value);
      std::fill_n(view.score + first * width, rows * width, value);
      std::int64_t const pooled = memory.pooled(compressor);
      float* const cache = view.cache + slot * view.cache_rows * pooled;
      std::fill(cache + tip / ratio * pooled, cache + view.cache_rows * pooled, value);
    }
  }
}
