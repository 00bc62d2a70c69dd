#include "catch.hpp"

#include <rollback/kernels/team.hpp>

#include <cstdint>
#include <vector>

using rollback::kernels::HostTeam;

TEST_CASE("for_each calls the body once for every index", "[kernels]") {
  std::vector<int> calls(7);
  HostTeam{3}.for_each(7, [&calls](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
  CHECK(calls == std::vector<int>(7, 1));
  HostTeam{3}.for_each(0, [&calls](std::int64_t) { calls.clear(); });
  CHECK(calls.size() == 7);
}

TEST_CASE("sum adds in the order of the index", "[kernels]") {
  float const terms[] = {1e8f, 1.0f, -1e8f, 1.0f};  // the first 1 is lost next to 1e8 and the second is not
  CHECK(HostTeam{0}.sum(4, [&terms](std::int64_t i) { return terms[i]; }) == 1.0f);
  CHECK(HostTeam{0}.sum(0, [](std::int64_t) { return 1.0f; }) == 0.0f);
}
