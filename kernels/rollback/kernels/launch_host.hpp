// Launches a kernel on the host, without any dependency: a plain loop over the teams.
#pragma once

#include <rollback/kernels/team.hpp>

#include <cstdint>

namespace rollback {
inline namespace v0_1 {
namespace kernels {

/// Runs the teams one after the other on the calling thread.
struct HostLoop {
  /// Calls `kernel` for teams 0 .. teams-1 and returns when all are done; `teams` <= 0 does nothing.
  template <class Kernel, class Params>
  void launch(std::int64_t teams, Kernel const& kernel, Params const& params) const {
    for (std::int64_t index = 0; index < teams; ++index) kernel(HostTeam{index}, params);
  }
};

}  // namespace kernels
}  // namespace v0_1
}  // namespace rollback
