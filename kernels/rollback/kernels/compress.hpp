// Pools the blocks that a chunk completes into compressed rows, finishes them and stores them in the cache.
#pragma once

#include <rollback/config.hpp>
#include <rollback/kernels/exponential.hpp>
#include <rollback/kernels/hadamard.hpp>
#include <rollback/kernels/quantize.hpp>
#include <rollback/kernels/rope.hpp>
#include <rollback/kernels/rows.hpp>
#include <rollback/position.hpp>

#include <cmath>
#include <cstdint>

namespace rollback {
inline namespace v0_1 {
namespace kernels {

/// One layer of one compressor. Row-major shapes. All memory is the caller's, where the launched team can reach it,
/// until the launch is done. Indices of rows are those of `SourceRows`; a negative one names the empty row of positions
/// below 0, which has no weight.
struct CompressParams {
  float const* state_kv;          // [state_rows, width], before the chunk is persisted
  float const* state_score;       // [state_rows, width]
  float const* fresh_kv;          // [fresh rows, width], as projected
  float const* fresh_score;       // [fresh rows, width], bias included
  std::int32_t const* previous;   // [blocks, ratio], rows of the block before, oldest first; not read without overlap
  std::int32_t const* current;    // [blocks, ratio], rows of the block itself, oldest first; at least one not empty
  std::int64_t const* cache_row;  // [blocks], where the compressed row goes; negative: an unused entry
  Position const* rope_position;  // [blocks], the first position of the block itself
  float* cache;                   // [cache rows, pooled]
  float const* norm;              // [pooled], the weight of the RMS norm
  float epsilon;                  // of the RMS norm, added to the mean of the squares
  Rope rope;                      // 2 * rope.pairs <= pooled
  bool hadamard;                  // only where pooled is a power of two
  Rounding rounding;
  std::int64_t state_rows;
  std::int32_t ratio;   // tokens of a block
  std::int64_t width;   // of a state row and of a fresh row: 2 * pooled with overlap, else pooled
  std::int64_t pooled;  // of a compressed row
  bool overlap;         // the block before is pooled too
  std::int64_t blocks;
};

/// Writes a compressed row for every listed block: gathers its rows, pools them with a softmax of its own for each
/// channel, then RMS norm, rotation, Hadamard transform and rounding, as far as asked for.
///
/// With overlap a token's row has two halves: the first stands for the token in the next block's row, the second in its
/// own block's. So the rows of `previous` give their columns [0, pooled), those of `current` [pooled, 2 * pooled).
///
/// One team a block; teams past `blocks` and unused entries do nothing. The compressed row is worked on in the cache,
/// so `cache_row` names no row twice and nobody else reads a listed row during the launch.
/// @par Cost  reads each listed value of the scores twice and of the keys once.
struct Compress {
  template <class Team>
  ROLLBACK_HD void operator()(Team const& team, CompressParams const& p) const {
    if (team.index >= p.blocks || p.cache_row[team.index] < 0) return;
    float* const row = p.cache + p.cache_row[team.index] * p.pooled;
    pool(team, p, row);
    finish(team, p, row);
  }

 private:
  template <class Team>
  ROLLBACK_HD static void pool(Team const& team, CompressParams const& p, float* row) {
    std::int64_t const block = team.index;
    team.for_each(p.pooled / Team::lanes, [&p, block, row](std::int64_t group) {
      pool_channels<Team::lanes>(p, block, group * Team::lanes, row);
    });
    std::int64_t const whole = p.pooled - p.pooled % Team::lanes;
    team.for_each(p.pooled - whole,
                  [&p, block, row, whole](std::int64_t i) { pool_channels<1>(p, block, whole + i, row); });
  }

  // Channels [channel, channel + Lanes) of one block: the softmax-weighted mean of the keys, channel by channel, items
  // in the order of the lists, so the result does not depend on Lanes.
  template <int Lanes>
  ROLLBACK_HD static void pool_channels(CompressParams const& p, std::int64_t block, std::int64_t channel, float* row) {
    SourceRows const scores = {p.state_score, p.fresh_score, p.state_rows, p.width};
    SourceRows const keys = {p.state_kv, p.fresh_kv, p.state_rows, p.width};
    std::int64_t const items = p.overlap ? 2 * p.ratio : p.ratio;

    float largest[Lanes];
    for (int lane = 0; lane < Lanes; ++lane) largest[lane] = -INFINITY;
    for (std::int64_t item = 0; item < items; ++item) {
      std::int64_t const index = row_index(p, block, item);
      if (index < 0) continue;
      float const* const score = scores.row(index) + first_column(p, item) + channel;
      for (int lane = 0; lane < Lanes; ++lane) {
        largest[lane] = score[lane] > largest[lane] ? score[lane] : largest[lane];
      }
    }

    float weights[Lanes] = {};
    float weighted[Lanes] = {};
    for (std::int64_t item = 0; item < items; ++item) {
      std::int64_t const index = row_index(p, block, item);
      if (index < 0) continue;  // the empty row has no weight
      float const* const score = scores.row(index) + first_column(p, item) + channel;
      float const* const key = keys.row(index) + first_column(p, item) + channel;
      float weight[Lanes];
      for (int lane = 0; lane < Lanes; ++lane) {
        float const exponent = score[lane] - largest[lane];
        weight[lane] = exponent < least_exponent ? least_exponent : exponent;
      }
      exponentials(weight);
      for (int lane = 0; lane < Lanes; ++lane) weights[lane] += weight[lane];
      for (int lane = 0; lane < Lanes; ++lane) weighted[lane] += weight[lane] * key[lane];
    }
    for (int lane = 0; lane < Lanes; ++lane) row[channel + lane] = weighted[lane] / weights[lane];
  }

  // Items of a block are the rows of the block before, then its own.
  ROLLBACK_HD static bool is_previous(CompressParams const& p, std::int64_t item) {
    return p.overlap && item < p.ratio;
  }

  ROLLBACK_HD static std::int64_t row_index(CompressParams const& p, std::int64_t block, std::int64_t item) {
    if (is_previous(p, item)) return p.previous[block * p.ratio + item];
    return p.current[block * p.ratio + (p.overlap ? item - p.ratio : item)];
  }

  ROLLBACK_HD static std::int64_t first_column(CompressParams const& p, std::int64_t item) {
    return p.overlap && !is_previous(p, item) ? p.pooled : 0;
  }

  template <class Team>
  ROLLBACK_HD static void finish(Team const& team, CompressParams const& p, float* row) {
    float const squares = team.sum(p.pooled, [row](std::int64_t i) { return row[i] * row[i]; });
    float const scale = 1.0f / std::sqrt(squares / static_cast<float>(p.pooled) + p.epsilon);
    team.for_each(p.pooled, [&p, row, scale](std::int64_t i) { row[i] = row[i] * scale * p.norm[i]; });

    Position const position = p.rope_position[team.index];
    team.for_each(p.rope.pairs,
                  [&p, row, position](std::int64_t i) { p.rope.rotate_pair(row, p.pooled, i, position, false); });

    if (p.hadamard) kernels::hadamard(team, row, p.pooled);
    if (p.rounding == Rounding::fp8) round_fp8_64(team, row, p.pooled - 2 * p.rope.pairs);
    if (p.rounding == Rounding::fp4) round_fp4_32(team, row, p.pooled);
  }
};

}  // namespace kernels
}  // namespace v0_1
}  // namespace rollback
