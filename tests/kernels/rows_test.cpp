#include "catch.hpp"
#include "values.hpp"

#include <rollback/kernels/rows.hpp>
#include <rollback/kernels/team.hpp>

using namespace kernel_tests;

TEST_CASE("indices below state_rows name rows of the state and the rest fresh rows", "[kernels]") {
  std::vector<float> const state(3 * 5), fresh(2 * 5);
  rollback::kernels::SourceRows const rows = {state.data(), fresh.data(), 3, 5};
  CHECK(rows.row(0) == state.data());
  CHECK(rows.row(2) == state.data() + 2 * 5);
  CHECK(rows.row(3) == fresh.data());
  CHECK(rows.row(4) == fresh.data() + 5);
}

TEST_CASE("a row of any width is copied and nothing around it", "[kernels]") {
  for (std::int64_t width = 0; width <= 70; ++width) {
    auto const from = random_values(width, static_cast<std::uint32_t>(width));
    auto to = stale_values(width + 8);
    rollback::kernels::copy_row(rollback::kernels::HostTeam{0}, from.data(), to.data() + 4, width);
    INFO("width " << width);
    CHECK(same_bytes(to.data() + 4, from.data(), width));
    CHECK(is_stale(to.data(), 4));
    CHECK(is_stale(to.data() + 4 + width, 4));
  }
}
