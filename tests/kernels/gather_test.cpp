#include "catch.hpp"
#include "values.hpp"

#include <rollback/kernels/gather.hpp>
#include <rollback/kernels/launch_host.hpp>

using namespace kernel_tests;
using rollback::kernels::Gather;
using rollback::kernels::GatherParams;
using rollback::kernels::HostLoop;

TEST_CASE("rows of the state and of the chunk reach the kept place and no other row changes", "[kernels]") {
  for (std::int64_t width : {1, 16, 33, 64}) {
    // 10 state rows: 4 live with content, then two kept places of 3 rows, still stale.
    auto state_kv = stale_values(10 * width);
    auto state_score = stale_values(10 * width);
    auto const live_kv = random_values(4 * width, 1);
    auto const live_score = random_values(4 * width, 2);
    std::copy(live_kv.begin(), live_kv.end(), state_kv.begin());
    std::copy(live_score.begin(), live_score.end(), state_score.begin());
    auto const fresh_kv = random_values(3 * width, 3);
    auto const fresh_score = random_values(3 * width, 4);

    std::vector<std::int32_t> const source = {3, 10, -1, 12, 1};
    std::vector<std::int32_t> const destination = {7, 8, 4, 9, -1};
    HostLoop{}.launch(5, Gather{},
                      GatherParams{state_kv.data(), state_score.data(), fresh_kv.data(), fresh_score.data(),
                                   source.data(), destination.data(), 10, width, 5});

    INFO("width " << width);
    CHECK(same_bytes(state_kv.data(), live_kv.data(), 4 * width));
    CHECK(same_bytes(state_score.data(), live_score.data(), 4 * width));
    CHECK(is_stale(state_kv.data() + 4 * width, 3 * width));
    CHECK(is_stale(state_score.data() + 4 * width, 3 * width));
    CHECK(same_bytes(state_kv.data() + 7 * width, live_kv.data() + 3 * width, width));
    CHECK(same_bytes(state_score.data() + 7 * width, live_score.data() + 3 * width, width));
    CHECK(same_bytes(state_kv.data() + 8 * width, fresh_kv.data(), width));
    CHECK(same_bytes(state_score.data() + 8 * width, fresh_score.data(), width));
    CHECK(same_bytes(state_kv.data() + 9 * width, fresh_kv.data() + 2 * width, width));
    CHECK(same_bytes(state_score.data() + 9 * width, fresh_score.data() + 2 * width, width));
  }
}

TEST_CASE("teams past the entries of gather do nothing", "[kernels]") {
  auto state_kv = stale_values(12);
  auto state_score = stale_values(12);
  auto const fresh = random_values(4, 5);
  std::vector<std::int32_t> const source = {3, 3};
  std::vector<std::int32_t> const destination = {1, 2};
  HostLoop{}.launch(2, Gather{},
                    GatherParams{state_kv.data(), state_score.data(), fresh.data(), fresh.data(), source.data(),
                                 destination.data(), 3, 4, 1});
  CHECK(same_bytes(state_kv.data() + 4, fresh.data(), 4));
  CHECK(is_stale(state_kv.data() + 8, 4));
}
