// The recipes of memory_test.cpp on a `dsv4::Memory`: what is held does not grow, and all that is allocated is reached.
#include <rollback/feed.hpp>

#include "counted_new.hpp"
#include "scenario_dsv4_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace dsv4_scenario;

namespace {

/// Whether any row of a slot's planes, or of its window, was never written.
bool has_untouched_rows(Engine const& engine) {
  using rollback::dsv4::Path;
  for (rollback::dsv4::Tensor const& t : Memory::tensors(engine.memory.shape(), engine.memory.options())) {
    if (t.path != Path::window && t.path < Path::csa_state) continue;  // caches are as long as the context
    float const* const first = engine.memory.data(t);
    float const* const last = first + t.bytes / sizeof(float);
    if (std::find(first, last, engine.filling) != last) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("BR-82 on a DSV4 memory: what is held does not grow with the context") {
  MemoryOptions o = options({3, 128, 8}, 1, 128);
  o.max_context = 401 * 128;
  for (bool entry_copy : {false, true}) {
    o.entry_copy = entry_copy;
    Memory memory(small_shape({0, 4, 128, 4}), o);
    Slot const slot = memory.books().slot(0);
    rollback::Feed feeder(memory.books(), 128, 128);
    std::size_t const allocations = counted_new::allocations;
    std::int32_t fed = 0;
    while (fed < 400 && feeder.run(slot, 128, [&memory](rollback::FeedChunk const& c) {
      Chunk chunk;
      return memory.plan(c.ticket, c.index, *c.batch, chunk) == Verdict::accepted;
    }) == Verdict::accepted) {
      ++fed;
    }
    std::size_t const allocated = counted_new::allocations - allocations;
    REQUIRE(fed == 400);
    REQUIRE(allocated == 0);
    REQUIRE(memory.books().reach(slot) == (400 - 7) * 128);  // the tip is the last of the eight
  }

  MemoryOptions small = options({0, 4, 8});  // the same with bytes, on a smaller quantum
  on_every_memory(small, [](Engine const& empty) {
    Engine engine = empty;
    for (Position boundaries : {10, 20, 40, 400}) {
      CAPTURE(boundaries);
      engine.feed(0, engine.drawn(static_cast<std::size_t>(4 * boundaries + 1 - engine.tip(0))));
      REQUIRE(landings(engine, 0) == multiples(4, 4 * boundaries - 28, 4 * boundaries));
      REQUIRE(differs_after_roll_back(engine, 0, engine.books().reach(engine.slot(0))) == "");
    }
  });
}

TEST_CASE("BR-83 on a DSV4 memory: what is allocated is what the formula says and all of it is reached") {
  using rollback::Places;
  std::size_t const sequences = 2;
  for (Depths const d : {Depths{3, 8, 2}, Depths{9, 4, 3}, Depths{1, 2, 1}, Depths{2, 128, 0}, Depths{2, 64, 2}}) {
    for (bool entry_copy : {false, true}) {
      CAPTURE(d.per_token, d.quantum, d.aligned, entry_copy);
      MemoryOptions o = options(d, sequences);
      o.entry_copy = entry_copy;
      Engine engine(o);
      for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
        Places const p = engine.books().places(engine.memory.component(compressor));
        std::int32_t const states =
            (entry_copy ? 2 : 1) + d.per_token + d.aligned + p.per_token_spares + p.aligned_spares;
        REQUIRE(engine.memory.view(compressor, compressor == Compressor::hca ? 2 : 1).state_rows ==
                std::int64_t{2} * states * Memory::geometry(compressor).rows);
        REQUIRE(p.per_token_spares <= 1);
        REQUIRE(p.aligned_spares <= (d.per_token + d.quantum - 1) / d.quantum);  // boundaries that may be rejected
      }
      std::uint32_t random = 1;
      auto const pick = [&random](std::int32_t first, std::int32_t last) {
        random = mixed(random, 12345U);
        return first + static_cast<std::int32_t>((random >> 8) % static_cast<std::uint32_t>(last - first + 1));
      };
      for (std::size_t round = 0; round < 4000 && (round % 50 != 0 || has_untouched_rows(engine)); ++round) {
        std::size_t const s = round % sequences;
        if (engine.tip(s) > 900) engine.clear(s);
        std::int32_t const count = pick(1, 60);
        std::int32_t const unverified = pick(0, std::min(count, d.per_token));
        engine.verify(s, engine.drawn(static_cast<std::size_t>(count)), unverified, pick(0, unverified));
        std::vector<Position> const all = landings(engine, s);
        if (pick(0, 2) == 0 && !all.empty()) {
          Position const back = all[static_cast<std::size_t>(pick(0, static_cast<std::int32_t>(all.size()) - 1))];
          REQUIRE(engine.roll_back(s, back) == Verdict::accepted);
        }
      }
      REQUIRE_FALSE(has_untouched_rows(engine));
      for (std::size_t s = 0; s < sequences; ++s) {
        REQUIRE(differs_from_fresh_run(engine, s) == "");
        for (Position p : landings(engine, s)) REQUIRE(differs_after_roll_back(engine, s, p) == "");
      }
    }
  }
}
