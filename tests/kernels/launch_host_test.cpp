#include "catch.hpp"

#include <rollback/kernels/launch_host.hpp>

#include <cstdint>
#include <vector>

namespace {

struct CountParams {
  int* calls;  // [teams]
};

struct Count {
  template <class Team>
  void operator()(Team const& team, CountParams const& p) const {
    ++p.calls[team.index];
  }
};

}  // namespace

TEST_CASE("the plain loop runs every team once", "[kernels]") {
  std::vector<int> calls(5);
  rollback::kernels::HostLoop{}.launch(4, Count{}, CountParams{calls.data()});
  CHECK(calls == std::vector<int>{1, 1, 1, 1, 0});
}

TEST_CASE("no team and fewer than none are no launch", "[kernels]") {
  std::vector<int> calls(1);
  rollback::kernels::HostLoop{}.launch(0, Count{}, CountParams{calls.data()});
  rollback::kernels::HostLoop{}.launch(-1, Count{}, CountParams{calls.data()});
  CHECK(calls == std::vector<int>{0});
}
