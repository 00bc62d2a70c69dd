// Copies the rows that make up a snapshot into the place where it is kept.
#pragma once

#include <rollback/config.hpp>
#include <rollback/kernels/rows.hpp>

#include <cstdint>

namespace rollback {
inline namespace v0_1 {
namespace kernels {

/// One layer of one compressor. Row-major shapes. All memory is the caller's, where the launched team can reach it,
/// until the launch is done. Sources are indices of `SourceRows`; a destination is a state row.
struct GatherParams {
  float* state_kv;                  // [state_rows, width], live rows and kept places
  float* state_score;               // [state_rows, width]
  float const* fresh_kv;            // [fresh rows, width]
  float const* fresh_score;         // [fresh rows, width]
  std::int32_t const* source;       // [n]; negative: an unused entry
  std::int32_t const* destination;  // [n], a row of a kept place; negative: an unused entry
  std::int64_t state_rows;
  std::int64_t width;
  std::int64_t n;
};

/// Copies both planes of each listed row, of the state before the chunk or of the chunk itself, to a kept place, so
/// that a boundary inside the chunk can be kept without running up to it first.
///
/// One team an entry; teams past `n` do nothing. No destination is listed twice, and none is the source of another
/// entry.
/// @par Cost  reads and writes 2 * width values an entry.
struct Gather {
  template <class Team>
  ROLLBACK_HD void operator()(Team const& team, GatherParams const& p) const {
    if (team.index >= p.n || p.source[team.index] < 0 || p.destination[team.index] < 0) return;
    SourceRows const keys = {p.state_kv, p.fresh_kv, p.state_rows, p.width};
    SourceRows const scores = {p.state_score, p.fresh_score, p.state_rows, p.width};
    std::int64_t const to = p.destination[team.index] * p.width;
    copy_row(team, keys.row(p.source[team.index]), p.state_kv + to, p.width);
    copy_row(team, scores.row(p.source[team.index]), p.state_score + to, p.width);
  }
};

}  // namespace kernels
}  // namespace v0_1
}  // namespace rollback
