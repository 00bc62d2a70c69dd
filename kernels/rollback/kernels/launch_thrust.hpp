// Launches a kernel on the host's cores through Thrust: over TBB, or over OpenMP where the compiler has it switched on.
// Opt-in: needs Thrust (of the CUDA Toolkit, or a distribution's own) on the include path, and links TBB.
#pragma once

// Thrust must not reach for CUDA when a plain C++ compiler reads it. The system stays the serial one in all host files
// of a program, since two files that differ in it would break the one-definition rule; the policy below chooses the
// threads.
#if !defined(THRUST_DEVICE_SYSTEM)
#  define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#endif

#include <rollback/kernels/team.hpp>

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/tbb/execution_policy.h>
#if defined(_OPENMP)
#  include <thrust/system/omp/execution_policy.h>
#endif

#include <cstdint>

namespace rollback {
inline namespace v0_1 {
namespace kernels {
namespace detail {

/// A team never reads what another team of its launch writes, so any policy gives the bytes of the plain loop.
template <class Policy, class Kernel, class Params>
void launch_with_thrust(Policy const& policy, std::int64_t teams, Kernel const& kernel, Params const& params) {
  if (teams <= 0) return;
  thrust::for_each_n(policy, thrust::counting_iterator<std::int64_t>(0), teams,
                     [&kernel, &params](std::int64_t index) { kernel(HostTeam{index}, params); });
}

}  // namespace detail

/// Runs the teams on TBB's threads.
struct ThrustTbb {
  /// Calls `kernel` for teams 0 .. teams-1 and returns when all are done; `teams` <= 0 does nothing.
  template <class Kernel, class Params>
  void launch(std::int64_t teams, Kernel const& kernel, Params const& params) const {
    detail::launch_with_thrust(thrust::tbb::par, teams, kernel, params);
  }
};

#if defined(_OPENMP)
/// Runs the teams on OpenMP's threads. Only there when the compiler's OpenMP is on.
struct ThrustOmp {
  /// Calls `kernel` for teams 0 .. teams-1 and returns when all are done; `teams` <= 0 does nothing.
  template <class Kernel, class Params>
  void launch(std::int64_t teams, Kernel const& kernel, Params const& params) const {
    detail::launch_with_thrust(thrust::omp::par, teams, kernel, params);
  }
};
#endif

}  // namespace kernels
}  // namespace v0_1
}  // namespace rollback
