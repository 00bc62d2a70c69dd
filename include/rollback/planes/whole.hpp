// The plainest strategy: a kept state is a copy of the whole plane. Serves any recurrent state.
#pragma once

#include <rollback/plane.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rollback {
inline namespace v0_1 {

/// A plane of one tensor or more in host memory, one a layer as engines have them, each [states, row_bytes].
///
/// A view: neither the tensors nor the list of them is owned. State s is row s of every tensor. The empty state is all
/// zero bytes. A copy moves `2 * state_bytes()` bytes.
class WholePlane {
 public:
  /// @param tensors  [count], must outlive the plane; each with room for `states` rows
  WholePlane(PlaneTensor const* tensors, std::int32_t count, std::int64_t states)
      : tensors_(tensors), count_(count), states_(states) {
    if (count < 1 || tensors == nullptr)
      detail::refuse_setup("WholePlane: count is the tensors; it must be at least 1");
    if (states < 1) detail::refuse_setup("WholePlane: states is the rows of each tensor; it must be at least 1");
    for (std::int32_t t = 0; t < count; ++t) {
      if (tensors[t].base == nullptr || tensors[t].row_bytes < 1) {
        detail::refuse_setup("WholePlane: a tensor's base must not be null and its row_bytes must be at least 1");
      }
    }
  }

  void copy(std::int32_t source, std::int32_t destination) noexcept {
    for (std::int32_t t = 0; t < count_; ++t) {
      std::memcpy(row(t, destination), row(t, source), static_cast<std::size_t>(tensors_[t].row_bytes));
    }
  }

  void clear(std::int32_t destination) noexcept {
    for (std::int32_t t = 0; t < count_; ++t) {
      std::memset(row(t, destination), 0, static_cast<std::size_t>(tensors_[t].row_bytes));
    }
  }

  [[nodiscard]] std::int64_t states() const noexcept { return states_; }

  [[nodiscard]] std::size_t state_bytes() const noexcept {
    std::size_t total = 0;
    for (std::int32_t t = 0; t < count_; ++t) total += static_cast<std::size_t>(tensors_[t].row_bytes);
    return total;
  }

  /// Where tensor t holds state s.
  [[nodiscard]] std::byte* row(std::int32_t tensor, std::int32_t state) const noexcept {
    return tensors_[tensor].base + state * tensors_[tensor].row_bytes;
  }

 private:
  PlaneTensor const* tensors_;
  std::int32_t count_;
  std::int64_t states_;
};

static_assert(is_plane_v<WholePlane>);

}  // namespace v0_1
}  // namespace rollback
