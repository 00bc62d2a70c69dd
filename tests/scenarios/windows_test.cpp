// Window coverage: a landing needs the raw rows below it, and taking back does not use rows up.
#include "scenario.hpp"
#include "scenario_dsv4.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

using namespace scenario;

TEST_CASE("BR-32 a kept state whose window is gone is no landing") {
  std::int32_t const chunk = 100;
  for (Position rows : {300, 227, 359, 360, 487, 1100}) {  // 300: positions from 700 on are there
    std::vector<Position> covered;                         // the boundaries whose 127 rows below are there
    for (Position p : multiples(128, 128, 896)) {
      if (rows >= 1000 || p - 127 >= 1000 - rows) covered.push_back(p);
    }
    auto const lands = [&covered](Position p) { return std::count(covered.begin(), covered.end(), p) > 0; };
    for (auto const& components : {all_planes({0, 128, 8}), rings({0, 128, 8})}) {
      EngineOptions o = engine_options(components, 1, 1000, chunk, {{"raw", 128, rows}});
      on_every_storage(o, [&](Engine const& empty) {
        Engine engine = empty;
        engine.feed(0, 1000, chunk);
        REQUIRE(listed(engine, 0) == covered);
        for (Position p : multiples(128, 128, 896)) {
          CAPTURE(rows, p);
          if (lands(p)) {
            REQUIRE(differs_after_roll_back(engine, 0, p) == "");
          } else {
            refuses(engine, 0, p, Verdict::window_not_covered);
            REQUIRE(engine.books.nearest(engine.slot(0), p).limited_by == engine.books.components());
          }
        }
      });
    }
    Memory memory = small_memory({0, 128, 8}, chunk, rows);
    Slot const slot = memory.books().slot(0);
    feed_books(memory.books(), slot, 1000, chunk);
    REQUIRE(listed(memory.books(), slot) == covered);
    for (Position p : multiples(128, 128, 896)) {
      Verdict const verdict = lands(p) ? Verdict::accepted : Verdict::window_not_covered;
      REQUIRE(memory.books().can_land(slot, p) == verdict);
    }
  }
  REQUIRE(Memory::raw_rows(small_memory({0, 128, 8}).shape(), small_memory({0, 128, 8}).options()) >= 127 + 8 * 128);
}

TEST_CASE("BR-34 suffixes that were given up take no room") {
  // Room for the common prefix, one suffix and 20 tokens to compare by: were rows of given-up suffixes counted, the
  // second round would not fit.
  for (auto const& components : {all_planes({0, 16, 6}), rings({0, 16, 6})}) {
    EngineOptions o = engine_options(components, 1, 484, 484, {{"raw", 128, 768}});
    o.books.max_context = o.context = 484;
    on_every_storage(o, [](Engine const& empty) {
      Engine engine = empty;
      engine.feed(0, 400, 100);
      for (int round = 0; round < 20; ++round) {
        CAPTURE(round);
        engine.feed(0, 64, 64);
        REQUIRE(listed(engine, 0) == std::vector<Position>{384, 400, 416, 432, 448, 464});
        REQUIRE(engine.check(0) == "");
        REQUIRE(engine.roll_back(0, 400) == Verdict::accepted);
        REQUIRE(engine.books.reach(engine.slot(0)) == 384);
      }
      REQUIRE(differs_from_fresh_run(engine, 0) == "");
    });
  }
  Memory memory = small_memory({0, 16, 6}, 100, 768);
  Slot const slot = memory.books().slot(0);
  feed_books(memory.books(), slot, 400, 100);
  for (int round = 0; round < 20; ++round) {
    feed_books(memory.books(), slot, 64, 64);
    REQUIRE(memory.books().roll_back(slot, 400) == Verdict::accepted);
    REQUIRE(memory.books().reach(slot) == 384);
  }
}
