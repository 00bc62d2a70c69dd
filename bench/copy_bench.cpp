// What copies of whole planes cost: keeping a state and restoring one, against memcpy of the same bytes.
//
// `ratio` is the median, over pairs measured in turn, of memcpy's time by the operation's: 1 is as fast as memcpy.
#include "axes.hpp"

#include <rollback/dsv4/memory.hpp>
#include <rollback/kernels/launch_host.hpp>
#include <rollback/kernels/restore.hpp>
#include <rollback/planes/whole.hpp>
#include <rollback/ring.hpp>

#include <chrono>
#include <cstring>

namespace {

using rollback::Position;
using rollback::Verdict;
using Ring = rollback::RollbackRing<rollback::WholePlane, 1, rollback::dynamic_depth>;

template <class F>
double seconds(F f) {
  auto const start = std::chrono::steady_clock::now();
  f();
  benchmark::ClobberMemory();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Runs both in turn. The time of an iteration is the operation's; bytes are those written, which as many are read.
template <class Operation, class Copy>
void against_memcpy(benchmark::State& state, std::size_t bytes, Operation operation, Copy copy) {
  std::vector<double> ratios;
  for (auto _ : state) {
    double const own = seconds(operation);
    ratios.push_back(seconds(copy) / own);
    state.SetIterationTime(own);
  }
  std::sort(ratios.begin(), ratios.end());
  state.counters["ratio"] = ratios.empty() ? 0 : ratios[ratios.size() / 2];
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

/// A ring over one tensor, and as many states apart from it for memcpy, so that both have the same bytes in reach.
struct RingSetUp {
  explicit RingSetUp(std::int64_t bytes)
      : state_bytes(static_cast<std::size_t>(bytes)),
        states(Ring::states(options())),
        memory(2 * state_bytes * static_cast<std::size_t>(states)),
        tensor{memory.data(), bytes},
        ring(rollback::WholePlane(&tensor, 1, states), options()) {}

  static rollback::RingOptions options() {
    rollback::RingOptions o;
    o.depth = static_cast<std::int32_t>(axes::per_token);
    return o;
  }
  Verdict feed() {
    return ring.feed(ring.slot(0), 1, [](std::int32_t, Position, Position) { return true; });
  }
  /// From the first of memcpy's own states to another, as the ring does from its live one.
  void copy(std::int64_t to) {
    std::byte* const own = memory.data() + state_bytes * static_cast<std::size_t>(states);
    std::memcpy(own + state_bytes * static_cast<std::size_t>(1 + to % axes::per_token), own, state_bytes);
  }

  std::size_t state_bytes;
  std::int64_t states;
  std::vector<std::byte> memory;
  rollback::PlaneTensor tensor;
  Ring ring;
};

/// A feed of one token that does nothing but keep the state before it. Argument: bytes of a state.
void ring_keep(benchmark::State& state) {
  RingSetUp s(state.range(0));
  Verdict verdict = s.feed();
  std::int64_t kept = 0;
  against_memcpy(
      state, s.state_bytes, [&] { verdict = s.feed(); }, [&] { s.copy(kept++); });
  axes::accepted(state, verdict);
}

/// Takes one token back and feeds one, which restores and keeps nothing new. Argument: bytes of a state.
void ring_restore(benchmark::State& state) {
  RingSetUp s(state.range(0));
  for (int i = 0; i < 2; ++i) {
    if (!axes::accepted(state, s.feed())) return;
  }
  Verdict verdict = Verdict::accepted;
  auto const back_and_on = [&] {
    rollback::Slot const slot = s.ring.slot(0);
    verdict = s.ring.roll_back(slot, s.ring.tip(slot) - 1);
    if (verdict == Verdict::accepted) verdict = s.feed();
  };
  against_memcpy(state, s.state_bytes, back_and_on, [&] { s.copy(0); });
  axes::accepted(state, verdict);
}

/// The restore kernel over all layers of all compressors, by the plain loop, against memcpy block by block.
template <class Model>
void restore_kernel(benchmark::State& state) {
  rollback::dsv4::MemoryOptions o;
  o.per_token = 1;
  o.max_context = 256;
  rollback::dsv4::Memory memory(Model::shape(), o);
  struct Plane {
    rollback::kernels::RestoreParams params;
    std::int32_t source;
    std::int32_t destination;
  };
  std::vector<Plane> planes;
  std::size_t bytes = 0;
  for (int c = 0; c < rollback::dsv4::compressors; ++c) {
    auto const compressor = static_cast<rollback::dsv4::Compressor>(c);
    std::vector<rollback::PlaneTensor> const& tensors = memory.state_tensors(compressor);
    rollback::RowMap const& map = memory.row_map(compressor);
    std::int32_t const rows = memory.geometry(compressor).rows;
    planes.push_back(
        {{tensors.data(), nullptr, nullptr, rows, 1, static_cast<std::int64_t>(tensors.size())}, map.kept, map.live});
    for (rollback::PlaneTensor const& t : tensors) bytes += static_cast<std::size_t>(rows * t.row_bytes);
  }
  auto const kernel = [&] {
    for (Plane& p : planes) {
      p.params.source = &p.source;
      p.params.destination = &p.destination;
      rollback::kernels::HostLoop{}.launch(p.params.tensor_count, rollback::kernels::Restore{}, p.params);
    }
  };
  auto const copies = [&] {
    for (Plane const& p : planes) {
      for (std::int64_t t = 0; t < p.params.tensor_count; ++t) {
        rollback::PlaneTensor const& tensor = p.params.tensors[t];
        std::memcpy(tensor.base + p.destination * tensor.row_bytes, tensor.base + p.source * tensor.row_bytes,
                    static_cast<std::size_t>(p.params.rows_per_plane * tensor.row_bytes));
      }
    }
  };
  against_memcpy(state, bytes, kernel, copies);
}

BENCHMARK(ring_keep)->ArgName("bytes")->RangeMultiplier(16)->Range(4 << 10, 16 << 20)->UseManualTime();
BENCHMARK(ring_restore)->ArgName("bytes")->RangeMultiplier(16)->Range(4 << 10, 16 << 20)->UseManualTime();
BENCHMARK(restore_kernel<rollback::dsv4::Flash>)->UseManualTime();
BENCHMARK(restore_kernel<rollback::dsv4::Pro>)->UseManualTime();

}  // namespace
