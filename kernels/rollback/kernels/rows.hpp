// How an index of a plan's list names a row of a compressor's state, and how a team copies such a row.
#pragma once

#include <rollback/config.hpp>

#include <cstdint>

namespace rollback {
inline namespace v0_1 {
namespace kernels {

/// The rows that the lists of one chunk name, in two places that are counted as one: `[0, state_rows)` are rows of the
/// state as it was before the chunk, `state_rows + i` is fresh row i, the projection of the chunk's own row i. A
/// negative index names no row. Both planes, keys and scores, are laid out alike.
struct SourceRows {
  float const* state;       // [state_rows, width]
  float const* fresh;       // [fresh rows, width]
  std::int64_t state_rows;  // of all slots, live and kept places
  std::int64_t width;       // values in a row

  /// The first value of row `index`. Requires index >= 0.
  [[nodiscard]] ROLLBACK_HD float const* row(std::int64_t index) const {
    return index < state_rows ? state + index * width : fresh + (index - state_rows) * width;
  }
};

namespace detail {

template <int Count>
ROLLBACK_HD void copy_values(float const* from, float* to) {
  float taken[Count];  // all loads before the first store: a compiler cannot know that the rows are apart
  for (int i = 0; i < Count; ++i) taken[i] = from[i];
  for (int i = 0; i < Count; ++i) to[i] = taken[i];
}

}  // namespace detail

/// The team copies `width` values. The two rows do not overlap.
template <class Team>
ROLLBACK_HD void copy_row(Team const& team, float const* from, float* to, std::int64_t width) {
  team.for_each(width / Team::lanes, [from, to](std::int64_t group) {
    detail::copy_values<Team::lanes>(from + group * Team::lanes, to + group * Team::lanes);
  });
  std::int64_t const whole = width - width % Team::lanes;
  team.for_each(width - whole, [from, to, whole](std::int64_t i) { to[whole + i] = from[whole + i]; });
}

}  // namespace kernels
}  // namespace v0_1
}  // namespace rollback
