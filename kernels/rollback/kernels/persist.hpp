// Writes a chunk's fresh rows into the live rows of a compressor's state.
#pragma once

#include <rollback/config.hpp>
#include <rollback/kernels/rows.hpp>

#include <cstdint>

namespace rollback {
inline namespace v0_1 {
namespace kernels {

/// One layer of one compressor. Row-major shapes. All memory is the caller's, where the launched team can reach it,
/// until the launch is done.
struct PersistParams {
  float const* fresh_kv;            // [fresh rows, width]
  float const* fresh_score;         // [fresh rows, width]
  std::int32_t const* source;       // [n], a fresh row
  std::int32_t const* destination;  // [n], a state row; negative: an unused entry
  float* state_kv;                  // [state rows, width]
  float* state_score;               // [state rows, width]
  std::int64_t width;
  std::int64_t n;
};

/// Copies both planes of each listed fresh row to its place in the state. Launched after `Compress` and `Gather` of the
/// same chunk, which read the state as it was before.
///
/// One team an entry; teams past `n` do nothing. No state row is listed twice: of a chunk's rows that fall on one, the
/// list keeps the last.
/// @par Cost  reads and writes 2 * width values an entry.
struct Persist {
  template <class Team>
  ROLLBACK_HD void operator()(Team const& team, PersistParams const& p) const {
    if (team.index >= p.n || p.destination[team.index] < 0) return;
    std::int64_t const from = p.source[team.index] * p.width;
    std::int64_t const to = p.destination[team.index] * p.width;
    copy_row(team, p.fresh_kv + from, p.state_kv + to, p.width);
    copy_row(team, p.fresh_score + from, p.state_score + to, p.width);
  }
};

}  // namespace kernels
}  // namespace v0_1
}  // namespace rollback
