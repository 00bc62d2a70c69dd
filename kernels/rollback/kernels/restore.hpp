// Copies kept states back over live ones, or resets live ones, for all layers in one launch.
#pragma once

#include <rollback/config.hpp>
#include <rollback/plane.hpp>

#include <cstddef>
#include <cstdint>

namespace rollback {
inline namespace v0_1 {
namespace kernels {

/// All tensors have the same rows, of different width. All memory is the caller's, where the launched team can reach
/// it, until the launch is done.
struct RestoreParams {
  PlaneTensor const* tensors;       // [tensor_count]
  std::int32_t const* source;       // [n], first row of a kept state; negative: reset, fill with zero bytes
  std::int32_t const* destination;  // [n], first row of a live state; negative: an unused entry
  std::int64_t rows_per_plane;      // of one state
  std::int64_t n;
  std::int64_t tensor_count;
};

/// Writes `rows_per_plane` rows of every tensor for each entry: the kept ones, or zeros. Nothing else is touched.
///
/// One team an entry and tensor, n * tensor_count in all; teams past that do nothing. A destination overlaps no other
/// destination and no source.
/// @par Cost  2 * rows_per_plane * row_bytes bytes moved for each entry and tensor, half of it for a reset.
struct Restore {
  template <class Team>
  ROLLBACK_HD void operator()(Team const& team, RestoreParams const& p) const {
    if (team.index >= p.n * p.tensor_count) return;
    std::int64_t const entry = team.index / p.tensor_count;
    if (p.destination[entry] < 0) return;
    PlaneTensor const& tensor = p.tensors[team.index % p.tensor_count];
    std::byte* const to = tensor.base + p.destination[entry] * tensor.row_bytes;
    std::byte const* const from = p.source[entry] < 0 ? nullptr : tensor.base + p.source[entry] * tensor.row_bytes;
    std::int64_t const bytes = p.rows_per_plane * tensor.row_bytes;
    bool const aligned =
        (reinterpret_cast<std::uintptr_t>(tensor.base) | static_cast<std::uintptr_t>(tensor.row_bytes)) %
            sizeof(Vector) ==
        0;
    if (aligned) {
      copy_or_clear(team, reinterpret_cast<Vector const*>(from), reinterpret_cast<Vector*>(to),
                    bytes / static_cast<std::int64_t>(sizeof(Vector)));
    } else {
      copy_or_clear(team, from, to, bytes);
    }
  }

 private:
  struct alignas(16) Vector {
    std::byte bytes[16];  // of bytes, so that it may stand for memory that holds any type
  };

  // `from` is null for a reset.
  template <class Team, class Unit>
  ROLLBACK_HD static void copy_or_clear(Team const& team, Unit const* from, Unit* to, std::int64_t units) {
    if (from == nullptr) {
      team.for_each(units, [to](std::int64_t i) { to[i] = Unit{}; });
    } else {
      team.for_each(units, [from, to](std::int64_t i) { to[i] = from[i]; });
    }
  }
};

}  // namespace kernels
}  // namespace v0_1
}  // namespace rollback
