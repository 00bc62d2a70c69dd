// What it costs to ask for a landing and to take it, against the depths of the tiers, the tip, pins and holes.
//
// A second rollback of a slot to where it is would be a no-op, so a pass goes once over many prepared slots; between
// passes every slot is fed one token, unmeasured. `each` is the time of one slot.
#include "prepared.hpp"

#include <chrono>

namespace {

using rollback::Books;
using rollback::Landing;
using rollback::Position;
using rollback::Slot;
using rollback::Verdict;

/// Takes the last token of every slot back, pass after pass; `operation(slot, target)` is what is timed.
template <class Operation>
void over_slots(benchmark::State& state, axes::Setting const& setting, Operation operation) {
  Books books(dsv4_books(setting));
  if (!axes::accepted(state, prepare_all(books, setting))) return;
  axes::Feeder feeder(books);
  for (auto _ : state) {
    if (!axes::accepted(state, feeder.one_each(0, books.slots()))) return;
    Verdict verdict = Verdict::accepted;
    auto const start = std::chrono::steady_clock::now();
    for (std::int32_t s = 0; s < books.slots(); ++s) {
      Verdict const v = operation(books, books.slot(s), setting.tip);
      if (v != Verdict::accepted) verdict = v;
    }
    benchmark::ClobberMemory();
    auto const stop = std::chrono::steady_clock::now();
    state.SetIterationTime(std::chrono::duration<double>(stop - start).count());
    if (!axes::accepted(state, verdict)) return;
  }
  state.counters["each"] = benchmark::Counter(static_cast<double>(state.iterations() * books.slots()),
                                              benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// Arguments: sequences, per_token, aligned, tip.
axes::Setting setting_of(benchmark::State const& state) {
  axes::Setting s;
  s.sequences = state.range(0);
  s.per_token = state.range(1);
  s.aligned = state.range(2);
  s.tip = state.range(3);
  return s;
}

void roll_back(benchmark::State& state) {
  over_slots(state, setting_of(state), [](Books& books, Slot slot, Position p) { return books.roll_back(slot, p); });
}

void nearest_and_roll_back(benchmark::State& state) {
  over_slots(state, setting_of(state), [](Books& books, Slot slot, Position p) {
    Landing const landing = books.nearest(slot, p);
    return landing.position == p ? books.roll_back(slot, p) : Verdict::beyond_reach;
  });
}

/// Asks for landings all over the past of one slot. Arguments: per_token, aligned, tip, room for pins, pins kept,
/// holes.
void nearest(benchmark::State& state) {
  axes::Setting s;
  s.sequences = 1;
  s.per_token = state.range(0);
  s.aligned = state.range(1);
  s.tip = state.range(2);
  s.pins = static_cast<std::int32_t>(state.range(3));
  s.pinned = static_cast<std::int32_t>(state.range(4));
  s.holes = state.range(5) != 0;
  Books books(dsv4_books(s));
  if (!axes::accepted(state, prepare_all(books, s))) return;
  state.counters["missing"] = static_cast<double>(axes::missing_boundaries(books, books.slot(0), s.aligned));
  Position const reached = std::min(s.tip, axes::quantum * s.aligned);
  Position distance = 1;
  for (auto _ : state) {
    distance = (distance * 7919 + 104729) % reached;  // anywhere in reach, so that no branch learns the answer
    Landing const landing = books.nearest(books.slot(0), s.tip - distance);
    benchmark::DoNotOptimize(landing.position);
    benchmark::ClobberMemory();
  }
}

/// Two kinds of state whose boundaries meet at common multiples alone. Arguments: quantum, other quantum, aligned.
void nearest_of_two_quanta(benchmark::State& state) {
  rollback::BooksOptions o;
  o.max_rows = axes::max_rows;
  for (std::size_t i = 0; i < 2; ++i) {
    rollback::Component c;
    c.states_inside_chunk = true;
    c.quantum = state.range(i);
    c.aligned = static_cast<std::int32_t>(state.range(2));
    o.components.push_back(c);
  }
  Books books(o);
  Position const reached = state.range(0) * state.range(2);
  if (!axes::accepted(state, axes::Feeder(books).up_to(books.slot(0), reached + state.range(0)))) return;
  Position const tip = books.tip(books.slot(0));
  Position distance = 1;
  for (auto _ : state) {
    distance = (distance * 7919 + 104729) % reached;
    Landing const landing = books.nearest(books.slot(0), tip - distance);
    benchmark::DoNotOptimize(landing.position);
    benchmark::ClobberMemory();
  }
}

void sizes_of_slots(benchmark::internal::Benchmark* b) {
  b->ArgNames({"sequences", "per_token", "aligned", "tip"})
      ->Args({axes::sequences, 1, axes::aligned, axes::tip})
      ->Args({axes::sequences, axes::per_token, axes::aligned, axes::tip})
      ->Args({axes::sequences, 64, axes::aligned, axes::tip})
      ->Args({axes::sequences, axes::per_token, 1, axes::tip})
      ->Args({axes::sequences, axes::per_token, 4096, 1 << 20})
      ->Args({axes::sequences, 0, axes::aligned, axes::tip})  // a boundary
      ->Args({axes::sequences, axes::per_token, axes::aligned, 300})
      ->Args({64, axes::per_token, axes::aligned, 300})
      ->Args({64, axes::per_token, axes::aligned, 1 << 20})
      ->Iterations(40)
      ->UseManualTime();
}

BENCHMARK(roll_back)->Apply(sizes_of_slots);
BENCHMARK(nearest_and_roll_back)->Apply(sizes_of_slots);

BENCHMARK(nearest)
    ->ArgNames({"per_token", "aligned", "tip", "pins", "pinned", "holes"})
    ->Args({axes::per_token, 1, axes::tip, 0, 0, 0})
    ->Args({axes::per_token, axes::aligned, axes::tip, 0, 0, 0})
    ->Args({64, axes::aligned, axes::tip, 0, 0, 0})
    ->Args({axes::per_token, 4096, 1 << 21, 0, 0, 0})
    ->Args({axes::per_token, axes::aligned, 1 << 20, 0, 0, 0})
    ->Args({axes::per_token, axes::aligned, 1 << 20, 8, 8, 0})
    ->Args({axes::per_token, 4096, 1 << 21, 8, 0, 0})
    ->Args({axes::per_token, 4096, 1 << 21, 8, 0, 1});

BENCHMARK(nearest_of_two_quanta)
    ->ArgNames({"quantum", "other", "aligned"})
    ->Args({1024, 1024, 1})
    ->Args({1024, 1024, 4096})
    ->Args({1024, 1023, 1})
    ->Args({1024, 1023, 4096})
    ->Args({1024, 768, 4096});

}  // namespace
