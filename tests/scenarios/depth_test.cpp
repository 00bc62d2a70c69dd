// Depth, provenance, stacking: how far back a few tokens go, from whichever batch and chunk they came.
#include "scenario.hpp"

#include <cstdint>
#include <vector>

using namespace scenario;

TEST_CASE("BR-01 undo of exactly the last batch") {
  on_every_engine({8}, 1, [](Engine const& empty) {
    for (std::int32_t rows = 1; rows <= 8; ++rows) {
      for (std::int32_t chunk : {1, 3, whole}) {
        CAPTURE(rows, chunk);
        Engine engine = empty;
        engine.feed(0, 20, chunk);
        engine.feed(0, rows, chunk);
        REQUIRE(engine.roll_back(0, 20) == Verdict::accepted);
        REQUIRE(differs_from_fresh_run(engine, 0) == "");
      }
    }
  });
}

TEST_CASE("BR-02 single steps after a batch") {
  on_every_engine({3}, 1, [](Engine const& empty) {
    for (std::int32_t singles = 0; singles <= 5; ++singles) {
      Engine engine = empty;
      engine.feed(0, 10, whole);
      for (std::int32_t i = 0; i < singles; ++i) engine.feed(0, 1, whole);
      for (std::int32_t depth = 1; depth <= 3; ++depth) {
        CAPTURE(singles, depth);
        REQUIRE(differs_after_roll_back(engine, 0, 10 + singles - depth) == "");
      }
      refuses(engine, 0, 10 + singles - 4, Verdict::beyond_reach);
    }
  });
}

TEST_CASE("BR-04 a second rollback before anything is fed is cumulative") {
  on_every_engine({3, 128, 4}, 1, [](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, 400, whole);
    std::vector<Position> const all = listed(engine, 0);
    REQUIRE(all == std::vector<Position>{128, 256, 384, 397, 398, 399});
    for (std::size_t first = 1; first < all.size(); ++first) {
      for (std::size_t second = 0; second < first; ++second) {
        CAPTURE(all[first], all[second]);
        Engine copy = engine;
        REQUIRE(copy.roll_back(0, all[first]) == Verdict::accepted);
        REQUIRE(copy.roll_back(0, all[second]) == Verdict::accepted);
        REQUIRE(copy.books.is_armed(copy.slot(0)));
        REQUIRE(differs_from_fresh_run(copy, 0) == "");
        REQUIRE(restores_once(copy, 0, 9, 4));
      }
    }
  });
}

TEST_CASE("BR-06 a restore is consumed by the first feed after it") {
  on_every_engine({4}, 1, [](Engine const& empty) {
    for (Position p = 8; p < 12; ++p) {
      Engine engine = empty;
      engine.feed(0, 12, whole);
      REQUIRE(engine.roll_back(0, p) == Verdict::accepted);
      REQUIRE(restores_once(engine, 0, 2, whole));
      REQUIRE_FALSE(engine.books.is_armed(engine.slot(0)));
      for (int more = 0; more < 3; ++more) {
        for (std::int32_t count : feed_counting(engine, 0, 2, whole)) REQUIRE(count == 0);
      }
      REQUIRE(differs_from_fresh_run(engine, 0) == "");
    }
  });
}

TEST_CASE("BR-07 a replay in several chunks restores before the first only") {
  on_every_engine({3, 128, 8}, 1, [](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, 700, whole);
    for (Position p : {384, 128, 640, 698}) {
      for (std::int32_t chunk : {1, 60, 127, 128, 129, 316, whole}) {
        CAPTURE(p, chunk);
        Engine copy = engine;
        REQUIRE(copy.roll_back(0, p) == Verdict::accepted);
        REQUIRE(restores_once(copy, 0, 316, chunk));
        REQUIRE(differs_from_fresh_run(copy, 0) == "");
      }
    }
  });
}

TEST_CASE("BR-10 the last states are kept whichever chunk they came from") {
  on_every_engine({3}, 1, [](Engine const& empty) {
    for (std::int32_t chunk : {4, 1, 2, 3, 5, 9, 10}) {
      for (std::int32_t rows = 1; rows <= 12; ++rows) {
        Engine engine = empty;
        engine.feed(0, rows, chunk);
        for (std::int32_t depth = 1; depth <= 3 && depth <= rows; ++depth) {
          CAPTURE(chunk, rows, depth);
          REQUIRE(differs_after_roll_back(engine, 0, rows - depth) == "");
        }
      }
    }
  });
}

TEST_CASE("BR-13 a consumer stops inside an accepted block") {
  on_every_engine({8, 128, 2}, 1, [](Engine const& empty) {
    for (std::int32_t block : {2, 3, 5, 8}) {
      Engine engine = empty;
      engine.feed(0, 100, whole);
      engine.feed(0, block, whole, block, block);
      for (Position stop = 100; stop < 100 + block; ++stop) {
        CAPTURE(block, stop);
        REQUIRE(engine.books.nearest(engine.slot(0), stop).position == stop);  // nothing is fed again
        REQUIRE(engine.books.nearest(engine.slot(0), stop).replay == 0);
        REQUIRE(differs_after_roll_back(engine, 0, stop) == "");
      }
    }
  });
}

TEST_CASE("BR-15 the state before a verified block stays reachable") {
  on_every_engine({3}, 1, [](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, 50, whole);
    for (std::int32_t width = 1; width <= 3; ++width) {
      for (std::int32_t accepted = 0; accepted <= width; ++accepted) {
        CAPTURE(width, accepted);
        Engine copy = engine;
        copy.feed(0, width, whole, width, accepted);
        REQUIRE(copy.tip(0) == 50 + accepted);
        REQUIRE(differs_from_fresh_run(copy, 0) == "");
        REQUIRE(copy.books.nearest(copy.slot(0), 50).position == 50);
        REQUIRE(differs_after_roll_back(copy, 0, 50) == "");
        for (int again = 0; again < 3; ++again) copy.feed(0, 3, whole, 3, 0);  // nothing is accepted, over and over
        REQUIRE(copy.tip(0) == 50 + accepted);
        REQUIRE(differs_from_fresh_run(copy, 0) == "");
      }
    }
  });
}

TEST_CASE("BR-16 any acceptance of blocks one after the other equals serial processing") {
  // A short history of the inputs (TRAIL), a plane that they are folded into, and a ring that emits.
  Depths const eight{8};
  on_every_storage(options({with(trail(), eight), with(fold(), eight), with(ring8(), eight)}), [](Engine const& empty) {
    for (std::int32_t pattern = 0; pattern < 125; ++pattern) {
      CAPTURE(pattern);
      Engine engine = empty;
      engine.feed(0, 4, whole);
      Position tip = 4;
      for (std::int32_t accepted : {pattern % 5, pattern / 5 % 5, pattern / 25}) {
        engine.feed(0, 4, whole, 4, accepted);
        tip += accepted;
        REQUIRE(engine.tip(0) == tip);
      }
      REQUIRE(differs_from_fresh_run(engine, 0, 1) == "");
    }
  });
}
