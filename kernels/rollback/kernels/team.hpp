// What a kernel is written over: a team, the threads that work together on one thing of a launch.
#pragma once

#include <rollback/config.hpp>

#include <cstdint>

namespace rollback {
inline namespace v0_1 {
namespace kernels {

/// The team of the host: one thread that loops.
///
/// A kernel is a function object `operator()(Team const&, Params const&) const` that uses of its team these members and
/// no others, so that the same body runs on a device, where a team is a thread block:
///
/// `index`           which team of the launch this is, from 0. What one team works on is said at each kernel.
/// `lanes`           how many consecutive values one call of a body best takes: a vector's worth where one thread walks
///                   along a row, 1 where neighbouring threads take neighbouring values.
/// `for_each(n, f)`  calls `f(i)` once for each i in [0, n), in any order, and waits for the whole team.
/// `sum(n, f)`       the sum of `f(i)` over [0, n) in an order that depends on n alone, the same value for every thread
///                   of the team; waits for the whole team.
/// `barrier()`       waits for the whole team. `for_each` and `sum` end with one; a body never needs another between
///                   two of them.
///
/// All threads of a team make the same calls. Teams of one launch run in any order and never wait for each other.
struct HostTeam {
  std::int64_t index;

  static constexpr int lanes = 16;  // floats in a cache line

  template <class Body>
  ROLLBACK_HD void for_each(std::int64_t n, Body const& body) const {
    for (std::int64_t i = 0; i < n; ++i) body(i);
  }

  /// In the order of the index.
  template <class Term>
  [[nodiscard]] ROLLBACK_HD float sum(std::int64_t n, Term const& term) const {
    float total = 0;
    for (std::int64_t i = 0; i < n; ++i) total += term(i);
    return total;
  }

  ROLLBACK_HD void barrier() const {}
};

}  // namespace kernels
}  // namespace v0_1
}  // namespace rollback
