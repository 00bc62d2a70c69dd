// What it costs to ask for a landing and to take it, against the depths of the tiers and the tip.
//
// A second rollback of a slot to where it is would be a no-op, so a pass goes once over many prepared slots; between
// passes every slot is fed one token, unmeasured. `each` is the time of one slot.
#include "axes.hpp"

#include <rollback/dsv4/memory.hpp>

#include <chrono>

namespace {

using rollback::Books;
using rollback::Landing;
using rollback::Position;
using rollback::Slot;
using rollback::Verdict;

/// CSA, HCA and LID of DSV4 and its raw window, without any of their state.
rollback::BooksOptions dsv4_books(std::int64_t slots, std::int64_t per_token_depth, std::int64_t aligned_depth) {
  using rollback::dsv4::Compressor;
  rollback::BooksOptions o;
  o.slots = static_cast<std::int32_t>(slots);
  o.max_rows = o.max_chunks = axes::max_rows;
  for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
    rollback::Component c;
    c.geometry = rollback::dsv4::Memory::geometry(compressor);
    c.states_inside_chunk = true;
    c.per_token = static_cast<std::int32_t>(per_token_depth);
    if (compressor == Compressor::hca) {
      c.empty_at = axes::quantum;
    } else if (aligned_depth > 0) {
      c.quantum = axes::quantum;
      c.aligned = static_cast<std::int32_t>(aligned_depth);
    }
    o.components.push_back(c);
  }
  o.windows.push_back(
      {"window", axes::quantum, axes::quantum * (aligned_depth + 2) + per_token_depth + axes::max_rows});
  return o;
}

/// Takes the last token of every slot back, pass after pass. Arguments: sequences, per_token, aligned, tip.
void nearest_and_roll_back(benchmark::State& state) {
  Books books(dsv4_books(state.range(0), state.range(1), state.range(2)));
  axes::Feeder feeder(books);
  Position const target = state.range(3);
  if (!axes::accepted(state, feeder.all_up_to(target))) return;
  for (auto _ : state) {
    if (!axes::accepted(state, feeder.one_each())) return;
    Verdict verdict = Verdict::accepted;
    auto const start = std::chrono::steady_clock::now();
    for (std::int32_t s = 0; s < books.slots(); ++s) {
      Slot const slot = books.slot(s);
      Landing const landing = books.nearest(slot, target);
      Verdict const v = books.roll_back(slot, landing.position);
      if (v != Verdict::accepted || landing.position != target) verdict = Verdict::beyond_reach;
    }
    benchmark::ClobberMemory();
    auto const stop = std::chrono::steady_clock::now();
    state.SetIterationTime(std::chrono::duration<double>(stop - start).count());
    if (!axes::accepted(state, verdict)) return;
  }
  state.counters["each"] = benchmark::Counter(static_cast<double>(state.iterations() * books.slots()),
                                              benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// Asks for landings all over the past of one slot. Arguments: per_token, aligned, tip.
void nearest(benchmark::State& state) {
  Books books(dsv4_books(1, state.range(0), state.range(1)));
  axes::Feeder feeder(books);
  Position const tip = state.range(2);
  if (!axes::accepted(state, feeder.all_up_to(tip))) return;
  Position const reached = std::min(tip, axes::quantum * state.range(1));
  Position distance = 1;
  for (auto _ : state) {
    distance = (distance * 7919 + 104729) % reached;  // anywhere in reach, so that no branch learns the answer
    Landing const landing = books.nearest(books.slot(0), tip - distance);
    benchmark::DoNotOptimize(landing.position);
    benchmark::ClobberMemory();
  }
}

BENCHMARK(nearest_and_roll_back)
    ->ArgNames({"sequences", "per_token", "aligned", "tip"})
    ->Args({axes::sequences, 1, axes::aligned, axes::tip})
    ->Args({axes::sequences, axes::per_token, axes::aligned, axes::tip})
    ->Args({axes::sequences, 64, axes::aligned, axes::tip})
    ->Args({axes::sequences, axes::per_token, 1, axes::tip})
    ->Args({axes::sequences, 0, axes::aligned, axes::tip})  // a boundary
    ->Args({axes::sequences, axes::per_token, axes::aligned, 300})
    ->Args({64, axes::per_token, axes::aligned, 300})
    ->Args({64, axes::per_token, axes::aligned, 1 << 20})
    ->Iterations(40)
    ->UseManualTime();

BENCHMARK(nearest)
    ->ArgNames({"per_token", "aligned", "tip"})
    ->Args({axes::per_token, 1, axes::tip})
    ->Args({axes::per_token, axes::aligned, axes::tip})
    ->Args({64, axes::aligned, axes::tip})
    ->Args({axes::per_token, 1024, 1 << 20})
    ->Args({axes::per_token, axes::aligned, 1 << 20});

}  // namespace
