// One layer of one compressor, run with the kernels over rings of state rows: the plan of a chunk in its plainest form.
#pragma once

#include "values.hpp"

#include <rollback/kernels/compress.hpp>
#include <rollback/kernels/persist.hpp>
#include <rollback/kernels/project.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernel_tests {

namespace kernels = rollback::kernels;
using rollback::Position;

struct CompressorShape {
  std::int32_t ratio = 4;
  bool overlap = true;
  std::int64_t pooled = 32;
  std::int64_t inputs = 48;
  int rotary_width = 16;
  bool hadamard = false;
  kernels::Rounding rounding = kernels::Rounding::none;
  std::int32_t extra_rows = 0;  // of the ring, beyond what a run without rollback needs

  std::int64_t width() const { return overlap ? 2 * pooled : pooled; }
  std::int32_t ring_rows() const { return (overlap ? 2 * ratio : ratio) + extra_rows; }
  kernels::Rope rope() const { return kernels::Rope::yarn(rotary_width, 160000, {16, 65536}); }
};

struct Token {
  std::int32_t slot;  // negative: a padded row
  Position position;
  std::int32_t timeline = 0;  // what was fed there first, or something else after a rollback
};

/// The input row of a token: another one for every slot, position and timeline.
inline std::vector<float> input_of(Token token, std::int64_t inputs) {
  return random_values(
      inputs, static_cast<std::uint32_t>(token.slot * 100003 + token.position + 17 + token.timeline * 5000011));
}

struct RingCompressor {
  CompressorShape shape;
  std::int64_t cache_rows;  // of one slot
  std::int64_t state_rows;  // of all slots
  std::vector<float> kv_weight, gate_weight, ape, norm;
  std::vector<float> state_kv, state_score;  // [state_rows, width]
  std::vector<float> fresh_kv, fresh_score;  // [rows of the last chunk, width]
  std::vector<float> cache;                  // [slots * cache_rows, pooled]

  RingCompressor(CompressorShape const& of, std::int32_t slots, std::int64_t rows_of_cache)
      : shape(of),
        cache_rows(rows_of_cache),
        state_rows(slots * of.ring_rows()),
        kv_weight(random_values(of.width() * of.inputs, 1)),
        gate_weight(random_values(of.width() * of.inputs, 2)),
        ape(random_values(of.ratio * of.width(), 3)),
        norm(random_values(of.pooled, 4)),
        state_kv(stale_values(state_rows * of.width())),
        state_score(stale_values(state_rows * of.width())),
        cache(stale_values(slots * rows_of_cache * of.pooled)) {}

  /// Runs one chunk: project, compress, persist. Every list has an unused entry at its end.
  template <class Launcher>
  void feed(Launcher const& launcher, std::vector<Token> const& chunk) {
    auto const rows = static_cast<std::int64_t>(chunk.size());
    std::vector<float> x;
    std::vector<Position> positions;
    for (Token token : chunk) {
      auto const row = input_of(token, shape.inputs);
      x.insert(x.end(), row.begin(), row.end());
      positions.push_back(token.slot < 0 ? -1 : token.position);
    }
    fresh_kv = stale_values(rows * shape.width());
    fresh_score = stale_values(rows * shape.width());
    launcher.launch(
        rows, kernels::Project{},
        kernels::ProjectParams{x.data(), kv_weight.data(), gate_weight.data(), ape.data(), positions.data(),
                               shape.ratio, rows, shape.inputs, shape.width(), fresh_kv.data(), fresh_score.data()});

    std::vector<std::int32_t> previous, current;
    std::vector<std::int64_t> cache_row;
    std::vector<Position> rope_position;
    for (Token token : chunk) {
      if (token.slot < 0 || (token.position + 1) % shape.ratio != 0) continue;
      Position const first = token.position + 1 - shape.ratio;
      for (Position p = first; p <= token.position; ++p) {
        previous.push_back(source_of(chunk, {token.slot, p - shape.ratio}));
        current.push_back(source_of(chunk, {token.slot, p}));
      }
      cache_row.push_back(token.slot * cache_rows + token.position / shape.ratio);
      rope_position.push_back(first);
    }
    previous.resize(previous.size() + static_cast<std::size_t>(shape.ratio), -1);
    current.resize(current.size() + static_cast<std::size_t>(shape.ratio), -1);
    cache_row.push_back(-1);
    rope_position.push_back(0);
    auto const blocks = static_cast<std::int64_t>(cache_row.size());
    launcher.launch(blocks, kernels::Compress{},
                    kernels::CompressParams{
                        state_kv.data(), state_score.data(), fresh_kv.data(),      fresh_score.data(), previous.data(),
                        current.data(),  cache_row.data(),   rope_position.data(), cache.data(),       norm.data(),
                        1e-6f,           shape.rope(),       shape.hadamard,       shape.rounding,     state_rows,
                        shape.ratio,     shape.width(),      shape.pooled,         shape.overlap,      blocks});

    std::vector<std::int32_t> source, destination;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      std::int32_t const row = chunk[i].slot < 0 ? -1 : ring_row(chunk[i]);
      for (std::int32_t& earlier : destination) earlier = earlier == row ? -1 : earlier;  // superseded
      source.push_back(static_cast<std::int32_t>(i));
      destination.push_back(row);
    }
    launcher.launch(rows, kernels::Persist{},
                    kernels::PersistParams{fresh_kv.data(), fresh_score.data(), source.data(), destination.data(),
                                           state_kv.data(), state_score.data(), shape.width(), rows});
  }

  std::int32_t ring_row(Token token) const {
    return token.slot * shape.ring_rows() + static_cast<std::int32_t>(token.position % shape.ring_rows());
  }

  // State rows first, then the chunk's own; below position 0 there is none.
  std::int32_t source_of(std::vector<Token> const& chunk, Token wanted) const {
    if (wanted.position < 0) return -1;
    auto const at = std::find_if(chunk.begin(), chunk.end(), [wanted](Token token) {
      return token.slot == wanted.slot && token.position == wanted.position;
    });
    if (at == chunk.end()) return ring_row(wanted);
    return static_cast<std::int32_t>(state_rows + (at - chunk.begin()));
  }
};

}  // namespace kernel_tests
