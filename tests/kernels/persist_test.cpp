#include "catch.hpp"
#include "values.hpp"

#include <rollback/kernels/launch_host.hpp>
#include <rollback/kernels/persist.hpp>

using namespace kernel_tests;
using rollback::kernels::HostLoop;
using rollback::kernels::Persist;
using rollback::kernels::PersistParams;

TEST_CASE("listed fresh rows reach their state rows in both planes and no other row changes", "[kernels]") {
  for (std::int64_t width : {1, 16, 33, 64}) {
    auto const fresh_kv = random_values(5 * width, 1);
    auto const fresh_score = random_values(5 * width, 2);
    auto state_kv = stale_values(8 * width);
    auto state_score = stale_values(8 * width);
    std::vector<std::int32_t> const source = {4, 0, 2, 1};
    std::vector<std::int32_t> const destination = {1, 6, -1, 3};
    HostLoop{}.launch(4, Persist{},
                      PersistParams{fresh_kv.data(), fresh_score.data(), source.data(), destination.data(),
                                    state_kv.data(), state_score.data(), width, 4});
    std::vector<std::int64_t> const expected = {-1, 4, -1, 1, -1, -1, 0, -1};  // fresh row of each state row
    for (std::int64_t row = 0; row < 8; ++row) {
      std::int64_t const from = expected[static_cast<std::size_t>(row)];
      INFO("width " << width << " row " << row);
      if (from < 0) {
        CHECK(is_stale(state_kv.data() + row * width, width));
        CHECK(is_stale(state_score.data() + row * width, width));
      } else {
        CHECK(same_bytes(state_kv.data() + row * width, fresh_kv.data() + from * width, width));
        CHECK(same_bytes(state_score.data() + row * width, fresh_score.data() + from * width, width));
      }
    }
  }
}

TEST_CASE("a chunk longer than the ring leaves its last rows there", "[kernels]") {
  std::int64_t const width = 6;
  auto const fresh_kv = random_values(12 * width, 3);
  auto const fresh_score = random_values(12 * width, 4);
  auto state_kv = stale_values(8 * width);
  auto state_score = stale_values(8 * width);
  // Positions 5 .. 16 into a ring of 8: the first four are superseded by the last four.
  std::vector<std::int32_t> const source = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  std::vector<std::int32_t> const destination = {-1, -1, -1, -1, 1, 2, 3, 4, 5, 6, 7, 0};
  HostLoop{}.launch(12, Persist{},
                    PersistParams{fresh_kv.data(), fresh_score.data(), source.data(), destination.data(),
                                  state_kv.data(), state_score.data(), width, 12});
  for (std::int64_t position = 9; position <= 16; ++position) {
    CHECK(same_bytes(state_kv.data() + position % 8 * width, fresh_kv.data() + (position - 5) * width, width));
    CHECK(same_bytes(state_score.data() + position % 8 * width, fresh_score.data() + (position - 5) * width, width));
  }
}

TEST_CASE("teams past the entries of persist do nothing", "[kernels]") {
  auto const fresh = random_values(4, 5);
  auto state = stale_values(8);
  std::vector<std::int32_t> const source = {0, 0};
  std::vector<std::int32_t> const destination = {0, 1};
  HostLoop{}.launch(
      2, Persist{},
      PersistParams{fresh.data(), fresh.data(), source.data(), destination.data(), state.data(), state.data(), 4, 1});
  CHECK(same_bytes(state.data(), fresh.data(), 4));
  CHECK(is_stale(state.data() + 4, 4));
}
