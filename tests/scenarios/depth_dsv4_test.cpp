// The recipes of depth_test.cpp on a `dsv4::Memory`: how far back a few tokens go, whichever batch and chunk they came
// from.
#include "scenario_dsv4_engine.hpp"

#include <cstdint>
#include <vector>

using namespace dsv4_scenario;

TEST_CASE("BR-01 on a DSV4 memory: undo of exactly the last batch") {
  for (std::size_t head : {20U, 126U}) {  // in the second case an HCA block is emitted, and taken back
    on_every_memory(options({8}), [head](Engine const& empty) {
      for (std::size_t rows = 1; rows <= 8; ++rows) {
        for (std::int32_t chunk : {1, 3, 64}) {
          CAPTURE(head, rows, chunk);
          Engine engine = empty;
          engine.feed(0, engine.drawn(head), chunk);
          engine.feed(0, engine.drawn(rows), chunk);
          REQUIRE(engine.roll_back(0, static_cast<Position>(head)) == Verdict::accepted);
          REQUIRE(differs_from_fresh_run(engine, 0) == "");
        }
      }
    });
  }
}

TEST_CASE("BR-02 on a DSV4 memory: single steps after a batch") {
  on_every_memory(options({3}), [](Engine const& empty) {
    for (Position singles = 0; singles <= 5; ++singles) {
      Engine engine = empty;
      engine.feed(0, engine.drawn(10));
      for (Position i = 0; i < singles; ++i) engine.feed(0, engine.drawn(1));
      for (Position depth = 1; depth <= 3; ++depth) {
        CAPTURE(singles, depth);
        REQUIRE(differs_after_roll_back(engine, 0, 10 + singles - depth) == "");
      }
      refuses(engine, 0, 10 + singles - 4, Verdict::beyond_reach);
    }
  });
}

TEST_CASE("BR-04 on a DSV4 memory: a second rollback before anything is fed is cumulative") {
  for (Position quantum : {128, 64}) {  // of 64 HCA has states of its own at every other boundary
    on_every_memory(options({3, quantum, 4}), [quantum](Engine const& empty) {
      Engine engine = empty;
      engine.feed(0, engine.drawn(400));
      std::vector<Position> const all = landings(engine, 0);
      REQUIRE(all == (quantum == 128 ? std::vector<Position>{128, 256, 384, 397, 398, 399}
                                     : std::vector<Position>{192, 256, 320, 384, 397, 398, 399}));
      for (std::size_t first = 1; first < all.size(); ++first) {
        for (std::size_t second = 0; second < first; ++second) {
          CAPTURE(all[first], all[second]);
          Engine copy = engine;
          REQUIRE(copy.roll_back(0, all[first]) == Verdict::accepted);
          REQUIRE(copy.roll_back(0, all[second]) == Verdict::accepted);
          REQUIRE(copy.books().is_armed(copy.slot(0)));
          REQUIRE(differs_from_fresh_run(copy, 0) == "");
          REQUIRE(restores_once(copy, 0, 9, 4));
        }
      }
    });
  }
}

TEST_CASE("BR-06 on a DSV4 memory: a restore is consumed by the first feed after it") {
  on_every_memory(options({4}), [](Engine const& empty) {
    for (Position p = 8; p < 12; ++p) {
      Engine engine = empty;
      engine.feed(0, engine.drawn(12));
      REQUIRE(engine.roll_back(0, p) == Verdict::accepted);
      REQUIRE(restores_once(engine, 0, 2, 64));
      REQUIRE_FALSE(engine.books().is_armed(engine.slot(0)));
      for (int more = 0; more < 3; ++more) {
        for (std::int32_t count : feed_counting(engine, 0, 2, 64)) REQUIRE(count == 0);
      }
      REQUIRE(differs_from_fresh_run(engine, 0) == "");
    }
  });
}

TEST_CASE("BR-07 on a DSV4 memory: a replay in several chunks restores before the first only") {
  MemoryOptions o = options({3, 64, 11}, 1, 700);
  o.pins = 1;
  on_every_memory(o, [](Engine const& empty) {
    Engine engine = empty;
    REQUIRE(engine.books().pin(engine.slot(0), 333) == Verdict::accepted);
    engine.feed(0, engine.drawn(700));
    for (Position p : {384, 128, 320, 333, 640, 698}) {
      for (std::int32_t chunk : {1, 60, 127, 128, 129, 316, 700}) {
        CAPTURE(p, chunk);
        Engine copy = engine;
        REQUIRE(copy.roll_back(0, p) == Verdict::accepted);
        REQUIRE(restores_once(copy, 0, 316, chunk));
        REQUIRE(differs_from_fresh_run(copy, 0) == "");
      }
    }
  });
}

TEST_CASE("BR-10 on a DSV4 memory: the last states are kept whichever chunk they came from") {
  on_every_memory(options({3}), [](Engine const& empty) {
    for (std::size_t head : {0U, 121U}) {  // with the second one the last rows cross the end of an HCA block
      for (std::int32_t chunk : {4, 1, 2, 3, 5, 9, 10}) {
        for (Position rows = 1; rows <= 12; ++rows) {
          Engine engine = empty;
          engine.feed(0, engine.drawn(head));
          engine.feed(0, engine.drawn(static_cast<std::size_t>(rows)), chunk);
          for (Position depth = 1; depth <= 3 && depth <= rows; ++depth) {
            CAPTURE(head, chunk, rows, depth);
            REQUIRE(differs_after_roll_back(engine, 0, engine.tip(0) - depth) == "");
          }
        }
      }
    }
  });
}

TEST_CASE("BR-13 on a DSV4 memory: a consumer stops inside an accepted block") {
  on_every_memory(options({8, 128, 2}), [](Engine const& empty) {
    for (std::int32_t block : {2, 3, 5, 8}) {
      Engine engine = empty;
      engine.feed(0, engine.drawn(124));
      engine.verify(0, engine.drawn(static_cast<std::size_t>(block)), block, block);
      for (Position stop = 124; stop < 124 + block; ++stop) {
        CAPTURE(block, stop);
        Landing const landing = engine.books().nearest(engine.slot(0), stop);
        REQUIRE(landing.position == stop);
        REQUIRE(landing.replay == 0);  // nothing is fed again
        REQUIRE(differs_after_roll_back(engine, 0, stop) == "");
      }
    }
  });
}

TEST_CASE("BR-15 on a DSV4 memory: the state before a verified block stays reachable") {
  for (std::size_t head : {50U, 126U, 128U}) {
    on_every_memory(options({3}), [head](Engine const& empty) {
      auto const at = static_cast<Position>(head);
      Engine engine = empty;
      engine.feed(0, engine.drawn(head));
      for (std::int32_t width = 1; width <= 3; ++width) {
        for (std::int32_t accepted = 0; accepted <= width; ++accepted) {
          CAPTURE(head, width, accepted);
          Engine copy = engine;
          copy.verify(0, copy.drawn(static_cast<std::size_t>(width)), width, accepted);
          REQUIRE(copy.tip(0) == at + accepted);
          REQUIRE(differs_from_fresh_run(copy, 0) == "");
          REQUIRE(differs_after_roll_back(copy, 0, at) == "");
          for (int again = 0; again < 3; ++again) copy.verify(0, copy.drawn(3), 3, 0);  // nothing, over and over
          REQUIRE(copy.tip(0) == at + accepted);
          REQUIRE(differs_from_fresh_run(copy, 0) == "");
        }
      }
    });
  }
}

TEST_CASE("BR-16 on a DSV4 memory: any acceptance of blocks one after the other equals serial processing") {
  for (std::size_t head : {4U, 123U}) {
    on_every_memory(options({8}), [head](Engine const& empty) {
      for (std::int32_t pattern = 0; pattern < 125; ++pattern) {
        CAPTURE(head, pattern);
        Engine engine = empty;
        engine.feed(0, engine.drawn(head));
        auto tip = static_cast<Position>(head);
        for (std::int32_t accepted : {pattern % 5, pattern / 5 % 5, pattern / 25}) {
          engine.verify(0, engine.drawn(4), 4, accepted);
          tip += accepted;
          REQUIRE(engine.tip(0) == tip);
        }
        REQUIRE(differs_from_fresh_run(engine, 0, 1) == "");
      }
    });
  }
}
