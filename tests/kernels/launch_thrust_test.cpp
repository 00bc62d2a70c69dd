#include "catch.hpp"
#include "ring_compressor.hpp"
#include "values.hpp"

#include <rollback/kernels/gather.hpp>
#include <rollback/kernels/launch_host.hpp>
#include <rollback/kernels/launch_thrust.hpp>
#include <rollback/kernels/restore.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

using namespace kernel_tests;
using kernels::HostLoop;

#if defined(_OPENMP)
#  define ROLLBACK_THRUST_LAUNCHERS kernels::ThrustTbb, kernels::ThrustOmp
#else
#  define ROLLBACK_THRUST_LAUNCHERS kernels::ThrustTbb
#endif

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

template <class Launcher>
RingCompressor compressed(CompressorShape const& shape) {
  RingCompressor compressor(shape, 4, 64);
  for (Position first = 0; first < 256; first += 64) {
    std::vector<Token> chunk;
    for (Position p = first; p < first + 64; ++p) {
      for (std::int32_t slot = 0; slot < 4; ++slot) chunk.push_back({slot, p});
    }
    compressor.feed(Launcher{}, chunk);
  }
  return compressor;
}

// The second half of the rows is gathered over the first, then restored from the fourth quarter to the third.
template <class Launcher>
std::vector<float> moved(std::int64_t width) {
  auto state = random_values(64 * width, 1);
  auto scores = random_values(64 * width, 2);
  std::vector<std::int32_t> source(32), destination(32);
  std::iota(source.begin(), source.end(), 32);
  std::iota(destination.begin(), destination.end(), 0);
  Launcher{}.launch(32, kernels::Gather{},
                    kernels::GatherParams{state.data(), scores.data(), nullptr, nullptr, source.data(),
                                          destination.data(), 64, width, 32});
  rollback::PlaneTensor const tensors[] = {
      {reinterpret_cast<std::byte*>(state.data()), width * static_cast<std::int64_t>(sizeof(float))},
      {reinterpret_cast<std::byte*>(scores.data()), width * static_cast<std::int64_t>(sizeof(float))}};
  std::vector<std::int32_t> const from = {48, 52, -1, 60};
  std::vector<std::int32_t> const to = {32, 36, 40, 44};
  Launcher{}.launch(8, kernels::Restore{}, kernels::RestoreParams{tensors, from.data(), to.data(), 4, 4, 2});
  state.insert(state.end(), scores.begin(), scores.end());
  return state;
}

}  // namespace

TEMPLATE_TEST_CASE("a launch over threads runs every team once", "[kernels]", ROLLBACK_THRUST_LAUNCHERS) {
  std::vector<int> calls(1000);
  TestType{}.launch(999, Count{}, CountParams{calls.data()});
  CHECK(calls.back() == 0);
  calls.pop_back();
  CHECK(calls == std::vector<int>(999, 1));
}

TEMPLATE_TEST_CASE("no team and fewer than none are no launch over threads", "[kernels]", ROLLBACK_THRUST_LAUNCHERS) {
  int calls = 0;
  TestType{}.launch(0, Count{}, CountParams{&calls});
  TestType{}.launch(-1, Count{}, CountParams{&calls});
  CHECK(calls == 0);
}

TEMPLATE_TEST_CASE("a launch over threads gives the bytes of the plain loop", "[kernels]", ROLLBACK_THRUST_LAUNCHERS) {
  std::vector<CompressorShape> shapes(3);
  shapes[1] = {128, false, 33, 20, 16};
  shapes[2] = {4, true, 128, 30, 64, true, kernels::Rounding::fp4};
  for (auto const& shape : shapes) {
    auto const expected = compressed<HostLoop>(shape);
    auto const threaded = compressed<TestType>(shape);
    CHECK(same_bytes(threaded.fresh_kv, expected.fresh_kv));
    CHECK(same_bytes(threaded.fresh_score, expected.fresh_score));
    CHECK(same_bytes(threaded.state_kv, expected.state_kv));
    CHECK(same_bytes(threaded.state_score, expected.state_score));
    CHECK(same_bytes(threaded.cache, expected.cache));
  }
  for (std::int64_t width : {16, 33}) CHECK(same_bytes(moved<TestType>(width), moved<HostLoop>(width)));
}
